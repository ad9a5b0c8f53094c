"""The refresh of a served graph after changes of its files."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from ..nodegraph.errors import ReadError
from ..nodegraph.graph import NodeGraph

_logger = logging.getLogger("nodekin")

_SECONDS = 2.0

_SHARE = 20  # at most one twentieth of the time is spent on scans


class SourceRefresh:
    """A refresh of a graph before an answer, if source files have changed.

    Scans are limited to one per ``seconds`` and to a twentieth of the time. Other threads do not
    wait for a refresh and use the current graph.

    Args:
        seconds: Minimum seconds between two scans.
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
        self._scanning = threading.Lock()

    def __call__(self, graph: NodeGraph) -> bool:
        """Refresh the graph if a scan is due. Returns whether its documents changed.

        If files can't be read, a warning is logged, and the graph is unchanged.
        """
        start = self._clock()
        if start < self._next or not self._scanning.acquire(blocking=False):
            return False
        try:
            done = graph.refresh()
            return bool(done.added or done.updated or done.removed or done.renamed)
        except (ReadError, ValueError, OSError, RuntimeError) as error:
            _logger.warning("the documents were not read again: %s", error)
            return False
        finally:
            end = self._clock()
            self._next = end + max(self._seconds, _SHARE * (end - start))
            self._scanning.release()


def visible_files(sources: Iterable[Path]) -> Iterator[tuple[str, os.stat_result]]:
    """Yield the visible files below the sources with their status."""
    for source in sources:
        paths = [str(source)] if source.is_file() else []
        for folder, below, names in os.walk(source):
            below[:] = [name for name in below if not name.startswith(".")]
            paths += [os.path.join(folder, name) for name in names]
        for path in paths:
            with suppress(OSError):  # removed, or a broken link
                yield path, os.stat(path)
