"""Packed texts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodekin.retrievers.indexes.array_files import Texts

TEXTS = st.lists(st.text(st.characters(categories=None), max_size=6))  # lone surrogates too


@given(TEXTS, TEXTS, st.randoms(use_true_random=False))
def test_texts_equal_packed_and_later_texts(first: list[str], later: list[str], random) -> None:
    texts = Texts.from_arrays(Texts.of(first).arrays("name"), "name")
    texts.extend(later)
    every = first + later
    assert list(texts) == every
    assert len(texts) == len(every)
    rows = [random.randrange(len(every)) for _ in every]
    assert texts.take(np.array(rows, int)) == [every[row] for row in rows]


def test_texts_refuse_arrays_that_do_not_fit() -> None:
    arrays = Texts.of(["tea", "river"]).arrays("name")
    for wrong in (arrays["name"][:-1], np.append(arrays["name"], arrays["name"])):
        with pytest.raises(ValueError, match="do not fit 2 texts"):
            Texts(wrong, arrays["name_starts"])
