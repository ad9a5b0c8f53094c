"""What a graph can be on: the tests of a contract run over every one of these (``engine``).

To add an engine, write a function that makes an ``Engine`` of a test's fixtures, and enter it in
``ENGINES``. One that is not installed calls ``pytest.importorskip`` there.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from milvus_server import RunningMilvus
from opensearch_double import OpenSearchDouble
from postgres_server import RunningServer


@dataclass(frozen=True)
class Engine:
    """Make new graphs on one engine.

    Attributes:
        options: Returns what ``NodeGraph`` takes for a new, empty graph; the same again opens it
            again.
        lasting: Whether a graph can be opened again.
        approximate: Names what may differ from memory, none where nothing may.
    """

    options: Callable[[], Mapping[str, Any]]
    lasting: bool = True
    approximate: frozenset[str] = field(default_factory=frozenset)


def _memory(request: pytest.FixtureRequest, folder: Path) -> Engine:
    return Engine(dict, lasting=False)


def _sqlite(request: pytest.FixtureRequest, folder: Path) -> Engine:
    numbers = itertools.count()
    return Engine(lambda: {"store": folder / f"engine{next(numbers)}.db"})


def _postgresql(request: pytest.FixtureRequest, folder: Path) -> Engine:
    server: RunningServer = request.getfixturevalue("postgres_server")
    return Engine(lambda: {"store": f"{server.address()}&vectors=memory"})


def _pgvector(request: pytest.FixtureRequest, folder: Path) -> Engine:
    server: RunningServer = request.getfixturevalue("postgres_server")
    return Engine(lambda: {"store": f"{server.address()}&vectors=pgvector"})


def _milvus(request: pytest.FixtureRequest, folder: Path) -> Engine:
    for name in ("pymilvus", "milvus_lite"):
        pytest.importorskip(name, reason=f"no {name}: pip install nodekin[milvus] milvus-lite")
    numbers = itertools.count()

    def options() -> dict[str, Any]:
        path = folder / f"engine{next(numbers)}"
        return {"store": f"{path}.db", "index": f"milvus://{path}.milvus.db"}

    return Engine(options)


def _chroma(request: pytest.FixtureRequest, folder: Path) -> Engine:
    pytest.importorskip("chromadb", reason="no chromadb: pip install nodekin[chroma]")
    numbers = itertools.count()

    def options() -> dict[str, Any]:
        path = folder / f"engine{next(numbers)}"
        return {"store": f"{path}.db", "index": f"chroma://{path}.chroma"}

    return Engine(options)


def _opensearch(request: pytest.FixtureRequest, folder: Path) -> Engine:
    double: OpenSearchDouble = request.getfixturevalue("opensearch_double")
    numbers = itertools.count()

    def options() -> dict[str, Any]:
        return {"store": folder / f"engine{next(numbers)}.db", "index": double.address}

    return Engine(options)


def _opensearch_server(request: pytest.FixtureRequest, folder: Path) -> Engine:
    address: str = request.getfixturevalue("opensearch_server")
    numbers = itertools.count()

    def options() -> dict[str, Any]:
        return {"store": folder / f"engine{next(numbers)}.db", "index": address}

    return Engine(options)


def _milvus_server(request: pytest.FixtureRequest, folder: Path) -> Engine:
    server: RunningMilvus = request.getfixturevalue("milvus_server")
    numbers = itertools.count()

    def options() -> dict[str, Any]:
        return {"store": folder / f"engine{next(numbers)}.db", "index": server.address}

    return Engine(options)


ENGINES: dict[str, Callable[[pytest.FixtureRequest, Path], Engine]] = {
    "memory": _memory,
    "sqlite": _sqlite,
    "postgresql": _postgresql,
    "pgvector": _pgvector,
    "milvus": _milvus,
    "chroma": _chroma,
    "opensearch": _opensearch,
    "milvus server": _milvus_server,
    "opensearch server": _opensearch_server,
}
