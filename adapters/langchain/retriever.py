"""Use any nodekin retriever as a LangChain retriever."""

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
    """Run the synchronous search of a subclass that does not override the async search."""
    manager = run_manager.get_sync()
    search: Callable[..., list[Document]] = self._get_relevant_documents
    return await run_in_executor(None, search, query, run_manager=manager, **options)


class NodeGraphRetriever(BaseRetriever):
    """A LangChain retriever for chains, tools and agents that uses any nodekin retriever.

    Setup:
        ``pip install "nodekin[langchain]"``. No API key or network access is required.

    Key init args:
        retriever: A retriever of nodekin, LangChain or LlamaIndex, or a function, which is used
            without changes. If None, the default search of ``graph`` is used, which computes
            missing vectors.
        k: The maximum number of documents. If None, the ``top_k`` of the retriever is used, or, if
            ``max_tokens`` is set, as many documents as fit.
        max_tokens: The maximum total number of tokens of all documents. If it is set, the default
            search returns windows, which are excerpts of whole sentences. A window has the metadata
            of its document, plus its ``place``, ``start`` and ``end``.
        phrases: How the default search handles quoted phrases in the query: ``"first"`` to rank
            results that contain them first, or ``"required"`` to return only such results. If None,
            the setting of the retriever is used.
        weights: The weights of words and vectors in the default search, such as ``{"words": 1,
            "vectors": 3}``. If None, the setting of the retriever is used. By default, words and
            vectors are weighted separately for each question.
        fetch_k: The number of matching nodes, such as sentences, to fetch before they are replaced
            by their documents. If None, as many are fetched as ``k`` documents require.
        filter: Additional conditions on metadata, which are checked before ranking.
        score_threshold: The minimum score.
        score_key: The metadata field for the score, which is a float. Higher scores are better.
            Other components use ``"relevance_score"``. If None, documents are returned exactly as
            they were added, which is required by components that compare whole documents, such as
            ``MultiQueryRetriever``.
        place: Whether to add the ``place`` of the best match to the metadata, such as ``report.pdf,
            page 12, 3.2 Results``.
        evidence: Whether to add a list of the matching sentences or chunks to the metadata as
            ``evidence``.
        graph: The graph that ``add_documents`` and ``delete`` change. ``from_documents`` sets it.
        search_kwargs: A mapping that may contain ``k``, ``fetch_k``, ``filter``,
            ``score_threshold``, ``max_tokens``, ``phrases`` and ``weights``.

    Instantiate:
        >>> from langchain_core.documents import Document
        >>> documents = [Document("Green tea is steamed. Black tea is fermented.", id="tea")]
        >>> retriever = NodeGraphRetriever.from_documents(documents, k=2)

        To use any other nodekin retriever:

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

        Each call accepts ``k``, ``fetch_k``, ``filter``, ``score_threshold``, ``max_tokens``,
        ``phrases`` and ``weights``. The filter of a call is combined with the filter of the
        retriever:

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
        """Make async calls use the synchronous search if a subclass overrides only that."""
        names = vars(cls)
        if "_get_relevant_documents" in names and "_aget_relevant_documents" not in names:
            search: Any = _search_in_thread
            if "run_manager" not in parameters_of(cls._get_relevant_documents):
                # LangChain replaces the method of subclasses
                search = BaseRetriever._aget_relevant_documents
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
        """Create a retriever for documents. See ``from_graph`` for the remaining arguments.

        The documents are copied and embedded. Their sentences are embedded at the first search.
        Without an ``embedding`` model, only words are searched. ``ids`` replace the ids of the
        documents. The default id is a hash of the text and the metadata, so a document that is
        added twice is stored only once. ``store`` is the path of a file for the graph. If the file
        exists, its documents are kept. Without a path, the graph is kept in memory.

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
        """Create a retriever for the documents of a graph. Documents can still be added later.

        By default, the words of the documents are searched. If the graph has an embedding model,
        the vectors of documents and sentences are searched as well (see ``DefaultRetriever``).
        Missing vectors are computed at the first search. Pass ``embed_keys=[]`` to search only
        words. If a ``similarity``, a group or a splitter is given, the retriever performs a single
        search instead (see ``Retriever``) in the given group, in the vectors of sentences, or in
        the words of documents.

        Args:
            graph: The graph.
            child_splitter: A LangChain text splitter or a transform that creates the nodes to
                search.
            parent_splitter: A splitter that creates the chunks to return. If None, whole documents
                are returned.
            group: The existing group to search, as an alternative to ``child_splitter``.
            target: The existing group to return, as an alternative to ``parent_splitter``. If None,
                whole documents are returned.
            similarity: The similarity of a single search. Defaults to cosine if the graph has an
                embedding model, and to BM25 otherwise.
            index: The index of vectors, such as ``as_index(vector_store)``. Defaults to the
                built-in index.
            embed_keys: The keys of the embedding models to search with. Defaults to all models.
            follow_links: Whether the default search follows links between passages. If None, links
                are followed if the corpus is suitable.
            lift: How a single search combines the scores of several matches in the same document or
                chunk: ``"max"``, ``"sum"`` or ``"mean"``. Defaults to ``"max"``.
            strategy: A strategy in which ``llm`` writes queries or filters: ``"rewrite"``,
                ``"multi_query"``, ``"hyde"``, ``"sub_question"``, ``"multi_step"`` or
                ``"self_query"``.
            llm: The language model for the strategy: a LangChain model, or any other model that
                ``LLM`` accepts.
            k: The maximum number of documents. Defaults to 4, or, if ``max_tokens`` is set, to as
                many as fit.
            fetch_k: The number of matching nodes to fetch. The class describes this argument and
                all following arguments in detail.
            filter: Conditions on metadata.
            score_threshold: The minimum score.
            max_tokens: The maximum total number of tokens of all documents.
            phrases: How quoted phrases in the query are handled.
            weights: The weights of words and vectors.
            score_key: The metadata field for the score.
            place: Whether to add the place of the best match to the metadata.
            evidence: Whether to add a list of the matches to the metadata.
            search_kwargs: A mapping with options for all calls.
            name: The name of the retriever's runs.
            tags: The tags of the retriever's runs.
            metadata: The metadata of the retriever's runs.

        Raises:
            TypeError: If ``graph`` is not a ``NodeGraph``, an argument is unknown, only one of
                ``strategy`` and ``llm`` is given, or an option is not supported by the selected
                search.
            UnknownGroupError: If the graph does not have the given group.
            ValueError: If both a splitter and the corresponding group are given.

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
        """Add documents, or update documents with existing ids, and return the ids.

        Either all documents are added or none. If the retriever compares vectors of whole
        documents, the documents are embedded first.

        Raises:
            EmbeddingError: If the embedding model fails. In this case, no document is added.
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
        """Remove documents and their derived nodes, and return True. Unknown ids are ignored.

        Raises:
            ValueError: If an id belongs to a derived node, or the retriever has no graph.
        """
        if self.graph is None:
            raise ValueError("delete requires a graph: NodeGraphRetriever(..., graph=graph)")
        return remove_documents(self.graph, ids)

    adelete = in_thread(delete)

    @property
    def native_retriever(self) -> RetrieverProtocol:
        """The underlying nodekin retriever, configured with the settings of this retriever."""
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
        """Return the nodekin retriever for a call.

        Missing options are taken from this retriever.
        """
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
        """Return the most relevant documents, best first.

        Args:
            input: The query. A blank query lists all documents that match the filter.
            config: The LangChain config. Its ``run_id`` becomes the id of the retriever's run.
            **kwargs: Options for this call. ``k``, ``fetch_k``, ``score_threshold``,
                ``max_tokens``, ``phrases`` and ``weights`` override the settings of the retriever.
                ``filter`` is combined with the filter of the retriever.

        Raises:
            TypeError: If an argument is unknown, or is not accepted by the
                ``_get_relevant_documents`` method of a subclass.
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
        """Set the config context for a call, because LangChain does not set it for retrievers.

        The run id of the config is passed on as a keyword argument, which is where LangChain
        expects it.
        """
        check_names("invoke", kwargs, (*_CALL_OPTIONS, "run_id"))
        self._check_options_are_taken(kwargs)
        config = ensure_config(config)
        kwargs["run_id"] = kwargs.get("run_id") or config.get("run_id")
        return config_context(config)

    def _check_options_are_taken(self, options: Mapping[str, Any]) -> None:
        """Check that the search method of a subclass accepts the options.

        LangChain would silently drop options that the method does not accept.
        """
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
        # CancelledError is not an Exception, so LangChain would not report it
        except asyncio.CancelledError as error:
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

    A subclass that overrides search methods applies the filter only if all of these methods have a
    ``filter`` parameter.
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
    """Return the entries of ``search_kwargs``, an argument that LangChain's classes also accept."""
    given = dict(search_kwargs or {})
    check_names("search_kwargs", given, _CALL_OPTIONS)
    return given
