"""Files that use many features of their formats, created without an office program."""

import json
import re
import struct
import zipfile
from base64 import b64encode
from collections.abc import Callable, Mapping
from email.message import EmailMessage
from io import BytesIO
from pathlib import Path

from support.sample_files import pdf_of

Features = tuple[bytes, list[str], dict[str, str]]
"""A file, texts that it contains, and for each note, the words that are left out."""

_OFFICE = "http://schemas.openxmlformats.org"
_LINKS = f"{_OFFICE}/officeDocument/2006/relationships"
_MAIN = f'xmlns="{_OFFICE}/spreadsheetml/2006/main"'
_NAMES = f'xmlns:r="{_LINKS}" ' + " ".join(
    f'xmlns:{name}="{_OFFICE}/{path}"'
    for name, path in {
        "w": "wordprocessingml/2006/main",
        "m": "officeDocument/2006/math",
        "a": "drawingml/2006/main",
        "c": "drawingml/2006/chart",
        "mc": "markup-compatibility/2006",
        "dgm": "drawingml/2006/diagram",
        "xdr": "drawingml/2006/spreadsheetDrawing",
        "v": "vml",
        "wp": "drawingml/2006/wordprocessingDrawing",
    }.items()
)


def _m(text: str) -> str:
    return f"<m:r><m:t>{text}</m:t></m:r>"


OMML = (
    f"<m:oMath {_NAMES}><m:sSup><m:e>{_m('a')}</m:e><m:sup>{_m('2')}</m:sup></m:sSup>{_m('+b=')}"
    f"<m:f><m:num>{_m('c+d')}</m:num><m:den>{_m('n')}</m:den></m:f>"
    f"<m:rad><m:deg/><m:e>{_m('x')}</m:e></m:rad>"
    '<m:nary><m:naryPr><m:chr m:val="∑"/></m:naryPr>'
    f"<m:sub>{_m('i=1')}</m:sub><m:sup>{_m('n')}</m:sup><m:e>{_m('y')}</m:e></m:nary></m:oMath>"
)
EQUATION = "a^2 + b = (c + d)/n sqrt(x) ∑_(i = 1)^n y"


def _points(*values: str) -> str:
    return "".join(f"<c:pt><c:v>{value}</c:v></c:pt>" for value in values)


CHART = (
    f"<c:chartSpace {_NAMES}><c:chart><c:title><a:p><a:r><a:t>Harvest</a:t></a:r></a:p></c:title>"
    f"<c:plotArea><c:ser><c:tx>{_points('Keemun')}</c:tx>"
    f"<c:cat>{_points('Spring', 'Autumn')}</c:cat><c:val>{_points('41', '17')}</c:val></c:ser>"
    "</c:plotArea></c:chart></c:chartSpace>"
)
CHART_TEXT = ["Chart: Harvest", "Keemun: Spring 41, Autumn 17"]
CHART_TABLE = "Harvest\n\n|  | Keemun |\n| --- | --- |\n| Spring | 41 |\n| Autumn | 17 |"

DIAGRAM = (
    f"<dgm:dataModel {_NAMES}><dgm:pt><dgm:t><a:t>Wither</a:t></dgm:t></dgm:pt>"
    "<dgm:pt><dgm:t><a:t>Roll</a:t></dgm:t></dgm:pt></dgm:dataModel>"
)

TABLE = "| Tea | Price | Price |\n| --- | --- | --- |\n| Tea | Cup | Pot |"


def _packed(parts: Mapping[str, str | bytes]) -> bytes:
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def _office_file(main: str, types: Mapping[str, str], parts: Mapping[str, str | bytes]) -> bytes:
    """Return an Office file that consists of the given parts, including its content types."""
    listed = "".join(
        f'<Override PartName="/{name}" ContentType="application/vnd.openxmlformats-officedocument.'
        f'{kind}+xml"/>'
        for name, kind in types.items()
    )
    content_types = (
        f'<Types xmlns="{_OFFICE}/package/2006/content-types"><Default Extension="rels" ContentType'
        '="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" '
        f'ContentType="application/xml"/>{listed}</Types>'
    )
    relations = _relations(("r1", "officeDocument", main))
    return _packed({"[Content_Types].xml": content_types, "_rels/.rels": relations, **parts})


def _relations(*targets: tuple[str, str, str]) -> str:
    inner = "".join(
        f'<Relationship Id="{key}" Type="{_LINKS}/{kind}" Target="{target}"/>'
        for key, kind, target in targets
    )
    return f'<Relationships xmlns="{_OFFICE}/package/2006/relationships">{inner}</Relationships>'


def _p(text: str, properties: str = "", after: str = "") -> str:
    run = f"<w:r><w:t xml:space='preserve'>{text}</w:t></w:r>"
    return f"<w:p><w:pPr>{properties}</w:pPr>{run}{after}</w:p>"


def _item(number: int, level: int = 0) -> str:
    return f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{number}"/></w:numPr>'


def _cell(text: str, properties: str = "") -> str:
    return f"<w:tc><w:tcPr>{properties}</w:tcPr>{_p(text)}</w:tc>"


def _drawing(inner: str) -> str:
    return f"<w:p><w:r><w:drawing><wp:inline>{inner}</wp:inline></w:drawing></w:r></w:p>"


def _list(number: int, *levels: tuple[str, str, int], style: str = "") -> str:
    inner = "".join(
        f'<w:lvl w:ilvl="{at}"><w:start w:val="{start}"/><w:numFmt w:val="{kind}"/>'
        f'<w:pStyle w:val="{style}{at + 1}"/>'
        f'<w:lvlText w:val="{text}"/></w:lvl>'
        for at, (kind, text, start) in enumerate(levels)
    )
    return f'<w:abstractNum w:abstractNumId="{number}">{inner}</w:abstractNum>'


PNG = (
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\0\0\0\0:~\x9bU"
    b"\0\0\0\nIDATx\x9cc`\0\0\0\2\0\1H\xaf\xa4q\0\0\0\0IEND\xaeB`\x82"
)


