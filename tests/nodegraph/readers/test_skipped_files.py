"""Each file that is not read is told: its number, kind and remedy."""

import logging
import zipfile
from pathlib import Path
from typing import Any

import pytest
from support.sample_files import pdf_of

from nodekin.nodegraph import Document, NodeGraph, ReadError, ReadOptions
from nodekin.nodegraph.readers.skipped_files import describe_skipped
from nodekin.nodegraph.readers.source_files import counted

OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
ENCRYPT = b"/Encrypt<</Filter/Standard/V 1/R 2/O(" + b"x" * 32 + b")/U(" + b"x" * 32 + b")/P -4>>"


def scan(path: Path) -> None:
    path.write_bytes(pdf_of(b"/I Do"))


def locked_pdf(path: Path) -> None:
    path.write_bytes(pdf_of(b"BT /F 9 Tf (Tea) Tj ET", extra=ENCRYPT + b"/ID[(a)(a)]"))


def locked_docx(path: Path) -> None:
    path.write_bytes(OLE + bytes(504) + "EncryptedPackage".encode("utf-16-le") + bytes(999))


def locked_odt(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.text")
        archive.writestr("META-INF/manifest.xml", "<manifest><encryption-data/></manifest>")


def large(path: Path) -> None:
    path.write_text("tea " * 1_000)


def damaged(path: Path) -> None:
    path.write_bytes(b"%PDF-1.7\n damaged")


SKIPPED = [
    ("scan.pdf", scan, "1 scanned PDF (scan.pdf): pass ReadOptions(ocr=...)"),
    ("a.pdf", locked_pdf, "1 encrypted PDF (a.pdf): save without a password"),
    ("a.docx", locked_docx, "1 encrypted Office file (a.docx): save without a password"),
    ("a.odt", locked_odt, "1 encrypted "),
    ("a.txt", large, "1 too large (a.txt): raise max_bytes"),
    ("a.pdf", damaged, "1 damaged (a.pdf)"),
]


@pytest.mark.parametrize(("name", "write", "said"), SKIPPED)
def test_skipped_file_is_told_or_raises(
    tmp_path: Path, name: str, write: Any, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "tea.md").write_text("Green tea.")
    write(tmp_path / name)
    options = ReadOptions(max_bytes=3_000)
    graph = NodeGraph(tmp_path, progress=False, reading=options)
    assert [node.text for node in graph.nodes("ROOT")] == ["Green tea."]
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage().startswith(f"1 file was skipped: {said}")
    graph.refresh()
    assert len(caplog.records) == 1  # told once
    with pytest.raises(ReadError):
        NodeGraph(tmp_path, progress=False, reading=options, on_error="raise")


def test_files_that_are_no_documents_raise_only_if_strict(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "tea.md").write_text("Green tea.")
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\0")
    (tmp_path / "empty.txt").write_bytes(b"")
    graph = NodeGraph(tmp_path, progress=False, on_error="raise")
    assert describe_skipped(graph.failures).startswith(
        "2 files were skipped: 1 without a reader (1 .png): add a reader with register_reader"
    )
    assert "NodeGraph(..., reading=ReadOptions(strict=True)) makes this an error" in caplog.text
    with pytest.raises(ReadError):
        NodeGraph(tmp_path, progress=False, reading=ReadOptions(strict=True))


def test_reopened_store_describes_skipped_files(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "docs").mkdir()
    for name in ("a.png", "b.png", "c.zip"):
        (tmp_path / "docs" / name).write_bytes(b"\x89PNG\r\n\0")
    with NodeGraph(tmp_path / "docs", store=tmp_path / "a.db", progress=False) as graph:
        said = describe_skipped(graph.failures)
    with NodeGraph(tmp_path / "docs", store=tmp_path / "a.db", progress=False) as graph:
        assert describe_skipped(graph.failures) == said
    assert said.startswith("3 files were skipped: 3 without a reader (2 .png, 1 .zip)")
    assert len(caplog.records) == 1


def test_names_of_many_skipped_files_are_shortened(tmp_path: Path) -> None:
    for number in range(1_200):
        (tmp_path / f"{number:04}.jsonl").write_text("{")
    graph = NodeGraph(tmp_path, progress=False)
    assert describe_skipped(graph.failures) == (
        "1,200 files were skipped: 1,200 damaged (0000.jsonl, 0001.jsonl, 0002.jsonl, ...)"
    )


def test_failed_transforms_are_no_skipped_files() -> None:
    graph = NodeGraph(progress=False, on_error="skip")
    graph.add(Document("tea", id="tea.md"))
    graph.create_node_group("number", lambda text: [str(int(text))])
    assert graph.build("number")
    assert describe_skipped(graph.failures) == ""


def test_counted_has_plural_of_nouns() -> None:
    assert counted("encrypted spreadsheet", 1_200) == "1,200 encrypted spreadsheets"
