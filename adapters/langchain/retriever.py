"""Use any nodekin retriever as a LangChain retriever."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.runnables import RunnableConfig, ensure_config
from langchain_core.runnables.config import get_config_list
from langchain_core.runnables.graph import Graph
from pydantic import ConfigDict, Field, SkipValidation, field_validator

from ...retrievers.base_retriever import child_k_override
from ...retrievers.composite.fusion import with_weights
from ...retrievers.foreign.coercion import as_retriever
from ...retrievers.foreign.foreign_retriever import configured
from ...retrievers.plans.effects import Compute
from ...retrievers.plans.plan import Plan, arun, run
from ...retrievers.protocols import RetrieverLike, RetrieverProtocol
from ...retrievers.results import ScoredNode
from .batching import MAX_BATCH, batch_runs, embed_queries, invoke_each, supports_batch
from .callbacks import (
    acall_with_config,
    achild_runs,
    call_with_config,
    child_runs,
    has_config,
    nobody_listens,
    parent_runs,
)
from .document_retriever import DocumentRetriever
from .documents import Details, check_count, check_kwargs, to_document
from .filter_operators import as_filters, merge_filters
from .graph_drawing import draw_runnable


class NodeGraphRetriever(DocumentRetriever):
    """Use any nodekin retriever in LangChain: chains, tools, agents.

    Setup:
        Install the extra: ``pip install "nodekin[langchain]"``. Nothing else is needed, no key
        and no network.

    Key init args:
        retriever: Any nodekin retriever: an object with ``retrieve`` and ``aretrieve``.
        k: How many documents to return at most; None for the retriever's own ``top_k``. They
            are counted as they are returned, after lifting to the target group.
        child_k: How many children (hits in smaller groups) every inner retriever considers before
            it lifts them; None for as many as ``k`` results need.
        filter: Conditions on metadata, checked before ranking, beside the retriever's own.
        score_threshold: Keeps results that score this or more.
        details: What the metadata of a document has besides its own fields. False: nothing, so
            that a document is the same whatever the query. True: ``score`` (a float, higher is
            better), ``evidence`` (the text that matched best), and where in the document it is
            (``start``, ``end``). ``"nested"``: one field ``"nodekin"`` with everything, from which
            ``from_document`` restores the node.
        graph: The graph that ``add_documents`` adds to; ``from_documents`` sets it.

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
        that hold others (and ``weights``, where there is a fusion: ``with_weights``); that filter
        is added to the retriever's:

        >>> retriever.invoke("tea", k=1, filter={"language": "en"})
        []

        A trace shows one run for the retriever and a child run for every span: searches, fusions,
        rerankings, calls of a language model, and LangChain's own runs below them.

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
    """How many documents to return at most; None for the retriever's own ``top_k``."""

    child_k: int | None = Field(default=None, ge=1, strict=True)
    """How many children to consider before lifting; None for as many as ``k`` results need."""

    filter: dict[str, Any] | None = None
    """Conditions on metadata, checked before ranking."""

    score_threshold: float | None = Field(default=None, allow_inf_nan=False)
    """Keeps results that score this or more."""

    details: Details = False
    """What the metadata of a document has besides its own fields."""

    @field_validator("filter")
    @classmethod
    def _check_filter(cls, value: dict[str, Any] | None) -> dict[str, Any] | None:
        as_filters(value)
        return value

    @field_validator("retriever", mode="before")
    @classmethod
    def _check_retriever(cls, value: object) -> object:
        return as_retriever(value, "retriever")

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
            input: The query; a blank one has no results.
            config: As everywhere in LangChain; its ``run_id`` is that of the retriever's run.
            **kwargs: ``k``, ``child_k``, ``score_threshold``, in place of the retriever's own;
                ``weights``, in place of those of the fusion that is the retriever or within it;
                ``filter``, besides the retriever's own.
        """
        if not has_config(config):
            if self._is_silent(kwargs):
                options = self._options(**kwargs)
                with child_k_override(options.child_k):
                    return self._documents(options.retrieve(input), options)
            return super().invoke(input, **kwargs)
        config = _with_run_id(config, kwargs)
        return call_with_config(config, partial(super().invoke, input, config, **kwargs))

    async def ainvoke(
        self, input: str, config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        """Return the same without blocking the event loop."""
        if not has_config(config):
            if self._is_silent(kwargs):
                options = self._options(**kwargs)
                with child_k_override(options.child_k):
                    results = await options.aretrieve(input)
                return (await self._adocuments([results], options))[0]
            return await super().ainvoke(input, **kwargs)
        config = _with_run_id(config, kwargs)
        return await acall_with_config(config, partial(super().ainvoke, input, config, **kwargs))

    def batch(
        self,
        inputs: list[str],
        config: RunnableConfig | list[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **kwargs: Any,
    ) -> list[list[Document]]:
        """Return the documents of each query, with a run for each and one embedding call for all.

        The queries are embedded together, then searched together, as many as the config's
        ``max_concurrency`` allows.

        Args:
            inputs: The queries.
            config: One for all, or one for each; a ``run_id`` in one for all is the first's.
            return_exceptions: Whether a query that fails returns its error in place of documents.
            **kwargs: As for ``invoke``, for all queries.
        """
        return run(self._batch("batch", inputs, config, return_exceptions, kwargs))

    async def abatch(
        self,
        inputs: list[str],
        config: RunnableConfig | list[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **kwargs: Any,
    ) -> list[list[Document]]:
        """Do what ``batch`` does without blocking the event loop."""
        return await arun(self._batch("abatch", inputs, config, return_exceptions, kwargs))

    def get_graph(self, config: RunnableConfig | None = None) -> Graph:
        """Return a graph to draw: the way of a query through the inner retrievers."""
        return draw_runnable(self, self, self.retriever, config)

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        k: int | None = None,
        child_k: int | None = None,
        filter: Mapping[str, Any] | None = None,
        score_threshold: float | None = None,
        weights: Sequence[float] | None = None,
        **unknown: Any,
    ) -> list[Document]:
        options = self._options(k, child_k, filter, score_threshold, weights, **unknown)
        return self._search([query], [run_manager], options)[0]

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        k: int | None = None,
        child_k: int | None = None,
        filter: Mapping[str, Any] | None = None,
        score_threshold: float | None = None,
        weights: Sequence[float] | None = None,
        **unknown: Any,
    ) -> list[Document]:
        try:
            options = self._options(k, child_k, filter, score_threshold, weights, **unknown)
            return (await self._asearch([query], [run_manager], options))[0]
        except asyncio.CancelledError as error:  # the base class reports an Exception only
            await run_manager.on_retriever_error(error)
            raise

    def _batch(
        self,
        method: Literal["batch", "abatch"],
        inputs: list[str],
        config: RunnableConfig | list[RunnableConfig] | None,
        return_exceptions: bool,
        kwargs: dict[str, Any],
    ) -> Plan[list[Any]]:
        configs = get_config_list(config, len(inputs))
        together = len(inputs) > 1 and supports_batch(self.retriever, method)
        limit = configs[0].get("max_concurrency") if together else None
        size = min(limit or MAX_BATCH, MAX_BATCH)
        documents: list[Any] = []

        def search(queries: list[str], run_managers: list[Any]) -> Compute[list[Any]]:
            arguments = (queries, run_managers, self._options(**kwargs))
            return Compute.of(self._search, self._asearch, *arguments)

        for start in range(0, len(inputs), size):
            queries, own = inputs[start : start + size], configs[start : start + size]
            if together:
                documents += yield from batch_runs(
                    self, queries, own, search, return_exceptions=return_exceptions
                )
                continue
            yield from embed_queries(self.retriever, queries)
            documents += yield from invoke_each(
                self, queries, own, return_exceptions=return_exceptions, **kwargs
            )
        return documents

    def _search(
        self, queries: list[str], run_managers: list[Any], options: SearchOptions
    ) -> list[list[Document]]:
        retriever = options.retriever
        with parent_runs(queries, run_managers), child_runs(), child_k_override(options.child_k):
            if len(queries) == 1:
                results = [options.retrieve(queries[0])]
            else:
                run(embed_queries(retriever, queries))  # else each branch would embed them
                results = retriever.batch(queries, top_k=options.k, filters=options.filter)
        return [self._documents(of_query, options) for of_query in results]

    async def _asearch(
        self, queries: list[str], run_managers: list[Any], options: SearchOptions
    ) -> list[list[Document]]:
        retriever = options.retriever
        with parent_runs(queries, run_managers), child_k_override(options.child_k):
            async with achild_runs():
                if len(queries) == 1:
                    results = [await options.aretrieve(queries[0])]
                else:
                    await arun(embed_queries(retriever, queries))
                    results = await retriever.abatch(
                        queries, top_k=options.k, filters=options.filter
                    )
        return await self._adocuments(results, options)

    def _is_silent(self, kwargs: Mapping[str, Any]) -> bool:
        """Return whether a call without a config needs no run, as no handler would see it."""
        return (
            kwargs.keys() <= _CALL_OPTIONS
            and nobody_listens()
            and type(self)._get_relevant_documents is _get_relevant_documents
            and type(self)._aget_relevant_documents is _aget_relevant_documents
        )

    def _options(
        self,
        k: int | None = None,
        child_k: int | None = None,
        filter: Mapping[str, Any] | None = None,
        score_threshold: float | None = None,
        weights: Sequence[float] | None = None,
        **unknown: Any,
    ) -> SearchOptions:
        """Put the call's arguments over the retriever's own."""
        if unknown:
            check_kwargs("invoke", unknown, _CALL_OPTIONS)
        threshold = self.score_threshold if score_threshold is None else score_threshold
        if threshold is not None and (
            isinstance(threshold, bool) or not isinstance(threshold, int | float)
        ):
            raise TypeError(f"score_threshold is a number, not {threshold!r:.80}")
        if threshold is not None and math.isnan(threshold):
            raise ValueError("score_threshold is NaN, which no score reaches; give a number")
        check_count("k", k)
        check_count("child_k", child_k)
        retriever = self.retriever
        if weights is not None:
            retriever = with_weights(retriever, weights)
        return SearchOptions(
            retriever,
            self.k if k is None else k,
            self.child_k if child_k is None else child_k,
            merge_filters(self.filter, filter),
            threshold,
        )

    def _documents(self, results: list[ScoredNode], options: SearchOptions) -> list[Document]:
        threshold, details = options.score_threshold, self.details
        if threshold is not None:
            results = [result for result in results if result.score >= threshold]
        return [to_document(result, details=details) for result in results]

    async def _adocuments(
        self, results: list[list[ScoredNode]], options: SearchOptions
    ) -> list[list[Document]]:
        def documents() -> list[list[Document]]:
            return [self._documents(of_query, options) for of_query in results]

        if sum(map(len, results)) <= _FEW:
            return documents()
        return await asyncio.to_thread(documents)


_CALL_OPTIONS = dict.fromkeys(("k", "child_k", "filter", "score_threshold", "weights")).keys()

# A subclass may have its own.
_get_relevant_documents = NodeGraphRetriever._get_relevant_documents
_aget_relevant_documents = NodeGraphRetriever._aget_relevant_documents

_FEW = 64
"""As many documents are made in less time than a thread takes to begin."""


class SearchOptions(NamedTuple):
    """The arguments of one call, in place of which the retriever's own hold."""

    retriever: Any
    k: int | None
    child_k: int | None
    filter: Mapping[str, Any] | None
    score_threshold: float | None

    def retrieve(self, query: str) -> list[ScoredNode]:
        """Return the results of one query."""
        results: list[ScoredNode] = self.retriever.retrieve(
            query, top_k=self.k, filters=self.filter
        )
        return results

    async def aretrieve(self, query: str) -> list[ScoredNode]:
        """Return the same without blocking the event loop."""
        results: list[ScoredNode] = await self.retriever.aretrieve(
            query, top_k=self.k, filters=self.filter
        )
        return results


def _with_run_id(config: RunnableConfig | None, kwargs: dict[str, Any]) -> RunnableConfig:
    """Return a call's config; set its run id in ``kwargs``, where the base class reads it."""
    config = ensure_config(config)
    kwargs["run_id"] = kwargs.get("run_id") or config.get("run_id")
    return config
