"""Many queries at once: embedded together, a run for each; ``max_concurrency`` within a call."""

import asyncio
import uuid

import pytest
from blockbuster import blockbuster_ctx
from concurrency_gauge import ConcurrencyGauge
from counting_model import WORDS, CountingModel
from fixed_retriever import EndlessRetriever
from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import RunnableLambda
from langchain_peers import face

from nodekin.adapters.langchain import NodeGraphQueryEngine, NodeGraphRetriever
from nodekin.nodegraph import Embedder, NodeGraph, split_sentences
from nodekin.retrievers import (
    FusionRetriever,
    QueryEngine,
    RecursiveRetriever,
    RerankRetriever,
    Retriever,
    WindowRetriever,
)
from nodekin.retrievers.strategies.strategy_registry import make_strategy

TEXTS = {"tea": "Tea. Green tea.", "river": "A river.", "book": "A book.", "茶": "绿茶。红茶。"}


class AsyncModel(CountingModel):
    async def aembed_queries(self, texts):
        await asyncio.sleep(0)
        return self.embed_queries(texts)


@pytest.fixture(params=[CountingModel, AsyncModel])
def model(request):
    return request.param()


@pytest.fixture
def native(model):
    graph = NodeGraph(embed=model, progress=False)
    graph.add([Document(text, metadata={"name": name}, id=name) for name, text in TEXTS.items()])
    graph.create_node_group("sentence", split_sentences)
    return Retriever(graph, "sentence", "cosine", target="ROOT", top_k=1)


@pytest.fixture
def retriever(native):
    return face(native)


async def batch(runnable, mode, queries, *args, **kwargs):
    if mode == "sync":
        return await asyncio.to_thread(runnable.batch, queries, *args, **kwargs)
    with blockbuster_ctx():
        return await runnable.abatch(queries, *args, **kwargs)


def first_ids(found):
    return [[document.id for document in each][:1] for each in found]


class Rewriting:
    """A strategy that searches for what its model says."""

    llm = staticmethod(str.upper)

    def __init__(self, inner):
        self.inner = inner

    def retrieve(self, query, *, top_k=None, filters=None):
        return self.inner.retrieve(self.llm(query), top_k=top_k, filters=filters)

    async def aretrieve(self, query, *, top_k=None, filters=None):
        return await self.inner.aretrieve(self.llm(query), top_k=top_k, filters=filters)


AROUND = {
    "plain": lambda native: native,
    "fusion": lambda native: FusionRetriever([native, Retriever(native.graphs, "ROOT", "cosine")]),
    "wrapped": lambda native: RerankRetriever(
        WindowRetriever(native), "ModuleReranker", model=lambda q, texts: [1.0] * len(texts)
    ),
    "recursive": lambda native: RecursiveRetriever(
        native.graphs, ["sentence"], "ROOT", similarity="cosine", top_k=1
    ),
}


@pytest.mark.parametrize("around", AROUND)
async def test_all_queries_are_embedded_in_one_call(native, model, mode, around):
    retriever = face(AROUND[around](native))
    found = await batch(retriever, mode, WORDS, k=1)
    assert model.asked == [WORDS]
    assert first_ids(found) == [["tea"], ["river"], ["book"], ["茶"]]
    assert found == [retriever.invoke(query, k=1) for query in WORDS]


@pytest.mark.slow
async def test_more_than_are_remembered(retriever, model, mode, tracer):
    queries = [f"tea {n}" for n in range(700)]
    found = await batch(retriever, mode, queries, {"callbacks": [tracer]})
    assert first_ids(found) == [["tea"]] * 700
    assert sorted(q for asked in model.asked for q in asked) == sorted(queries)
    assert len(model.asked) < 20
    assert len(tracer.roots) == 700


async def test_which_texts_are_embedded(native, retriever, model, mode):
    assert await batch(retriever, mode, []) == []
    found = await batch(retriever, mode, ["tea", "", "tea", " ", "茶"])
    assert model.asked == [["tea", "茶"]]
    assert first_ids(found) == [["tea"]] * 4 + [["茶"]]  # a blank query lists
    found = await batch(face(Rewriting(native)), mode, ["tea", "book"])
    assert sorted(model.asked[1:]) == [["BOOK"], ["TEA"]]  # not what it does not search for
    assert first_ids(found) == [["tea"], ["book"]]
    chain = RunnableLambda(str.strip) | retriever | RunnableLambda(len)
    assert await batch(chain, mode, [" river", "book "]) == [1, 1]
    assert model.asked[3:] == [["river", "book"]]


def test_an_embedder_with_a_batch_size_gets_its_batches(model):
    graph = NodeGraph(embed=Embedder(model, batch_size=3, name="m"), progress=False)
    graph.add(list(TEXTS.values()))
    face(Retriever(graph, "ROOT", "cosine")).batch(WORDS)
    assert model.asked == [WORDS[:3], WORDS[3:]]


