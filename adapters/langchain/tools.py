"""Let an agent search with a retriever, by metadata too, and keep what it found."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.callbacks import Callbacks
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import StructuredTool
from pydantic import BaseModel, ConfigDict, Field, create_model

from ...retrievers import QueryEngine
from .documents import NODE_KEY
from .query_engine import NodeGraphQueryEngine

_QUERY = "What to look for, as a question or in keywords."


def retriever_tool(
    retriever: BaseRetriever,
    name: str,
    description: str,
    *,
    filter_by: Mapping[str, str] | None = None,
    show: Sequence[str] = (),
    nothing: str = "Nothing was found.",
) -> StructuredTool:
    """Make a tool of a ``NodeGraphRetriever``, for agents.

    LangChain's ``create_retriever_tool`` does with the retriever, too. Choose this one to let the
    model narrow its search by metadata, to have passages numbered so that it can cite them, and
    to have the documents with their scores and evidence beside its answer: the ``artifact`` of
    the tool's message, in the order of the numbers.

    Args:
        retriever: The retriever; with ``filter_by`` one that takes a ``filter``.
        name: What the model calls the tool.
        description: Tells the model when to use it.
        filter_by: Metadata fields that the model may ask for, each with what to tell it of the
            field. It gives one value or several, of which any may match. Conditions of the
            retriever itself stay beside them, and can't be changed by the model.
        show: Metadata fields that the model sees with each passage.
        nothing: What the model is told where nothing was found.

    Raises:
        TypeError: If the retriever is none.
        ValueError: If the retriever itself has a condition on a field of ``filter_by``, or the
            field has the name of another argument.

    Example:
        >>> from nodekin.adapters.langchain import NodeGraphRetriever
        >>> from nodekin.nodegraph import Document, NodeGraph
        >>> from nodekin.retrievers import Retriever
        >>> graph = NodeGraph()
        >>> texts = {"en": "Green tea is steamed.", "de": "Green means gruen."}
        >>> ids = graph.add([Document(text, {"language": key}) for key, text in texts.items()])
        >>> tool = retriever_tool(
        ...     NodeGraphRetriever(retriever=Retriever(graph, "ROOT")),
        ...     "search_tea",
        ...     "Search texts about tea.",
        ...     filter_by={"language": "de or en"},
        ...     show=["language"],
        ... )
        >>> print(tool.invoke({"query": "What is green?", "language": "en"}))
        [1] (language: en)
        Green tea is steamed.
    """
    if not isinstance(retriever, BaseRetriever):
        raise TypeError(
            f"retriever is a LangChain retriever, not {retriever!r:.80}; make one: "
            "NodeGraphRetriever(retriever=...)"
        )
    arguments = asked_for(name, {"query": _QUERY}, filter_by or {}, own_filter(retriever))

    def answer(documents: list[Document]) -> tuple[str, list[Document]]:
        return _numbered(documents, show) or nothing, documents

    def search(
        query: str, callbacks: Callbacks = None, **conditions: Any
    ) -> tuple[str, list[Document]]:
        kwargs = as_filter(conditions)
        return answer(retriever.invoke(query, config={"callbacks": callbacks}, **kwargs))

    async def asearch(
        query: str, callbacks: Callbacks = None, **conditions: Any
    ) -> tuple[str, list[Document]]:
        kwargs = as_filter(conditions)
        return answer(await retriever.ainvoke(query, config={"callbacks": callbacks}, **kwargs))

    return StructuredTool(
        name=name,
        description=description,
        func=search,
        coroutine=asearch,
        args_schema=arguments,
        response_format="content_and_artifact",
    )


def _numbered(documents: Sequence[Document], show: Sequence[str]) -> str:
    return "\n\n".join(
        f"[{number}]{shown(document.metadata, show)}\n{document.page_content}"
        for number, document in enumerate(documents, 1)
    )


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


def asked_for(
    tool: str,
    texts: Mapping[str, str],
    filter_by: Mapping[str, str],
    own: Mapping[str, Any],
) -> type[BaseModel]:
    """Return a tool's arguments: texts that have to be there, and conditions that may.

    Args:
        tool: The tool's name.
        texts: The texts, each with what the model is told of it.
        filter_by: Metadata fields, each with what the model is told of it.
        own: Conditions that the model must not replace.

    Raises:
        ValueError: If a field has the name of another argument, or a condition of its own.
    """
    for field in filter_by:
        if field in (*texts, "callbacks"):
            raise ValueError(f"filter_by={field!r} is the name of another argument of the tool")
        if field in own:
            raise ValueError(
                f"filter_by={field!r} would let the model replace the retriever's own condition "
                f"{own[field]!r}; leave it out"
            )
    value = str | int | float | bool
    fields: dict[str, Any] = {name: (str, Field(description=told)) for name, told in texts.items()}
    fields |= {
        name: (value | list[value] | None, Field(default=None, description=told))
        for name, told in filter_by.items()
    }
    return create_model(f"{tool}_arguments", __config__=ConfigDict(extra="forbid"), **fields)


def own_filter(searches: object) -> Mapping[str, Any]:
    """Return the conditions that a retriever or an engine has itself."""
    return getattr(searches, "filter", None) or {}


def as_filter(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return conditions as keywords of a call, without those that the model left empty."""
    conditions = {field: value for field, value in given.items() if value not in (None, "", [])}
    return {"filter": conditions} if conditions else {}


def shown(metadata: Mapping[str, Any], show: Sequence[str]) -> str:
    """Return some metadata fields in brackets, as a model reads them; nothing for none."""
    known = {field: metadata[field] for field in show if metadata.get(field) is not None}
    told = (
        f"{field}: {value if isinstance(value, str) else json.dumps(value, default=str)}"
        for field, value in known.items()
        if field != NODE_KEY
    )
    return f" ({', '.join(told)})" if known else ""
