"""Let any nodekin retriever be a LlamaIndex retriever."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar, cast

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager
from llama_index.core.instrumentation import (  # type: ignore[attr-defined]
    get_dispatcher,
)
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.schema import (
    BaseNode,
    Document,
    IndexNode,
    NodeWithScore,
    QueryBundle,
    QueryType,
)
from llama_index.core.storage.docstore.types import BaseDocumentStore
from llama_index.core.utils import print_text
from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
)

from ...nodegraph.concurrency import in_thread, limit_concurrency
from ...retrievers.filters import Filters, all_of, metadata_key, parse_filters, pattern_within
from ...retrievers.foreign.coercion import as_retriever
from ...retrievers.foreign.foreign_retriever import configured, repr_without_top_k
from ...retrievers.planned_retriever import PlannedRetriever
from ...retrievers.plans.plan import Do
from ...retrievers.protocols import RetrieverLike, RetrieverProtocol
from ...retrievers.results import ScoredNode
from ...retrievers.retriever import Retriever
from ...retrievers.tracing import Span, trace
from ...retrievers.validation import whole
from .document_graph import GraphOptions, graph_of_documents, graph_of_nodes, objects_of
from .instrumentation import report_spans
from .nodes import NodeWithEvidence, to_nodes_with_scores
from .prompt_templates import replace_templates, retriever_templates

if TYPE_CHECKING:
    from llama_index.core.indices.base import BaseIndex
    from typing_extensions import Unpack

    from ...nodegraph.graph import NodeGraph
    from ...nodegraph.models.embedder import Vectors

_OPERATORS = {
    FilterOperator.NE: "ne",
    FilterOperator.GT: "gt",
    FilterOperator.GTE: "gte",
    FilterOperator.LT: "lt",
    FilterOperator.LTE: "lte",
    FilterOperator.IN: "in",
    FilterOperator.NIN: "nin",
    FilterOperator.ANY: "any",
    FilterOperator.ALL: "all",
    FilterOperator.CONTAINS: "contains",
    FilterOperator.TEXT_MATCH: "like_case",
    FilterOperator.TEXT_MATCH_INSENSITIVE: "like",
}

_TEXT_MATCHES = (FilterOperator.TEXT_MATCH, FilterOperator.TEXT_MATCH_INSENSITIVE)


def as_filters(filters: MetadataFilters | Filters | None) -> Filters | None:
    """Check nodekin filters, or translate LlamaIndex's: all operators and conditions, nested.

    They mean what they do in LlamaIndex's ``SimpleVectorStore``: a text match is a part of the
    text, ``!=`` and ``nin`` hold where there is no value, and the condition NOT where none of the
    filters holds. As everywhere in nodekin, a field that holds a list meets a condition with any
    of its items.

    Raises:
        TypeError: If they are neither.
        ValueError: If an operator can't compare with that value.

    Example:
        >>> recent = MetadataFilter(key="year", value=2000, operator=">")
        >>> as_filters(MetadataFilters(filters=[recent]))
        {'year': {'gt': 2000}}
    """
    if isinstance(filters, MetadataFilters):
        filters = _joined(filters)
    parse_filters(filters)
    return filters


def _joined(filters: MetadataFilters) -> dict[str, Any]:
    parts = [
        _joined(part) if isinstance(part, MetadataFilters) else _condition(part)
        for part in filters.filters
    ]
    if filters.condition == FilterCondition.NOT and parts:
        return {"not": parts[0] if len(parts) == 1 else {"or": parts}}
    if len(parts) < 2:
        return parts[0] if parts else {}
    return {"or" if filters.condition == FilterCondition.OR else "and": parts}


def _condition(part: MetadataFilter) -> dict[str, Any]:
    operator, value, field = part.operator, part.value, metadata_key(part.key)
    if operator == FilterOperator.IS_EMPTY:
        return {field: {"empty": True}}
    if value is None:
        raise ValueError(
            f"the metadata filter {part.key!r} {operator.value} has no value; to find nodes that "
            "have none, use the operator is_empty"
        )
    if operator in _TEXT_MATCHES:
        if not isinstance(value, str):
            raise ValueError(
                f"the metadata filter {part.key!r} {operator.value} has {value!r:.80}; it takes a "
                "text"
            )
        value = pattern_within(value)
    if operator == FilterOperator.EQ:
        return {field: value if not isinstance(value, list) else {"eq": value}}
    return {field: {_OPERATORS[operator]: value}}


dispatcher = get_dispatcher(__name__)

T = TypeVar("T")


def undecorated(method: Callable[..., T]) -> Callable[..., T]:
    """Return a method of a class of LlamaIndex without its span: what overrides it has one."""
    return cast(Callable[..., T], inspect.unwrap(method))


class IndexRetrieverOptions(GraphOptions, total=False):
    """The options of a graph and of its retriever, to type ``**options``.

    Attributes:
        similarity_top_k: As for ``NodeGraphRetriever``, as are the others.
        filters: As there.
        callback_manager: As there.
        verbose: As there.
    """

    similarity_top_k: int | None
    filters: MetadataFilters | Filters | None
    callback_manager: CallbackManager | None
    verbose: bool


def _settings(options: IndexRetrieverOptions) -> dict[str, Any]:
    """Take the options that are not the graph's out of others."""
    passed = cast(dict[str, Any], options)
    names = IndexRetrieverOptions.__annotations__.keys() - GraphOptions.__annotations__.keys()
    return {name: passed.pop(name) for name in names & passed.keys()}


