"""Coverage of intervals, and sentences on differences."""

import random

import pytest

from nodekin.retrievers.evaluation import Judgment
from nodekin.retrievers.evaluation.metrics import get_metric
from nodekin.retrievers.evaluation.report import make_difference, make_figure

MRR = get_metric("mrr")


def judged(*values):
    return [Judgment(value) for value in values]


def difference(one, other, metric=MRR):
    rows = {
        name: dict(enumerate(values))
        for name, values in (("A", judged(*one)), ("B", judged(*other)))
    }
    return make_difference(metric, "A", "B", rows)


def test_make_figure_counts_unjudged_questions():
    figure = make_figure(MRR, [*judged(1, 0, 1, 0), Judgment(None, reason="no gold")])
    assert (figure.value, figure.judged, figure.not_judged) == (0.5, 4, 1)
    assert 0 <= figure.low < 0.5 < figure.high <= 1
    assert make_figure(MRR, [Judgment(None)]).value is None


def test_intervals_cover_mean_as_stated():
    chance = random.Random(3)
    covered = 0
    for _ in range(200):
        sample = judged(*(float(chance.random() < 0.7) for _ in range(100)))
        figure = make_figure(MRR, sample)
        covered += figure.low <= 0.7 <= figure.high
    assert 180 <= covered <= 198


def test_equal_values_use_rule_of_three():
    figure = make_figure(MRR, judged(*[1.0] * 100))
    assert (figure.low, figure.high) == pytest.approx((0.97, 1.0))


def test_better_requires_interval_without_zero():
    shown = difference([0.0] * 20 + [1.0] * 80, [1.0] * 100)
    assert shown.better == "B"
    assert str(shown) == "mrr: B is better than A by 0.200, 0.120 to 0.280"
    other = difference([1.0] * 100, [0.0] * 20 + [1.0] * 80)
    assert str(other) == "mrr: A is better than B by 0.200, 0.120 to 0.280"
    assert difference([300.0] * 40, [100.0] * 40, get_metric("tokens")).better == "B"
    same = difference([0.0, 1.0] * 50, [1.0, 0.0] * 50)
    assert same.better is None
    assert str(same).startswith(
        "mrr: no difference between A and B that 100 questions could show (+0.000, -"
    )


def test_better_requires_six_differing_questions():
    few = difference([0.0] * 3, [1.0] * 3)
    assert (few.low, few.high) == (1, 1)
    assert few.better is None
    assert "no difference between A and B that 3 questions could show" in str(few)


def test_difference_uses_questions_judged_for_both():
    rows = {
        "A": {1: Judgment(1.0), 2: Judgment(None)},
        "B": {1: Judgment(None), 2: Judgment(0)},
    }
    nothing = make_difference(MRR, "A", "B", rows)
    assert str(nothing) == "mrr: no question is judged for both A and B"