def word_file() -> Features:
    script = '<w:r><w:rPr><w:vertAlign w:val="{}script"/></w:rPr><w:t>{}</w:t></w:r>'
    raised = '<w:r><w:rPr><w:position w:val="{}"/></w:rPr><w:t>{}</w:t></w:r>'
    moved = '<w:moveFrom w:id="5"/>'
    later = "<w:r><w:t xml:space='preserve'> later</w:t></w:r>"
    merged, wide = '<w:vMerge w:val="restart"/>', '<w:gridSpan w:val="2"/>'
    field = '<w:r><w:fldChar w:fldCharType="{}"/></w:r>'
    body = [
        _p("Buying", '<w:pStyle w:val="Heading1"/>'),
        _p("Green tea", '<w:pStyle w:val="Heading2"/>'),
        _p("Black tea", '<w:pStyle w:val="Heading2"/>'),
        *(_p("Boil", _item(2)), _p("Pour", _item(2)), _p("Slowly", _item(2, 1))),
        '<w:p><w:r><w:t>E</w:t><w:noBreakHyphen/><w:t>105 at 5</w:t><w:sym w:font="Symbol" '
        'w:char="F0B0"/><w:sym w:font="Wingdings" w:char="F0FC"/></w:r></w:p>',
        *(_p("Between the items."), _p("Drink", _item(2)), _p("Tasted", _item(3))),
        _p("A byte count of 2", after=script.format("super", "30") + later),
        _p("Water is H", after=script.format("sub", "2") + later),
        _p("About 10", after=raised.format(8, 9) + later) + _p("CO", after=raised.format(-6, 2)),
        _p("Joined", '<w:rPr><w:del w:id="4"/></w:rPr>'),
        _p("", f"<w:rPr>{moved}</w:rPr>", f'<w:moveFrom w:id="6">{later}</w:moveFrom>'),
        f"<w:p>{OMML}</w:p>",
        '<w:p><w:fldSimple w:instr="DATE"><w:r><w:t>Simplefield</w:t></w:r></w:fldSimple>'
        f"{field.format('begin')}<w:r><w:instrText>REF</w:instrText></w:r>"
        f"{field.format('separate')}<w:r><w:t>Complexfield</w:t></w:r>{field.format('end')}</w:p>",
        f"<w:tbl><w:tr>{_cell('Tea', merged)}"
        f"{_cell('Price', wide)}</w:tr>"
        f"<w:tr>{_cell('', '<w:vMerge/>')}{_cell('Cup')}{_cell('Pot')}</w:tr></w:tbl>",
        f"<w:tbl><w:tr><w:tc><w:tbl><w:tr>{_cell('Innermost')}</w:tr></w:tbl>{_p('')}</w:tc>"
        f"{_cell('Outermost')}</w:tr></w:tbl>",
        _p("Noted", after='<w:r><w:footnoteReference w:id="1"/></w:r>'),
        _p("Commented", after='<w:r><w:commentReference w:id="0"/></w:r>'),
        '<w:p><w:ins w:id="1"><w:r><w:t>Inserted</w:t></w:r></w:ins><w:del w:id="2"><w:r>'
        "<w:delText>Deleted</w:delText></w:r></w:del></w:p>",
        "<w:p><w:r><mc:AlternateContent><mc:Choice><w:drawing><w:txbxContent>"
        f"{_p('Textbox')}</w:txbxContent></w:drawing></mc:Choice></mc:AlternateContent></w:r></w:p>",
        _drawing('<c:chart r:id="rC"/>') + _drawing('<dgm:relIds r:dm="rD"/>'),
        _drawing('<a:blip r:embed="rP"/>'),
        "<w:p><w:r><w:ruby><w:rt><w:r><w:t>chá</w:t></w:r></w:rt><w:rubyBase><w:r><w:t>茶</w:t>"
        "</w:r></w:rubyBase></w:ruby></w:r></w:p>",
        f"<w:sdt><w:sdtContent>{_p('Control')}</w:sdtContent></w:sdt>",
        "<w:unknown><w:r><w:t>Unknown</w:t></w:r></w:unknown>",
    ]
    styles = "".join(
        f'<w:style w:type="paragraph" w:styleId="Heading{n}"><w:name w:val="heading {n}"/><w:pPr>'
        f"{_item(1, n - 1)}</w:pPr></w:style>"
        for n in (1, 2)
    )
    numbering = _list(0, ("decimal", "%1", 1), ("decimal", "%1.%2", 1), style="Heading")
    numbering += _list(1, ("lowerLetter", "%1)", 3), ("lowerRoman", "(%2)", 1))
    numbering += _list(2, ("chineseCounting", "第%1章", 3))
    for number in (1, 2, 3):
        abstract = f'<w:abstractNumId w:val="{number - 1}"/>'
        numbering += f'<w:num w:numId="{number}">{abstract}</w:num>'
    parts = {
        "document": f"<w:document {_NAMES}><w:body>{''.join(body)}</w:body></w:document>",
        "_rels/document": _relations(
            ("rS", "styles", "styles.xml"),
            ("rN", "numbering", "numbering.xml"),
            ("rF", "footnotes", "footnotes.xml"),
            ("rC", "chart", "chart1.xml"),
            ("rD", "diagramData", "data1.xml"),
            ("rP", "image", "media/a.png"),
        ),
        "styles": f"<w:styles {_NAMES}>{styles}</w:styles>",
        "numbering": f"<w:numbering {_NAMES}>{numbering}</w:numbering>",
        "footnotes": f'<w:footnotes {_NAMES}><w:footnote w:id="1">{_p("Footnote")}</w:footnote>'
        "</w:footnotes>",
        "header1": f"<w:hdr {_NAMES}>{_p('Teahouse')}<w:p><w:r><w:pict><v:textpath string='Draft'/>"
        "</w:pict></w:r></w:p></w:hdr>",
        "comments": f'<w:comments {_NAMES}><w:comment w:id="0">{_p("Remark")}</w:comment>'
        "</w:comments>",
        "chart1": CHART,
        "data1": DIAGRAM,
    }
    data = _office_file(
        "word/document.xml",
        {"word/document.xml": "wordprocessingml.document.main"},
        {f"word/{name}.xml{'.rels' * ('_rels' in name)}": text for name, text in parts.items()},
    )
    known = [
        "# 1 Buying",
        *("## 1.1 Green tea", "## 1.2 Black tea"),
        *("c) Boil\nd) Pour\n", "(i) Slowly", "Between the items.", "e) Drink"),
        *("A byte count of 2^30 later", "Water is H2 later", "About 10^9 later", "CO2", EQUATION),
        "SimplefieldComplexfield",
        *(TABLE, "Innermost", "Outermost"),
        *("Noted (Footnote)", "Commented", "Inserted", "Textbox", "第三章 Tasted"),
        "E\u2011105 at 5°\ufffd",
        *(CHART_TABLE, "- Wither\n- Roll", "茶(chá)", "Control"),
        "\n\nHeader: Teahouse\n\nWatermark: Draft",
        "Joined",
    ]
    left_out = {
        "comments left out: 1 (first: Commented)": "Remark",
        "deleted passages left out: 2 (first: later)": "Deleted",
        "pictures left out: 1 (first: Textbox)": "",
        "words left out: 1 (first: Unknown)": "Unknown",
        "": "REF",
    }
    return data, known, left_out


