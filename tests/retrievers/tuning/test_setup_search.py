import math

import pytest

from nodekin.nodegraph import NodeGraph
from nodekin.retrievers.evaluation import Matching, get_metric
from nodekin.retrievers.setups import SetupFile
from nodekin.retrievers.tuning import Space, Trial
from nodekin.retrievers.tuning.setup_search import SetupSearch
from nodekin.retrievers.tuning.sharing import SharingOpener


def _trial(values, error=""):
    scores = [None if value is None else (value, 1.0) for value in values]
    return Trial(SetupFile(), scores=scores, error=error)


def _search(metric="ndcg@5"):
    graph = NodeGraph(progress=False)
    opener = SharingOpener(graph)
    return SetupSearch(
        graph, Space(), opener, [], get_metric(metric), Matching(), 6, math.inf, None
    )


def test_a_figure_is_over_the_questions_that_were_judged():
    assert _trial([1.0, None, 0.0]).mean() == 0.5
    assert _trial([1.0, None, 0.0]).mean(2) == 1.0
    assert _trial([None]).mean() == -math.inf
    assert _trial([1.0], error="OSError").mean() == -math.inf


@pytest.mark.parametrize(
    ("gains", "better"),
    [
        ([0.5] * 10 + [0.0] * 40, True),
        ([0.5] * 10 + [-0.5] * 8 + [0.0] * 32, False),
        ([1.0] + [0.0] * 49, False),
        ([0.0] * 50, False),
        ([-0.5] * 50, False),
    ],
)
def test_a_gain_counts_where_chance_would_not_have_it(gains, better):
    search = _search()
    search.default.scores = [(0.5, 1.0)] * 50
    assert search._is_better(_trial([0.5 + gain for gain in gains])) is better


def test_less_is_better_where_the_metric_says_so():
    search = _search("tokens_per_gold@5")
    search.default.scores = [(100.0 + at, 1.0) for at in range(20)]
    assert search._is_better(_trial([50.0 + at * 1.1 for at in range(20)]))
    assert not search._is_better(_trial([150.0 + at for at in range(20)]))


def test_a_trial_without_a_value_is_never_better():
    search = _search()
    search.default.scores = [(0.5, 1.0)] * 3
    assert not search._is_better(_trial([None, None, None]))
