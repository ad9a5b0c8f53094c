"""Many queries at once: one embedding, a run for each."""

import asyncio
import threading
import time
import uuid

import pytest
from blockbuster import blockbuster_ctx
from langchain_core.callbacks import AsyncCallbackHandler, BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda
from langchain_runs import FinishedRuns

from nodekin.adapters.langchain import NodeGraphRetriever
from nodekin.nodegraph import Embedder, NodeGraph, split_sentences
from nodekin.retrievers import (
    FusionRetriever,
    RecursiveRetriever,
    RerankRetriever,
    Retriever,
    WindowRetriever,
)

WORDS = ["tea", "river", "book", "茶"]
TEXTS = {"tea": "Tea. Green tea.", "river": "A river.", "book": "A book.", "茶": "绿茶。红茶。"}


class Model:
    """Counts words, and what it was asked."""

    def __init__(self):
        self.asked = []

    def embed(self, texts):
        return [[0.1, *(float(text.lower().count(word)) for word in WORDS)] for text in texts]

    def embed_queries(self, texts):
        self.asked.append(list(texts))
        if any("poison" in text for text in texts):
            raise ValueError("the model can't embed poison")
        return self.embed(texts)


class AsyncModel(Model):
    async def aembed_queries(self, texts):
        await asyncio.sleep(0)
        return self.embed_queries(texts)


@pytest.fixture(params=[Model, AsyncModel])
def model(request):
    return request.param()


@pytest.fixture
def graph(model):
    graph = NodeGraph(embed=model, progress=False)
    graph.add([Document(text, metadata={"name": name}, id=name) for name, text in TEXTS.items()])
    graph.create_node_group("sentence", split_sentences)
    return graph


@pytest.fixture
def native(graph):
    return Retriever(graph, "sentence", "cosine", target="ROOT", top_k=1)


@pytest.fixture
def retriever(native):
    return NodeGraphRetriever(retriever=native)


async def batch(runnable, mode, queries, *args, **kwargs):
    if mode == "sync":
        return await asyncio.to_thread(runnable.batch, queries, *args, **kwargs)
    return await runnable.abatch(queries, *args, **kwargs)


def first_ids(found):
    return [[document.id for document in each][:1] for each in found]


@pytest.mark.parametrize(
    "around",
    [
        lambda native: native,
        lambda native: FusionRetriever([native, Retriever(native.graphs, "ROOT", "cosine")]),
        lambda native: RerankRetriever(
            WindowRetriever(native), "ModuleReranker", model=lambda q, texts: [1.0] * len(texts)
        ),
        lambda native: RecursiveRetriever(
            native.graphs, ["sentence"], "ROOT", similarity="cosine", top_k=1
        ),
    ],
    ids=["plain", "fusion", "wrapped", "recursive"],
)
async def test_all_queries_are_embedded_in_one_call(native, model, mode, around):
    retriever = NodeGraphRetriever(retriever=around(native))
    found = await batch(retriever, mode, WORDS, k=1)
    assert model.asked == [WORDS]
    assert first_ids(found) == [["tea"], ["river"], ["book"], ["茶"]]
    assert found == [retriever.invoke(query, k=1) for query in WORDS]


async def test_more_than_are_remembered(retriever, model, mode):
    queries = [f"tea {n}" for n in range(700)]
    tracer = FinishedRuns()
    found = await batch(retriever, mode, queries, {"callbacks": [tracer]})
    assert first_ids(found) == [["tea"]] * 700
    assert sorted(q for asked in model.asked for q in asked) == sorted(queries)
    assert len(model.asked) < 20
    assert len(tracer.roots) == 700


async def test_blank_and_double_queries_are_not_embedded(retriever, model, mode):
    found = await batch(retriever, mode, ["tea", "", "tea", " ", "茶"])
    assert model.asked == [["tea", "茶"]]
    assert first_ids(found) == [["tea"], [], ["tea"], [], ["茶"]]


async def test_an_empty_batch(retriever, model, mode):
    assert await batch(retriever, mode, []) == []
    assert model.asked == []


async def test_a_strategys_questions_are_not_embedded_before_it_has_made_others(
    native, model, mode
):
    class Strategy:
        """Searches for what its model says."""

        llm = staticmethod(str.upper)
        inner = native

        def retrieve(self, query, *, top_k=None, filters=None):
            return self.inner.retrieve(self.llm(query), top_k=top_k, filters=filters)

        async def aretrieve(self, query, *, top_k=None, filters=None):
            return await self.inner.aretrieve(self.llm(query), top_k=top_k, filters=filters)

    found = await batch(NodeGraphRetriever(retriever=Strategy()), mode, ["tea", "book"])
    assert sorted(model.asked) == [["BOOK"], ["TEA"]]
    assert first_ids(found) == [["tea"], ["book"]]


async def test_every_query_has_a_run_of_its_own(retriever, mode):
    tracer = FinishedRuns()
    await batch(retriever, mode, WORDS, {"callbacks": [tracer]}, k=1)
    assert sorted(run.inputs["query"] for run in tracer.roots) == sorted(WORDS)
    assert {run.run_type for run in tracer.roots} == {"retriever"}
    for run in tracer.roots:
        (search,) = run.child_runs
        assert (search.name, search.inputs["query"]) == ("search", run.inputs["query"])
        assert len(run.outputs["documents"]) == 1


