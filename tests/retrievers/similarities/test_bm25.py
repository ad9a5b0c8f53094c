import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.stress import amount

from nodekin.nodegraph import Document, NodeGraph
from nodekin.retrievers import Retriever
from nodekin.retrievers.similarities.bm25 import Bm25

WORDS = st.sampled_from("a b c d e f g h".split())
TEXTS = st.lists(st.lists(WORDS, min_size=1, max_size=9).map(" ".join), min_size=1, max_size=14)
QUERIES = st.lists(WORDS, min_size=1, max_size=6).map(" ".join)
K1 = st.sampled_from([0.0, 0.5, 1.2, 1.5, 3.0])
B = st.sampled_from([0.0, 0.3, 0.75, 1.0])


def scores(texts: list[str], query: str, similarity: Bm25) -> dict[int, float]:
    """Return the scores of matching texts."""
    graph = NodeGraph(progress=False)
    graph.add([Document(text, id=str(place)) for place, text in enumerate(texts)])
    results = Retriever(graph, "ROOT", similarity, top_k=len(texts)).retrieve(query)
    assert [r.score for r in results] == sorted((r.score for r in results), reverse=True)
    return {int(result.node.id): result.score for result in results}


def matching(texts: list[str], query: str) -> set[int]:
    return {i for i, text in enumerate(texts) if set(text.split()) & set(query.split())}


@pytest.mark.slow
@settings(max_examples=amount(50, 150))
@given(TEXTS, QUERIES, K1, B)
def test_bm25_equals_lucene_formula(texts, query, k1, b) -> None:
    split = [text.split() for text in texts]
    average = sum(map(len, split)) / len(split)
    expected: dict[int, float] = {}
    for i, terms in enumerate(split):
        for term in query.split():
            n = sum(term in other for other in split)
            tf = terms.count(term)
            if tf:
                idf = math.log(1 + (len(split) - n + 0.5) / (n + 0.5))
                norm = k1 * (1 - b + b * len(terms) / average)
                expected[i] = expected.get(i, 0.0) + idf * tf * (k1 + 1) / (tf + norm)
    got = scores(texts, query, Bm25(k1, b, analyzer=str.split))
    assert got == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("k1", "b"), [(1.5, 0.75), (0.9, 0.4), (2.0, 0.0)])
def test_bm25_equals_bm25s(k1: float, b: float) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        bm25s = pytest.importorskip("bm25s")
    random = np.random.default_rng(1)
    texts = [
        " ".join(random.choice(list("abcdefghij"), size=random.integers(1, 9))) for _ in range(60)
    ]
    peer = bm25s.BM25(method="lucene", k1=k1, b=b, dtype="float64")
    peer.index([text.split() for text in texts], show_progress=False)
    for query in ("a", "b c", "j a f"):
        expected = peer.get_scores(query.split()) * (k1 + 1)
        got = scores(texts, query, Bm25(k1, b, analyzer=str.split))
        assert got == pytest.approx({i: expected[i] for i in got}, abs=1e-6)
        assert set(got) == matching(texts, query)


def test_statistics_follow_changes_of_group() -> None:
    graph = NodeGraph(progress=False)
    retriever = Retriever(graph, "ROOT", Bm25(analyzer=str.split), top_k=9)
    graph.add([Document("a b", id="1"), Document("a", id="2"), Document("c", id="3")])
    index = retriever.similarity.open(graph, "ROOT")
    retriever("a")
    assert (index.size, index.statistics().total_length) == (3, 4)
    assert [index.statistics().frequency(t) for t in "abcx"] == [2, 1, 1, 0]
    graph.remove(["3", "1"])
    graph.add(Document("b b b", id="4"))
    graph.add(Document("a b", id="2"))
    retriever("a")
    assert (index.size, index.statistics().total_length) == (2, 5)
    assert [index.statistics().frequency(t) for t in "abcx"] == [1, 2, 0, 0]
    graph.remove(["2", "4"])
    assert retriever("a b") == []
    assert (index.size, index.statistics().total_length) == (0, 0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"k1": -1}, "k1 must be 0 or more, and finite, got -1"),
        ({"k1": math.nan}, "k1 .* nan"),
        ({"k1": math.inf}, "k1 .* inf"),
        ({"b": 1.1}, "b must be from 0 to 1, got 1.1"),
        ({"b": math.nan}, "b .* nan"),
    ],
)
def test_setting_out_of_range_raises(settings, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Bm25(**settings)


def test_analyzer_of_wrong_type_raises() -> None:
    with pytest.raises(TypeError, match="callable from text to terms, got 'jieba'"):
        Bm25(analyzer="jieba")


def test_custom_analyzer_results_are_not_cached() -> None:
    synonyms: dict[str, str] = {}
    graph = NodeGraph(progress=False)
    graph.add(["tea", "chai"])

    def words(text: str) -> list[str]:
        return [synonyms.get(word, word) for word in text.split()]

    retriever = Retriever(graph, "ROOT", Bm25(analyzer=words))
    assert [r.node.text for r in retriever("masala")] == []
    synonyms["masala"] = "chai"
    assert [r.node.text for r in retriever("masala")] == ["chai"]
