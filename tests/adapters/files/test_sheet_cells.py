"""Cells of XLSX: struck text, names with a prefix."""

import re
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

from support.small_files import inline_cell, sheet, text_of

from nodekin.nodegraph import NodeGraph


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


def test_sheet_with_prefixed_names_is_read_alike(tmp_path: Path) -> None:
    rows = (
        '<row r="1" hidden="1"><c r="A1" s="1"><v>10</v></c><c r="B1" t="e"><v>#N/A</v></c></row>'
        '<row r="2"><c s="1" r="A2"><v>123456789012345678</v></c></row>'
    )
    plain = sheet(rows, "", "<font><strike/></font>")
    prefixed = BytesIO()
    with ZipFile(BytesIO(plain)) as old, ZipFile(prefixed, "w") as new:
        for name in old.namelist():
            xml = old.read(name).decode()
            if "worksheets" in name:
                xml = re.sub("<(/?)", r"<\1x:", xml.replace("xmlns=", "xmlns:x="))
            new.writestr(name, xml)
    folder = tmp_path / "files"
    folder.mkdir()
    Path(folder, "plain.xlsx").write_bytes(plain)
    Path(folder, "prefixed.xlsx").write_bytes(prefixed.getvalue())
    graph = NodeGraph(folder, progress=False)
    first, second = graph.nodes("ROOT")
    assert first.text == second.text
    assert "~~10~~" in first.text
    assert "~~123456789012345678~~" in first.text
    assert first.metadata["read_notes"] == second.metadata["read_notes"]
    assert first.metadata["read_notes"] == [
        "hidden rows read: 1 (first: Tea, row 1)",
        "error values left out: 1 (first: Tea)",
    ]