def slides_file() -> Features:
    from lxml import etree
    from pptx import Presentation
    from pptx.chart.data import CategoryChartData
    from pptx.enum.chart import XL_CHART_TYPE
    from pptx.opc.package import Part
    from pptx.opc.packuri import PackURI
    from pptx.util import Inches

    deck = Presentation()
    place = (Inches(1), Inches(1), Inches(4), Inches(1))
    slide = deck.slides.add_slide(deck.slide_layouts[1])
    slide.shapes.title.text = "Buying"
    body = slide.placeholders[1].text_frame
    body.text = "Green"
    inner = body.add_paragraph()
    inner.text, inner.level = "Longjing", 1
    box = slide.shapes.add_textbox(*place).text_frame.paragraphs[0]
    for text, baseline in (("Count 2", 0), ("30", 30_000), (" and H", 0), ("2", -25_000), ("O", 0)):
        run = box.add_run()
        run.text = text
        run._r.get_or_add_rPr().set("baseline", str(baseline))
    box._p.append(
        etree.fromstring(
            f"<mc:AlternateContent {_NAMES}><mc:Choice><a:m>{OMML}</a:m></mc:Choice><mc:Fallback/>"
            "</mc:AlternateContent>"
        )
    )
    slide.shapes.add_picture(BytesIO(PNG), *place[:2])
    slide.notes_slide.notes_text_frame.text = "Spoken"
    slide = deck.slides.add_slide(deck.slide_layouts[6])
    slide._element.set("show", "0")
    table = slide.shapes.add_table(2, 3, *place).table
    for at, text in enumerate(["Tea", "Price", "", "", "Cup", "Pot"]):
        table.cell(at // 3, at % 3).text = text
    table.cell(0, 0).merge(table.cell(1, 0))
    table.cell(0, 1).merge(table.cell(0, 2))
    data = CategoryChartData()
    data.categories = ["Spring", "Autumn"]
    data.add_series("Keemun", (41, 17))
    chart = slide.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, *place, data).chart
    chart.chart_title.text_frame.text = "Harvest"
    group = slide.shapes.add_group_shape()
    group.shapes.add_textbox(*place).text_frame.text = "Grouped"
    name = PackURI("/ppt/diagrams/data1.xml")
    part = Part(name, "application/xml", deck.part.package, DIAGRAM.encode())
    target = slide.part.relate_to(part, f"{_LINKS}/diagramData")
    graphic = slide.shapes.add_table(1, 1, *place)._element.graphic.graphicData
    graphic.set("uri", "http://schemas.openxmlformats.org/drawingml/2006/diagram")
    graphic[:] = [etree.fromstring(f'<dgm:relIds {_NAMES} r:dm="{target}"/>')]
    for number in (1, 2):
        slide = deck.slides.add_slide(deck.slide_layouts[6])
        footer = slide.shapes.add_textbox(*place)
        footer.text_frame.text = "Teahouse"
        slide.shapes.add_textbox(*place).text_frame.text = f"Slide {number}"
        place_number = slide.shapes.add_textbox(*place)
        place_number.text_frame.text = f"9{number}"
        for shape, kind in ((footer, "ftr"), (place_number, "sldNum")):
            properties = shape._element.find(".//{*}nvPr")
            tag = properties.tag.replace("nvPr", "ph")
            etree.SubElement(properties, tag).attrib.update({"type": kind, "idx": "11"})
    buffer = BytesIO()
    deck.core_properties.title = "Numbers"
    deck.save(buffer)
    known = [
        "# Buying",
        "- Green\n  - Longjing",
        f"Count 2^30 and H2O{EQUATION}",
        "Notes: Spoken",
        TABLE,
        *(CHART_TABLE, "Grouped", "- Wither\n- Roll", "Teahouse", "Slide 1", "Slide 2"),
    ]
    left_out = {
        "hidden slides read: 1 (first: Tea Price Cup Pot Grouped)": "",
        "pictures left out: 1 (first: Count 230 and H2O": "",
    }
    return buffer.getvalue(), known, left_out


