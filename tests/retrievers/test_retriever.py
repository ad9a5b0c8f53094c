import math
import pickle

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.stress import amount

from nodekin.nodegraph import (
    Document,
    EmbeddingError,
    NodeGraph,
    TransformError,
    UnknownGroupError,
)
from nodekin.retrievers import Bm25, Retriever, TextAnalyzer


def ids(results) -> list[str]:
    return [result.node.id for result in results]


def test_results_are_sorted_with_ties_in_order(library) -> None:
    results = Retriever(library, "sentence", top_k=9).retrieve("river bank")
    assert [r.node.text for r in results] == [
        "river bank",
        "bank money",
        "river water",
        "river bed",
    ]
    scores = [r.score for r in results]
    assert scores[0] > scores[1] > scores[2] == scores[3] > 0
    assert all(type(score) is float for score in scores)


@pytest.mark.parametrize("query", ["", " ", "\n\t　", "?!，。", "☕", "xylophone", "\ud800", "\0"])
def test_query_without_match_returns_nothing(library, query: str) -> None:
    for target in (None, "ROOT"):
        assert Retriever(library, "sentence", target=target).retrieve(query) == []


def test_empty_corpus_returns_nothing() -> None:
    for texts in ([], ["?!", "..."]):
        graph = NodeGraph(progress=False)
        graph.create_node_group("line", str.splitlines)
        graph.add(texts)
        assert Retriever(graph, "line", Bm25(), target="ROOT").retrieve("tea") == []


@pytest.mark.parametrize("top_k", [0, -1, True, 1.5, "3", math.nan])
def test_invalid_top_k_raises(library, top_k: object) -> None:
    message = "top_k must be 1 or more, got|top_k must be an integer"
    with pytest.raises((TypeError, ValueError), match=message):
        Retriever(library, "line", top_k=top_k)
    with pytest.raises((TypeError, ValueError), match=message):
        Retriever(library, "line").retrieve("", top_k=top_k)


def test_top_k_of_call_overrides_retriever(library) -> None:
    retriever = Retriever(library, "sentence", top_k=1)
    assert [len(retriever("river", top_k=k)) for k in (None, 2, 3, 10**12)] == [1, 2, 3, 3]


def test_min_score_keeps_scores_at_or_above(library) -> None:
    scores = [r.score for r in Retriever(library, "sentence").retrieve("river bank")]
    for min_score in (*scores, -1, 0, 10**6, math.inf):
        retriever = Retriever(library, "sentence", min_score=min_score)
        assert [r.score for r in retriever("river bank")] == [s for s in scores if s >= min_score]


def test_invalid_min_score_raises(library) -> None:
    with pytest.raises(ValueError, match="min_score must be a number"):
        Retriever(library, "line", min_score=math.nan)
    for min_score in (True, "0.5", {"key": 0.5}):
        with pytest.raises(TypeError, match="min_score must be a number"):
            Retriever(library, "line", min_score=min_score)


def test_unknown_group_raises_with_nearest_name(library) -> None:
    with pytest.raises(
        UnknownGroupError, match="unknown group 'sentense', registered groups: 'sentence'"
    ):
        Retriever(library, "sentense")
    with pytest.raises(
        UnknownGroupError, match="unknown group 'paragraf', registered groups: 'paragraph'"
    ):
        Retriever(library, "sentence", target="paragraf")
    with pytest.raises(UnknownGroupError, match="unknown group 5"):
        Retriever(library, 5)


@pytest.mark.parametrize("graph", [[], None, "folder", 5, ["folder"]])
def test_graph_of_wrong_type_raises(graph: object) -> None:
    with pytest.raises(TypeError, match="graph must be a NodeGraph or a list of them"):
        Retriever(graph, "ROOT")


def test_unknown_index_raises(library) -> None:
    with pytest.raises(TypeError, match="index must be 'default', 'map' or a callable"):
        Retriever(library, "line", index="hnsw")


def test_invalid_filter_raises_immediately(library) -> None:
    with pytest.raises(ValueError, match="allows no value"):
        Retriever(library, "line", filters={"topic": []})
    with pytest.raises(TypeError, match="filters map"):
        Retriever(library, "line")("", filters="topic")


