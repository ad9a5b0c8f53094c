"""How many hits are looked at before lifting."""

import asyncio

import pytest
from support.counting_model import CountingModel

from nodekin.nodegraph import Document, NodeGraph, split_sentences
from nodekin.retrievers import (
    AutoMergeRetriever,
    BaseRetriever,
    BudgetResults,
    FusionRetriever,
    RerankRetriever,
    Retriever,
    WindowRetriever,
    as_retriever,
)

LINES = {
    "many": "tea\ntea\ntea\ntea cup",
    "one": "tea and a long line about something else\nrivers",
    "茶": "tea 绿茶\n红茶",
}


@pytest.fixture
def graph():
    graph = NodeGraph(progress=False)
    graph.add([Document(text, id=name) for name, text in LINES.items()])
    graph.create_node_group("line", str.splitlines)
    return graph


def found(results):
    return [(each.node.id, len(each.evidence)) for each in results]


@pytest.mark.parametrize(
    ("fetch_k", "expected"),
    [
        (1, [("many", 1)]),
        (3, [("many", 3)]),
        (5, [("many", 4), ("茶", 1)]),
        (99, [("many", 4), ("茶", 1), ("one", 1)]),
    ],
)
def test_fetch_k_limits_hits_before_lifting(graph, fetch_k, expected):
    retriever = Retriever(graph, "line", target="ROOT", fetch_k=fetch_k)
    assert found(retriever.retrieve("tea")) == expected
    assert found(retriever.retrieve("tea", top_k=1)) == expected[:1]


def test_fetch_k_limits_hits_of_sum_and_mean(graph):
    single = Retriever(graph, "line", "bm25").retrieve("tea")[0].score
    for lift, expected in (("sum", 1.5 * single), ("mean", single)):
        retriever = Retriever(graph, "line", target="ROOT", lift=lift, fetch_k=3)
        (result,) = retriever.retrieve("tea")
        assert result.score == pytest.approx(expected)


def test_fetch_k_without_target_is_ignored(graph):
    retriever = Retriever(graph, "line", fetch_k=1)
    assert len(retriever.retrieve("tea", top_k=4)) == 4


def test_fetch_k_hit_can_have_several_targets(graph):
    retriever = Retriever(graph, "ROOT", target="line", fetch_k=1)
    assert len(retriever.retrieve("cup", top_k=9)) == 4
    assert len(retriever.retrieve("cup", top_k=3)) == 3


def test_fetch_k_counts_hits_of_all_graphs(graph):
    other = NodeGraph(progress=False)
    other.add([Document("tea\ntea", id="other")])
    other.create_node_group("line", str.splitlines)
    retriever = Retriever([graph, other], "line", target="ROOT", fetch_k=4)
    results = retriever.retrieve("tea")
    assert sum(len(each.evidence) for each in results) == 4
    one_by_one = [each.score for each in Retriever([graph, other], "line").retrieve("tea", top_k=4)]
    assert sorted((e.score for r in results for e in r.evidence), reverse=True) == one_by_one


def test_fetch_k_applies_to_each_embedding():
    graph = NodeGraph(
        embed={
            "a": lambda texts: [[1.0, len(text)] for text in texts],
            "b": lambda texts: [[len(text), 1.0] for text in texts],
        },
        progress=False,
    )
    graph.add([Document(text, id=name) for name, text in LINES.items()])
    graph.create_node_group("line", str.splitlines)
    retriever = Retriever(graph, "line", "cosine", target="ROOT", lift="mean", fetch_k=2)
    assert sum(len(each.evidence) for each in retriever.retrieve("tea")) == 4


