"""Files of arrays: saved arrays are mapped, and other formats are ignored."""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.forged_files import read_parts, write_parts

from nodekin.nodegraph import Document, Embedder, NodeGraph
from nodekin.retrievers import Retriever
from nodekin.retrievers.indexes import array_files, nearest_vectors
from nodekin.retrievers.indexes.array_files import load_arrays, save_arrays

EVERY = slice(None)

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


def forged(path: Path, name: str, kind: object, shape: object) -> None:
    """Change the type and the shape of an array. The checksum stays right."""
    header, body = read_parts(path)
    header["arrays"][name] = [kind, shape]
    data = json.dumps(header).encode()
    data += b" " * (-(8 + len(data)) % 64)
    write_parts(path, len(data), data, bytes(body), header)


@pytest.mark.parametrize(
    ("kind", "shape"),
    [
        *(("|O", [7]), ("V8", [7]), ("<M8[s]", [7]), ("<U2", [7]), ("<c16", [3]), (["<i4"], [7])),
        *(("<i8", [-5]), ("<i8", [2**62]), ("<i8", [2**31, 2**33]), ("<i8", [8_000]), ("<i8", 7)),
        *(("<i8", [1.5]), ("<i8", [True]), ("<i8", [1, 1, 1]), ("|b1", [56]), ("x", [7])),
        *((None, [7]), ("<i8", None), ("<i8", ["7"]), (">i8", [7])),
    ],
)
def test_forged_array_is_refused_with_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, kind: object, shape: object
) -> None:
    path = saved(tmp_path)
    forged(path, "a", kind, shape)
    assert load_arrays(path) is None
    assert "is damaged and will be rebuilt" in caplog.text


def test_array_of_usual_types_is_read(tmp_path: Path) -> None:
    path = saved(tmp_path)
    for kind, shape in (("<i8", [7]), ("<f4", [2, 7]), ("|u1", [56])):
        forged(path, "a", kind, shape)
        _, arrays = load_arrays(path) or ({}, {})
        assert arrays["a"].dtype.str == kind
        assert [*arrays["a"].shape] == shape


@pytest.mark.parametrize(
    ("name", "index", "value"),
    [
        *(("posting_starts", 0, 16), ("posting_starts", EVERY, 16), ("posting_starts", -1, 9)),
        *(("posting_starts", 1, 2**16 - 1), ("posting_starts", slice(9), 3)),
        *(("posting_units", EVERY, 2**16 - 1), ("posting_form", 1, 3), ("posting_form", 2, 8)),
        *(("documents_ends", slice(9), 2**16 - 1), ("ids", EVERY, 0), ("terms_ends", EVERY, 3)),
        *(("ids_hashes", EVERY, 0), ("ids_places", EVERY, 2**16 - 1), ("ids_places", EVERY, 7)),
        *(("terms_hashes", EVERY, 0), ("terms_hashes", EVERY, 2**32 - 1)),
        *(("terms_places", EVERY, 2**16 - 1), ("terms_places", EVERY, 0), ("terms", EVERY, 0x80)),
        *(("parents_codes", 0, 2**15), ("metadata_codes", 5, 999), ("documents_codes", 0, 9_999)),
        *(("vectors", (0, 0), np.nan), ("vectors", (1, 1), np.inf), ("hnsw_levels", 0, 2**30)),
        *(("hnsw_neighbors", 0, 2**31 - 1), ("hnsw_neighbors", 0, -2), ("hnsw_entry", 0, -1)),
        *(("hnsw_numbers", 0, 10**6), ("hnsw_numbers", 0, -1), ("hnsw_levels", 0, 0)),
    ],
)
def test_forged_values_are_rebuilt_with_log(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    index: Any,
    value: float,
) -> None:
    if name.startswith("hnsw"):
        pytest.importorskip("faiss")
    monkeypatch.setattr(nearest_vectors, "EXACT", 100)
    monkeypatch.setattr(nearest_vectors, "_FOLLOW_COST", 0)

    def found(store: Path | None, removed: str | None) -> list[tuple[str, float]]:
        embedder = Embedder(lambda texts: [[len(t), hash(t[::2]) % 97, 1] for t in texts], "made")
        with NodeGraph(store=store, embed=embedder, progress=False) as graph:
            graph.create_node_group("line", str.splitlines, version="1")
            graph.create_node_group("word", str.split, "line", version="1")
            if not graph.groups["ROOT"].size:
                graph.add([Document(f"tea {n}\ncup {n}", {"n": n}, id=f"d{n}") for n in range(300)])
            if removed is not None:
                graph.remove(removed)
            graph.build("line", embed=True)
            retrievers = [Retriever(graph, "line", kind) for kind in ("bm25", "cosine")]
            some = {"n": {"lt": 250}, "document.id": {"ne": "d3"}}
            retrievers.append(Retriever(graph, "line", "bm25", filters=some))
            retrievers.append(Retriever(graph, "word", "bm25", target="line"))
            for each in retrievers:
                each("tea")
            return [(r.node.id, round(r.score, 5)) for each in retrievers for r in each("tea 7")]

    found(tmp_path / "graph", None)
    changed = False
    for path in (tmp_path / "graph-indexes").iterdir():
        header, arrays = load_arrays(path) or ({}, {})
        if name in arrays:
            forged = arrays[name].copy()
            forged[index] = value
            save_arrays(path, header, {**arrays, name: forged})
            changed = True
    assert changed
    assert found(tmp_path / "graph", "d9") == found(None, "d9")
    assert "does not fit and is rebuilt" in caplog.text


def test_ids_that_graph_lacks_are_rebuilt(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def found() -> list[str]:
        with NodeGraph(store=tmp_path / "graph", progress=False) as graph:
            if not graph.groups["ROOT"].size:
                graph.add([Document(f"tea {n}", {"n": n}, id=f"d{n:03}") for n in range(300)])
            retriever = Retriever(graph, "ROOT", filters={"n": {"lt": 200}})
            return [result.node.id for result in retriever("tea 7")]

    right = found()
    (path,) = (tmp_path / "graph-indexes").iterdir()
    header, arrays = load_arrays(path) or ({}, {})
    for name, former, new in (("ids", b"d007", b"d999"), ("metadata", b'{"n":7}', b'{"n":7]')):
        content = arrays[name].tobytes()
        assert former in content
        changed = np.frombuffer(content.replace(former, new), np.uint8)
        save_arrays(path, header, {**arrays, name: changed})
        caplog.clear()
        assert found() == right
        assert "does not fit and is rebuilt" in caplog.text