def test_failing_transform_raises_transform_error() -> None:
    graph = NodeGraph(progress=False)
    graph.create_node_group("inverse", lambda text: str(1 / int(text)))
    graph.add([Document("2", id="good"), Document("0", id="bad")])
    retriever = Retriever(graph, "inverse")
    with pytest.raises(
        TransformError, match="'inverse' failed on document 'bad': ZeroDivisionError"
    ):
        retriever("0.5")
    graph.remove("bad")
    assert [r.node.text for r in retriever("0.5")] == ["0.5"]


def test_groups_are_built_at_first_query(library) -> None:
    retriever = Retriever(library, "sentence", target="paragraph")
    assert not library.groups["sentence"].built
    retriever("")
    assert not library.groups["sentence"].built
    retriever("tea")
    assert library.groups["sentence"].built
    assert not library.groups["word"].built


def first_lines(text: str) -> list[str]:
    return text.splitlines()


def test_pickled_retriever_returns_equal_results() -> None:
    graph = NodeGraph(progress=False)
    graph.create_node_group("line", first_lines)
    graph.add([Document("tea\nriver", {"year": 1999}, id="a"), Document("tea", id="b")])
    retriever = Retriever(
        graph,
        "line",
        "bm25",
        target="ROOT",
        filters={"year": {"gt": 1000}},
        output_format="content",
    )
    before = retriever("tea")
    for copy in (pickle.loads(pickle.dumps(retriever)) for _ in range(2)):
        assert copy("tea") == before == ["tea\nriver"]
        assert repr(copy) == repr(retriever)
        copy.graphs[0].add(Document("tea", {"year": 2000}, id="c"))
        assert copy("tea") == ["tea\nriver", "tea"]
    assert retriever("tea") == before


@settings(max_examples=amount(20, 60))
@example(["I", "ÃÃ"], "I\u0e00", 1)
@given(st.lists(st.text(max_size=30), max_size=8), st.text(max_size=20), st.integers(1, 5))
def test_any_texts_return_distinct_sorted_matches(texts: list[str], query: str, top_k: int) -> None:
    graph = NodeGraph(progress=False)
    graph.create_node_group("line", str.splitlines)
    graph.add([Document(text, id=str(i)) for i, text in enumerate(texts)])
    results = Retriever(graph, "line", top_k=top_k).retrieve(query)
    assert len(results) <= top_k
    assert len(set(ids(results))) == len(results)
    order = [(-r.score, r.node.order) for r in results]
    assert order == sorted(order)
    # A query of unknown language is analyzed in all languages of the index.
    asked = set(Bm25().prepare(query, [Bm25().open(graph, "line")]).weights)
    for result in results:
        assert result.score > 0
        assert asked & set(TextAnalyzer().indexed(result.node.text)[0])


def test_search_vector_returns_nearest_nodes():
    graph = NodeGraph(embed=lambda texts: [[t.count("a"), t.count("e"), 1] for t in texts])
    graph.add(["banana", "eleven", "茶"])
    retriever = Retriever(graph, "ROOT", "cosine", top_k=2)
    (found,) = retriever.search_vector("e", [0, 9, 0], top_k=1)
    assert (found.node.text, found.evidence[0].query) == ("eleven", "e")
    with pytest.raises(EmbeddingError, match="has 2 numbers, and those of group 'ROOT' have 3"):
        retriever.search_vector("e", [0, 9])
    with pytest.raises(ValueError, match="compares texts"):
        Retriever(graph, "ROOT", "bm25").search_vector("e", [0, 9, 0])


@pytest.mark.parametrize("stored", [False, True])
def test_thread_finds_its_changes_immediately(tmp_path, stored) -> None:
    with NodeGraph(store=tmp_path / "graph" if stored else None, progress=False) as graph:
        graph.create_node_group("word", str.split)
        words = Retriever(graph, "word", target="ROOT", top_k=50)
        for count in range(1, 6):
            graph.add(Document(f"tea {count}", id=str(count)))
            assert len(words("tea")) == count
            graph.add(Document(f"tea {count} again", id=str(count)))
            assert [r.node.id for r in words("again")] == [str(n) for n in range(1, count + 1)]
        graph.remove("3")
        assert "3" not in {r.node.id for r in words("tea")}
