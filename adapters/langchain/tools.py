"""Tools for LangChain agents: search with a retriever, or read a whole corpus."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from langchain_core.callbacks import BaseCallbackManager
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import patch_config
from langchain_core.runnables.configurable import DynamicRunnable
from langchain_core.tools import StructuredTool, ToolException
from pydantic import BaseModel, ConfigDict, Field

from ...nodegraph.errors import EmbeddingError, ModelError, explain_names
from ...retrievers.base_retriever import check_takes_filters
from ...retrievers.corpus_tools.tool_output import (
    ToolError,
    in_line,
    quoted,
)
from ...retrievers.corpus_tools.toolset import CorpusTools
from ...retrievers.foreign.foreign_retriever import as_retriever
from ...retrievers.protocols import RerankError
from .retriever import NodeGraphRetriever, applies_filter

logger = logging.getLogger(__name__)


Conditions: TypeAlias = Callable[[RunnableConfig], Mapping[str, Any]]
"""A function that takes the config of a run and returns its filter."""


class _Query(BaseModel):
    model_config = ConfigDict(extra="forbid")

    query: str = Field(description="What to look for, as a question or in keywords.")


@explain_names
def retriever_tool(
    retriever: BaseRetriever,
    name: str,
    description: str,
    *,
    conditions: Conditions | None = None,
    show: Sequence[str] = (),
) -> StructuredTool:
    """Return a tool for agents that searches with a retriever.

    The model reads numbered passages that it can cite. Each line of a passage is marked, so that no
    passage can imitate another passage. The documents are the ``artifact`` of the tool's message.
    They have a ``place`` if the retriever is nodekin's.

    Invalid arguments and failures of an embedding model, reranker or server are returned to the
    model as a message. Other errors end the agent's run.

    Args:
        retriever: The retriever.
        name: The tool's name, which the model sees.
        description: A description that tells the model when to use the tool.
        conditions: A function that takes the config of a run and returns its filter, such as
            ``lambda config: {"tenant": config["configurable"]["tenant"]}``. The model cannot see or
            change the filter. If the function raises or returns no conditions, nothing is searched.
        show: Metadata fields that the model reads with each passage.

    Raises:
        TypeError: If ``retriever`` is not a LangChain retriever.
        ValueError: If ``conditions`` is given and the retriever cannot be filtered.

    Example:
        >>> from langchain_core.documents import Document
        >>> documents = [Document("Green tea is steamed.", id="tea", metadata={"year": 1610})]
        >>> retriever = NodeGraphRetriever.from_documents(documents)
        >>> tool = retriever_tool(retriever, "search_tea", "Search texts on tea.", show=["year"])
        >>> print(tool.invoke({"query": "What is green?"}))
        [1] (year: 1610)
        | Green tea is steamed.
    """
    base = getattr(retriever, "default", retriever)  # the retriever within ``configurable_fields``
    if not isinstance(base, BaseRetriever):
        raise TypeError(f"retriever must be a LangChain retriever, got {retriever!r:.80}")
    if conditions is not None:
        _filtering(base)  # checks

    search = _SearchTool(retriever, name, conditions, tuple(show))
    return _tool(name, description, _Query, search.call, search.acall)


@dataclass(frozen=True, slots=True)
class _SearchTool:
    """The functions of a tool that searches. Unlike local functions, they can be pickled."""

    retriever: Any
    name: str
    conditions: Conditions | None
    show: tuple[str, ...]

    def call(
        self, query: str, config: RunnableConfig, callbacks: BaseCallbackManager | None = None
    ) -> tuple[str, list[Document]]:
        """Return the passages as text, and the documents."""
        with _errors_for_model(self.name):
            filters = self._filters(config)
            searching, own_config = self._prepared(config, callbacks)
            documents = searching.invoke(query, own_config, **filters)
            return _passages(documents, self.show), documents

    async def acall(
        self, query: str, config: RunnableConfig, callbacks: BaseCallbackManager | None = None
    ) -> tuple[str, list[Document]]:
        """Async version of ``call``."""
        with _errors_for_model(self.name):
            filters = self._filters(config)
            searching, own_config = self._prepared(config, callbacks)
            documents = await searching.ainvoke(query, own_config, **filters)
            return _passages(documents, self.show), documents

    def _prepared(
        self, config: RunnableConfig, callbacks: BaseCallbackManager | None
    ) -> tuple[BaseRetriever, RunnableConfig]:
        """Return the retriever and its config for one run of the tool.

        With Python 3.10, coroutines of earlier LangChain versions do not inherit the config.
        """
        searching: Any = self.retriever
        config = patch_config(config, callbacks=callbacks)
        if isinstance(searching, DynamicRunnable):
            searching, config = searching.prepare(config)
        if self.conditions is not None:
            searching = _filtering(searching)
        return _with_places(searching), config

    def _filters(self, config: RunnableConfig) -> dict[str, Any]:
        """Return the filter of a run as a keyword argument."""
        if self.conditions is None:
            return {}
        filters = self.conditions(config)
        if not filters:
            raise ValueError(
                f"conditions of the tool {self.name!r} must be a filter, got {filters!r}"
            )
        return {"filter": filters}


def _filtering(retriever: BaseRetriever) -> BaseRetriever:
    """Return a retriever that applies the filter of a call.

    If a retriever or a subclass does not accept a filter, its results are checked instead.

    Raises:
        ValueError: If the retriever cannot be filtered.
    """
    check_takes_filters(as_retriever(retriever), "conditions")
    return retriever if applies_filter(retriever) else NodeGraphRetriever(retriever)


def _with_places(retriever: BaseRetriever) -> BaseRetriever:
    """If the retriever is nodekin's, return a copy that adds the place of each document."""
    if isinstance(retriever, NodeGraphRetriever):
        return retriever.model_copy(update={"place": True})
    return retriever


