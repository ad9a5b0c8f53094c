"""Spreadsheets."""

import zipfile
from pathlib import Path

from nodekin.nodegraph import NodeGraph


def text_in(path: Path) -> str:
    (node,) = NodeGraph(path, progress=False).nodes("ROOT")
    return node.text


def workbook(path: Path, sheets: dict[str, list[list[object]]]) -> None:
    """Write a workbook by hand: the parts that a reader looks at."""
    kinds = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    links = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    with zipfile.ZipFile(path, "w") as archive:
        overrides = "".join(
            f'<Override PartName="/xl/worksheets/sheet{n}.xml" '
            f'ContentType="{kinds}.worksheet+xml"/>'
            for n in range(1, len(sheets) + 1)
        )
        archive.writestr(
            "[Content_Types].xml",
            f'<Types xmlns="{package}/content-types"><Default Extension="rels" ContentType='
            '"application/vnd.openxmlformats-package.relationships+xml"/><Override PartName='
            f'"/xl/workbook.xml" ContentType="{kinds}.sheet.main+xml"/>{overrides}</Types>',
        )
        archive.writestr(
            "_rels/.rels",
            f'<Relationships xmlns="{package}/relationships"><Relationship Id="r1" '
            f'Type="{links}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        )
        names = "".join(
            f'<sheet name="{name}" sheetId="{n}" r:id="r{n}"/>' for n, name in enumerate(sheets, 1)
        )
        archive.writestr(
            "xl/workbook.xml",
            f'<workbook xmlns="{main}" xmlns:r="{links}"><sheets>{names}</sheets></workbook>',
        )
        targets = "".join(
            f'<Relationship Id="r{n}" Type="{links}/worksheet" Target="worksheets/sheet{n}.xml"/>'
            for n in range(1, len(sheets) + 1)
        )
        archive.writestr(
            "xl/_rels/workbook.xml.rels",
            f'<Relationships xmlns="{package}/relationships">{targets}</Relationships>',
        )
        for number, rows in enumerate(sheets.values(), 1):
            cells = ""
            for at, row in enumerate(rows, 1):
                values = "".join(
                    f'<c r="{"ABCDEF"[c]}{at}"><v>{v}</v></c>'
                    if isinstance(v, int | float)
                    else f'<c r="{"ABCDEF"[c]}{at}" t="inlineStr"><is><t>{v}</t></is></c>'
                    for c, v in enumerate(row)
                )
                cells += f'<row r="{at}">{values}</row>'
            archive.writestr(
                f"xl/worksheets/sheet{number}.xml",
                f'<worksheet xmlns="{main}"><sheetData>{cells}</sheetData></worksheet>',
            )


def test_spreadsheets(tmp_path: Path) -> None:
    workbook(
        tmp_path / "prices.xlsx",
        {"Cups": [["Tea", "Price"], ["Longjing", 4.2], ["Keemun", 3]], "壶": [["茶"], ["红茶"]]},
    )
    assert text_in(tmp_path / "prices.xlsx") == (
        "# Cups\n\n| Tea | Price |\n| --- | --- |\n| Longjing | 4.2 |\n| Keemun | 3 |\n\n\f\n\n"
        "# 壶\n\n| 茶 |\n| --- |\n| 红茶 |"
    )
