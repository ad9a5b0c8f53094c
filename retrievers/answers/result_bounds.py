"""Tell which queries may have other results than before, without searching for all of them.

Of each query the results are known, and as many runners-up. A new text is scored against all
queries at once, by the statistics that each was searched by. As the statistics change, what is
known is scored again, and everything else has changed by a factor that the terms of its query
bound. As long as all results stay above everything else, they are the same.

Where words and vectors are fused, a score is the mean of two scores, each relative to the highest
and the last one of a list. The highest is known. The last one is between two scores near the end
of the list as it was, as many ranks apart as nodes have left it or may have come.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from hashlib import blake2b
from importlib.metadata import version
from itertools import islice
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from ...nodegraph.graph import NodeGraph
from ...nodegraph.hashing import full_digest
from ...nodegraph.node import Node
from ...nodegraph.stored_answers import StaleAnswer, StoredAnswer
from ..analysis.text_analyzer import TextAnalyzer
from ..base_retriever import effective_child_k
from ..composite.joint_search import Found, Read, joint_search
from ..indexes.array_files import Arrays, PackedTexts, pack_texts
from ..indexes.synced_index import SyncedIndex
from ..plans.plan import run
from ..protocols import RetrieverProtocol
from ..ranking import FusedIds, fuse_ids
from ..restricted_retriever import restriction_of
from ..results import Results
from ..retriever import FUSED, Retriever, RetrieverSettings
from ..similarities.bm25 import Bm25
from ..similarities.registry import Auto
from .bound_scorers import Rescored, Scorer, scorer_of
from .staleness import compared, with_current_causes

Floats = npt.NDArray[np.float64]

Mask = npt.NDArray[np.bool_]


class Known(NamedTuple):
    """What is known of a query.

    Attributes:
        nodes: Its results, and nodes that are near to them, with the first node of each list.
        top_k: How many of the nodes are results at most.
        others: What all others score at most, -inf where there are none.
        lists: What each scorer found, best first, by id.
    """

    nodes: Sequence[Node]
    top_k: int
    others: float
    lists: Sequence[Mapping[str, float]]


class ResultBounds(SyncedIndex):
    """Tell which queries may have other results than when they were recorded.

    An index of queries, not of nodes: what it was not told of it need not read. All methods but
    ``close`` are called while the graph is held.

    Args:
        graph: The graph.
        group: The group that is searched, and returned.
        make: Makes what scores new texts: one scorer, or several whose lists are fused.
        search: Names all that the results depend on, beside the graph and the query.
        depth: How many nodes of each list are fused.
    """

    uses_search_text = True
    streams = True

    def __init__(
        self,
        graph: NodeGraph,
        group: str,
        make: Callable[[], Sequence[Scorer]],
        search: str,
        depth: int,
    ) -> None:
        self._make = make
        self._search = search
        self._depth = depth
        super().__init__(graph, group)

    def clear(self) -> None:
        """Drop all queries."""
        self._scorers = self._make()
        self._is_fused = len(self._scorers) > 1
        self._numbers: dict[str, int] = {}  # the row of each query
        self._rows: Any = np.zeros(0, _row_type(len(self._scorers), self._depth * self._is_fused))
        self._new: list[Any] = []
        self._results = np.zeros(0, _RESULT)
        self._new_results: list[tuple[int, int, int, bool]] = []
        self._changes: tuple[Sequence[str], Sequence[Node]] = [], []

    @property
    def size(self) -> int:
        """How many queries there are."""
        return len(self._numbers)

    def select(self, queries: Container[str]) -> None:
        """Drop all other queries."""
        self._build()
        numbers = self._numbers.items()
        self._numbers = {query: row for query, row in numbers if query in queries}
        self._compact()

    def may_differ(self, query: str) -> bool:
        """Return whether a query may have other results; True for one that was not recorded."""
        row = self._numbers.get(query)
        return row is None or (row < len(self._rows) and bool(self._rows["open"][row]))

    def mark(self, query: str) -> int:
        """Return the mark that a query was recorded with; 0 for one that was not."""
        row = self._numbers.get(query)
        if row is None:
            return 0
        new = row - len(self._rows)
        return int(self._rows["mark"][row] if new < 0 else self._new[new]["mark"][0])

    def record(self, query: str, text: str, known: Known, filtered: bool, mark: int) -> None:
        """Record what a query has.

        Args:
            query: What the query is called.
            text: The query.
            known: What is known of it.
            filtered: Whether it has conditions on metadata.
            mark: What ``mark`` returns.
        """
        nodes, top_k = known.nodes, known.top_k
        ids = [node.id for node in nodes]
        row: Any = np.zeros(1, self._rows.dtype)
        row["mark"], row["others"] = mark, known.others
        row["top_k"] = top_k if len(ids) >= top_k else 0
        firsts = set(ids[:top_k])
        for at, (scorer, scores) in enumerate(zip(self._scorers, known.lists, strict=True)):
            scorer.add(text, ids, [scores.get(node_id, -np.inf) for node_id in ids])
            if self._is_fused:
                self._record_list(row, at, ids, scores)
                firsts.update([*scores][:1])
        self._numbers[query] = len(self._rows) + len(self._new)
        self._new.append(row)
        contents = self._contents(nodes, filtered)
        self._new_results += [
            (self._numbers[query], _hash(node_id), content, node_id in firsts)
            for node_id, content in zip(ids, contents, strict=True)
        ]
        self._unsaved += 1

    def _record_list(
        self, row: Any, at: int, ids: Sequence[str], scores: Mapping[str, float]
    ) -> None:
        """Note the ends of a list, and which nodes it has; bound nothing by one that is short."""
        values = [*scores.values()]
        is_full = len(values) >= self._depth + _SPARE and values[0] > values[self._depth - 1]
        if not is_full or row["others"] == np.inf:
            row["others"] = np.inf
            return
        row["first"][0, at] = ids.index(next(iter(scores)))
        row["high"][0, at] = values[0]
        others = {*scores}.difference(ids)
        row["most"][0, at] = max((scores[node_id] for node_id in others), default=values[-1])
        row["last"][0, at] = values[self._depth - 1 - _SPARE :]
        row["members"][0, at] = [_hash(node_id) & _SHORT for node_id in scores]

    def _contents(self, nodes: Sequence[Node], filtered: bool) -> list[int]:
        """Return hashes of what a search compares of nodes."""
        texts = self._graph.reader.searched_texts(nodes)
        return [
            _hash(node.id, str(node.content), text, full_digest(node.metadata) if filtered else "")
            for node, text in zip(nodes, texts, strict=True)
        ]

    def _build(self) -> None:
        """Put what is new into the arrays; drop queries that were recorded again, if many."""
        self._rows = np.concatenate([self._rows, *self._new])
        self._results = np.concatenate([self._results, np.array(self._new_results, _RESULT)])
        self._new.clear()
        self._new_results.clear()
        if len(self._rows) > 2 * len(self._numbers) + 100:
            self._compact()

    def _compact(self) -> None:
        current = np.zeros(len(self._rows), np.bool_)
        current[[*self._numbers.values()]] = True
        for scorer in self._scorers:
            scorer.select(current)
        numbers = np.cumsum(current) - 1
        self._numbers = {query: int(numbers[row]) for query, row in self._numbers.items()}
        self._results = self._results[current[self._results["row"]]]
        self._results["row"] = numbers[self._results["row"]]
        self._rows = self._rows[current]

    # Following the graph

    def accepts(self, prepared: None) -> bool:
        """Return whether the queries still mean what they did."""
        return all(scorer.is_current() for scorer in self._scorers)

    def remove(self, ids: Sequence[str]) -> None:
        """Note which nodes are gone."""
        self._changes = ids, []

    def add(self, nodes: Sequence[Node], prepared: None) -> None:
        """Note which nodes are new; all of them are of no interest where no query is known."""
        if self._numbers:
            self._changes = self._changes[0], nodes

    def finish(self) -> None:
        """Take in what has changed in the group."""
        (removed, added), self._changes = self._changes, ([], [])
        if not self._numbers:
            return
        self._build()
        # Of each text, once without and once with its metadata.
        contents = np.array([self._contents(added, f) for f in (False, True)], np.int64)
        hashes = [_hash(node_id) for node_id in (*removed, *(node.id for node in added))]
        ids = np.array(hashes, np.int64)
        rows, of_rows = self._results["row"], self._results["content"]
        changed = np.isin(self._results["id"], ids) & self._results["decides"]
        self._rows["open"][rows[changed & ~np.isin(of_rows, contents)]] = True
        if self._is_fused:
            self._count_left(ids & _SHORT)
        order = of_rows.argsort()
        ordered = of_rows[order]
        texts = self._graph.reader.searched_texts(added)
        all_scores = zip(*(scorer.scores(texts) for scorer in self._scorers), strict=True)
        for of_text, scores in zip(contents.T, all_scores if added else (), strict=True):
            bounds = (ordered.searchsorted(of_text, side) for side in _SIDES)
            for start, stop in zip(*bounds, strict=True):
                for of_scorer in scores:
                    of_scorer[rows[order[start:stop]]] = -np.inf  # it is known, and has only moved
            self._take_in(scores)
        self._rows["open"] |= ~self._stay()

    def _count_left(self, ids: Any) -> None:
        """Count for each list how many of its nodes are gone."""
        members = self._rows["members"]
        table = np.zeros(_BUCKETS, np.bool_)
        table[ids % _BUCKETS] = True
        places = np.nonzero(table[members % _BUCKETS])
        gone = tuple(axis[np.isin(members[places], ids)] for axis in places)
        members[gone] = 0
        np.add.at(self._rows["left"], gone[:2], 1)

    def _take_in(self, scores: Sequence[Floats]) -> None:
        """Take in what a new text scores by each list, as if it had been there."""
        rows, joined = self._rows, scores[0]
        if self._is_fused:
            by_list = np.stack(scores, axis=1)
            rows["entered"] += by_list >= rows["last"][..., -1]
            np.maximum(rows["most"], by_list, out=rows["most"])
            joined = _fused(by_list, rows["last"][..., _SPARE], rows["high"])
        rows["others"] = np.maximum(rows["others"], joined)

    def _stay(self) -> Mask:
        """Return which rows have the same results for sure."""
        rows, parts = self._rows, [scorer.rescored() for scorer in self._scorers]
        worst, best, others = parts[0].lowest, parts[0].highest, rows["others"]
        with np.errstate(all="ignore"):  # what is no number stays above nothing
            if self._is_fused:
                worst, best, others = self._fused_scores(parts)
            else:
                others = np.where(others == -np.inf, others, others * parts[0].most)
            are_results = np.arange(worst.shape[1]) < rows["top_k"][:, np.newaxis]
            least = np.where(are_results, worst, np.inf).min(axis=1)
            runner_up = np.where(are_results, -np.inf, best).max(axis=1)
            # As long as there are too few results, whatever matches is one.
            stay: Mask = np.where(rows["top_k"] > 0, least > np.maximum(runner_up, others), False)
            stay |= (rows["top_k"] == 0) & (others == -np.inf)
            for part in parts:
                stay &= np.isfinite(part.most)
        return stay

    def _fused_scores(self, parts: Sequence[Rescored]) -> tuple[Floats, Floats, Floats]:
        """Return what known nodes score at least and at most when fused, and all others at most."""
        rows, last = self._rows, self._rows["last"]
        left, entered = rows["left"], rows["entered"]
        least, most, lowest, highest = (np.stack(arrays, axis=-1) for arrays in _columns(parts))
        at = np.arange(len(rows))[:, np.newaxis], np.arange(len(parts))
        low = least * last[(*at, np.minimum(_SPARE + left, 2 * _SPARE))]
        upper_low = most * last[(*at, np.maximum(_SPARE - entered, 0))]
        high = lowest[at[0], rows["first"], at[1]]
        upper_high = np.maximum(highest.max(axis=1), most * rows["most"])
        known = (left <= _SPARE) & (entered <= _SPARE) & (high > upper_low)
        each = np.newaxis
        worst = _fused(lowest, upper_low[:, each], upper_high[:, each])
        best = _fused(highest, low[:, each], high[:, each])
        # A relative score has grown by this factor, and by this much, at most.
        before, width = last[..., _SPARE], high - low
        factor = most * (rows["high"] - before) / width
        shift = (most * before - low) / width
        others = factor.max(axis=1) * rows["others"] + shift.mean(axis=1)
        return worst, best, np.where(known.all(axis=1), others, np.inf)

    # The file

    def close(self) -> None:
        """Store the bounds, however few: each took a retrieval."""
        with self._lock.held():
            if self._unsaved:
                self.save()

    def file_name(self) -> str:
        """Return the file's name, one for each search."""
        return f"bounds-{self._search}"

    def header(self) -> dict[str, Any]:
        """Return what a stored index must have been built with."""
        settings = {"search": self._search, "depth": self._depth, "nodekin": version("nodekin")}
        return {**settings, "scorers": [scorer.header() for scorer in self._scorers]}

    def arrays(self) -> Arrays:
        """Return the arrays to store."""
        if not self._numbers:
            return {}
        self._build()
        self._compact()
        queries, starts = pack_texts(sorted(self._numbers, key=self._numbers.__getitem__))
        of_scorers = [
            (f"{at} {name}", array)
            for at, scorer in enumerate(self._scorers)
            for name, array in scorer.arrays().items()
        ]
        return {
            **{f"result {name}": self._results[name] for name in _RESULT.names or ()},
            **{f"row {name}": self._rows[name] for name in self._rows.dtype.names or ()},
            **{"queries": queries, "query starts": starts},
            **dict(of_scorers),
        }

    def restore(self, arrays: Arrays) -> None:
        """Set the empty index to what ``arrays`` returned."""
        queries = PackedTexts(arrays["queries"], arrays["query starts"])
        self._numbers = {query: row for row, query in enumerate(queries)}
        self._rows = np.zeros(len(self._numbers), self._rows.dtype)
        self._new.clear()
        for name in self._rows.dtype.names or ():
            self._rows[name] = arrays[f"row {name}"]
        self._results = np.zeros(len(arrays["result row"]), _RESULT)
        for name in _RESULT.names or ():
            self._results[name] = arrays[f"result {name}"]
        for at, scorer in enumerate(self._scorers):
            of_scorer = f"{at} "
            named = (name for name in arrays if name.startswith(of_scorer))
            scorer.restore({name.removeprefix(of_scorer): arrays[name] for name in named})


