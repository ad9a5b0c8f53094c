"""A retriever that searches one group of nodes and returns related nodes of a target group."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, product
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import numpy as np

from ..nodegraph.errors import nearest_names
from ..nodegraph.graph import NodeGraph
from ..nodegraph.models.embedder import Vectors
from .base_retriever import BaseRetriever, check_texts
from .branch import FUSED, Branch, Scoring
from .call import Call, check_restriction
from .filters import Filters, all_of
from .indexes.synced_index import SyncedIndex
from .plans.plan import Do, gather
from .protocols import Similarity
from .ranking import Lift
from .results import OutputFormat, Results, ScoredNode
from .retrieval_conditions import Conditions
from .search import View, search
from .similarities.registry import DEFAULT, MakeIndex, Unranked, get_similarity, with_index
from .validation import UNBOUNDED, check_number, check_top_k, choice, whole

if TYPE_CHECKING:
    from typing_extensions import Self

logger = logging.getLogger(__name__)

T = TypeVar("T")


class Retriever(BaseRetriever):
    """A retriever that searches one group of nodes and returns nodes of a target group.

    Groups and indexes are built at the first query. Each query is answered from one snapshot of the
    graph, which includes all earlier changes. A batch of queries is embedded in one call. For a
    blank query, the nodes that match the filters are returned in document order with a score of 0.
    Without filters, a blank query has no results.

    Args:
        graph: A graph, or several graphs that are searched together.
        group: The name of the group to search.
        similarity: The name of a similarity, or an object such as ``Bm25(k1=1.2)``. ``"bm25"`` and
            ``"bm25_chinese"`` compare words of Chinese, English and mixed text, ``"cosine"``
            compares embeddings, and ``"auto"`` fuses both. The default is ``"bm25"`` if ``index``
            is given and ``"cosine"`` if ``embed_keys`` is given. Otherwise, it is ``"auto"`` if all
            graphs have an embedding in common, and ``"bm25"`` if not.
        top_k: The maximum number of nodes, counted in the target group.
        target: The name of the group that the results belong to. Each matching node is replaced by
            related nodes of this group, which are ancestors, descendants or nodes with a common
            ancestor. If None, the matching nodes themselves are returned.
        filters: Conditions on metadata, which are checked before ranking. See ``parse_filters``.
        min_score: The minimum score of a matching node, either as a number or as a mapping by
            embedding.
        embed_keys: The names of the embeddings to search, if the similarity compares embeddings. If
            None, all embeddings of the graph are searched. A node that is found with several
            embeddings is returned once, with its highest score and all evidence.
        lift: The method that computes the score of a target from the scores of its matching nodes:
            ``"max"`` (the best score), ``"sum"`` (the best score plus half of the second best) or
            ``"mean"``.
        fetch_k: The number of matching nodes that are fetched per embedding before they are
            replaced by their targets. The evidence, sum and mean of a target are based on these
            nodes only, and fewer than ``top_k`` targets may be returned. By default, as many nodes
            are fetched as are needed for ``top_k`` targets. Without a target, this argument is
            ignored.
        index: The index of the similarity. ``"default"`` is its standard index, and ``"map"`` looks
            up exact texts. A class or function that creates an index is also accepted.
        output_format: The format of the results of a call: None (scored nodes), ``"content"`` or
            ``"dict"``.
        join: The separator that joins the contents into a single text. True stands for a line
            break.

    Raises:
        UnknownGroupError: If a graph has no group with the name ``group`` or ``target``.
        TypeError: If an argument has the wrong type.
        ValueError: If a name is unknown or a number is out of range.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> graph = NodeGraph()
        >>> ids = graph.add(["Green tea is not fermented. Black tea is.", "Rivers run to the sea."])
        >>> graph.create_node_group("sentence", lambda text: text.split(". "))
        >>> retriever = Retriever(graph, "sentence", "bm25", target="ROOT", top_k=1)
        >>> [result.node.text for result in retriever("Which tea is black?")]
        ['Green tea is not fermented. Black tea is.']
    """

    name = "search"
    top_k: int

    def __init__(
        self,
        graph: NodeGraph | Sequence[NodeGraph],
        group: str,
        similarity: str | Similarity | None = None,
        *,
        top_k: int = 6,
        target: str | None = None,
        filters: Filters | None = None,
        min_score: float | Mapping[str, float] | None = None,
        embed_keys: Sequence[str] | None = None,
        lift: Lift = "max",
        fetch_k: int | None = None,
        index: str | MakeIndex = DEFAULT,
        output_format: OutputFormat | None = None,
        join: bool | str = False,
    ) -> None:
        super().__init__(top_k=check_top_k(top_k))
        self._set_output(output_format, join)
        self.graphs = _checked_graphs(graph)
        self.group = group
        self.target = group if target is None else target
        for item in self.graphs:
            item.reader.lineage(self.group)
            item.reader.lineage(self.target)
        if similarity is None:
            similarity = self._default_similarity(index, embed_keys)
        self._scorings = _scorings(similarity, index, self.graphs, embed_keys)
        self.similarity = self._scorings[0].similarity
        self.embed_keys = [key for _, key in self._scorings if key is not None]
        self._is_fused = self.similarity.mode == "text" and bool(self.embed_keys)
        if self._is_fused and isinstance(min_score, int | float):
            raise ValueError(
                f"min_score={min_score!r} requires one similarity, but words and vectors are "
                "searched; set similarity='bm25' or similarity='cosine'"
            )
        last = self._scorings[-1].similarity.name
        self._min_scores = check_hit_score(min_score, self.embed_keys, last)
        self.lift = choice(lift, "lift", get_args(Lift))
        self.fetch_k = None if fetch_k is None else whole(fetch_k, "fetch_k", 1)
        self._restriction: Filters | None = None
        self.filters = filters

    @property
    def score_range(self) -> tuple[float, float]:
        """The lowest and the highest possible score."""
        if self._is_fused:
            return 0.0, 1.0
        is_cosine = self.similarity.name == "cosine" and self.lift != "sum"
        return (-1.0, 1.0) if is_cosine else UNBOUNDED

    def _default_similarity(self, index: str | MakeIndex, embed_keys: Sequence[str] | None) -> str:
        """Return the name of the similarity that is used if none is given."""
        if embed_keys is not None:
            return "cosine"
        shared = set.intersection(*({*item.embeddings.embedders} for item in self.graphs))
        # Otherwise, the nodes of graphs without vectors would be ranked lower.
        return "auto" if shared and index == DEFAULT else "bm25"

    def __repr__(self) -> str:
        names = " + ".join(dict.fromkeys(scoring.similarity.name for scoring in self._scorings))
        return f"Retriever({self.group!r} -> {self.target!r}, {names}, top_k={self.top_k})"

    async def search_all(
        self, queries: Sequence[str], limit: int | None, filters: Filters | None
    ) -> list[Results]:
        """Return the results of each query, at most ``limit`` per query."""
        texts = [query for query in queries if query.strip()]
        top_k = self.top_k if limit is None else limit
        branch = self.branch(Call.begin(filters))
        found = await search_branches([branch], texts, partial(_all_results, branch, top_k))
        if len(texts) == len(queries):
            return found
        listed: Results = []  # a blank query has no results without filters
        if branch.conditions:
            unranked = replace(branch, scorings=[Scoring(Unranked(), None)], min_score={})
            limit = max(top_k, FUSED) if branch.is_fused else top_k
            work = partial(_all_results, unranked, limit)
            find = partial(search, [unranked], [""], {}, work)
            listed = (await Do(find, kind="work"))[0][:top_k]
        results = iter(found)
        return [next(results) if query.strip() else list(listed) for query in queries]

    def search_vector(
        self,
        query: str,
        vector: Sequence[float],
        *,
        top_k: int | None = None,
        filters: Filters | None = None,
    ) -> list[ScoredNode]:
        """Search for a given vector, which is compared in each of the embeddings.

        Args:
            query: A name for the vector, which is stored in the evidence.
            vector: The vector, with shape (dimension,).
            top_k: The maximum number of results. Overrides the ``top_k`` of the retriever.
            filters: Conditions on metadata, in addition to those of the retriever.

        Raises:
            ValueError: If the similarity compares texts.
            EmbeddingError: If the vectors of the nodes have a different dimension.
        """
        if not self.embed_keys:
            raise ValueError(f"{self!r} compares texts; vectors need similarity='cosine'")
        check_texts([query])
        limit = self.top_k if top_k is None else check_top_k(top_k)
        branch = self.branch(Call.begin(filters))
        vectors = dict.fromkeys(branch.embeddings, np.asarray([vector], np.float32))
        (results,) = search([branch], [query], vectors, partial(_all_results, branch, limit))
        return results

    @property
    def filters(self) -> Filters | None:
        """The filters of the retriever, which are validated on each assignment."""
        return self._filters

    @filters.setter
    def filters(self, value: Filters | None) -> None:
        self._conditions = Conditions.of(value, restriction=self._restriction)
        self._filters = value

    def conditions(self, call: Call) -> Conditions:
        """Return the conditions of a call and of the retriever, combined with "and"."""
        if call.conditions is None:
            return self._conditions
        restriction = all_of(call.restriction, self._restriction)
        return Conditions.of(self.filters, call.filters, restriction=restriction)

    def with_filters(self, filters: Filters | None) -> Self:
        """Return a copy with different filters.

        In contrast, filters of a call are applied in addition to those of the retriever. A
        restriction of the retriever remains in force.

        Raises:
            TypeError: If the filters have the wrong type.
            ValueError: If a condition is invalid.
        """
        other = copy.copy(self)
        other.filters = filters
        return other

    def restricted(self, filters: Filters) -> Self:
        """Return a copy that is restricted to nodes that match filters. See ``restrict``."""
        other = copy.copy(self)
        other._restriction = all_of(self._restriction, check_restriction(filters))
        other._conditions = Conditions.of(self.filters, restriction=other._restriction)
        return other

    def with_fetch_k(self, fetch_k: int) -> Self:
        """Return a copy that fetches a different number of matching nodes."""
        other = copy.copy(self)
        other.fetch_k = whole(fetch_k, "fetch_k", 1)
        return other

    def branch(self, call: Call) -> Branch:
        """Return the search that this retriever performs in a call."""
        return Branch(
            self.graphs,
            [self.group],
            self.target,
            self._scorings,
            self.conditions(call),
            self._min_scores,
            self.lift,
            self.fetch_k,
        )


async def search_branches(
    branches: Sequence[Branch],
    queries: Sequence[str],
    work: Callable[[View], T],
    links: SyncedIndex | None = None,
    state: int | None = None,
) -> list[T]:
    """Embed queries, and perform several searches in the same snapshot of their graphs.

    Args:
        branches: The searches. Their graphs and their target must be the same.
        queries: The queries, none of which may be blank.
        work: A function that returns the result of a query, given its rankings. See ``search``.
        links: An index of links that ``work`` uses, or None.
        state: The state of a graph on a server that this question has already read, or None.
    """

    async def embed(graph: NodeGraph, key: str) -> Vectors:
        of_graph = graph.embeddings
        return await Do(of_graph.query_vectors, of_graph.aquery_vectors, args=(queries, key))

    pairs = dict.fromkeys(pair for branch in branches for pair in branch.embeddings)
    vectors: dict[tuple[NodeGraph, str], Vectors] = {}
    if pairs and queries:
        embedded = await gather([partial(embed, *pair) for pair in pairs])
        vectors = dict(zip(pairs, embedded, strict=True))
    return await Do(search, args=(branches, queries, vectors, work, links, state), kind="work")


def _all_results(branch: Branch, limit: int, view: View) -> Results:
    return view.results(view.ranking(branch, limit))


def _checked_graphs(graph: NodeGraph | Sequence[NodeGraph]) -> list[NodeGraph]:
    """Return the graphs without duplicates.

    Raises:
        TypeError: If no graph is given, or an item is not a graph.
    """
    graphs = graph if isinstance(graph, Sequence) else [graph]
    if not graphs or not all(isinstance(item, NodeGraph) for item in graphs):
        raise TypeError(f"graph must be a NodeGraph or a list of them, got {graph!r:.80}")
    return list(dict.fromkeys(graphs))


def _scorings(
    similarity: str | Similarity,
    index: str | MakeIndex,
    graphs: Sequence[NodeGraph],
    embed_keys: Sequence[str] | None,
) -> list[Scoring]:
    """Return the similarities and embeddings by which nodes are scored.

    Raises:
        ValueError: If embeddings are named, but only words are compared.
    """
    is_auto = isinstance(similarity, str) and similarity == "auto"
    names = ("bm25", "cosine") if is_auto else (similarity,)
    scorings: list[Scoring] = []
    for name in names:
        each = with_index(get_similarity(name), index)
        if each.mode == "embedding":
            keys = search_keys(each.name, graphs, embed_keys, optional=is_auto)
            scorings += [Scoring(each, key) for key in keys]
        else:
            scorings.append(Scoring(each, None))
    if embed_keys is not None and all(key is None for _, key in scorings):
        raise ValueError(
            f"embed_keys={embed_keys!r} choose among embeddings, and similarity "
            f"{scorings[0].similarity.name!r} compares texts; leave them out"
        )
    return scorings


def search_keys(
    name: str, graphs: Sequence[NodeGraph], embed_keys: Sequence[str] | None, optional: bool
) -> list[str]:
    """Return the names of the embeddings to search.

    Args:
        name: The name of the similarity.
        graphs: The graphs.
        embed_keys: The names of embeddings that the user specified. If None, all embeddings of the
            graphs are searched.
        optional: Whether graphs without embeddings are allowed.

    Raises:
        ValueError: If no name is given, a graph has no embeddings, or a graph lacks a named
            embedding.
    """
    keys_by_graph = [list(graph.embeddings.embedders) for graph in graphs]
    for graph, keys in zip(graphs, keys_by_graph, strict=True):
        if not keys and not optional:
            raise ValueError(
                f"similarity {name!r} compares embeddings, and {graph!r:.80} has none; "
                "give it a model: NodeGraph(..., embed=...)"
            )
    if embed_keys is None:
        return list(dict.fromkeys(chain.from_iterable(keys_by_graph)))
    selected = [embed_keys] if isinstance(embed_keys, str) else list(dict.fromkeys(embed_keys))
    if not selected:
        raise ValueError("embed_keys=[] names no embedding; leave it out to search all")
    for key, keys in product(selected, keys_by_graph):
        if key not in keys:
            raise ValueError(
                f"unknown embedding {key!r}; the graph has {nearest_names(str(key), keys)}; choose "
                "one of them, or add it by NodeGraph(..., embed={'key': model})"
            )
    return selected


def check_hit_score(
    min_score: float | Mapping[str, float] | None, keys: Sequence[str], name: str
) -> dict[str | None, float]:
    """Validate the minimum score, and return it as a mapping by embedding (None for words).

    Args:
        min_score: A number, or a mapping by embedding.
        keys: The names of the searched embeddings. They are empty if the similarity compares texts.
        name: The name of the similarity.

    Raises:
        TypeError: If the minimum is not a number, or is a mapping although no embedding is
            searched.
        ValueError: If the minimum is NaN or outside the range of the cosine similarity, or an
            embedding in it is not searched.
    """
    if min_score is None:
        return {}
    is_mapping = isinstance(min_score, Mapping) and keys
    names: Sequence[str | None] = keys or [None]
    by_key: Any = min_score if is_mapping else dict.fromkeys(names, min_score)
    allowed = ", or a dict with one for each key" if keys else " for a similarity of texts"
    for key, number in by_key.items():
        if keys and key not in keys:
            raise ValueError(
                f"min_score has the key {key!r}; the embeddings that are searched are "
                f"{nearest_names(str(key), keys)}"
            )
        check_number(number, "min_score", f"a number{allowed}")
        if name == "cosine" and not -1 <= number <= 1:
            raise ValueError(
                f"min_score must be from -1 to 1 for cosines, got {number!r}; BM25's scores have "
                "no upper end: similarity='bm25'"
            )
    return {key: float(number) for key, number in by_key.items()}
