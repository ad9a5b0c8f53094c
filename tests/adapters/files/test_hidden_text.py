"""Hidden text is left out and noted; hidden rows, columns and sheets are read and noted."""

from pathlib import Path

import pytest
from support.small_files import (
    inline_cell,
    open_document,
    open_style,
    sheet,
    slide_deck,
    word,
    word_run,
)

from nodekin.nodegraph import NodeGraph

_VANISH = '<w:style w:styleId="{}"><w:basedOn w:val="{}"/><w:rPr>{}</w:rPr></w:style>'


def _read(path: Path, data: bytes) -> tuple[str, str]:
    """Return the text of a file and its notes."""
    path.write_bytes(data)
    graph = NodeGraph(path, progress=False)
    return graph.nodes("ROOT")[0].text, " ".join(graph.read_report.notes.values())


WORD = {
    "run": word_run("secret ", "<w:vanish/>"),
    "value": word_run("secret ", '<w:vanish w:val="true"/>'),
    "style": word_run("secret ", '<w:rStyle w:val="Hidden"/>'),
    "style of style": word_run("secret ", '<w:rStyle w:val="Inner"/>'),
}


@pytest.mark.parametrize("kind", WORD)
def test_hidden_word_text_is_left_out(tmp_path: Path, kind: str) -> None:
    styles = _VANISH.format("Hidden", "", "<w:vanish/>") + _VANISH.format("Inner", "Hidden", "")
    shown = word_run("Shown ") + WORD[kind]
    shown += word_run("on", '<w:rStyle w:val="Hidden"/><w:vanish w:val="0"/>')
    text, notes = _read(tmp_path / "a.docx", word(f"<w:p>{shown}</w:p>", styles))
    assert text == "Shown on"
    assert "hidden passages left out: 1 (first: secret)" in notes


def test_hidden_word_paragraph_style_is_left_out(tmp_path: Path) -> None:
    styles = _VANISH.format("Hidden", "", "<w:vanish/>")
    hidden = f'<w:p><w:pPr><w:pStyle w:val="Hidden"/></w:pPr>{word_run("secret")}</w:p>'
    text, notes = _read(
        tmp_path / "a.docx", word(f"<w:p>{word_run('Shown')}</w:p>{hidden}", styles)
    )
    assert text == "Shown"
    assert "hidden passages left out: 1 (first: secret)" in notes


OPEN = {
    "span": '<text:p>Shown <text:span text:style-name="H">secret</text:span>on</text:p>',
    "paragraph": '<text:p>Shown on</text:p><text:p text:style-name="H">secret</text:p>',
    "section": '<text:section text:display="none"><text:p>secret</text:p></text:section>'
    "<text:p>Shown on</text:p>",
    "field": '<text:p>Shown <text:hidden-text text:is-hidden="true" '
    'text:string-value="secret"/>on</text:p>',
    "hidden paragraph": '<text:p>secret<text:hidden-paragraph text:is-hidden="true"/></text:p>'
    "<text:p>Shown on</text:p>",
}


@pytest.mark.parametrize("kind", OPEN)
def test_hidden_open_text_is_left_out(tmp_path: Path, kind: str) -> None:
    data = open_document("text", OPEN[kind], open_style("H", 'text:display="none"'))
    text, notes = _read(tmp_path / "a.odt", data)
    assert text == "Shown on"
    assert "hidden passages left out: 1 (first: secret)" in notes


RICH = [
    r"Shown {\v secret }on",
    r"Shown \v secret \v0 on",
    r"Shown {\b\v1 se\'63ret \plain }on",
    r"{\stylesheet{\s1\v Hidden;}}Shown {\v secret }on{\xe {\v entry}}",
]


@pytest.mark.parametrize("body", RICH)
def test_hidden_rich_text_is_left_out(tmp_path: Path, body: str) -> None:
    text, notes = _read(tmp_path / "a.rtf", rf"{{\rtf1\ansi {body}\par}}".encode())
    assert text == "Shown on"
    assert "hidden passages left out: 1 (first: se" in notes


def test_rich_text_without_hidden_text_has_no_note(tmp_path: Path) -> None:
    _, notes = _read(tmp_path / "a.rtf", rb"{\rtf1\ansi Shown \v0 on {\v0 and} on\par}")
    assert notes == ""


def test_hidden_shape_of_slide_is_left_out(tmp_path: Path) -> None:
    text, notes = _read(tmp_path / "a.pptx", slide_deck(hidden="secret"))
    assert "secret" not in text
    assert "hidden passages left out: 1 (first: secret)" in notes


PAGES = [
    '<p>Shown</p><p style="display:none">secret</p>',
    "<p>Shown</p><p style=display:none>secret</p>",
    '<p>Shown</p><p STYLE="color:red; DISPLAY : none !important">secret</p>',
    '<p>Shown</p><div hidden=""><p>secret</p></div>',
    '<p>Shown <span style="font-size:0">secret</span></p>',
]


@pytest.mark.parametrize("page", PAGES)
def test_hidden_parts_of_page_are_left_out(tmp_path: Path, page: str) -> None:
    text, notes = _read(tmp_path / "a.html", f"<html><body>{page}</body></html>".encode())
    assert text == "Shown"
    assert "hidden parts left out: 1 (first: line 1)" in notes


HIDDEN_CELLS = {
    "rows": ("", '<row r="2" hidden="1">', "hidden rows read: 1 (first: Tea, row 2)"),
    "flat rows": ("", '<row r="2" ht="0" customHeight="1">', "hidden rows read: 1"),
    "columns": (
        '<cols><col min="2" max="16384" width="9" hidden="1"/></cols>',
        '<row r="2">',
        "hidden columns read: 1 (first: Tea, column B)",
    ),
}


@pytest.mark.parametrize("kind", HIDDEN_CELLS)
def test_hidden_cells_are_read_and_noted(tmp_path: Path, kind: str) -> None:
    before, row, note = HIDDEN_CELLS[kind]
    rows = f'<row r="1">{inline_cell("A1", "pump")}{inline_cell("B1", "10")}</row>'
    rows += f"{row}{inline_cell('A2', 'valve')}{inline_cell('B2', '11')}</row>"
    text, notes = _read(tmp_path / "a.xlsx", sheet(rows, before))
    assert "| valve | 11 |" in text
    assert note in notes
    assert notes.count("hidden") == 1 + str(tmp_path).count("hidden")


@pytest.mark.parametrize("mark", ["collapse", "filter"])
def test_hidden_open_cells_are_read_and_noted(tmp_path: Path, mark: str) -> None:
    cell = '<table:table-cell office:value-type="string"><text:p>{}</text:p></table:table-cell>'
    body = (
        f'<table:table table:name="Tea"><table:table-column/><table:table-column '
        f'table:visibility="{mark}" table:number-columns-repeated="9"/><table:table-row>'
        f"{cell.format('pump')}{cell.format('10')}</table:table-row><table:table-row "
        f'table:visibility="{mark}">{cell.format("valve")}</table:table-row></table:table>'
    )
    text, notes = _read(tmp_path / "a.ods", open_document("spreadsheet", body))
    assert "valve" in text
    assert "hidden rows read: 1 (first: Tea, row 2)" in notes
    assert "hidden columns read: 1 (first: Tea, column B)" in notes
