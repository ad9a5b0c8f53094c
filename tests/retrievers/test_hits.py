import pytest

from nodekin.retrievers.hits import FoundBy, Ranking, fused, highest, lifted

DOCUMENTS = {"a": (0, "A"), "b": (0, "B"), "c": (0, "C")}


def ranking_of(scores: dict[str, float]) -> Ranking:
    by_key = {DOCUMENTS[name]: score for name, score in scores.items()}
    found = {key: [(score, "index", key, [key])] for key, score in by_key.items()}
    return Ranking(by_key, [FoundBy(found, {})])


def rows(*found: tuple[float, str]) -> list:
    return [
        (score, "index", (0, f"line {at}"), [DOCUMENTS[name]])
        for at, (score, name) in enumerate(found)
    ]


@pytest.mark.parametrize(
    ("lift", "expected"),
    [
        ("max", {"a": 3.0, "b": 2.0}),
        ("sum", {"b": 3.0, "a": 3.0}),
        ("mean", {"a": 3.0, "b": 2.0}),
    ],
)
def test_lifted_hits_score_their_targets(lift, expected) -> None:
    found = rows((3.0, "a"), (2.0, "b"), (2.0, "b"), (1.0, "c"))
    ranking = lifted(found, lift, 2, False)
    assert ranking.scores == {DOCUMENTS[name]: score for name, score in expected.items()}


@pytest.mark.parametrize(("keeps_all", "count"), [(False, 1), (True, 2)])
def test_hits_after_last_target_are_kept_on_demand(keeps_all, count) -> None:
    found = rows((3.0, "a"), (2.0, "b"), (1.0, "a"))
    (found_by,) = lifted(found, "max", 2, keeps_all).found_by
    assert len(found_by.rows[DOCUMENTS["a"]]) == count


def test_highest_score_has_all_hits_best_first() -> None:
    ranking = highest([ranking_of({"a": 0.5, "b": 0.4}), ranking_of({"a": 0.9})], 1)
    assert ranking.scores == {DOCUMENTS["a"]: 0.9}
    assert [score for score, *_ in ranking.found_by[0].rows[DOCUMENTS["a"]]] == [0.9, 0.5]


def test_fused_rankings_keep_hits_and_shares() -> None:
    ranking = fused([ranking_of({"a": 2.0, "b": 1.0}), ranking_of({"b": 5.0})], "relative", [1, 1])
    assert ranking.scores == {DOCUMENTS["a"]: 0.5, DOCUMENTS["b"]: 0.5}
    assert [found.shares for found in ranking.found_by] == [
        {DOCUMENTS["a"]: 0.5, DOCUMENTS["b"]: 0.0},
        {DOCUMENTS["b"]: 0.5},
    ]
    assert [len(found.rows) for found in ranking.found_by] == [2, 1]


def test_first_targets_keep_their_branches() -> None:
    ranking = ranking_of({"a": 2.0, "b": 1.0})
    assert [*ranking.first(1).scores] == [DOCUMENTS["a"]]
    assert ranking.first(1).found_by == ranking.found_by
