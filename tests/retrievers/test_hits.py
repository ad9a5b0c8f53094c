import math

from hypothesis import given
from hypothesis import strategies as st

from nodekin.retrievers.ranking import merge_hits
from nodekin.retrievers.results import Hits

INDEXES = st.lists(
    st.lists(st.sampled_from([0.5, 1.0, 2.0, 3.0]), max_size=9), min_size=1, max_size=3
)


def hits(number: int, scores: list[float]) -> Hits:
    return Hits([f"{number}-{place}" for place in range(len(scores))], scores)


def test_best_first_ties_by_index() -> None:
    rows, more = merge_hits([hits(0, [2.0, 1.0]), hits(1, [3.0, 2.0])], None, -math.inf)
    assert rows == [(3.0, 1, "1-0"), (2.0, 0, "0-0"), (2.0, 1, "1-1"), (1.0, 0, "0-1")]
    assert not more


def test_what_an_index_may_still_have_is_not_skipped() -> None:
    rows, more = merge_hits([hits(0, [9.0, 8.0]), hits(1, [3.0])], 2, -math.inf)
    assert rows == [(9.0, 0, "0-0"), (8.0, 0, "0-1")]
    assert more


def test_no_more_where_the_rest_is_cut_off() -> None:
    assert merge_hits([hits(0, [9.0, 1.0])], 2, 2.0) == ([(9.0, 0, "0-0")], False)
    assert merge_hits([hits(0, [9.0, 2.0])], 2, 2.0) == ([(9.0, 0, "0-0"), (2.0, 0, "0-1")], True)
    assert merge_hits([hits(0, []), hits(1, [])], 2, 2.0) == ([], False)


@given(INDEXES, st.integers(1, 9), st.sampled_from([-math.inf, 1.0, 2.5]))
def test_a_part_is_the_beginning_of_the_whole(indexes, wanted: int, cut_off: float) -> None:
    full = [hits(n, sorted(scores, reverse=True)) for n, scores in enumerate(indexes)]
    part = [Hits(each.ids[:wanted], each.scores[:wanted]) for each in full]
    whole, _ = merge_hits(full, None, cut_off)
    rows, more = merge_hits(part, wanted, cut_off)
    assert rows == whole[: len(rows)]
    assert more or rows == whole
    assert len(rows) >= min(wanted, len(whole))
