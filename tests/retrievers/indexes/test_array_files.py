"""Files of arrays: saved arrays are mapped, and other formats are ignored."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from nodekin.retrievers.indexes import array_files
from nodekin.retrievers.indexes.array_files import load_arrays, save_arrays

ARRAYS = {"a": np.arange(7), "b": np.array([True, False]), "c": np.zeros((0, 3), np.float32)}


def saved(folder: Path) -> Path:
    path = folder / "made when missing" / "index"
    save_arrays(path, {"revision": 3}, ARRAYS)
    return path


def test_load_of_other_format_returns_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path = saved(tmp_path)
    monkeypatch.setattr(array_files, "_FORMAT", array_files._FORMAT + 1)
    assert load_arrays(path) is None
    (record,) = caplog.records
    assert f"the index in {path} is rebuilt: its format" in record.message


def test_save_removes_abandoned_temporary_files(tmp_path: Path) -> None:
    path = saved(tmp_path)
    old, new = path.with_name("index.1-1.tmp"), path.with_name("index.2-2.tmp")
    for draft in (old, new):
        draft.write_bytes(b"")
    os.utime(old, (0, 0))
    saved(tmp_path)
    assert sorted(path.parent.iterdir()) == [path, new]


def test_concurrent_saves_leave_one_complete_file(tmp_path: Path) -> None:
    def write(revision: int) -> None:
        save_arrays(tmp_path / "index", {"revision": revision}, {"a": np.full(999, revision)})

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(40)))
    header, arrays = load_arrays(tmp_path / "index") or ({}, {})
    assert (arrays["a"] == header["revision"]).all()
    assert [path.name for path in tmp_path.iterdir()] == ["index"]


def test_mapped_arrays_survive_replaced_file(tmp_path: Path) -> None:
    path = saved(tmp_path)
    _, arrays = load_arrays(path) or ({}, {})
    for array in arrays.values():
        assert not (array.size and array.flags.writeable)
        assert array.flags.aligned
    save_arrays(path, {"revision": 4}, {"a": np.zeros(10_000)})
    assert {name: array.tolist() for name, array in arrays.items()} == {
        name: array.tolist() for name, array in ARRAYS.items()
    }
    path.unlink()
    assert arrays["a"].tolist() == list(range(7))
