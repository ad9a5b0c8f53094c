"""Inverted texts, compared with manual counts."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodekin.retrievers.analysis.text_analyzer import TextAnalyzer
from nodekin.retrievers.indexes.postings import count_keys, invert
from nodekin.retrievers.indexes.text_index import inverted
from tests.support.inverted_texts import counted

TERMS = st.lists(st.lists(st.one_of(st.sampled_from("abc"), st.text(max_size=3)), max_size=9))


@given(TERMS)
def test_invert_counts_terms_of_each_text(texts: Sequence[list[str]]) -> None:
    assert counted(invert(texts, iter)) == [Counter(text) for text in texts]


@given(st.lists(st.text("茶水长江い한𠀀ไท aé1.\0"), max_size=5))
def test_inverted_counts_analyzer_terms_of_each_text(texts: Sequence[str]) -> None:
    analyzer = TextAnalyzer()
    result = inverted(analyzer, texts)
    assert result.lengths.tolist() == [analyzer.indexed(text)[1] for text in texts]
    by_count = np.array([len(analyzer.indexed(text)[0]) for text in texts], np.int32)
    expected = [Counter(analyzer.indexed(text)[0]) for text in texts]
    assert counted(replace(result, lengths=by_count)) == expected


@pytest.mark.parametrize("most", [1, 255, 256, 65_536])
def test_count_keys_uses_smallest_integer_type(most: int) -> None:
    counts = count_keys(np.array([7 << 16] * most + [9 << 16 | 3]))[3]
    assert counts.tolist() == [most, 1]
    assert counts.itemsize == (1 if most < 256 else 2 if most < 65_536 else 4)
