import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nodekin import as_retriever
from nodekin.nodegraph import (
    Document,
    NodeGraph,
    ReadError,
    UnsupportedFilesError,
    register_reader,
)
from nodekin.nodegraph.readers import formats
from nodekin.nodegraph.readers.formats import supported_suffixes

pytestmark = pytest.mark.usefixtures("every_store")

BOM = b"\xef\xbb\xbf"


@pytest.fixture(autouse=True)
def _registry() -> Iterator[None]:
    kept = dict(formats._READERS)
    yield
    formats._READERS.clear()
    formats._READERS.update(kept)


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    folder.mkdir()
    return folder


def write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def texts(graph: NodeGraph) -> dict[str, str]:
    return {node.id: node.text for node in graph.nodes("ROOT")}


def test_folder_gives_documents_with_relative_ids(docs: Path) -> None:
    write(docs / "tea.txt", "Tea.")
    write(docs / "guide" / "Intro.MD", "# Intro")
    write(docs / ".hidden.txt", "no")
    write(docs / ".git" / "tea.txt", "no")
    write(docs / "guide" / "b.jsonl", '{"text": "x"}')
    expected = {
        "docs/guide/Intro.MD": "# Intro",
        "docs/guide/b.jsonl#1": "x",
        "docs/tea.txt": "Tea.",
    }
    assert texts(NodeGraph(docs)) == expected
    assert texts(NodeGraph(str(docs))) == expected
    assert list(texts(NodeGraph([docs / "tea.txt", docs / "guide"]))) == [
        "docs/tea.txt",
        "guide/Intro.MD",
        "guide/b.jsonl#1",
    ]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (BOM + "茶".encode(), "茶"),
        (b"a\r\nb\rc\n", "a\nb\nc\n"),
        ("a\u2028b\x0cc".encode(), "a\u2028b\x0cc"),
    ],
)
@pytest.mark.parametrize("name", ["a.txt", "a.md"])
def test_text_files_are_read_without_bom(docs: Path, name: str, content: bytes, text: str) -> None:
    graph = NodeGraph(write(docs / name, content))
    assert texts(graph) == {f"docs/{name}": text}


def test_binary_text_file_raises_with_offset(docs: Path) -> None:
    path = write(docs / "a.txt", BOM + b"tea \xff")
    with pytest.raises(ReadError) as error:
        NodeGraph(docs, on_error="raise")
    assert f"{path} is not UTF-8: byte 0xff at offset 7;" in str(error.value)
    assert 'register_reader(".txt", reader)' in str(error.value)


def test_json_lines_give_one_document_each(docs: Path) -> None:
    lines = [
        '{"text": "one", "topic": "tea", "size": {"cm": 4.5}, "vector": %s}' % ([0.5] * 51),
        "",
        '{"content": "two", "id": "second", "metadata": {"page": 2}}',
        "  ",
        '{"page_content": "a\u2028b", "id": 9, "metadata": null}',
        '{"text": "both", "content": "kept", "id": ""}',
        '{"text": "x", "metadata": ["tea", "hot"]}',
    ]
    graph = NodeGraph(write(docs / "a.jsonl", BOM + "\r\n".join(lines).encode()))
    assert texts(graph) == {
        "docs/a.jsonl#1": "one\n\ntopic: tea\nsize.cm: 4.5",
        "docs/a.jsonl#second": "two",
        "docs/a.jsonl#9": "a\u2028b",
        "docs/a.jsonl#6": "both\n\ncontent: kept",
        "docs/a.jsonl#7": "x\n\nmetadata: tea, hot",
    }
    own = [set(node.metadata) - {"file_name"} for node in graph.nodes("ROOT")]
    facts = own[2]
    fields = [["size.cm", "topic", "vector"], ["page"], [], ["content"], ["metadata"]]
    assert [sorted(each - facts) for each in own] == fields
    assert graph.nodes("ROOT")[4].metadata["metadata"] == ["tea", "hot"]
    assert graph.node("docs/a.jsonl#second").metadata["page"] == 2
    assert [r.node.document_id for r in as_retriever(graph)("4.5")] == ["docs/a.jsonl#1"]
    assert graph.node("docs/a.jsonl#second").metadata["file_name"] == "a.jsonl"


