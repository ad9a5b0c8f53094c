import pytest

from nodekin.retrievers.evaluation.tuning.halving import BudgetSpentError, climb, halve, rungs


def test_rungs_end_with_all_questions():
    assert rungs(10) == [10]
    assert rungs(100) == [33, 100]
    assert rungs(500)[-1] == 500
    assert all(size >= 25 for size in rungs(500))


def test_only_the_better_third_is_tried_on_more():
    tried = []

    def score(candidate, count):
        tried.append((candidate, count))
        return candidate

    assert halve(range(9), score, [10, 30]) == [8, 7, 6]
    assert sum(count == 10 for _, count in tried) == 9
    assert [candidate for candidate, count in tried if count == 30] == [8, 7, 6]


def test_two_at_least_go_on_and_ties_stay_in_order():
    assert halve(["a", "b", "c"], lambda candidate, count: 0.0, [1, 2, 3]) == ["a", "b"]
    assert halve(["a"], lambda candidate, count: 0.0, [1, 2]) == ["a"]


def test_it_climbs_until_nothing_is_better():
    def near(best):
        return [best - 1, best + 1]

    path = climb(0, near, lambda candidate, count: -abs(candidate - 3), [5])
    assert list(path) == [0, 1, 2, 3]


def test_it_ends_where_there_is_nothing_new():
    assert list(climb(0, lambda best: [], lambda candidate, count: 0.0, [5])) == [0]


@pytest.mark.parametrize("calls", [0, 1, 5])
def test_a_spent_budget_leaves_the_best_so_far(calls):
    remaining = [calls]

    def score(candidate, count):
        remaining[0] -= 1
        if remaining[0] < 0:
            raise BudgetSpentError
        return candidate

    path = list(climb(0, lambda best: [best + 1, best + 2], score, [5]))
    assert path == sorted(path)
    assert path[0] == 0
    assert len(path) <= 1 + calls
