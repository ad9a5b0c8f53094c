"""What an engine beside the store has of a group; the store knows what that is."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from hashlib import blake2b
from secrets import token_hex
from typing import Any, ClassVar, Generic, TypeVar

from ...nodegraph.errors import StoreError, TransientStoreError
from ...nodegraph.hashing import digest
from ...nodegraph.locking import Lock, retried
from ...nodegraph.search_tables import StaleSnapshotError, TableState, is_engine_disabled
from ...nodegraph.store import NodeStore
from .index_engine import EngineUnavailableError, IndexEngine, MissingCollectionError, ValueNumbers

T = TypeVar("T")

RowT = TypeVar("RowT")

EngineT = TypeVar("EngineT", bound=IndexEngine)

_log = logging.getLogger(__name__)

_KIND = "index engine"  # of the values that say what is in an engine

_OUTDATED = 86_400  # seconds after which nobody is taken to update a table

_PREFIX = "nodekin_"  # of collections, and of values of the store that are about one

_PATIENCE = 3  # seconds after which a call is not repeated: a client may have waited long

BATCH = 1_000  # rows that are written at once

_State = tuple[int, tuple[str, ...]]  # a revision, and what the texts depend on beside the nodes


@dataclass(frozen=True, slots=True)
class EngineCollection:
    """A collection of the engine, by the name that it was made with.

    Attributes:
        name: Its name.
        dimension: How many numbers its vectors have; 1 for words.
        has_hnsw: Whether a graph of the vectors finds the nearest.
        token: What the engine says of itself if it has all that was written.
        position: Which writes a search must see.
        size: How many nodes it has.
        average: Of words: by which average length impacts were computed.
        length: How many terms all nodes have together.
        longest: How many the longest has, or had.
        terms: The highest number of a term.
    """

    name: str
    dimension: int
    has_hnsw: bool
    version_token: str = ""
    position: int = 0
    size: int = 0
    average: float = 0.0
    length: int = 0
    longest: int = 0
    terms: int = 0


@dataclass(frozen=True, slots=True)
class TableRecord:
    """What the store knows of a table.

    Attributes:
        writer: Names who is updating, or was last.
        state: What the collection contains; None while there is no whole one.
        target: What it is about to contain, from before the first change until ``state`` is that.
        next_token: The token that the engine has from then on.
        collection: What is searched; None where there is no row.
        building: What is to take its place, while it is being filled.
        owner: A hash of where the store and the engine are: a copy of the store has other tables.
        group: The group.
        seen: When it was last updated, in seconds since 1970.
    """

    writer: str = ""
    state: _State | None = None
    target: _State | None = None
    next_token: str = ""
    collection: EngineCollection | None = None
    building: EngineCollection | None = None
    owner: str = ""
    group: str = ""
    seen: float = 0.0


class EngineTable(Generic[RowT, EngineT]):
    """Keep a collection of an engine beside the store in step with a group.

    ``EngineVectors`` and ``EngineWords`` say what a row is, and search. The store is the truth,
    and has a record of what the engine has: the revision up to which a collection was written,
    and, while it is being written, the one that it will have. Who searches compares what has
    changed since beside it; what was interrupted is written again, row by row the same. A whole
    group is written into a new collection, which takes the old one's place when it is complete. A
    collection has a token that changes with every update: where the engine has another one, or
    none (an older backup, a new disk), or less rows than it should (a crash), the collection is
    made again. That is seen when a process opens it, and after each failure of the engine; how
    many rows there are, after each update, too.

    Args:
        store: The graph's store.
        engine: The engine.
        group: The group.
        names: What tells apart the tables of a group.
    """

    what: ClassVar[str] = "rows"
    """What messages call the rows."""

    def __init__(self, store: NodeStore, engine: EngineT, group: str, *names: str) -> None:
        self._store = store
        self._engine = engine
        self._group = group
        self._key = digest(store.place, engine.label, group, *names)
        self._updating = Lock(f"another thread that writes {group!r} to the engine")
        self._writer = ""  # names this table while it is updating
        self._filling = False  # whether a whole group is being written
        self._checked: set[str] = set()  # collections whose token was right
        self._numbers = ValueNumbers(store)
        self._seen = threading.local()  # the record that this thread reads

    # What it contains

    def state(self) -> TableState | None:
        """Return what the table contains, of what this thread's state of the graph has.

        Raises:
            StaleSnapshotError: If it contains a later state, or is about to.
            EngineUnavailableError: If the engine can't be reached.
        """
        record = self._record()
        self._seen.record = record
        if record.state is None or not self._is_whole(record):
            return None
        revision = self._store.revision(self._group)
        later = record.target or record.state
        if later[0] > revision and is_engine_disabled():
            return None
        if later[0] > revision:
            raise StaleSnapshotError(
                f"{self._engine.label} has a later state of group {self._group!r} than this thread "
                "reads; another process has changed the graph: search again"
            )
        collection = record.collection
        size, dimension = (collection.size, collection.dimension) if collection else (0, 0)
        return TableState(*record.state, size, dimension)

    def _is_whole(self, record: TableRecord) -> bool:
        """Return whether the engine has the collection as it was written last."""
        collection = record.collection
        if collection is None or collection.name in self._checked:
            return True
        token = self._call(partial(self._engine.version_token, collection.name))
        tokens = (
            [collection.version_token, record.next_token]
            if record.target
            else [collection.version_token]
        )
        if token not in tokens or not (record.target or self._has_all(collection)):
            return False
        self._checked.add(collection.name)
        return True

    # Writing

    @contextmanager
    def updating(self, *, wait: bool = True) -> Iterator[bool]:
        """Keep others from updating the table, by a lock of the store."""
        with self._updating.held(wait=wait) as first:
            if not first:
                yield False
                return
            with self._store.exclusive(f"index {self._key}", wait=wait) as free:
                if free:
                    self._writer, self._filling = token_hex(8), False
                    record = replace(self._record(), writer=self._writer, group=self._group)
                    owner = _owner(self._store, self._engine)
                    self._put(replace(record, owner=owner, seen=time.time()))
                yield free

    def write(
        self, removed: Collection[str], rows: Sequence[RowT], state: TableState | None
    ) -> None:
        """Remove rows, then put rows; see the class for what is searched meanwhile.

        Raises:
            StoreError: If the engine can't store a row, or another process has taken over.
            EngineUnavailableError: If the engine can't be reached; what was written so far is
                written again the next time.
        """
        record = self._own_record()
        if state is None:  # a whole group, batch by batch
            self._fill(record, removed, rows)
        elif self._filling or not state.dimension:
            self._finish(record, state)
        else:
            self._update(record, removed, rows, state)

    def _update(
        self, record: TableRecord, removed: Collection[str], rows: Sequence[RowT], to: TableState
    ) -> None:
        target = to.revision, to.version
        collection = record.collection
        if collection is None:  # nothing was there, and nothing has come
            self._put(replace(record, state=target))
            return
        token = token_hex(8)
        record = replace(record, target=target, next_token=token)
        self._put(record)  # from here on, who reads an earlier state does without the table
        try:
            self._call(partial(self._engine.set_version_token, collection.name, token))
            self._change(collection, removed, rows)
            collection = self._completed(collection, token)
            if not self._is_complete(collection, to.revision):
                raise MissingCollectionError
        except MissingCollectionError:
            self._put(replace(record, state=None, target=None, collection=None))
            self._drop(collection)
            return
        self._own_record()
        with self._store.transaction():
            self._save()
            self._put(replace(record, state=target, target=None, collection=collection))

    def _fill(self, record: TableRecord, removed: Collection[str], rows: Sequence[RowT]) -> None:
        building, self._filling = record.building, True
        if building is None:
            if not rows:
                return
            building = self._created(rows)
            self._put(replace(record, building=building))
        try:
            self._change(building, removed, rows)
        except MissingCollectionError:
            self._put(replace(record, building=None))
            self._drop(building)
            raise TransientStoreError(
                f"{self._engine.label} has lost the {self.what} of group {self._group!r} while "
                "they were written; try again"
            ) from None
        self._own_record()

    def _finish(self, record: TableRecord, to: TableState) -> None:
        """Let what was filled take the place of what is searched."""
        old, unfinished = record.collection, None if self._filling else record.building
        new = record.building if self._filling else None  # there is no row
        if new is not None:
            new = self._completed(new, token_hex(8))
            self._checked.add(new.name)
        full = (to.revision, to.version)
        self._own_record()
        with self._store.transaction():
            self._save()
            self._put(replace(record, state=full, target=None, collection=new, building=None))
        self._drop(old)
        self._drop(unfinished)

    def _created(self, rows: Sequence[RowT]) -> EngineCollection:
        """Make a new collection for rows like these."""
        raise NotImplementedError

    def _change(
        self, collection: EngineCollection, removed: Collection[str], rows: Sequence[RowT]
    ) -> None:
        """Remove rows of the engine by the ids of their nodes, then put rows."""
        raise NotImplementedError

    def _completed(self, collection: EngineCollection, token: str) -> EngineCollection:
        """Return a collection as it is after the last write."""
        raise NotImplementedError

    def _has_all(self, collection: EngineCollection) -> bool:
        """Return whether the engine has as many rows as after the last update."""
        return True

    def _is_complete(self, collection: EngineCollection, revision: int) -> bool:
        """Return whether a collection has as many rows as it should, after an update to a revision.

        It is taken for complete where others have changed the group since.
        """
        return True

    def _save(self) -> None:
        """Write what else the store has, in one transaction with the record; nothing here."""

    def _new_name(self) -> str:
        return f"{_PREFIX}{self._key[:24]}_{token_hex(8)[:12]}"

    def _delete(self, collection: EngineCollection, keys: Sequence[str]) -> None:
        for start in range(0, len(keys), BATCH):
            part = keys[start : start + BATCH]
            self._call(partial(self._engine.delete, collection.name, part))

    def clear(self) -> None:
        """Have everything written anew: rows of another kind are to come."""
        record = self._own_record()
        self._put(replace(record, state=None, target=None, collection=None, building=None))
        self._drop(record.collection)
        self._drop(record.building)

    def _drop(self, collection: EngineCollection | None) -> None:
        if collection is None:
            return
        self._call(partial(self._engine.drop, collection.name))

    def close(self) -> None:
        """Remove what the engine has of a graph that doesn't last."""
        if self._store.place:
            return
        record = self._record()
        self._put(TableRecord())
        with suppress(StoreError):  # an engine that is gone needs none of it
            self._drop(record.collection)
            self._drop(record.building)

    # Searching

    def values(
        self, field: str | None, after: int, texts: Collection[str] | None = None
    ) -> Iterator[tuple[int, Any]]:
        """Yield the values of a field with their numbers."""
        return self._numbers.values(field, after, texts)

    def _searched(self) -> EngineCollection:
        collection: EngineCollection | None = self._seen.record.collection
        if collection is None:
            raise RuntimeError(f"group {self._group!r} has no rows to search")
        return collection

    def _read(self, work: Callable[[], T]) -> T:
        """Return what a call returns if nobody has changed the table meanwhile.

        Raises:
            StaleSnapshotError: If somebody has.
        """
        seen: TableRecord = self._seen.record
        try:
            result = self._call(work)
        except MissingCollectionError:
            self._checked.discard(self._searched().name)
            raise self._changed() from None
        now = self._record()
        if (now.state, now.target, now.collection) != (seen.state, seen.target, seen.collection):
            raise self._changed()
        return result

    def _changed(self) -> StaleSnapshotError:
        return StaleSnapshotError(
            f"another process has changed the {self.what} of group {self._group!r} in "
            f"{self._engine.label} meanwhile; search again"
        )

    # The record and the engine

    def _record(self) -> TableRecord:
        stored = self._store.get_values(_KIND, [self._key]).get(self._key)
        return TableRecord() if stored is None else _read_record(stored)

    def _own_record(self) -> TableRecord:
        """Return the record, if nobody else has begun to update the table."""
        record = self._record()
        if record.writer != self._writer:
            # What was just written may have replaced later rows of theirs.
            self._put(replace(record, state=None, target=None))
            raise TransientStoreError(
                f"the connection to the store was lost, and another process updates group "
                f"{self._group!r} in {self._engine.label}; try again"
            )
        return record

    def _put(self, record: TableRecord) -> None:
        self._store.put_values(_KIND, {self._key: json.dumps(asdict(record)).encode()})

    def _call(self, work: Callable[[], T]) -> T:
        """Return what a call of the engine returns, made again where it could not for now."""

        def attempt() -> T:
            try:
                return work()
            except TransientStoreError:
                self._checked.clear()  # it may have been restarted, and have lost something
                raise

        return retried(attempt, _PATIENCE)


