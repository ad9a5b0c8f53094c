"""Fused rankings, compared with manual scores."""

import asyncio
import pickle
import random
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.fixed_retriever import FailingRetriever, FixedRetriever, scored

from nodekin.nodegraph import Document, Node, NodeGraph, split_sentences
from nodekin.retrievers import (
    Evidence,
    FusionRetriever,
    Retriever,
    ScoredNode,
    register_similarity,
)
from nodekin.retrievers.ranking import fuse

NODES = {name: Node(f"text {name}", id=name) for name in "abcdefgh"}


def ranking(similarity: str, **scores: float) -> list[ScoredNode]:
    return scored([NODES[name] for name in scores], list(scores.values()), similarity)


ONE = ranking("one", a=9.0, b=5.0, c=1.0)
TWO = ranking("two", c=0.9, d=0.8, a=0.7)


def seen(results) -> list[tuple[str, float]]:
    return [(result.node.id, pytest.approx(result.score)) for result in results]


SPREAD = 6 * (2 / 3) ** 0.5 * 4  # six standard deviations of ONE


@pytest.mark.parametrize(
    ("rankings", "mode", "options", "expected"),
    [
        ([ONE, TWO], "rrf", {},
         {"a": 1 / 61 + 1 / 63, "c": 1 / 63 + 1 / 61, "b": 1 / 62, "d": 1 / 62}),
        ([ONE, TWO], "rrf", {"weights": [1, 2], "rank_constant": 0},
         {"c": 1 / 3 + 2, "a": 1 + 2 / 3, "d": 1.0, "b": 0.5}),
        ([ONE, TWO], "relative", {}, {"a": 0.5, "c": 0.5, "b": 0.25, "d": 0.25}),
        ([ONE, TWO], "relative", {"weights": [3, 1]},
         {"a": 0.75, "b": 0.375, "c": 0.25, "d": 0.125}),
        ([ranking("x", e=-3.0)], "relative", {}, {"e": 1.0}),
        ([ONE, TWO], "concat", {}, {"a": 9.0, "b": 5.0, "c": 1.0, "d": 0.8}),
        ([ONE, TWO], "concat", {"weights": [0.1, 2]}, {"c": 1.8, "d": 1.6, "a": 1.4, "b": 0.5}),
        ([ranking("x", e=-1.0, f=-4.0)], "concat", {"weights": [2]}, {"e": -0.5, "f": -2.0}),
        ([ONE], "distribution", {}, {"a": 0.5 + 4 / SPREAD, "b": 0.5, "c": 0.5 - 4 / SPREAD}),
        ([ranking("x", e=7.0)], "distribution", {}, {"e": 0.5}),
    ],
)  # fmt: skip
def test_fused_scores_equal_manual_scores(
    rankings: Any, mode: Any, options: Any, expected: dict[str, float]
) -> None:
    assert seen(fuse(rankings, mode, **options)) == list(expected.items())


@pytest.mark.parametrize("mode", ["rrf", "relative", "concat"])
def test_fuse_counts_node_once_per_ranking(mode) -> None:
    twice = [ONE[0], ONE[1], *ranking("again", b=4.0), ONE[2]]
    results = fuse([twice, TWO], mode)
    assert seen(results) == [(r.node.id, r.score) for r in fuse([ONE, TWO], mode)]
    (b,) = [r for r in results if r.node.id == "b"]
    assert [e.similarity for e in b.evidence] == ["one", "again"]


def test_fuse_separates_equal_ids_of_different_texts() -> None:
    same, other = Node("text a", id="a"), Node("another text", id="a")
    results = fuse([ONE, [ScoredNode(same, 1.0)], [ScoredNode(other, 1.0)]])
    assert [r.node.text for r in results] == ["text a", "another text", "text b", "text c"]


@given(
    st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=8), min_size=1, max_size=4),
    st.sampled_from(["rrf", "relative", "concat"]),
    st.integers(1, 9),
)
def test_fuse_returns_distinct_sorted_nodes(names, mode, top_k) -> None:
    rankings = [[ScoredNode(NODES[n], float(-at)) for at, n in enumerate(each)] for each in names]
    results = fuse(rankings, mode, top_k=top_k)
    assert len(results) == min(top_k, len({n for each in names for n in each}))
    assert len({r.node.id for r in results}) == len(results)
    assert [r.score for r in results] == sorted((r.score for r in results), reverse=True)
    assert results == fuse(rankings, mode)[:top_k]


async def test_fusion_equals_fuse_of_inner_results() -> None:
    first, second = FixedRetriever(ONE), FixedRetriever(TWO)
    fusion = FusionRetriever([first, second], top_k=3)
    expected = fuse([ONE, TWO], top_k=3)
    assert fusion.retrieve("q") == fusion("q") == await fusion.aretrieve("q") == expected
    assert fusion.batch(["q", "p"]) == [expected, expected]
    assert first.calls == [(q, None, None) for q in "qqqqp"]
    fusion.retrieve("q", top_k=1, filters={"year": 2000})
    assert second.calls[-1] == ("q", 1, {"year": 2000})
    assert len(fusion.retrieve("q", top_k=1)) == 1