@pytest.mark.parametrize(
    "make",
    [
        lambda inner: inner,
        lambda inner: FusionRetriever([inner, inner], "concat"),
        lambda inner: RerankRetriever(
            FusionRetriever([inner, inner]),
            "ModuleReranker",
            model=lambda query, texts: [1.0] * len(texts),
        ),
    ],
    ids=["alone", "fused", "reranked"],
)
def test_with_fetch_k_applies_to_inner_retrievers(graph, make):
    retriever = make(Retriever(graph, "line", target="ROOT", fetch_k=99))
    fewer = retriever.with_fetch_k(3)
    assert [each.node.id for each in fewer.retrieve("tea")] == ["many"]
    assert [each.node.id for each in asyncio.run(fewer.aretrieve("tea"))] == ["many"]
    assert len(retriever.retrieve("tea")) == 3


@pytest.mark.parametrize(
    ("fetch_k", "error", "told"),
    [(0, ValueError, "1 or more, got 0"), ("3", TypeError, "'3'"), (True, TypeError, "True")],
)
def test_invalid_fetch_k_raises(graph, fetch_k, error, told):
    with pytest.raises(error, match=told):
        Retriever(graph, "line", fetch_k=fetch_k)
    with pytest.raises(error, match=told):
        Retriever(graph, "line").with_fetch_k(fetch_k)


@pytest.fixture
def model():
    return CountingModel()


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
async def test_abatch_equals_single_calls(native, model, name):
    retriever = RETRIEVERS[name](native)
    queries = ["tea", "river", "", "茶"]
    found = await retriever.abatch(queries, top_k=2)
    assert [asked for asked in model.asked if asked] == [["tea", "river", "茶"]]
    alone = [retriever.retrieve(query, top_k=2) for query in queries]
    assert [[(r.node.text, r.score) for r in each] for each in found] == [
        [(r.node.text, r.score) for r in each] for each in alone
    ]
    assert found[2] == []
    with pytest.raises(TypeError, match="list of texts"):
        await retriever.abatch("tea")
    assert await retriever.abatch([]) == []


class Plain:
    """A custom retriever without ``batch``."""

    def __init__(self, inner):
        self.inner = inner

    def retrieve(self, query, *, top_k=None, filters=None):
        return self.inner.retrieve(query, top_k=top_k, filters=filters)

    async def aretrieve(self, query, *, top_k=None, filters=None):
        return await self.inner.aretrieve(query, top_k=top_k, filters=filters)


class Minimal(BaseRetriever):
    """A minimal custom retriever."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def retrieve(self, query, *, top_k=None, filters=None):
        return self.inner.retrieve(query, top_k=top_k, filters=filters)

    async def aretrieve(self, query, *, top_k=None, filters=None):
        return self.retrieve(query, top_k=top_k, filters=filters)


async def test_batch_of_custom_retriever_has_token_budget(native):
    retriever = Minimal(native)
    expected = list(retriever("tea", max_tokens=3, order="document"))
    batches = (
        retriever.batch(["tea"], max_tokens=3, order="document"),
        await retriever.abatch(["tea"], max_tokens=3, order="document"),
    )
    for (found,) in batches:
        assert isinstance(found, BudgetResults)
        assert found.tokens <= 3
        assert list(found) == expected


@pytest.mark.parametrize("query", [None, b"tea", 3])
async def test_query_of_wrong_type_raises(native, query):
    graph = NodeGraph(progress=False)
    graph.add("Green tea.")
    for retriever in (native, FusionRetriever([native, native]), as_retriever(graph)):
        with pytest.raises(TypeError, match="a query must be a str, got "):
            retriever(query)
        with pytest.raises(TypeError, match="a query must be a str, got "):
            await retriever.abatch(["tea", query])


async def test_abatch_skips_failed_retriever_or_raises(native):
    class Failing(Plain):
        async def abatch(self, queries, *, top_k=None, filters=None):
            raise ConnectionError("gone")

    skipping = FusionRetriever([native, Failing(native)], on_error="skip")
    assert [len(each) for each in await skipping.abatch(["tea", "river"], top_k=1)] == [1, 1]
    with pytest.raises(ConnectionError):
        await FusionRetriever([native, Failing(native)]).abatch(["tea", "river"])
