"""The vectors of a group in an engine beside the store."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from ...nodegraph.errors import TransientStoreError
from ...nodegraph.search_tables import Nearest, ValueMatch, VectorRow
from .engine_table import (
    BATCH,
    EngineCollection,
    EngineTable,
    TableRecord,
    from_ascii,
    key_of,
    random_name,
    to_ascii,
)
from .index_engine import (
    EngineRow,
    IndexEngine,
    MissingCollectionError,
    RowSelection,
    nearest_of,
)

if TYPE_CHECKING:
    from ...nodegraph.search_tables import Vectors

_log = logging.getLogger(__name__)

_TIMES = 3  # how often reading all rows is begun again


class EngineVectors(EngineTable[VectorRow, IndexEngine]):
    """Search the vectors of one group in an engine beside the store; see ``EngineTable``."""

    what: ClassVar[str] = "vectors"

    def dimension(self) -> int:
        """Return how many numbers the vectors have of the collection that is being filled."""
        building = self._record().building
        return building.dimension if building else 0

    def ids(self) -> Iterator[str]:
        """Yield the ids of all rows of the collection that is being filled; some twice, maybe."""
        building = self._record().building
        if building is not None:
            try:
                for rows in self._all_rows(building):
                    yield from (from_ascii(row.id) for row in rows)
            except MissingCollectionError:
                self._put(replace(self._record(), building=None))

    # Writing

    def _created(self, rows: Sequence[VectorRow]) -> EngineCollection:
        return self._make(len(rows[0].vector), self._store.count(self._group))

    def _make(self, dimension: int, size: int) -> EngineCollection:
        name = self._new_name()
        limit = self._engine.hnsw_from
        has_hnsw = limit is not None and size >= limit
        self._call(lambda: self._engine.create(name, dimension, has_hnsw=has_hnsw))
        return EngineCollection(name, dimension, has_hnsw)

    def _completed(self, collection: EngineCollection, token: str) -> EngineCollection:
        """Return a collection as it is after the last write."""
        position = self._call(lambda: self._engine.set_version_token(collection.name, token))
        size = self._call(lambda: self._engine.count(collection.name, None, position))
        return replace(collection, version_token=token, position=position, size=size)

    def _has_all(self, collection: EngineCollection) -> bool:
        return collection.size == self._call(
            partial(self._engine.count, collection.name, None, collection.position)
        )

    def _is_complete(self, collection: EngineCollection, revision: int) -> bool:
        expected = self._store.count(self._group)
        if collection.size == expected or self._store.revision(self._group) != revision:
            return True
        _log.warning(
            "%s has %s vectors of group %r in place of %s, and gets all of them again",
            *(self._engine.label, f"{collection.size:,}", self._group, f"{expected:,}"),
        )
        return False

    def _change(
        self, collection: EngineCollection, removed: Collection[str], rows: Sequence[VectorRow]
    ) -> None:
        new: dict[str, EngineRow] = {}
        for row, value_ids in zip(rows, self._numbers.assign(rows), strict=True):
            key = key_of(row.id)
            new[key] = EngineRow(key, to_ascii(row.id), row.order, value_ids, row.vector)
        gone = [key for key in map(key_of, removed) if key not in new]
        self._delete(collection, gone)
        put = list(new.values())
        for start in range(0, len(put), BATCH):
            self._call(partial(self._engine.put, collection.name, put[start : start + BATCH]))

    def build_hnsw(self) -> None:
        """Make a collection that has become large anew, with a graph of its vectors."""
        if not self._wants_hnsw(self._record()):
            return
        with self.updating(wait=False) as free:
            record = self._record()
            old = record.collection
            if not free or old is None or record.target or not self._wants_hnsw(record):
                return
            self._drop(record.building)
            new = self._make(old.dimension, old.size)
            record = replace(record, building=new)
            self._put(record)
            for rows in self._all_rows(old):
                self._call(partial(self._engine.put, new.name, rows))
            new = self._completed(new, random_name())
            self._own_record()
            self._put(replace(record, collection=new, building=None))
            self._drop(old)

    def _all_rows(self, collection: EngineCollection) -> Iterator[Sequence[EngineRow]]:
        """Yield all rows; from the first on again where the engine failed meanwhile."""
        name, position = collection.name, collection.position
        for _ in range(_TIMES):
            try:
                yield from self._engine.rows(name, None, position)
                return
            except TransientStoreError:
                self._call(
                    partial(self._engine.version_token, name)
                )  # which waits until it answers
        yield from self._engine.rows(name, None, position)

    def _wants_hnsw(self, record: TableRecord) -> bool:
        limit, collection = self._engine.hnsw_from, record.collection
        if limit is None or collection is None or record.state is None:
            return False
        return not collection.has_hnsw and collection.size >= limit

    # Searching

    def count(self, match: ValueMatch, most: int) -> int:
        """Return how many rows match."""
        collection = self._searched()
        count = partial(self._engine.count, collection.name, match, collection.position)
        return min(most, self._read(count))

    def nearest(
        self,
        query: Vectors,
        limit: int | None,
        match: ValueMatch | None,
        without: Collection[str],
        exact: bool,
    ) -> Iterator[Nearest]:
        """Yield the rows with the highest product with a query."""
        collection, engine = self._searched(), self._engine
        gone = [*map(key_of, without)]
        if limit is not None and limit <= engine.max_results:
            selection = RowSelection(match, gone, collection.position)
            search = partial(engine.nearest, collection.name, query, limit, selection, exact)
            rows = self._read(search)
            yield rows._replace(ids=[*map(from_ascii, rows.ids)])
            return
        left_out = frozenset(gone)

        def batches() -> list[Nearest]:
            stored: list[Nearest] = []
            for part in engine.rows(collection.name, match, collection.position):
                rows = [row for row in part if row.key not in left_out]
                ids, orders = [from_ascii(row.id) for row in rows], [row.order for row in rows]
                stored.append(nearest_of(ids, orders, [row.vector for row in rows], len(query)))
            return stored

        yield from self._read(batches)
