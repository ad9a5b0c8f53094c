"""The file of a graph: who reads it, and who writes."""

from __future__ import annotations

import errno
import os
import sys
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..database import Database, StateCache
from ..errors import DiskFullError, StoreError
from ..locking import FORK_WAIT, WAIT_LIMIT, Lock, mutex
from .connection import Connection, opening

_CHECKPOINT_WAIT = 100  # milliseconds

_FORK_ATTEMPT = 0.2  # seconds

_PERIOD = 0.01  # seconds between attempts: one that writes often would keep slower ones out

_TURN = 0.5  # seconds that threads of one process write in turns before others may


class GraphFile(Database[Connection]):
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
        super().__init__()
        _ = self.db  # opened now, so that what is wrong with it is said now
        _FILES.add(self)

    def _set_up(self) -> None:
        super()._set_up()
        self._local = threading.local()
        self._is_ready = False  # the file has today's tables
        self._readers: weakref.WeakSet[Connection] = weakref.WeakSet()
        self._opened: weakref.WeakSet[Connection] = weakref.WeakSet()
        self._listing = mutex()  # held by who adds a reader, or lists them
        self._newest: Connection | None = None  # reads what is newer than a thread's snapshot
        self._process = ProcessLock(self.path.with_name(self.path.name + ".lock"))
        # Threads that keep other processes from writing, each with how many blocks it is in.
        self._holders: Counter[int] = Counter()
        self._holding_lock = threading.RLock()
        self._holding = threading.Condition(self._holding_lock)
        self._since = 0.0  # when this process began to keep others from writing
        self._exclusive: dict[Path, tuple[Lock, ProcessLock]] = {}

    def after_fork(self) -> None:
        """Leave what is open to the process that opened it, its locks as well."""
        for lock in (self._process, *(lock for _, lock in self._exclusive.values())):
            lock.leave()
        super().after_fork()

    # Connections

    @property
    def db(self) -> Connection:
        """This thread's connection: the writing one inside its transaction."""
        thread = threading.current_thread()
        if self._owner == threading.get_ident() and self._writer is not None:
            return self._writer
        if (snapshot := self._snapshots.get(thread)) is not None:
            return snapshot.connection
        reader: Connection | None = getattr(self._local, "reader", None)
        if reader is not None and reader.retired:
            reader.close()  # a statement may have opened it again
            reader = None
        if reader is None:
            reader = self._local.reader = self._reading_connection()
        return reader

    def _reading_connection(self) -> Connection:
        if not self._is_ready:
            self._writing_connection()  # creates the tables
        reader = Connection(self.path, write=False, timeout=self._timeout, opened=self._opened)
        with self._listing:
            self._readers.add(reader)
        return reader

    def _writing_connection(self) -> Connection:
        with self._mutex.held():
            writer = self._writer
            if writer is None or (writer.retired and not writer.in_transaction):
                if not self.path.parent.is_dir():
                    raise StoreError(f"there is no folder {self.path.parent}; make it first")
                writer = Connection(
                    self.path, write=True, timeout=self._timeout, opened=self._opened
                )
                writer.create_tables()
                self._writer, self._is_ready = writer, True
            return writer

    # Reading

    def _start_reading(self) -> tuple[Connection, int]:
        db = self.db
        db.roll_back()  # what an interrupt has left
        try:
            db.run("BEGIN")
            return db, self._state(db)
        except BaseException:
            db.roll_back()
            raise

    def _stop_reading(self, connection: Connection) -> None:
        connection.roll_back()
        if connection.retired:
            connection.close()

    def _state(self, connection: Connection) -> int:
        (number,) = connection.row("SELECT number FROM state") or (None,)
        if not isinstance(number, int):
            raise connection.damaged("nothing counts its changes")
        return number

    def latest(self) -> Connection:
        """Return a connection that sees what came since this thread's snapshot, too.

        Not the writing one, for which this thread would have to wait, in a snapshot for which
        others wait.
        """
        if threading.current_thread() not in self._snapshots:
            return self.db
        newest = self._newest
        if newest is None or newest.retired:
            newest = self._newest = self._reading_connection()
        return newest

    # Writing

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Keep other processes from writing, beside other threads of this one."""
        self._writing_connection()
        thread = threading.get_ident()
        outer = self._holders[thread]
        try:
            try:
                with self._holding_lock:
                    if not outer:
                        self._hold()
                    self._holders[thread] = outer + 1
                yield
            finally:
                self._leave(thread, outer)
        finally:  # again, since an interrupt may have hit the first
            self._leave(thread, outer)

    @contextmanager
    def made_again(self) -> Iterator[None]:
        """Commit without waiting for the disk; see ``NodeStore.made_again``."""
        self._local.is_made_again = True
        try:
            yield
        finally:
            self._local.is_made_again = False

    def _leave(self, thread: int, outer: int) -> None:
        """Let other processes write if no thread keeps them from it any more."""
        with self._holding_lock:
            self._holders[thread] = outer
            self._holders += Counter()  # drops what has come to zero
            if not self._holders:
                self._process.release()
                self._holding.notify_all()

    def _hold(self) -> None:
        """Keep other processes from writing, for one more thread of this one."""
        if self._holders and time.monotonic() - self._since > _TURN:
            # Threads that write in turns would never let another process in.
            self._holding.wait_for(lambda: not self._holders, _TURN / 10)
            if not self._holders:
                time.sleep(2 * _PERIOD)
            self._since = time.monotonic()
        if not self._holders:
            if not self._process.acquire(self._timeout):
                raise StoreError(
                    f"another process has been writing to {self.path} for {self._timeout:g} "
                    "seconds; wait for it, or allow more time: SQLiteStore(path, timeout=...)"
                )
            self._since = time.monotonic()

    @contextmanager
    def exclusive(self, path: Path, wait: bool) -> Iterator[bool]:
        """Hold the lock of a file, by one thread of one process; see ``NodeStore.exclusive``."""
        if path not in self._exclusive:
            new = Lock(f"another thread that holds {path}"), ProcessLock(path)
            self._exclusive.setdefault(path, new)
        of_threads, of_processes = self._exclusive[path]
        is_nested = of_threads.is_mine()  # then the outer block holds, and releases
        with of_threads.held(wait=wait) as free:
            if is_nested:
                yield free
                return
            try:
                if free and wait and not of_processes.acquire(WAIT_LIMIT):
                    raise TimeoutError(f"waited {WAIT_LIMIT:g} seconds for who holds {path}")
                yield free and (wait or of_processes.acquire(0))
            finally:
                if free:
                    of_processes.release()

    def _start_writing(self) -> Connection:
        writer = self._writing_connection()
        writer.roll_back()  # what an interrupt has left
        writer.wait_for_disk(not getattr(self._local, "is_made_again", False))
        writer.run("BEGIN IMMEDIATE")
        try:
            writer.check_format()  # another process may have replaced the tables
        except BaseException:
            writer.roll_back()
            raise
        return writer

    def _commit(self, connection: Connection, touched: bool) -> None:
        if touched:
            connection.run("UPDATE state SET number = number + 1")
        connection.run("COMMIT")

    def _undo(self) -> None:
        if self._writer is not None:
            self._writer.roll_back()
        self._on_undone()

    def _stop_writing(self) -> None:
        if self._writer is not None and self._writer.retired:
            self._writer.close()

    def compact(self) -> None:
        """Write the file again, without what was removed.

        Raises:
            DiskFullError: If there is no room for a second file; the log is shortened all the same.
        """
        with self._mutex.held():
            writer = self._writing_connection()
            self._write_log(writer)  # the new file may need its room
            try:
                writer.run("VACUUM")
            finally:
                self._write_log(writer)

    def _write_log(self, writer: Connection) -> None:
        """Write the log into the file, and make the log empty."""
        with suppress(DiskFullError):
            # Nobody may write while it waits for readers. What they keep it from is done by a
            # later write, or when the file is closed.
            writer.run(f"PRAGMA busy_timeout = {_CHECKPOINT_WAIT}")
            try:
                writer.run("PRAGMA wal_checkpoint(TRUNCATE)")
            finally:
                writer.run(f"PRAGMA busy_timeout = {int(self._timeout * 1000)}")

    def close(self) -> None:
        """Close all connections; the next use opens new ones."""
        with self._mutex.held():
            self._cache, self._is_ready = StateCache(), False
            for connection in self._all_readers():
                connection.retire()
            if self._writer is not None:
                self._writer.retire()

    def _all_readers(self) -> list[Connection]:
        with self._listing:
            return list(self._readers)

    # Forks

    def before_fork(self, deadline: float) -> bool:
        """Close all connections, for which this thread waits until a time; return whether it did.

        SQLite notes in memory which locks a process has on a file. A child that inherits the note
        never takes them. Then it waits for a writer that is not in it, or the parent takes itself
        for the last one to close the file, and deletes the log that the child writes to.
        """
        current = self._snapshots.get(threading.current_thread())
        stored = self._newest, None if current is None else current.connection
        others = [reader for reader in self._all_readers() if reader not in stored]
        for connection in others:
            connection.retire(deadline)  # but for the newest one, which those who read may need
        while any(other.is_open for other in others) and time.monotonic() < deadline:
            time.sleep(_PERIOD / 10)
        if self._newest is not None:
            self._newest.retire(deadline)
        with suppress(TimeoutError), self._mutex.held(limit=max(0, deadline - time.monotonic())):
            if self._writer is not None:
                self._writer.retire()
        own = stored[1], self._writer if self._owner == threading.get_ident() else None
        # Also those that another thread has opened just now, and not noted yet.
        return not any(other.is_open for other in list(self._opened) if other not in own)


_FILES: weakref.WeakSet[GraphFile] = weakref.WeakSet()


_forking = threading.local()  # whether this thread has locked ``opening`` to fork


def _before_fork() -> None:
    deadline = time.monotonic() + FORK_WAIT
    while True:
        attempt = min(deadline, time.monotonic() + _FORK_ATTEMPT)
        _forking.holds = opening.acquire(timeout=_FORK_ATTEMPT)
        closed = _forking.holds and all([file.before_fork(attempt) for file in list(_FILES)])
        if closed or time.monotonic() > deadline:
            return
        if _forking.holds:
            opening.release()
        time.sleep(_PERIOD)  # who reads, or is waited for, may have to open a connection first


def _after_fork() -> None:
    if _forking.holds:
        opening.release()


def _after_fork_in_child() -> None:
    if opening.locked():  # by this thread, or by one that is not here
        opening.release()


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child
    )


class ProcessLock:
    """Let one process in at a time; it is free again when the process ends, however it ends.

    What is locked is an open file that is noted before: an interrupt between two statements
    leaves no lock that nobody knows of.

    Args:
        path: A file beside what is locked.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = -1

    def acquire(self, timeout: float) -> bool:
        """Wait so many seconds for the lock; return whether it is held.

        Raises:
            StoreError: If the file can't be written.
        """
        self.release()  # what an interrupt has left
        deadline = time.monotonic() + timeout
        try:
            self.path.parent.mkdir(exist_ok=True)
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
            while not _locked(self._file):
                if time.monotonic() >= deadline:
                    return False
                time.sleep(_PERIOD)
        except OSError as error:
            raise StoreError(
                f"{self.path} can't be written, which keeps other processes from writing at the "
                f"same time: {error}; nothing was changed"
            ) from error
        return True

    def release(self) -> None:
        """Let others in."""
        if self._file >= 0:
            _unlock(self._file)
            file, self._file = self._file, -1
            os.close(file)

    def leave(self) -> None:
        """Leave the lock to the process that this one was forked off from."""
        if self._file >= 0:
            file, self._file = self._file, -1
            os.close(file)  # which unlocks no file that another process has open, too

    def __del__(self) -> None:
        self.leave()


if sys.platform == "win32":
    import msvcrt

    def _locked(file: int) -> bool:
        """Lock an open file unless another process has; return whether it is locked now."""
        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EDEADLK):
                raise
            return False
        return True

    def _unlock(file: int) -> None:
        with suppress(OSError):  # it was not locked
            msvcrt.locking(file, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _locked(file: int) -> bool:
        """Lock an open file unless another process has; return whether it is locked now."""
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _unlock(file: int) -> None:
        fcntl.flock(file, fcntl.LOCK_UN)
