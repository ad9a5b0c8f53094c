import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.stress import amount

from nodekin.nodegraph import Document, Node, NodeGraph
from nodekin.retrievers import FusionRetriever, Retriever
from nodekin.retrievers.ranking import lifted_score
from nodekin.retrievers.similarities.bm25 import Bm25

WORDS = Bm25(analyzer=str.split)


def texts(results) -> list[str]:
    return [result.node.text for result in results]


@pytest.mark.parametrize("on_error", ["raise", "skip"])  # one search, and separate searches
def test_fused_ties_of_one_document_follow_position(on_error) -> None:
    graph = NodeGraph(progress=False)
    graph.add([Document("tea one\ntea two", id="a"), Document("tea of another", id="b")])
    graph.create_node_group("line", lambda t: [Node(x, {"line": x}) for x in t.splitlines()])
    lines = ("tea two", "tea of another", "tea one")
    retrievers = [Retriever(graph, "line", filters={"line": line}) for line in lines]
    results = FusionRetriever(retrievers, on_error=on_error)("tea")
    assert texts(results) == ["tea one", "tea of another", "tea two"]
    assert len({result.score for result in results}) == 1


def test_lifted_result_lists_hits_as_evidence(library) -> None:
    (first, second) = Retriever(library, "sentence", WORDS, target="ROOT", top_k=3)("river")
    assert [first.node.id, second.node.id] == ["tea", "river"]  # ties by document order
    assert [(e.node.text, e.group) for e in second.evidence] == [
        ("river bank", "sentence"),
        ("river bed", "sentence"),
    ]
    assert [e.node.text for e in first.evidence] == ["river water"]
    for result in (first, second):
        assert result.score == result.evidence[0].score == max(e.score for e in result.evidence)
        assert {(e.similarity, e.query) for e in result.evidence} == {("bm25", "river")}
        assert all(e.node.root == result.node for e in result.evidence)


@pytest.mark.parametrize("children", [3, 40, 1000])
def test_top_k_counts_targets_not_hits(children: int) -> None:
    graph = NodeGraph(progress=False)
    graph.create_node_group("line", str.splitlines)
    graph.add([Document("\n".join(["tea tea"] * children), id="many")])
    graph.add([Document(f"tea and number {i}", id=f"{i}") for i in range(5)])
    results = Retriever(graph, "line", WORDS, target="ROOT", top_k=4)("tea")
    assert [result.node.id for result in results] == ["many", "0", "1", "2"]


def test_lift_sum_and_mean_equal_manual_scores() -> None:
    graph = NodeGraph(progress=False)
    graph.create_node_group("line", str.splitlines)
    graph.add(
        [
            Document("tea tea\ntea x y", id="a"),
            Document("tea tea tea", id="b"),
            Document("tea z\n" * 9, id="c"),
            Document("sea", id="d"),
        ]
    )
    hits = Retriever(graph, "line", WORDS, top_k=99).retrieve("tea")
    by_document: dict[str, list[float]] = {}
    for hit in hits:
        by_document.setdefault(hit.node.document_id, []).append(hit.score)
    for how, value in (
        ("max", max),
        ("sum", lambda s: s[0] + 0.5 * sum(s[1:2])),
        ("mean", lambda s: sum(s) / len(s)),
    ):
        results = Retriever(graph, "line", WORDS, target="ROOT", lift=how).retrieve("tea")
        expected = {i: value(scores) for i, scores in by_document.items()}
        assert {r.node.id: r.score for r in results} == expected
        assert [r.node.id for r in results] == sorted(expected, key=lambda i: -expected[i])
    summed = Retriever(graph, "line", WORDS, target="ROOT", lift="sum")("tea")
    assert {r.node.id: len(r.evidence) for r in summed} == {"a": 2, "b": 1, "c": 9}


def test_unknown_lift_raises(library) -> None:
    with pytest.raises(ValueError, match="lift must be 'max', 'sum' or 'mean', got 'best'"):
        Retriever(library, "line", lift="best")


def test_min_score_applies_before_lifting() -> None:
    graph = NodeGraph(progress=False)
    graph.create_node_group("line", str.splitlines)
    graph.add(
        [
            Document("tea tea tea\ntea a b c d", id="a"),
            Document("tea a b c d", id="b"),
            Document("x"),
        ]
    )
    scores = [r.score for r in Retriever(graph, "line", WORDS)("tea")]
    strict = Retriever(graph, "line", WORDS, target="ROOT", min_score=scores[0])
    assert [(r.node.id, len(r.evidence)) for r in strict("tea")] == [("a", 1)]
    loose = Retriever(graph, "line", WORDS, target="ROOT", min_score=scores[1], lift="sum")
    assert [(r.node.id, r.score) for r in loose("tea")] == [
        ("a", scores[0] + scores[1] / 2),
        ("b", scores[1]),
    ]


LINES = st.lists(
    st.lists(st.sampled_from("abcx"), min_size=1, max_size=4).map(" ".join), min_size=1, max_size=6
)


@pytest.mark.slow
@settings(max_examples=amount(50, 150))
@given(
    st.lists(LINES, min_size=1, max_size=6),
    st.integers(1, 5),
    st.sampled_from(["max", "sum", "mean"]),
    st.sampled_from(["ROOT", "word", "pair"]),
)
def test_target_results_equal_lifting_all_hits(
    documents, top_k: int, how: str, target: str
) -> None:
    graph = NodeGraph(progress=False)
    graph.create_node_group("line", str.splitlines)
    graph.create_node_group("word", str.split, parent="line")
    graph.create_node_group("pair", lambda text: text.split("\n", 1))
    graph.add([Document("\n".join(lines), id=str(i)) for i, lines in enumerate(documents)])
    hits = Retriever(graph, "line", WORDS, top_k=10**6).retrieve("a b")
    scores: dict[str, list[float]] = {}
    for hit in hits:
        for node in graph.find(target)(hit):
            scores.setdefault(node.id, []).append(hit.score)
    expected = sorted(
        ((i, lifted_score(s, how)) for i, s in scores.items()), key=lambda item: -item[1]
    )
    results = Retriever(graph, "line", WORDS, target=target, lift=how, top_k=top_k).retrieve("a b")
    assert [(r.node.id, r.score) for r in results] == expected[:top_k]
    for result in results:
        assert [e.score for e in result.evidence] == scores[result.node.id][: len(result.evidence)]
