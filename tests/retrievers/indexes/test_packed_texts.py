"""Texts in one array of bytes: each comes back, alone and together with others."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodekin.retrievers.indexes.array_files import PackedTexts, pack_texts, starts_of

TEXTS = st.text(st.characters(categories=None), max_size=6)  # lone surrogates too
DIGESTS = st.text("0123456789abcdef", min_size=4, max_size=4)
LISTS = st.one_of(st.lists(TEXTS), st.lists(DIGESTS), st.lists(st.one_of(TEXTS, DIGESTS)))


@given(LISTS, st.randoms(use_true_random=False))
def test_texts_come_back(texts: list[str], random) -> None:
    packed = PackedTexts(*pack_texts(texts))
    assert len(packed) == len(texts)
    assert list(packed) == texts
    assert packed[1:3] == texts[1:3]
    rows = [random.randrange(len(texts)) for _ in texts]
    assert packed.take(np.array(rows, int)) == [texts[row] for row in rows]
    assert [packed[-1 - at] for at in range(len(texts))] == texts[::-1]
    with pytest.raises(IndexError, match="no text"):
        packed[len(texts)]


@given(LISTS)
def test_equal_texts_have_one_key(texts: list[str]) -> None:
    packed = PackedTexts(*pack_texts(texts))
    assert packed.keys().tolist() == [packed.key(text) for text in texts]


@given(st.lists(st.text("0123456789abcdef", min_size=24, max_size=24), min_size=1))
def test_the_keys_of_digests_are_read_at_once(digests: list[str]) -> None:
    packed = PackedTexts(*pack_texts(digests))
    assert packed.keys().tolist() == [packed.key(text) for text in digests]
    assert packed.key("g" * 24) == hash("g" * 24)


def test_digests_take_half_a_byte_a_character() -> None:
    data, starts = pack_texts(["00ff" * 6] * 10)
    assert (len(data), len(starts)) == (120, 1)
    assert pack_texts(["00FF", "00ff"])[0].tobytes() == b"00FF00ff"


def test_arrays_that_do_not_fit() -> None:
    data, starts = pack_texts(["tea", "river"])
    for wrong in (data[:-1], np.append(data, data)):
        with pytest.raises(ValueError, match="don't fit 2 texts"):
            PackedTexts(wrong, starts)
    with pytest.raises(ValueError, match="don't fit"):
        PackedTexts(np.zeros(7, np.uint8), np.array([12], np.uint32))


def test_places_take_eight_bytes_only_where_four_are_too_few() -> None:
    assert starts_of([1, (1 << 32) - 2]).dtype == np.uint32
    assert starts_of([1, (1 << 32) - 1]).tolist() == [0, 1, 1 << 32]
