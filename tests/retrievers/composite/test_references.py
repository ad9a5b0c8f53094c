"""What nodes stand for, and where its results are put."""

from hypothesis import given
from hypothesis import strategies as st

from nodekin.retrievers.composite.references import put_in_place

FINITE = st.floats(-1e6, 1e6, allow_nan=False)


@given(st.lists(FINITE, min_size=1), FINITE)
def test_put_in_place_keeps_the_order(scores, place) -> None:
    put = put_in_place(scores, place)
    assert max(put) == place
    for one, other in zip(range(len(scores)), range(1, len(scores)), strict=False):
        if scores[one] <= scores[other]:
            assert put[one] <= put[other]
    assert put_in_place([], place) == []
