import math
import random

import pytest

from nodekin.retrievers.evaluation.tuning.halving import chance_limit, standard_error


def _rows(count, questions=200, seed=0):
    dice = random.Random(seed)
    return [[dice.gauss(0, 1) for _ in range(questions)] for _ in range(count)]


def test_the_limit_of_one_is_that_of_a_single_test():
    assert chance_limit(_rows(1)) == pytest.approx(1.645, abs=0.15)


def test_the_more_are_tried_the_further_ahead_the_best_is_by_chance():
    limits = [chance_limit(_rows(count)) for count in (1, 10, 100)]
    assert limits == sorted(limits)
    assert limits[-1] == pytest.approx(3.3, abs=0.3)  # as Bonferroni has it for independent ones


def test_those_that_answer_alike_count_as_one():
    (row,) = _rows(1)
    assert chance_limit([row] * 100) == pytest.approx(chance_limit([row]))


def test_those_tried_on_fewer_questions_count_too():
    rows = _rows(20)
    short = [row[:66] for row in _rows(80, seed=1)]
    assert chance_limit(rows) < chance_limit([*rows, *short])


def test_without_a_difference_nothing_is_ahead():
    assert chance_limit([]) == math.inf
    assert chance_limit([[0.0] * 50, [1.0]]) == math.inf
    assert standard_error([1.0]) == math.inf
    assert standard_error([0.0, 2.0]) == pytest.approx(1.0)
