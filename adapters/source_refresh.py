"""Read what changed in the folders of a graph that a server keeps in memory."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from ..nodegraph.errors import ReadError
from ..nodegraph.graph import NodeGraph

_logger = logging.getLogger("nodekin")

_SECONDS = 2.0

_SHARE = 20  # of the time at most one part is spent on looking

File = tuple[str, int, int]


class SourceRefresh:
    """Refresh a graph before an answer, where files changed since the last one.

    It looks at names, sizes and times of the files, at most once in some seconds and for a
    twentieth of the time, and reads files only where these differ. Threads that come meanwhile
    don't wait: they are answered from what there is.

    Args:
        seconds: How long it does not look again.
        clock: Returns the time in seconds.

    Example:
        >>> refresh = SourceRefresh()
        >>> refresh(NodeGraph(progress=False))
        False
    """

    def __init__(
        self, seconds: float = _SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._seconds, self._clock = seconds, clock
        self._next = clock()
        self._known: list[File] | None = None
        self._looking = threading.Lock()

    def __call__(self, graph: NodeGraph) -> bool:
        """Refresh the graph if that is due; return whether its documents changed.

        What can't be read is logged, and stays as it was.
        """
        if self._clock() < self._next or not self._looking.acquire(blocking=False):
            return False
        try:
            start = self._clock()
            changed = self._refreshed(graph)
            end = self._clock()
            self._next = end + max(self._seconds, _SHARE * (end - start))
            return changed
        finally:
            self._looking.release()

    def _refreshed(self, graph: NodeGraph) -> bool:
        files = sorted(_files(graph.sources))
        if files == self._known:
            return False
        self._known = files
        try:
            done = graph.refresh()
        except (ReadError, ValueError, OSError, RuntimeError) as error:
            _logger.warning("the documents were not read again: %s", error)
            return False
        return bool(done.added or done.updated or done.removed or done.renamed)


def _files(sources: list[Path]) -> Iterator[File]:
    """Yield the files below the sources, as far as they can be seen."""
    for source in sources:
        if not source.is_dir():
            yield from _file(str(source))
        for folder, below, names in os.walk(source):
            below[:] = [name for name in below if not name.startswith(".")]
            for name in names:
                yield from _file(os.path.join(folder, name))


def _file(path: str) -> Iterator[File]:
    try:
        status = os.stat(path)
    except OSError:  # it went away, or is a link to nothing
        return
    yield path, status.st_size, status.st_mtime_ns
