"""Search one group of nodes, answer with their kin."""

from __future__ import annotations

import copy
import inspect
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, get_args

from ..nodegraph.concurrency import in_thread, run_in_tasks
from ..nodegraph.graph import NodeGraph
from ..nodegraph.models.embedder import Vectors
from ..nodegraph.models.passage_vectors import embed_ahead
from .base_retriever import CHILD_K, RESTRICTION, BaseRetriever, check_queries, check_texts
from .filters import Filters, all_of
from .protocols import Similarity
from .ranking import Lift
from .results import OutputOptions, ScoredNode
from .retrieval_conditions import Conditions, check_restriction
from .search import (
    Search,
    all_results,
    check_cut_off,
    has_embedding,
    one_ranking,
    search,
    search_keys,
)
from .similarities.registry import DEFAULT, MakeIndex, Unranked, get_similarity, with_index
from .token_budget import Order, TokenBudget
from .validation import UNBOUNDED, check_options, check_top_k, choice, whole

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

logger = logging.getLogger(__name__)

VectorsOf = Callable[[NodeGraph, str], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrieverSettings:
    """Hold which hits of a ``Retriever`` count, and what they make of a target's score.

    Attributes:
        similarity_cut_off: Keeps hits that score this or more; for embeddings a number for
            all, or a dict with one for each key that is to have one.
        embed_keys: Which embeddings to search, for a similarity that compares embeddings; None
            for all that the graph has. Each finds ``top_k`` nodes; a node that several find is
            returned once, with its highest score and the evidence of all.
        lift: What a target scores: its best hit's score (``"max"``), the ``"sum"`` of that and
            half of the second best, or the ``"mean"`` over all its hits.
        child_k: Looks at exactly so many hits (of each embedding) before lifting, the best ones;
            a target's evidence, sum and mean are over those, and there may be fewer targets than
            ``top_k``. None looks at as many as it takes to find ``top_k`` targets. Without a
            target it has no meaning. ``child_k_override`` sets it for single calls.

    Raises:
        TypeError: If ``child_k`` is no whole number.
        ValueError: If it is below 1, or there is no such way to lift.
    """

    similarity_cut_off: float | Mapping[str, float] | None = None
    embed_keys: Sequence[str] | None = None
    lift: Lift = "max"
    child_k: int | None = None

    def __post_init__(self) -> None:
        choice(self.lift, "lift", get_args(Lift))
        if self.child_k is not None:
            whole(self.child_k, "child_k", 1)


FUSED = 50
"""How many results by words, and by vectors, are fused at least."""

_RANGES = {"cosine": (-1.0, 1.0), "auto": (0.0, 1.0)}

_REMEDY = "; settings of a similarity go to the similarity: Bm25(k1=1.2)"


class Retriever(BaseRetriever):
    """Search a node group by a similarity; return the nodes, or their kin in a target group.

    Nothing is built before the first query. A query sees one consistent state of the graph, and
    what was added, changed or removed before it.

    Args:
        graph: A node graph, or several, searched as one.
        group_name: The group to search.
        similarity: A name (``"bm25"``, ``"bm25_chinese"``: both analyse Chinese, English and
            mixed text; ``"cosine"`` compares embeddings; ``"auto"`` fuses both) or an object
            (``Bm25(k1=1.2)``). None takes what the graph has, which the log says: ``"auto"``
            where it has embeddings (several graphs: one in common), else ``"bm25"``;
            ``"cosine"`` where the settings have ``embed_keys``, and ``"bm25"`` for an ``index``.
        index: How the similarity is made fast: ``"default"`` is its own, ``"map"`` looks up exact
            texts; or what was registered with ``register_index``, or makes an index.
        top_k: How many nodes to return at most: nodes of the target group, where there is one.
        target: The group to answer with; hits are lifted to their kin in it, up, down or across.
            None answers with the hits.
        filters: Conditions on metadata, checked before ranking; see ``parse_filters``.
        settings: A least score, which embeddings are searched, how targets are scored. See
            ``RetrieverSettings``.
        **options: ``output_format`` and ``join``, see ``OutputOptions``.

    Raises:
        UnknownGroupError: If a graph has no such group or target.
        TypeError: If ``graph`` is no graph, ``settings`` are none, or an option is unknown.
        ValueError: If a name is unknown or a number out of range.

    Example:
        >>> graph = NodeGraph()
        >>> ids = graph.add(["Green tea is not fermented. Black tea is.", "Rivers run to the sea."])
        >>> graph.create_node_group("sentence", lambda text: text.split(". "))
        >>> retriever = Retriever(graph, "sentence", "bm25", target="ROOT", top_k=1)
        >>> [result.node.text for result in retriever("Which tea is black?")]
        ['Green tea is not fermented. Black tea is.']
    """

    settings_type: ClassVar[type] = RetrieverSettings

    def __init__(
        self,
        graph: NodeGraph | Sequence[NodeGraph],
        group_name: str,
        similarity: str | Similarity | None = None,
        *,
        index: str | MakeIndex = DEFAULT,
        top_k: int = 6,
        target: str | None = None,
        filters: Filters | None = None,
        settings: RetrieverSettings | None = None,
        **options: Unpack[OutputOptions],
    ) -> None:
        own = inspect.unwrap(Retriever.__init__).__kwdefaults__ or {}
        check_options(options, {**own, **OutputOptions.__annotations__}, "Retriever", _REMEDY)
        super().__init__(**options)
        if not isinstance(settings, RetrieverSettings | None):
            raise TypeError(f"settings are RetrieverSettings(...), not {settings!r:.80}")
        self.settings = settings or RetrieverSettings()
        graphs = graph if isinstance(graph, Sequence) else [graph]
        if not graphs or not all(isinstance(item, NodeGraph) for item in graphs):
            raise TypeError(f"graph is a NodeGraph or a list of them, not {graph!r:.80}")
        self.graphs = list(dict.fromkeys(graphs))
        self.group_name = group_name
        self.target = group_name if target is None else target
        for item in self.graphs:
            item.reader.lineage(self.group_name)
            item.reader.lineage(self.target)
        if similarity is None:
            similarity = self._by_what_there_is(index)
        self.similarity = with_index(get_similarity(similarity), index)
        self._keys = search_keys(self.similarity, self.graphs, self.settings.embed_keys)
        self.embed_keys = [key for key in self._keys if key is not None]
        self._embedded: list[tuple[str, Sequence[NodeGraph]]] = [
            (key, [item for item in self.graphs if has_embedding(item, key)])
            for key in self.embed_keys
        ]
        self.top_k = check_top_k(top_k)
        cut_off = check_cut_off(
            self.settings.similarity_cut_off, self.embed_keys, self.similarity.name
        )
        if self.similarity.mode == "both" and isinstance(cut_off, float):
            raise ValueError(
                f"similarity_cut_off={cut_off!r} is for scores of one kind, and words and vectors "
                "are searched; name one: similarity='bm25' or similarity='cosine'"
            )
        self.similarity_cut_off = cut_off
        self._restriction: Filters | None = None
        self.filters = filters

    @property
    def score_range(self) -> tuple[float, float]:
        """The lowest and the highest score that a result can have."""
        is_summed = self.settings.lift == "sum"
        return UNBOUNDED if is_summed else _RANGES.get(self.similarity.name, UNBOUNDED)

    def _by_what_there_is(self, index: str | MakeIndex) -> str:
        """Return the similarity if none is given."""
        if self.settings.embed_keys is not None:
            return "cosine"
        of_graphs = [[*item.embeddings.embedders] for item in self.graphs]
        keys = [key for key in of_graphs[0] if all(key in keys for keys in of_graphs)]
        if index != DEFAULT or not any(of_graphs):
            return "bm25"
        if not keys:  # the vectors of some would set the others back
            logger.info(
                "%r is searched by its words alone, since no similarity is given and the graphs "
                "have no embedding in common; theirs are %s",
                *(self.group_name, of_graphs),
            )
            return "bm25"
        logger.info(
            "%r is searched by its words and by its vectors (%s), since no similarity is given",
            *(self.group_name, ", ".join(keys)),
        )
        return "auto"

    def __repr__(self) -> str:
        return (
            f"Retriever({self.group_name!r} -> {self.target!r}, {self.similarity.name}, "
            f"top_k={self.top_k})"
        )

    def retrieve(
        self,
        query: str,
        *,
        top_k: int | None = None,
        filters: Filters | None = None,
        max_tokens: int | None = None,
        order: Order = "score",
    ) -> list[ScoredNode]:
        """Return the best nodes, best first; fewer than ``top_k`` where fewer match.

        Args:
            query: What to look for. A blank query lists what meets the filters, in document
                order, with the score 0; nothing, where there are none.
            top_k: In place of the retriever's own.
            filters: Conditions beside the retriever's own; all must hold.
            max_tokens: How many tokens all results may have together. The results are
                ``BudgetResults``, as many as fit where no ``top_k`` is given.
            order: ``"document"`` puts results of one document into its order.

        Raises:
            TypeError: If the query is no text.
            ValueError: If a number is out of range, a filter no filter.
            TransformError: If a group has to be built and its transform raises.
        """
        if max_tokens is not None or order != "score":
            return self.batch(
                [query], top_k=top_k, filters=filters, max_tokens=max_tokens, order=order
            )[0]
        queries = [query]
        return self._answers(self.search_for(queries, top_k, filters), queries)[0]

    async def aretrieve(
        self,
        query: str,
        *,
        top_k: int | None = None,
        filters: Filters | None = None,
        max_tokens: int | None = None,
        order: Order = "score",
    ) -> list[ScoredNode]:
        """Do the same without blocking the event loop.

        The query is embedded by the model's async form where it has one; all else runs in a
        worker thread.
        """
        queries = [query]
        if max_tokens is not None or order != "score":
            results = await self.abatch(
                queries, top_k=top_k, filters=filters, max_tokens=max_tokens, order=order
            )
            return results[0]
        return (await self._aanswers(self.search_for(queries, top_k, filters), queries))[0]

    def batch(
        self,
        queries: Sequence[str],
        *,
        top_k: int | None = None,
        filters: Filters | None = None,
        max_tokens: int | None = None,
        order: Order = "score",
    ) -> list[list[ScoredNode]]:
        """Return the results of each query, in the order of the queries.

        All queries are embedded in one call, and searched many at once. Those that are searched
        together see one state of the graph; the next see what was changed meanwhile.

        Raises:
            TypeError: If the queries are one text, or one of them is none.
        """
        check_queries(queries)
        budget = TokenBudget(max_tokens, order, top_k)
        top_k = budget.candidates(self)
        results = self._answers(self.search_for(queries, top_k, filters), queries)
        return [*map(budget.fit, results)] if budget else results

    def _answers(self, search: Search, queries: Sequence[str]) -> list[list[ScoredNode]]:
        texts = [query for query in queries if query.strip()]
        found = _found(search, texts, self.query_vectors(texts))
        return found if len(texts) == len(queries) else _spread(queries, found, search)

    def batch_vectors(
        self,
        queries: Sequence[str],
        vectors_of: VectorsOf,
        *,
        top_k: int | None = None,
        filters: Filters | None = None,
    ) -> list[list[ScoredNode]]:
        """Search for vectors of one's own in place of those of the queries.

        Choose it for what no text is embedded as: the mean of several vectors, a query moved
        towards the passages that were liked.

        Args:
            queries: What evidence calls each vector.
            vectors_of: Returns the vectors for a graph and the key of one of its embeddings, an
                array (queries, dimension); is called for each that is searched.
            top_k: In place of the retriever's own.
            filters: Conditions beside the retriever's own; all must hold.

        Raises:
            ValueError: If the similarity compares texts, or there is not one vector a query.

        Example:
            >>> def letters(texts):
            ...     return [[text.count(letter) for letter in "aeiou"] for text in texts]
            >>> graph = NodeGraph(embed=letters)
            >>> ids = graph.add(["banana", "lemon tree", "kiwi"])
            >>> retriever = Retriever(graph, "ROOT", "cosine", top_k=1)
            >>> (found,) = retriever.batch_vectors(["many e"], lambda graph, key: [[0, 9, 0, 0, 0]])
            >>> found[0].node.text
            'lemon tree'
        """
        check_queries(queries)
        search = self.search_for(queries, top_k, filters)
        vectors = [
            [self._checked(vectors_of(graph, key), queries) for graph in graphs]
            for key, graphs in self._comparing(queries)
        ]
        return _found(search, queries, vectors)

    async def abatch(
        self,
        queries: Sequence[str],
        *,
        top_k: int | None = None,
        filters: Filters | None = None,
        max_tokens: int | None = None,
        order: Order = "score",
    ) -> list[list[ScoredNode]]:
        """Do what ``batch`` does without blocking the event loop."""
        check_queries(queries)
        budget = TokenBudget(max_tokens, order, top_k)
        search = self.search_for(queries, budget.candidates(self), filters)
        results = await self._aanswers(search, queries)
        return [*map(budget.fit, results)] if budget else results

    async def _aanswers(self, search: Search, queries: Sequence[str]) -> list[list[ScoredNode]]:
        """Search in a thread; new passages are embedded by the model's async form before."""
        texts = [query for query in queries if query.strip()]
        vectors = await self.aquery_vectors(texts)
        call = embed_ahead if self.embeds_by_async_model else in_thread
        found = await call(partial(_found, search, texts, vectors))
        if len(texts) == len(queries):
            return found
        return await in_thread(partial(_spread, queries, found, search))

    @property
    def embeds_by_async_model(self) -> bool:
        """Whether new passages can be embedded without a thread."""
        embedded = ((key, graph) for key, graphs in self._embedded for graph in graphs)
        return any(graph.embeddings.embedder(key).aembed for key, graph in embedded)

    @property
    def filters(self) -> Filters | None:
        """Conditions on metadata; they are checked when they are set, also later."""
        return self._filters

    @filters.setter
    def filters(self, value: Filters | None) -> None:
        self._conditions = Conditions.of(value, restriction=self._restriction)
        self._filters = value

    def conditions(self, filters: Filters | None) -> Conditions:
        """Return the conditions of a call together with the retriever's own; all must hold."""
        if filters is None and RESTRICTION.get() is None:
            return self._conditions
        return Conditions.of(self.filters, filters, restriction=self._restriction)

    def with_filters(self, filters: Filters | None) -> Self:
        """Return a copy whose own conditions are these, in place of its own.

        The only way to replace conditions: those of a call are added. What the retriever is
        restricted to stays.

        Raises:
            TypeError: If the filters are none.
            ValueError: If a condition is none.
        """
        other = copy.copy(self)
        other.filters = filters
        return other

    def restricted(self, filters: Filters) -> Self:
        """Return a copy that is restricted to nodes that meet conditions; see ``restrict``."""
        other = copy.copy(self)
        other._restriction = all_of(self._restriction, check_restriction(filters))
        other._conditions = Conditions.of(self.filters, restriction=other._restriction)
        return other

    def embed(self, queries: Sequence[str]) -> None:
        """Embed queries ahead, together; the next retrievals for them ask no model.

        A graph remembers the last 512. Does nothing where texts are compared.
        """
        self.query_vectors(queries)

    async def aembed(self, queries: Sequence[str]) -> None:
        """Do the same without blocking the event loop."""
        await self.aquery_vectors(queries)

    def query_vectors(self, queries: Sequence[str]) -> list[list[Vectors]]:
        """Return the queries' vectors, by embedding and graph."""
        embedded = self._embedded if queries else []
        return [
            [graph.embeddings.query_vectors(queries, key) for graph in graphs]
            for key, graphs in embedded
        ]

    async def aquery_vectors(self, queries: Sequence[str]) -> list[list[Vectors]]:
        """Async version of ``query_vectors``."""
        embedded = self._embedded if queries else []
        calls = [
            partial(graph.embeddings.aquery_vectors, queries, key)
            for key, graphs in embedded
            for graph in graphs
        ]
        vectors = iter(await run_in_tasks(calls, len(calls)))
        return [[next(vectors) for _ in graphs] for _, graphs in embedded]

    def _comparing(self, queries: Sequence[str]) -> list[tuple[str, Sequence[NodeGraph]]]:
        """Return the embeddings to search, and the graphs of each; none for no queries."""
        if not self._embedded:
            raise ValueError(
                f"{self!r} compares texts and can't search for vectors; give it a similarity that "
                "compares embeddings, like 'cosine'"
            )
        return self._embedded if queries else []

    @staticmethod
    def _checked(vectors: Any, queries: Sequence[str]) -> Vectors:
        import numpy as np

        array = np.asarray(vectors, np.float32)
        if array.ndim != 2 or len(array) != len(queries):
            raise ValueError(
                f"vectors_of gave an array of the shape {array.shape} for {len(queries)} queries; "
                "it has to be (queries, dimension)"
            )
        return array

    def search_for(
        self, queries: Sequence[str], top_k: int | None, filters: Filters | None
    ) -> Search:
        """Check what a call is given; return the search for it, without the vectors."""
        check_texts(queries)
        child_k = CHILD_K.get()
        limit = self.top_k if top_k is None else check_top_k(top_k)
        is_fused = self.similarity.mode == "both"
        return Search(
            self.graphs,
            [self.group_name],
            self.target,
            self.similarity,
            self._keys,
            max(limit, FUSED) if is_fused else limit,
            self.conditions(filters),
            self.similarity_cut_off,
            self.settings.lift,
            self.settings.child_k if child_k is None else child_k,
            limit,
        )


def _found(
    single: Search, queries: Sequence[str], vectors: Sequence[Sequence[Vectors]]
) -> list[list[ScoredNode]]:
    return search([single], queries, [vectors], one_ranking, all_results)


def _spread(
    queries: Sequence[str], found: Sequence[list[ScoredNode]], search: Search
) -> list[list[ScoredNode]]:
    """Return the results of all queries; nodes that meet the filters for blank queries."""
    results, listed = iter(found), []
    if search.conditions:
        limit = search.top_k or search.limit
        similarity = Unranked()
        unranked = replace(search, similarity=similarity, keys=[None], min_score=None, limit=limit)
        listed = _found(unranked, [""], [])[0]
    return [next(results) if query.strip() else list(listed) for query in queries]