def test_nested_fusion_of_graph_can_be_pickled() -> None:
    graph = NodeGraph(progress=False)
    graph.create_node_group("line", str.splitlines)
    graph.add(
        [Document("green tea\nriver", {"year": 1}, id="1"), Document("tea", {"year": 2}, id="2")]
    )
    lines = Retriever(graph, "line", target="ROOT")
    fusion = FusionRetriever([lines, FusionRetriever([Retriever(graph, "ROOT")], "relative")])
    assert [r.node.id for r in fusion("green tea")] == ["1", "2"]
    assert {e.group for e in fusion("green tea")[0].evidence} == {"line", "ROOT"}
    assert [r.node.id for r in fusion("tea", filters={"year": 2})] == ["2"]
    assert fusion("") == []
    with graph.reader.reading("line"):
        assert len(fusion("tea")) == 2
    text = FusionRetriever([lines])("tea green", output_format="content", join=True)
    assert text == "green tea\nriver\ntea"
    assert "'rrf', top_k=6" in repr(
        pickle.loads(pickle.dumps(FusionRetriever([FixedRetriever(ONE)])))
    )


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"retrievers": []}, ValueError, "retrievers must not be empty"),
        ({"retrievers": ["bm25"]}, TypeError, "object with retrieve.* 'bm25'"),
        ({"mode": "rff"}, ValueError, "mode must be 'rrf', .*, got 'rff'"),
        (
            {"weights": [1, 2]},
            ValueError,
            r"weights must have one value per retriever, got \[1, 2\]",
        ),
        ({"weights": [-1]}, ValueError, "a weight must be 0 or more"),
        ({"weights": [float("nan")]}, ValueError, "a weight must be a number"),
        ({"weights": ["1"]}, TypeError, "a weight must be a number, got '1'"),
        ({"weights": [0]}, ValueError, "weights must have a number above 0"),
        ({"top_k": 0}, ValueError, "top_k must be 1 or more"),
        ({"rank_constant": -1}, ValueError, "rank_constant must be 0 or more"),
        ({"on_error": "ignore"}, ValueError, "on_error must be 'raise' or 'skip'"),
        ({"merge_by": ["n"]}, TypeError, "merge_by must be a metadata field"),
    ],
)
def test_fusion_with_invalid_argument_raises(arguments, error, message) -> None:
    with pytest.raises(error, match=message):
        FusionRetriever(**{"retrievers": [FixedRetriever(ONE)], **arguments})


async def test_fusion_skips_and_logs_failed_retriever(caplog: pytest.LogCaptureFixture) -> None:
    graph = NodeGraph(progress=False)
    graph.add(["green tea", "black tea"])
    good, bad = Retriever(graph, "ROOT"), FailingRetriever(None, error=ConnectionError("away"))
    with pytest.raises(ConnectionError, match="away"):
        FusionRetriever([good, bad])("tea")
    fusion = FusionRetriever([bad, good], weights=[1, 2], on_error="skip")
    expected = FusionRetriever([good], weights=[2])("green tea")
    assert fusion("green tea") == expected
    assert await fusion.aretrieve("green tea") == expected
    assert fusion.batch(["green tea"]) == [expected]
    assert len(caplog.records) == 3
    assert "FailingRetriever object" in caplog.text
    assert "away" in caplog.text
    with pytest.raises(ConnectionError):
        FusionRetriever([bad, bad], on_error="skip")("tea")


def test_fusion_with_held_lock_runs_sequentially() -> None:
    graph = NodeGraph(progress=False)
    graph.add(["green tea"])
    meeting = threading.Barrier(2)
    threads = []

    class Meeting(Retriever):
        def retrieve(self, query: str, **settings: Any) -> list[ScoredNode]:
            threads.append(threading.get_ident())
            if query == "together":
                meeting.wait(300)
            return super().retrieve(query, **settings)

    fusion = FusionRetriever([Meeting(graph, "ROOT"), Meeting(graph, "ROOT")])
    fusion("together")
    assert len(set(threads)) == 2
    threads.clear()
    with graph.reader.reading("ROOT"):
        assert len(fusion("tea")) == 1
    assert set(threads) == {threading.get_ident()}


