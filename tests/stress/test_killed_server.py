"""A server is killed in the middle of writes, builds and searches, and started again.

Nothing that was acknowledged is lost, nothing that was removed comes back, and a search finds what
was acknowledged before it began, by words and by vectors. ``make stress`` kills PostgreSQL 200
times.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from postgres_server import RunningServer, running_server
from stress import amount
from work_and_kills import check_kills


@pytest.fixture
def mortal() -> Iterator[RunningServer]:
    with running_server() as server:
        yield server


@pytest.mark.slow
def test_nothing_acknowledged_is_lost(mortal: RunningServer) -> None:
    check_kills(mortal, amount(2, 200), "killed server", store=mortal.address())
