"""Passages are embedded once, in threads and event loops, and after failures."""

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nodekin.nodegraph import Embedder, NodeGraph
from nodekin.nodegraph.hashing import digest
from nodekin.nodegraph.models.embedding_cache import EmbeddingCache
from nodekin.nodegraph.storage.graph_store import as_store
from nodekin.retrievers import Retriever, as_retriever

TEXTS = [f"Passage number {n} is about {'tea' if n % 2 else 'rice'}." for n in range(50)]


def vector(text: str) -> list[float]:
    return [1.0, text.count("tea"), text.count("rice"), len(text) / 10]


def remembering(embedded: list[str]) -> Callable[[list[str]], Any]:
    def embed(texts: list[str]) -> list[list[float]]:
        embedded.extend(texts)
        return [vector(text) for text in texts]

    return embed


def search(store: Path | None, embed: Any) -> list[str]:
    with NodeGraph(store=store, embed=embed, progress=False) as graph:
        if not len(graph.nodes("ROOT")):
            graph.add(TEXTS)
        return [r.node.text for r in Retriever(graph, "ROOT", "cosine")("Which tea?")]


def test_stored_vectors_depend_on_model_name(tmp_path: Path) -> None:
    embedded: list[str] = []
    first = search(tmp_path / "graph", Embedder(remembering(embedded), name="named"))
    assert len(embedded) == 51
    assert search(tmp_path / "graph", Embedder(remembering(embedded), name="named")) == first
    assert len(embedded) == 52  # the query
    assert search(tmp_path / "graph", Embedder(remembering(embedded), name="other")) == first
    assert len(embedded) == 103


@pytest.mark.parametrize("in_file", [False, True])
def test_repeated_text_keeps_its_last_vector(tmp_path: Path, in_file: bool) -> None:
    store = tmp_path / "graph" if in_file else None
    with NodeGraph(store=store, embed=Embedder(remembering([]), "own"), progress=False) as graph:
        graph.embeddings.put(["tea", "rice", "tea"], [[1, 2], [3, 4], [5, 6]])
        graph.embeddings.put(["milk", "milk"], [[7, 8], [9, 0]])
        stored = graph.embeddings.vectors(["milk", "rice", "tea"], "default")
        assert stored.tolist() == [[9, 0], [3, 4], [5, 6]]


def test_new_vector_rewrites_no_other_vectors(tmp_path: Path) -> None:
    path = tmp_path / "graph"

    def embed(texts: list[str]) -> np.ndarray:
        return np.array([[len(text), *range(1_023)] for text in texts], np.float32)

    with NodeGraph(store=path, embed=Embedder(embed, "wide"), progress=False) as graph:
        graph.add([f"Passage number {number}." for number in range(1_000)])
        graph.build("ROOT", embed=True)
        assert path.stat().st_size > 4_000_000
    with NodeGraph(store=path, embed=Embedder(embed, "wide"), progress=False) as graph:
        graph.add("A new passage.")
        graph.build("ROOT", embed=True)
        assert (tmp_path / "graph-wal").stat().st_size < 200_000


def test_search_stores_vectors_in_little_space(tmp_path: Path) -> None:
    def embed(texts: list[str]) -> np.ndarray:
        return np.array([[len(text), *range(383)] for text in texts], np.float32)

    path = tmp_path / "graph"
    with NodeGraph(store=path, embed=Embedder(embed, "small"), progress=False) as graph:
        graph.add([f"Passage number {number}." for number in range(4_000)])
        graph.build("ROOT")
        graph.close()
        before = path.stat().st_size
        assert Retriever(graph, "ROOT", "cosine")("Passage number 7.")
    assert path.stat().st_size - before < 1.05 * 4_000 * 1_536


def flawed(texts: list[str]) -> list[list[float]]:
    """Return no usable vectors for two of the texts."""
    flaws = {TEXTS[3]: [0.0] * 4, TEXTS[5]: [1.0, float("nan"), 1.0, 1.0]}
    return [flaws.get(text) or vector(text) for text in texts]


