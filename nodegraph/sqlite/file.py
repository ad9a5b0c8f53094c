"""The file of a graph: who reads it, and who writes."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import StoreError
from ..journal import GroupState
from ..node import Node
from .connection import Connection
from .schema import MIGRATIONS

_OF_OTHER_PROCESSES: list[object] = []  # closing them here would disturb their makers


_CHECKPOINT_WAIT = 500  # milliseconds

_CACHED = 4_000_000  # characters of nodes, above which a cache is begun anew


@dataclass(slots=True)
class StateCache:
    """Hold what was read of one state of a file, for all threads.

    Attributes:
        state: The number of the state.
        groups: Key and state of each group, by name.
        nodes: Nodes by key, None for those that are not there.
        size: The characters of the nodes, about.
    """

    state: int = -1
    groups: dict[str, tuple[int, GroupState]] = field(default_factory=dict)
    nodes: dict[bytes | str, Node | None] = field(default_factory=dict)
    size: int = 0


class GraphFile:
    """Give each thread a connection to read by, and one thread at a time the one to write by.

    Args:
        path: The file.
        timeout: Seconds to wait for another process.
        on_undone: Called when a transaction was undone, whose keys may come again.
    """

    def __init__(self, path: Path, timeout: float, on_undone: Callable[[], None]) -> None:
        self.path = path
        self._timeout = timeout
        self._on_undone = on_undone
        if path.is_dir():
            raise StoreError(f"{path} is a folder; a graph is kept in a file: give it a name")
        self._set_up()
        _ = self.db  # opened now, so that what is wrong with it is said now
        _FILES.add(self)

    def _set_up(self) -> None:
        self._pid = os.getpid()
        self._local = threading.local()
        self._mutex = threading.RLock()
        self._writer: Connection | None = None
        self._owner = 0  # the thread whose transaction is open
        self._touched = False
        self._is_ready = False  # the file has today's tables
        self._readers: weakref.WeakSet[Connection] = weakref.WeakSet()
        self._listing = threading.Lock()  # held by who adds a reader, or lists them
        self._newest: Connection | None = None  # reads what is newer than a thread's snapshot
        self._cache = StateCache()
        self._process = ProcessLock(self.path.with_name(self.path.name + ".lock"), self._timeout)

    def _follow_fork(self) -> None:
        """In a process that was forked off, leave the connections to the one that made them."""
        if self._pid != os.getpid():
            _OF_OTHER_PROCESSES.append((self._writer, self._local, self._readers, self._process))
            self._set_up()

    def let_go(self) -> None:
        """Close what this thread may close without disturbing anybody; it is opened again."""
        if self._pid != os.getpid() or not self._mutex.acquire(blocking=False):
            return
        try:
            if self._owner:
                return
            reader: Connection | None = getattr(self._local, "reader", None)
            for connection in (self._writer, self._newest, reader):
                if connection is not None:
                    connection.retire()
        finally:
            self._mutex.release()

    @property
    def frozen(self) -> bool:
        """Whether the graph can only be read, since its file or folder can't be written to."""
        if not self.path.exists():
            return False
        return not (os.access(self.path, os.W_OK) and os.access(self.path.parent, os.W_OK))

    @property
    def db(self) -> Connection:
        """This thread's connection: the writing one inside its transaction."""
        if self._owner == threading.get_ident() and self._writer is not None:
            return self._writer
        self._follow_fork()
        reader: Connection | None = getattr(self._local, "reader", None)
        if reader is not None and reader.retired and not reader.in_transaction:
            reader.close()  # a statement may have opened it again
            reader = None
        if reader is None:
            reader = self._local.reader = self._reading_connection()
        return reader

    def _reading_connection(self) -> Connection:
        frozen = self.frozen
        if not frozen and not self._is_ready:
            self._writing_connection()  # makes the tables
        reader = Connection(self.path, write=False, timeout=self._timeout, frozen=frozen)
        if frozen and reader.version() < len(MIGRATIONS):
            raise StoreError(
                f"{self.path} was written by an older nodekin and can't be written to here; "
                "open it once where it can"
            )
        with self._listing:
            self._readers.add(reader)
        return reader

    def _writing_connection(self) -> Connection:
        with self._mutex:
            if self._writer is not None and self._writer.retired:
                if self._writer.in_transaction:
                    return self._writer
                self._writer = None
            if self._writer is None:
                if self.frozen:
                    raise StoreError(
                        f"{self.path} can only be read, since it or its folder can't be written "
                        "to; nothing was changed"
                    )
                if not self.path.parent.is_dir():
                    raise StoreError(f"there is no folder {self.path.parent}; make it first")
                writer = Connection(self.path, write=True, timeout=self._timeout)
                writer.migrate()
                self._writer, self._is_ready = writer, True
            return self._writer

    @contextmanager
    def snapshot(self) -> Iterator[int]:
        """Read one state in this thread until the block ends; give its number."""
        db = self.db
        if db.in_transaction:
            own = self._owner != threading.get_ident()
            state: int | None = getattr(self._local, "state", None) if own else None
            yield self._state(db) if state is None else state
            return
        try:
            db.run("BEGIN")
            state = self._local.state = self._state(db)
            self._local.cache = self._cache_of(state)
            yield state
        finally:
            self._local.cache = self._local.state = None
            db.roll_back()
            if db.retired:
                db.close()

    @staticmethod
    def _state(db: Connection) -> int:
        (number,) = db.row("SELECT number FROM state") or (0,)
        return int(number)

    def _cache_of(self, state: int) -> StateCache:
        """Return what has been read of a state: as long as nothing changes, by earlier snapshots.

        Not in a variable of the thread, which would keep nodes, and so their graph, for good.
        """
        cache = self._cache
        if cache.state != state or cache.size > _CACHED:
            cache = self._cache = StateCache(state)
        return cache

    def snapshot_cache(self) -> StateCache | None:
        """Return the cache of what this thread's snapshot may read; None outside of one."""
        if self._owner == threading.get_ident():
            return None
        cache: StateCache | None = getattr(self._local, "cache", None)
        return cache

    @contextmanager
    def latest(self) -> Iterator[Connection]:
        """Give a connection that sees what came since this thread's snapshot, too.

        Not the writing one, for which this thread would have to wait, in a snapshot for which
        others wait.
        """
        db = self.db
        if db.in_transaction and self._owner != threading.get_ident() and not self.frozen:
            newest = self._newest
            if newest is None or newest.retired:
                newest = self._newest = self._reading_connection()
            yield newest
        else:
            yield db

    def writing(self) -> AbstractContextManager[None]:
        """Keep other processes from writing."""
        self._follow_fork()
        self._writing_connection()
        return self._process.locked()

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Take all writes of this thread as one."""
        self._follow_fork()
        with self._mutex:
            writer = self._writing_connection()
            if self._owner:
                yield writer
                return
            try:
                writer.run("BEGIN IMMEDIATE")
                self._owner, self._touched = threading.get_ident(), False
                yield writer
                if self._touched:
                    writer.run("UPDATE state SET number = number + 1")
                writer.run("COMMIT")
            except BaseException:
                writer.roll_back()
                self._on_undone()
                raise
            finally:
                self._owner = 0
                if writer.retired:
                    writer.close()

    def touch(self) -> None:
        """Let the transaction change the number of the state."""
        self._touched = True

    def compact(self) -> None:
        """Write the file anew, without what was removed."""
        with self._mutex:
            writer = self._writing_connection()
            writer.run("VACUUM")
            # Nobody may write while it waits for readers. What they keep it from is done by a
            # later write, or when the file is closed.
            writer.run(f"PRAGMA busy_timeout = {_CHECKPOINT_WAIT}")
            try:
                writer.run("PRAGMA wal_checkpoint(TRUNCATE)")
            finally:
                writer.run(f"PRAGMA busy_timeout = {int(self._timeout * 1000)}")

    def close(self) -> None:
        """Close all connections; the next use opens new ones.

        What another thread is reading is closed when that thread is done with it.
        """
        self._follow_fork()
        with self._mutex:
            self._cache, self._is_ready = StateCache(), False
            with self._listing:
                readers = list(self._readers)
                self._readers.clear()
            for reader in readers:
                reader.retire()
            if self._writer is not None:
                self._writer.retire()


_FILES: weakref.WeakSet[GraphFile] = weakref.WeakSet()


def _let_go_of_files() -> None:
    """Close the files before this process forks.

    SQLite notes in memory which locks a process has on a file. A child that inherits the note
    never takes them, so that whoever closes the file last, as he thinks, deletes the write-ahead
    log while the child writes to it.
    """
    for file in list(_FILES):
        file.let_go()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(before=_let_go_of_files)

_PERIOD = 0.01  # seconds between attempts: one that writes often would keep slower ones out


class ProcessLock:
    """Let one process in at a time; it is free again when the process ends, however it ends.

    Args:
        path: A file beside what is locked.
        timeout: Seconds to wait.
    """

    def __init__(self, path: Path, timeout: float) -> None:
        self._path = path
        self._timeout = timeout
        self._mutex = threading.Lock()
        self._holders = 0
        self._pid = os.getpid()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock, beside other threads of this process.

        Raises:
            StoreError: If another process has held it for too long.
        """
        self._acquire()
        try:
            yield
        finally:
            with self._mutex:
                self._holders -= 1
                if not self._holders:
                    self._lock.release()

    def _acquire(self) -> None:
        from filelock import FileLock, Timeout

        with self._mutex:
            if not self._holders:
                self._lock = FileLock(self._path, timeout=self._timeout, thread_local=False)
                try:
                    self._lock.acquire(poll_interval=_PERIOD)
                except Timeout:
                    raise StoreError(
                        f"another process has been writing to {self._path.with_suffix('')} for "
                        f"{self._timeout:g} seconds; wait for it, or allow more time: "
                        "SQLiteStore(path, timeout=...)"
                    ) from None
                except OSError as error:
                    raise StoreError(
                        f"{self._path} can't be written, which keeps others from writing at the "
                        f"same time: {error}; nothing was changed"
                    ) from error
            self._holders += 1
