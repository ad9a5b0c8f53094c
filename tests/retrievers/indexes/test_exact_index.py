"""Exact lookup: normalization, fields, filters and changes."""

from collections.abc import Sequence

import pytest

from nodekin.nodegraph import Document, NodeGraph
from nodekin.retrievers import Retriever, ScoredNode
from nodekin.retrievers.indexes.exact_index import Exact, normal_text


@pytest.fixture
def lines() -> NodeGraph:
    graph = NodeGraph(progress=False)
    graph.add(
        [
            Document("tea\ncoffee\nmilk", {"shop": 1}, id="drinks"),
            Document("bread\nrice", {"shop": 2}, id="food"),
        ]
    )
    graph.create_node_group("line", str.splitlines)
    return graph


def matches(results: Sequence[ScoredNode]) -> list[tuple[str, float]]:
    return [(result.node.text, result.score) for result in results]


def test_exact_matches_texts(lines: NodeGraph) -> None:
    lines.add(Document("什么是 Tea？\nＡＢＣ", id="q"))
    exact = Retriever(lines, "line", "exact")
    assert matches(exact("什么是tea")) == [("什么是 Tea？", 1.0)]
    assert matches(exact("abc!")) == [("ＡＢＣ", 1.0)]
    assert exact("tea time") == []
    assert matches(Retriever(lines, "line", Exact(normalize=False))("TEA")) == []
    assert matches(Retriever(lines, "line", index="map")("Coffee")) == [("coffee", 1.0)]
    assert matches(exact("tea", filters={"shop": 2})) == []
    lines.remove("drinks")
    assert exact("coffee") == []
    lines.add(Document("Coffee", id="back"))
    assert matches(exact("coffee")) == [("Coffee", 1.0)]


def test_exact_with_custom_normalize_compares_its_result(lines: NodeGraph) -> None:
    first = Exact(normalize=lambda text: text[:1] if text != "milk" else "")
    assert matches(Retriever(lines, "line", first)("tiger")) == [("tea", 1.0)]
    assert Retriever(lines, "line", first)("milk") == []  # an empty form is never matched


def test_equal_settings_share_an_index(lines: NodeGraph) -> None:
    assert Exact().open(lines, "line") is Exact().open(lines, "line")
    assert Exact().open(lines, "line") is not Exact(normalize=False).open(lines, "line")


@pytest.mark.parametrize(
    ("some", "other", "same"),
    [
        ("What is tea?", "what is  TEA", True),
        ("长江 有多长？", "长江有多长", True),
        ("ＡＩ是什么", "ai 是什么？", True),
        ("C++?", "C?", False),
        ("C#?", "C?", False),
        ("GPT 3.5", "GPT 35", False),
        ("a b", "ab", False),
        ("C++", "C", False),
        ("C#", "C", False),
        (".NET", "net", False),
        ("3.5", "35", False),
        ("1/2", "12", False),
        ("-5", "5", False),
        ("$5", "5", False),
        ("5%", "5", False),
        ('5"', "5", False),
        ("!x", "x", False),
        ("A-1", "A1", False),
        ("don't", "dont", False),
        ("f(x)", "f(x", False),
        ("“tea”.", "tea", True),
        ("'tea'", "TEA!", True),
        ('("tea")', "tea", True),
        ("… tea …", "tea", True),
        ("¿Té?", "té", True),
        ("«чай»", "Чай", True),
        ("《茶》。", "茶", True),
        ("-", "+", False),
        ("?", "!", False),
    ],
)
def test_exact_ignores_case_and_outer_punctuation_only(some: str, other: str, same: bool) -> None:
    assert (normal_text(some) == normal_text(other)) is same
    graph = NodeGraph(progress=False)
    graph.add([some])
    assert bool(Retriever(graph, "ROOT", "exact")(other)) is same
