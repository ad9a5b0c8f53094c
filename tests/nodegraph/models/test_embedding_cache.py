import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodekin.nodegraph import Embedder, EmbeddingError, NodeGraph
from nodekin.nodegraph.errors import VectorLengthError
from nodekin.nodegraph.hashing import digest
from nodekin.nodegraph.models import embedding_cache
from nodekin.nodegraph.models.embedder import as_embedders
from nodekin.nodegraph.models.embedding_cache import EmbeddingCache
from nodekin.nodegraph.storage.graph_store import as_store
from nodekin.retrievers import FusionRetriever, Retriever


class Model:
    """A model that records its texts; the vector of a text is its length and a mark."""

    def __init__(self, name="model", dimension=2, batch_size=2, fails_at=None, seconds=0.0):
        self.name = name
        self.batch_size = batch_size
        self.asked = []
        self.asked_queries = []
        self._dimension = dimension
        self._fails_at = fails_at
        self._seconds = seconds

    def embed(self, texts):
        time.sleep(self._seconds)
        if self._fails_at is not None and len(self.asked) == self._fails_at:
            raise OSError("the line is down")
        self.asked.append(texts)
        return [[len(text), *[1] * (self._dimension - 1)] for text in texts]

    def embed_queries(self, texts):
        self.asked_queries.append(texts)
        return [[len(text), *[2] * (self._dimension - 1)] for text in texts]


class AsyncModel(Model):
    async def aembed_queries(self, texts):
        await asyncio.sleep(0)
        return self.embed_queries(texts)


def make(embed, store=None):
    return EmbeddingCache(as_store(None) if store is None else store, as_embedders(embed), False)


@given(st.lists(st.lists(st.sampled_from(["a", "bb", "ccc", "dddd", "eeeee"]))))
def test_vectors_follow_texts_each_embedded_once(asked):
    model = Model(batch_size=3)
    cache = make(model)
    for texts in asked:
        vectors = cache.vectors(texts, "default")
        assert vectors.shape[0] == len(texts)
        assert vectors[:, :1].ravel().tolist() == [len(text) for text in texts]
        queries = cache.query_vectors(texts, "default")
        assert queries[:, :1].ravel().tolist() == [len(text) for text in texts]
    everything = [text for batch in model.asked for text in batch]
    assert sorted(everything) == sorted({text for texts in asked for text in texts})
    assert all(len(batch) <= 3 for batch in model.asked + model.asked_queries)


def test_no_texts_return_empty_array():
    cache = make(Model())
    for dimension in (0, 2):
        assert cache.vectors([], "default").shape == (0, dimension)
        assert cache.query_vectors([], "default").shape == (0, dimension)
        assert asyncio.run(cache.aquery_vectors([], "default")).shape == (0, dimension)
        cache.vectors(["tea"], "default")


def test_unknown_key_raises_with_known_keys():
    with pytest.raises(LookupError, match=r"no embedding 'e6'; it has 'e5', 'title'"):
        make({"title": Model(), "e5": Model("b")}).vectors(["tea"], "e6")
    with pytest.raises(LookupError, match=r"it has none: give it one"):
        NodeGraph().embeddings.query_vectors(["tea"], "default")


def test_failure_keeps_earlier_batches():
    store = as_store(None)
    texts = ["x" * size for size in range(1, 21)]
    with pytest.raises(
        EmbeddingError, match=r"'model' failed on 2 texts.*OSError: the line is down"
    ):
        make(Model(fails_at=6), store).vectors(texts, "default")
    again = Model()
    assert make(again, store).vectors(texts, "default").shape == (20, 2)
    assert again.asked == [texts[at - 2 : at][::-1] for at in range(8, 0, -2)]


def test_other_dimension_under_one_name_raises():
    store = as_store(None)
    make(Model(), store).vectors(["tea"], "default")
    longer = make(Model(dimension=3), store)
    says = r"returns vectors of 3 numbers, but vectors stored under this name have 2; name another"
    with pytest.raises(EmbeddingError, match=says):
        longer.vectors(["tea", "water"], "default")
    with pytest.raises(EmbeddingError, match=says):
        longer.query_vectors(["tea"], "default")
    with pytest.raises(EmbeddingError, match=says):
        asyncio.run(make(AsyncModel(dimension=3), store).aquery_vectors(["tea"], "default"))


