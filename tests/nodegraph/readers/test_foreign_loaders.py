"""Readers of others for a pattern: LangChain, LlamaIndex, Docling, unstructured."""

import os
import re
from datetime import date
from pathlib import Path
from types import SimpleNamespace

import outside_readers
import pytest
from langchain_community.document_loaders import TextLoader
from langchain_core.document_loaders import BaseLoader
from langchain_core.documents import Document as LangChainDocument
from llama_index.core import SimpleDirectoryReader
from llama_index.core.readers.base import BaseReader
from llama_index.core.schema import Document as LlamaIndexDocument

from nodekin.nodegraph import (
    Document,
    NodeGraph,
    ReadError,
    ReadOptions,
    SearchText,
    register_reader,
)
from nodekin.nodegraph.readers import formats
from nodekin.nodegraph.readers.formats import as_reader


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
    """A loader as LangChain's users write them."""

    def __init__(self, file_path: str) -> None:
        self.file_path = file_path

    def lazy_load(self):
        subject, text = Path(self.file_path).read_text().split("\n", 1)
        yield LangChainDocument(text, metadata={"source": self.file_path, "subject": subject})


class TwoPages(BaseReader):
    """A reader as LlamaIndex's users write them."""

    def load_data(self, file: Path, extra_info: dict | None = None):
        return [
            LlamaIndexDocument(text=line, metadata={"line": number, "file_name": file.name})
            for number, line in enumerate(file.read_text().split("\n"))
        ]


def read(folder: Path) -> dict[str, str]:
    graph = NodeGraph(folder, progress=False)
    assert graph.failures == []
    return {node.id: node.text for node in graph.nodes("ROOT")}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pattern", "loader"),
    [
        *((pattern, MessageLoader) for pattern in ("*.msg", ".msg", "a.*", "A.MSG")),
        ("*.msg", lambda path: MessageLoader(str(path))),
    ],
)
def test_a_loader_of_langchain(folder: Path, pattern: str, loader) -> None:
    register_reader(pattern, loader)
    graph = NodeGraph(folder, progress=False)
    node = graph.node("docs/a.msg")
    assert (node.text, node.metadata["subject"]) == ("Tea is a drink.", "Subject: Tea")
    assert node.metadata["file_name"] == "a.msg"
    assert graph.node("docs/b.txt").text == "Plain."


def test_langchains_own_loader_replaces_ours(folder: Path) -> None:
    register_reader("*.txt", TextLoader)
    register_reader("*.msg", TextLoader)
    assert read(folder) == {"docs/a.msg": "Subject: Tea\nTea is a drink.", "docs/b.txt": "Plain."}


@pytest.mark.slow
@pytest.mark.parametrize("reader", [TwoPages, TwoPages()])
def test_a_reader_of_llama_index(folder: Path, reader) -> None:
    register_reader("*.msg", reader)
    assert read(folder) == {
        "docs/a.msg#1": "Subject: Tea",
        "docs/a.msg#2": "Tea is a drink.",
        "docs/b.txt": "Plain.",
    }


def test_llama_indexs_directory_reader_for_one_file(folder: Path) -> None:
    register_reader("*.msg", lambda path: SimpleDirectoryReader(input_files=[path]).load_data())
    assert read(folder)["docs/a.msg"] == "Subject: Tea\nTea is a drink."


class Converter:
    """What Docling's ``DocumentConverter`` looks like from here."""

    def convert(self, source: Path):
        document = SimpleNamespace(export_to_markdown=lambda: f"# {source.name}\n\nText.")
        return SimpleNamespace(document=document)


@pytest.mark.slow
@pytest.mark.parametrize("converter", [Converter, Converter()])
def test_docling(folder: Path, converter) -> None:
    register_reader("*.msg", converter)
    assert read(folder)["docs/a.msg"] == "# a.msg\n\nText."


def test_markitdown(folder: Path) -> None:
    converter = SimpleNamespace(convert=lambda path: SimpleNamespace(markdown="# From MarkItDown"))
    register_reader("*.msg", converter)
    assert read(folder)["docs/a.msg"] == "# From MarkItDown"


def element(category: str, text: str, page: int, html: str | None = None) -> SimpleNamespace:
    metadata = SimpleNamespace(page_number=page, text_as_html=html)
    return SimpleNamespace(category=category, text=text, metadata=metadata)


def test_unstructured(folder: Path) -> None:
    def partition(filename: str | None = None, url: str | None = None):
        assert filename is not None
        table = "<table><tr><th>Tea</th></tr><tr><td>Keemun</td></tr></table>"
        return [
            element("Title", "Tea", 1),
            element("NarrativeText", "A drink.", 1),
            element("ListItem", "Green", 2),
            element("Table", "Tea Keemun", 2, table),
        ]

    register_reader("*.msg", partition)
    assert read(folder)["docs/a.msg"] == (
        "# Tea\n\nA drink.\n\n\f\n\n- Green\n\n| Tea |\n| --- |\n| Keemun |"
    )
    graph = NodeGraph(folder, progress=False)
    assert [n.place for n in graph.nodes("table")] == ["a.msg, Tea"]
    assert [n.own_metadata.get("page") for n in graph.nodes("page")] == [1, 2, None]


