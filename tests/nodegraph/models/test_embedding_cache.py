import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stores import memory_store

from nodekin.nodegraph import Embedder, EmbeddingError, NodeGraph
from nodekin.nodegraph.models import embedding_cache
from nodekin.nodegraph.models.embedder import as_embedders
from nodekin.nodegraph.models.embedding_cache import EmbeddingCache


class Model:
    """Embed a text as its length and a mark, and remember what it was asked."""

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
    return EmbeddingCache(memory_store() if store is None else store, as_embedders(embed), False)


def test_passages_in_the_order_asked_each_embedded_once():
    model = Model()
    kept = make(model)
    assert kept.vectors(["tea", "water", "tea"], "default").tolist() == [[3, 1], [5, 1], [3, 1]]
    assert model.asked == [["water", "tea"]]
    assert kept.vectors(["river", "water"], "default").tolist() == [[5, 1], [5, 1]]
    assert model.asked == [["water", "tea"], ["river"]]


@given(st.lists(st.lists(st.sampled_from(["a", "bb", "ccc", "dddd", "eeeee"]))))
def test_any_asking_gives_the_vectors_of_its_texts(asked):
    model = Model(batch_size=3)
    kept = make(model)
    for texts in asked:
        vectors = kept.vectors(texts, "default")
        assert vectors.shape[0] == len(texts)
        assert vectors[:, :1].ravel().tolist() == [len(text) for text in texts]
        queries = kept.query_vectors(texts, "default")
        assert queries[:, :1].ravel().tolist() == [len(text) for text in texts]
    everything = [text for batch in model.asked for text in batch]
    assert sorted(everything) == sorted({text for texts in asked for text in texts})
    assert all(len(batch) <= 3 for batch in model.asked + model.asked_queries)


def test_another_start_embeds_nothing():
    store = memory_store()
    make(Model(), store).vectors(["tea", "water"], "default")
    again = Model()
    assert make(again, store).vectors(["water"], "default").tolist() == [[5, 1]]
    assert again.asked == []


def test_another_name_embeds_anew():
    store = memory_store()
    make(Model("a"), store).vectors(["tea"], "default")
    other = Model("b")
    make(other, store).vectors(["tea"], "default")
    assert other.asked == [["tea"]]


def test_two_keys_of_one_model_share_its_vectors():
    model = Model()
    kept = make({"a": model, "b": model})
    kept.vectors(["tea"], "a")
    kept.vectors(["tea"], "b")
    assert model.asked == [["tea"]]


def test_nothing_asked():
    kept = make(Model())
    assert kept.vectors([], "default").shape == (0, 0)
    assert kept.query_vectors([], "default").shape == (0, 0)
    assert asyncio.run(kept.aquery_vectors([], "default")).shape == (0, 0)
    kept.vectors(["tea"], "default")
    assert kept.vectors([], "default").shape == (0, 2)
    assert kept.query_vectors([], "default").shape == (0, 2)


def test_an_unknown_key_names_the_known_ones():
    with pytest.raises(LookupError, match=r"no embedding 'e6'; it has 'e5', 'title'"):
        make({"title": Model(), "e5": Model("b")}).vectors(["tea"], "e6")
    with pytest.raises(LookupError, match=r"it has none: give it one"):
        NodeGraph().embeddings.query_vectors(["tea"], "default")


def test_a_failure_keeps_the_batches_before_it():
    store = memory_store()
    texts = ["x" * size for size in range(1, 21)]
    with pytest.raises(
        EmbeddingError, match=r"'model' failed on 2 texts.*OSError: the line is down"
    ):
        make(Model(fails_at=6), store).vectors(texts, "default")
    again = Model()
    assert make(again, store).vectors(texts, "default").shape == (20, 2)
    assert again.asked == [texts[at - 2 : at][::-1] for at in range(8, 0, -2)]


def test_a_wrong_count_keeps_nothing_of_its_batch():
    store = memory_store()
    short = Embedder(lambda texts: [[1.0]], "model")
    with pytest.raises(EmbeddingError, match=r"1 vector for 2 texts"):
        make(short, store).vectors(["a", "b"], "default")
    again = Model()
    make(again, store).vectors(["a", "b"], "default")
    assert again.asked == [["a", "b"]]


def test_another_dimension_under_the_same_name_is_refused():
    store = memory_store()
    make(Model(), store).vectors(["tea"], "default")
    longer = make(Model(dimension=3), store)
    says = r"gives vectors of 3 numbers, and vectors stored under its name have 2; .*another name"
    with pytest.raises(EmbeddingError, match=says):
        longer.vectors(["tea", "water"], "default")
    with pytest.raises(EmbeddingError, match=says):
        longer.query_vectors(["tea"], "default")
    with pytest.raises(EmbeddingError, match=says):
        asyncio.run(make(AsyncModel(dimension=3), store).aquery_vectors(["tea"], "default"))


