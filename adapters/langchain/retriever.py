"""Any nodekin retriever as a LangChain retriever."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated, Any

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableConfig, ensure_config
from langchain_core.runnables.config import run_in_executor
from pydantic import ConfigDict, Field, SkipValidation
from typing_extensions import Self

from ...nodegraph.errors import explain_names
from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import ROOT
from ...retrievers.base_retriever import Phrases
from ...retrievers.composite.configured_retriever import configured
from ...retrievers.foreign.foreign_retriever import as_retriever
from ...retrievers.protocols import RetrieverProtocol, Similarity
from ...retrievers.ranking import Lift
from ...retrievers.results import ScoredNode
from ...retrievers.similarities.registry import MakeIndex
from ...retrievers.strategies.strategy_registry import StrategyName, make_strategy
from ...retrievers.validation import check_min_score, parameters_of, takes_any_keyword, whole
from ..argument_types import AnyRetriever, Embedding, LanguageModel, Splitter
from ..frameworks import check_names, in_thread
from .callbacks import config_context, retriever_runs
from .documents import (
    SCORE_KEY,
    put_documents,
    remove_documents,
    text_documents,
    to_document,
)
from .filter_translation import as_filters
from .graph_search import (
    TOP_K,
    declare_group,
    document_keys,
    given_search,
    search_passages,
)

_CALL_OPTIONS = (
    "k",
    "fetch_k",
    "filter",
    "score_threshold",
    "max_tokens",
    "phrases",
    "weights",
)


async def _search_in_thread(
    self: BaseRetriever,
    query: str,
    *,
    run_manager: AsyncCallbackManagerForRetrieverRun,
    **options: Any,
) -> list[Document]:
    """Run the sync search of a subclass that does not override the async search."""
    manager = run_manager.get_sync()
    search: Callable[..., list[Document]] = self._get_relevant_documents
    return await run_in_executor(None, search, query, run_manager=manager, **options)


class NodeGraphRetriever(BaseRetriever):
    """A LangChain retriever over any nodekin retriever, for chains, tools and agents.

    Setup:
        ``pip install "nodekin[langchain]"``. No key and no network are required.

    Key init args:
        retriever: Any nodekin retriever, a retriever of LangChain or LlamaIndex, or a function. If
            None, the default search of ``graph`` is used, which computes missing vectors. A given
            retriever is used unchanged.
        k: The maximum number of documents, counted after lifting. If None, the retriever's
            ``top_k`` applies, or with ``max_tokens``, as many documents as fit.
        max_tokens: The maximum number of tokens of all documents together. The default search then
            returns windows: runs of whole sentences of the given documents. A window's metadata is
            that of its document, with the window's ``place``, ``start`` and ``end``.
        phrases: How the default search treats results that contain the query's quoted phrases:
            ``"first"`` or ``"required"``. If None, the retriever decides.
        weights: The weights of words and vectors in the default search, such as ``{"words": 1,
            "vectors": 3}``. If None, the retriever decides. By default, words and vectors are
            weighted by their evidence in each question.
        fetch_k: The number of hits in smaller groups to consider before lifting. If None, as many
            as ``k`` documents require.
        filter: Additional conditions on metadata, checked before ranking.
        score_threshold: The minimum score.
        score_key: The metadata field for the score, a float. Higher scores are better. Other
            components use ``"relevance_score"``. If None, documents are returned as they were
            added. Components that compare whole documents, such as ``MultiQueryRetriever``, require
            None.
        place: Whether the metadata contains the ``place`` of the best match, such as ``report.pdf,
            page 12, 3.2 Results``.
        evidence: Whether the metadata lists the matches of smaller groups as ``evidence``.
        graph: The graph for ``add_documents`` and ``delete``. ``from_documents`` sets it.
        search_kwargs: ``k``, ``fetch_k``, ``filter``, ``score_threshold``, ``max_tokens``,
            ``phrases`` and ``weights`` as a mapping.

    Instantiate:
        >>> from langchain_core.documents import Document
        >>> documents = [Document("Green tea is steamed. Black tea is fermented.", id="tea")]
        >>> retriever = NodeGraphRetriever.from_documents(documents, k=2)

        Over any nodekin retriever:

        >>> from nodekin.nodegraph import NodeGraph, split_sentences
        >>> from nodekin.retrievers import Retriever
        >>> graph = NodeGraph()
        >>> ids = graph.add(["Green tea is unfermented. Black tea is not.", "Rivers run."])
        >>> graph.create_node_group("sentence", split_sentences)
        >>> search = Retriever(graph, "sentence", "bm25", target="ROOT")
        >>> over_sentences = NodeGraphRetriever(search, k=2, score_key="score", evidence=True)

    Usage:
        >>> [document.id for document in retriever.invoke("fermented")]
        ['tea']
        >>> (document,) = over_sentences.invoke("Which tea is black?")
        >>> document.page_content, round(document.metadata["score"], 2)
        ('Green tea is unfermented. Black tea is not.', 1.33)
        >>> document.metadata["evidence"][0]["text"]
        'Black tea is not.'

        A call accepts ``k``, ``fetch_k``, ``filter``, ``score_threshold``, ``max_tokens``,
        ``phrases`` and ``weights``. The call's filter is added to the retriever's filter:

        >>> retriever.invoke("tea", k=1, filter={"language": "en"})
        []
        >>> (window,) = retriever.invoke("Which tea is fermented?", max_tokens=8)
        >>> window.page_content, window.metadata["start"]
        ('Black tea is fermented.', 22)

    Use within a chain:
        >>> def joined(documents):
        ...     return "\\n".join(document.page_content for document in documents)
        >>> (retriever | joined).invoke("Which tea is fermented?")
        'Green tea is steamed. Black tea is fermented.'

    Raises:
        TypeError: If an argument is unknown, or ``retriever`` is not a retriever.
        pydantic.ValidationError: If an argument is out of range.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    retriever: Annotated[RetrieverProtocol, SkipValidation]
    graph: NodeGraph | None = None
    k: int | None = Field(default=None, ge=1, strict=True)
    fetch_k: int | None = Field(default=None, ge=1, strict=True)
    filter: dict[str, Any] | None = None
    score_threshold: float | None = Field(default=None, allow_inf_nan=False)
    max_tokens: int | None = Field(default=None, ge=1, strict=True)
    phrases: Phrases | None = None
    weights: Mapping[str, float] | None = None
    score_key: str | None = None
    place: bool = False
    evidence: bool = False

    def __init_subclass__(cls, **settings: Any) -> None:
        """Make the async search call the sync search if a subclass overrides only the latter."""
        names = vars(cls)
        if "_get_relevant_documents" in names and "_aget_relevant_documents" not in names:
            search: Any = _search_in_thread
            if "run_manager" not in parameters_of(cls._get_relevant_documents):
                search = BaseRetriever._aget_relevant_documents  # LangChain replaces this method
            cls._aget_relevant_documents = search  # type: ignore[method-assign]
        super().__init_subclass__(**settings)

    @explain_names
    def __init__(
        self,
        retriever: AnyRetriever | None = None,
        *,
        graph: NodeGraph | None = None,
        k: int | None = None,
        fetch_k: int | None = None,
        filter: Mapping[str, Any] | None = None,
        score_threshold: float | None = None,
        max_tokens: int | None = None,
        phrases: Phrases | None = None,
        weights: Mapping[str, float] | None = None,
        score_key: str | None = None,
        place: bool | None = None,
        evidence: bool | None = None,
        search_kwargs: Mapping[str, Any] | None = None,
        name: str | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        given = dict(
            graph=graph,
            k=k,
            fetch_k=fetch_k,
            filter=filter,
            score_threshold=score_threshold,
            max_tokens=max_tokens,
            phrases=phrases,
            weights=weights,
            score_key=score_key,
            place=place,
            evidence=evidence,
            name=name,
            tags=tags,
            metadata=metadata,
        )
        values = _unpacked(search_kwargs)
        values.update((option, value) for option, value in given.items() if value is not None)
        values.update(kwargs)
        check_names(type(self).__name__, values, type(self).model_fields)
        source: object = graph if retriever is None else retriever
        if isinstance(source, NodeGraph):
            source = search_passages(source)
        values["retriever"] = as_retriever(source, "retriever")
        check_min_score(values.get("score_threshold"), values["retriever"], "score_threshold")
        as_filters(values.get("filter"))
        of_default_search = {name: values.get(name) for name in ("phrases", "weights")}
        configured(values["retriever"], **of_default_search)  # checks
        super().__init__(**values)

    @classmethod
    @explain_names
    def from_documents(
        cls,
        documents: Iterable[Document],
        embedding: Embedding | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        store: str | Path | None = None,
        child_splitter: Splitter | None = None,
        parent_splitter: Splitter | None = None,
        group: str | None = None,
        target: str | None = None,
        similarity: str | Similarity | None = None,
        index: str | MakeIndex | None = None,
        embed_keys: Sequence[str] | None = None,
        follow_links: bool | None = None,
        lift: Lift | None = None,
        strategy: StrategyName | None = None,
        llm: LanguageModel | None = None,
        k: int | None = None,
        fetch_k: int | None = None,
        filter: Mapping[str, Any] | None = None,
        score_threshold: float | None = None,
        max_tokens: int | None = None,
        phrases: Phrases | None = None,
        weights: Mapping[str, float] | None = None,
        score_key: str | None = None,
        place: bool | None = None,
        evidence: bool | None = None,
        search_kwargs: Mapping[str, Any] | None = None,
        name: str | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> Self:
        """Create a retriever for documents. See ``from_graph`` for the other arguments.

        The documents are copied and embedded. Their sentences are embedded at the first search.
        Without an ``embedding`` model, words are searched. ``ids`` replace the documents' own ids.
        The default id is a hash of text and metadata, so a document that is added twice is stored
        once. ``store`` is the path of a file for the graph. An existing file keeps its documents.
        Without a path, the graph is in memory.

        Raises:
            EmbeddingError: If the embedding model fails.
            TypeError: If an argument is unknown.
            ValueError: If the numbers of documents and ids differ, or two documents have the same
                id.
        """
        retriever = cls.from_graph(
            NodeGraph(embed=embedding, store=store),
            child_splitter=child_splitter,
            parent_splitter=parent_splitter,
            group=group,
            target=target,
            similarity=similarity,
            index=index,
            embed_keys=embed_keys,
            follow_links=follow_links,
            lift=lift,
            strategy=strategy,
            llm=llm,
            k=k,
            fetch_k=fetch_k,
            filter=filter,
            score_threshold=score_threshold,
            max_tokens=max_tokens,
            phrases=phrases,
            weights=weights,
            score_key=score_key,
            place=place,
            evidence=evidence,
            search_kwargs=search_kwargs,
            name=name,
            tags=tags,
            metadata=metadata,
        )
        retriever.add_documents(documents, ids=ids)
        return retriever

    @classmethod
    @explain_names
    def from_texts(
        cls,
        texts: Iterable[str],
        embedding: Embedding | None = None,
        metadatas: Sequence[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        store: str | Path | None = None,
        child_splitter: Splitter | None = None,
        parent_splitter: Splitter | None = None,
        group: str | None = None,
        target: str | None = None,
        similarity: str | Similarity | None = None,
        index: str | MakeIndex | None = None,
        embed_keys: Sequence[str] | None = None,
        follow_links: bool | None = None,
        lift: Lift | None = None,
        strategy: StrategyName | None = None,
        llm: LanguageModel | None = None,
        k: int | None = None,
        fetch_k: int | None = None,
        filter: Mapping[str, Any] | None = None,
        score_threshold: float | None = None,
        max_tokens: int | None = None,
        phrases: Phrases | None = None,
        weights: Mapping[str, float] | None = None,
        score_key: str | None = None,
        place: bool | None = None,
        evidence: bool | None = None,
        search_kwargs: Mapping[str, Any] | None = None,
        name: str | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> Self:
        """Create a retriever for texts. See ``from_documents``."""
        return cls.from_documents(
            text_documents(texts, metadatas),
            embedding,
            ids=ids,
            store=store,
            child_splitter=child_splitter,
            parent_splitter=parent_splitter,
            group=group,
            target=target,
            similarity=similarity,
            index=index,
            embed_keys=embed_keys,
            follow_links=follow_links,
            lift=lift,
            strategy=strategy,
            llm=llm,
            k=k,
            fetch_k=fetch_k,
            filter=filter,
            score_threshold=score_threshold,
            max_tokens=max_tokens,
            phrases=phrases,
            weights=weights,
            score_key=score_key,
            place=place,
            evidence=evidence,
            search_kwargs=search_kwargs,
            name=name,
            tags=tags,
            metadata=metadata,
        )

    @classmethod
    @explain_names
    def from_graph(
        cls,
        graph: NodeGraph,
        *,
        child_splitter: Splitter | None = None,
        parent_splitter: Splitter | None = None,
        group: str | None = None,
        target: str | None = None,
        similarity: str | Similarity | None = None,
        index: str | MakeIndex | None = None,
        embed_keys: Sequence[str] | None = None,
        follow_links: bool | None = None,
        lift: Lift | None = None,
        strategy: StrategyName | None = None,
        llm: LanguageModel | None = None,
        k: int | None = None,
        fetch_k: int | None = None,
        filter: Mapping[str, Any] | None = None,
        score_threshold: float | None = None,
        max_tokens: int | None = None,
        phrases: Phrases | None = None,
        weights: Mapping[str, float] | None = None,
        score_key: str | None = None,
        place: bool | None = None,
        evidence: bool | None = None,
        search_kwargs: Mapping[str, Any] | None = None,
        name: str | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> Self:
        """Create a retriever for a graph's documents, including documents that are added later.

        By default, the words and, if the graph has an embedding model, the vectors of documents and
        of sentences are searched (``DefaultRetriever``). Missing vectors are computed at the first
        search; ``embed_keys=[]`` searches words alone. A ``similarity``, a group or a splitter
        selects a single search (``Retriever``) instead. It searches the group, the vectors of
        sentences, or the words of documents.

        Args:
            graph: The graph.
            child_splitter: A LangChain text splitter, or a transform, that creates the nodes to
                search.
            parent_splitter: A splitter that creates the chunks to return. If None, whole documents
                are returned.
            group: The group to search, instead of a ``child_splitter``.
            target: The group to return, instead of a ``parent_splitter``. If None, documents are
                returned.
            similarity: The similarity of a single search. Defaults to cosine if the graph has a
                model, and otherwise to BM25.
            index: The index of vectors, such as ``as_index(vector_store)``. Defaults to the
                built-in index.
            embed_keys: The keys of the embedding models to search with. Defaults to all models.
            follow_links: Whether the default search follows links between passages. If None, this
                depends on the corpus.
            lift: How a single search combines the scores of hits in the same target: ``"max"``,
                ``"sum"`` or ``"mean"``. Defaults to ``"max"``.
            strategy: ``"rewrite"``, ``"multi_query"``, ``"hyde"``, ``"sub_question"``,
                ``"multi_step"`` or ``"self_query"``. ``llm`` writes its queries and conditions.
            llm: The model of the strategy: a LangChain model, or any other model that ``LLM``
                accepts.
            k: The maximum number of documents. Defaults to 4, or with ``max_tokens``, to as many as
                fit.
            fetch_k: See the class, which also describes the arguments below.
            filter: Conditions on metadata.
            score_threshold: The minimum score.
            max_tokens: The maximum number of tokens of all documents together.
            phrases: How results that contain the query's quoted phrases are treated.
            weights: The weights of words and vectors.
            score_key: The metadata field for the score.
            place: Whether the metadata contains the place of the best match.
            evidence: Whether the metadata lists the matches.
            search_kwargs: The options of each call, as a mapping.
            name: The name of the retriever's runs.
            tags: The tags of the retriever's runs.
            metadata: The metadata of the retriever's runs.

        Raises:
            TypeError: If ``graph`` is not a NodeGraph, an argument is unknown, only one of
                ``strategy`` and ``llm`` is given, or an option does not belong to the selected
                search.
            UnknownGroupError: If the graph has no such group.
            ValueError: If both a splitter and its group are given.

        Example:
            >>> graph = NodeGraph()
            >>> ids = graph.add(["Green tea is steamed. Black tea is fermented.", "Rivers run."])
            >>> retriever = NodeGraphRetriever.from_graph(graph, k=1, similarity="bm25")
            >>> [document.page_content for document in retriever.invoke("rivers")]
            ['Rivers run.']
        """
        if (strategy is None) != (llm is None):
            raise TypeError("strategy= and llm= must be given together")
        if not isinstance(graph, NodeGraph):
            raise TypeError(f"graph must be a NodeGraph, got {graph!r:.80}")
        target = declare_group(graph, "parent", parent_splitter, target, ROOT) or ROOT
        retriever = given_search(
            graph,
            declare_group(graph, "child", child_splitter, group, target),
            target,
            similarity,
            follow_links=follow_links,
            lift=lift,
            index=index,
            embed_keys=embed_keys,
        )
        if strategy is not None:
            retriever = make_strategy(strategy, retriever, llm, top_k=TOP_K)
        return cls(
            retriever,
            graph=graph,
            k=k,
            fetch_k=fetch_k,
            filter=filter,
            score_threshold=score_threshold,
            max_tokens=max_tokens,
            phrases=phrases,
            weights=weights,
            score_key=score_key,
            place=place,
            evidence=evidence,
            search_kwargs=search_kwargs,
            name=name,
            tags=tags,
            metadata=metadata,
        )

    @explain_names
    def add_documents(
        self, documents: Iterable[Document], *, ids: Sequence[str | None] | None = None
    ) -> list[str]:
        """Add documents, or update those with an existing id, and return their ids.

        Either all documents are added or none. They are embedded first if the retriever compares
        their vectors.

        Raises:
            EmbeddingError: If the embedding model fails. No document is added.
            ValueError: If the numbers of documents and ids differ, two documents have the same id,
                or the retriever has no graph.
        """
        if self.graph is None:
            raise ValueError("add_documents requires a graph: NodeGraphRetriever(..., graph=graph)")
        return put_documents(
            self.graph,
            documents,
            ids,
            self.score_key or SCORE_KEY,
            document_keys(self.native_retriever, self.graph),
        )

    aadd_documents = in_thread(add_documents)

    @explain_names
    def delete(self, ids: Sequence[str]) -> bool:
        """Remove documents and their derived nodes. Unknown ids are skipped. Return True.

        Raises:
            ValueError: If an id belongs to a derived node, or the retriever has no graph.
        """
        if self.graph is None:
            raise ValueError("delete requires a graph: NodeGraphRetriever(..., graph=graph)")
        return remove_documents(self.graph, ids)

    adelete = in_thread(delete)

    @property
    def native_retriever(self) -> RetrieverProtocol:
        """The nodekin retriever with this retriever's settings."""
        return self._configured()

    def _configured(
        self,
        k: int | None = None,
        fetch_k: int | None = None,
        filter: Mapping[str, Any] | None = None,
        score_threshold: float | None = None,
        max_tokens: int | None = None,
        phrases: Phrases | None = None,
        weights: Mapping[str, float] | None = None,
    ) -> RetrieverProtocol:
        """Return the nodekin retriever for a call. Missing options are taken from the fields."""
        threshold = self.score_threshold if score_threshold is None else score_threshold
        return configured(
            self.retriever,
            top_k=self.k if k is None else whole(k, "k", 1),
            filters=as_filters(self.filter, filter),
            fetch_k=self.fetch_k if fetch_k is None else whole(fetch_k, "fetch_k", 1),
            min_score=check_min_score(threshold, self.retriever, "score_threshold"),
            max_tokens=self.max_tokens if max_tokens is None else max_tokens,
            phrases=self.phrases if phrases is None else phrases,
            weights=self.weights if weights is None else weights,
        )

    def invoke(
        self, input: str, config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        """Return the best documents, best first.

        Args:
            input: The query. A blank query lists the documents that meet a filter.
            config: The config. Its ``run_id`` is the id of the retriever's run.
            **kwargs: ``k``, ``fetch_k``, ``score_threshold``, ``max_tokens``, ``phrases`` and
                ``weights`` replace the fields of the retriever. ``filter`` is added to the
                retriever's filter.

        Raises:
            TypeError: If an argument is unknown, or a subclass's ``_get_relevant_documents`` does
                not accept it.
        """
        with self._config_context(config, kwargs):
            return super().invoke(input, **kwargs)

    async def ainvoke(
        self, input: str, config: RunnableConfig | None = None, **kwargs: Any
    ) -> list[Document]:
        """Async version of ``invoke``."""
        with self._config_context(config, kwargs):
            return await super().ainvoke(input, **kwargs)

    def _config_context(
        self, config: RunnableConfig | None, kwargs: dict[str, Any]
    ) -> AbstractContextManager[RunnableConfig | None]:
        """Set the config context of a call. LangChain does not set it for retrievers.

        The run id of the config is passed on as a keyword argument, where LangChain looks for it.
        """
        check_names("invoke", kwargs, (*_CALL_OPTIONS, "run_id"))
        self._check_options_are_taken(kwargs)
        config = ensure_config(config)
        kwargs["run_id"] = kwargs.get("run_id") or config.get("run_id")
        return config_context(config)

    def _check_options_are_taken(self, options: Mapping[str, Any]) -> None:
        """Check that a subclass's search accepts the options, since LangChain would drop them."""
        search = self._get_relevant_documents
        if takes_any_keyword(search):
            return
        for name in _CALL_OPTIONS:
            if options.get(name) is not None and name not in parameters_of(search):
                raise TypeError(
                    f"{type(self).__name__}._get_relevant_documents must take {name!r} to apply "
                    f"{name}={options[name]!r:.80}; add **options and pass them to "
                    "super()._get_relevant_documents"
                )

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **options: Any
    ) -> list[Document]:
        retriever = self._configured(**options)
        with retriever_runs(run_manager):
            results = retriever.retrieve(query)
        return self._documents(results, options.get("max_tokens"))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **options: Any
    ) -> list[Document]:
        try:
            retriever = self._configured(**options)
            with retriever_runs(run_manager):
                results = await retriever.aretrieve(query)
            return await asyncio.to_thread(self._documents, results, options.get("max_tokens"))
        except asyncio.CancelledError as error:  # LangChain reports only an Exception
            await run_manager.on_retriever_error(error)
            raise

    def _documents(self, results: Sequence[ScoredNode], max_tokens: int | None) -> list[Document]:
        are_windows = max_tokens is not None or self.max_tokens is not None
        return [
            to_document(
                result,
                score_key=self.score_key,
                place=self.place,
                evidence=self.evidence,
                span=are_windows,
            )
            for result in results
        ]


def applies_filter(retriever: BaseRetriever) -> bool:
    """Return whether a retriever applies the ``filter`` of a call.

    A subclass that overrides the search applies the filter if each overridden method has this
    parameter.
    """
    if not isinstance(retriever, NodeGraphRetriever):
        return False
    for name in ("invoke", "ainvoke", "_get_relevant_documents", "_aget_relevant_documents"):
        method = getattr(type(retriever), name)
        is_ours = method in (getattr(NodeGraphRetriever, name), _search_in_thread)
        if not is_ours and "filter" not in parameters_of(method):
            return False
    return True


def _unpacked(search_kwargs: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the entries of ``search_kwargs``, an argument of LangChain's classes."""
    given = dict(search_kwargs or {})
    check_names("search_kwargs", given, _CALL_OPTIONS)
    return given
