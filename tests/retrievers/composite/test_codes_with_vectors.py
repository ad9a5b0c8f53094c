"""Codes in a question are found by their words, however near other passages are by vectors."""

import hashlib
import math
from collections.abc import Sequence

import pytest

from nodekin.nodegraph import Document, NodeGraph
from nodekin.retrievers import DefaultRetriever


def noise(texts: Sequence[str]) -> list[list[float]]:
    """Return vectors in which each text is near another text by chance."""
    return [[byte / 255 for byte in hashlib.sha256(text.encode()).digest()] for text in texts]


@pytest.mark.parametrize(
    ("texts", "question", "expected"),
    [
        (
            [f"Version {n}.{n % 7}.{n % 5} adds the large switch." for n in range(1, 60)],
            "what changed in version 31.3.1?",
            "Version 31.3.1 adds the large switch.",
        ),
        (
            [f"W-{n}: the brass gasket does not answer." for n in range(100, 160)],
            "how do I repair error W126?",
            "W-126: the brass gasket does not answer.",
        ),
        (
            [f"发票号 FP{n:04d} 已经付款。" for n in range(60)],
            "FP0042 是什么时候付的？",
            "发票号 FP0042 已经付款。",
        ),
        (
            [f"Phone {n} has a screen." for n in range(1, 60)],
            "how large is phone 8?",
            "Phone 8 has a screen.",
        ),
    ],
)
def test_code_is_found_despite_near_vectors(texts: list[str], question: str, expected: str) -> None:
    graph = NodeGraph(embed=noise, progress=False)
    graph.add(texts)
    retriever = DefaultRetriever(graph)
    assert retriever.retrieve(question)[0].node.text == expected


def test_count_in_question_is_no_code() -> None:
    question = "我想带一条狼狗住进来行吗？"
    pets = "饲养宠物须经房东同意。"
    others = ["圣诞树一月统一粉碎。", *(f"其他的文字在第{n}页。" for n in range(20, 60))]
    cosines = {text: 0.3 + 0.2 * math.sin(number) for number, text in enumerate(others)}
    cosines.update({question: 1.0, pets: 0.6, others[0]: 0.5})

    def near_pets(texts: Sequence[str]) -> list[list[float]]:
        return [[cosines[text], math.sqrt(1 - cosines[text] ** 2)] for text in texts]

    graph = NodeGraph(embed=near_pets, progress=False)
    graph.add([*others, pets])
    assert DefaultRetriever(graph).retrieve(question)[0].node.text == pets


def with_near_passage(question: str, near: str, others: Sequence[str]) -> DefaultRetriever:
    """Return a retriever in which one passage is by far the nearest to a question by vectors."""
    cosines = {text: 0.3 + 0.01 * math.sin(number) for number, text in enumerate(others)}
    cosines.update({question: 1.0, near: 0.95})

    def embed(texts: Sequence[str]) -> list[list[float]]:
        return [[cosines[text], math.sqrt(1 - cosines[text] ** 2)] for text in texts]

    graph = NodeGraph(embed=embed, progress=False)
    graph.add([near, *others])
    return DefaultRetriever(graph)


@pytest.mark.parametrize(
    ("question", "identifier"),
    [
        ("what changed in version 5.10.2?", "5.10.2"),
        ("error W161", "W-161"),
        ("rated 30mm", "30 mm"),
        ("invoice of 292411 euros", "292,411 euros"),
        ("W161 是什么故障？", "W161"),
    ],
)
def test_passage_with_identifier_is_first_despite_much_nearer_passage(
    question: str, identifier: str
) -> None:
    near = "Something quite similar changed and was rated an error"
    others = [f"pump and filter, {identifier}, in the left panel"]
    others += [f"valve {letter} of the steel cable" for letter in "abcdefghijklmnopqrstuvwxyz" * 2]
    first, second, *_ = with_near_passage(question, near, others).retrieve(question)
    assert first.text == others[0]
    assert second.score <= 0.349


@pytest.mark.parametrize(
    ("question", "number"),
    [("what changed in 1974?", "1974"), ("the 20th change", "20th"), ("the 1960s", "1960s")],
)
def test_year_or_ordinal_is_no_identifier(question: str, number: str) -> None:
    near = "Something quite similar changed"
    others = [f"pump and filter, {number}, in the left panel"]
    others += [f"valve {letter} of the steel cable" for letter in "abcdefghijklmnopqrstuvwxyz" * 2]
    first, *_ = with_near_passage(question, near, others).retrieve(question)
    assert first.text == near


def with_near_passages(question: str, near: Sequence[str], others: Sequence[str]) -> NodeGraph:
    """Return a graph in which some passages are much nearer to a question than the others."""
    cosines = {text: 0.3 + 0.01 * math.sin(number) for number, text in enumerate(others)}
    cosines |= {text: 0.95 - number / 1_000 for number, text in enumerate(near)}
    cosines[question] = 1.0

    def embed(texts: Sequence[str]) -> list[list[float]]:
        return [[cosines[text], math.sqrt(1 - cosines[text] ** 2)] for text in texts]

    graph = NodeGraph(embed=embed, progress=False)
    graph.add([Document(text, {"part": text[:6]}) for text in [*near, *others]])
    return graph


OTHERS = [f"page {n} describes valve {n % 7}" for n in range(100, 220)]


def test_identifier_excluded_by_filters_limits_scores() -> None:
    question = "what changed in version 5.10.2?"
    near = "Something quite similar changed"
    graph = with_near_passages(question, [near], [*OTHERS, "5.10.2 of the pump"])
    retriever = DefaultRetriever(graph)
    assert retriever.retrieve(question)[0].text == "5.10.2 of the pump"
    results = retriever.retrieve(question, filters={"part": {"ne": "5.10.2"}})
    assert results[0].text == near
    assert results[0].score <= 0.349


@pytest.mark.parametrize("weights", [None, {"words": 1, "vectors": 3}, {"words": 0, "vectors": 1}])
def test_scores_beside_identifier_do_not_depend_on_top_k(weights: dict[str, float] | None) -> None:
    question = "the steel cable of X-7731"
    near = [f"a long {color} rope" for color in "red blue green white black grey pink".split()]
    near += [f"a short {color} rope" for color in "red blue green white black grey pink".split()]
    graph = with_near_passages(question, near, [*OTHERS, "X-7731 is kept on the left shelf"])
    retriever = DefaultRetriever(graph, weights=weights)
    scores = [result.score for result in retriever.retrieve(question, top_k=28)]
    for top_k in (1, 6, 12, 20):
        first = [result.score for result in retriever.retrieve(question, top_k=top_k)]
        assert first == scores[:top_k]


def test_identifier_ranks_after_quoted_phrase_and_before_near_passages() -> None:
    question = 'the "steel cable" of pump X-7731'
    near = ["a long rope", "a short rope"]
    phrase = "a steel cable is sold here"
    pump = "X-7731 is kept on the left shelf"
    graph = with_near_passages(question, near, [*OTHERS, phrase, pump])
    results = DefaultRetriever(graph).retrieve(question, top_k=4)
    assert [result.text for result in results] == [phrase, pump, *near]
    assert results[0].score > 0.5
    assert results[2].score <= 0.349