@pytest.mark.parametrize(
    ("lines", "found", "note"),
    [
        (['{"text": "a"}', "", '{"text": '], {"1": "a"}, "not JSON, left out: 1 (first: line 3)"),
        (['{"a": 1} x', "9" * 5000, "[1]"], {"3": "[1]"}, "not JSON, left out: 2 (first: line 1)"),
        (
            ['{"text": "a", "id": "x"}', '{"text": "b", "id": "x"}'],
            {"x": "a", "x (line 2)": "b"},
            "ids of earlier lines, numbered: 1 (first: line 2)",
        ),
    ],
)
def test_bad_json_lines_are_noted(
    docs: Path, lines: list[str], found: dict[str, str], note: str
) -> None:
    write(docs / "a.jsonl", "\n".join(lines))
    graph = NodeGraph(docs, on_error="raise")
    assert texts(graph) == {f"docs/a.jsonl#{key}": text for key, text in found.items()}
    assert note in next(iter(graph.read_report.notes.values()))


def test_file_without_json_lines_raises(docs: Path) -> None:
    path = write(docs / "a.jsonl", "tea\nwater")
    with pytest.raises(ReadError, match=r"a\.jsonl, line 1 is not JSON"):
        NodeGraph(path)


def test_json_lines_with_any_fields_are_searchable(docs: Path) -> None:
    long = "The leaves are heated. " * 20
    lines = [
        {"title": "Tea", "body": long, "year": 1999},
        {"id": "SKU-77", "question": "谁付运费？", "answer": "茶园"},
        ["a", "茶"],
        "Only a text.",
        {"messages": [{"role": "user", "content": "How is oolong roasted?"}]},
        {"n": 1, "size": {"cm": 4.5}, "colors": ["red", "green"], "none": None},
    ]
    write(docs / "a.ndjson", "\n".join(json.dumps(line) for line in lines))
    graph = NodeGraph(docs)
    assert texts(graph) == {
        "docs/a.ndjson#1": f"title: Tea\nbody: {long}\nyear: 1999",
        "docs/a.ndjson#3": '["a", "茶"]',
        "docs/a.ndjson#4": "Only a text.",
        "docs/a.ndjson#5": "messages.role: user\nmessages.content: How is oolong roasted?",
        "docs/a.ndjson#6": "n: 1\nsize.cm: 4.5\ncolors: red, green",
        "docs/a.ndjson#SKU-77": "id: SKU-77\nquestion: 谁付运费？\nanswer: 茶园",
    }
    metadata = graph.node("docs/a.ndjson#1").metadata
    assert (metadata["title"], metadata["year"]) == ("Tea", 1999)
    assert "body" not in metadata
    assert graph.node("docs/a.ndjson#SKU-77").metadata["answer"] == "茶园"
    assert [r.node.document_id for r in as_retriever(graph)("SKU-77")] == ["docs/a.ndjson#SKU-77"]
    fields = graph.node("docs/a.ndjson#6").metadata
    assert (fields["size.cm"], fields["colors"]) == (4.5, ["red", "green"])
    assert [r.node.document_id for r in as_retriever(graph)("4.5", filters={"size.cm": 4.5})] == [
        "docs/a.ndjson#6"
    ]


def test_file_facts_are_metadata(docs: Path) -> None:
    path = write(docs / "tea.md", "茶")
    os.utime(path, (86_400 * 365, 86_400 * 366))
    (node,) = NodeGraph(docs).nodes("ROOT")
    creation = node.metadata.pop("creation_date")
    assert len(creation) == len("2024-01-01")
    assert node.metadata == {
        "file_name": "tea.md",
        "file_path": str(path),
        "file_type": "text/markdown",
        "file_size": 3,
        "creation_date": creation,
        "last_modified_date": "1971-01-02",
        "last_accessed_date": node.metadata["last_accessed_date"],
    }


