"""Tools for LangChain agents that search with a retriever or read a corpus."""

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
"""A function that takes the config of a run and returns a metadata filter."""


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
    """Create an agent tool that searches with a retriever.

    The tool returns numbered passages that the model can cite. Each line of a passage is marked, so
    the text of a passage cannot imitate the start of another passage. The retrieved documents are
    available as the ``artifact`` of the tool message. If the retriever is a nodekin retriever, each
    document includes its ``place``.

    If the arguments are invalid, or if an embedding model, reranker or server fails, the error is
    returned to the model as a message. Other errors are raised.

    Args:
        retriever: The retriever.
        name: The name of the tool, which the model can see.
        description: A description that explains to the model when to use the tool.
        conditions: A function that takes the config of a run and returns a metadata filter, such as
            ``lambda config: {"tenant": config["configurable"]["tenant"]}``. The model can neither
            see nor change the filter. If the function fails or returns an empty filter, no search
            is performed.
        show: The metadata fields that are added to each passage.

    Raises:
        TypeError: If ``retriever`` is not a LangChain retriever.
        ValueError: If ``conditions`` is given, but the retriever does not support filters.

    Example:
        >>> from langchain_core.documents import Document
        >>> documents = [Document("Green tea is steamed.", id="tea", metadata={"year": 1610})]
        >>> retriever = NodeGraphRetriever.from_documents(documents)
        >>> tool = retriever_tool(retriever, "search_tea", "Search texts on tea.", show=["year"])
        >>> print(tool.invoke({"query": "What is green?"}))
        [1] (year: 1610)
        | Green tea is steamed.
    """
    base = getattr(retriever, "default", retriever)  # the retriever inside ``configurable_fields``
    if not isinstance(base, BaseRetriever):
        raise TypeError(f"retriever must be a LangChain retriever, got {retriever!r:.80}")
    if conditions is not None:
        _filtering(base)  # checks

    search = _SearchTool(retriever, name, conditions, tuple(show))
    return _tool(name, description, _Query, search.call, search.acall)


@dataclass(frozen=True, slots=True)
class _SearchTool:
    """The functions behind a search tool. Unlike local functions, their methods can be pickled."""

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
        """Return the retriever and the config for one call of the tool.

        In Python 3.10, coroutines of older LangChain versions do not inherit the config.
        """
        searching: Any = self.retriever
        config = patch_config(config, callbacks=callbacks)
        if isinstance(searching, DynamicRunnable):
            searching, config = searching.prepare(config)
        if self.conditions is not None:
            searching = _filtering(searching)
        return _with_places(searching), config

    def _filters(self, config: RunnableConfig) -> dict[str, Any]:
        """Return the keyword arguments that contain the filter of a run."""
        if self.conditions is None:
            return {}
        filters = self.conditions(config)
        if not filters:
            raise ValueError(
                f"conditions of the tool {self.name!r} must be a filter, got {filters!r}"
            )
        return {"filter": filters}


def _filtering(retriever: BaseRetriever) -> BaseRetriever:
    """Return a retriever that applies the filter of each call.

    If the given retriever does not accept filters, its results are filtered afterwards.

    Raises:
        ValueError: If the retriever cannot be filtered.
    """
    check_takes_filters(as_retriever(retriever), "conditions")
    return retriever if applies_filter(retriever) else NodeGraphRetriever(retriever)


def _with_places(retriever: BaseRetriever) -> BaseRetriever:
    """Return a copy of a nodekin retriever that adds places to documents.

    Other retrievers are returned unchanged.
    """
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
    """Format documents as numbered passages, with their places and the selected metadata fields."""
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
    """Convert errors that a language model can react to into messages for the model."""
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
    """Convert corpus tools to LangChain tools: search, grep, outline, read, related and cite.

    The names, descriptions, arguments and output texts are those of ``CorpusTools``. The
    ``artifact`` of each tool message is the output as a dictionary with ``text``, ``entries`` and
    ``left_out``.

    Args:
        tools: The corpus tools.
        prefix: A prefix for the tool names, such as ``"tea_"``, for agents that use several
            corpora.

    Raises:
        TypeError: If ``tools`` is not an instance of ``CorpusTools``.

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
    """The functions behind a corpus tool. Unlike local functions, their methods can be pickled."""

    tools: CorpusTools
    name: str

    def call(self, **arguments: Any) -> tuple[str, dict[str, Any]]:
        """Return the output as text, and as JSON-compatible values for the agent's saved state."""
        with _errors_for_model(self.name):
            output = self.tools.call(self.name, arguments)
            return output.text, output.to_dict()

    async def acall(self, **arguments: Any) -> tuple[str, dict[str, Any]]:
        """Async version of ``call``, which runs it in a thread."""
        return await asyncio.to_thread(self.call, **arguments)