def _hash(*parts: str) -> int:
    """Return a number for texts, which is the same in every process."""
    hashed = blake2b(repr(parts).encode(), digest_size=7)  # repr tells where a text ends
    return int.from_bytes(hashed.digest(), "big")


def _columns(parts: Sequence[Rescored]) -> Iterator[Sequence[Floats]]:
    """Yield what all parts have scored, one kind after the other."""
    for name in ("least", "most", "lowest", "highest"):
        yield [getattr(part, name) for part in parts]


def _fused(scores: Floats, low: Floats, high: Floats) -> Floats:
    """Return the mean of scores relative to two ends, 0 for what is below the lower one."""
    with np.errstate(all="ignore"):
        fused: Floats = np.maximum((scores - low) / (high - low), 0.0).mean(axis=-1)
    return fused


_SIDES: tuple[Literal["left", "right"], ...] = ("left", "right")

_RESULT = np.dtype([("row", "i4"), ("id", "i8"), ("content", "i8"), ("decides", "?")])

_SPARE = 8  # ranks before and behind the last that is fused, of which scores are known

_SHORT = 0xFFFF_FFFF  # the part of a hash that is kept of each node of a list

_BUCKETS = 1 << 16  # of hashes, most of which no node that changed is in


def _row_type(lists: int, depth: int) -> np.dtype[Any]:
    """Return what there is of each query, with the ends of lists where they are fused."""
    own = [("mark", "i8"), ("open", "?"), ("top_k", "i4"), ("others", "f8")]
    if not depth:
        return np.dtype(own)
    counts = [(name, "i4", (lists,)) for name in ("first", "left", "entered")]
    scores = [(name, "f8", (lists,)) for name in ("high", "most")]
    ends = [("last", "f8", (lists, 2 * _SPARE + 1)), ("members", "u4", (lists, depth + _SPARE))]
    return np.dtype([*own, *counts, *scores, *ends])