@pytest.mark.parametrize(
    ("name", "suffix", "pattern"), [("a.xyz", "'.xyz'", ".xyz"), ("core", "''", "core*")]
)
def test_unknown_suffix_raises_or_is_reported(
    docs: Path, name: str, suffix: str, pattern: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = write(docs / name, "x\0")
    with pytest.raises(ReadError, match=f"no reader for {suffix} files") as raised:
        NodeGraph(path)
    assert f'register_reader("{pattern}", reader)' in str(raised.value)
    assert texts(NodeGraph(docs)) == {}
    (record,) = caplog.records
    message = record.getMessage()
    assert f"1 file was skipped: 1 without a reader (1 {path.suffix or 'no suffix'}): " in message
    assert "register_reader" in record.getMessage()


def test_registered_reader_reads_its_suffixes(docs: Path) -> None:
    def read_rows(path: Path):
        return (
            Document(row, {"row": n, "file_type": "row"}, id=str(n))
            for n, row in enumerate(path.read_text().split(","))
        )

    register_reader(".UP", lambda path: path.read_text().upper())
    register_reader(".rows", read_rows)
    write(docs / "a.up", "tea")
    write(docs / "b.rows", "x,y")
    graph = NodeGraph(docs)
    assert texts(graph) == {"docs/a.up": "TEA", "docs/b.rows#0": "x", "docs/b.rows#1": "y"}
    assert graph.node("docs/b.rows#1").metadata["row"] == 1
    assert graph.node("docs/b.rows#1").metadata["file_type"] == "row"
    assert {".up", ".rows"} <= set(supported_suffixes())
    with pytest.raises(ValueError, match=r"must begin with a dot, like '\.txt', got 'txt'"):
        register_reader("txt", read_rows)


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda path: 1 / 0, "ZeroDivisionError: division by zero"),
        (lambda path: [3], "TypeError"),
        (lambda path: (path / "x").read_text(), "Not a directory"),
    ],
)
def test_failing_reader_names_the_file(docs: Path, read, message: str) -> None:
    register_reader(".bad", read)
    path = write(docs / "a.bad", "x")
    with pytest.raises(ReadError) as error:
        NodeGraph(docs, on_error="raise")
    assert str(error.value).startswith(f"can't read {path}: {message}")
    assert error.value.__cause__ is not None
    graph = NodeGraph(docs, on_error="skip")
    assert [failure.document for failure in graph.failures] == ["docs/a.bad"]


def test_second_file_with_one_id_raises(docs: Path, tmp_path: Path) -> None:
    write(docs / "a.txt", "one")
    other = write(tmp_path / "other" / "docs" / "a.txt", "two")
    graph = NodeGraph(docs)
    with pytest.raises(ValueError, match=r"have the same document id 'docs/a\.txt'") as error:
        graph.add(other)
    assert str(other) in str(error.value)
    assert texts(graph) == {"docs/a.txt": "one"}
    assert graph.add(docs) == ["docs/a.txt"]  # an equal file is no conflict


