"""A PostgreSQL server is killed during writes, builds and searches, and restarted.

No acknowledged document is lost and no removed document returns. A search by words or vectors
finds all documents acknowledged before the search started. ``make stress`` kills PostgreSQL 200
times.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.postgres_server import RunningServer, running_server
from support.stress import amount
from support.work_and_kills import check_kills


@pytest.fixture
def mortal() -> Iterator[RunningServer]:
    with running_server() as server:
        yield server


@pytest.mark.slow
def test_killed_server_keeps_all_acknowledged_documents(mortal: RunningServer) -> None:
    check_kills(mortal, amount(2, 200), "killed server", store=mortal.address())