class NodeGraphRetriever(BaseRetriever):
    """Give any nodekin retriever to LlamaIndex: query engines, fusion, routers, tools.

    Results are new ``NodeWithEvidence`` objects with new ``TextNode`` objects, each node once,
    best first. A search by words reads the query's ``query_str``; a ``Retriever`` that compares
    embeddings reads its ``embedding_strs`` (the mean of several, as after HyDE). The bundle is
    never changed, and its ``embedding``, a vector of another model, is not used.

    A strategy's prompts are read and replaced as anywhere in LlamaIndex: ``get_prompts()``,
    ``update_prompts({"rewrite_en": PromptTemplate("... {query}")})``. The names of those within
    begin with a path: ``inner.rewrite_en``.

    Each search, fusion, reranking and model call inside the retriever is a LlamaIndex span with
    events, a child of this retrieval, and an event for the ``callback_manager``; see
    ``SpanObserver``.

    Args:
        retriever: Any nodekin retriever, or what ``as_retriever`` takes for one.
        similarity_top_k: How many nodes to return at most, counted after lifting to the target
            group. None for the retriever's own ``top_k``.
        filters: Conditions on metadata, checked before ranking, in addition to the retriever's:
            nodekin's ``{"year": {"gte": 2000}}``, or ``MetadataFilters`` that translate exactly.
        callback_manager: As everywhere in LlamaIndex.
        object_map: As everywhere in LlamaIndex.
        objects: As everywhere in LlamaIndex.
        verbose: Whether to print the stages of each retrieval, and for each result why it was
            found: which child matched, by which similarity, for which form of the query.
        num_workers: How many model calls, searches and branches of one retrieval run at the same
            time at most, however deep they are nested. None for no limit of its own.

    Raises:
        TypeError: If it is no retriever, or an argument has the wrong type.
        ValueError: If ``similarity_top_k`` is below 1, or a filter has no exact counterpart.

    Example:
        >>> from llama_index.core.llms import MockLLM
        >>> from llama_index.core.query_engine import RetrieverQueryEngine
        >>> from nodekin.nodegraph import NodeGraph, split_sentences
        >>> from nodekin.retrievers import Retriever
        >>> graph = NodeGraph()
        >>> ids = graph.add(["Green tea is unfermented. Black tea is not.", "Rivers run."])
        >>> graph.create_node_group("sentence", split_sentences)
        >>> search = Retriever(graph, "sentence", "bm25", target="ROOT")
        >>> retriever = NodeGraphRetriever(search, similarity_top_k=2)
        >>> (result,) = retriever.retrieve("Which tea is black?")
        >>> result.text, result.evidence[0]["text"]
        ('Green tea is unfermented. Black tea is not.', 'Black tea is not.')
        >>> engine = RetrieverQueryEngine.from_args(retriever, llm=MockLLM())
        >>> len(engine.query("Which tea is black?").source_nodes)
        1
    """

    def __init__(
        self,
        retriever: RetrieverLike,
        *,
        similarity_top_k: int | None = None,
        filters: MetadataFilters | Filters | None = None,
        callback_manager: CallbackManager | None = None,
        object_map: dict[str, Any] | None = None,
        objects: list[IndexNode] | None = None,
        verbose: bool = False,
        num_workers: int | None = None,
    ) -> None:
        super().__init__(callback_manager, object_map, objects, verbose)
        if isinstance(retriever, list) and all(isinstance(item, BaseNode) for item in retriever):
            raise TypeError(
                "retriever is no list; write NodeGraphRetriever.from_documents(documents) or "
                ".from_defaults(nodes=nodes)"
            )
        self.retriever = as_retriever(retriever, "retriever")
        self.num_workers = num_workers
        self.similarity_top_k = similarity_top_k
        self._filters = as_filters(filters)

    def __repr__(self) -> str:
        settings = {"similarity_top_k": self.similarity_top_k, "filters": self.filters}
        displayed = [f", {name}={value!r}" for name, value in settings.items() if value is not None]
        inner = self.retriever
        text = repr(inner) if self.similarity_top_k is None else repr_without_top_k(inner)
        return f"NodeGraphRetriever({text}{''.join(displayed)})"

    @classmethod
    def from_documents(
        cls,
        documents: Sequence[Document],
        **options: Unpack[IndexRetrieverOptions],
    ) -> NodeGraphRetriever:
        """Make one of documents: ``NodeGraphIndex.from_documents(...).as_retriever(...)``.

        Raises:
            ImportError: If a model is needed, none was given or set, and LlamaIndex's default one
                is not installed.
            TypeError: If an option is unknown or has the wrong type.
            ValueError: If something of the storage context would not be used.
        """
        settings = _settings(options)
        _, search = graph_of_documents(documents, **cast("GraphOptions", options))
        return cls(search, **settings)

    @classmethod
    def from_defaults(
        cls,
        index: BaseIndex[Any] | None = None,
        nodes: Sequence[BaseNode] | None = None,
        docstore: BaseDocumentStore | None = None,
        **options: Unpack[IndexRetrieverOptions],
    ) -> NodeGraphRetriever:
        """Make one of nodes, as ``BM25Retriever.from_defaults`` does.

        Args:
            index: An index of LlamaIndex, whose docstore has the nodes.
            nodes: The nodes themselves.
            docstore: A docstore that has them; one of the three.
            **options: See ``IndexRetrieverOptions``; ``similarity="bm25"`` needs no model.

        Raises:
            ValueError: If none or more than one of the three is given, there are no nodes, or as
                ``NodeGraphIndex.from_nodes``.
            ImportError: As ``from_documents``.
            TypeError: As ``from_documents``.

        Example:
            >>> from llama_index.core.schema import TextNode
            >>> nodes = [TextNode(text="Tea is a drink."), TextNode(text="Rivers run.")]
            >>> retriever = NodeGraphRetriever.from_defaults(nodes=nodes, similarity="bm25")
            >>> [result.text for result in retriever.retrieve("tea")]
            ['Tea is a drink.']
        """
        if sum(source is not None for source in (index, nodes, docstore)) != 1:
            raise ValueError("give one of index, nodes and docstore")
        if isinstance(index, list):
            raise TypeError("index is an index of LlamaIndex; give nodes by name: nodes=[...]")
        docstore = docstore if index is None else index.docstore
        matches = [*docstore.docs.values()] if docstore is not None else [*(nodes or ())]
        if not matches:
            raise ValueError(
                "there are no nodes: an index over a vector store that keeps texts has none in its "
                "docstore; NodeGraphRetriever(index.as_retriever()) searches it as it is"
            )
        settings = _settings(options)
        _, search = graph_of_nodes(matches, **cast("GraphOptions", options))
        return cls(search, object_map=objects_of(matches), **settings)

    def retrieve(
        self, str_or_query_bundle: QueryType, filters: MetadataFilters | Filters | None = None
    ) -> list[NodeWithScore]:
        """Return the results of a query, best first.

        Args:
            str_or_query_bundle: The query. A blank one lists what meets the conditions.
            filters: Conditions of this call alone, in addition to the retriever's.
        """
        return undecorated(BaseRetriever.retrieve)(self.narrowed(filters), str_or_query_bundle)

    async def aretrieve(
        self, str_or_query_bundle: QueryType, filters: MetadataFilters | Filters | None = None
    ) -> list[NodeWithScore]:
        """Async version of ``retrieve``."""
        call = undecorated(BaseRetriever.aretrieve)
        return await call(self.narrowed(filters), str_or_query_bundle)

    def narrowed(self, filters: MetadataFilters | Filters | None) -> NodeGraphRetriever:
        """Return a copy with further conditions, the retriever itself without any."""
        if filters is None:
            return self
        other = copy.copy(self)
        other.filters = all_of(self.filters, as_filters(filters))
        return other

    @property
    def native_retriever(self) -> RetrieverProtocol:
        """The retriever, with this one's settings: what ``as_retriever`` returns."""
        return configured(self.retriever, top_k=self.similarity_top_k, filters=self.filters)

    @property
    def similarity_top_k(self) -> int | None:
        """How many nodes to return at most. None for the retriever's own ``top_k``."""
        return self._similarity_top_k

    @similarity_top_k.setter
    def similarity_top_k(self, value: int | None) -> None:
        self._similarity_top_k = None if value is None else whole(value, "similarity_top_k", 1)

    @property
    def filters(self) -> Filters | None:
        """Conditions on metadata; LlamaIndex's are translated when they are set."""
        return self._filters

    @filters.setter
    def filters(self, value: MetadataFilters | Filters | None) -> None:
        self._filters = as_filters(value)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        with self._observed() as span:
            results = self._search(query_bundle)
        return self._shown(_nodes_with_scores(results), span)

    @dispatcher.span
    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        with self._observed() as span:
            results = await self._asearch(query_bundle)
        return self._shown(await in_thread(partial(_nodes_with_scores, results)), span)

    def _search(self, query_bundle: QueryBundle) -> list[ScoredNode]:
        with limit_concurrency(self.num_workers):
            return self.search_for(query_bundle).retrieve(
                _searched(query_bundle), top_k=self.similarity_top_k, filters=self.filters
            )

    async def _asearch(self, query_bundle: QueryBundle) -> list[ScoredNode]:
        with limit_concurrency(self.num_workers):
            return await self.search_for(query_bundle).aretrieve(
                _searched(query_bundle), top_k=self.similarity_top_k, filters=self.filters
            )

    # LlamaIndex 0.13 drops results of equal text here, also those of different documents.

    def _handle_recursive_retrieval(
        self, query_bundle: QueryBundle, nodes: list[NodeWithScore]
    ) -> list[NodeWithScore]:
        if _refers(nodes):
            return super()._handle_recursive_retrieval(query_bundle, nodes)
        return nodes

    async def _ahandle_recursive_retrieval(
        self, query_bundle: QueryBundle, nodes: list[NodeWithScore]
    ) -> list[NodeWithScore]:
        if _refers(nodes):
            return await super()._ahandle_recursive_retrieval(query_bundle, nodes)
        return nodes

    @contextmanager
    def _observed(self) -> Iterator[Span | None]:
        """Report the stages of the block to LlamaIndex, and record them if they are printed."""
        recorded = trace("retrieve") if self._verbose else nullcontext()
        with report_spans(self.callback_manager), recorded as span:
            yield span

    def _shown(self, nodes: list[NodeWithScore], span: Span | None) -> list[NodeWithScore]:
        """Return results; with ``verbose`` print how they were found."""
        if span is not None:
            explained = (node.explain() for node in cast("list[NodeWithEvidence]", nodes))
            print_text("\n".join([str(span), *explained]) + "\n", color="llama_turquoise")
        return nodes

    def search_for(self, query_bundle: QueryBundle) -> RetrieverProtocol:
        """Return what searches for a bundle: the retriever, or a search for its embedding texts."""
        retriever = self.retriever
        if not query_bundle.custom_embedding_strs:
            return retriever
        texts = dict.fromkeys(filter(str.strip, query_bundle.custom_embedding_strs))
        if not texts or list(texts) == [query_bundle.query_str]:
            return retriever
        if not isinstance(retriever, Retriever) or retriever.similarity.mode != "embedding":
            return retriever
        return MeanRetriever(retriever, list(texts))

    def with_retriever(self, retriever: RetrieverProtocol) -> NodeGraphRetriever:
        """Return a copy with another retriever."""
        other = copy.copy(self)
        other.retriever = retriever
        return other

    def _get_prompts(self) -> dict[str, BasePromptTemplate]:
        return retriever_templates(self.retriever)

    def _update_prompts(self, prompts_dict: dict[str, BasePromptTemplate]) -> None:
        self.retriever = replace_templates(self.retriever, prompts_dict)


