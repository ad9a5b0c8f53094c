import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.vectorstores import utils

from nodekin.retrievers.ranking import maximal_marginal_relevance

vectors = st.lists(st.lists(st.integers(-3, 3), min_size=3, max_size=3), min_size=1, max_size=8)


def test_a_copy_comes_after_what_is_new():
    assert maximal_marginal_relevance([1, 1], [[1, 1], [1, 1], [1, 0]], 3, 0.4) == [0, 2, 1]
    assert maximal_marginal_relevance([1, 1], [[1, 1], [1, 1], [1, 0]], 3, 1) == [0, 1, 2]


@given(vectors, st.integers(1, 9), st.floats(0, 1))
def test_each_once_and_the_nearest_first(some, k, lambda_mult):
    places = maximal_marginal_relevance([1, 2, 3], some, k, lambda_mult)
    assert len(places) == len(set(places)) == min(k, len(some))
    exactly = np.array(some, float)
    lengths = np.linalg.norm(exactly, axis=1)
    cosines = exactly @ [1, 2, 3] / np.where(lengths > 0, lengths, 1)
    assert cosines[places[0]] == pytest.approx(cosines.max())


def test_the_same_as_langchains():
    random = np.random.default_rng(7)
    for _ in range(20):
        some, query = random.normal(size=(9, 5)), random.normal(size=5)
        for lambda_mult in (0.2, 0.5, 0.8):
            theirs = utils.maximal_marginal_relevance(query, list(some), lambda_mult, 6)
            assert maximal_marginal_relevance(query, some, 6, lambda_mult) == theirs


def test_nothing_to_choose_from():
    assert maximal_marginal_relevance([1.0], np.zeros((0, 1)), 3, 0.5) == []


@pytest.mark.parametrize(("k", "lambda_mult"), [(0, 0.5), (1, -0.1), (1, 1.5), (1, float("nan"))])
def test_numbers_out_of_range(k, lambda_mult):
    with pytest.raises(ValueError, match="has to be"):
        maximal_marginal_relevance([1.0], [[1.0]], k, lambda_mult)
