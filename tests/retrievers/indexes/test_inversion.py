"""Texts by their terms: what one counts by hand."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodekin.retrievers.indexes.postings import count_keys, invert
from tests.support.inverted_texts import counted

TERMS = st.lists(st.lists(st.one_of(st.sampled_from("abc"), st.text(max_size=3)), max_size=9))


@given(TERMS)
def test_every_text_has_its_terms(texts: Sequence[list[str]]) -> None:
    assert counted(invert(texts, iter)) == [Counter(text) for text in texts]


@pytest.mark.parametrize("most", [1, 255, 256, 65_536])
def test_counts_take_the_bytes_they_need(most: int) -> None:
    counts = count_keys(np.array([7 << 16] * most + [9 << 16 | 3]))[3]
    assert counts.tolist() == [most, 1]
    assert counts.itemsize == (1 if most < 256 else 2 if most < 65_536 else 4)