def sheets_file() -> Features:
    strings = ["Report", "Tea", "Price", "Cup", "Pot", "Keemun"]
    rows = [["Report"], ["Tea", "Price"], ["", "Cup", "Pot"], ["Keemun", "3.0", "8.5"]]
    cells = ""
    for at, row in enumerate(rows, 1):
        values = (
            f'<c r="{"ABC"[n]}{at}" t="s"><v>{strings.index(value)}</v></c>'
            if value in strings
            else f'<c r="{"ABC"[n]}{at}"><v>{value}</v></c>'
            for n, value in enumerate(row)
            if value
        )
        cells += f'<row r="{at}">{"".join(values)}</row>'
    runs = (("", "Count 2"), ("superscript", "30"), ("", " of H"), ("subscript", "2"), ("", "O"))
    rich = "".join(
        f"<r><rPr><vertAlign val='{kind}'/></rPr><t xml:space='preserve'>{text}</t></r>"
        for kind, text in runs
    )
    inline = rich.replace("Count", "Inline")
    cells += f'<row r="5"><c r="A5" t="s"><v>{len(strings)}</v></c><c r="B5"><f>1+1</f></c></row>'
    cells += f'<row r="6"><c r="A6" t="inlineStr"><is>{inline}</is></c><c r="B6" t="e"><v>#N/A</v>'
    cells += "</c></row>"
    parts = {
        "workbook": f"<workbook {_MAIN} {_NAMES}><sheets><sheet name='Prices' sheetId='1' "
        "r:id='r1'/><sheet name='Secret' sheetId='2' state='hidden' r:id='r2'/></sheets>"
        "</workbook>",
        "_rels/workbook": _relations(
            ("r1", "worksheet", "worksheets/sheet1.xml"),
            ("r2", "worksheet", "worksheets/sheet2.xml"),
            ("r3", "sharedStrings", "sharedStrings.xml"),
        ),
        "sharedStrings": f"<sst {_MAIN}>{''.join(f'<si><t>{text}</t></si>' for text in strings)}"
        f"<si>{rich}</si></sst>",
        "worksheets/sheet1": f"<worksheet {_MAIN}><sheetData>{cells}</sheetData><mergeCells>"
        "<mergeCell ref='A1:C1'/><mergeCell ref='A2:A3'/><mergeCell ref='B2:C2'/></mergeCells>"
        "<headerFooter><oddHeader>&amp;CTeahouse &amp;P</oddHeader></headerFooter></worksheet>",
        "worksheets/sheet2": f"<worksheet {_MAIN}><sheetData><row r='1'><c r='A1' t='inlineStr'>"
        "<is><t>Concealed</t></is></c></row></sheetData></worksheet>",
        "worksheets/_rels/sheet1": _relations(
            ("rD", "drawing", "../drawing1.xml"), ("rC", "comments", "../comments1.xml")
        ),
        "comments1": f"<comments {_MAIN}><commentList><comment ref='A1'><t>Remark</t></comment>"
        "</commentList></comments>",
        "drawing1": f"<xdr:wsDr {_NAMES}><xdr:sp><a:p><a:r><a:t>Textbox</a:t></a:r></a:p></xdr:sp>"
        "<xdr:pic><a:blip/></xdr:pic></xdr:wsDr>",
        "_rels/drawing1": _relations(
            ("rC", "chart", "chart1.xml"), ("rS", "diagramData", "data1.xml")
        ),
        "chart1": CHART,
        "data1": DIAGRAM,
    }
    kinds = {"workbook": "sheet.main", "sharedStrings": "sharedStrings"}
    kinds |= {f"worksheets/sheet{n}": "worksheet" for n in (1, 2)}
    data = _office_file(
        "xl/workbook.xml",
        {f"xl/{name}.xml": f"spreadsheetml.{kind}" for name, kind in kinds.items()},
        {f"xl/{name}.xml{'.rels' * ('_rels' in name)}": text for name, text in parts.items()},
    )
    known = [
        "# Prices",
        "| Report |  |  |\n",
        "| Tea | Price | Price |\n| Tea | Cup | Pot |\n| Keemun | 3 | 8.5 |",
        *("Count 2^30 of H2O", "Inline 2^30 of H2O"),
        *(*CHART_TEXT, "Wither", "Roll", "Textbox", "Header: Teahouse"),
        *("# Secret", "Concealed"),
    ]
    left_out = {
        "hidden sheets read: 1 (first: Secret)": "",
        "comments left out: 1 (first: Prices)": "Remark",
        "pictures left out: 1 (first: Prices)": "",
        "formulas without a stored value: 1 (first: Prices)": "",
        "error values left out: 1 (first: Prices)": "",
    }
    return data, known, left_out


def old_sheets() -> Features:
    data = (Path(__file__).parent / "office97" / "prices.xls").read_bytes()
    left_out = {
        "comments left out: 2 (first: Prices)": "Remark Second",
        "error values left out: 2 (first: Prices)": "#DIV/0! #N/A",
        "superscript and subscript fonts not read: 2 (first: the workbook)": "",
        "number formats not read: 1 (first: the workbook)": "",
        "hidden sheets read: 1 (first: Secret)": "",
    }
    return data, ["| Keemun | 3 | 8.5 |", "Count 230 of H2O", "Concealed"], left_out


def binary_sheets() -> Features:
    def record(kind: int, content: bytes = b"") -> bytes:
        code = bytes([kind]) if kind < 128 else bytes([kind & 127 | 128, kind >> 7])
        return code + bytes([len(content)]) + content

    def wide(text: str) -> bytes:
        return struct.pack("<I", len(text)) + text.encode("utf-16-le")

    cells = record(148, struct.pack("<4I", 0, 0, 0, 1)) + record(145) + record(0, bytes(25))
    cells += record(6, bytes(8) + wide("Keemun")) + record(5, struct.pack("<IId", 1, 0, 8.5))
    sheet = struct.pack("<II", 0, 1) + wide("r1") + wide("Prices")
    data = _office_file(
        "xl/workbook.bin",
        {},
        {
            "xl/workbook.bin": record(156, sheet) + record(144) + record(132),
            "xl/_rels/workbook.bin.rels": _relations(("r1", "worksheet", "worksheets/sheet1.bin")),
            "xl/worksheets/sheet1.bin": cells + record(146),
        },
    )
    left_out = {
        "superscripts, comments, charts, error values not read: 1 (first: the workbook)": "",
        "number formats not read: 1 (first: the workbook)": "",
    }
    return data, ["# Prices", "| Keemun | 8.5 |"], left_out


