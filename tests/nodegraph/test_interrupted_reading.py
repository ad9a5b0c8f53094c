"""Interrupted readings continue with the parsed files."""

from pathlib import Path

import outside_readers
import pytest

from nodekin.nodegraph import NodeGraph, ReadOptions, register_reader
from nodekin.nodegraph.readers import formats, reading


@pytest.fixture(autouse=True)
def _reader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(formats, "_READERS", {**formats._READERS})
    register_reader(".page", outside_readers.read_page)


def pages(folder: Path, count: int) -> None:
    for number in range(count):
        (folder / f"{number:02}.page").write_text(f"Page {number}")


class Interrupt(BaseException):
    """An interrupt like Ctrl-C."""


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list of the files that are read. The entry "stop" interrupts the reading."""
    read: list[str] = []
    whole = reading.read_files

    def read_files(files, options):
        for file_id, *rest in whole(files, options):
            if "stop" in read and len(read) > 12:
                raise Interrupt
            read.append(file_id)
            yield (file_id, *rest)

    monkeypatch.setattr(reading, "read_files", read_files)
    return read


def test_interrupted_reading_continues(tmp_path: Path, parsed: list[str]) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    pages(docs, 20)
    parsed.append("stop")
    with NodeGraph(store=tmp_path / "g.nodekin", progress=False) as graph:
        with pytest.raises(Interrupt):
            graph.add(docs)
        assert graph.nodes("ROOT") == []  # all of it or none
    first = set(parsed[1:])
    assert len(first) == 12
    parsed.clear()
    with NodeGraph(docs, store=tmp_path / "g.nodekin", progress=False) as graph:
        assert [node.text for node in graph.nodes("ROOT")] == [f"Page {n}" for n in range(20)]
        assert graph._store.get_values("parsed file") == {}
    assert not first & set(parsed)
    assert len(parsed) == 8


def test_file_order_is_independent_of_workers(tmp_path: Path) -> None:
    pages(tmp_path, 12)
    (tmp_path / "00.txt").write_text("text")
    orders = [
        [node.id for node in NodeGraph(tmp_path, progress=False, reading=options).nodes("ROOT")]
        for options in (ReadOptions(workers=1), ReadOptions(workers=3))
    ]
    assert orders[0] == orders[1] == sorted(orders[0])