class BoundedCheck:
    """Compare stored answers with what is retrieved now, where bounds say that it may differ.

    Args:
        retriever: What the answers were made from.
        branches: The searches that it fuses, or itself.
        top_k: How many results, for answers that say nothing else.
        search: Names all that the results depend on, beside the graph and the question.
    """

    def __init__(
        self, retriever: Retriever, branches: Sequence[Retriever], top_k: int, search: str
    ) -> None:
        self.retriever = retriever
        self.top_k = top_k
        self.retrievals = 0  # so far
        self._branches = branches
        self._search = search
        self._known = top_k + max(2, top_k // 2)
        (self._graph,) = retriever.graphs
        self._lock = threading.Lock()
        self._indexes: list[object] = []  # which the bounds are made from
        self._bounds: ResultBounds | None = None
        self._stale: dict[str, tuple[int, StaleAnswer]] = {}  # with the marks of the answers

    @classmethod
    def of(
        cls, retriever: RetrieverProtocol, top_k: int | None, search: str
    ) -> BoundedCheck | None:
        """Return the check for a search; None where there are no bounds for its results."""
        if (
            type(retriever) is not Retriever
            or len(retriever.graphs) != 1
            or retriever.target != retriever.group_name
            or retriever.similarity_cut_off is not None
            or effective_child_k(retriever.settings.child_k) is not None
        ):
            return None
        branches = _branches(retriever)
        if not all(scorer_of(branch, 0) for branch in branches):
            return None
        own, limit = retriever, top_k or retriever.top_k
        reader = retriever.graphs[0].reader
        return reader.shared(("bounds", search), lambda: cls(own, branches, limit, search))

    def __call__(self, answers: Sequence[StoredAnswer]) -> list[StaleAnswer | None]:
        """Return for each answer what has changed, None if nothing has."""
        with self._lock:
            return [
                stale
                for start in range(0, len(answers), _BATCH_SIZE)
                for stale in self._check(answers[start : start + _BATCH_SIZE])
            ]

    def close(self) -> None:
        """Store the bounds, unless a thread is about to check."""
        if self._bounds is not None and self._lock.acquire(blocking=False):
            try:
                self._bounds.close()
            finally:
                self._lock.release()

    def _forget_removed(self, bounds: ResultBounds) -> None:
        """Drop what is known of answers that the graph has no longer, once they are many."""
        stored = self._graph.answers
        if bounds.size > len(stored) + _REMOVED:
            current = {answer.key for answer in stored}
            self._stale = {key: value for key, value in self._stale.items() if key in current}
            bounds.select(current)

    def _check(self, answers: Sequence[StoredAnswer]) -> list[StaleAnswer | None]:
        """Check some answers while the graph is held."""
        graph, group = self._graph, self.retriever.group_name
        indexes = [
            branch.similarity.open(graph, group, *branch.embed_keys) for branch in self._branches
        ]
        for index in indexes:
            index.ready()
        with graph.reader.reading(*graph.reader.searched_groups(group)):
            for index in indexes:
                index.sync()
            if self._bounds is None or self._indexes != indexes:  # one was closed meanwhile
                self._indexes = [*indexes]
                self._bounds = ResultBounds(graph, group, self._scorers, self._search, FUSED)
            self._bounds.sync()
            self._forget_removed(self._bounds)
            self._retrieve(answers, self._bounds)
            found = [self._stale.get(answer.key) for answer in answers]
            return with_current_causes([item and item[1] for item in found], graph)

    def _scorers(self) -> list[Scorer]:
        """Return new scorers, for what is known of each question and the first of each list."""
        known = self._known + (len(self._branches) if len(self._branches) > 1 else 0)
        makers = [scorer_of(branch, known) for branch in self._branches]
        return [make() for make in makers if make is not None]

    def _marks(self, answers: Sequence[StoredAnswer]) -> list[int]:
        """Return a hash of each answer, and of its question's terms by a user's analyzer."""
        marks = self._graph.answers.marks(answers)
        similarity = self.retriever.similarity
        if isinstance(similarity, Bm25) and not isinstance(similarity.analyzer, TextAnalyzer):
            analyze = getattr(similarity.analyzer, "query", similarity.analyzer)
            terms = (analyze(answer.question) for answer in answers)
            return [mark and _hash(str(mark), *t) for mark, t in zip(marks, terms, strict=True)]
        return marks

    def _retrieve(self, answers: Sequence[StoredAnswer], bounds: ResultBounds) -> None:
        """Retrieve for those whose results may differ, and compare them."""
        together: dict[tuple[int, str], list[tuple[StoredAnswer, int]]] = {}
        for answer, mark in zip(answers, self._marks(answers), strict=True):
            key = answer.key
            checked = self._stale[key][0] if key in self._stale else bounds.mark(key)
            if not mark or checked != mark or bounds.may_differ(key):
                top_k = answer.top_k or self.top_k
                together.setdefault((top_k, repr(answer.filters)), []).append((answer, mark))
        for (top_k, _), several in together.items():
            filters = several[0][0].filters
            filtered = bool(self.retriever.conditions(filters))
            asked = [answer.question for answer, _ in several if answer.question.strip()]
            found = iter(self._search_again(asked, top_k, filters))
            for answer, mark in several:
                key, question = answer.key, answer.question
                results, known = next(found) if question.strip() else ([], None)
                stale = compared(answer, results)
                self._stale.pop(key, None)
                if stale is not None:
                    self._stale[key] = mark, stale
                if known is not None:
                    self.retrievals += 1
                    # Of what has changed a process that reads this has to see how.
                    bounds.record(key, question, known, filtered, 0 if stale else mark)

    def _search_again(
        self, questions: Sequence[str], top_k: int, filters: Any
    ) -> list[tuple[Results, Known]]:
        """Return the results of each question, and what is known of it."""
        limit, branches = max(self._known, top_k), self._branches
        depth, weights = max(top_k, FUSED), [1.0] * len(branches)
        is_fused = len(branches) > 1

        def rank(query: str, founds: Sequence[Found], read: Read) -> tuple[Results, Known]:
            lists = [found.scores for found in founds]
            fused = FusedIds(lists[0], lists, 1.0)
            if is_fused:
                firsts = [dict(islice(scores.items(), depth)) for scores in lists]
                fused = fuse_ids(firsts, "relative", weights)
            ids, scores = [*fused.scores], [*fused.scores.values()]
            known = ids[:limit]
            others = scores[limit - 1] if len(known) == limit else -np.inf
            if is_fused:
                others = scores[limit] if len(ids) > limit else 0.0
                best = {next(iter(found)) for found in lists if found}
                known += [node_id for node_id in ids[limit:] if node_id in best]
            results = read(fused, known, None)
            nodes = [result.node for result in results]
            if top_k >= self._known:  # more than there is room for: the next change may be one
                return results, Known((), top_k, np.inf, lists)
            return results[:top_k], Known(nodes, top_k, others, lists)

        limits = [depth + _SPARE if is_fused else limit] * len(branches)
        return run(joint_search(branches, rank, questions, limits, filters))


_REMOVED = 16  # answers that are removed before what is known of them is dropped

_BATCH_SIZE = 256  # answers that are checked before another thread may write


def _branches(retriever: Retriever) -> list[Retriever]:
    """Return the searches by words and by vectors that a retriever fuses, or itself."""
    if type(retriever.similarity) is not Auto:
        return [retriever]
    own = retriever.graphs, retriever.group_name
    settings = [RetrieverSettings(embed_keys=[key]) for key in retriever.embed_keys]
    branches = [
        Retriever(*own, "bm25", filters=retriever.filters),
        *(Retriever(*own, "cosine", filters=retriever.filters, settings=s) for s in settings),
    ]
    restriction = restriction_of(retriever)
    return branches if restriction is None else [b.restricted(restriction) for b in branches]
