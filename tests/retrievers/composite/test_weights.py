"""Users may set the weights of words and vectors, which replace their evidence."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from nodekin.nodegraph import NodeGraph
from nodekin.retrievers import DefaultRetriever, as_retriever

TEXTS = [
    "Green tea is steamed.",
    "Green paint dries slowly.",
    "The kettle boils water.",
    "A hot drink made of leaves.",
    "Rivers run to the sea.",
]
MEANING = "A hot drink made of leaves."
"""The text that vectors find for each question."""


def embed(texts: Sequence[str]) -> list[list[float]]:
    """Return vectors in which every question is near one text."""
    return [
        [1.0, 0.05 * len(text)] if text == MEANING or "?" in text else [0.2, 0.05 * len(text)]
        for text in texts
    ]


def unrelated(texts: Sequence[str]) -> list[list[float]]:
    return [[1.0, float(len(text) % 7)] for text in texts]


def graph_of(embedders: Any = embed) -> NodeGraph:
    graph = NodeGraph(embed=embedders, progress=False)
    graph.add(TEXTS)
    return graph


def first(graph: NodeGraph, question: str, weights: Mapping[str, float] | None) -> str:
    return DefaultRetriever(graph, weights=weights).retrieve(question)[0].node.text


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ({"vectors": 0}, TEXTS[0]),
        ({"words": 1, "vectors": 0}, TEXTS[0]),
        ({"words": 0}, MEANING),
        ({"words": 0, "vectors": 2.5}, MEANING),
        ({"words": 1, "vectors": 3}, MEANING),
        ({"words": 5, "vectors": 1}, TEXTS[0]),
    ],
)
def test_given_weights_decide(weights: Mapping[str, float], expected: str) -> None:
    assert first(graph_of(), "green tea steamed?", weights) == expected


def test_weight_0_embeds_nothing() -> None:
    asked: list[str] = []

    def counting(texts: Sequence[str]) -> list[list[float]]:
        asked.extend(texts)
        return embed(texts)

    graph = graph_of(counting)
    asked.clear()
    assert first(graph, "green tea?", {"vectors": 0}) == TEXTS[0]
    assert asked == []


def test_one_embedding_can_be_chosen() -> None:
    graph = graph_of({"meaning": embed, "length": unrelated})
    found = DefaultRetriever(graph, weights={"words": 0, "meaning": 1}).retrieve("what is tea?")
    assert found[0].node.text == MEANING
    assert {match.embed_key for result in found for match in result.evidence} <= {"meaning", None}


def test_given_weights_are_in_the_evidence() -> None:
    result = DefaultRetriever(graph_of(), weights={"words": 1, "vectors": 3}).retrieve("tea?")[0]
    notes = [variant.note for match in result.evidence for variant in match.variants]
    assert notes == ["given weights: words 1, vectors of 'default' 3"]


def test_given_weights_hold_with_links_and_windows() -> None:
    graph = graph_of()
    for links in (True, False):
        retriever = DefaultRetriever(graph, weights={"words": 0}, follow_links=links)
        assert retriever.retrieve("green tea?")[0].node.text == MEANING
        window = retriever.retrieve("green tea?", max_tokens=12)[0]
        assert MEANING in window.node.text


@pytest.mark.parametrize(
    ("weights", "error", "message"),
    [
        ([1, 3], TypeError, "weights must be a dictionary"),
        ({"word": 1}, ValueError, r"names of \['words', 'vectors', 'default'\], got 'word'"),
        ({"words": -1}, ValueError, r"weights\['words'\] must be"),
        ({"words": "much"}, TypeError, r"weights\['words'\] must be"),
        ({"words": 0, "vectors": 0}, ValueError, "a number above 0"),
    ],
)
def test_wrong_weights_raise(weights: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        DefaultRetriever(graph_of(), weights=weights)


def test_a_copy_gets_other_weights() -> None:
    retriever = DefaultRetriever(graph_of(), weights={"vectors": 0})
    other = retriever.with_weights({"words": 0})
    assert other.retrieve("green tea steamed?")[0].node.text == MEANING
    assert retriever.retrieve("green tea steamed?")[0].node.text == TEXTS[0]


def test_as_retriever_passes_weights() -> None:
    retriever = as_retriever(graph_of(), weights={"words": 0})
    assert retriever.retrieve("green?")[0].node.text == MEANING
