"""Texts in arrays: restored texts, and their look-up by hash."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodekin.nodegraph.errors import MissingNodeError
from nodekin.retrievers.indexes import stored_texts
from nodekin.retrievers.indexes.array_files import Arrays
from nodekin.retrievers.indexes.stored_texts import (
    StoredTexts,
    TextLookup,
    hashes_of,
    pack_lookup,
    pack_texts,
)

PLAIN = st.text(st.characters(categories=None), max_size=6)

GENERATED_IDS = st.binary(min_size=12, max_size=12).map(bytes.hex)

TEXTS = st.lists(PLAIN, unique=True) | st.lists(GENERATED_IDS, unique=True)


def arrays_of(texts: Sequence[str]) -> Arrays:
    lookup = pack_lookup("names", hashes_of(texts), np.arange(len(texts)))
    return {**pack_texts("names", texts), **lookup}


def lookup_of(arrays: Arrays) -> TextLookup:
    return TextLookup.from_arrays(arrays, "names", StoredTexts.from_arrays(arrays, "names"))


@given(TEXTS, TEXTS)
def test_stored_texts_equal_texts(texts: list[str], more: list[str]) -> None:
    packed = StoredTexts.from_arrays(pack_texts("names", texts), "names")
    stored = StoredTexts.from_arrays(packed.arrays("names", more), "names")
    expected = [*texts, *more]
    assert len(stored) == len(expected)
    assert stored.all() == expected
    assert [stored[place] for place in range(len(expected))] == expected
    backwards = np.arange(len(expected))[::-1]
    assert stored.take(backwards) == expected[::-1]


@given(TEXTS, TEXTS)
def test_look_up_finds_texts_of_list(texts: list[str], others: list[str]) -> None:
    found = lookup_of(arrays_of(texts)).find([*others, *texts])
    expected = [texts.index(text) if text in texts else -1 for text in [*others, *texts]]
    assert found == expected


def test_texts_with_equal_hashes_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"name {number}" for number in range(60)]

    def few(texts: Sequence[str]) -> object:
        return np.array([int(text.split()[1]) % 2 for text in texts], np.uint32)

    monkeypatch.setattr(stored_texts, "hashes_of", few)
    lookup = pack_lookup("names", stored_texts.hashes_of(names), np.arange(len(names)))
    found = lookup_of({**pack_texts("names", names), **lookup})
    assert found.find(["name 59", "name 0", "name 61"]) == [59, 0, -1]


@pytest.mark.parametrize(
    ("name", "values", "reason"),
    [
        ("names_ends", np.uint32([9, 4, 9]), "ascend"),
        ("names_ends", np.uint32([3, 6, 99]), "ascend"),
        ("names_hashes", np.uint32([0, 0, 0]), "differs"),
        ("names_hashes", np.uint32([2**32 - 1] * 3), "differs"),
        ("names_places", np.uint32([7, 7, 7]), "7 of 3"),
        ("names_places", np.uint32([1, 1, 1]), "differs"),
        ("names", np.full(9, 0x80, np.uint8), "'utf-8' codec"),
    ],
)
def test_forged_texts_are_refused(name: str, values: np.ndarray, reason: str) -> None:
    arrays = {**arrays_of(["tea", "cup", "pot"]), name: values}
    with pytest.raises(MissingNodeError, match=reason):
        lookup_of(arrays).find(["tea", "cup", "pot", "milk", "leaf"])


def test_many_equal_hashes_are_refused() -> None:
    names = ["tea"] * 70
    arrays = arrays_of(["cup"] * 70)
    lookup = pack_lookup("names", hashes_of(names), np.arange(len(names)))
    with pytest.raises(MissingNodeError, match="too many values are equal"):
        lookup_of({**arrays, **lookup}).find(["tea"])
