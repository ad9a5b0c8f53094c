"""Registered readers: loaders of LangChain, readers of LlamaIndex, functions."""

import os
import re
from datetime import date
from pathlib import Path

import pytest
from langchain_community.document_loaders import TextLoader
from langchain_core.document_loaders import BaseLoader
from langchain_core.documents import Document as LangChainDocument
from llama_index.core import SimpleDirectoryReader
from llama_index.core.readers.base import BaseReader
from llama_index.core.schema import Document as LlamaIndexDocument
from support import outside_readers

from nodekin.nodegraph import (
    Document,
    NodeGraph,
    ReadError,
    ReadOptions,
    SearchText,
    register_reader,
)
from nodekin.nodegraph.readers import formats


@pytest.fixture(autouse=True)
def _registry():
    before = dict(formats._READERS)
    yield
    formats._READERS.clear()
    formats._READERS.update(before)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a.msg").write_text("Subject: Tea\nTea is a drink.")
    (folder / "b.txt").write_text("Plain.")
    return folder


class MessageLoader(BaseLoader):
    """A custom loader of LangChain."""

    def __init__(self, file_path: str) -> None:
        self.file_path = file_path

    def lazy_load(self):
        subject, text = Path(self.file_path).read_text().split("\n", 1)
        yield LangChainDocument(text, metadata={"source": self.file_path, "subject": subject})


class TwoPages(BaseReader):
    """A custom reader of LlamaIndex."""

    def load_data(self, file: Path, extra_info: dict | None = None):
        return [
            LlamaIndexDocument(text=line, metadata={"line": number, "file_name": file.name})
            for number, line in enumerate(file.read_text().split("\n"))
        ]


def read(folder: Path) -> dict[str, str]:
    graph = NodeGraph(folder, progress=False)
    assert graph.failures == []
    return {node.id: node.text for node in graph.nodes("ROOT")}


def load_directory(path: Path):
    return SimpleDirectoryReader(input_files=[path]).load_data()


def isolated(pattern: str, reader: object, *texts: str):
    return pytest.param(pattern, reader, texts, marks=pytest.mark.slow)


@pytest.mark.parametrize(
    ("pattern", "reader", "expected"),
    [
        isolated("*.msg", MessageLoader, "Tea is a drink."),
        isolated("a.*", TwoPages, "Subject: Tea", "Tea is a drink."),
        isolated("*.msg", TwoPages(), "Subject: Tea", "Tea is a drink."),
        isolated("*.msg", load_directory, "Subject: Tea\nTea is a drink."),
        ("*.msg", lambda path: [*map(LangChainDocument, "ab")], ["a", "b"]),
        (".MSG", TextLoader, ["Subject: Tea\nTea is a drink."]),
        ("A.msg", lambda path: MessageLoader(str(path)), ["Tea is a drink."]),
    ],
)
def test_foreign_reader_gives_documents(folder: Path, pattern: str, reader, expected) -> None:
    register_reader(pattern, reader)
    read_texts = read(folder)
    assert read_texts.pop("docs/b.txt") == "Plain."
    assert list(read_texts.values()) == list(expected)
    ids = ["docs/a.msg"] if len(expected) == 1 else ["docs/a.msg#1", "docs/a.msg#2"]
    assert list(read_texts) == ids


def test_loader_errors_and_metadata_name_the_file(folder: Path) -> None:
    register_reader("*.msg", lambda path: MessageLoader(str(path)))
    metadata = NodeGraph(folder, progress=False).node("docs/a.msg").metadata
    assert (metadata["subject"], metadata["file_name"]) == ("Subject: Tea", "a.msg")
    register_reader("*.msg", lambda path: MessageLoader(str(path.parent / "nowhere")))
    with pytest.raises(ReadError, match=r"can't read .*a\.msg: .*No such file"):
        NodeGraph(folder, progress=False, on_error="raise")


def test_last_registered_reader_comes_first(folder: Path) -> None:
    register_reader("*.msg", lambda path: "one")
    register_reader("a.*", lambda path: Document("two", {"n": 2}))
    graph = NodeGraph(folder, progress=False)
    assert (graph.node("docs/a.msg").text, graph.node("docs/a.msg").metadata["n"]) == ("two", 2)
    register_reader("*.msg", lambda path: "three")
    assert read(folder)["docs/a.msg"] == "three"


@pytest.mark.parametrize(
    ("reader", "message"),
    [
        (MessageLoader("x.msg"), "a loader class of LangChain"),
        (3, "must be a function from a path to a text, documents or a loader"),
    ],
)
def test_unsupported_reader_raises(reader, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        register_reader("*.msg", reader)


def texts_of(folder: Path, **options) -> dict[str, str]:
    graph = NodeGraph(
        folder, progress=False, on_error="skip", reading=ReadOptions(num_workers=1, **options)
    )
    kinds = {Path(f.document).stem: f.error.kind for f in graph.failures}
    return {Path(node.id).stem: node.text for node in graph.nodes("ROOT")} | kinds


def test_isolated_reader_gives_equal_documents(folder: Path) -> None:
    for isolated in (True, False):
        register_reader("*.msg", outside_readers.DatedLoader, isolated=isolated)
        node = NodeGraph(folder, progress=False).node("docs/a.msg")
        assert (int(node.text) == os.getpid()) is not isolated
        assert (node.metadata["sent"], node.metadata["to"]) == (date(2024, 5, 1), ("a", "b"))
        assert node.search_text == SearchText("headings")  # of no other metadata


def test_reader_keeps_ids_of_documents(folder: Path) -> None:
    register_reader("*.msg", outside_readers.read_rows)
    assert "docs/a.msg#Tea" in read(folder)


def test_reader_that_cannot_be_pickled_warns_once(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def reader(path: Path) -> str:
        return str(os.getpid())

    register_reader("*.msg", reader)
    for _ in range(2):
        assert texts_of(folder)["a"] == str(os.getpid())
    (record,) = [r for r in caplog.records if "runs in this process" in r.message]
    assert re.search("Can't pickle|can't pickle|Can't get local", record.message)
    register_reader("*.msg", reader, isolated=False)
    caplog.clear()
    assert texts_of(folder)["a"] == str(os.getpid())
    assert not caplog.records
    register_reader("*.msg", reader, isolated=True)
    with pytest.raises(TypeError, match="cannot run in another process"):
        NodeGraph(folder, progress=False, on_error="raise")


@pytest.mark.parametrize(
    ("reader", "reason"),
    [
        (
            outside_readers.OnlyHere(),
            "could not be loaded in a process: ImportError: no module named elsewhere",
        ),
        (outside_readers.read_unwritable, "can't be kept in a file"),
    ],
    ids=["not importable", "not JSON"],
)
def test_isolated_reader_failure_names_the_remedy(folder: Path, reader, reason: str) -> None:
    register_reader("*.msg", reader)
    with pytest.raises(ReadError, match=f"{reason}.*isolated=False"):
        NodeGraph(folder, progress=False, on_error="raise")
    register_reader("*.msg", reader, isolated=False)
    assert texts_of(folder)["a"] == str(os.getpid())
