"""Parsers that crash, hang or grow take only their own file with them."""

import os
import pickle
import signal
import sys
from pathlib import Path

import outside_readers
import pytest

from nodekin.nodegraph import NodeGraph, ReadError, ReadOptions, register_reader
from nodekin.nodegraph.readers import formats
from nodekin.nodegraph.readers import reading as isolated
from nodekin.nodegraph.workers.process_workers import Limits, ProcessWorkers

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")


@pytest.fixture(autouse=True)
def _reader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "_READERS", {**formats._READERS})
    register_reader(".page", outside_readers.read_page)


def pages(folder: Path, *what: str) -> None:
    for name in what:
        (folder / f"{name}.page").write_text(name)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_only_the_bad_files_are_lost(tmp_path: Path, workers: int) -> None:
    pages(tmp_path, "a", "b crash", "c", "d crash", "e", "f exit", "g print", "h grow", "i")
    options = ReadOptions(workers=workers, memory_bytes=1_500_000_000)
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
def test_a_parser_that_takes_too_long_is_ended(tmp_path: Path, what: str) -> None:
    pages(tmp_path, "a", f"b {what}", "c")
    options = ReadOptions(workers=1, seconds=1)
    graph = NodeGraph(tmp_path, progress=False, on_error="skip", reading=options)
    assert [node.text for node in graph.nodes("ROOT")] == ["a", "c"]
    (failure,) = graph.failures
    assert isinstance(failure.error, ReadError)
    assert "took more than 1 seconds" in str(failure.error)
    assert str(graph.read_report) == "2 read, 1 skipped: 1 too slow to parse"


def test_no_process_is_left_behind(tmp_path: Path) -> None:
    pages(tmp_path, "a", "b")
    before = children()
    NodeGraph(tmp_path, progress=False)
    with isolated.parsing([("a", tmp_path / "a.page")], ReadOptions()) as parsed:
        del parsed  # nobody waits for it
    assert children() == before


def children() -> set[str]:
    """Return the processes that this one has started."""
    tasks = Path("/proc/self/task")
    if not tasks.exists():
        pytest.skip("no /proc")
    while True:
        try:
            found = [(task / "children").read_text() for task in tasks.iterdir()]
        except (FileNotFoundError, ProcessLookupError):  # a thread has ended meanwhile
            continue
        return {pid for pids in found for pid in pids.split()}


def test_a_process_that_was_killed_between_two_calls_is_replaced() -> None:
    with ProcessWorkers(process_of, 1, Limits(300, 2_000_000_000)) as workers:
        first = workers.call(())
        os.kill(first, signal.SIGKILL)
        assert workers.call(()) != first


def process_of(_: object) -> int:
    return os.getpid()


class Harmful:
    """What would run a function where it is loaded."""

    def __reduce__(self) -> tuple[object, ...]:
        return print, ("executed",)


def send_harmful(_: object) -> object:
    return Harmful()


def test_nothing_that_a_limited_process_sends_is_executed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    refused = pytest.raises(pickle.UnpicklingError, match=r"more than plain data: builtins\.print")
    with ProcessWorkers(send_harmful, 1, Limits(300, 2_000_000_000)) as workers, refused:
        workers.call(())
    assert capsys.readouterr().out == ""


def test_a_file_of_the_corpus_is_never_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
        (OSError("gone"), ["can't read {}: gone", "unreadable", False]),
        (KeyError("x"), ["can't read {}: KeyError: 'x'", "damaged", False]),
        (SystemExit("y\n z"), ["can't read {}: SystemExit: y z", "damaged", False]),
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
def test_why_a_file_is_not_read_comes_back_as_data(
    error: BaseException, row: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Failing:
        def records(self, source: object) -> None:
            raise error

    monkeypatch.setattr(isolated, "find_reader", lambda path: Failing())
    path = str(tmp_path / "a.msg")
    parser = isolated.FileParser(ReadOptions(memory_bytes=512), (), has_ocr=False)
    message, *more = row
    assert parser(path) == ["error", str(message).format(path), *more]


@pytest.mark.parametrize(
    ("physical", "count", "memory"),
    [(16, 1, 512), (16, 16, 512), (8, 16, 256), (1, 2, 256), (1, 16, 64), (None, 1, 512)],
)
def test_where_many_read_each_gets_less_memory(
    physical: int | None, count: int, memory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sysconf(name: str) -> int:
        if physical is None:
            raise ValueError(name)
        return {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": physical * 2**18}[name]

    monkeypatch.setattr(os, "sysconf", sysconf, raising=False)
    assert isolated._share_of_memory(count) == memory * 2**20
