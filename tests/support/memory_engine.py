"""An engine in memory, that can be lost, set back, switched off and interrupted."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nodekin.adapters.engines.base_engine import BaseEngine
from nodekin.adapters.engines.index_engine import (
    EngineRow,
    EngineUnavailableError,
    MissingCollectionError,
    RowSelection,
    WordHits,
    WordRow,
)
from nodekin.nodegraph.search_tables import Nearest, ValueMatch


@dataclass
class Collected:
    """A collection."""

    has_hnsw: bool
    version_token: str | None = None
    rows: dict[str, Any] = field(default_factory=dict)


class MemoryEngine(BaseEngine):
    """Search by comparing all, and words, if told to, by adding up all.

    Attributes:
        searches_words: Whether it does.
        word_slack: What it says of its scores.
        before: Is called with the name of a method before each call.
        collections: By name.
    """

    label = "Memory at memory://"
    max_results = 1_000

    def __init__(self, hnsw_from: int | None = None, *, words: bool = False) -> None:
        self.hnsw_from = hnsw_from
        self.searches_words = words
        self.word_slack = 1.0
        self.collections: dict[str, Collected] = {}
        self.before: Callable[[str], None] = lambda name: None
        self.calls: list[str] = []

    def backup(self) -> dict[str, Collected]:
        return copy.deepcopy(self.collections)

    def switch_off(self) -> None:
        def refuse(name: str) -> None:
            raise EngineUnavailableError(f"{self.label} can't be reached: it is off")

        self.before = refuse

    def switch_on(self) -> None:
        self.before = lambda name: None

    def _begin(self, name: str) -> None:
        self.calls.append(name)
        self.before(name)

    def _get(self, name: str) -> Collected:
        if name not in self.collections:
            raise MissingCollectionError(f"{self.label} has no collection {name}")
        return self.collections[name]

    def create(self, collection: str, dimension: int, *, has_hnsw: bool) -> None:
        self._begin("create")
        self.collections.setdefault(collection, Collected(has_hnsw))

    def drop(self, collection: str) -> None:
        self._begin("drop")
        self.collections.pop(collection, None)

    def version_token(self, collection: str) -> str | None:
        self._begin("mark")
        return self._get(collection).version_token if collection in self.collections else None

    def set_version_token(self, collection: str, token: str) -> int:
        self._begin("set_version_token")
        self._get(collection).version_token = token
        return 0

    def put(self, collection: str, rows: Sequence[EngineRow]) -> None:
        stored = self._get(collection).rows
        for row in rows:  # so that an interruption may leave half of them
            self._begin("put")
            stored[row.key] = row

    def delete(self, collection: str, keys: Sequence[str]) -> None:
        stored = self._get(collection).rows
        for key in keys:
            self._begin("delete")
            stored.pop(key, None)

    def count(self, collection: str, match: ValueMatch | None, position: int) -> int:
        self._begin("count")
        return sum(matches(row, match) for row in self._get(collection).rows.values())

    def nearest(
        self, collection: str, query: np.ndarray, limit: int, selection: RowSelection, exact: bool
    ) -> Nearest:
        self._begin("nearest")
        rows = [r for r in self._get(collection).rows.values() if matches(r, selection.match)]
        rows = [row for row in rows if row.key not in selection.without]
        rows.sort(key=lambda row: -float(row.vector @ query))
        best = rows[:limit]
        vectors = np.array([row.vector for row in best], np.float32).reshape(len(best), len(query))
        orders = np.array([row.order for row in best], np.int64)
        return Nearest([row.id for row in best], orders, vectors)

    def rows(
        self, collection: str, match: ValueMatch | None, position: int
    ) -> Iterator[Sequence[EngineRow]]:
        self._begin("rows")
        rows = [row for row in self._get(collection).rows.values() if matches(row, match)]
        for begin in range(0, len(rows), 7):
            yield rows[begin : begin + 7]

    def create_words(self, collection: str) -> None:
        self._begin("create")
        self.collections.setdefault(collection, Collected(False))

    def put_words(self, collection: str, rows: Sequence[WordRow]) -> None:
        stored = self._get(collection).rows
        for row in rows:
            self._begin("put")
            assert len(row.terms) == len(row.impacts) > 0
            assert row.terms[0] > 0
            assert (np.diff(row.terms) > 0).all()
            assert (row.impacts > 0).all()
            stored[row.key] = row

    def search_words(
        self,
        collection: str,
        query: Mapping[int, float],
        limit: int | None,
        selection: RowSelection,
    ) -> WordHits:
        self._begin("nearest")
        assert query
        scores: dict[str, float] = {}
        for row in self._get(collection).rows.values():
            shared = [*query.keys() & {*row.terms.tolist()}]
            if shared and row.key not in selection.without and matches(row, selection.match):
                impacts = dict(zip(row.terms.tolist(), row.impacts.tolist(), strict=True))
                scores[row.key] = sum(query[term] * impacts[term] for term in shared)
        best = sorted(scores, key=lambda key: (-scores[key], key))[:limit]
        return WordHits(best, [scores[key] for key in best])

    def close(self) -> None:
        pass


def matches(row: EngineRow | WordRow, match: ValueMatch | None) -> bool:
    if match is None:
        return True
    if match.join == "values":
        return not {*match.value_ids}.isdisjoint(row.value_ids)
    parts = [matches(row, part) for part in match.parts]
    return not parts[0] if match.join == "not" else (all if match.join == "and" else any)(parts)
