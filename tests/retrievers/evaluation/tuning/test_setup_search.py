import math
import random
import time

import pytest

from nodekin.nodegraph import NodeGraph
from nodekin.retrievers.evaluation import Dataset, Matching, Question
from nodekin.retrievers.evaluation.metrics import get_metric
from nodekin.retrievers.evaluation.setups.setup_file import SetupFile
from nodekin.retrievers.evaluation.tuning.setup_search import SetupSearch, Trial
from nodekin.retrievers.evaluation.tuning.sharing import SharingOpener
from nodekin.retrievers.evaluation.tuning.space import Space


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


def _chosen(search, *trials):
    search.questions = [None] * len(search.default.scores)
    search.trials += trials
    return search.choose()


@pytest.mark.parametrize(
    ("gains", "better"),
    [
        ([0.5] * 15 + [0.0] * 35, True),
        ([0.5] * 15 + [-0.5] * 12 + [0.0] * 23, False),
        ([1.0] + [0.0] * 49, False),
        ([0.0] * 50, False),
        ([-0.5] * 50, False),
        ([0.5] * 15, False),  # tried on the first questions only
    ],
)
def test_a_gain_counts_where_chance_would_not_have_it(gains, better):
    search = _search()
    search.default.scores = [(0.5, 1.0)] * 50
    trial = _trial([0.5 + gain for gain in gains])
    assert _chosen(search, trial) is (trial if better else search.default)


def test_the_best_of_a_hundred_equal_ones_is_not_chosen():
    dice = random.Random(5)
    search = _search()
    search.default.scores = [(0.5, 1.0)] * 100
    trials = [_trial([dice.random() for _ in range(100)]) for _ in range(100)]
    assert max(trial.mean() for trial in trials) > 0.55
    assert _chosen(search, *trials) is search.default


def test_of_several_that_are_better_the_best_is_chosen():
    search = _search()
    search.default.scores = [(0.5, 1.0)] * 50
    good, best = (_trial([0.5 + gain] * 20 + [0.5] * 30) for gain in (0.3, 0.4))
    failed = _trial([1.0] * 50, error="OSError")
    assert _chosen(search, good, best, failed) is best


def test_less_is_better_where_the_metric_says_so():
    search = _search("tokens_per_gold@5")
    search.default.scores = [(100.0 + at, 1.0) for at in range(20)]
    more, less = (_trial([by + at * 1.1 for at in range(20)]) for by in (150.0, 50.0))
    assert _chosen(search, more) is search.default
    assert _chosen(search, less) is less


def test_of_a_ratio_each_question_adds_its_share():
    search = _search("tokens_per_gold@5")
    search.default.scores = [(100.0, 1.0), (100.0, 0.0), (100.0, 2.0)]
    trial = _trial([])
    trial.scores = [(50.0, 1.0), (50.0, 1.0), (50.0, 1.0)]
    parts = search._differences(trial)
    assert sum(parts) / 3 == pytest.approx(100.0 - 50.0)


def test_a_trial_without_a_value_is_never_better():
    search = _search()
    search.default.scores = [(0.5, 1.0)] * 3
    assert _chosen(search, _trial([None, None, None])) is search.default


def test_groups_that_can_not_be_built_in_time_are_not_begun():
    search = _search()
    search.deadline = time.monotonic() + 3600
    search.build_seconds = 7200.0
    trial = search._trial({**{n: v[0] for n, v in Space().axes().items()}, "rerankers": ""})
    assert search._score(trial, 1) == -math.inf
    assert (search.left_out, search.trials) == (1, [search.default])
    assert any(
        "left out: there were no model calls" in note
        for note in search.notes(_data(), search.default)
    )


def _data():
    return Dataset([Question("1", "Which tea?")])


def test_what_takes_long_to_embed_is_left_out_and_nothing_is_embedded_again(monkeypatch):
    embedded = []

    def slow(texts):
        embedded.extend(texts)
        return [[1.0, float(len(text))] for text in texts]

    graph = NodeGraph(embed=slow, progress=False)
    graph.add([f"Tea number {number} is green. It grows here, {number}." for number in range(200)])
    opener = SharingOpener(graph)
    space = Space(rerankers=[""])
    search = SetupSearch(
        graph, space, opener, [], get_metric("mrr@5"), Matching(), 6, math.inf, None
    )
    choice = {**{name: values[0] for name, values in space.axes().items()}, "part_size": 64}
    trial = search._trial(choice)
    with monkeypatch.context() as patch:
        clock = iter(range(0, 10**6, 100))  # every look at the clock is 100 s later
        patch.setattr(time, "monotonic", lambda: next(clock))
        assert not search._builds_in(trial, 200.0)  # 64 of 200 take half of that
    assert len(embedded) == 64
    assert not search._is_too_dear(trial)
    assert len(embedded) == len(set(embedded)) == 200
    other = search._trial({**choice, "vector_group": "passages"})
    search._built |= other.file.groups.keys()
    search.deadline = 0.0
    assert search._is_too_dear(other)  # its passages were built, and not all embedded
