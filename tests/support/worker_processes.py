"""Start the processes of long builds in a test."""

from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from nodekin.nodegraph.workers import idle_processors
from nodekin.nodegraph.workers.idle_processors import Workers


@contextmanager
def started_workers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Workers]:
    """Start worker processes as on a machine with three processors, and end them afterwards."""
    monkeypatch.setattr(idle_processors, "processors", lambda: 3)
    monkeypatch.setattr(idle_processors, "_workers", None)
    started = idle_processors.running_workers()
    assert started is not None
    with closing(started):
        yield started