def test_texts_without_usable_vectors_are_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    embedder = Embedder(flawed, "flawed", batch_size=1)
    for _ in range(2):
        with NodeGraph(store=tmp_path / "graph", embed=embedder, progress=False) as graph:
            graph.add(TEXTS)
            results = Retriever(graph, "ROOT", "cosine", top_k=100)("tea")
            assert {r.node.text for r in results} == {*TEXTS} - {TEXTS[3], TEXTS[5]}
            assert not graph.embeddings.vectors([TEXTS[3], TEXTS[5]], "default").any()
    messages = [r.getMessage() for r in caplog.records if r.levelname == "WARNING"]
    assert messages == [
        "the embedding model 'flawed' returned no usable vector (zeros or NaN) for 2 texts, first "
        f"{TEXTS[3]!r}; vector search leaves them out"
    ]


def test_default_search_uses_usable_vectors(
    caplog: pytest.LogCaptureFixture,
) -> None:
    embedder = Embedder(flawed, "flawed", embed_queries=remembering([]))
    graph = NodeGraph(embed=embedder, progress=False)
    graph.add(TEXTS)
    search = as_retriever(graph)
    for query in ("tea", "Which passage?", TEXTS[3]):
        results = search.retrieve(query)
        assert any(e.embed_key == "default" for r in results for e in r.evidence)
        assert not any("without vectors" in e.similarity for r in results for e in r.evidence)
    found = search.retrieve(TEXTS[3], top_k=50)
    assert TEXTS[3] in {result.node.text for result in found}  # by words
    assert len([r for r in caplog.records if "no usable vector" in r.getMessage()]) == 1


def test_exact_text_without_vector_is_first() -> None:
    embedder = Embedder(flawed, "flawed", embed_queries=remembering([]))
    graph = NodeGraph(embed=embedder, progress=False)
    graph.add(TEXTS)
    assert as_retriever(graph).retrieve(TEXTS[3])[0].node.text == TEXTS[3]


@pytest.mark.parametrize("num_workers", [0, 1, 2, 8])
def test_num_workers_embed_equal_vectors(num_workers: int) -> None:
    threads: set[int] = set()
    together = threading.Barrier(num_workers, timeout=60) if num_workers > 1 else None

    def embed(texts: list[str]) -> list[list[float]]:
        threads.add(threading.get_ident())
        if together is not None and len(texts) == 1 and texts[0] in TEXTS[:num_workers]:
            together.wait()  # ends only if all batches run concurrently
        return [vector(text) for text in texts]

    embedder = Embedder(embed, "threads", batch_size=1, num_workers=num_workers)
    graph = NodeGraph(embed=embedder, progress=False)
    graph.add(TEXTS)
    vectors = graph.embeddings.vectors(TEXTS, "default")
    assert np.allclose(vectors, [vector(text) for text in TEXTS])
    assert threading.get_ident() in threads
    assert len(threads) <= max(1, num_workers)


async def test_sync_search_beside_async_search_finishes() -> None:
    begun = asyncio.Event()

    async def embed(texts: list[str]) -> list[list[float]]:
        begun.set()
        await asyncio.sleep(0.01)
        return [vector(text) for text in texts]

    with NodeGraph(embed=Embedder(embed, "both", batch_size=10), progress=False) as graph:
        graph.add(TEXTS)
        retriever = Retriever(graph, "ROOT", "cosine")
        task = asyncio.create_task(retriever.aretrieve("tea"))
        await begun.wait()
        results = retriever("tea")
        assert results == await task


@pytest.mark.parametrize("num_workers", [0, 2])
def test_interrupt_keeps_finished_batches(num_workers: int) -> None:
    embedded: list[str] = []

    def embed(texts: list[str]) -> list[list[float]]:
        if len(embedded) >= 9:
            raise KeyboardInterrupt
        embedded.extend(texts)
        return [vector(text) for text in texts]

    store = as_store(None)
    embedder = Embedder(embed, "interrupted", batch_size=1, num_workers=num_workers)
    with pytest.raises(KeyboardInterrupt):
        EmbeddingCache(store, {"default": embedder}, False).embed(TEXTS, "default", "texts")
    digests = {*map(digest, TEXTS)}
    assert store.vectors.existing("interrupted", digests) == {*map(digest, embedded)}
