"""PDF: pages without a text, fonts without a meaning, passwords, OCR."""

import io
from pathlib import Path

import pytest

from nodekin.nodegraph import NodeGraph, ReadError, ReadOptions


def pdf_of(*pages: bytes, extra: bytes = b"", font: bytes = b"") -> bytes:
    """Write a PDF by hand: each page is its content stream."""
    objects = [b"<</Type/Catalog/Pages 2 0 R>>"]
    kids = b" ".join(b"%d 0 R" % (4 + 2 * n) for n in range(len(pages)))
    objects.append(b"<</Type/Pages/Count %d/Kids[%s]>>" % (len(pages), kids))
    objects.append(font or b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>")
    for number, content in enumerate(pages):
        objects.append(
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 300]/Contents %d 0 R/Resources<</Font"
            b"<</F 3 0 R>>/XObject<</I %d 0 R>>>>>>" % (5 + 2 * number, 4 + 2 * len(pages))
        )
        objects.append(b"<</Length %d>>stream\n%s\nendstream" % (len(content), content))
    objects.append(
        b"<</Type/XObject/Subtype/Image/Width 1/Height 1/ColorSpace/DeviceGray/BitsPerComponent 8"
        b"/Length 1>>stream\n0\nendstream"
    )
    out = io.BytesIO(b"%PDF-1.4\n")
    out.seek(0, 2)
    places = []
    for number, body in enumerate(objects, 1):
        places.append(out.tell())
        out.write(b"%d 0 obj%s endobj\n" % (number, body))
    table = out.tell()
    out.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1))
    out.write(b"".join(b"%010d 00000 n \n" % place for place in places))
    out.write(b"trailer<</Size %d/Root 1 0 R%s>>" % (len(objects) + 1, extra))
    out.write(b"\nstartxref\n%d\n%%%%EOF" % table)
    return out.getvalue()


TEXT = b"BT /F 12 Tf 20 250 Td (Tea is a drink.) Tj ET"
IMAGE = b"q 200 0 0 200 20 20 cm /I Do Q"


def test_pages_without_a_text_are_told(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(pdf_of(TEXT, IMAGE, b"", IMAGE))
    graph = NodeGraph(tmp_path / "a.pdf", progress=False)
    (node,) = graph.nodes("ROOT")
    assert node.text.strip("\n\f") == "Tea is a drink."
    assert node.metadata["unread_pages"] == [2, 4]  # the third is blank
    (note,) = graph.read_report.notes.values()
    assert "a.pdf was read without pages 2, 4 of 4" in note
    assert "ReadOptions(ocr=...)" in note
    assert str(graph.read_report) == "1 read; 1 read in part"


def test_a_scan_is_no_empty_document(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(pdf_of(IMAGE, IMAGE))
    with pytest.raises(ReadError, match=r"has no text on its 2 pages.*ReadOptions\(ocr="):
        NodeGraph(tmp_path / "a.pdf", progress=False)
    (tmp_path / "b.txt").write_text("Tea.")
    graph = NodeGraph(tmp_path, progress=False)
    assert str(graph.read_report) == "1 read, 1 skipped: 1 scanned PDF"


def test_ocr_reads_the_images_of_pages_without_a_text(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(pdf_of(TEXT, IMAGE))
    seen = []

    def ocr(image) -> str:
        seen.append(image.size)
        return "Scanned line one.\nAnd two."

    graph = NodeGraph(tmp_path / "a.pdf", progress=False, reading=ReadOptions(ocr=ocr))
    (node,) = graph.nodes("ROOT")
    assert node.text == "Tea is a drink.\n\n\f\n\nScanned line one.\n\nAnd two."
    assert "unread_pages" not in node.metadata
    assert seen == [(834, 834)]


def test_an_ocr_that_fails_loses_its_file_only(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(pdf_of(IMAGE))
    (tmp_path / "b.pdf").write_bytes(pdf_of(TEXT))
    options = ReadOptions(ocr=lambda image: 1 / 0, workers=1)
    graph = NodeGraph(tmp_path, progress=False, on_error="skip", reading=options)
    assert len(graph.nodes("ROOT")) == 1
    (failure,) = graph.failures
    assert "ZeroDivisionError" in str(failure.error)


MEANINGLESS = (
    b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding<</Type/Encoding/Differences"
    b"[65/g1/g2/g3/g4/g5/g6/g7/g8]>>>>"
)


def test_a_text_that_means_nothing_is_told_and_not_indexed(tmp_path: Path) -> None:
    page = b"BT /F 12 Tf 20 250 Td (ABCDEFGHABCDEFGH) Tj ET"
    (tmp_path / "a.pdf").write_bytes(pdf_of(page, font=MEANINGLESS))
    with pytest.raises(ReadError, match="without a meaning"):
        NodeGraph(tmp_path / "a.pdf", progress=False)


def test_an_encrypted_pdf(tmp_path: Path) -> None:
    encrypted = b"/Encrypt<</Filter/Standard/V 1/R 2/P -4/O<%s>/U<%s>>>/ID[<00><00>]" % (
        b"ab" * 32,
        b"cd" * 32,
    )
    (tmp_path / "a.pdf").write_bytes(pdf_of(TEXT, extra=encrypted))
    with pytest.raises(ReadError, match=r"a\.pdf is encrypted"):
        NodeGraph(tmp_path / "a.pdf", progress=False)