def drop_outdated(store: NodeStore, engine: IndexEngine) -> None:
    """Drop the tables that are behind the graph, and that no process has updated for a day.

    They are those of another model, or of a group that is gone; one that is wanted after all is
    made again. An engine that can't be reached keeps them until the next time.
    """
    for key, stored in store.get_values(_KIND).items():
        record = _read_record(stored)
        if record.owner != _owner(store, engine) or time.time() - record.seen < _OUTDATED:
            continue
        if record.state is not None and record.state[0] == store.revision(record.group):
            continue
        with store.exclusive(f"index {key}", wait=False) as free:
            if not free or store.get_values(_KIND, [key]).get(key) != stored:
                continue
            names = [c.name for c in (record.collection, record.building) if c is not None]
            try:
                for name in names:
                    retried(partial(engine.drop, name), _PATIENCE)
            except EngineUnavailableError as error:
                _log.warning("what is outdated was left in the engine: %s", error)
                return
            store.delete_values(_KIND, [key])


def _owner(store: NodeStore, engine: IndexEngine) -> str:
    return digest(store.place, engine.label)


def delete_unused(store: NodeStore) -> None:
    """Delete what a store has of the words of collections that no table has any more."""
    records = [_read_record(stored) for stored in store.get_values(_KIND).values()]
    used = {c.name for record in records for c in (record.collection, record.building) if c}
    for kind in store.kinds():
        if kind.startswith(_PREFIX) and kind.partition(" ")[0] not in used:
            store.delete_values(kind)


_RENAMED = {"linked": "has_hnsw", "mark": "version_token", "next_mark": "next_token"}
"""Fields of records, as earlier versions wrote them."""


@lru_cache(64)
def _read_record(stored: bytes) -> TableRecord:
    fields = json.loads(
        stored, object_pairs_hook=lambda pairs: {_RENAMED.get(n, n): v for n, v in pairs}
    )
    for name in ("state", "target"):
        if fields[name] is not None:
            revision, version = fields[name]
            fields[name] = revision, tuple(version)
    for name in ("collection", "building"):
        if fields[name] is not None:
            fields[name] = EngineCollection(**fields[name])
    return TableRecord(**fields)


def key_of(node_id: str) -> str:
    """Return by what an engine knows a node: 32 hexadecimal digits."""
    return blake2b(node_id.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def to_ascii(node_id: str) -> str:
    """Return an id as an engine stores it."""
    return json.dumps(node_id)[1:-1]


def from_ascii(stored: str) -> str:
    """Return the id that is stored so."""
    return str(json.loads(f'"{stored}"'))
