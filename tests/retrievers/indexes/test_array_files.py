"""Files of arrays, and how numbers and texts are encoded in them."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodekin.retrievers.indexes import array_files
from nodekin.retrievers.indexes.array_files import (
    join,
    load_arrays,
    pack,
    save_arrays,
    split,
    unpack,
)

ARRAYS = {"a": np.arange(7), "b": np.array([True, False]), "c": np.zeros((0, 3), np.float32)}
TEXTS = st.text(st.characters(categories=None), max_size=6)  # lone surrogates too


def saved(folder: Path) -> Path:
    path = folder / "made when missing" / "index"
    save_arrays(path, {"revision": 3}, ARRAYS)
    return path


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    header, arrays = load_arrays(saved(tmp_path)) or ({}, {})
    assert header["revision"] == 3
    assert list(arrays) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype
        assert arrays[name].shape == array.shape
        assert (arrays[name] == array).all()


def test_no_file_is_no_index(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert load_arrays(tmp_path / "none") is None
    assert not caplog.records


@given(st.data())
def test_a_damaged_file_is_never_trusted(tmp_path: Path, data: st.DataObject) -> None:
    path = saved(tmp_path)
    whole = path.read_bytes()
    changed = bytearray(whole)
    if data.draw(st.booleans()):
        del changed[data.draw(st.integers(0, len(whole) - 1)) :]
    else:
        at = data.draw(st.integers(0, len(whole) - 1))
        changed[at] ^= data.draw(st.integers(1, 255))
    path.write_bytes(changed)
    loaded = load_arrays(path)
    if loaded is not None:  # a bit that means nothing, a date
        header, arrays = loaded
        assert header["revision"] == 3
        assert {name: array.tolist() for name, array in arrays.items()} == {
            name: array.tolist() for name, array in ARRAYS.items()
        }


def test_a_file_of_another_format_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(tmp_path)
    monkeypatch.setattr(array_files, "_FORMAT", array_files._FORMAT + 1)
    assert load_arrays(path) is None


def test_what_cannot_be_written_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("in the way of a folder")
    save_arrays(tmp_path / "file" / "index", {}, ARRAYS)
    assert "was not written" in caplog.text


def test_drafts_of_the_dead_are_removed(tmp_path: Path) -> None:
    path = saved(tmp_path)
    old, new = path.with_name("index.1-1.tmp"), path.with_name("index.2-2.tmp")
    for draft in (old, new):
        draft.write_bytes(b"")
    os.utime(old, (0, 0))
    saved(tmp_path)
    assert sorted(path.parent.iterdir()) == [path, new]


def test_many_may_write_at_once(tmp_path: Path) -> None:
    def write(revision: int) -> None:
        save_arrays(tmp_path / "index", {"revision": revision}, {"a": np.full(999, revision)})

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(40)))
    header, arrays = load_arrays(tmp_path / "index") or ({}, {})
    assert (arrays["a"] == header["revision"]).all()
    assert [path.name for path in tmp_path.iterdir()] == ["index"]


SIZES = st.one_of(*(st.integers(0, 2**bits - 1) for bits in (1, 4, 9, 17, 32)))


@given(st.lists(SIZES, max_size=40), st.booleans())
def test_numbers_come_back(numbers: list[int], mostly_zero: bool) -> None:
    packed = pack(numbers, mostly_zero=mostly_zero)
    assert unpack(packed, mostly_zero=mostly_zero).tolist() == numbers
    for wrong in (packed[:-1], np.append(packed, packed[:1]), packed[:3], packed.astype(int)):
        with pytest.raises(ValueError, match="packed numbers"):
            unpack(wrong, mostly_zero=mostly_zero)


def test_small_numbers_take_a_byte_and_zeros_a_bit() -> None:
    assert len(pack(np.full(8000, 255))) == 8 + 8000 + 1000
    assert len(pack(np.zeros(8000, int), mostly_zero=True)) == 8 + 1000


@given(st.lists(st.one_of(TEXTS, st.text("0123456789abcdefA ", max_size=4))))
def test_texts_come_back(texts: list[str]) -> None:
    assert split(*join(texts)) == texts


def test_digests_take_half_a_byte_a_character() -> None:
    data, _ = join(["00ff" * 6] * 10)
    assert len(data) == 120
    with pytest.raises(ValueError, match="the texts have 240 characters, not 241"):
        split(data, pack([241]))
