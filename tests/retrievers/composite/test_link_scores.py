"""The scores of linked pairs and later passages, compared with manual scores."""

import numpy as np
import pytest

from nodekin.retrievers.composite.link_graph import LinkMatrix, LinkOptions, PassageLink
from nodekin.retrievers.composite.link_scores import (
    best_pairs,
    best_paths,
    least_repeating,
    score_scale,
)


def test_best_pairs_equals_manual_scores() -> None:
    links = [PassageLink("cites"), PassageLink("mentions", "e")]
    matrix = LinkMatrix(
        ["a", "b", "c"],
        np.array([[0.0, 0.25, 1.0], [0.25, 0.0, 0.0]]),
        np.array([[0, 0, 1], [0, 0, 0]], np.int32),
        links,
    )
    terms = np.array([[2.0, 0.0], [1.0, 1.0], [0.0, 1.0]])  # the scale of the scores is 2
    pairs = best_pairs(matrix, [4.0, 3.0], terms, LinkOptions(pair_weight=1.0))
    assert pairs["c"] == (4.0 + 2.0, 2.0, "a", links[1])
    assert pairs["a"] == (6.0, 4.0, "c", links[1])  # as the first passage of its best pair
    assert pairs["b"] == (0.5 * (4.0 + 2.0), 3.0, "a", links[0])
    assert best_pairs(matrix, [], terms, LinkOptions(pair_weight=1.0)) == {}


def test_best_paths_equals_manual_scores() -> None:
    links = [PassageLink("cites"), PassageLink("mentions", "e")]
    matrix = LinkMatrix(
        ["a", "b", "c", "d"],
        np.array([[0.0, 0.0, 0.25, 1.0], [0.0, 0.0, 1.0, 0.0]]),
        np.array([[0, 0, 0, 1], [0, 0, 1, 0]], np.int32),
        links,
    )
    terms = np.array([[2.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 3.0], [2.0, 1.0, 0.0]])
    covered = np.array([[2.0, 1.0, 0.0], [2.0, 1.0, 1.0]])
    paths = best_paths(matrix, [6.0, 4.0], terms, covered, LinkOptions(path_weight=0.5))
    assert paths == {"c": (0.5 * (4.0 + 2.0), 4.0, "b", links[1])}  # d adds nothing to a's pair
    paths = best_paths(matrix, [6.0, 1.0], terms, covered, LinkOptions(path_weight=0.5))
    assert paths == {"c": (0.5 * 0.5 * (6.0 + 3.0), 4.0, "a", links[0])}


def test_third_passage_of_title_is_ranked_later() -> None:
    terms = np.zeros((4, 1))
    scores, titles = [2.0, 1.9, 1.8, 1.7], ["tea", "tea", "tea", None]
    order = least_repeating(scores, terms, 0.1, [False] * 4, titles)
    assert order == [(0, 2.0), (1, 1.9), (3, 1.7), (2, pytest.approx(1.6))]
    for none in ([], [None] * 4):
        assert [at for at, _ in least_repeating(scores, terms, 0.1, [False] * 4, none)] == [
            *range(4)
        ]
    assert least_repeating(scores, terms, 0.1, [False, False, True, False], titles)[2] == (2, 1.8)
    assert least_repeating(scores, terms, 0.0, [False] * 4, titles)[2] == (2, 1.8)


def test_passage_with_repeated_words_is_ranked_later() -> None:
    terms = np.array([[2.0, 0.0], [2.0, 0.0], [0.0, 1.5]])
    assert least_repeating([2.0, 1.9, 1.5], terms, 0.0, [False] * 3) == [
        (0, 2.0),
        (1, 1.9),
        (2, 1.5),
    ]
    order = least_repeating([2.0, 1.9, 1.5], terms, 0.5, [False] * 3)
    assert order == [(0, 2.0), (2, 1.5), (1, pytest.approx(0.9))]
    assert least_repeating([2.0, 1.9, 1.5], terms, 0.5, [False, True, False])[1] == (1, 1.9)
    assert least_repeating([], np.zeros((0, 2)), 0.5, []) == []


def test_score_scale_equals_manual_value() -> None:
    assert score_scale([0.5, 0.2], np.array([10.0, 2.0])) == 0.05
    assert score_scale([0.5], np.array([0.0])) == 0.0