_OPEN = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{path}:1.0"'
    for name, path in {
        **{n: n for n in ("office", "style", "text", "table", "chart", "presentation")},
        "draw": "drawing",
    }.items()
)
_OPEN += ' xmlns:calcext="urn:org:documentfoundation:names:experimental:calc"'
_OPEN += ' xmlns:xlink="http://www.w3.org/1999/xlink"'

_SCRIPTS = "".join(
    f'<style:style style:name="{name}" style:family="text"><style:text-properties '
    f'style:text-position="{name} 58%"/></style:style>'
    for name in ("super", "sub")
)


def _open_cell(text: str, more: str = "") -> str:
    return f"<table:table-cell {more}><text:p>{text}</text:p></table:table-cell>"


_OPEN_TABLE = (
    "<table:table-row>"
    + _open_cell("Tea", 'table:number-rows-spanned="2"')
    + _open_cell("Price", 'table:number-columns-spanned="2"')
    + "<table:covered-table-cell/></table:table-row><table:table-row><table:covered-table-cell/>"
    + f"{_open_cell('Cup')}{_open_cell('Pot')}</table:table-row>"
)

_COUNT = (
    'Count 2<text:span text:style-name="super">30</text:span> and H'
    '<text:span text:style-name="sub">2</text:span>O'
)

_REMARK = "<office:annotation><text:p>Remark</text:p></office:annotation>"


def _object(number: int) -> str:
    return f'<draw:frame><draw:object xlink:href="./Object {number}"/></draw:frame>'


def _open_file(kind: str, body: str, styles: str = "", master: str = "") -> bytes:
    """Return an OpenDocument file with an equation (object 1) and a chart (object 2)."""
    chart = (
        "<chart:chart><chart:title><text:p>Harvest</text:p></chart:title><table:table>"
        f"<table:table-row>{_open_cell('Spring')}{_open_cell('41')}</table:table-row></table:table>"
        "</chart:chart>"
    )
    content = f"<office:document-content {_OPEN}>{{}}</office:document-content>"
    return _packed(
        {
            "mimetype": f"application/vnd.oasis.opendocument.{kind}",
            "META-INF/manifest.xml": "<manifest/>",
            "content.xml": content.format(
                f"<office:automatic-styles>{_SCRIPTS}{styles}</office:automatic-styles><office:body>"
                f"<office:{kind}>{body}</office:{kind}></office:body>"
            ),
            "styles.xml": f"<office:document-styles {_OPEN}><office:styles>{master}</office:styles>"
            "</office:document-styles>",
            "Object 1/content.xml": "<math><semantics><mrow><msup><mi>a</mi><mn>2</mn></msup>"
            "<mo>+</mo><mfrac><mi>b</mi><msqrt><mi>c</mi></msqrt></mfrac></mrow><annotation>"
            "a^2</annotation></semantics></math>",
            "Object 2/content.xml": content.format(chart),
        }
    )


def open_text() -> Features:
    def level(number: int, kind: str, more: str) -> str:
        tag = "text:list-level-style-number"
        return f'<{tag} text:level="{number}" style:num-format="{kind}" {more}/>'

    def items(*texts: str, more: str = "") -> str:
        inner = (f"<text:list-item><text:p>{text}</text:p></text:list-item>" for text in texts)
        return f'<text:list text:style-name="L" {more}>{"".join(inner)}</text:list>'

    go_on = 'text:continue-numbering="true"'
    third, both = 'style:num-suffix=")" text:start-value="3"', 'text:display-levels="2"'
    body = (
        "<text:tracked-changes><text:deletion><text:p>Deleted</text:p></text:deletion><text:deletion>"
        "<text:p/><text:p/></text:deletion></text:tracked-changes><text:h "
        'text:outline-level="1">Buying</text:h>'
        f'<text:h text:outline-level="2">Green</text:h>{items("Boil", "Pour")}<text:p>Between.'
        f"</text:p>{items('Drink', more=go_on)}"
        f"<text:p>{_COUNT}, <text:date>Field</text:date></text:p>"
        "<text:p>Noted<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>"
        f"Footnote</text:p></text:note-body></text:note></text:p><text:p>Said{_REMARK}</text:p>"
        f"<text:p>Is {_object(1)}</text:p><text:p>{_object(2)}</text:p>"
        "<text:p><draw:frame><draw:text-box><text:p>Textbox</text:p></draw:text-box></draw:frame>"
        f"<draw:frame><draw:image/></draw:frame></text:p><table:table>{_OPEN_TABLE}</table:table>"
        "<draw:frame><draw:text-box><text:p>Floating</text:p></draw:text-box></draw:frame>"
    )
    chinese = level(1, "一, 二, 三, ...", 'style:num-suffix="、"')
    body += items("Tasted").replace('"L"', '"M"')
    list_style = f'<text:list-style style:name="M">{chinese}</text:list-style>'
    list_style += f'<text:list-style style:name="L">{level(1, "a", third)}</text:list-style>'
    outline = f"{level(1, '1', '')}{level(2, '1', both)}"
    master = f"<text:outline-style>{outline}</text:outline-style>"
    master += "<style:header><text:p>Teahouse</text:p></style:header>"
    known = [
        *("# 1 Buying", "## 1.1 Green", "c) Boil\nd) Pour", "Between.", "e) Drink"),
        *("Count 2^30 and H2O, Field", "Noted (Footnote)", "Said", "Is a^2 + b/sqrt(c)"),
        *(
            "Chart: Harvest",
            "Spring 41",
            "Textbox",
            TABLE,
            "Floating",
            "一、 Tasted",
            "\n\nHeader: Teahouse",
        ),
    ]
    left_out = {
        "comments left out: 1 (first: Said": "Remark",
        "deleted passages left out: 1 (first: Deleted)": "Deleted",
        "pictures left out: 1 (first: Textbox)": "",
    }
    return _open_file("text", body, list_style, master), known, left_out


