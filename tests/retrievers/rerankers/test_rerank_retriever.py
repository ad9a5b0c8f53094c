"""A retriever that asks for more and keeps the best, and what it does when the model fails."""

import asyncio
import logging
import pickle
import threading

import pytest
from fixed_retriever import FixedRetriever, ids, scored

from nodekin.nodegraph import Document, Node, NodeGraph
from nodekin.retrievers import FusionRetriever, Retriever, trace
from nodekin.retrievers.protocols import RerankError
from nodekin.retrievers.rerankers.rerank_retriever import RerankRetriever
from nodekin.retrievers.rerankers.reranker import Reranker

NODES = {name: Node(f"text {name}", id=name) for name in "abcdefgh"}


def letters(results) -> str:
    return "".join(ids(results))


def fixed() -> FixedRetriever:
    """Return a retriever of a to h, in this order."""
    return FixedRetriever(scored(list(NODES.values()), range(9, 1, -1), "bm25"))


def later_is_better(query, texts):
    return [float(ord(text[-1])) for text in texts]


def broken(query, texts):
    raise OSError("gone")


async def test_rerank_returns_best_of_candidates() -> None:
    inner = fixed()
    retriever = RerankRetriever(inner, "ModuleReranker", model=later_is_better, top_k=2)
    results = retriever("q")
    assert letters(results) == "hg"
    assert [e.similarity for e in results[0].evidence] == ["ModuleReranker", "bm25"]
    assert [e.score for e in results[0].evidence] == [float(ord("h")), 2.0]
    assert results == retriever.retrieve("q") == await retriever.aretrieve("q")
    assert retriever.batch(["q", ""]) == await retriever.abatch(["q", ""]) == [results, []]
    assert inner.calls[0] == ("q", 8, None)


def test_fetch_k_limits_candidates() -> None:
    inner = fixed()
    retriever = RerankRetriever(inner, "ModuleReranker", model=later_is_better, top_k=2, fetch_k=5)
    assert letters(retriever("q")) == "ed"
    assert letters(retriever("q", top_k=7, filters={"year": 1})) == "gfedcba"
    assert inner.calls == [("q", 5, None), ("q", 7, {"year": 1})]
    assert letters(RerankRetriever(inner, "KeywordFilter", required="c")("q")) == "c"
    assert inner.calls[-1] == ("q", 24, None)


def test_limits_of_reranker_apply() -> None:
    reranker = Reranker("ModuleReranker", model=later_is_better, top_k=3, min_score=ord("g"))
    assert letters(RerankRetriever(fixed(), reranker)("q")) == "hg"
    few = RerankRetriever(fixed(), reranker, top_k=2)
    assert letters(few("q")) == "hg"
    assert letters(few("q", top_k=1)) == ""  # a to d were looked at


@pytest.mark.parametrize("way", ["retrieve", "aretrieve", "batch"])
def test_failed_model_keeps_order_and_is_logged(way, caplog) -> None:
    retriever = RerankRetriever(fixed(), "ModuleReranker", model=broken, top_k=3)
    with caplog.at_level(logging.WARNING), trace() as traced:
        if way == "batch":
            (results,) = retriever.batch(["q"])
        elif way == "retrieve":
            results = retriever.retrieve("q")
        else:
            results = asyncio.run(retriever.aretrieve("q"))
    assert letters(results) == "abc"
    assert [r.score for r in results] == [9.0, 8.0, 7.0]
    for result in results:
        first, second = result.evidence
        assert first.similarity.startswith("rerank failed: ModuleReranker: RerankError: ")
        assert first.similarity.endswith("failed on 8 passages: OSError: gone")
        assert second.similarity == "bm25"
    assert "rerank failed" in results[0].explain()
    (record,) = caplog.records
    assert "ModuleReranker failed for 'q', which keeps the order" in record.getMessage()
    (done,) = traced.children
    assert done.name == "rerank"
    assert isinstance(done.error, RerankError)


def test_failed_model_with_on_error_raise_raises() -> None:
    retriever = RerankRetriever(fixed(), "ModuleReranker", model=broken, on_error="raise")
    with pytest.raises(RerankError, match="OSError: gone"):
        retriever("q")
    with pytest.raises(RerankError, match="OSError: gone"):
        asyncio.run(retriever.aretrieve("q"))


def test_nan_scores_count_as_failure() -> None:
    retriever = RerankRetriever(
        fixed(), "ModuleReranker", model=lambda query, texts: [float("nan")] * len(texts), top_k=2
    )
    results = retriever("q")
    assert letters(results) == "ab"
    assert "gave nan for passage 1 of 8" in results[0].evidence[0].similarity


