"""The core of the search: from indexes to matching nodes, targets, rankings and evidence.

A search operates on views. A view contains the rankings of one query in one snapshot of the graphs.
If a matching node has changed by the time it is read, the view is outdated, and the work is
repeated with a new view.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from itertools import chain, islice, takewhile
from typing import Any, TypeVar

from ..nodegraph.concurrency import with_deferred_work
from ..nodegraph.errors import MissingNodeError
from ..nodegraph.graph import NodeGraph
from ..nodegraph.node import ROOT, Node
from .branch import Branch, QueryVectors, SearchedIndex, rank_branch, take
from .hits import Key, Matches, Ranking
from .indexes.current import current, reading
from .indexes.synced_index import SyncedIndex
from .ranking import in_document_order
from .results import Results, ScoredNode
from .tracing import is_observed, start_span
from .unknown_fields import log_unknown_fields, unknown_fields

T = TypeVar("T")

MAX_QUERIES = 64
"""The maximum number of queries that are searched together."""

# Words are searched while the lock is held, up to this number of nodes times queries. The lock is
# then held for 0.5 ms with one query, and for up to 10 ms with 64 queries.
_AT_ONCE = 100_000

_ATTEMPTS = 3  # the number of attempts without the lock, before it is held all the time

_HELD = nullcontext()  # the locks are held already


def search(
    branches: Sequence[Branch],
    queries: Sequence[str],
    vectors: QueryVectors,
    work: Callable[[View], T],
    links: SyncedIndex | None = None,
    state: int | None = None,
) -> list[T]:
    """Search for queries that are already embedded, and return the result of each query.

    A small search for words holds the lock only once. Other searches lock the graphs twice: first
    to update the indexes and take their arrays, and later to read nodes. If a node was changed in
    between, the work is repeated. The last attempt holds the lock all the time.

    Args:
        branches: The searches to perform. Their graphs and their target must be the same.
        queries: The queries, none of which may be blank.
        vectors: An array of shape (queries, dimension) for each graph and embedding.
        work: A function that returns the result of a query from its view. It may be called several
            times.
        links: An index of links, which is also read in the views. This takes longer, so the lock is
            held only during reads.
        state: The state of a graph on a server that this question has already read, or None.
    """
    results: list[T] = []
    graphs = branches[0].graphs
    for start in range(0, len(queries), MAX_QUERIES):
        part = slice(start, start + MAX_QUERIES)
        of_part = {name: array[part] for name, array in vectors.items()}
        with graphs[0].reader.call(state):
            opened = _Opened(branches, links)
            results += with_deferred_work(partial(_search, opened, queries[part], of_part, work))
        log_unknown_fields(opened.unknown_fields)
    return results


def _search(
    opened: _Opened,
    queries: Sequence[str],
    vectors: QueryVectors,
    work: Callable[[View], T],
) -> list[T]:
    for attempt in range(_ATTEMPTS):
        is_light = opened.is_remote and not attempt
        try:
            with current(opened.groups, opened.indexes, is_light):
                state = opened.take(queries, vectors, is_light)
                if opened.links is None and state.is_small:
                    return state.results(work)
                state.release()
            return state.results(work)
        except MissingNodeError:
            pass
    with current(opened.groups, opened.indexes):
        try:
            return opened.take(queries, vectors).results(work)
        # The ids in an index file differ from the ids in the graph.
        except MissingNodeError as error:
            if not opened.distrust(error):
                raise
        with current(opened.groups, opened.indexes):
            return opened.take(queries, vectors).results(work)


class _Opened:
    """The indexes of a search.

    Args:
        branches: The searches to perform.
        links: An index of links, or None.

    Attributes:
        unknown_fields: The fields that filters compare and that no searched node has, with the most
            similar existing fields.
    """

    def __init__(self, branches: Sequence[Branch], links: SyncedIndex | None) -> None:
        self._branches = {branch: branch.open() for branch in branches}
        opened = chain.from_iterable(chain.from_iterable(self._branches.values()))
        self.indexes: list[Any] = [*dict.fromkeys([each.index for each in opened])]
        self.links = links
        self.unknown_fields: dict[str, str] = {}
        self.groups: dict[NodeGraph, list[str]] = {}
        for graph in branches[0].graphs:
            groups = [branches[0].target]
            for branch in branches:
                for group in branch.groups:
                    groups += graph.reader.searched_groups(group)
            self.groups[graph] = [*dict.fromkeys(groups)]
        if links is not None:
            self.indexes.append(links)
            self.groups[links.graph] += links.groups

    @property
    def is_remote(self) -> bool:
        """Whether only one graph is searched and this graph is stored on a server."""
        graph, *others = self.groups
        return graph.reader.is_remote and not others

    def take(self, queries: Sequence[str], vectors: QueryVectors, is_light: bool = False) -> _State:
        """Return the current state of the graphs, whose locks must be held.

        Args:
            queries: The queries.
            vectors: The vectors of the queries. See ``search``.
            is_light: Whether the graph is stored on a server, so that round trips are avoided.
        """
        sources = {
            branch: [
                take(branch, scoring, of_scoring, queries, vectors)
                for scoring, of_scoring in zip(branch.scorings, opened, strict=True)
            ]
            for branch, opened in self._branches.items()
        }
        graphs = [*self.groups]
        indexes = chain.from_iterable(chain.from_iterable(sources.values()))
        self.unknown_fields |= unknown_fields(graphs, indexes)
        return _State(graphs, queries, sources, is_light)

    def distrust(self, error: Exception) -> bool:
        """Empty all indexes that were restored from files, and return whether there were any."""
        restored = [index for index in self.indexes if hasattr(index, "distrust")]
        return any([index.distrust(error) for index in restored])


class _State:
    """A snapshot of all searched indexes, which is shared by the views of a batch of queries.

    Rankings are computed when a view first needs them, and are then kept for all views.

    Args:
        graphs: The graphs.
        queries: The queries.
        sources: The snapshots of the indexes for each branch, grouped by scoring.
        is_light: Whether a single graph on a server is searched, so that round trips are avoided.
    """

    def __init__(
        self,
        graphs: Sequence[NodeGraph],
        queries: Sequence[str],
        sources: Mapping[Branch, Sequence[Sequence[SearchedIndex]]],
        is_light: bool,
    ) -> None:
        self.graphs = graphs
        self.queries = queries
        self.sources = sources
        self._rankings: dict[tuple[Branch, int, int], Ranking] = {}
        self._ranked_branches: set[Branch] = set()
        self._is_held = True
        self._is_light = is_light
        self._seen: list[tuple[object, int]] = []  # the states and revisions of the graphs
        self._changed: dict[int, set[str]] = {}  # the ids of changed documents, by graph
        self._nodes: dict[Key, Node] = {}  # the nodes that were read while the locks are held

    @property
    def is_small(self) -> bool:
        """Whether the search is small enough to be performed while the lock is held."""
        if is_observed():  # observers may block
            return False
        size = 0.0
        for of_branch in self.sources.values():
            for of_scoring in of_branch:
                size += sum([source.snapshot.size for source in of_scoring])
        return size * len(self.queries) <= _AT_ONCE

    def release(self) -> None:
        """Record the state of the graphs. After this call, their locks are no longer held."""
        readers = [graph.reader for graph in self.graphs]
        self._seen = [(reader.held_state(), reader.revision(ROOT)) for reader in readers]
        self._is_held = False

    def results(self, work: Callable[[View], T]) -> list[T]:
        """Return the result of each query."""
        return [work(View(self, number)) for number in range(len(self.queries))]

    def reading(self, keys: Iterable[Key] = ()) -> AbstractContextManager[None]:
        """Hold the locks of the graphs until the end of the ``with`` block.

        Args:
            keys: The nodes that are read in the block. A server returns them without a transaction.

        Raises:
            MissingNodeError: If so much has changed that the affected documents are unknown.
        """
        return _HELD if self._is_held else self._reading(keys)

    @contextmanager
    def _reading(self, keys: Iterable[Key]) -> Iterator[None]:
        is_light = self._is_light and self._read_ahead([node_id for _, node_id in keys])
        with reading(dict.fromkeys(self.graphs, ()), is_light):
            for number, (graph, seen) in enumerate(zip(self.graphs, self._seen, strict=True)):
                state, revision = seen
                if graph.reader.held_state() != state:
                    ids = graph.reader.changed_ids(ROOT, revision)
                    if ids is None:
                        raise MissingNodeError("a found node was changed")
                    self._changed[number] = {*chain.from_iterable(ids)}
            self._is_held = True
            try:
                yield
            finally:
                self._is_held = False
                self._nodes.clear()

    def _read_ahead(self, ids: Sequence[str]) -> bool:
        """Read nodes into the cache of the graph, and return whether its state is confirmed."""
        try:
            self.graphs[0].reader.read_ahead(ids)
        except MissingNodeError:
            return False
        return True

    def read(self, keys: Iterable[Key]) -> Mapping[Key, Node]:
        """Read nodes, and return them together with all nodes that were read before.

        The locks of the graphs must be held.
        """
        known = self._nodes
        new = [*keys]
        if known:
            new = [key for key in new if key not in known]
        for number, graph in enumerate(self.graphs):
            of_graph = new
            if len(self.graphs) > 1:
                of_graph = [key for key in new if key[0] == number]
            found = graph.reader.nodes_by_id([node_id for _, node_id in of_graph])
            changed = self._changed.get(number)
            if changed and any(node.document_id in changed for node in found):
                raise MissingNodeError("a found node was changed")
            known.update(zip(of_graph, found, strict=True))
        return known

    def ranking(self, branch: Branch, number: int, limit: int) -> Ranking:
        """Return the ranking of a query. The first call ranks all queries together."""
        key = branch, limit, number
        if key not in self._rankings:
            is_first = branch not in self._ranked_branches
            numbers = range(len(self.queries)) if is_first else [number]
            rankings = self._ranked(branch, numbers, limit)
            for at, ranking in zip(numbers, rankings, strict=True):
                self._rankings[branch, limit, at] = ranking
            self._ranked_branches.add(branch)
        return self._rankings[key]

    def _ranked(self, branch: Branch, numbers: Sequence[int], limit: int) -> list[Ranking]:
        """Return the rankings of several queries.

        If the search is observed, record a trace span.
        """
        sources = self.sources[branch]
        if not is_observed():
            return rank_branch(sources, numbers, limit)
        names = dict.fromkeys(scoring.similarity.name for scoring in branch.scorings)
        with start_span(
            "search",
            queries=[self.queries[number] for number in numbers],
            group=" + ".join(branch.groups),
            similarity=" + ".join(names),
            target=branch.target,
        ) as span:
            rankings = rank_branch(sources, numbers, limit)
            with self.reading():
                views = [View(self, number) for number in numbers]
                pairs = zip(views, rankings, strict=True)
                span.set_results([view.results(ranking) for view, ranking in pairs])
        return rankings


class View:
    """The rankings of one query in one snapshot of the graphs.

    Args:
        state: The state of the graphs.
        number: The position of the query in the batch.
    """

    __slots__ = ("_number", "_state", "query")

    def __init__(self, state: _State, number: int) -> None:
        self._state = state
        self._number = number
        self.query = state.queries[number]

    def ranking(self, branch: Branch, limit: int) -> Ranking:
        """Return the targets of the query in one search, best first.

        Args:
            branch: One of the searches.
            limit: The maximum number of targets.
        """
        return self._state.ranking(branch, self._number, limit)

    def source(self, branch: Branch) -> SearchedIndex:
        """Return the first index of a search."""
        return self._state.sources[branch][0][0]

    def prepared(self, branch: Branch) -> Any:
        """Return the query in the form that was prepared for the first index of a search."""
        return self.source(branch).queries[self._number]

    def term_scores(self, branch: Branch, keys: Iterable[Key]) -> Any:
        """Return the score of each term of the query in each node, with shape (nodes, terms)."""
        ids = [node_id for _, node_id in keys]
        return self.source(branch).snapshot.term_scores(self._number, ids)

    def reading(self, keys: Iterable[Key] = ()) -> AbstractContextManager[None]:
        """Hold the locks of the graphs until the end of the block, so that all reads see the same
        state.

        Args:
            keys: The nodes that are read in the block.

        Raises:
            MissingNodeError: If the view is outdated.
        """
        return self._state.reading(keys)

    def nodes(self, keys: Iterable[Key]) -> dict[Key, Node]:
        """Return nodes by their keys.

        Raises:
            MissingNodeError: If a node no longer exists, or its document has changed.
        """
        keys = dict.fromkeys(keys)
        with self._state.reading(keys):
            nodes = self._state.read(keys)
            return {key: nodes[key] for key in keys}

    def results(
        self,
        ranking: Ranking,
        keys: Sequence[Key] | None = None,
        scores: Sequence[float] | None = None,
    ) -> Results:
        """Return targets with their evidence.

        Args:
            ranking: The ranking.
            keys: The targets. If None, all targets of the ranking are returned.
            scores: Scores that replace those of the ranking. The shares are scaled accordingly.

        Raises:
            MissingNodeError: If a node no longer exists, or its document has changed.
        """
        keys = [*ranking.scores] if keys is None else keys
        # Results can be kept for a long time, so they must not refer to the other targets.
        found_by = [found.only(keys) for found in ranking.found_by]
        read = [*keys]
        for found in found_by:
            read += found.matching_nodes()
        nodes = self.nodes(read)
        create = Matches(self.query, found_by, nodes, scores is not None).evidence
        if scores is None:
            scores = [ranking.scores[key] for key in keys]
        return [
            ScoredNode.with_pending_evidence(nodes[key], score, create, key)
            for key, score in zip(keys, scores, strict=True)
        ]

    def first_results(self, ranking: Ranking, top_k: int) -> Results:
        """Return the best targets. Targets of a document with equal scores are ordered by position.

        Only targets whose score is among the first ``top_k`` are read.
        """
        scores = ranking.scores
        keys = [*islice(scores, top_k)]
        if keys:
            last = scores[keys[-1]]
            keys += takewhile(lambda key: scores[key] == last, islice(scores, top_k, None))
        return in_document_order(self.results(ranking, keys))[:top_k]
