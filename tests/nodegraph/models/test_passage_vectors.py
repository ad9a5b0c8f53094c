"""Vectors are paid for once: under a name that changes, in threads, and after a failure."""

import asyncio
import gc
import threading
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from nodekin.nodegraph import Embedder, EmbeddingError, MemoryStore, NodeGraph
from nodekin.nodegraph.errors import VectorLengthError
from nodekin.nodegraph.hashing import digest
from nodekin.nodegraph.models.model_objects import model_name
from nodekin.nodegraph.models.passage_vectors import DIMENSION, PassageVectors
from nodekin.retrievers import Retriever

TEXTS = [f"Passage number {n} is about {'tea' if n % 2 else 'rice'}." for n in range(50)]


def vector(text: str, first_number: float = 1.0) -> list[float]:
    return [first_number, text.count("tea"), text.count("rice"), len(text) / 10]


def with_memo(embedded: list[str], first_number: float = 1.0) -> Callable[[list[str]], Any]:
    """Return a function that remembers: its memo is part of what its name is made of."""
    memo: dict[str, list[float]] = {}

    def embed(texts: list[str]) -> list[list[float]]:
        embedded.extend(texts)
        memo.update({text: vector(text, first_number) for text in texts})
        return [memo[text] for text in texts]

    return embed


def asked(store: Path, embed: Any) -> list[str]:
    with NodeGraph(store=store, embed=embed, progress=False) as graph:
        if not len(graph.nodes("ROOT")):
            graph.add(TEXTS)
        return [r.node.text for r in Retriever(graph, "ROOT", "cosine")("Which tea?")]


def test_a_memo_that_fills_costs_no_vectors(tmp_path: Path, caplog: Any) -> None:
    embedded: list[str] = []
    embed = with_memo(embedded)
    before = model_name(embed)
    first = asked(tmp_path / "graph", embed)
    assert len(embedded) == 51
    assert model_name(embed) != before
    for _ in range(2):
        embedded.clear()
        assert asked(tmp_path / "graph", embed) == first
        assert len(embedded) <= 4  # three to compare, one query
    assert "takes them over" in caplog.text


def test_another_model_of_the_same_name_embeds_anew(tmp_path: Path) -> None:
    embedded: list[str] = []
    asked(tmp_path / "graph", with_memo(embedded))
    embedded.clear()
    asked(tmp_path / "graph", with_memo(embedded, first_number=9.0))
    assert len(embedded) == 51
    assert len(set(embedded)) == 51  # what was compared is not embedded twice


def test_a_group_that_has_no_vectors_yet_does_not_lose_those_of_others(tmp_path: Path) -> None:
    embedded: list[str] = []
    embed = with_memo(embedded)
    asked(tmp_path / "graph", embed)
    embedded.clear()
    with NodeGraph(store=tmp_path / "graph", embed=embed, progress=False) as graph:
        graph.create_node_group("word", lambda text: [text.split()[2]])
        Retriever(graph, "word", "cosine")("7")
        Retriever(graph, "ROOT", "cosine")("7")
    assert len(embedded) <= 50 + 1 + 3


@pytest.mark.parametrize("num_workers", [0, 1, 2, 8])
def test_batches_are_embedded_in_threads_with_the_same_vectors(num_workers: int) -> None:
    threads: set[int] = set()
    together = threading.Barrier(num_workers, timeout=60) if num_workers > 1 else None

    def embed(texts: list[str]) -> list[list[float]]:
        threads.add(threading.get_ident())
        if together is not None and len(texts) == 1 and texts[0] in TEXTS[:num_workers]:
            together.wait()  # ends only if so many batches are embedded at the same time
        return [vector(text) for text in texts]

    embedder = Embedder(embed, "threads", batch_size=1, num_workers=num_workers)
    graph = NodeGraph(embed=embedder, progress=False)
    graph.add(TEXTS)
    vectors = graph.embeddings.vectors(TEXTS, "default")
    assert np.allclose(vectors, [vector(text) for text in TEXTS])
    assert (threading.get_ident() in threads) == (num_workers < 2)
    assert len(threads) <= max(1, num_workers)


def test_a_batch_that_fails_loses_none_of_the_others() -> None:
    embedded: list[str] = []
    broken = {TEXTS[7]}

    def embed(texts: list[str]) -> list[list[float]]:
        if broken & set(texts):
            raise OSError("no line")
        embedded.extend(texts)
        return [vector(text) for text in texts]

    graph = NodeGraph(embed=Embedder(embed, "b", batch_size=1, num_workers=4), progress=False)
    with pytest.raises(EmbeddingError, match="no line"):
        graph.embeddings.vectors(TEXTS, "default")
    assert 6 <= len(embedded) < 50
    broken.clear()
    graph.embeddings.vectors(TEXTS, "default")
    assert sorted(embedded) == sorted(TEXTS)


