"""A lock between processes, held together by the threads of one."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import StoreError

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
    def held(self) -> Iterator[None]:
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
