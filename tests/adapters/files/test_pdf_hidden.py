"""Hidden text of PDF is left out and noted: invisible, without contrast, covered, tiny, cropped."""

from pathlib import Path

import pytest
from support.sample_files import pdf_of

from nodekin.nodegraph import NodeGraph

SHOWN = b"BT /F 12 Tf 20 250 Td (Tea costs 485 euros.) Tj ET "
SECRET = b"BT /F 12 Tf 20 200 Td (SECRET price) Tj ET "
DARK = b"0 0 .5 rg 10 190 200 30 re f "
ROUNDED = b"0 0 .5 rg 10 195 m 10 220 l 200 220 l 210 215 210 200 200 190 c h f "
PICTURE = b"q 200 0 0 40 10 190 cm /I Do Q "

HIDDEN = {
    "invisible": SHOWN + b"3 Tr " + SECRET,
    "white": SHOWN + b"1 g " + SECRET,
    "almost white": SHOWN + b".97 .98 1 rg " + SECRET,
    "white of four inks": SHOWN + b"0 0 0 0 k " + SECRET,
    "the color of its box": SHOWN + DARK + b"0 0 .5 rg " + SECRET,
    "white on a white box on a dark box": SHOWN + DARK + b"1 g 15 195 190 20 re f " + SECRET,
    "under a box": SHOWN + SECRET + DARK,
    "under a white box": SHOWN + SECRET + b"1 g 10 190 200 30 re f",
    "under a clipped box": SHOWN + SECRET + b"10 190 200 30 re W n 0 g 0 0 300 300 re f",
    "tiny": SHOWN + b"BT /F 1 Tf 20 200 Td (SECRET price) Tj ET",
    "tiny by its matrix": SHOWN + b"BT /F 12 Tf .1 0 0 .1 20 200 Tm (SECRET price) Tj ET",
    "beside the page": SHOWN + b"BT /F 12 Tf 400 200 Td (SECRET price) Tj ET",
    "below the page": SHOWN + b"BT /F 12 Tf 20 -50 Td (SECRET price) Tj ET",
}


def _read(path: Path, data: bytes) -> tuple[str, str]:
    path.write_bytes(data)
    graph = NodeGraph(path, progress=False)
    return graph.nodes("ROOT")[0].text, " ".join(graph.read_report.notes.values())


@pytest.mark.parametrize("kind", HIDDEN)
def test_hidden_pdf_text_is_left_out(tmp_path: Path, kind: str) -> None:
    text, notes = _read(tmp_path / "a.pdf", pdf_of(b"", HIDDEN[kind]))
    assert text.strip() == "Tea costs 485 euros."
    assert "hidden passages left out: 1 (first: page 2: SECRET price)" in notes


DISPLAYED = {
    "white on a dark box": SHOWN + DARK + b"1 g " + SECRET,
    "white on a rounded box": SHOWN + ROUNDED + b"1 g " + SECRET,
    "white on a thick line": SHOWN + b"30 w 10 205 m 200 205 l S 1 g " + SECRET,
    "white on a picture": SHOWN + PICTURE + b"1 g " + SECRET,
    "invisible on a picture": SHOWN + PICTURE + b"3 Tr " + SECRET,
    "white with black edges": SHOWN + b"1 g 2 Tr " + SECRET,
    "gray": SHOWN + b".8 g " + SECRET,
    "partly covered": SHOWN + SECRET + b"0 g 10 190 30 30 re f",
    "beside a clipped box": SHOWN + SECRET + b"10 10 20 20 re W n 0 g 0 0 300 300 re f",
    "under a frame": SHOWN + SECRET + b"0 G 10 190 200 30 re S",
    "under a highlight": SHOWN + SECRET + b"/G gs 1 1 0 rg 10 190 200 30 re f",
    "font of size 1": SHOWN + b"BT /F 1 Tf 12 0 0 12 20 200 Tm (SECRET price) Tj ET",
}
HIGHLIGHT = b"/ExtGState<</G<</Type/ExtGState/ca .4/BM/Multiply>>>>/XObject<<"


