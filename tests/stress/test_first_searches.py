"""First searches in threads and tasks, next to a writer, after each doubling of a corpus."""

from __future__ import annotations

import asyncio
import hashlib
import random
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.index_checks import check_vector_index
from support.postgres_server import RunningServer
from support.stress import LONG, Tally, amount

from nodekin.nodegraph import Document, Embedder, NodeGraph
from nodekin.retrievers import as_retriever


def embed(texts: list[str]) -> list[list[float]]:
    digests = [hashlib.blake2b(text.encode(), digest_size=16).digest() for text in texts]
    return [[float(byte) for byte in digest] for digest in digests]


def document(number: int, version: int = 0) -> Document:
    text = f"Tea {number} is green. It has {number} leaves. People drink tea {number} {version}."
    return Document(text, id=f"d{number}")


@pytest.fixture(autouse=True)
def switching() -> Iterator[None]:
    """Shorten the interval between thread switches."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


SIZES = (50, 110, 240)
"""Numbers of documents. Each search after a doubling measures the graph again."""

SERVER_SIZES = SIZES if LONG else (20, 45)
"""The numbers on a server, where each change needs several round trips."""


def check_rounds(store: object, sizes: Sequence[int], rng: random.Random, tally: Tally) -> None:
    graph = NodeGraph(store=store, embed=Embedder(embed, "digests"), progress=False)
    count = 0
    for size in sizes:
        graph.add([document(number) for number in range(count, size)])
        count = size
        is_larger = size > sizes[0]
        graph.build("passage sentence" if is_larger else "ROOT", embed=is_larger)
        retriever = as_retriever(graph)

        def search(query: str) -> None:
            results = graph.search(query, 5)
            assert len({result.node.id for result in results}) == len(results)

        async def search_in_tasks() -> None:
            await asyncio.gather(*(retriever.aretrieve(f"green {i}") for i in range(6)))  # noqa: B023

        def write(numbers: list[int]) -> None:
            for number in numbers:
                graph.add(document(number, version=1))
            graph.remove(f"d{numbers[0]}")
            graph.add(document(numbers[0]))

        with tally.trying(size), ThreadPoolExecutor(6) as pool:
            works = [pool.submit(search, f"tea {i}") for i in range(4)]
            works.append(pool.submit(lambda: asyncio.run(search_in_tasks())))
            works.append(pool.submit(write, rng.sample(range(size), 4)))
            for work in works:
                work.result(300)
        with tally.trying(f"index of {size}"):
            check_vector_index(graph, "passage sentence")
    graph.close()


@pytest.mark.parametrize("kind", ["memory", "file", "PostgreSQL"])
def test_first_searches_leave_right_vector_index(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    tally, rng = Tally(f"first searches in threads and tasks, {kind}"), random.Random(1)
    if kind == "PostgreSQL":
        server: RunningServer = request.getfixturevalue("postgres_server")
        for _ in range(amount(1, 200)):
            check_rounds(server.address(), SERVER_SIZES, rng, tally)
    else:
        for number in range(amount(1, 500)):
            store = tmp_path / str(number) if kind == "file" else None
            check_rounds(store, SIZES, rng, tally)
    tally.check()