def open_slides() -> Features:
    body = (
        '<draw:page><draw:frame presentation:class="title"><draw:text-box><text:p>Buying</text:p>'
        "</draw:text-box></draw:frame><draw:frame><draw:text-box><text:list><text:list-item><text:p>"
        f"Green</text:p></text:list-item></text:list><text:p>{_COUNT}</text:p></draw:text-box>"
        f"</draw:frame>{_object(1)}{_object(2)}{_REMARK}<draw:frame><table:table>{_OPEN_TABLE}"
        "</table:table></draw:frame><draw:frame><draw:image/></draw:frame>"
        "<presentation:notes><draw:frame><draw:text-box><text:p>Spoken</text:p></draw:text-box>"
        '</draw:frame></presentation:notes></draw:page><draw:page draw:style-name="dark">'
        "<draw:frame><draw:text-box><text:p>Concealed</text:p></draw:text-box></draw:frame></draw:page>"
    )
    style = '<style:style style:name="dark"><style:drawing-page-properties {}/></style:style>'
    hidden = style.format('presentation:visibility="hidden"')
    known = [
        *("# Buying", "- Green", "Count 2^30 and H2O", "a^2 + b/sqrt(c)", "Chart: Harvest"),
        *("Spring 41", TABLE, "Notes: Spoken\n\n\f", "Concealed"),
    ]
    left_out = {
        "comments left out: 1 (first: Count 2 30 and H 2 O)": "Remark",
        "pictures left out: 1 (first: Pot)": "",
        "hidden slides read: 1 (first: Concealed)": "",
    }
    return _open_file("presentation", body, hidden), known, left_out


def open_sheets() -> Features:
    body = (
        f'<table:table table:name="Prices"><table:shapes>{_object(2)}<draw:frame><draw:image/>'
        f"</draw:frame></table:shapes>{_OPEN_TABLE}<table:table-row><table:table-cell >"
        f"{_REMARK}<text:p>{_COUNT}</text:p></table:table-cell><table:table-cell "
        'calcext:value-type="error"><text:p>#N/A</text:p></table:table-cell>'
        "</table:table-row></table:table>"
        '<table:table table:name="Secret" table:style-name="dark"><table:table-row>'
        f"{_open_cell('Concealed')}</table:table-row></table:table>"
    ).replace("<table:table-cell ", '<table:table-cell office:value-type="string" ')
    style = '<style:style style:name="dark" style:family="table"><style:table-properties {}/>'
    hidden = style.format('table:display="false"') + "</style:style>"
    known = ["# Prices", TABLE, "Count 2^30 and H2O", "Chart: Harvest", "Spring 41", "Concealed"]
    left_out = {
        "comments left out: 1 (first: Prices)": "Remark",
        "pictures left out: 1 (first: Prices)": "",
        "hidden sheets read: 1 (first: Secret)": "",
        "error values left out: 1 (first: Prices)": "",
    }
    return _open_file("spreadsheet", body, hidden), known, left_out


def rich_text() -> Features:
    text = (
        r"{\rtf1\ansi{\header Teahouse\par}{\pard\outlinelevel0 Buying\par}Count 2{\super 30} and "
        r"H\sub 2\nosupersub O.{\super 5} Noted{\super\chftn}{\footnote Footnote}\par "
        r"{\field{\*\fldinst DATE}{\fldrslt Field}} {\pict 00}\par "
        r"{\listtext\pard\plain \u19968?\u12289?\tab}Tasted"
        r"{\*\annotation{\*\atnid x}Remark}\par"
        r" 10{\up8\fs14 9} and CO{\dn6 2}{\b\deleted\revauthdel1 Deleted \}}\par}"
    )
    known = ["# Buying", "Count 2^30 and H2O.[5] Noted (Footnote)", "Field", "一、 Tasted"]
    known += ["10^9 and CO2\n\nHeader: Teahouse"]
    left_out = {
        "pictures left out: 1 (first: paragraph 4)": "",
        "comments left out: 1 (first: paragraph 5)": "Remark",
        "deleted passages left out: 1 (first: paragraph 6)": "Deleted",
    }
    return text.encode(), known, left_out


def pdf_file() -> Features:
    """Return a PDF with an outline, a table, a superscript, a stamp, a form field and a comment."""
    placed = [(10, 20, 270, "Buying"), (10, 20, 250, "Green tea, 2"), (6, 75, 254, "30")]
    placed += [(10, 24, 204, "Tea"), (10, 114, 204, "Cup")]
    placed += [(10, 24, 184, "Keemun"), (10, 114, 184, "3"), (10, 20, 150, "Below.")]
    content = "".join(f"BT /F {size} Tf {x} {y} Td ({t}) Tj ET\n" for size, x, y, t in placed)
    content += "BT /F 30 Tf 0 1 -1 0 250 60 Tm (Stamped) Tj ET\n"
    content += "".join(f"{x} 180 90 20 re S {x} 200 90 20 re S\n" for x in (20, 110))
    content += "q 20 0 0 20 20 20 cm /I Do Q"
    note = b"/Annots[<</Type/Annot/Subtype/Text/Rect[0 0 9 9]/Contents(Remark)>>]"
    data = pdf_of(content.encode()).replace(b"/Type/Page/", b"/Type/Page" + note + b"/")
    outline = b"/Catalog/Outlines<</First<</Title(Buying)/Dest[4 0 R/Fit]>>>>"
    known = ["# Buying", "Green tea, 2^30", "Below.", "| Tea | Cup |", "| Keemun | 3 |"]
    left_out = {
        "turned lines left out: 1 (first: page 1: Stamped)": "Stamped",
        "comments left out: 1 (first: page 1)": "Remark",
        "pictures left out: 1 (first: page 1)": "",
    }
    return data.replace(b"/Catalog", outline), known, left_out