async def test_an_async_batch_starts_when_another_ends_and_is_kept_at_once() -> None:
    embedded: list[str] = []
    third = asyncio.Event()

    async def embed(texts: list[str]) -> list[list[float]]:
        embedded.extend(texts)
        if texts == TEXTS[:1]:
            await asyncio.wait_for(third.wait(), 300)
        if texts == TEXTS[2:3] and not third.is_set():
            third.set()
            raise OSError("no line")
        return [vector(text) for text in texts]

    embedder = Embedder(embed, "two at once", batch_size=1, num_workers=2)
    with NodeGraph(embed=embedder, progress=False) as graph:
        graph.add(TEXTS)
        retriever = Retriever(graph, "ROOT", "cosine")
        with pytest.raises(EmbeddingError, match="no line"):
            await retriever.aretrieve("tea")
        await retriever.aretrieve("tea")
        vectors = graph.embeddings.vectors(TEXTS, "default")
    assert np.allclose(vectors, [vector(text) for text in TEXTS])
    assert embedded.count(TEXTS[1]) == 1
    assert embedded.count(TEXTS[2]) == 2


def test_workers_are_a_whole_number() -> None:
    with pytest.raises(ValueError, match="num_workers"):
        Embedder(with_memo([]), num_workers=-1)


class _Encoder:
    """Pads each batch to its longest text, as models do, and counts what it computes."""

    def __init__(self) -> None:
        self.computed = 0

    def embed(self, texts: list[str]) -> list[list[float]]:
        self.computed += len(texts) * max(map(len, texts))
        return [[float(len(text)), 1.0] for text in texts]

    async def aembed(self, texts: list[str]) -> list[list[float]]:
        return self.embed(texts)


_MIXED = ["x" * (1 + 37 * at % 500) for at in range(1_000)]


@pytest.mark.parametrize("in_loop", [False, True])
async def test_a_model_gets_passages_of_like_lengths_together(in_loop: bool) -> None:
    model = _Encoder()
    with NodeGraph(embed=Embedder(model, "padding"), progress=False) as graph:
        graph.add(list(dict.fromkeys(_MIXED)))
        retriever = Retriever(graph, "ROOT", "cosine")
        if in_loop:
            await retriever.aretrieve("x")
        else:
            retriever("x")
        vectors = graph.embeddings.vectors(_MIXED, "default")
    assert vectors[:, 0].tolist() == [len(text) for text in _MIXED]
    assert model.computed <= 1.2 * sum(map(len, dict.fromkeys(_MIXED)))


def test_a_function_gets_passages_in_the_order_of_the_documents() -> None:
    embedded: list[str] = []
    graph = NodeGraph(embed=with_memo(embedded), progress=False)
    graph.embeddings.vectors(_MIXED, "default")
    assert embedded == list(dict.fromkeys(_MIXED))


def test_a_build_embeds_windows_of_texts_and_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nodekin.nodegraph.graph._EMBEDDED_TEXTS", 128)
    monkeypatch.setattr("nodekin.nodegraph.graph._EMBEDDED_CHARACTERS", 40_000)
    batches: list[list[int]] = []

    class Model:
        def embed(self, texts: list[str]) -> list[list[float]]:
            batches.append([len(text) for text in texts])
            return [[float(len(text)), 1.0] for text in texts]

    texts = [f"{at} " + "x" * (7 * at % 90) for at in range(500)]
    texts += [f"{at} " + "y" * 30_000 for at in range(40)]
    graph = NodeGraph(embed=Embedder(Model(), "windows", batch_size=1_000), progress=False)
    graph.add(texts)
    graph.build("ROOT", embed=True)
    assert sorted(length for lengths in batches for length in lengths) == sorted(map(len, texts))
    assert all(lengths == sorted(lengths, reverse=True) for lengths in batches)
    # Eight texts of 30,000 characters are as many as one batch has.
    assert max(map(len, batches)) == 128
    assert max(len(lengths) for lengths in batches if max(lengths) > 30_000) == 8
    assert graph.embeddings.vectors(texts, "default")[:, 0].tolist() == [*map(len, texts)]


