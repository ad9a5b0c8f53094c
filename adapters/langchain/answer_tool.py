"""Let an agent ask a query engine, and have the sources of its answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.callbacks import Callbacks
from langchain_core.tools import StructuredTool

from ...retrievers import QueryEngine
from .query_engine import NodeGraphQueryEngine
from .tool_conditions import as_filter, asked_for, own_filter, shown

_QUESTION = "The question, complete in itself."


def answer_tool(
    engine: QueryEngine | NodeGraphQueryEngine,
    name: str,
    description: str,
    *,
    filter_by: Mapping[str, str] | None = None,
    show: Sequence[str] = (),
) -> StructuredTool:
    """Make a tool of a query engine, for agents: a question in, an answer with its sources out.

    Choose ``retriever_tool`` where the agent's own model is to read the passages; this one where
    it needs answers only: they cost the agent less context, and each is made, and cited, from
    the passages alone.

    The model is told the answer and the sources that it cites. The whole, with the documents, is
    the ``artifact`` of the tool's message: the mapping that ``NodeGraphQueryEngine`` returns with
    ``output="dict"``.

    Args:
        engine: The engine, or the runnable made of it.
        name: What the model calls the tool.
        description: Tells the model when to use it.
        filter_by: Metadata fields that the model may ask for, each with what to tell it of the
            field. It gives one value or several, of which any may match. Conditions of the
            engine itself stay beside them, and can't be changed by the model.
        show: Metadata fields that the model sees with each source.

    Raises:
        TypeError: If the engine is none.
        ValueError: If the engine itself has a condition on a field of ``filter_by``, or the field
            has the name of another argument.

    Example:
        >>> from nodekin.nodegraph import Document, NodeGraph
        >>> from nodekin.retrievers import Retriever
        >>> graph = NodeGraph()
        >>> ids = graph.add(Document("The Nile is 6,650 km long.", {"page": 3}, id="rivers.md"))
        >>> engine = QueryEngine(Retriever(graph, "ROOT"), lambda prompt: "It has 6,650 km [1].")
        >>> tool = answer_tool(engine, "ask_atlas", "Answers about rivers.", show=["page"])
        >>> print(tool.invoke({"question": "How long is the Nile?"}))
        It has 6,650 km [1].
        <BLANKLINE>
        Sources:
        [1] rivers.md (page: 3)
    """
    runnable = engine if isinstance(engine, NodeGraphQueryEngine) else _runnable(engine)
    runnable = runnable.model_copy(update={"output": "dict"})

    def told(made: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        return _told(made, show), made

    def ask(
        question: str, callbacks: Callbacks = None, **conditions: Any
    ) -> tuple[str, dict[str, Any]]:
        kwargs = as_filter(conditions)
        return told(runnable.invoke(question, {"callbacks": callbacks}, **kwargs))

    async def aask(
        question: str, callbacks: Callbacks = None, **conditions: Any
    ) -> tuple[str, dict[str, Any]]:
        kwargs = as_filter(conditions)
        return told(await runnable.ainvoke(question, {"callbacks": callbacks}, **kwargs))

    return StructuredTool(
        name=name,
        description=description,
        func=ask,
        coroutine=aask,
        args_schema=asked_for(name, {"question": _QUESTION}, filter_by or {}, own_filter(runnable)),
        response_format="content_and_artifact",
    )


def _runnable(engine: object) -> NodeGraphQueryEngine:
    if not isinstance(engine, QueryEngine):
        raise TypeError(
            f"engine is a QueryEngine(retriever, llm), not {engine!r:.80}; a retriever alone goes "
            "into retriever_tool"
        )
    return NodeGraphQueryEngine(engine=engine)


def _told(made: Mapping[str, Any], show: Sequence[str]) -> str:
    """Return the answer with the sources that it cites; with all, where it cites none."""
    sources = list(zip(made["sources"], made["context"], strict=True))
    if not made["found"] or not sources:
        return str(made["answer"])
    cited = [pair for pair in sources if pair[0]["cited"]] or sources
    lines = (
        f"[{source['number']}] {source['title'] or source['document_id'] or source['id']}"
        f"{shown(document.metadata, show)}"
        for source, document in cited
    )
    return f"{made['answer']}\n\nSources:\n" + "\n".join(lines)