async def test_every_query_has_a_run_of_its_own(retriever, mode, tracer):
    await batch(retriever, mode, WORDS, {"callbacks": [tracer]}, k=1)
    assert sorted(run.inputs["query"] for run in tracer.roots) == sorted(WORDS)
    for run in tracer.roots:
        (search,) = run.child_runs
        assert (run.run_type, search.name) == ("retriever", "search")
        assert search.inputs["query"] == run.inputs["query"]
        assert len(run.outputs["documents"]) == 1


async def test_arguments_hold_for_all(retriever, mode):
    assert await batch(retriever, mode, WORDS, k=1, filter={"n": 1}, child_k=2) == [[]] * 4
    found = await batch(retriever, mode, [*WORDS, "nothing"], score_threshold=0.5)
    assert [*map(len, found)] == [1, 1, 1, 1, 0]


async def test_a_config_for_each_or_a_run_id_for_the_first(retriever, mode, tracer):
    ids = [uuid.uuid4(), uuid.uuid4()]
    configs = [
        {"run_id": id, "run_name": f"look up {n}", "tags": [str(n)], "callbacks": [tracer]}
        for n, id in enumerate(ids)
    ]
    await batch(retriever, mode, ["tea", "book"], configs)
    named = {(run.id, run.name, run.tags[0]) for run in tracer.roots}
    assert named == {(id, f"look up {n}", str(n)) for n, id in enumerate(ids)}
    with pytest.raises(ValueError, match="same length"):
        await batch(retriever, mode, ["tea", "book"], configs[:1])
    tracer.roots.clear()
    with pytest.warns(RuntimeWarning, match="first"):
        await batch(retriever, mode, WORDS, {"run_id": ids[0], "callbacks": [tracer]})
    assert [run.inputs["query"] for run in tracer.roots if run.id == ids[0]] == ["tea"]


@pytest.mark.parametrize("limit", [1, 2])
async def test_no_more_at_once_than_the_config_says(mode, limit):
    gauge = ConcurrencyGauge(least=limit)
    await batch(face(gauge), mode, list("abcdef"), {"max_concurrency": limit})
    assert gauge.most == limit


async def test_one_that_fails_does_not_spoil_the_others(retriever, mode, tracer):
    queries = ["tea", 5, "poison", "book"]
    found = await batch(retriever, mode, queries, {"callbacks": [tracer]}, return_exceptions=True)
    assert first_ids([found[0], found[3]]) == [["tea"], ["book"]]
    assert isinstance(found[1], TypeError)
    assert "poison" in str(found[2])
    assert (len(tracer.roots), sum(bool(run.error) for run in tracer.roots)) == (4, 2)
    with pytest.raises(Exception, match="poison"):
        await batch(retriever, mode, ["tea", "poison"])


async def test_a_cancelled_batch_ends_when_each_run_has_reported():
    class Errors(AsyncCallbackHandler):
        seen = 0

        async def on_retriever_error(self, error, **kwargs):
            assert isinstance(error, asyncio.CancelledError)
            for _ in range(20 * self.seen):  # later reports take a while, as a tracer's may
                await asyncio.sleep(0)
            self.seen += 1

    errors, endless = Errors(), EndlessRetriever()
    task = asyncio.create_task(face(endless).abatch(["a", "b", "c"], {"callbacks": [errors]}))
    for _ in range(3):
        await endless.started.acquire()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert errors.seen == 3


# Within one call


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
@pytest.mark.parametrize("limit", [1, 2, None])
@pytest.mark.parametrize("of_models", [False, True])
async def test_max_concurrency_holds_for_branches_and_model_calls(way, limit, of_models):
    gauge = ConcurrencyGauge(least=limit or 4)
    runnable = NodeGraphRetriever(FusionRetriever([gauge] * 4))
    if of_models:
        graph = NodeGraph(progress=False)
        graph.add([f"{name} tea is a drink." for name in ("Green", "Black", "White", "Red")])
        runnable = NodeGraphQueryEngine(QueryEngine(Retriever(graph, "ROOT"), gauge, "map_reduce"))
    call = getattr(runnable, way)("tea", {"max_concurrency": limit} if limit else {})
    assert bool(call if way == "invoke" else await call) == of_models
    assert gauge.calls == 4 + of_models
    assert gauge.most == (limit or 4)


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
async def test_max_concurrency_holds_for_all_branches_and_sub_questions_together(way):
    gauge = ConcurrencyGauge()
    phrases = [FakeListChatModel(responses=["One tea?\nTwo teas?\nMany teas?"]) for _ in range(3)]
    searches = [make_strategy("multi_query", gauge, model) for model in phrases]
    retriever = NodeGraphRetriever(retriever=FusionRetriever(searches))
    call = getattr(retriever, way)("tea", {"max_concurrency": 4})
    assert (call if way == "invoke" else await call) == []
    assert gauge.calls == 12
    assert gauge.most <= 4
