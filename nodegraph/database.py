"""What stores in databases share: connections by thread, states, transactions, forks."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from .codec import encode
from .journal import Journal
from .locking import Lock, release_after_fork
from .node import Node
from .store import NodeStore

C = TypeVar("C")

_CACHE_SIZE = 4_000_000  # characters of nodes, above which a new cache is started

_NODE_SIZE = 500  # characters that would take as much memory as a node without its text, about

_OF_OTHER_PROCESSES: list[object] = []  # closing them here would disturb their makers


@dataclass(slots=True)
class StateCache:
    """Hold what was read of one state, for all threads.

    Attributes:
        state: The number of the state.
        groups: What the journal has read of groups.
        nodes: Nodes by id, None for those that do not exist.
        size: The characters of the nodes, about.
    """

    state: int = -1
    groups: dict[Any, Any] = field(default_factory=dict)
    nodes: dict[str, Node | None] = field(default_factory=dict)
    size: int = 0


@dataclass(frozen=True, slots=True)
class Snapshot(Generic[C]):  # a NamedTuple can't be generic in Python 3.10
    """The connection by which a thread reads one state."""

    connection: C
    state: int
    cache: StateCache


class Database(ABC, Generic[C]):
    """Let each thread read by a connection, and one thread at a time write.

    In a process that is forked off, connections are left to the process that opened them.
    """

    def __init__(self) -> None:
        self._set_up()
        release_after_fork(self)

    def _set_up(self) -> None:
        """Set what belongs to one process."""
        self._mutex = Lock("another thread that writes to the store")
        self._owner = 0  # the thread whose transaction is open
        self._touched: bool  # whether the transaction gives the state a new number
        self._groups: dict[Any, Any] = {}  # what the journal has read and written in it
        self._writer: C | None = None
        # By thread: an ident is used again when its thread has ended.
        self._snapshots: dict[threading.Thread, Snapshot[C]] = {}
        self._cache = StateCache()

    def after_fork(self) -> None:
        """Leave what is open to the process that opened it."""
        _OF_OTHER_PROCESSES.append(self.__dict__.copy())
        self._set_up()

    @abstractmethod
    def _start_reading(self) -> tuple[C, int]:
        """Start a transaction that reads; return its connection, and the number of its state."""

    @abstractmethod
    def _stop_reading(self, connection: C) -> None:
        """End a transaction that reads."""

    @abstractmethod
    def _state(self, connection: C) -> int:
        """Return the number of the state that a connection sees."""

    @abstractmethod
    def _start_writing(self) -> C:
        """Start a transaction that writes, by ``_writer``, which is returned."""

    @abstractmethod
    def _commit(self, connection: C, touched: bool) -> None:
        """Commit a transaction; give the state a new number if it was touched."""

    @abstractmethod
    def _undo(self) -> None:
        """Undo the transaction of ``_writer``, if one is open."""

    @abstractmethod
    def _stop_writing(self) -> None:
        """Release the connection that has written."""

    @abstractmethod
    def writing(self) -> AbstractContextManager[object]:
        """Keep other processes from writing."""

    @abstractmethod
    def close(self) -> None:
        """Close all connections; the next use opens new ones.

        What another thread is reading is closed when that thread is done with it.
        """

    @contextmanager
    def snapshot(self) -> Iterator[int]:
        """Read one state in this thread until the block ends; give its number."""
        thread = threading.current_thread()
        if self._owner == threading.get_ident() and self._writer is not None:
            yield self._state(self._writer)
            return
        if (outer := self._snapshots.get(thread)) is not None:
            yield outer.state
            return
        connection, state = self._start_reading()
        snapshot = Snapshot(connection, state, self._cache_of(state))
        try:
            self._snapshots[thread] = snapshot
            yield state
        finally:
            # A generator may be closed by another thread, or in a process that was forked off.
            # Nothing is called before the deletion, since an interrupt comes after a call.
            if thread in self._snapshots and self._snapshots[thread] is snapshot:
                del self._snapshots[thread]
                self._stop_reading(connection)

    def _cache_of(self, state: int) -> StateCache:
        """Return what has been read of a state, also by earlier snapshots."""
        cache = self._cache
        if cache.state != state or cache.size > _CACHE_SIZE:
            cache = self._cache = StateCache(state)
        return cache

    def snapshot_cache(self) -> StateCache | None:
        """Return the cache of what this thread's snapshot may read; None outside of one."""
        snapshot = self._snapshots.get(threading.current_thread())
        if self._owner == threading.get_ident() or snapshot is None:
            return None
        return snapshot.cache

    def group_cache(self) -> dict[Any, Any] | None:
        """Return what the journal has read in this thread's transaction, or in its snapshot."""
        if self._owner == threading.get_ident():
            return self._groups
        cache = self.snapshot_cache()
        return None if cache is None else cache.groups

    @contextmanager
    def transaction(self) -> Iterator[C]:
        """Take all writes of this thread as one."""
        with self._mutex.held():
            if self._owner and self._writer is not None:
                yield self._writer
                return
            try:
                writer = self._start_writing()
                self._owner, self._touched, self._groups = threading.get_ident(), False, {}
                yield writer
                self._commit(writer, self._touched)
            except BaseException:
                self._undo()
                raise
            finally:
                self._owner = 0
                self._stop_writing()

    def in_transaction(self) -> bool:
        """Return whether this thread has a transaction open."""
        return self._owner == threading.get_ident()

    def touch(self) -> None:
        """Let the transaction change the number of the state."""
        self._touched = True


