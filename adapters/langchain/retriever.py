"""Use any nodekin retriever as a LangChain retriever."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.runnables import RunnableConfig, ensure_config
from langchain_core.runnables.config import get_config_list
from pydantic import ConfigDict, Field, SkipValidation, field_validator, model_validator

from ...nodegraph.concurrency import in_thread
from ...nodegraph.graph import NodeGraph
from ...retrievers.base_retriever import child_k_override, inner_retrievers
from ...retrievers.composite.fusion import with_weights
from ...retrievers.composite.recursive import RecursiveRetriever
from ...retrievers.filters import Filters
from ...retrievers.foreign.coercion import as_retriever
from ...retrievers.foreign.foreign_retriever import configured, repr_without_top_k
from ...retrievers.plans.plan import Do, arun, run
from ...retrievers.protocols import RetrieverLike, RetrieverProtocol
from ...retrievers.results import ScoredNode
from ...retrievers.retriever import Retriever
from ...retrievers.validation import check_min_score
from ..frameworks import document_search
from .callbacks import achild_runs, child_runs, config_context
from .documents import Details, check_count, check_kwargs, to_document
from .filter_translation import CheckedFilter, as_filters, listing, merge_filters
from .graph_documents import GraphDocuments, RetrieverFields

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

logger = logging.getLogger(__name__)

MAX_BATCH = 256
"""How many queries are embedded together at most. A graph caches the vectors of twice as many."""


class NodeGraphRetriever(GraphDocuments):
    """Use any nodekin retriever in LangChain: chains, tools, agents.

    Setup:
        Install the extra: ``pip install "nodekin[langchain]"``. Nothing else is needed, no key
        and no network.

    Key init args:
        retriever: Any nodekin retriever: an object with ``retrieve`` and ``aretrieve``. Without
            one the documents of ``graph`` are searched.
        k: How many documents to return at most. None for the retriever's own ``top_k``. They
            are counted as they are returned, after lifting to the target group.
        child_k: How many children (hits in smaller groups) every inner retriever considers before
            it lifts them. None for as many as ``k`` results need.
        filter: Conditions on metadata, checked before ranking, beside the retriever's own.
        score_threshold: Keeps results that score this or more.
        details: What the metadata of a document has besides its own fields. False: nothing, so
            that a document is the same whatever the query. True: ``score`` (a float, higher is
            better), ``evidence`` (the text that matched best), and where in the document it is
            (``start``, ``end``). ``"nested"``: one field ``"nodekin"`` with everything, from which
            ``from_document`` restores the node.
        graph: The graph that documents are added to. ``from_documents`` sets it.

    Instantiate:
        In one line: sentences are searched, and the documents returned. Splitters of your own,
        another group, an embedding model, a file: see ``from_documents`` and ``from_graph``.

        >>> documents = [Document("Green tea is steamed. Black tea is fermented.", id="tea")]
        >>> retriever = NodeGraphRetriever.from_documents(documents, k=2)
        >>> [document.id for document in retriever.invoke("fermented")]
        ['tea']

        Over any retriever of nodekin:

        >>> from nodekin.nodegraph import NodeGraph, split_sentences
        >>> from nodekin.retrievers import Retriever
        >>> graph = NodeGraph()
        >>> ids = graph.add(["Green tea is unfermented. Black tea is not.", "Rivers run."])
        >>> graph.create_node_group("sentence", split_sentences)
        >>> search = Retriever(graph, "sentence", "bm25", target="ROOT")
        >>> retriever = NodeGraphRetriever(retriever=search, k=2)

    Usage:
        >>> (document,) = retriever.invoke("Which tea is black?")
        >>> document.page_content
        'Green tea is unfermented. Black tea is not.'
        >>> document.metadata
        {}
        >>> detailed = NodeGraphRetriever(retriever=search, details=True)
        >>> detailed.invoke("Which tea is black?")[0].metadata["evidence"]
        'Black tea is not.'

        Each call takes ``k``, ``child_k``, ``filter`` and ``score_threshold``, also for retrievers
        that hold others (and ``weights``, where there is a fusion: ``with_weights``). That filter
        is added to the retriever's:

        >>> retriever.invoke("tea", k=1, filter={"language": "en"})
        []

        A trace shows one retriever run, with the documents, and below it a chain run for every
        span: searches, fusions, rerankings, calls of a language model. LangChain's own retrievers
        and models have their runs below these.

    Use within a chain:
        >>> from langchain_core.language_models import FakeListChatModel
        >>> from langchain_core.output_parsers import StrOutputParser
        >>> from langchain_core.prompts import ChatPromptTemplate
        >>> from langchain_core.runnables import RunnablePassthrough
        >>> prompt = ChatPromptTemplate.from_template("{context}\\n\\nQuestion: {question}")
        >>> model = FakeListChatModel(responses=["Black tea is fermented."])
        >>> def joined(documents):
        ...     return "\\n".join(document.page_content for document in documents)
        >>> chain = (
        ...     {"context": retriever | joined, "question": RunnablePassthrough()}
        ...     | prompt | model | StrOutputParser()
        ... )
        >>> chain.invoke("Which tea is fermented?")
        'Black tea is fermented.'

    Raises:
        TypeError: If the retriever is none, or a call has an unknown keyword.
        pydantic.ValidationError: If an argument is unknown or out of range.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    retriever: Annotated[RetrieverLike, SkipValidation]
    """Any nodekin retriever, or what ``as_retriever`` takes for one."""

    k: int | None = Field(default=None, ge=1, strict=True)
    """How many documents to return at most. None for the retriever's own ``top_k``."""

    child_k: int | None = Field(default=None, ge=1, strict=True)
    """How many children to consider before lifting. None for as many as ``k`` results need."""

    filter: CheckedFilter = None
    """Conditions on metadata, checked before ranking."""

    score_threshold: float | None = Field(default=None, allow_inf_nan=False)
    """Keeps results that score this or more, from 0 to 1 for a ``DefaultRetriever``."""

    details: Details = False
    """What the metadata of a document has besides its own fields."""

    def __init__(
        self,
        retriever: RetrieverLike | None = None,
        *,
        graph: NodeGraph | None = None,
        **fields: Unpack[RetrieverFields],
    ) -> None:
        values: dict[str, Any] = {"retriever": retriever, "graph": graph, **fields}
        super().__init__(**values)

    @model_validator(mode="before")
    @classmethod
    def _search_documents(cls, values: Any) -> Any:
        graph = values.get("graph") if isinstance(values, Mapping) else None
        if isinstance(graph, NodeGraph) and values.get("retriever") is None:
            return {**values, "retriever": document_search(graph)}
        return values

    @model_validator(mode="after")
    def _check_threshold(self) -> Self:
        check_min_score(self.score_threshold, self.retriever, "score_threshold")
        return self

    @field_validator("retriever", mode="before")
    @classmethod
    def _check_retriever(cls, value: object) -> object:
        if isinstance(value, list) and all(isinstance(item, Document) for item in value):
            raise TypeError("retriever is no list; write NodeGraphRetriever.from_documents([...])")
        return as_retriever(value, "retriever")

    def __repr__(self) -> str:
        shown = super().__repr__()
        if self.k is None:
            return shown
        return shown.replace(repr(self.retriever), repr_without_top_k(self.retriever))

    @property
    def native_retriever(self) -> RetrieverProtocol:
        """The retriever, with this one's settings: what ``as_retriever`` returns."""
        return configured(
            self.retriever,
            top_k=self.k,
            filters=as_filters(self.filter),
            child_k=self.child_k,
            cut_off=self.score_threshold,
        )

    def invoke(
        self, input: str, config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        """Return the best documents, best first.

        Args:
            input: The query. A blank one lists the documents in their order.
            config: As everywhere in LangChain. Its ``run_id`` is that of the retriever's run.
            **kwargs: ``k``, ``child_k``, ``score_threshold`` replace the retriever's own, and
                ``weights`` those of the fusion that is the retriever or within it. ``filter`` is
                added to the retriever's own.
        """
        if config is None:  # that of the config context, if any, holds
            return super().invoke(input, **kwargs)
        with config_context(config := _with_run_id(config, kwargs)):
            return super().invoke(input, config, **kwargs)

    async def ainvoke(
        self, input: str, config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        """Async version of ``invoke``."""
        if config is None:
            return await super().ainvoke(input, **kwargs)
        with config_context(config := _with_run_id(config, kwargs)):
            return await super().ainvoke(input, config, **kwargs)

    def batch(
        self,
        inputs: list[str],
        config: RunnableConfig | list[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **kwargs: Any,
    ) -> list[list[Document]]:
        """Return the documents of each query. The queries are embedded together, then searched.

        Args:
            inputs: The queries.
            config: One for all, or one for each. A ``run_id`` in one for all is the first's.
                ``max_concurrency`` is how many are searched at once.
            return_exceptions: Whether a query that fails returns its error instead of raising it.
            **kwargs: As for ``invoke``, for all queries.
        """
        documents: list[list[Document]] = []
        for queries, configs in _batches(inputs, config):
            run(partial(_embed, self.retriever, queries))
            documents += super().batch(
                queries, configs, return_exceptions=return_exceptions, **kwargs
            )
        return documents

    async def abatch(
        self,
        inputs: list[str],
        config: RunnableConfig | list[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **kwargs: Any,
    ) -> list[list[Document]]:
        """Async version of ``batch``. A cancelled one ends when all its runs have ended."""
        documents: list[Any] = []
        for queries, configs in _batches(inputs, config):
            await arun(partial(_embed, self.retriever, queries))
            slots = asyncio.Semaphore(configs[0].get("max_concurrency") or len(queries))

            async def ainvoke(
                query: str, config: RunnableConfig, slots: asyncio.Semaphore = slots
            ) -> list[Document]:
                async with slots:
                    return await self.ainvoke(query, config, **kwargs)

            tasks = [asyncio.ensure_future(item) for item in map(ainvoke, queries, configs)]
            try:
                documents += await asyncio.gather(*tasks, return_exceptions=return_exceptions)
            except asyncio.CancelledError:  # all tasks are cancelled, the first of them has ended
                await asyncio.gather(*tasks, return_exceptions=True)
                raise
        return documents

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **settings: Any
    ) -> list[Document]:
        options = self._options(**settings)
        filters = listing(options.retriever, query, options.filters)
        with child_runs(run_manager=run_manager), child_k_override(options.child_k):
            results = options.retriever.retrieve(query, top_k=options.k, filters=filters)
        return self._documents(results, options)

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **settings: Any
    ) -> list[Document]:
        try:
            options = self._options(**settings)
            filters = listing(options.retriever, query, options.filters)
            async with achild_runs(run_manager=run_manager):
                with child_k_override(options.child_k):
                    results = await options.retriever.aretrieve(
                        query, top_k=options.k, filters=filters
                    )
            if len(results) <= _MAX_WITHOUT_THREAD:
                return self._documents(results, options)
            return await in_thread(partial(self._documents, results, options))
        except asyncio.CancelledError as error:  # the base class reports an Exception only
            await run_manager.on_retriever_error(error)
            raise

    def _options(
        self,
        k: int | None = None,
        child_k: int | None = None,
        filter: Mapping[str, Any] | None = None,
        score_threshold: float | None = None,
        weights: Sequence[float] | None = None,
        **unknown: Any,
    ) -> _SearchOptions:
        """Put the call's arguments over the retriever's own."""
        check_kwargs("invoke", unknown, _CALL_OPTIONS)
        threshold = self.score_threshold if score_threshold is None else score_threshold
        threshold = check_min_score(threshold, self.retriever, "score_threshold")
        check_count("k", k)
        check_count("child_k", child_k)
        retriever: Any = self.retriever
        return _SearchOptions(
            retriever if weights is None else with_weights(retriever, weights),
            self.k if k is None else k,
            self.child_k if child_k is None else child_k,
            merge_filters(self.filter, filter),
            threshold,
        )

    def _documents(self, results: Sequence[ScoredNode], options: _SearchOptions) -> list[Document]:
        threshold = options.score_threshold
        return [
            to_document(result, details=self.details)
            for result in results
            if threshold is None or result.score >= threshold
        ]


_CALL_OPTIONS = ("k", "child_k", "filter", "score_threshold", "weights")

_MAX_WITHOUT_THREAD = 64
"""As many documents are made in less time than a thread takes to start."""


class _SearchOptions(NamedTuple):
    """The retriever and the arguments of one call."""

    retriever: RetrieverProtocol
    k: int | None
    child_k: int | None
    filters: Filters | None
    score_threshold: float | None


def _with_run_id(config: RunnableConfig, kwargs: dict[str, Any]) -> RunnableConfig:
    """Return a call's config. Set its run id in ``kwargs``, where the base class reads it."""
    config = ensure_config(config)
    kwargs["run_id"] = kwargs.get("run_id") or config.get("run_id")
    return config


def _batches(
    queries: list[str], config: RunnableConfig | list[RunnableConfig] | None
) -> Iterator[tuple[list[str], list[RunnableConfig]]]:
    configs = get_config_list(config, len(queries))
    for start in range(0, len(queries), MAX_BATCH):
        yield queries[start : start + MAX_BATCH], configs[start : start + MAX_BATCH]


async def _embed(retriever: object, queries: Sequence[object]) -> None:
    """Let the models of all inner retrievers embed the queries, each model all in one call.

    A model that fails is called again by the search for each query, which then raises: one query
    that can't be embedded does not affect the others.
    """
    texts = list(dict.fromkeys(q for q in queries if isinstance(q, str) and q.strip()))
    for searcher in _searchers(retriever) if len(texts) > 1 else ():
        try:
            await Do(partial(searcher.embed, texts), partial(searcher.aembed, texts))
        except Exception as error:
            logger.info("%r could not embed a batch, goes one by one: %s", searcher, error)


def _searchers(retriever: object) -> Iterator[Retriever | RecursiveRetriever]:
    """Yield the inner retrievers that search for the query as it is."""
    if isinstance(retriever, Retriever | RecursiveRetriever):
        yield retriever
    elif not getattr(retriever, "calls_model", False):
        for _, inner in inner_retrievers(retriever):
            yield from _searchers(inner)
