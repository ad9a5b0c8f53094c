"""A server is killed in the middle of writes, builds and searches, and started again.

Nothing that was acknowledged is lost, nothing that was removed comes back, and a search finds what
was acknowledged before it began, by words and by vectors. ``make stress`` kills PostgreSQL 200
times, and a double of OpenSearch; ``make test-milvus`` kills Milvus, with ``NODEKIN_STRESS=1`` 200
times.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from milvus_server import RunningMilvus, running_milvus
from opensearch_double import OpenSearchDouble
from postgres_server import RunningServer, running_server
from stress import amount
from work_and_kills import check_kills


@pytest.fixture
def mortal() -> Iterator[RunningServer]:
    with running_server() as server:
        yield server


@pytest.fixture
def mortal_milvus(tmp_path: Path) -> Iterator[RunningMilvus]:
    with running_milvus(tmp_path) as server:
        yield server


@pytest.mark.slow
def test_nothing_acknowledged_is_lost(mortal: RunningServer) -> None:
    check_kills(mortal, amount(2, 200), "killed server", store=mortal.address())


@pytest.mark.slow
def test_nothing_is_lost_when_milvus_is_killed(
    mortal_milvus: RunningMilvus, tmp_path: Path
) -> None:
    kills = amount(2, 200)
    store, index = tmp_path / "graph.db", f"{mortal_milvus.address}?timeout=5"
    check_kills(mortal_milvus, kills, "killed Milvus", store=store, index=index)


@pytest.mark.slow
def test_nothing_is_lost_when_opensearch_is_killed(
    opensearch_double: OpenSearchDouble, tmp_path: Path
) -> None:
    """As far as a double shows it, which has on its disk what it has acknowledged."""
    kills, store = amount(2, 200), tmp_path / "graph.db"
    address = f"{opensearch_double.address}?timeout=5"
    check_kills(opensearch_double, kills, "killed OpenSearch", store=store, index=address)