class _SlowStore(MemoryStore):
    """Stores the first vectors when the model has been called so many times, and notes all."""

    def __init__(self, calls: int) -> None:
        super().__init__()
        self.missing = calls
        self.computed = threading.Event()
        self.stored: list[int] = []

    def called(self) -> None:
        self.missing -= 1
        if not self.missing:
            self.computed.set()

    def put_values(self, kind: str, values: Mapping[str, bytes]) -> None:
        if not self.stored:
            assert self.computed.wait(300)
        self.stored.append(len(values) - 1)  # beside the length of the vectors
        super().put_values(kind, values)


def _slowly(calls: int, num_workers: int, of: Any = vector) -> tuple[_SlowStore, PassageVectors]:
    store = _SlowStore(calls)

    def embed(texts: list[str]) -> list[list[float]]:
        store.called()
        return [of(text) for text in texts]

    async def aembed(texts: list[str]) -> list[list[float]]:
        return embed(texts)

    settings: Any = {"batch_size": 1, "num_workers": num_workers, "aembed": aembed}
    embedder = Embedder(embed, "slow store", **settings)
    return store, PassageVectors(store, {"slow store": embedder}, False)


@pytest.mark.parametrize(("calls", "num_workers"), [(3, 0), (8, 4)])
async def test_the_next_batches_are_computed_while_one_is_stored(
    calls: int, num_workers: int
) -> None:
    texts = {digest(text): text for text in TEXTS}
    for in_loop in (False, True):
        store, vectors = _slowly(calls, num_workers)
        (embedder,) = vectors._embedders.values()
        if in_loop:
            await vectors.aembed(embedder, texts)
        else:
            list(vectors.vectors(embedder, texts, "texts"))
        assert sum(store.stored) == len(texts)
        fewest = 2 if num_workers else 1  # what waits is stored in one transaction
        assert fewest <= max(store.stored) <= max(3, 4 * num_workers)
        assert dict(vectors.vectors(embedder, texts, "texts")).keys() == texts.keys()


def test_of_what_is_stored_together_what_can_not_be_is_left_out_alone() -> None:
    def of(text: str) -> list[float]:
        return [1.0] * (3 if text == TEXTS[2] else 2)

    store, vectors = _slowly(8, 8, of)
    (embedder,) = vectors._embedders.values()
    with pytest.raises(VectorLengthError, match="vectors of 3 numbers"):
        list(vectors.vectors(embedder, {digest(text): text for text in TEXTS[:8]}, "texts"))
    assert vectors.dimension(embedder) == 2
    (kind,) = store.kinds()
    expected = {digest(text) for text in TEXTS[:8] if text != TEXTS[2]}
    assert store.get_values(kind).keys() == {*expected, DIMENSION}


@pytest.mark.parametrize("num_workers", [0, 2])
def test_an_interruption_loses_no_vectors_that_were_made(num_workers: int) -> None:
    embedded: list[str] = []

    def embed(texts: list[str]) -> list[list[float]]:
        if len(embedded) >= 9:
            raise KeyboardInterrupt
        embedded.extend(texts)
        return [vector(text) for text in texts]

    store = MemoryStore()
    embedder = Embedder(embed, "interrupted", batch_size=1, num_workers=num_workers)
    vectors = PassageVectors(store, {"default": embedder}, False)
    with pytest.raises(KeyboardInterrupt):
        list(vectors.vectors(embedder, {digest(text): text for text in TEXTS}, "texts"))
    (kind,) = store.kinds()
    assert store.get_values(kind).keys() == {*map(digest, embedded), DIMENSION}


class _Interrupted(MemoryStore):
    """Is interrupted while it stores vectors, in a block that is seen to end."""

    blocks: ClassVar[weakref.WeakSet[Any]] = weakref.WeakSet()

    def put_values(self, kind: str, values: Mapping[str, bytes]) -> None:
        block = type("Block", (), {})()
        self.blocks.add(block)
        raise KeyboardInterrupt


def test_an_interrupt_while_vectors_are_stored_leaves_no_block_to_the_collector() -> None:
    embedder = Embedder(lambda texts: [vector(text) for text in texts], "interrupted")
    vectors = PassageVectors(_Interrupted(), {"interrupted": embedder}, False)
    gc.disable()
    try:
        with suppress(KeyboardInterrupt):
            list(vectors.vectors(embedder, {digest(TEXTS[0]): TEXTS[0]}, "texts"))
            raise AssertionError("the interrupt is lost")
        assert not _Interrupted.blocks
    finally:
        gc.enable()