def web_page() -> Features:
    html = (
        '<!DOCTYPE html><html><head><meta charset="gb2312"><svg><title>Icon</title>'
        "</svg><title>Crown</title>"
        "<style>p {color: red}</style><script>var unseen = 1</script></head><body>"
        "<nav>Menuword</nav><header>Headline</header><form><h1>Chapter</h1><p>Inside "
        "<b>bold</b> and 2<sup>30</sup> of H<sub>2</sub>O, see<sup><a href='#n'>7</a></sup></p>"
        "<label>Label</label><select><option>Optional</option></select><button>Push</button>"
        "<textarea>Typed</textarea></form><ul><li>Outer<ul><li>Inner</li></ul></li></ul>"
        "<ol start=3><li>Third</li></ol><dl><dt>Term</dt><dd>Meaning</dd></dl>"
        "<table><caption>Caption</caption><tr><th rowspan=2>Merged</th><td>One</td></tr><tr>"
        "<td>Two<table><tr><td>Nested</td></tr></table></td></tr></table>"
        "<pre><code>indent  code</code></pre><blockquote>Quoted</blockquote>"
        "<p>Math <math><mi>alpha</mi><mo>=</mo><mn>12</mn></math>, <ruby>漢<rt>kan</rt></ruby></p>"
        '<figure><img src="a.png" alt="Pictured"><figcaption>Below</figcaption></figure>'
        "<svg><text>Drawn</text></svg><p hidden>Concealed</p>"
        '<p style="color: red; display: none">Vanished</p><del>Deleted</del> <ins>Inserted</ins>'
        "<details><summary>Summary</summary>Detail</details><aside>Sidebar</aside>"
        "<noscript>Scriptless</noscript><iframe src=a>Framed</iframe><p style='visibility:hidden'>"
        "Invisible</p><h2>Of 2005</h2><h2>2<sup>32</sup></h2><p>10<span style='vertical-align: "
        "super'>9</span>, CO<span style='vertical-align:sub'>2</span></p>"
        "<p id=n>7 Noted 镕</p><footer>Footline</footer></body></html>"
    )
    words = "Headline Chapter Inside bold 2^30 H2O [7] Label Outer Inner Third Term Meaning "
    words += "Caption Merged One Two Nested indent code Quoted Math alpha 12 漢 kan Pictured Below "
    words += "2^32 10^9, CO2 Deleted Inserted Summary Detail Sidebar Noted 镕 Footline"
    left_out = {
        "menus left out: 1 (first: line 1)": "Menuword",
        "form fields left out: 3": "Optional Push Typed",
        "pictures left out: 3": "Drawn Icon",
        "hidden parts left out: 3": "Concealed Vanished Invisible",
        "texts for browsers without scripts left out: 1": "Scriptless",
        "embedded pages left out: 1": "Framed",
    }
    return html.encode("gb18030"), words.split(), left_out


def mail_file() -> Features:
    mail = EmailMessage()
    mail["Subject"], mail["From"] = "Subjected", "sender@example.org"
    mail.set_content("Plain words only here\n")
    mail.add_alternative("<p>Rich 茶 words</p><img src='cid:1' alt='Photo'>", subtype="html")
    mail.get_payload()[1].add_related(b"\x89PNG", "image", "png", cid="<1>")
    event = (
        "BEGIN:VEVENT\nSUMMARY;LANGUAGE=en:Tast\n ing\nLOCATION:Garden\nDTSTART;VALUE=DATE:20260302"
    )
    mail.add_alternative(f"BEGIN:VCALENDAR\n{event}\nUID:Numbered\n", subtype="calendar")
    table = "id;name\n1;Attached\n".encode("utf-16")
    mail.add_attachment(table, "text", "csv", filename="a.csv")
    mail.add_attachment(b"\0\1", "application", "octet-stream", filename="b.bin")
    forwarded = EmailMessage()
    forwarded["Subject"] = "Forwarded"
    forwarded.set_content("Köln und Düsseldorf liegen beide am Rhein.", charset="iso-8859-1")
    mail.add_attachment(forwarded)
    footer = EmailMessage()
    footer.set_content("ありがとうございます", charset="shift_jis")
    mail.attach(footer)
    known = (
        "Rich 茶 words\n\nPhoto\n\nSUMMARY: Tasting\nLOCATION: Garden\nDTSTART: 20260302\n\n"
        "# 镕.csv\n\n| id | name |\n| --- | --- |\n| 1 | Attached |\n\n"
        "Subject: 朱镕基\n\nKöln und Düsseldorf liegen beide am Rhein.\n\nありがとうございます"
    )
    left_out = {
        "alternative texts with other words left out: 2 (first: text/plain)": "only here Numbered",
        "inline images left out: 1 (first: image/png)": "",
        "attachments without a reader: 1 (first: b.bin)": "b.bin",
    }
    data = bytes(mail)
    for name in ("朱镕基", "镕.csv"):
        word = f"=?gb2312?B?{b64encode(name.encode('gbk')).decode()}?="
        data = data.replace(b"Forwarded" if name == "朱镕基" else b"a.csv", word.encode())
    return data, [known], left_out


def mailbox_file() -> Features:
    data, known, left_out = mail_file()
    place = r"(?<=first: )\w+/\w+"
    notes = {re.sub(place, "message 2", note): words for note, words in left_out.items()}
    return b"From a\nSubject: One\n\nFirstly\n\nFrom b\n" + data, ["Firstly", *known], notes


def book_file() -> Features:
    ns = 'xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/"'
    names = ("one", "gone", "two")
    items = "".join(f'<item id="{name}" href="a%20b/{name}.xhtml"/>' for name in names)
    package = (
        f"<package {ns}><metadata><dc:title>Titled</dc:title><dc:creator>Author</dc:creator>"
        f"</metadata><manifest>{items}"
        '<item id="toc" href="a%20b/toc.xhtml" properties="nav"/></manifest><spine>'
        '<itemref idref="toc"/><itemref idref="one"/><itemref idref="gone"/><itemref idref="two"/>'
        "</spine></package>"
    )
    declared = (
        '<?xml version="1.0" encoding="shift_jis"?><html><body><p>①番 Second</p></body></html>'
    )
    data = _packed(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": '<c:container xmlns:c="x">'
            '<c:rootfile full-path="in/book.opf"/></c:container>',
            "in/book.opf": package,
            "in/a b/one.xhtml": "<html><body><h1>First</h1><nav>Menu</nav></body></html>",
            "in/a b/two.xhtml": declared.encode("cp932"),
            "in/a b/toc.xhtml": "<html><body><nav>Contents</nav></body></html>",
        }
    )
    left_out = {
        "menus left out: 1 (first: chapter 1)": "Menu",
        "missing chapters: 1 (first: in/a b/gone.xhtml)": "",
        "tables of contents left out: 1": "Contents",
    }
    return data, ["First", "①番 Second"], left_out


