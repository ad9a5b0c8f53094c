"""The retriever that reranks candidates: their number, failed models, cancellation."""

import asyncio
import logging
import pickle
from typing import Any

import pytest
from support.fixed_retriever import FixedRetriever, ids, scored

from nodekin.nodegraph import Document, Node, NodeGraph
from nodekin.retrievers import FusionRetriever, Retriever, trace
from nodekin.retrievers.protocols import RerankError
from nodekin.retrievers.rerankers.rerank_retriever import RerankRetriever
from nodekin.retrievers.rerankers.reranker import Reranker


def letters(results: Any) -> str:
    return "".join(ids(results))


def fixed() -> FixedRetriever:
    """Return a retriever of a to h, in this order."""
    nodes = [Node(f"text {name}", id=name) for name in "abcdefgh"]
    return FixedRetriever(scored(nodes, range(9, 1, -1), "bm25"))


def later_is_better(query: str, texts: list[str]) -> list[float]:
    return [float(ord(text[-1])) for text in texts]


def broken(query: str, texts: list[str]) -> list[float]:
    raise OSError("gone")


async def test_rerank_returns_best_of_candidates() -> None:
    inner = fixed()
    retriever = RerankRetriever(inner, "ModuleReranker", model=later_is_better, top_k=2)
    results = retriever("q")
    assert letters(results) == "hg"
    assert [(e.similarity, e.score) for e in results[0].evidence] == [
        ("ModuleReranker", float(ord("h"))),
        ("bm25", 2.0),
    ]
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


def test_limits_of_reranker_apply(caplog: pytest.LogCaptureFixture) -> None:
    reranker = Reranker("ModuleReranker", model=later_is_better, top_k=3, min_score=ord("g"))
    assert letters(RerankRetriever(fixed(), reranker)("q")) == "hg"
    few = RerankRetriever(fixed(), reranker, top_k=2)
    assert letters(few("q")) == "hg"
    assert caplog.messages == []
    for _ in range(2):
        assert letters(few("q", top_k=1)) == ""  # a to d were looked at
    assert caplog.messages == [
        "ModuleReranker: the best of 4 results scores 100.0000, below the minimum score 103"
    ]


def nan(query: str, texts: list[str]) -> list[float]:
    return [float("nan")] * len(texts)


@pytest.mark.parametrize("way", ["retrieve", "aretrieve", "batch"])
@pytest.mark.parametrize(
    ("model", "says"),
    [(broken, "failed on 8 passages: OSError: gone"), (nan, "returned nan for passage 1 of 8")],
)
def test_failed_model_keeps_order_and_is_logged(
    way: str, model: Any, says: str, caplog: pytest.LogCaptureFixture
) -> None:
    retriever = RerankRetriever(fixed(), "ModuleReranker", model=model, top_k=3)
    with caplog.at_level(logging.WARNING), trace() as traced:
        if way == "batch":
            (results,) = retriever.batch(["q"])
        else:
            results = getattr(retriever, way)("q")
            results = asyncio.run(results) if way == "aretrieve" else results
    assert [(r.node.id, r.score) for r in results] == [("a", 9.0), ("b", 8.0), ("c", 7.0)]
    for result in results:
        first, second = result.evidence
        assert first.similarity.startswith("rerank failed: ModuleReranker: RerankError: ")
        assert says in first.similarity
        assert second.similarity == "bm25"
    (record,) = caplog.records
    assert "ModuleReranker failed for 'q', which keeps the order" in record.getMessage()
    (done,) = traced.children
    assert (done.name, type(done.error)) == ("rerank", RerankError)


def test_failures_raise() -> None:
    class Failing(FixedRetriever):
        def retrieve(self, query: str, **options: Any) -> Any:
            raise OSError("no disk")

    raising = RerankRetriever(fixed(), "ModuleReranker", model=broken, on_error="raise")
    for retriever, error in (
        (raising, RerankError),
        (RerankRetriever(Failing([]), "KeywordFilter"), OSError),
    ):
        with pytest.raises(error, match=r"gone|no disk"):
            retriever("q")
        with pytest.raises(error, match=r"gone|no disk"):
            asyncio.run(retriever.aretrieve("q"))
    assert raising("") == raising.retrieve("") == asyncio.run(raising.aretrieve("")) == []


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
    assert [letters(each("tea")) for each in (first, retriever)] == ["1", "12"]
    assert letters(retriever("tea", filters={"year": 2})) == "2"
    again = pickle.loads(pickle.dumps(RerankRetriever(fixed(), "KeywordFilter", required="c")))
    assert letters(again("q")) == "c"
    text = RerankRetriever(lines, "KeywordFilter", output_format="content", join=True)("tea")
    assert text == "tea\ngreen tea\nriver"
    assert "Reranker('ModuleReranker', top_k=None), top_k=2" in repr(retriever)


@pytest.mark.parametrize(
    ("reranker", "settings", "error", "says"),
    [
        ("KeywordFiltr", {}, ValueError, "unknown reranker 'KeywordFiltr'"),
        ("ModuleReranker", {}, TypeError, "required positional argument: 'model'"),
        (Reranker("KeywordFilter"), {"required": "a"}, TypeError, "itself"),
        ("KeywordFilter", {"top_k": 0}, ValueError, "top_k must be 1 or more"),
        ("KeywordFilter", {"fetch_k": 0}, ValueError, "fetch_k must be 1 or more, got 0"),
        ("KeywordFilter", {"fetch_k": 2.5}, TypeError, "fetch_k must be an integer"),
        ("KeywordFilter", {"on_error": "skip"}, ValueError, "'keep' or 'raise', got"),
        ("KeywordFilter", {"join": True}, ValueError, "join=True joins contents"),
    ],
)
def test_rerank_retriever_with_invalid_argument_raises(
    reranker: Any, settings: Any, error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        RerankRetriever(fixed(), reranker, **settings)
