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

from support.postgres_server import RunningServer


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


ENGINES: dict[str, Callable[[pytest.FixtureRequest, Path], Engine]] = {
    "memory": _memory,
    "sqlite": _sqlite,
    "postgresql": _postgresql,
    "pgvector": _pgvector,
}