@pytest.mark.parametrize("frees_space", [True, False])
def test_dimension_is_read_from_stored_vectors(frees_space):
    store = as_store(None)
    cache = make(Model(), store)
    cache.vectors(["tea"], "default")
    model = cache.embedders["default"].name
    store.vectors.delete(model, [digest("tea")])  # by another process
    if frees_space:
        store.vectors.delete_unused(model, set())
    longer = make(Model(dimension=3), store)
    assert longer.vectors(["tea"], "default").shape == (1, 3)
    assert cache.vectors([], "default").shape == (0, 3)
    with pytest.raises(VectorLengthError, match=r"vectors of 2 numbers, but .* have 3"):
        cache.query_vectors(["water"], "default")
    longer.delete_unused(set())
    assert cache.query_vectors(["water"], "default").shape == (1, 2)


def test_threads_embed_a_text_once():
    model = Model(seconds=0.01)
    cache = make({"a": model, "b": model})
    texts = [str(number) for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda n: cache.vectors(texts, "ab"[n % 2]), range(8)))
    assert all(np.array_equal(each, made[0]) for each in made)
    assert sorted(text for batch in model.asked for text in batch) == texts


def test_threads_share_a_call_for_the_same_queries():
    model, begun = Model(), threading.Barrier(4)
    model.embed_queries = lambda texts: time.sleep(0.05) or Model.embed_queries(model, texts)
    cache = make(model)

    def embed(number):
        begun.wait(10)
        return cache.query_vectors(["tea"], "default").tolist()

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(embed, range(4))) == [[[3, 2]]] * 4
    assert model.asked_queries == [["tea"]]


def test_cached_vectors_are_read_during_embedding():
    begun, go_on = threading.Event(), threading.Event()

    def embed(texts):
        if texts == ["slow"]:
            begun.set()
            assert go_on.wait(300)
        return [[1.0]] * len(texts)

    cache = make(Embedder(embed, "m"))
    cache.vectors(["tea"], "default")
    thread = threading.Thread(target=cache.vectors, args=(["slow"], "default"))
    thread.start()
    assert begun.wait(300)
    assert cache.vectors(["tea"], "default").tolist() == [[1]]
    go_on.set()
    thread.join()


def test_least_recently_used_query_is_dropped(monkeypatch):
    monkeypatch.setattr(embedding_cache, "MAX_QUERIES", 2)
    model = Model(batch_size=10)
    cache = make(model)
    cache.query_vectors(["a", "bb"], "default")
    cache.query_vectors(["a"], "default")
    cache.query_vectors(["ccc"], "default")  # "bb" was used longest ago
    assert model.asked_queries == [["a", "bb"], ["ccc"]]
    cache.query_vectors(["a"], "default")
    assert len(model.asked_queries) == 2
    cache.query_vectors(["bb"], "default")
    assert model.asked_queries[2:] == [["bb"]]


async def test_aquery_vectors_calls_async_model_once():
    model = AsyncModel()
    cache = make(model)
    first = await cache.aquery_vectors(["tea", "water", "tea"], "default")
    assert first.tolist() == [[3, 2], [5, 2], [3, 2]]
    assert (await cache.aquery_vectors(["water"], "default")).tolist() == [[5, 2]]
    assert cache.query_vectors(["tea"], "default").tolist() == [[3, 2]]
    assert model.asked_queries == [["tea", "water"]]


@pytest.mark.parametrize("kind", [Model, AsyncModel])
async def test_fusion_branches_embed_query_once(kind):
    model = kind()
    graph = NodeGraph(embed=Embedder(model), progress=False)
    graph.add(["tea", "water", "红茶"])
    fusion = FusionRetriever([Retriever(graph, "ROOT", "cosine", top_k=k) for k in (1, 2)])
    assert len(await fusion.aretrieve("coffee")) == len(fusion.retrieve("coffee")) == 2
    assert model.asked_queries == [["coffee"]]
