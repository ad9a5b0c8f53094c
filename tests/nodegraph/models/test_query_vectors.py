"""Queries that several want at once are embedded once."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from stores import memory_store

from nodekin.nodegraph import Document, Embedder, EmbeddingError, NodeGraph
from nodekin.nodegraph.models.embedder import as_embedders
from nodekin.nodegraph.models.embedding_cache import EmbeddingCache
from nodekin.retrievers import FusionRetriever, Retriever


class Slow:
    """Embed queries only when it is let; fail as often as it is told."""

    def __init__(self, failures=0):
        self.asked = []
        self.begun = threading.Event()
        self.let = threading.Event()
        self.failures = failures

    def embed(self, texts):
        return [[len(text), 1.0] for text in texts]

    def embed_queries(self, texts):
        self.asked.append(list(texts))
        self.begun.set()
        assert self.let.wait(300)
        if len(self.asked) <= self.failures:
            raise OSError("the line is down")
        return self.embed(texts)


class AsyncSlow(Slow):
    async def aembed_queries(self, texts):
        self.asked.append(list(texts))
        failing = len(self.asked) <= self.failures
        await asyncio.sleep(0.01)
        if failing:
            raise OSError("the line is down")
        return self.embed(texts)


def until_asked(model, times):
    """Wait until a model has been asked so often."""
    while len(model.asked) < times:
        time.sleep(0.001)


def make(model):
    return EmbeddingCache(memory_store(), as_embedders(model), False)


def test_threads_wait_for_the_one_that_embeds():
    model = Slow()
    kept = make(model)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(kept.query_vectors, ["tea", "water"], "default")
        assert model.begun.wait(300)
        second = pool.submit(kept.query_vectors, ["茶", "tea"], "default")
        until_asked(model, 2)
        model.let.set()
        assert first.result().tolist() == [[3, 1], [5, 1]]
        assert second.result().tolist() == [[1, 1], [3, 1]]
    assert model.asked == [["tea", "water"], ["茶"]]


def test_who_waits_for_one_that_fails_asks_for_itself():
    model = Slow(failures=1)
    kept = make(model)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(kept.query_vectors, ["tea"], "default")
        assert model.begun.wait(300)
        second = pool.submit(kept.query_vectors, ["tea"], "default")
        model.let.set()
        with pytest.raises(EmbeddingError, match="the line is down"):
            first.result()
        assert second.result().tolist() == [[3, 1]]
    assert kept.query_vectors(["tea"], "default").tolist() == [[3, 1]]
    assert model.asked == [["tea"], ["tea"]]


@pytest.mark.parametrize("failures", [0, 1])
async def test_tasks_wait_for_the_one_that_embeds(failures):
    model = AsyncSlow(failures)
    kept = make(model)
    calls = [kept.aquery_vectors(texts, "default") for texts in (["tea"], ["tea", "茶"], ["tea"])]
    first, *others = await asyncio.gather(*calls, return_exceptions=True)
    assert isinstance(first, EmbeddingError) == bool(failures)
    assert [each.tolist() for each in others] == [[[3, 1], [1, 1]], [[3, 1]]]
    if not failures:
        assert model.asked == [["tea"], ["茶"]]


async def test_a_task_that_is_cancelled_keeps_no_one_waiting():
    model = AsyncSlow()
    kept = make(model)
    first = asyncio.create_task(kept.aquery_vectors(["tea"], "default"))
    await asyncio.sleep(0)
    second, third = (asyncio.create_task(kept.aquery_vectors(["tea"], "default")) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    second.cancel()
    assert (await third).tolist() == [[3, 1]]
    assert first.cancelled()
    assert second.cancelled()


async def test_a_thread_waits_for_no_task():
    """The thread may be the one that the task's loop runs in."""
    model = AsyncSlow()
    model.let.set()
    kept = make(model)
    task = asyncio.create_task(kept.aquery_vectors(["tea"], "default"))
    await asyncio.sleep(0)
    assert kept.query_vectors(["tea"], "default").tolist() == [[3, 1]]
    assert (await task).tolist() == [[3, 1]]


def test_a_thread_with_the_lock_of_a_graph_waits_for_no_thread():
    model = Slow()
    graph = NodeGraph(embed=model, progress=False)
    graph.add([Document("tea")])
    with ThreadPoolExecutor(2) as pool:
        with graph.reader.reading("ROOT"):
            other = pool.submit(graph.embeddings.query_vectors, ["tea"], "default")
            assert model.begun.wait(300)
            pool.submit(lambda: (until_asked(model, 2), model.let.set()))
            assert graph.embeddings.query_vectors(["tea"], "default").tolist() == [[3, 1]]
        assert other.result().tolist() == [[3, 1]]
    assert len(model.asked) == 2


@pytest.mark.parametrize("kind", [Slow, AsyncSlow])
async def test_branches_of_a_fusion_embed_a_query_once(kind):
    model = kind()
    model.let.set()
    graph = NodeGraph(embed=Embedder(model), progress=False)
    graph.add(["tea", "water", "红茶"])
    branches = [Retriever(graph, "ROOT", "cosine", top_k=k) for k in (1, 2)]
    found = await FusionRetriever(branches).aretrieve("coffee")
    assert len(found) == 2
    assert [each for each in model.asked if each] == [["coffee"]]
