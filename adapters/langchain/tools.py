"""Let an agent search with a retriever, by metadata too, and keep what it found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.callbacks import Callbacks
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import StructuredTool

from .tool_conditions import as_filter, asked_for, own_filter, shown

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