D = TypeVar("D", bound=Database[Any])


class DatabaseStore(NodeStore, Generic[D]):
    """Store a graph in a database; what subclasses share.

    Their public attributes are what they are opened with, again in other processes.
    """

    _database: D
    _journal: Journal

    def __init__(self) -> None:
        self._set_up()

    @abstractmethod
    def _set_up(self) -> None:
        """Set what is not pickled, at least ``_database`` and ``_journal``."""

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if not name.startswith("_")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._set_up()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.place!r})"

    @property
    def journal(self) -> Journal:
        """The revisions of the groups."""
        return self._journal

    def snapshot(self) -> AbstractContextManager[int]:
        """Read one state in this thread until the block ends."""
        return self._database.snapshot()

    def touch(self) -> None:
        """Change the number that ``snapshot`` returns."""
        self._database.touch()

    def writing(self) -> AbstractContextManager[object]:
        """Keep other processes from writing."""
        return self._database.writing()

    def transaction(self) -> AbstractContextManager[object]:
        """Take all writes of this thread as one."""
        return self._database.transaction()

    def in_transaction(self) -> bool:
        """Return whether this thread has a transaction open."""
        return self._database.in_transaction()

    def close(self) -> None:
        """Close all connections; the next use opens them again."""
        self._database.close()

    def check(self, nodes: Sequence[Node]) -> None:
        """Try to write what is not text."""
        for node in nodes:
            if node.content is not node.text:
                encode(node.content)
            if node.own_metadata:
                encode(node.own_metadata)

    @abstractmethod
    def _read_nodes(self, ids: Collection[str]) -> Iterable[Node]:
        """Read those nodes that exist, in any order."""

    def get(self, ids: Iterable[str]) -> list[Node | None]:
        """Return nodes by id."""
        requested = list(ids)
        cache = self._database.snapshot_cache()  # a hit's parent is often read again and again
        nodes: dict[str, Node | None] = {} if cache is None else cache.nodes
        missing = [i for i in dict.fromkeys(requested) if i not in nodes]
        if missing:
            new: dict[str, Node | None] = dict.fromkeys(missing)
            with self.snapshot() if cache is None else nullcontext():
                new.update((node.id, node) for node in self._read_nodes(missing))
            nodes.update(new)
            if cache is not None:
                cache.size += sum(len(node.text) + _NODE_SIZE for node in new.values() if node)
        return [nodes[i] for i in requested]
