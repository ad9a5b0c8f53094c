"""Use any nodekin retriever as a LlamaIndex retriever."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any, TypeAlias

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.callbacks import CallbackManager
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.schema import BaseNode, IndexNode, NodeWithScore, QueryBundle, QueryType
from llama_index.core.settings import Settings
from llama_index.core.vector_stores.types import MetadataFilters

from ...nodegraph.concurrency import in_thread
from ...nodegraph.errors import explain_names
from ...retrievers.base_retriever import Phrases
from ...retrievers.composite.configured_retriever import configured
from ...retrievers.filters import Filters, all_of
from ...retrievers.foreign.foreign_retriever import as_retriever
from ...retrievers.protocols import RetrieverProtocol
from ...retrievers.results import ScoredNode
from ...retrievers.retriever import Retriever
from ...retrievers.strategies.outcome import result_key
from ...retrievers.validation import whole
from .engine_options import RetrieverSource
from .metadata_filters import as_filters
from .nodes import to_results
from .prompt_templates import to_templates, with_templates
from .retrieval_events import retrieval

dispatcher = get_dispatcher(__name__)

NamedObject: TypeAlias = BaseNode | BaseRetriever | BaseQueryEngine
"""An object that an ``IndexNode`` can refer to."""


async def _search_in_thread(self: BaseRetriever, query_bundle: QueryBundle) -> list[NodeWithScore]:
    """Run the synchronous search of a subclass that does not override the async search."""
    return await in_thread(self._retrieve, query_bundle)


class NodeGraphRetriever(BaseRetriever):
    """A LlamaIndex retriever that uses any nodekin retriever.

    Nodes that were added to a ``NodeGraphIndex`` are returned unchanged and keep their class. All
    other nodes are returned as ``TextNode`` objects. Each result is a ``NodeWithScore`` with an
    additional ``evidence`` attribute. If a node is found more than once, it is returned once with
    its best score.

    Args:
        retriever: A nodekin retriever, or another object that ``as_retriever`` accepts, such as a
            graph.
        similarity_top_k: The maximum number of results. Defaults to the ``top_k`` of the retriever.
        filters: Conditions on metadata, which are checked before ranking. They can be a mapping,
            such as ``{"year": {"gte": 2000}}``, or LlamaIndex's ``MetadataFilters``.
        max_tokens: The maximum total number of tokens of all results. If it is set, the default
            search returns windows, which are excerpts of whole sentences, and their number is not
            limited unless ``similarity_top_k`` is given. ``start_char_idx`` and ``end_char_idx``
            are positions in the original document or node.
        min_score: The minimum score.
        phrases: How the default search handles quoted phrases in the query: ``"first"`` to rank
            results that contain them first, or ``"required"`` to return only such results. If None,
            the setting of the retriever is used.
        weights: The weights of words and vectors in the default search, such as ``{"words": 1,
            "vectors": 3}``. If None, the setting of the retriever is used. By default, words and
            vectors are weighted separately for each question.
        callback_manager: The LlamaIndex callback manager.
        object_map: A mapping from ids to the objects that index nodes refer to.
        objects: Index nodes that refer to objects such as other retrievers.
        verbose: Whether to print verbose output.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If ``similarity_top_k`` is below 1, or a filter cannot be translated.

    Example:
        >>> from nodekin.nodegraph import NodeGraph, split_sentences
        >>> from nodekin.retrievers import Retriever
        >>> graph = NodeGraph()
        >>> ids = graph.add(["Green tea is unfermented. Black tea is not.", "Rivers run."])
        >>> graph.create_node_group("sentence", split_sentences)
        >>> search = Retriever(graph, "sentence", "bm25", target="ROOT")
        >>> (result,) = NodeGraphRetriever(search, similarity_top_k=2).retrieve("black tea")
        >>> result.text, result.evidence[0]["text"]
        ('Green tea is unfermented. Black tea is not.', 'Black tea is not.')
    """

    def __init_subclass__(cls, **settings: Any) -> None:
        """Make async calls use the synchronous search if a subclass overrides only that."""
        names = vars(cls)
        if "_retrieve" in names and "_aretrieve" not in names:
            cls._aretrieve = _search_in_thread  # type: ignore[method-assign]
        super().__init_subclass__(**settings)

    @explain_names
    def __init__(
        self,
        retriever: RetrieverSource,
        *,
        similarity_top_k: int | None = None,
        filters: MetadataFilters | Filters | None = None,
        max_tokens: int | None = None,
        min_score: float | None = None,
        phrases: Phrases | None = None,
        weights: Mapping[str, float] | None = None,
        callback_manager: CallbackManager | None = None,
        object_map: dict[str, NamedObject] | None = None,
        objects: list[IndexNode] | None = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(
            callback_manager=callback_manager or Settings.callback_manager,
            object_map=object_map,
            objects=objects,
            verbose=verbose,
        )
        self.retriever = as_retriever(retriever, "retriever")
        if similarity_top_k is not None:
            whole(similarity_top_k, "similarity_top_k", 1)
        self.similarity_top_k = similarity_top_k
        self.filters = filters
        self.max_tokens = max_tokens
        self.min_score = min_score
        self.phrases = phrases
        self.weights = weights
        self.native_retriever  # noqa: B018 # checks

    @property
    def native_retriever(self) -> RetrieverProtocol:
        """The underlying nodekin retriever, configured with the settings of this retriever."""
        return configured(
            self.retriever,
            top_k=self.similarity_top_k,
            filters=as_filters(self.filters),
            max_tokens=self.max_tokens,
            min_score=self.min_score,
            phrases=self.phrases,
            weights=self.weights,
        )

    def retrieve(
        self,
        str_or_query_bundle: QueryType,
        filters: MetadataFilters | Filters | None = None,
        *,
        max_tokens: int | None = None,
        min_score: float | None = None,
        phrases: Phrases | None = None,
        weights: Mapping[str, float] | None = None,
    ) -> list[NodeWithScore]:
        """Return the results for a query, best first.

        Args:
            str_or_query_bundle: The query. A blank query lists all nodes that match the filters.
            filters: Additional conditions on metadata for this call.
            max_tokens: The maximum total number of tokens of all results. It overrides the setting
                of the retriever, and so do the following arguments.
            min_score: The minimum score.
            phrases: How quoted phrases in the query are handled.
            weights: The weights of words and vectors.
        """
        search = self.narrowed(filters).with_settings(
            max_tokens=max_tokens, min_score=min_score, phrases=phrases, weights=weights
        )
        bundle = as_bundle(str_or_query_bundle)
        with retrieval(self.callback_manager, str_or_query_bundle) as found:
            nodes = search._retrieve(bundle)
            if _has_references(nodes):
                nodes = search._handle_recursive_retrieval(bundle, nodes)
            found += nodes
        return nodes

    async def aretrieve(
        self,
        str_or_query_bundle: QueryType,
        filters: MetadataFilters | Filters | None = None,
        *,
        max_tokens: int | None = None,
        min_score: float | None = None,
        phrases: Phrases | None = None,
        weights: Mapping[str, float] | None = None,
    ) -> list[NodeWithScore]:
        """Async version of ``retrieve``."""
        search = self.narrowed(filters).with_settings(
            max_tokens=max_tokens, min_score=min_score, phrases=phrases, weights=weights
        )
        bundle = as_bundle(str_or_query_bundle)
        with retrieval(self.callback_manager, str_or_query_bundle) as found:
            nodes = await search._aretrieve(query_bundle=bundle)
            if _has_references(nodes):
                nodes = await search._ahandle_recursive_retrieval(query_bundle=bundle, nodes=nodes)
            found += nodes
        return nodes

    def narrowed(self, filters: MetadataFilters | Filters | None) -> NodeGraphRetriever:
        """Return a copy of the retriever with additional filters."""
        if filters is None:
            return self
        other = copy.copy(self)
        other.filters = all_of(as_filters(self.filters), as_filters(filters))
        return other

    def with_settings(
        self,
        *,
        max_tokens: int | None,
        min_score: float | None,
        phrases: Phrases | None,
        weights: Mapping[str, float] | None,
    ) -> NodeGraphRetriever:
        """Return a copy of the retriever with different settings.

        Settings that are None do not change.
        """
        given = {
            "max_tokens": max_tokens,
            "min_score": min_score,
            "phrases": phrases,
            "weights": weights,
        }
        changed = {name: value for name, value in given.items() if value is not None}
        if not changed:
            return self
        other = copy.copy(self)
        vars(other).update(changed)
        return other

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        results = self.native_retriever.retrieve(self._query(query_bundle))
        return _converted(self.retriever, results)

    @dispatcher.span
    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        results = await self.native_retriever.aretrieve(self._query(query_bundle))
        return await in_thread(_converted, self.retriever, results)

    def _query(self, bundle: QueryBundle) -> str:
        """Return the text of a query, or its embedding texts if only vectors are compared."""
        inner = self.retriever
        if isinstance(inner, Retriever) and inner.similarity.mode == "embedding":
            text = "\n".join(bundle.custom_embedding_strs or [bundle.query_str])
        else:
            text = bundle.query_str
        return text if text.strip() else ""

    def _get_prompts(self) -> dict[str, BasePromptTemplate]:
        return to_templates(self.retriever)

    def _update_prompts(self, prompts_dict: Mapping[str, BasePromptTemplate]) -> None:
        self.retriever = with_templates(self.retriever, prompts_dict)


def _has_references(nodes: Sequence[NodeWithScore]) -> bool:
    """Return whether LlamaIndex needs to resolve references among the results.

    If no references exist, LlamaIndex's step is skipped, because it would change scores of 0.0 and
    keep the first of several duplicates instead of the best.
    """
    return any(isinstance(result.node, IndexNode) for result in nodes)


def as_bundle(query: QueryType) -> QueryBundle:
    """Convert a query to a LlamaIndex query bundle."""
    return QueryBundle(query) if isinstance(query, str) else query


def _converted(retriever: RetrieverProtocol, results: Sequence[ScoredNode]) -> list[NodeWithScore]:
    """Convert results to LlamaIndex results, best first.

    Each node is included once, with its best score.
    """
    if not getattr(retriever, "is_ranked_by_score", True):
        return [*to_results(results)]
    best: dict[tuple[str, str], ScoredNode] = {}
    for result in sorted(results, key=attrgetter("score"), reverse=True):
        best.setdefault(result_key(result), result)
    return [*to_results(best.values())]