async def test_arguments_hold_for_all(retriever, mode):
    found = await batch(retriever, mode, WORDS, k=1, filter={"n": 1}, child_k=2)
    assert found == [[]] * 4
    found = await batch(retriever, mode, WORDS, score_threshold=10)
    assert found == [[]] * 4
    with pytest.raises(TypeError, match="top_k"):
        await batch(retriever, mode, WORDS, top_k=1)


async def test_a_config_for_each(retriever, mode):
    tracers = [FinishedRuns(), FinishedRuns()]
    ids = [uuid.uuid4(), uuid.uuid4()]
    configs = [
        {"run_id": id, "run_name": f"look up {n}", "tags": [str(n)], "callbacks": [tracer]}
        for n, (id, tracer) in enumerate(zip(ids, tracers, strict=True))
    ]
    await batch(retriever, mode, ["tea", "book"], configs)
    for n, tracer in enumerate(tracers):
        (run,) = tracer.roots
        assert (run.id, run.name, run.tags) == (ids[n], f"look up {n}", [str(n)])
    with pytest.raises(ValueError, match="same length"):
        await batch(retriever, mode, ["tea", "book"], configs[:1])


async def test_a_run_id_for_all_is_the_firsts(retriever, mode):
    tracer, wanted = FinishedRuns(), uuid.uuid4()
    with pytest.warns(RuntimeWarning, match="first"):
        await batch(retriever, mode, WORDS, {"run_id": wanted, "callbacks": [tracer]})
    assert {run.inputs["query"]: run.id == wanted for run in tracer.roots} == {
        "tea": True,
        "river": False,
        "book": False,
        "茶": False,
    }


@pytest.mark.parametrize("limit", [1, 2])
async def test_no_more_at_once_than_the_config_says(mode, limit):
    class Counting:
        def __init__(self):
            self.now = self.most = 0
            self.lock = threading.Lock()

        def retrieve(self, query, *, top_k=None, filters=None):
            self.come()
            while self.most < limit:  # others come meanwhile
                time.sleep(0.001)
            time.sleep(0.01)  # and here one more would, if it might
            self.go()
            return []

        async def aretrieve(self, query, *, top_k=None, filters=None):
            self.come()
            while self.most < limit:
                await asyncio.sleep(0.001)
            await asyncio.sleep(0.01)
            self.go()
            return []

        def come(self):
            with self.lock:
                self.now += 1
                self.most = max(self.most, self.now)

        def go(self):
            with self.lock:
                self.now -= 1

    engine = Counting()
    queries = list("abcdef")
    await batch(NodeGraphRetriever(retriever=engine), mode, queries, {"max_concurrency": limit})
    assert engine.most == limit


async def test_one_that_fails_does_not_spoil_the_others(retriever, mode):
    tracer = FinishedRuns()
    queries = ["tea", 5, "poison", "book"]
    found = await batch(retriever, mode, queries, {"callbacks": [tracer]}, return_exceptions=True)
    assert first_ids([found[0], found[3]]) == [["tea"], ["book"]]
    assert isinstance(found[1], TypeError)
    assert "poison" in str(found[2])
    failed = [run for run in tracer.roots if run.error]
    assert (len(tracer.roots), len(failed)) == (4, 2)


async def test_without_return_exceptions_it_raises(retriever, mode):
    with pytest.raises(Exception, match="poison"):
        await batch(retriever, mode, ["tea", "poison"])


class Errors(BaseCallbackHandler):
    """Counts the runs that report an error."""

    def __init__(self):
        self.seen = 0

    async def wait(self):
        """Later reports take a while, as a tracer's may."""
        if self.seen:
            for _ in range(20):
                await asyncio.sleep(0)


class AsyncErrors(AsyncCallbackHandler, Errors):
    async def on_retriever_error(self, error, **kwargs):
        assert isinstance(error, asyncio.CancelledError)
        await self.wait()
        self.seen += 1


class SyncErrors(Errors):
    def on_retriever_error(self, error, **kwargs):
        assert isinstance(error, asyncio.CancelledError)
        self.seen += 1


class Endless:
    """Never has results; knows how many searches wait."""

    def __init__(self):
        self.waiting = asyncio.Semaphore(0)

    def retrieve(self, query, *, top_k=None, filters=None):
        raise NotImplementedError

    async def aretrieve(self, query, *, top_k=None, filters=None):
        self.waiting.release()
        await asyncio.Event().wait()


@pytest.mark.parametrize("handler", [SyncErrors, AsyncErrors])
async def test_a_cancelled_batch_reports_each(handler):
    engine, errors = Endless(), handler()
    retriever = NodeGraphRetriever(retriever=engine)
    task = asyncio.create_task(retriever.abatch(["a", "b", "c"], {"callbacks": [errors]}))
    for _ in range(3):
        await engine.waiting.acquire()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert errors.seen == 3


async def test_in_a_chain_the_batch_reaches_the_retriever(retriever, model, mode):
    chain = RunnableLambda(str.strip) | retriever | RunnableLambda(len)
    assert await batch(chain, mode, [" tea", "book "]) == [1, 1]
    assert model.asked == [["tea", "book"]]


async def test_nothing_blocks_the_event_loop(retriever):
    with blockbuster_ctx():
        assert len(await retriever.abatch(WORDS)) == 4


async def test_an_embedder_with_a_batch_size_gets_its_batches(model):
    graph = NodeGraph(embed=Embedder(model, batch_size=3, name="m"), progress=False)
    graph.add(list(TEXTS.values()))
    retriever = NodeGraphRetriever(retriever=Retriever(graph, "ROOT", "cosine"))
    retriever.batch(WORDS)
    assert model.asked == [WORDS[:3], WORDS[3:]]
