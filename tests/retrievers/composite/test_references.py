"""Nodes that refer to retrievers, and the results that replace them."""

from hypothesis import given
from hypothesis import strategies as st

from nodekin.retrievers.composite.recursive import rescale

FINITE = st.floats(-1e6, 1e6, allow_nan=False)


@given(st.lists(FINITE, min_size=1), FINITE)
def test_rescale_keeps_order(scores, best) -> None:
    rescaled = rescale(scores, best)
    assert max(rescaled) == best
    for one, other in zip(range(len(scores)), range(1, len(scores)), strict=False):
        if scores[one] <= scores[other]:
            assert rescaled[one] <= rescaled[other]
    assert rescale([], best) == []
