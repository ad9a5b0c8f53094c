"""Lines of PDF pages: turned text, odd sizes and places, bold letters."""

from pathlib import Path

import pytest
from support.sample_files import pdf_of

from nodekin.adapters.files.pdf import read_pdf
from nodekin.nodegraph import NodeGraph, ReadOptions
from nodekin.nodegraph.locations import SCALE, unpack_layout
from nodekin.nodegraph.readers.source_files import SourceFile

TEXT = b"BT /F 12 Tf 20 250 Td (Tea is a drink.) Tj ET"

WORDS = "the kettle is emptied every evening and cleaned with vinegar on every Monday".split()


@pytest.mark.parametrize(
    "matrix", ["1 0 0 1 10 250", "0 1 -1 0 50 10", "0 -1 1 0 50 290", "-1 0 0 -1 290 50"]
)
def test_rotated_text_is_read_like_upright_text(tmp_path: Path, matrix: str) -> None:
    words = " ".join(f"({word} ) Tj" for word in WORDS[:7])
    more = " ".join(f"({word} ) Tj" for word in WORDS[7:])
    page = f"BT /F 8 Tf 10 TL {matrix} Tm {words} T* {more} T* (Seldom.) Tj T* T* (Next.) Tj ET"
    (tmp_path / "a.pdf").write_bytes(pdf_of(page.encode()))
    (node,) = NodeGraph(tmp_path / "a.pdf", progress=False).nodes("ROOT")
    assert " ".join(node.text.split()) == " ".join([*WORDS, "Seldom. Next."])
    if matrix[0] != "-":
        assert node.text.endswith("Seldom.\n\nNext.")


@pytest.mark.parametrize(
    "odd",
    [
        *("1e9 0 0 1e9 0 0 cm", "1 0 0 1 3e12 -3e12 cm", "1e30 0 0 1e30 1 1 cm"),
        *("BT /F -12 Tf", "BT /F 12 Tf 1e9 250 Td", "BT /F 12 Tf 0 0 0 0 1 1 Tm"),
    ],
)
def test_odd_sizes_and_places_lose_no_other_text(tmp_path: Path, odd: str) -> None:
    text = f"q {odd} " + ("" if "BT" in odd else "BT /F 12 Tf 20 250 Td ") + "(Odd.) Tj ET Q "
    (tmp_path / "a.pdf").write_bytes(pdf_of(text.encode() + TEXT))
    assert "Tea is a drink." in read_pdf(SourceFile(tmp_path / "a.pdf", ReadOptions())).text


@pytest.mark.parametrize(
    ("matrix", "is_turned"), [("1 0 .3 1 20 150", False), (".7 .7 -.7 .7 60 60", True)]
)
def test_turned_text_is_noted_but_slanted_text_is_read(
    tmp_path: Path, matrix: str, is_turned: bool
) -> None:
    more = f" BT /F 12 Tf {matrix} Tm (Stamped) Tj ET".encode()
    (tmp_path / "a.pdf").write_bytes(pdf_of(TEXT + more))
    graph = NodeGraph(tmp_path / "a.pdf", progress=False)
    assert ("Stamped" in graph.nodes("ROOT")[0].text) == (not is_turned)
    assert ("turned lines" in "".join(graph.read_report.notes.values())) == is_turned


def test_bold_numbered_headings_are_found(tmp_path: Path) -> None:
    typst = pytest.importorskip("typst", reason="no typst: pip install typst")
    sections = [
        f"*{number} {title} it* \\\n#lorem(50)\n\n"
        for n in range(1, 5)
        for number, title in ((f"{n}.", "Teas"), (f"{n}.1", "Cups"), (f"{n}.2", "Pots"))
    ]
    setting = '#set page(paper: "a4", columns: 2)\n#set par(spacing: 0.65em)\n'
    (tmp_path / "a.typ").write_text(setting + "".join(sections))
    typst.compile(str(tmp_path / "a.typ"), output=str(tmp_path / "a.pdf"))
    (node,) = NodeGraph(tmp_path / "a.pdf", progress=False).nodes("ROOT")
    headings = [line for line in node.text.split("\n") if line.startswith("#")]
    assert len(headings) == 12
    assert headings[:3] == ["# 1. Teas it", "## 1.1 Cups it", "## 1.2 Pots it"]


def test_box_of_reordered_line_has_full_width(tmp_path: Path) -> None:
    file = tmp_path / "a.pdf"
    file.write_bytes(pdf_of(b"BT /F 12 Tf 60 20 Td [(Water and Tea) 8500 (46)] TJ ET"))
    (box,) = unpack_layout(read_pdf(SourceFile(file, ReadOptions())).layout or b"")
    assert box.right - box.left > 0.3 * SCALE