def _tool(
    name: str, description: str, schema: Any, call: Callable[..., Any], acall: Callable[..., Any]
) -> StructuredTool:
    return StructuredTool(
        name=name,
        description=description,
        args_schema=schema,
        func=call,
        coroutine=acall,
        response_format="content_and_artifact",
        handle_tool_error=True,
        handle_validation_error=True,
    )


def _passages(documents: Sequence[Document], show: Sequence[str]) -> str:
    """Return numbered passages with their places and some metadata fields."""
    passages = []
    for number, document in enumerate(documents, 1):
        metadata = document.metadata
        heading = f"[{number}]"
        if place := metadata.get("place"):
            heading += f" {place}"
        if shown := ", ".join(f"{name}: {metadata[name]}" for name in show if name in metadata):
            heading += f" ({shown})"
        passages.append(f"{in_line(heading)}\n{quoted(document.page_content)}")
    return "\n\n".join(passages) or "Nothing was found."


@contextmanager
def _errors_for_model(tool: str) -> Iterator[None]:
    """Convert errors that the model can react to into messages for the model."""
    try:
        yield
    except ToolError as error:
        raise ToolException(str(error)) from error
    except (EmbeddingError, ModelError, RerankError, OSError) as error:
        logger.warning("the tool %s failed: %s", tool, error)
        message = f"{tool} failed, try again later: {type(error).__name__}: {error}"
        raise ToolException(message) from error


@explain_names
def corpus_toolkit(tools: CorpusTools, *, prefix: str = "") -> list[StructuredTool]:
    """Convert the tools of a corpus to LangChain tools: search, grep, outline, read, related, cite.

    Names, descriptions, arguments and texts come from ``CorpusTools``. The ``artifact`` of a
    tool's message is the output as a dict with ``text``, ``entries`` and ``left_out``.

    Args:
        tools: The tools.
        prefix: The prefix of the names, such as ``"tea_"``, for agents with several corpora.

    Raises:
        TypeError: If the tools are not ``CorpusTools``.

    Example:
        >>> from nodekin.nodegraph import Document, NodeGraph
        >>> from nodekin.retrievers import CorpusTools
        >>> graph = NodeGraph()
        >>> ids = graph.add(Document("Green tea is steamed.", id="tea.md"))
        >>> toolkit = corpus_toolkit(CorpusTools(graph))
        >>> [tool.name for tool in toolkit]
        ['search', 'grep', 'outline', 'read', 'related', 'cite']
        >>> print(toolkit[0].invoke({"query": "What is steamed?"}))
        tea.md [0:21]
        | Green tea is steamed.
    """
    if not isinstance(tools, CorpusTools):
        raise TypeError(f"tools must be CorpusTools(graph), got {tools!r:.80}")
    return [_corpus_tool(tools, name, prefix) for name in tools.tools]


def _corpus_tool(tools: CorpusTools, name: str, prefix: str) -> StructuredTool:
    tool = tools.tools[name]
    calls = _CorpusTool(tools, name)
    schema = {**tool.parameters, "title": name, "description": tool.description}
    return _tool(f"{prefix}{name}", tool.description, schema, calls.call, calls.acall)


@dataclass(frozen=True, slots=True)
class _CorpusTool:
    """The functions of a corpus tool. Unlike local functions, they can be pickled."""

    tools: CorpusTools
    name: str

    def call(self, **arguments: Any) -> tuple[str, dict[str, Any]]:
        """Return the output as text, and as JSON values that an agent's saved state can contain."""
        with _errors_for_model(self.name):
            output = self.tools.call(self.name, arguments)
            return output.text, output.to_dict()

    async def acall(self, **arguments: Any) -> tuple[str, dict[str, Any]]:
        """Async version of ``call``, in a thread."""
        return await asyncio.to_thread(self.call, **arguments)
