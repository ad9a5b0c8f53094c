"""Struck-through cells of XLSX keep their marks."""

from pathlib import Path

from support.small_files import inline_cell, sheet, text_of


def test_struck_cells_keep_marks(tmp_path: Path) -> None:
    runs = (
        "<si><r><t xml:space='preserve'>Fee </t></r><r><rPr><strike/></rPr><t>10</t></r></si>"
        "<si><r><t xml:space='preserve'>Fee </t></r><r><t>10</t></r></si>"
    )
    rows = (
        f'<row r="1">{inline_cell("A1", "old pump", 1)}<c r="B1" s="1"><v>10</v></c></row>'
        f'<row r="2">{inline_cell("A2", "new pump")}<c r="B2"><v>12</v></c></row>'
        '<row r="3"><c r="A3" t="s"><v>0</v></c><c r="B3" t="s"><v>1</v></c></row>'
    )
    text = text_of(tmp_path / "a.xlsx", sheet(rows, "", "<font><strike/></font>", runs))
    assert text.splitlines()[2:] == [
        "| ~~old pump~~ | ~~10~~ |",
        "| --- | --- |",
        "| new pump | 12 |",
        "| Fee ~~10~~ | Fee 10 |",
    ]
