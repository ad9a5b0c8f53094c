"""The scores of linked pairs, and of passages after others, by hand."""

import numpy as np
import pytest

from nodekin.retrievers.composite.link_graph import LinkMatrix, PassageLink
from nodekin.retrievers.composite.link_scores import best_pairs, least_repeating, score_scale


def test_the_best_pair_of_each_passage() -> None:
    links = [PassageLink("cites"), PassageLink("mentions", "e")]
    matrix = LinkMatrix(
        ["a", "b", "c"],
        np.array([[0.0, 0.25, 1.0], [0.25, 0.0, 0.0]]),
        np.array([[0, 0, 1], [0, 0, 0]], np.int32),
        links,
    )
    terms = np.array([[2.0, 0.0], [1.0, 1.0], [0.0, 1.0]])  # the scale of the scores is 2
    pairs = best_pairs(matrix, [4.0, 3.0], terms, 0.5, 1.0)
    assert pairs["c"] == (4.0 + 2.0, 2.0, "a", links[1])
    assert pairs["a"] == (6.0, 4.0, "c", links[1])  # as the first of its own best pair
    assert pairs["b"] == (0.5 * (4.0 + 2.0), 3.0, "a", links[0])
    assert best_pairs(matrix, [], terms, 0.5, 1.0) == {}


def test_what_repeats_the_words_before_it_comes_later() -> None:
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


def test_the_scale_of_scores() -> None:
    assert score_scale([0.5, 0.2], np.array([10.0, 2.0])) == 0.05
    assert score_scale([0.5], np.array([0.0])) == 0.0