@pytest.mark.parametrize("kind", DISPLAYED)
def test_displayed_pdf_text_stays(tmp_path: Path, kind: str) -> None:
    data = pdf_of(DISPLAYED[kind]).replace(b"/XObject<<", HIGHLIGHT)
    text, notes = _read(tmp_path / "a.pdf", data)
    assert "SECRET price" in text
    assert "hidden" not in notes.replace(str(tmp_path), "")


def test_hidden_text_inside_line_is_left_out(tmp_path: Path) -> None:
    line = b"BT /F 12 Tf 20 250 Td (Tea costs ) Tj 3 Tr (SECRET ) Tj 0 Tr (485 euros.) Tj ET"
    text, notes = _read(tmp_path / "a.pdf", pdf_of(line))
    assert text == "Tea costs 485 euros."
    assert "hidden passages left out: 1 (first: page 1: SECRET)" in notes


def test_hidden_part_of_word_is_left_out(tmp_path: Path) -> None:
    line = b"BT /F 12 Tf 20 250 Td (Tea costs 4) Tj 3 Tr (SECRET) Tj 0 Tr (85 euros.) Tj ET"
    text, notes = _read(tmp_path / "a.pdf", pdf_of(line))
    assert "".join(text.split()) == "Teacosts485euros."
    assert "hidden passages left out: 1 (first: page 1: SECRET)" in notes


def test_one_covered_text_among_many_boxes_is_left_out(tmp_path: Path) -> None:
    places = [(20 + 14 * column, 10 + 14 * row) for row in range(20) for column in range(19)]
    texts = " ".join(f"BT /F 8 Tf {x} {y} Td (x) Tj ET" for x, y in places)
    boxes = " ".join(f".9 g {x + 6} {y} 4 8 re f" for x, y in places)
    page = f"{texts} BT /F 8 Tf 20 292 Td (SECRET) Tj ET {boxes} 10 290 60 10 re f"
    text, notes = _read(tmp_path / "a.pdf", pdf_of(page.encode()))
    assert text.count("x") == len(places)
    assert "SECRET" not in text
    assert "hidden passages left out: 1 (first: page 1: SECRET)" in notes


@pytest.mark.parametrize(("top", "is_hidden"), [(220, True), (180, False)])
def test_text_outside_crop_box_is_left_out(tmp_path: Path, top: int, is_hidden: bool) -> None:
    page = b"MediaBox[0 0 300 300]"
    data = pdf_of(SHOWN + SECRET).replace(page, b"%s/CropBox[0 %d 300 300]" % (page, top))
    text, notes = _read(tmp_path / "a.pdf", data)
    assert "Tea costs 485 euros." in text
    assert ("SECRET price" in text) is not is_hidden
    assert ("hidden passages left out: 1 (first: page 1: SECRET price)" in notes) is is_hidden


FORM = (
    b"<</Type/XObject/Subtype/Form/BBox[0 0 300 300]/Matrix[1 0 0 1 0 -100]/Resources<</Font<</F "
    b"3 0 R>>>>/Length %d>>stream\n%s\nendstream"
)
IMAGE = (
    b"<</Type/XObject/Subtype/Image/Width 1/Height 1/ColorSpace/DeviceGray/BitsPerComponent 8"
    b"/Length 1>>stream\n0\nendstream"
)


@pytest.mark.parametrize(
    ("page", "is_hidden"),
    [(SHOWN + b"/I Do", True), (SHOWN + b"0 g 0 90 300 50 re f /I Do", False)],
)
def test_white_text_of_form_is_compared_with_page(
    tmp_path: Path, page: bytes, is_hidden: bool
) -> None:
    inner = b"1 g " + SECRET
    data = pdf_of(page).replace(IMAGE, FORM % (len(inner), inner))
    text, notes = _read(tmp_path / "a.pdf", data)
    assert ("SECRET" in text) is not is_hidden
    assert ("hidden passages" in notes) is is_hidden