def test_unreadable_files_are_skipped_with_a_warning(
    docs: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def warnings() -> list[str]:
        messages = [r.getMessage() for r in caplog.records if "skipped" in r.getMessage()]
        caplog.clear()
        return messages

    write(docs / "a.txt", "a")
    bad = write(docs / "b.txt", b"\xff")
    graph = NodeGraph(docs)
    assert texts(graph) == {"docs/a.txt": "a"}
    assert [failure.document for failure in graph.failures] == ["docs/b.txt"]
    (message,) = warnings()
    assert message.startswith(
        "1 file was skipped: 1 not text (b.txt); graph.failures has the reasons, and "
        f'NodeGraph(..., on_error="raise") makes this an error\n- {bad} is not UTF-8'
    )
    graph.refresh()
    assert warnings() == []  # reported before
    for number in range(22):
        write(docs / f"c{number:02}.jsonl", "{")
    graph.refresh()
    (message,) = warnings()
    assert message.startswith("22 files were skipped: 22 damaged (c00.jsonl, c01.jsonl, ")
    assert message.count("\n- ") == 21
    assert message.endswith("\n- and 2 more")


def test_named_unreadable_file_raises(docs: Path) -> None:
    bad = write(docs / "b.txt", b"\xff")
    for on_error in (None, "raise"):
        with pytest.raises(ReadError, match="not UTF-8"):
            NodeGraph(bad, on_error=on_error)
        with pytest.raises(ReadError, match="not UTF-8"):
            NodeGraph(on_error=on_error).add(bad)
    assert NodeGraph(on_error="skip").add(bad) == []


@pytest.mark.parametrize("framework", ["langchain", "llama_index"])
def test_readers_of_frameworks_skip_unreadable_files(
    docs: Path, framework: str, caplog: pytest.LogCaptureFixture
) -> None:
    from nodekin.adapters import langchain, llama_index

    def load(**settings: Any) -> list[Any]:
        if framework == "langchain":
            return langchain.FileLoader(docs, **settings).load()
        return llama_index.FileReader(**settings).load_data(docs)

    write(docs / "a.txt", "a")
    write(docs / "b.txt", b"\xff")
    assert len(load()) == 1
    assert "1 file was skipped" in caplog.text
    with pytest.raises(ReadError, match="not UTF-8"):
        load(on_error="raise")


def test_refresh_adds_updates_and_removes_documents(docs: Path) -> None:
    for name in ("same", "touched", "changed", "gone"):
        write(docs / f"{name}.txt", name)
    rows = [{"text": "x", "id": "x"}, {"text": "y", "id": "y"}, {"text": "z", "id": "z"}]
    write(docs / "rows.jsonl", "\n".join(map(json.dumps, rows)))
    graph = NodeGraph(docs)
    graph.add(Document("by hand", id="hand"))
    revision = graph.reader.revision("ROOT")
    assert graph.refresh().unchanged == 7
    assert graph.reader.revision("ROOT") == revision

    os.utime(docs / "touched.txt", (0, 0))
    write(docs / "changed.txt", "new")
    write(docs / "sub" / "added.txt", "added")
    (docs / "gone.txt").unlink()
    rows = [rows[2], {"text": "other", "id": "y"}]
    write(docs / "rows.jsonl", "\n".join(map(json.dumps, rows)))
    report = graph.refresh()
    assert report.added == ["docs/sub/added.txt"]
    assert "docs/changed.txt" in report.updated
    assert "docs/rows.jsonl#y" in report.updated
    assert sorted(report.removed) == ["docs/gone.txt", "docs/rows.jsonl#x"]
    assert texts(graph) == {
        "docs/same.txt": "same",
        "docs/touched.txt": "touched",
        "docs/changed.txt": "new",
        "docs/rows.jsonl#z": "z",
        "docs/rows.jsonl#y": "other",
        "docs/sub/added.txt": "added",
        "hand": "by hand",
    }
    again = graph.refresh()
    assert (again.added, again.updated, again.removed, again.unchanged) == ([], [], [], 6)


def test_missing_folder_raises_or_keeps_its_documents(docs: Path) -> None:
    path = write(docs / "a.txt", "a")
    graph = NodeGraph(docs)
    path.unlink()
    docs.rmdir()
    with pytest.raises(ReadError, match=r"docs is missing; restore it, or remove its documents"):
        graph.refresh()  # a disk that is not there today must not empty the graph
    assert texts(graph) == {"docs/a.txt": "a"}
    graph.on_error = "skip"
    assert graph.refresh().removed == []
    assert [failure.document for failure in graph.failures] == [str(docs)]


def test_source_path_is_absolute_after_add(
    docs: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = write(docs / "a.txt", "a")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for source in ("docs", "~/docs", Path("docs/../docs/a.txt")):
        graph = NodeGraph(source)
        monkeypatch.chdir("/")
        assert graph.refresh().removed == []
        write(path, "new")
        assert graph.refresh().updated == ["docs/a.txt"]
        assert texts(graph) == {"docs/a.txt": "new"}
        write(path, "a")
        monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("on_error", ["raise", "skip"])
def test_files_without_a_reader_are_one_failure(docs: Path, on_error: Any) -> None:
    files = [write(docs / name, b"\0") for name in ("a.pdf7", "b.pdf7", "c.pdf7", "d.docx7")]
    graph = NodeGraph(docs, on_error=on_error)
    (failure,) = graph.failures
    assert (failure.document, failure.group) == ("docs", "ROOT")
    assert isinstance(failure.error, UnsupportedFilesError)
    assert str(failure.error).startswith(f"4 of the files in {docs} have no reader (.pdf7 3, ")
    for file in files:
        file.unlink()
    graph.refresh()
    assert graph.failures == []


def test_skipped_files_are_stored_until_readable(tmp_path: Path) -> None:
    folder, store = tmp_path / "docs", tmp_path / "graph.nodekin"
    folder.mkdir()
    write(folder / "tea.md", "Tea.")
    (folder / "a.bin7").write_bytes(b"\0")
    (folder / "late.txt").write_bytes(b"\0\1\2\3" * 99)
    (folder / "bad.jsonl").write_text("{")
    with NodeGraph(folder, store=store, progress=False, on_error="skip") as graph:
        before = [(f.document, f.group, str(f.error)) for f in graph.failures]
        assert [name for name, _, _ in before] == ["docs", "docs/bad.jsonl", "docs/late.txt"]
    with NodeGraph(store=store, progress=False, on_error="skip") as graph:
        assert [(f.document, f.group, str(f.error)) for f in graph.failures] == before
        kinds = [f.error.kind for f in graph.failures]
        assert kinds == ["without a reader", "damaged", "not text"]
        write(folder / "late.txt", "Late tea.")
        (folder / "a.bin7").unlink()
        graph.refresh()
        assert [failure.document for failure in graph.failures] == ["docs/bad.jsonl"]
        assert texts(graph)["docs/late.txt"] == "Late tea."
        graph.remove(folder)
        assert graph.failures == []
