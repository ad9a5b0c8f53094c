"""All formats from the outside: a folder of them, files of other people's, LibreOffice's files."""

import io
import json
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from support.office_files import FIXTURES, KNOWN, Block, fidelity, text_of

from nodekin.nodegraph import NodeGraph, ReadError, ReadOptions
from nodekin.nodegraph.readers.text import markdown_table
from nodekin.nodegraph.workers import process_workers

SAMPLES = Path(__file__).parents[3] / "examples" / "files"


def text_in(path: Path) -> str:
    (node,) = NodeGraph(path, progress=False).nodes("ROOT")
    return node.text


def headings(text: str) -> list[str]:
    return [line for line in text.split("\n") if line.startswith("#")]


WRITTEN = [*sorted(FIXTURES.iterdir()), *sorted(SAMPLES.iterdir())]


def with_notes_elsewhere(blocks: Sequence[Block]) -> list[list[Block]]:
    """Return blocks with footnotes in their place, at the end of their page, and at the end."""
    notes: list[Block] = [("p", block[2]) for block in blocks if block[0] == "note"]
    plain = [("p", block[1]) if block[0] == "note" else block for block in blocks]
    page = plain.index(("page",)) if ("page",) in plain else len(plain)
    return [list(blocks), [*plain[:page], *notes, *plain[page:]], [*plain, *notes]]


@pytest.mark.parametrize("path", WRITTEN, ids=[path.name for path in WRITTEN])
def test_stored_libreoffice_files_match_their_sources(path: Path) -> None:
    blocks, read = KNOWN[path.stem], text_in(path)
    assert max(fidelity(text_of(b), read) for b in with_notes_elsewhere(blocks)) >= 0.98
    if path.suffix != ".epub":  # of which LibreOffice writes headings as paragraphs
        squeezed = ["".join(line.split()) for line in headings(read)]
        expected = [f"{'#' * block[1]}{block[2]}" for block in blocks if block[0] == "h"]
        assert squeezed == ["".join(line.split()) for line in expected]
    for rows in (block[1] for block in blocks if block[0] == "table"):
        assert markdown_table(rows) in read


def test_content_decides_format_if_suffix_is_wrong(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "plain.pdf").write_text("Only text.")
    (docs / "pdf.txt").write_bytes((SAMPLES / "handbook.pdf").read_bytes())
    (docs / "word").write_bytes((SAMPLES / "手册.docx").read_bytes())
    graph = NodeGraph(docs, progress=False)
    assert graph.node("docs/plain.pdf").text == "Only text."
    assert graph.node("docs/pdf.txt").text.startswith("# 1 The tea handbook")
    assert graph.node("docs/word").text.startswith("# 第一章 茶室手册")


def zipped(**parts: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name.replace("__", "/"), content)
    return buffer.getvalue()


def encrypted(content: bytes) -> bytes:
    """Return a zip file with the flag of an encrypted part."""
    central = content.index(b"PK\x01\x02")
    return content[: central + 8] + b"\1" + content[central + 9 :]


OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504)


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("a.docx", zipped(**{"word/document.xml": b"0" * 2_000_000}), "too large unpacked"),
        ("a.docx", OLE + "EncryptedPackage".encode("utf-16-le"), "encrypted Office file"),
        ("a.xls", OLE + "EncryptedPackage".encode("utf-16-le"), "encrypted Office file"),
        ("a.docx", encrypted(zipped(**{"word/document.xml": b"x"})), "encrypted Office file"),
        (
            "a.odt",
            zipped(**{"content.xml": b"x", "META-INF/manifest.xml": b"<manifest:encryption-data>"}),
            "encrypted Office file",
        ),
        ("a.txt", b"\0\1\2\3" * 99, "not text"),
        ("a.pdf", b"", "empty"),
        ("a.docx", zipped(readme=b"x"), "damaged"),
        ("a.xls", OLE, "damaged"),
        ("a.md", b"x" * 2_000_001, "too large"),
    ],
)
def test_unreadable_files_in_folder_are_skipped_and_reported(
    tmp_path: Path, name: str, content: bytes, kind: str
) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / name).write_bytes(content)
    (docs / "b.txt").write_text("Tea.")
    limits = ReadOptions(max_bytes=2_000_000, max_unpacked_bytes=1_000_000)
    graph = NodeGraph(docs, progress=False, reading=limits)
    assert [node.id for node in graph.nodes("ROOT")] == ["docs/b.txt"]
    (failure,) = graph.failures
    assert isinstance(failure.error, ReadError)
    assert failure.error.kind == kind
    assert kind != "damaged" or "is damaged or not a file of its type" in str(failure.error)
    assert str(graph.read_report) == f"1 read, 1 skipped: 1 {kind}"
    strict = ReadOptions(max_bytes=2_000_000, max_unpacked_bytes=1_000_000, strict=True)
    with pytest.raises(ReadError, match=name):
        NodeGraph(docs, progress=False, reading=strict)
    with pytest.raises(ReadError, match=name):
        NodeGraph(docs / name, progress=False, reading=limits)


