"""Small Word, spreadsheet, presentation and OpenDocument files that test a single property."""

import io
import zipfile
from pathlib import Path

from nodekin.nodegraph import NodeGraph

_OFFICE = "http://schemas.openxmlformats.org"
_OASIS = "urn:oasis:names:tc:opendocument:xmlns"
_LINKS = f"{_OFFICE}/officeDocument/2006/relationships"
_PACKAGE = f"{_OFFICE}/package/2006"
_MAIN = f"{_OFFICE}/spreadsheetml/2006/main"

_OPEN = " ".join(
    f'xmlns:{name}="{_OASIS}:{path}:1.0"'
    for name, path in {
        "office": "office",
        "style": "style",
        "text": "text",
        "table": "table",
        "fo": "xsl-fo-compatible",
    }.items()
)


def text_of(path: Path, data: bytes) -> str:
    """Write data to a file, and return the text that is read from this file."""
    path.write_bytes(data)
    return NodeGraph(path, progress=False).nodes("ROOT")[0].text


def packed(parts: dict[str, str]) -> bytes:
    """Return a zip archive that contains the given parts."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return buffer.getvalue()


def _relation(kind: str, target: str) -> str:
    return (
        f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="r1" '
        f'Type="{_LINKS}/{kind}" Target="{target}"/></Relationships>'
    )


def _types(kinds: dict[str, str]) -> str:
    inner = "".join(
        f'<Override PartName="/{part}" ContentType="application/vnd.openxmlformats-officedocument.'
        f'{kind}+xml"/>'
        for part, kind in kinds.items()
    )
    return f'<Types xmlns="{_PACKAGE}/content-types">{inner}</Types>'


def word(body: str, styles: str = "") -> bytes:
    """Return a Word document with the given body and styles."""
    space = f'xmlns:w="{_OFFICE}/wordprocessingml/2006/main"'
    kind = "wordprocessingml"
    return packed(
        {
            "[Content_Types].xml": _types(
                {"word/document.xml": f"{kind}.document.main", "word/styles.xml": f"{kind}.styles"}
            ),
            "_rels/.rels": _relation("officeDocument", "word/document.xml"),
            "word/_rels/document.xml.rels": _relation("styles", "styles.xml"),
            "word/document.xml": f"<w:document {space}><w:body>{body}</w:body></w:document>",
            "word/styles.xml": f"<w:styles {space}>{styles}</w:styles>",
        }
    )


def word_run(text: str, properties: str = "") -> str:
    """Return a run for a Word document."""
    return f'<w:r><w:rPr>{properties}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


def sheet(rows: str, before: str = "", fonts: str = "", strings: str = "") -> bytes:
    """Return a workbook with the given rows, preceding elements, fonts of styles, and strings."""
    styles = "".join(f'<xf fontId="{n}" numFmtId="0"/>' for n in range(1 + fonts.count("<font>")))
    return packed(
        {
            "[Content_Types].xml": _types({"xl/workbook.xml": "spreadsheetml.sheet.main"}),
            "_rels/.rels": _relation("officeDocument", "xl/workbook.xml"),
            "xl/workbook.xml": f'<workbook xmlns="{_MAIN}" xmlns:r="{_LINKS}"><sheets><sheet '
            'name="Tea" sheetId="1" r:id="r1"/></sheets></workbook>',
            "xl/_rels/workbook.xml.rels": _relation("worksheet", "worksheets/sheet1.xml").replace(
                "</Relationships>",
                f'<Relationship Id="r2" Type="{_LINKS}/sharedStrings" Target="sharedStrings.xml"/>'
                f'<Relationship Id="r3" Type="{_LINKS}/styles" Target="styles.xml"/>'
                "</Relationships>",
            ),
            "xl/sharedStrings.xml": f'<sst xmlns="{_MAIN}">{strings}</sst>',
            "xl/styles.xml": f'<styleSheet xmlns="{_MAIN}"><fonts><font/>{fonts}</fonts>'
            f"<cellXfs>{styles}</cellXfs></styleSheet>",
            "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{_MAIN}">{before}<sheetData>{rows}'
            "</sheetData></worksheet>",
        }
    )


def inline_cell(place: str, text: str, style: int = 0) -> str:
    """Return a spreadsheet cell that contains its own text."""
    return f'<c r="{place}" s="{style}" t="inlineStr"><is><t>{text}</t></is></c>'


def open_document(kind: str, body: str, styles: str = "") -> bytes:
    """Return an OpenDocument text or spreadsheet with the given automatic styles."""
    return packed(
        {
            "mimetype": f"application/vnd.oasis.opendocument.{kind}",
            "META-INF/manifest.xml": "<manifest/>",
            "content.xml": f"<office:document-content {_OPEN}><office:automatic-styles>{styles}"
            f"</office:automatic-styles><office:body><office:{kind}>{body}</office:{kind}>"
            "</office:body></office:document-content>",
            "styles.xml": f"<office:document-styles {_OPEN}/>",
        }
    )


def open_style(name: str, properties: str, family: str = "text") -> str:
    """Return an automatic style for an OpenDocument file."""
    return (
        f'<style:style style:name="{name}" style:family="{family}"><style:text-properties '
        f"{properties}/></style:style>"
    )


def slide_deck(*, hidden: str = "", struck: str = "") -> bytes:
    """Return a presentation with a title, a hidden shape and a strikethrough text."""
    from pptx import Presentation

    deck = Presentation()
    page = deck.slides.add_slide(deck.slide_layouts[1])
    page.shapes.title.text = "Tea"
    frame = page.placeholders[1].text_frame
    frame.text = "Shown "
    run = frame.paragraphs[0].add_run()
    run.text = struck
    run.font._element.set("strike", "sngStrike")
    box = page.shapes.add_textbox(0, 0, 9_000, 9_000)
    box.text_frame.text = hidden
    box._element.nvSpPr.cNvPr.set("hidden", "1")
    buffer = io.BytesIO()
    deck.save(buffer)
    return buffer.getvalue()