def test_one_dimension_from_batch_to_batch():
    sizes = iter([2, 3])
    model = Embedder(lambda texts: np.ones((len(texts), next(sizes))), "m", batch_size=1)
    with pytest.raises(EmbeddingError, match=r"vectors of 3 numbers"):
        make(model).vectors(["a", "b"], "default")


def test_threads_embed_a_text_once():
    model = Model(seconds=0.01)
    kept = make({"a": model, "b": model})
    texts = [str(number) for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda n: kept.vectors(texts, "ab"[n % 2]), range(8)))
    assert all(np.array_equal(each, made[0]) for each in made)
    assert sorted(text for batch in model.asked for text in batch) == texts


def test_what_is_kept_is_read_while_another_thread_embeds():
    begun, go_on = threading.Event(), threading.Event()

    def embed(texts):
        if texts == ["slow"]:
            begun.set()
            assert go_on.wait(300)
        return [[1.0]] * len(texts)

    kept = make(Embedder(embed, "m"))
    kept.vectors(["tea"], "default")
    thread = threading.Thread(target=kept.vectors, args=(["slow"], "default"))
    thread.start()
    assert begun.wait(300)
    assert kept.vectors(["tea"], "default").tolist() == [[1]]
    go_on.set()
    thread.join()


def test_the_last_queries_are_remembered(monkeypatch):
    monkeypatch.setattr(embedding_cache, "MAX_QUERIES", 2)
    model = Model(batch_size=10)
    kept = make(model)
    kept.query_vectors(["a", "bb"], "default")
    kept.query_vectors(["a"], "default")
    kept.query_vectors(["ccc"], "default")  # "bb" was used longest ago
    assert model.asked_queries == [["a", "bb"], ["ccc"]]
    kept.query_vectors(["a"], "default")
    assert len(model.asked_queries) == 2
    kept.query_vectors(["bb"], "default")
    assert model.asked_queries[2:] == [["bb"]]


def test_more_queries_than_are_remembered(monkeypatch):
    monkeypatch.setattr(embedding_cache, "MAX_QUERIES", 3)
    queries = ["x" * size for size in range(1, 9)]
    for kept in (make(Model()), make(AsyncModel())):
        for _ in range(2):
            assert kept.query_vectors(queries, "default")[:, 0].tolist() == list(range(1, 9))
            made = asyncio.run(kept.aquery_vectors(queries, "default"))
            assert made[:, 0].tolist() == list(range(1, 9))


def test_threads_that_forget_each_others_queries(monkeypatch):
    monkeypatch.setattr(embedding_cache, "MAX_QUERIES", 2)
    kept = make(Model())

    def ask(number):
        queries = ["x" * (number % 5 + 1), "y" * (number % 7 + 1)]
        return kept.query_vectors(queries, "default")[:, 0].tolist() == [
            number % 5 + 1,
            number % 7 + 1,
        ]

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(ask, range(400)))


async def test_queries_by_the_async_form():
    model = AsyncModel()
    kept = make(model)
    first = await kept.aquery_vectors(["tea", "water", "tea"], "default")
    assert first.tolist() == [[3, 2], [5, 2], [3, 2]]
    assert (await kept.aquery_vectors(["water"], "default")).tolist() == [[5, 2]]
    assert kept.query_vectors(["tea"], "default").tolist() == [[3, 2]]
    assert model.asked_queries == [["tea", "water"]]


async def test_queries_without_an_async_form_do_not_block():
    turned = threading.Event()
    main = threading.get_ident()
    threads = []

    def embed(texts):
        threads.append(threading.get_ident())
        assert turned.wait(300)  # the event loop goes on meanwhile
        return [[1.0]] * len(texts)

    kept = make(Embedder(embed, "m"))
    asked = asyncio.create_task(kept.aquery_vectors(["tea"], "default"))
    await asyncio.sleep(0.01)
    turned.set()
    assert (await asked).tolist() == [[1]]
    assert threads != [main]


async def test_the_store_is_not_read_in_the_event_loop():
    main = threading.get_ident()

    store = memory_store()
    get_values = store.get_values

    def watched(kind, keys):
        assert threading.get_ident() != main
        return get_values(kind, keys)

    store.get_values = watched
    kept = make(AsyncModel(), store)
    for queries in (["tea"], ["tea", "water"], []):
        assert len(await kept.aquery_vectors(queries, "default")) == len(queries)


async def test_a_cancelled_query_is_cancelled():
    async def never(texts):
        await asyncio.Event().wait()

    kept = make(Embedder(lambda texts: [[1.0]] * len(texts), "m", aembed_queries=never))
    task = asyncio.create_task(kept.aquery_vectors(["tea"], "default"))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert kept.query_vectors(["tea"], "default").tolist() == [[1]]


def test_a_vector_of_another_length_in_the_store_is_found():
    store = memory_store()
    kept = make(Model(), store)
    kept.vectors(["tea", "water"], "default")
    (key, vector) = next(i for i in store.get_values("embedding model").items() if i[0])
    store.put_values("embedding model", {key: vector * 2})
    with pytest.raises(EmbeddingError, match=r"another name"):
        make(Model(), store).vectors(["tea", "water"], "default")
