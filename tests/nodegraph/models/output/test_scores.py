"""Scores in the forms that models use."""

import pytest

from nodekin.nodegraph.models.output.scores import read_score


@pytest.mark.parametrize(
    ("value", "score"),
    [
        *((85, 85), (83.5, 83.5), ("85", 85), ("**85**", 85), ("９０％", 90), ("85%", 85)),
        *(("85/100", 85), ("8/10", 80), ("4/5", 80), ("8 out of 10", 80), ("9分（满分10分）", 90)),
        *((0.97, 97), ("0.8", 80), (1.0, 100), ("1.0", 100), (0, 0), ("0.8%", 0.8), (9.5, 9.5)),
        *(("High (90%)", 90), ("about 80", 80), ("~85", 85), ("约85分", 85), ("很高，90", 90)),
        *(("八成", 80), ("九成五", 95), ("百分之九十", 90), ("百分之八十五", 85), ("百分百", 100)),
        *(("80 (clear, but short)", 80), ("85. The passage says so.", 85), (1, 1), ("1", 1)),
    ],
)
def test_read_score_reads_usual_forms(value: object, score: float) -> None:
    assert read_score(value) == score


@pytest.mark.parametrize(
    "value",
    [
        *(250, "120%", "1850", "3:2", "80-90", "80 to 90", "high", "", None, True, [85], "n/a"),
        *("8/7", "12/10", "eighty", "-5", "1.2.3", "2024-05-01"),
    ],
)
def test_other_values_are_no_scores(value: object) -> None:
    assert read_score(value) is None
