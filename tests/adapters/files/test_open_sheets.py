"""Cells of OpenDocument spreadsheets: struck text, repeated cells."""

from pathlib import Path

from support.small_files import open_document, open_style, text_of


def test_struck_open_cells_keep_marks(tmp_path: Path) -> None:
    cell = '<table:table-cell {} office:value-type="string"><text:p>{}</text:p></table:table-cell>'
    span = '<text:span text:style-name="S">10</text:span> 12'
    body = (
        '<table:table table:name="Tea"><table:table-row>'
        + cell.format('table:style-name="S"', "old pump")
        + cell.format("", span)
        + "</table:table-row></table:table>"
    )
    styles = open_style("S", 'style:text-line-through-style="solid"', "table-cell")
    text = text_of(tmp_path / "a.ods", open_document("spreadsheet", body, styles))
    assert "| ~~old pump~~ | ~~10~~ 12 |" in text


def test_repeated_open_cells_keep_their_places(tmp_path: Path) -> None:
    body = (
        '<table:table table:name="Tea"><table:table-row table:number-rows-repeated="2">'
        '<table:table-cell table:number-columns-repeated="2" office:value-type="percentage" '
        'office:value="0.5"><text:p>50%</text:p></table:table-cell></table:table-row>'
        '<table:table-row><table:table-cell table:number-columns-repeated="1"/><table:table-cell '
        'office:value-type="float" office:value="7"><text:p>007</text:p></table:table-cell>'
        '</table:table-row><table:table-row table:number-rows-repeated="1048573"><table:table-cell '
        'table:number-columns-repeated="16384"/></table:table-row></table:table>'
    )
    text = text_of(tmp_path / "a.ods", open_document("spreadsheet", body))
    assert text == "# Tea\n\n| 50% | 50% |\n| --- | --- |\n| 50% | 50% |\n|  | 007 |"
