"""Tools for agents: search with a retriever and filters, or ask a query engine."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from langchain_core.callbacks import Callbacks
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import Runnable
from langchain_core.tools import StructuredTool
from pydantic import BaseModel, ConfigDict, Field, create_model

from ...retrievers import QueryEngine
from .documents import NODE_KEY
from .query_engine import NodeGraphQueryEngine

T = TypeVar("T")


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

    LangChain's ``create_retriever_tool`` takes the retriever, too. Choose this one to let the model
    filter by metadata, to number the passages so that it can cite them, and to get the documents
    with their scores and evidence beside its text: the ``artifact`` of the tool's message, in the
    order of the numbers.

    Args:
        retriever: The retriever; with ``filter_by`` one that takes a ``filter``.
        name: The tool's name for the model.
        description: When the model should use it.
        filter_by: Metadata fields that the model may filter by, each with its description. It
            gives one value or several, of which any may match. Conditions of the retriever itself
            apply as well, and the model can't change them.
        show: Metadata fields that the model sees with each passage.
        nothing: The text for the model if nothing was found.

    Raises:
        TypeError: If it is no LangChain retriever.
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

    def output(documents: list[Document]) -> tuple[str, list[Document]]:
        passages = (
            f"[{number}]{_describe(document.metadata, show)}\n{document.page_content}"
            for number, document in enumerate(documents, 1)
        )
        return "\n\n".join(passages) or nothing, documents

    argument = ("query", "What to look for, as a question or in keywords.")
    return _tool(retriever, name, description, argument, filter_by or {}, output)


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
    it needs answers only: they cost the agent less context, and each is written from the
    passages only, with citations.

    The model gets the answer and the sources that it cites. All sources, with the documents, are
    in the ``artifact`` of the tool's message: the mapping that ``NodeGraphQueryEngine`` returns
    with ``output="dict"``.

    Args:
        engine: The engine, or its ``NodeGraphQueryEngine``.
        name: The tool's name for the model.
        description: When the model should use it.
        filter_by: Metadata fields that the model may filter by, each with its description. It
            gives one value or several, of which any may match. Conditions of the engine itself
            apply as well, and the model can't change them.
        show: Metadata fields that the model sees with each source.

    Raises:
        TypeError: If it is no engine.
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
    if isinstance(engine, NodeGraphQueryEngine):
        runnable = engine.model_copy(update={"output": "dict"})
    elif isinstance(engine, QueryEngine):
        runnable = NodeGraphQueryEngine(engine=engine, output="dict")
    else:
        raise TypeError(
            f"engine is a QueryEngine(retriever, llm), not {engine!r:.80}; a retriever alone goes "
            "into retriever_tool"
        )

    def output(answer: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        return _cite(answer, show), answer

    argument = ("question", "The question, complete in itself.")
    return _tool(runnable, name, description, argument, filter_by or {}, output)


def _tool(
    runnable: Runnable[str, T],
    name: str,
    description: str,
    argument: tuple[str, str],
    filter_by: Mapping[str, str],
    output: Callable[[T], tuple[str, T]],
) -> StructuredTool:
    """Make a tool that invokes a runnable with a text and a filter.

    Args:
        runnable: What the tool invokes, with the keyword ``filter``.
        name: The tool's name.
        description: When to use it.
        argument: The name and the description of the text.
        filter_by: Metadata fields with their descriptions.
        output: Returns the text for the model, and the artifact.
    """
    key, _ = argument

    def call(callbacks: Callbacks = None, **kwargs: Any) -> tuple[str, T]:
        text = kwargs.pop(key)
        return output(runnable.invoke(text, {"callbacks": callbacks}, **_filter(kwargs)))

    async def acall(callbacks: Callbacks = None, **kwargs: Any) -> tuple[str, T]:
        text = kwargs.pop(key)
        return output(await runnable.ainvoke(text, {"callbacks": callbacks}, **_filter(kwargs)))

    return StructuredTool(
        name=name,
        description=description,
        func=call,
        coroutine=acall,
        args_schema=_arguments(name, argument, filter_by, getattr(runnable, "filter", None) or {}),
        response_format="content_and_artifact",
    )


def _cite(answer: Mapping[str, Any], show: Sequence[str]) -> str:
    """Return the answer with the sources that it cites; with all, where it cites none."""
    sources = list(zip(answer["sources"], answer["context"], strict=True))
    if not answer["found"] or not sources:
        return str(answer["answer"])
    cited = [pair for pair in sources if pair[0]["cited"]] or sources
    lines = (
        f"[{source['number']}] {source['title'] or source['document_id'] or source['id']}"
        f"{_describe(document.metadata, show)}"
        for source, document in cited
    )
    return f"{answer['answer']}\n\nSources:\n" + "\n".join(lines)


def _arguments(
    tool: str,
    argument: tuple[str, str],
    filter_by: Mapping[str, str],
    own_filter: Mapping[str, Any],
) -> type[BaseModel]:
    """Return the schema of a tool's arguments: a text, and optional values to filter by.

    Raises:
        ValueError: If a field has the name of another argument, or a condition of the runnable's.
    """
    for field in filter_by:
        if field in (argument[0], "callbacks"):
            raise ValueError(f"filter_by={field!r} is the name of another argument of the tool")
        if field in own_filter:
            raise ValueError(
                f"filter_by={field!r} would let the model replace the retriever's own condition "
                f"{own_filter[field]!r}; leave it out"
            )
    value = str | int | float | bool
    fields: dict[str, Any] = {argument[0]: (str, Field(description=argument[1]))}
    for name, description in filter_by.items():
        fields[name] = (value | list[value] | None, Field(default=None, description=description))
    return create_model(f"{tool}_arguments", __config__=ConfigDict(extra="forbid"), **fields)


def _filter(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values as the keyword ``filter``, without those that the model left empty."""
    filter = {field: value for field, value in values.items() if value not in (None, "", [])}
    return {"filter": filter} if filter else {}


def _describe(metadata: Mapping[str, Any], show: Sequence[str]) -> str:
    """Return some metadata fields in parentheses; nothing if there are none."""
    values = {name: metadata[name] for name in show if metadata.get(name) is not None}
    texts = (
        f"{name}: {value if isinstance(value, str) else json.dumps(value, default=str)}"
        for name, value in values.items()
        if name != NODE_KEY
    )
    return f" ({', '.join(texts)})" if values else ""
