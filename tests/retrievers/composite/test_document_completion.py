"""Documents with clustered hits: returned as a whole, or as the span between the hits."""

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.composite_graphs import DOCUMENTS, numbered, pick, words
from support.fixed_retriever import fixed, texts
from support.stress import amount

from nodekin.retrievers import Retriever
from nodekin.retrievers.composite.window import DocumentCompletionRetriever, WindowRetriever
from nodekin.retrievers.similarities.bm25 import Bm25

WORDS = Bm25(analyzer=str.split)


def test_completion_returns_short_document() -> None:
    graph = words("a b c d\ne f", "x y z", "p")
    completed = DocumentCompletionRetriever(fixed(pick(graph, "b,x,e,p")))
    results = completed("q")
    assert texts(results) == ["a b c d\ne f", "x", "p"]
    assert results[0].node == graph.node("d0")
    assert [e.node.text for e in results[0].evidence] == ["b", "e"]
    assert [r.score for r in results] == [4, 3, 1]
    assert texts(DocumentCompletionRetriever(fixed(pick(graph, "b,x,e,p")), share=0.6)("q")) == [
        *("b", "x", "e", "p")
    ]


def test_completion_returns_two_documents() -> None:
    graph = words("a b c d", "x y z", "p")
    results = DocumentCompletionRetriever(fixed(pick(graph, "x,a,z,d")))("q")
    assert texts(results) == ["x y z", "a b c d"]
    single = fixed(pick(graph, "x,a"))  # one hit is not a cluster
    assert DocumentCompletionRetriever(single).retrieve("q") == single.results


def test_completion_of_long_document_returns_span() -> None:
    graph = words("a b c d e f g h i")
    inner = fixed(pick(graph, "f,c"))
    for limit, expected in ((17, ["a b c d e f g h i"]), (16, ["c d e f"]), (7, ["c d e f"])):
        assert texts(DocumentCompletionRetriever(inner, limit=limit, length=len)("q")) == expected
    assert texts(DocumentCompletionRetriever(inner, limit=6, length=len)("q")) == ["f", "c"]
    (result,) = DocumentCompletionRetriever(inner, limit=5)("q")
    c, f = pick(graph, "c,f")
    assert result.node.id == f"{c.id}..{f.id}"
    assert result.node.root.text[result.node.start : result.node.end] == "c d e f"
    assert len(result.evidence) == 2
    assert asyncio.run(DocumentCompletionRetriever(inner, limit=5).aretrieve("q")) == [result]


def test_completion_of_windows_applies_filters(tmp_path) -> None:
    graph = words("tea a b c tea d e f", "sea tea g", store=tmp_path / "g")
    windows = WindowRetriever(Retriever(graph, "word", WORDS), 0, 1)
    completed = DocumentCompletionRetriever(windows, limit=6)
    assert texts(completed("tea")) == ["tea a b c tea d", "tea g"]
    assert texts(completed("tea", filters={"number": 1})) == ["tea g"]
    assert texts(completed("tea", top_k=1)) == ["tea a"]
    graph.close()
    assert asyncio.run(completed.aretrieve("tea")) == completed.retrieve("tea")


@settings(max_examples=amount(20, 60))
@given(DOCUMENTS, st.data(), st.sampled_from([0.2, 0.5, 1.0]), st.integers(1, 40))
def test_completion_keeps_all_hits_as_evidence(shape, data, share, limit) -> None:
    graph = numbered(shape)
    hits = data.draw(st.lists(st.sampled_from(graph.nodes("word")), unique=True, max_size=8))
    completed = DocumentCompletionRetriever(fixed(hits), share=share, limit=limit, length=len)
    results = completed.retrieve("q")
    assert sorted(e.score for r in results for e in r.evidence) == [
        float(n) for n in range(1, len(hits) + 1)
    ]
    assert [r.score for r in results] == sorted((r.score for r in results), reverse=True)
    assert len({r.node.id for r in results}) == len(results)
    for result in results:
        node = result.node
        assert node.root.text[node.start : node.end] == node.text
        inside = {e.node.text for e in result.evidence}
        assert inside <= set(node.text.split())
        if len(inside) > 1:
            assert len(node.text) <= limit
            assert len(inside) >= share * len(hits)
            assert inside == {h.text for h in hits if h.document_id == node.document_id}


def test_completion_drops_hits_of_removed_document() -> None:
    graph = words("a b")
    hits = pick(graph, "a")
    graph.remove("d0")
    assert texts(DocumentCompletionRetriever(fixed([*hits, *hits]))("q")) == []


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"share": 0}, ValueError, "share must be above 0 and at most 1, got 0"),
        ({"limit": 0}, ValueError, "limit must be 1 or more, got 0"),
        ({"length": 5}, TypeError, "length must be a function"),
    ],
)
def test_completion_with_invalid_argument_raises(arguments, error, message) -> None:
    with pytest.raises(error, match=message):
        DocumentCompletionRetriever(**{"inner": fixed([]), **arguments})