def test_fusion_merge_by_joins_equal_metadata() -> None:
    def page(name: str, score: float, **metadata: object) -> ScoredNode:
        node = Node(name, metadata, id=name)
        return ScoredNode(node, score, (Evidence(node, score, "bm25", "q"),))

    words = FixedRetriever([page("a", 3.0, url="x"), page("b", 2.0, url="y"), page("c", 1.0)])
    vectors = FixedRetriever([page("d", 0.9, url="y"), page("e", 0.8, url="x"), page("f", 0.7)])
    fusion = FusionRetriever([words, vectors], merge_by="url")
    assert [r.node.id for r in fusion("q")] == ["a", "b", "c", "f"]
    assert [e.node.id for e in fusion("q")[0].evidence] == ["a", "e"]
    assert [r.node.id for r in FusionRetriever([words, vectors])("q")] == list("adbecf")
    same = FixedRetriever([page("1", 2.0, n=1), page("2", 1.0, n=1), page("3", 0.5, n="1")])
    assert [r.node.id for r in FusionRetriever([same], merge_by="n")("q")] == ["1", "3"]


# Retrievers of one graph, which are searched together

WORDS = "tea river music chess bread star horse glass stone bird lamp salt".split()
QUERIES = ["tea by the river", "salt", "chess horse", "nothing of it"]


def letters(texts: list[str]) -> np.ndarray:
    return np.array([[1 + text.count(letter) for letter in "abeiorst"] for text in texts])


@pytest.fixture(scope="module")
def graph() -> NodeGraph:
    rnd = random.Random(7)
    graph = NodeGraph(embed={"one": letters, "two": lambda t: letters(t)[:, ::-1]}, progress=False)
    graph.add(
        [
            Document(
                " ".join(
                    " ".join(rnd.choices(WORDS, k=rnd.randint(2, 9))).capitalize() + "."
                    for _ in range(rnd.randint(1, 9))
                ),
                {"of": rnd.choice(["a", "b"])},
                id=str(number),
            )
            for number in range(150)
        ]
    )
    graph.create_node_group("sentence", split_sentences)
    return graph


def shown(results: list[ScoredNode]) -> list[Any]:
    return [(result.node.id, result.score, result.explain()) for result in results]


def branches(graph: NodeGraph, **options: Any) -> dict[str, Retriever]:
    vectors = {"embed_keys": ["one"], **options}
    return {
        "whole": Retriever(graph, "ROOT", "bm25", top_k=20, **options),
        "sentences": Retriever(graph, "sentence", "bm25", target="ROOT", top_k=20, **options),
        "vectors": Retriever(graph, "sentence", "cosine", target="ROOT", top_k=12, **vectors),
    }


@pytest.mark.parametrize("mode", ["rrf", "relative", "distribution", "concat"])
@pytest.mark.parametrize(
    "options",
    [{}, {"filters": {"of": "a"}}, {"min_score": 0.9}, {"fetch_k": 7}, {"lift": "sum"}],
    ids=str,
)
def test_fusion_of_local_retrievers_equals_fuse(
    graph: NodeGraph, mode: Any, options: dict[str, Any]
) -> None:
    of_all = branches(graph, **options)
    for names in (["whole", "sentences"], ["sentences", "whole"], list(of_all)):
        weights = [1.0, 3.0, 2.0][: len(names)]
        retrievers = [of_all[name] for name in names]
        fusion = FusionRetriever(retrievers, mode, weights)
        for top_k in (None, 1, 40):
            expected = []
            for query in QUERIES:
                limits = [max(top_k or 0, retriever.top_k) for retriever in retrievers]
                rankings = [
                    retriever.retrieve(query, top_k=limit)
                    for retriever, limit in zip(retrievers, limits, strict=True)
                ]
                expected.append(shown(fuse(rankings, mode, weights, top_k or fusion.top_k)))
            for found in (
                [fusion.retrieve(query, top_k=top_k) for query in QUERIES],
                fusion.batch(QUERIES, top_k=top_k),
                asyncio.run(fusion.abatch(QUERIES, top_k=top_k)),
            ):
                assert list(map(shown, found)) == expected


@pytest.mark.parametrize("mode", ["rrf", "relative", "distribution", "concat"])
@pytest.mark.parametrize("documents", [1, 3])
def test_fusion_has_one_order_of_ties(mode: Any, documents: int) -> None:
    graph = NodeGraph(progress=False)
    for number in range(documents):
        graph.add(Document("Zero. One. Two. Three.", {"number": number}, id=str(number)))
    graph.create_node_group("sentence", split_sentences)

    @register_similarity(name="later first")
    def later_first(query: str, node: Node) -> int:
        return node.order

    @register_similarity(name="earlier first")
    def earlier_first(query: str, node: Node) -> int:
        return -node.order

    names = ("later first", "earlier first")
    parts = [Retriever(graph, "sentence", name, top_k=12) for name in names]
    whole = fuse([part("q") for part in parts], mode)
    for top_k in range(1, 4 * documents + 1):
        for options in ({}, {"on_error": "skip"}, {"merge_by": "missing"}):
            fusion = FusionRetriever(parts, mode, top_k=top_k, **options)
            assert fusion("q") == whole[:top_k]
            assert fusion.batch(["q", "r"])[0] == whole[:top_k]
