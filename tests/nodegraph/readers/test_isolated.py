"""Parsers that crash, hang or exceed the memory limit lose only their own file."""

import pickle
import sys
from functools import partial
from pathlib import Path

import pytest
from support import outside_readers

from nodekin.nodegraph import NodeGraph, ReadError, ReadOptions, register_reader
from nodekin.nodegraph.readers import formats
from nodekin.nodegraph.readers import reading as isolated

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")


@pytest.fixture(autouse=True)
def _reader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "_READERS", {**formats._READERS})
    register_reader(".page", outside_readers.read_page)


def pages(folder: Path, *what: str) -> None:
    for name in what:
        (folder / f"{name}.page").write_text(name)


@pytest.mark.slow
def test_bad_files_fail_alone(tmp_path: Path) -> None:
    pages(tmp_path, "a", "b crash", "c", "d crash", "e", "f exit", "g print", "h grow", "i")
    options = ReadOptions(num_workers=2, memory_bytes=1_500_000_000)
    graph = NodeGraph(tmp_path, progress=False, on_error="skip", reading=options)
    assert [node.text for node in graph.nodes("ROOT")] == ["a", "c", "e", "g print", "i"]
    kinds = {Path(f.document).stem: f.error.kind for f in graph.failures}
    assert kinds == {
        "b crash": "crashing their parser",
        "d crash": "crashing their parser",
        "f exit": "damaged",
        "h grow": "too large for the memory limit",
    }
    assert "memory_bytes" in str(graph.read_report.skipped[str(tmp_path / "h grow.page")])


@pytest.mark.slow
@pytest.mark.parametrize("what", ["hang", "spin"])
def test_slow_parser_is_ended(tmp_path: Path, what: str) -> None:
    pages(tmp_path, "a", f"b {what}", "c")
    options = ReadOptions(num_workers=1, seconds=1)
    graph = NodeGraph(tmp_path, progress=False, on_error="skip", reading=options)
    assert [node.text for node in graph.nodes("ROOT")] == ["a", "c"]
    (failure,) = graph.failures
    assert isinstance(failure.error, ReadError)
    assert "took more than 1 seconds" in str(failure.error)
    assert str(graph.read_report) == "2 read, 1 skipped: 1 too slow to parse"


def test_closed_reading_leaves_no_process(tmp_path: Path) -> None:
    pages(tmp_path, "a", "b")
    before = children()
    NodeGraph(tmp_path, progress=False)
    files = {path.stem: path for path in tmp_path.iterdir()}
    reading = isolated.read_files(files, ReadOptions())
    next(reading)
    reading.close()
    assert children() == before


def children() -> set[str]:
    """Return the child processes of this process."""
    tasks = Path("/proc/self/task")
    if not tasks.exists():
        pytest.skip("no /proc")
    while True:
        try:
            found = [(task / "children").read_text() for task in tasks.iterdir()]
        except (FileNotFoundError, ProcessLookupError):  # a thread has ended
            continue
        return {pid for pids in found for pid in pids.split()}


def test_corpus_file_is_never_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "json.py").write_text("open('executed', 'w').close()\n")
    pages(tmp_path, "a")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
    graph = NodeGraph(tmp_path / "a.page", progress=False)
    assert [node.text for node in graph.nodes("ROOT")] == ["a"]
    assert not Path("executed").exists()


@pytest.mark.parametrize(
    ("error", "row"),
    [
        (ReadError("can't", "too large"), ["can't", "too large", False]),
        (ReadError("can't", "picture", skippable=True), ["can't", "picture", True]),
        (OSError(5, "broken"), ["can't read {}: broken", "unreadable", False]),
        (KeyError("x"), ["can't read {}: KeyError: 'x'", "damaged", False]),
        (
            SystemExit("y\n z"),
            [
                "can't read {}: its parser crashed, so it may be damaged (SystemExit: y z)",
                "damaged",
                False,
            ],
        ),
        (
            MemoryError(),
            [
                "can't read {}: it takes more memory than ReadOptions(memory_bytes=512)",
                "too large for the memory limit",
                False,
            ],
        ),
    ],
)
def test_read_error_in_a_process_is_plain_data(error: BaseException, row: list[object]) -> None:
    reader = pickle.dumps(partial(fail, error))
    message, *more = row
    expected = ["error", str(message).format("a.msg"), *more]
    options = ReadOptions(memory_bytes=512)
    assert isolated.parse_file(options, False, ("a.msg", reader)) == expected


def fail(error: BaseException, path: Path) -> None:
    raise error


def test_file_order_is_independent_of_workers(tmp_path: Path) -> None:
    pages(tmp_path, *"abcdefghijkl")
    (tmp_path / "b.txt").write_text("text")
    orders = [
        [node.id for node in NodeGraph(tmp_path, progress=False, reading=options).nodes("ROOT")]
        for options in (ReadOptions(num_workers=1), ReadOptions(num_workers=3))
    ]
    assert orders[0] == orders[1] == sorted(orders[0])