def test_what_is_registered_last_goes_first(folder: Path) -> None:
    register_reader("*.msg", lambda path: "one")
    register_reader("a.*", lambda path: Document("two", {"n": 2}))
    graph = NodeGraph(folder, progress=False)
    assert (graph.node("docs/a.msg").text, graph.node("docs/a.msg").metadata["n"]) == ("two", 2)
    register_reader("*.msg", lambda path: "three")
    assert read(folder)["docs/a.msg"] == "three"


class Loads:
    """A loader of one file that has all of it at once."""

    def __init__(self, path: str = "") -> None:
        self.path = path

    def load(self):
        return [f"load {self.path}"]


class LoadsLazily(Loads):
    def lazy_load(self):
        yield f"lazy_load {self.path}"


class LoadsBoth(Loads):
    def load_data(self, path):
        return [f"load_data {path}"]


class LoadsAll(LoadsLazily, LoadsBoth):
    pass


def reading_by(parameter: str) -> object:
    """Return a reader of LlamaIndex whose parameter has a name of its own."""
    methods = {
        "file": lambda file: [f"{file}"],
        "file_path": lambda file_path: [f"{file_path}"],
        "input_file": lambda input_file: [f"{input_file}"],
        "input_files": lambda input_files: [f"{input_files}"],
        "other": lambda other: [f"{other}"],
    }
    return SimpleNamespace(load_data=methods[parameter])


@pytest.mark.parametrize(
    ("reader", "text"),
    [
        (Loads, "load a.msg"),
        (LoadsLazily, "lazy_load a.msg"),
        (LoadsBoth, "load_data a.msg"),
        (LoadsAll, "lazy_load a.msg"),
        (LoadsBoth(), "load_data a.msg"),
        *((reading_by(name), "a.msg") for name in ("file", "file_path", "input_file", "other")),
        (reading_by("input_files"), "['a.msg']"),
        (lambda filename: [filename], "a.msg"),
        (lambda path: LoadsLazily(str(path)), "lazy_load a.msg"),
        (lambda path: Loads(str(path)), "load a.msg"),
    ],
)
def test_which_method_of_a_reader_reads(reader, text: str) -> None:
    assert as_reader(reader)(Path("a.msg")).text == text


@pytest.mark.parametrize(
    ("reader", "message"),
    [
        (MessageLoader("x.msg"), "register its class instead"),
        (3, "a function from a path to a text or documents, a LangChain loader class"),
    ],
)
def test_what_is_no_reader_is_refused(reader, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        register_reader("*.msg", reader)


def test_a_loader_that_fails_names_the_file(folder: Path) -> None:
    register_reader("*.msg", lambda path: MessageLoader(str(path.parent / "nowhere")))
    with pytest.raises(ReadError, match=r"can't read .*a\.msg: .*No such file"):
        NodeGraph(folder, progress=False, on_error="raise")


def texts_of(folder: Path, **options) -> dict[str, str]:
    graph = NodeGraph(
        folder, progress=False, on_error="skip", reading=ReadOptions(workers=1, **options)
    )
    kinds = {Path(f.document).stem: f.error.kind for f in graph.failures}
    return {Path(node.id).stem: node.text for node in graph.nodes("ROOT")} | kinds


def test_what_a_reader_gives_in_another_process_is_what_it_gives_here(folder: Path) -> None:
    for isolated in (True, False):
        register_reader("*.msg", outside_readers.DatedLoader, isolated=isolated)
        node = NodeGraph(folder, progress=False).node("docs/a.msg")
        assert (int(node.text) == os.getpid()) is not isolated
        assert (node.metadata["sent"], node.metadata["to"]) == (date(2024, 5, 1), ("a", "b"))
        assert node.search_text == SearchText("headings")  # of no other metadata


def test_a_reader_that_can_not_be_pickled_runs_here_with_one_warning(
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
    with pytest.raises(TypeError, match="process of its own"):
        NodeGraph(folder, progress=False, on_error="raise")


@pytest.mark.parametrize(
    ("reader", "reason"),
    [
        (
            outside_readers.OnlyHere(),
            "can't load its reader: ImportError: no module named elsewhere",
        ),
        (outside_readers.read_unwritable, "can't be kept in a file"),
    ],
    ids=["not importable", "not JSON"],
)
def test_a_reader_that_fails_in_another_process_raises_with_the_remedy(
    folder: Path, reader, reason: str
) -> None:
    register_reader("*.msg", reader)
    with pytest.raises(ReadError, match=f"{reason}.*isolated=False"):
        NodeGraph(folder, progress=False, on_error="raise")
    register_reader("*.msg", reader, isolated=False)
    assert texts_of(folder)["a"] == str(os.getpid())