def csv_file() -> Features:
    rows = 'Titled\n\nid;note;price\n1;"multi\nline; quoted";1,20\n2;"un""even";2,40\n'
    rows += '3;"Open;2\nRemark\n'
    return (
        b"\xef\xbb\xbf" + rows.encode() + b"\xff\n",
        'Titled id note multi line; quoted 1,20 | "Open | 2 Remark'.split(),
        {
            "bytes that are not utf-8: 1 (first: line 9)": "",
            "unclosed quotes, read as characters: 1 (first: line 7)": "",
        },
    )


def json_lines() -> Features:
    lines = (
        '{"a": {"b": "Deep", "n": 41.5}, "list": ["x1", "x2"], "rows": [{"k": "r1"}, {"k": "r2"}],'
        '"id": "SKU-77"}\n{"broken": \n{"text": "Texted", "same": {"n": 2}, "content": "Second '
        'text"}\n["Listed", [7]]\n"Alone"\n'
    )
    left_out = {"lines that are not JSON, left out: 1 (first: line 2)": "broken"}
    words = "a.b Deep a.n 41.5 x1 x2 rows.k r1 r2 SKU-77 Texted same.n 2 Second Listed 7 Alone"
    return lines.encode(), words.split(), left_out


def json_file() -> Features:
    rows = [{"k": "Rowed", "sub": {"n": 4.5}}, {"k": "Second", "yes": True}, "Mixed"]
    value = {"id": "SKU-77", "a": {"b": "Deep 茶"}, "rows": rows, "list": ["Listed", [7, "Inner"]]}
    value |= {"long": "Longer " * 50, "multi": "Line\n other", "same": {"a.b": "Dotted"}}
    words = "SKU-77 a.b Deep 茶 rows.k Rowed rows.sub.n 4.5 Second rows.yes true Mixed Listed 7 "
    words += "Inner Longer Line other same.a.b Dotted"
    return json.dumps(value, ensure_ascii=False).encode(), words.split(), {}


def text_file() -> Features:
    text = "Titled\r\n\r\nTabbed\tcells 2\u00b3\x0cPaged\u2028Wide 茶\ufeff\nbroken ".encode()
    note = {"bytes that are not utf-8: 2 (first: line 4)": ""}
    return (
        b"\xef\xbb\xbf" + text + b"\xff\nLast\xfe",
        "Titled cells Paged Wide 茶 Last".split(),
        note,
    )


def chinese_text() -> Features:
    return "朱镕基的茶，产地是安吉。".encode("gb18030"), ["朱镕基的茶，产地是安吉。"], {}


def notebook() -> Features:
    outputs = [
        {"output_type": "stream", "text": ["\x1b[31mStreamed\x1b[0m\n"]},
        {
            "output_type": "execute_result",
            "data": {"text/plain": "Plain", "text/html": "<b>Plain</b>"},
        },
        {"output_type": "display_data", "data": {"text/html": "<p>Paged</p>"}},
        {"output_type": "display_data", "data": {"text/plain": "Figured", "image/png": "iVBOR"}},
        {"data": {"text/plain": "Short...", "text/html": "<table><tr><td>Tabled</table>"}},
        {"data": {"text/plain": "<Markdown object>", "text/markdown": "Marked"}},
        {"data": {"text/plain": "<HTML object>", "text/html": "<p>Hyper</p><img src='a.png'>"}},
        {"data": {"text/plain": "Widget()", "application/widget": {"id": "Modeled"}}},
        {"output_type": "pyout", "text": "Olden", "png": "iVBOR"},
        {"output_type": "error", "ename": "KeyError", "evalue": "tea", "traceback": []},
    ]
    cells = [
        {"cell_type": "markdown", "source": ["# Headed\n", "Text"], "attachments": {"a.png": {}}},
        {"cell_type": "code", "source": "print(1)", "outputs": outputs},
        {"cell_type": "raw", "source": "Rawly"},
    ]
    left_out = {
        "pictures left out: 4 (first: cell 1)": "iVBOR",
        "outputs of type application/widget left out: 1 (first: cell 2)": "Modeled",
    }
    words = "Headed Text print(1) Streamed Plain Paged Figured Tabled Marked Hyper Widget() Olden "
    words += "KeyError tea Rawly"
    return json.dumps({"cells": cells, "metadata": {}}).encode(), words.split(), left_out


def xml_file() -> Features:
    text = '<?xml version="1.0" encoding="iso-8859-9"?><kitap adı="çay">Şeker, ığüö</kitap>'
    return text.encode("cp1254"), "kitap adı çay Şeker ığüö".split(), {}


FEATURES: dict[str, Callable[[], Features]] = {
    "a.docx": word_file,
    "a.pptx": slides_file,
    "a.xlsx": sheets_file,
    "a.xls": old_sheets,
    "a.xlsb": binary_sheets,
    "a.odt": open_text,
    "a.odp": open_slides,
    "a.ods": open_sheets,
    "a.rtf": rich_text,
    "a.pdf": pdf_file,
    "a.html": web_page,
    "a.eml": mail_file,
    "a.mbox": mailbox_file,
    "a.epub": book_file,
    "a.csv": csv_file,
    "a.json": json_file,
    "a.jsonl": json_lines,
    "a.txt": text_file,
    "a.md": chinese_text,
    "a.ipynb": notebook,
    "a.xml": xml_file,
}