def test_failed_inner_retriever_raises() -> None:
    class Failing(FixedRetriever):
        def retrieve(self, query, *, top_k=None, filters=None):
            raise OSError("no disk")

    with pytest.raises(OSError, match="no disk"):
        RerankRetriever(Failing([]), "KeywordFilter")("q")
    with pytest.raises(OSError, match="no disk"):
        asyncio.run(RerankRetriever(Failing([]), "KeywordFilter").aretrieve("q"))


def test_empty_results_do_not_call_model() -> None:
    retriever = RerankRetriever(fixed(), "ModuleReranker", model=broken, on_error="raise")
    assert retriever("") == retriever.retrieve("") == asyncio.run(retriever.aretrieve("")) == []


async def test_slow_model_does_not_block_event_loop() -> None:
    turned = threading.Event()

    def waits(query, texts):
        assert turned.wait(300)
        return later_is_better(query, texts)

    retriever = RerankRetriever(fixed(), "ModuleReranker", model=waits, on_error="raise")
    task = asyncio.create_task(retriever.aretrieve("q"))
    await asyncio.sleep(0.01)
    turned.set()
    assert letters(await task) == "hgfedc"


async def test_cancellation_is_not_a_failure() -> None:
    class Endless:
        def rerank(self, query, texts):
            raise AssertionError("asked")

        async def arerank(self, query, texts):
            await asyncio.Event().wait()

    task = asyncio.create_task(
        RerankRetriever(fixed(), "ModuleReranker", model=Endless()).aretrieve("q")
    )
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def test_nested_rerank_retriever_can_be_pickled() -> None:
    graph = NodeGraph(progress=False)
    graph.create_node_group("line", str.splitlines)
    graph.add(
        [Document("green tea\nriver", {"year": 1}, id="1"), Document("tea", {"year": 2}, id="2")]
    )
    lines = Retriever(graph, "line", target="ROOT")
    first = RerankRetriever(lines, "KeywordFilter", required="river")
    both = FusionRetriever([first, Retriever(graph, "ROOT")])
    retriever = RerankRetriever(both, "ModuleReranker", model=later_is_better, top_k=2)
    assert [r.node.id for r in first("tea")] == ["1"]
    assert [r.node.id for r in retriever("tea")] == ["1", "2"]
    assert [r.node.id for r in retriever("tea", filters={"year": 2})] == ["2"]
    with graph.reader.reading("line"):
        assert len(retriever("tea")) == 2
    again = pickle.loads(pickle.dumps(RerankRetriever(fixed(), "KeywordFilter", required="c")))
    assert letters(again("q")) == "c"
    text = RerankRetriever(lines, "KeywordFilter", output_format="content", join=True)("tea")
    assert text == "tea\ngreen tea\nriver"
    assert "Reranker('ModuleReranker', top_k=None), top_k=2" in repr(retriever)


@pytest.mark.parametrize(
    ("arguments", "settings", "error", "says"),
    [
        (("bm25", "KeywordFilter"), {}, TypeError, "object with retrieve.* 'bm25'"),
        ((fixed(), "KeywordFiltr"), {}, ValueError, "no reranker 'KeywordFiltr'"),
        ((fixed(), "ModuleReranker"), {}, TypeError, "needs model"),
        ((fixed(), Reranker("KeywordFilter")), {"required": "a"}, TypeError, "itself"),
        ((fixed(), "KeywordFilter"), {"top_k": 0}, ValueError, "top_k must be 1 or more"),
        (
            (fixed(), "KeywordFilter"),
            {"fetch_k": 0},
            ValueError,
            "fetch_k must be 1 or more, not 0",
        ),
        ((fixed(), "KeywordFilter"), {"fetch_k": 2.5}, TypeError, "fetch_k is a whole number"),
        ((fixed(), "KeywordFilter"), {"fetch": 1}, TypeError, "called 'fetch_k' here"),
        ((fixed(), "KeywordFilter"), {"max_fetch": 1}, TypeError, "called 'max_fetch_k' here"),
        ((fixed(), "KeywordFilter"), {"on_error": "skip"}, ValueError, "'keep' or 'raise', not"),
        ((fixed(), "KeywordFilter"), {"join": True}, ValueError, "join=True joins contents"),
    ],
)
def test_rerank_retriever_with_invalid_argument_raises(arguments, settings, error, says) -> None:
    with pytest.raises(error, match=says):
        RerankRetriever(*arguments, **settings)


def test_rerank_call_with_invalid_argument_raises() -> None:
    retriever = RerankRetriever(fixed(), "KeywordFilter")
    with pytest.raises(TypeError, match="batch takes a list of queries"):
        retriever.batch("q")
    with pytest.raises(ValueError, match="top_k must be 1 or more"):
        retriever("q", top_k=0)
    with pytest.raises(TypeError, match="filters map"):
        retriever("q", filters="year")