class MeanRetriever(PlannedRetriever):
    """Search for the mean of the vectors of texts that stand for the query.

    Args:
        retriever: A retriever that compares embeddings.
        texts: The texts.
    """

    name = "mean"

    def __init__(self, retriever: Retriever, texts: Sequence[str]) -> None:
        super().__init__()
        self.inner = retriever
        self.texts = texts

    async def search_all(
        self, queries: Sequence[str], limit: int | None, filters: Filters | None
    ) -> list[list[ScoredNode]]:
        """Return the results of each query."""
        search = partial(self._search, limit=limit, filters=filters)
        return await Do(lambda: [*map(search, queries)])

    def _search(self, query: str, limit: int | None, filters: Filters | None) -> list[ScoredNode]:
        if not query.strip():
            return self.inner.retrieve(query, top_k=limit, filters=filters)
        others = [text for text in self.texts if text != query]

        def mean(graph: NodeGraph, key: str) -> Vectors:
            """Return the sum of the texts' unit vectors, (1, dimension)."""
            import numpy as np

            from ...retrievers.indexes.nearest_vectors import unit

            embeddings = graph.embeddings
            by_text = dict(zip(others, embeddings.embedder(key).passages(others), strict=True))
            if query in self.texts:
                by_text[query] = embeddings.query_vectors([query], key)[0]
            vectors = unit([by_text[text] for text in self.texts])
            total: Vectors = np.sum(vectors, axis=0, keepdims=True)
            return total

        (results,) = self.inner.batch_vectors(
            ["\n".join(others) or query], mean, top_k=limit, filters=filters
        )
        return results


def _searched(query_bundle: QueryBundle) -> str:
    """Return what is searched for; nothing, for a blank query, lists what meets the filters."""
    return query_bundle.query_str if query_bundle.query_str.strip() else ""


def _refers(nodes: Sequence[NodeWithScore]) -> bool:
    """Return whether a result refers to another object."""
    return any(isinstance(result.node, IndexNode) for result in nodes)


def as_bundle(query: QueryType) -> QueryBundle:
    """Return a query as LlamaIndex's query bundle."""
    return QueryBundle(query) if isinstance(query, str) else query


def _nodes_with_scores(results: Sequence[ScoredNode]) -> list[NodeWithScore]:
    """Return LlamaIndex results, best first, each node once with its best score."""
    ordered = sorted(results, key=attrgetter("score"), reverse=True)  # which is stable
    if len({result.node.id for result in ordered}) < len(ordered):
        best: dict[str, ScoredNode] = {}
        for result in ordered:
            best.setdefault(result.node.id, result)
        ordered = [*best.values()]
    return [*to_nodes_with_scores(ordered)]
