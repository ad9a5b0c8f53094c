"""Many queries at once in an event loop: the same results, embedded together."""

import asyncio
import threading

import pytest

from nodekin.nodegraph import Document, NodeGraph, split_sentences
from nodekin.retrievers import (
    AutoMergeRetriever,
    FusionRetriever,
    RerankRetriever,
    Retriever,
    WindowRetriever,
)

WORDS = ["tea", "river", "茶"]


class Model:
    def __init__(self):
        self.asked = []

    def embed(self, texts):
        return [[0.1, *(float(text.lower().count(word)) for word in WORDS)] for text in texts]

    def embed_queries(self, texts):
        self.asked.append(list(texts))
        return self.embed(texts)


@pytest.fixture
def model():
    return Model()


@pytest.fixture
def native(model):
    graph = NodeGraph(embed=model, progress=False)
    graph.add([Document("Tea. Green tea.", id="a"), Document("A river.", id="b"), "绿茶。红茶。"])
    graph.create_node_group("sentence", split_sentences)
    return Retriever(graph, "sentence", "cosine", target=None)


def short_first(query, texts):
    return [-float(len(text)) for text in texts]


RETRIEVERS = {
    "window": lambda native: WindowRetriever(native),
    "merge": lambda native: AutoMergeRetriever(native),
    "fusion": lambda native: FusionRetriever([native, WindowRetriever(native)]),
    "rerank": lambda native: RerankRetriever(
        FusionRetriever([native, native]), "ModuleReranker", model=short_first
    ),
}


@pytest.mark.parametrize("name", RETRIEVERS)
async def test_the_results_are_those_of_single_calls(native, model, name):
    retriever = RETRIEVERS[name](native)
    queries = ["tea", "river", "", "茶"]
    found = await retriever.abatch(queries, top_k=2)
    assert [asked for asked in model.asked if asked] == [WORDS]
    alone = [retriever.retrieve(query, top_k=2) for query in queries]
    assert [[(r.node.text, r.score) for r in each] for each in found] == [
        [(r.node.text, r.score) for r in each] for each in alone
    ]
    assert found[2] == []
    with pytest.raises(TypeError, match="list of queries"):
        await retriever.abatch("tea")
    assert await retriever.abatch([]) == []


class Plain:
    """A retriever of a user's own, which has no batch."""

    def __init__(self, inner):
        self.inner = inner

    def retrieve(self, query, *, top_k=None, filters=None):
        return self.inner.retrieve(query, top_k=top_k, filters=filters)

    async def aretrieve(self, query, *, top_k=None, filters=None):
        return await self.inner.aretrieve(query, top_k=top_k, filters=filters)


@pytest.mark.parametrize("name", RETRIEVERS)
async def test_what_has_no_batch_is_asked_one_by_one(native, name):
    retriever = RETRIEVERS[name](Plain(native))
    found = await retriever.abatch(["tea", "茶"], top_k=1)
    assert [each[0].node.text for each in found] == [
        retriever.retrieve(query, top_k=1)[0].node.text for query in ("tea", "茶")
    ]


async def test_a_branch_that_fails_is_left_out_or_raises(native):
    class Failing(Plain):
        async def abatch(self, queries, *, top_k=None, filters=None):
            raise ConnectionError("gone")

    skipping = FusionRetriever([native, Failing(native)], on_error="skip")
    assert [len(each) for each in await skipping.abatch(["tea", "river"], top_k=1)] == [1, 1]
    with pytest.raises(ConnectionError):
        await FusionRetriever([native, Failing(native)]).abatch(["tea", "river"])


async def test_a_reranker_that_fails_keeps_the_order(native):
    def failing(query, texts):
        raise ConnectionError("gone")

    retriever = RerankRetriever(native, "ModuleReranker", model=failing, top_k=2)
    (found,) = await retriever.abatch(["tea"])
    assert found[0].evidence[0].similarity.startswith("rerank failed")


async def test_the_loop_goes_on(native):
    release = threading.Event()

    def waiting(query, texts):
        release.wait(300)
        return [1.0] * len(texts)

    retriever = RerankRetriever(native, "ModuleReranker", model=waiting)
    call = asyncio.create_task(retriever.abatch(["tea", "river"]))
    await asyncio.sleep(0.01)
    assert not call.done()
    release.set()
    assert len(await call) == 2