@pytest.mark.parametrize("name", ["handbook.pdf", "手册.docx"])
def test_truncated_file_raises_error_with_file_name(tmp_path: Path, name: str) -> None:
    whole = (SAMPLES / name).read_bytes()
    (tmp_path / name).write_bytes(whole[: len(whole) // 2])
    (tmp_path / "b.txt").write_text("Tea.")
    with pytest.raises(ReadError, match=name):
        NodeGraph(tmp_path, progress=False, on_error="raise")
    graph = NodeGraph(tmp_path, progress=False)
    assert len(graph.nodes("ROOT")) == 1
    assert str(graph.read_report) == "1 read, 1 skipped: 1 damaged"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.md", "A PDF begins with %PDF-1.7."),
        ("a.txt", "%PDF-1.7 is the first line."),
        ("a.php", "<html><?php echo 1; ?></html>"),
        ("a.rst", "<!DOCTYPE html>"),
    ],
)
def test_name_of_text_file_decides_over_ambiguous_bytes(
    tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text)
    (node,) = NodeGraph(tmp_path, progress=False).nodes("ROOT")
    assert node.text == text


def test_cells_are_pages_with_code_and_short_outputs(tmp_path: Path) -> None:
    traceback = ["\x1b[0;31mKeyError\x1b[0m", "\x1b]8;;x\x07tea\x1b]8;;\x07"]
    outputs = [
        {"text": ["1\n"]},
        {"data": {"text/plain": "2"}},
        {"ename": "KeyError", "traceback": traceback},
        {"text": "long " * 1000},
    ]
    cells = [
        {"cell_type": "markdown", "source": ["# Tea\n", "About it."]},
        {"cell_type": "code", "source": "print(1)", "outputs": outputs},
    ]
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": cells, "metadata": {}}))
    graph = NodeGraph(tmp_path, progress=False)
    (node,) = graph.nodes("ROOT")
    page = "# Tea\nAbout it.\n\n\f\n\n```python\nprint(1)\n```\n\n```\n1\n2\nKeyError\ntea\nlong "
    assert node.text.startswith(page)
    assert node.text.endswith(" ...\n```")
    (note,) = graph.read_report.notes.values()
    assert "outputs cut after 2,000 characters: 1 (first: cell 2)" in note


@pytest.mark.parametrize("content", ["{}", "[]", '{"worksheets": []}'])
def test_notebook_without_cells_raises(tmp_path: Path, content: str) -> None:
    (tmp_path / "a.ipynb").write_text(content)
    with pytest.raises(
        ReadError, match=r"a\.ipynb: it is not a notebook, because it has no cells$"
    ):
        NodeGraph(tmp_path / "a.ipynb", progress=False)


OLD_FILES = Path(__file__).parents[2] / "support" / "office97"


def test_old_word_file_and_slides_are_read(tmp_path: Path) -> None:
    pytest.importorskip("office_oxide", reason="no office-oxide: pip install office-oxide")
    for name in ("handbook.doc", "slides.ppt"):
        (tmp_path / name).write_bytes((OLD_FILES / name).read_bytes())
    (tmp_path / "broken.doc").write_bytes((OLD_FILES / "handbook.doc").read_bytes()[:1500])
    graph = NodeGraph(tmp_path, progress=False)
    word, slides = graph.nodes("ROOT")
    assert word.text == "# The tea handbook\n\nGreen tea is bought in May."
    assert slides.text == "# Buying\n\nGreen tea\n\nBlack tea\n\n\f\n\n# Serving\n\nPour it"
    assert slides.metadata["page_unit"] == "slide"
    notes = [*graph.read_report.notes.values()]
    assert ["deleted passages not read" in note for note in notes] == [True, True]
    (failure,) = graph.failures
    assert "damaged" in str(failure.error)


def test_old_word_file_without_its_reader_names_the_extra(tmp_path, monkeypatch) -> None:
    program = "import sys; sys.modules['office_oxide'] = None; " + process_workers._PROGRAM
    monkeypatch.setattr(process_workers, "_PROGRAM", program)
    (tmp_path / "a.doc").write_bytes((OLD_FILES / "handbook.doc").read_bytes())
    with pytest.raises(ReadError, match=r"pip install \"nodekin\[legacy\]\""):
        NodeGraph(tmp_path / "a.doc", progress=False)


def test_missing_extra_is_reported_with_file_count(tmp_path, monkeypatch) -> None:
    program = "import sys; sys.modules['anydoc'] = None; " + process_workers._PROGRAM
    monkeypatch.setattr(process_workers, "_PROGRAM", program)
    docs = tmp_path / "docs"
    docs.mkdir()
    for name in ("a.docx", "b.docx"):
        (docs / name).write_bytes((SAMPLES / "手册.docx").read_bytes())
    (docs / "c.txt").write_text("Tea.")
    graph = NodeGraph(docs, progress=False)
    assert [node.id for node in graph.nodes("ROOT")] == ["docs/c.txt"]
    assert str(graph.read_report) == (
        '1 read, 2 skipped: 2 in need of pip install "nodekin[files]"'
    )
    assert "anydoc is not installed" in str(graph.failures[0].error)
    with pytest.raises(ReadError, match=r"pip install \"nodekin\[files\]\""):
        NodeGraph(docs, progress=False, reading=ReadOptions(strict=True))
