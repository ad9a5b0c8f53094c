"""Know whose transform is running, and that no group comes to wait for itself."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


class Needs:
    """Keep which groups' transforms have asked for which groups and wait for them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked: Counter[tuple[str, str]] = Counter()  # (whose transform, for which group)
        self._mine = threading.local()

    @property
    def running(self) -> str | None:
        """The group whose transform this thread is in, or None."""
        return getattr(self._mine, "group", None)

    @contextmanager
    def inside(self, group: str) -> Iterator[None]:
        """Take what this thread does in the block as done by the group's transform."""
        outer, self._mine.group = self.running, group
        try:
            yield
        finally:
            self._mine.group = outer

    @contextmanager
    def waiting(self, group: str) -> Iterator[None]:
        """Note that the transform this thread is in, if any, waits for a group.

        Raises:
            RuntimeError: If the group waits for that transform.
        """
        asking = self.running
        if asking is None:
            yield
            return
        with self._lock:
            if self._leads(group, asking):
                raise RuntimeError(
                    f"group {group!r} needs itself: the transform of group {asking!r}, which it "
                    "waits for, asks for it; let a transform ask only for groups that can be "
                    "built without its own"
                )
            self._asked[asking, group] += 1
        try:
            yield
        finally:
            with self._lock:
                self._asked[asking, group] -= 1
                self._asked += Counter()  # drops what has come to zero

    def _leads(self, group: str, to: str) -> bool:
        """Tell whether a group is another, or waits for it, directly or not."""
        return group == to or any(
            self._leads(after, to) for before, after in self._asked if before == group
        )
