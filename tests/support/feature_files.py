"""Files with the features of their formats, made without an office program."""

import json
import struct
import zipfile
from collections.abc import Callable, Mapping
from email.message import EmailMessage
from io import BytesIO
from pathlib import Path

_W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_R = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
_M = 'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'
_A = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
_C = 'xmlns:c="http://schemas.openxmlformats.org/drawingml/2006/chart"'
_MC = 'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
_DGM = 'xmlns:dgm="http://schemas.openxmlformats.org/drawingml/2006/diagram"'
_LINKS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"

OMML = (
    f"<m:oMath {_M}><m:sSup><m:e><m:r><m:t>a</m:t></m:r></m:e><m:sup><m:r><m:t>2</m:t></m:r>"
    "</m:sup></m:sSup><m:r><m:t>+b=</m:t></m:r><m:f><m:num><m:r><m:t>c+d</m:t></m:r></m:num><m:den><m:r>"
    "<m:t>n</m:t></m:r></m:den></m:f><m:rad><m:deg/><m:e><m:r><m:t>x</m:t></m:r></m:e></m:rad>"
    '<m:nary><m:naryPr><m:chr m:val="∑"/></m:naryPr><m:sub><m:r><m:t>i=1</m:t></m:r></m:sub><m:sup>'
    "<m:r><m:t>n</m:t></m:r></m:sup><m:e><m:r><m:t>y</m:t></m:r></m:e></m:nary></m:oMath>"
)
EQUATION = "a^2 + b = (c + d)/n sqrt(x) ∑_(i = 1)^n y"

CHART = (
    f"<c:chartSpace {_C} {_A}><c:chart><c:title><c:tx><c:rich><a:p><a:r><a:t>Harvest</a:t></a:r>"
    "</a:p></c:rich></c:tx></c:title><c:plotArea><c:barChart><c:ser><c:tx><c:strRef><c:strCache>"
    '<c:pt idx="0"><c:v>Keemun</c:v></c:pt></c:strCache></c:strRef></c:tx><c:cat><c:strRef>'
    '<c:strCache><c:pt idx="0"><c:v>Spring</c:v></c:pt><c:pt idx="1"><c:v>Autumn</c:v></c:pt>'
    '</c:strCache></c:strRef></c:cat><c:val><c:numRef><c:numCache><c:pt idx="0"><c:v>41</c:v>'
    '</c:pt><c:pt idx="1"><c:v>17</c:v></c:pt></c:numCache></c:numRef></c:val></c:ser></c:barChart>'
    "</c:plotArea></c:chart></c:chartSpace>"
)
CHART_TEXT = ["Chart: Harvest", "Keemun: Spring 41, Autumn 17"]

DIAGRAM = (
    f"<dgm:dataModel {_DGM} {_A}><dgm:ptLst><dgm:pt><dgm:t><a:p><a:r><a:t>Wither</a:t></a:r></a:p>"
    "</dgm:t></dgm:pt><dgm:pt><dgm:t><a:p><a:r><a:t>Roll</a:t></a:r></a:p></dgm:t></dgm:pt>"
    "</dgm:ptLst></dgm:dataModel>"
)


def _relations(*targets: tuple[str, str, str]) -> str:
    inner = "".join(
        f'<Relationship Id="{key}" Type="{_LINKS}/{kind}" Target="{target}"/>'
        for key, kind, target in targets
    )
    return f'<Relationships xmlns="{_PACKAGE}/relationships">{inner}</Relationships>'


def _types(parts: Mapping[str, str]) -> str:
    inner = "".join(
        f'<Override PartName="/{name}" ContentType="application/vnd.openxmlformats-{kind}+xml"/>'
        for name, kind in parts.items()
    )
    return (
        f'<Types xmlns="{_PACKAGE}/content-types"><Default Extension="rels" ContentType='
        '"application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" '
        f'ContentType="application/xml"/>{inner}</Types>'
    )


def _write(path: Path, parts: Mapping[str, str]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)


def _paragraph(text: str, properties: str = "", after: str = "") -> str:
    return (
        f"<w:p><w:pPr>{properties}</w:pPr><w:r><w:t xml:space='preserve'>{text}</w:t></w:r>"
        f"{after}</w:p>"
    )


def _script(text: str, kind: str) -> str:
    return (
        f'<w:r><w:rPr><w:vertAlign w:val="{kind}script"/></w:rPr><w:t>{text}</w:t></w:r>'
        "<w:r><w:t xml:space='preserve'> later</w:t></w:r>"
    )


def _in_list(number: int, level: int = 0) -> str:
    return f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{number}"/></w:numPr>'


def _cell(text: str, properties: str = "") -> str:
    return f"<w:tc><w:tcPr>{properties}</w:tcPr>{_paragraph(text)}</w:tc>"


def _drawing(inner: str) -> str:
    return (
        '<w:p><w:r><w:drawing><wp:inline xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/'
        f'wordprocessingDrawing"><a:graphic {_A}><a:graphicData uri="x">{inner}'
        "</a:graphicData></a:graphic></wp:inline></w:drawing></w:r></w:p>"
    )


def _level(level: int, kind: str, text: str, start: int = 1) -> str:
    return (
        f'<w:lvl w:ilvl="{level}"><w:start w:val="{start}"/><w:numFmt w:val="{kind}"/>'
        f'<w:lvlText w:val="{text}"/></w:lvl>'
    )


def word_file(path: Path) -> None:
    """Write a Word document with every feature."""
    merged, wide = '<w:vMerge w:val="restart"/>', '<w:gridSpan w:val="2"/>'
    chart, diagram = f'<c:chart {_C} r:id="rC"/>', f'<dgm:relIds {_DGM} r:dm="rD"/>'
    body = [
        _paragraph("Buying", '<w:pStyle w:val="Heading1"/>'),
        _paragraph("Green tea", '<w:pStyle w:val="Heading2"/>'),
        _paragraph("Black tea", '<w:pStyle w:val="Heading2"/>'),
        _paragraph("Boil", _in_list(2)),
        _paragraph("Pour", _in_list(2)),
        _paragraph("Slowly", _in_list(2, 1)),
        _paragraph("Between the items."),
        _paragraph("Drink", _in_list(2)),
        _paragraph("A byte count of 2", after=_script("30", "super")),
        _paragraph("Water is H", after=_script("2", "sub")),
        f"<w:p>{OMML}</w:p>",
        '<w:p><w:fldSimple w:instr="DATE"><w:r><w:t>Simplefield</w:t></w:r></w:fldSimple><w:r>'
        '<w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText>REF x</w:instrText></w:r><w:r>'
        '<w:fldChar w:fldCharType="separate"/></w:r><w:r><w:t>Complexfield</w:t></w:r><w:r>'
        '<w:fldChar w:fldCharType="end"/></w:r></w:p>',
        f"<w:tbl><w:tr>{_cell('Tea', merged)}{_cell('Price', wide)}</w:tr>"
        f"<w:tr>{_cell('', '<w:vMerge/>')}"
        f"{_cell('Cup')}{_cell('Pot')}</w:tr></w:tbl>",
        f"<w:tbl><w:tr><w:tc><w:tbl><w:tr>{_cell('Innermost')}</w:tr></w:tbl>{_paragraph('')}"
        f"</w:tc>{_cell('Outermost')}</w:tr></w:tbl>",
        _paragraph("Noted", after='<w:r><w:footnoteReference w:id="1"/></w:r>'),
        _paragraph("Commented", after='<w:r><w:commentReference w:id="0"/></w:r>'),
        '<w:p><w:ins w:id="1"><w:r><w:t>Inserted</w:t></w:r></w:ins><w:del w:id="2"><w:r>'
        "<w:delText>Deleted</w:delText></w:r></w:del></w:p>",
        f"<w:p><w:r><mc:AlternateContent {_MC}><mc:Choice Requires='wps'><w:drawing><wps:txbx "
        'xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape">'
        f"<w:txbxContent>{_paragraph('Textbox')}</w:txbxContent></wps:txbx></w:drawing>"
        "</mc:Choice></mc:AlternateContent></w:r></w:p>",
        *(_drawing(inner) for inner in (chart, diagram, '<a:blip r:embed="rP"/>')),
        "<w:p><w:r><w:ruby><w:rt><w:r><w:t>chá</w:t></w:r></w:rt><w:rubyBase><w:r><w:t>茶</w:t>"
        "</w:r></w:rubyBase></w:ruby></w:r></w:p>",
        "<w:sdt><w:sdtContent>" + _paragraph("Control") + "</w:sdtContent></w:sdt>",
        "<w:unknown><w:r><w:t>Unknown</w:t></w:r></w:unknown>",
    ]
    style = (
        '<w:style w:type="paragraph" w:styleId="{0}"><w:name w:val="{1}"/><w:pPr>{2}</w:pPr>'
        "</w:style>"
    )
    _write(
        path,
        {
            "[Content_Types].xml": _types(
                {"word/document.xml": "officedocument.wordprocessingml.document.main"}
            ),
            "_rels/.rels": _relations(("r1", "officeDocument", "word/document.xml")),
            "word/document.xml": f"<w:document {_W} {_R}><w:body>{''.join(body)}</w:body>"
            "</w:document>",
            "word/_rels/document.xml.rels": _relations(
                ("rS", "styles", "styles.xml"),
                ("rN", "numbering", "numbering.xml"),
                ("rF", "footnotes", "footnotes.xml"),
                ("rC", "chart", "charts/chart1.xml"),
                ("rD", "diagramData", "diagrams/data1.xml"),
                ("rH", "header", "header1.xml"),
                ("rP", "image", "media/a.png"),
            ),
            "word/styles.xml": f"<w:styles {_W}>"
            + style.format("Heading1", "heading 1", _in_list(1))
            + style.format("Heading2", "heading 2", _in_list(1, 1))
            + "</w:styles>",
            "word/numbering.xml": f'<w:numbering {_W}><w:abstractNum w:abstractNumId="0">'
            + _level(0, "decimal", "%1")
            + _level(1, "decimal", "%1.%2")
            + '</w:abstractNum><w:abstractNum w:abstractNumId="1">'
            + _level(0, "lowerLetter", "%1)", 3)
            + _level(1, "lowerRoman", "(%2)")
            + '</w:abstractNum><w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num>'
            '<w:num w:numId="2"><w:abstractNumId w:val="1"/></w:num></w:numbering>',
            "word/footnotes.xml": f'<w:footnotes {_W}><w:footnote w:id="1">'
            f"{_paragraph('Footnote')}</w:footnote></w:footnotes>",
            "word/header1.xml": f"<w:hdr {_W}>{_paragraph('Teahouse')}</w:hdr>",
            "word/charts/chart1.xml": CHART,
            "word/diagrams/data1.xml": DIAGRAM,
        },
    )


WORD = [
    "# 1 Buying",
    "## 1.1 Green tea",
    "## 1.2 Black tea",
    "c) Boil\nd) Pour\n",
    "(i) Slowly",
    "e) Drink",
    "of 2^30 later",
    "H2O".replace("O", " later"),
    EQUATION,
    "SimplefieldComplexfield",
    "| Tea | Price | Price |\n| --- | --- | --- |\n| Tea | Cup | Pot |",
    "Innermost",
    "Outermost",
    "Noted[1]",
    "Footnote",
    "Commented",
    "Inserted",
    "Textbox",
    *CHART_TEXT,
    "Wither",
    "Roll",
    "茶(chá)",
    "Control",
    "\n\nHeader: Teahouse",
]

WORD_NOTES = [
    "comments left out: 1 (first: Commented)",
    "deleted passages left out: 1 (first: Inserted)",
    "pictures left out: 1",
    "unrecognised element was ignored: w:unknown",
]


def slides_file(path: Path) -> None:
    """Write slides with every feature."""
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
            f"<mc:AlternateContent {_MC}><mc:Choice xmlns:a14='http://schemas.microsoft.com/office/"
            f"drawing/2010/main' Requires='a14'><a14:m>{OMML}</a14:m></mc:Choice>"
            "<mc:Fallback/></mc:AlternateContent>"
        )
    )
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
    graphic[:] = [etree.fromstring(f'<dgm:relIds {_DGM} xmlns:r="{_LINKS}" r:dm="{target}"/>')]
    for number in (1, 2):
        slide = deck.slides.add_slide(deck.slide_layouts[6])
        footer = slide.shapes.add_textbox(*place)
        footer.text_frame.text = "Teahouse"
        slide.shapes.add_textbox(*place).text_frame.text = f"Slide {number}"
        shape = footer._element.find(".//{*}nvPr")
        etree.SubElement(shape, shape.tag.replace("nvPr", "ph")).attrib.update(
            {"type": "ftr", "idx": "11"}
        )
    deck.save(str(path))


SLIDES = [
    "# Buying",
    "- Green\n  - Longjing",
    f"Count 2^30 and H2O{EQUATION}",
    "Notes: Spoken",
    "| Tea | Price | Price |\n| --- | --- | --- |\n| Tea | Cup | Pot |",
    "Chart: Harvest",
    "Keemun: Spring 41",
    "Autumn 17",
    "Grouped",
    "- Wither\n- Roll",
    "Teahouse",
    "Slide 1",
    "Slide 2",
]

SLIDES_NOTES = ["hidden slides: 1 (first: slide 2)"]


def sheets_file(path: Path) -> None:
    """Write a workbook with every feature."""
    main = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    drawing = 'xmlns:xdr="http://schemas.openxmlformats.org/drawingml/2006/spreadsheetDrawing"'
    rows = [
        ["Report", "", ""],
        ["Tea", "Price", ""],
        ["", "Cup", "Pot"],
        ["Keemun", "3", "8"],
        ["2^30 of H2O", "", ""],
    ]
    strings = ["Report", "Tea", "Price", "Cup", "Pot", "Keemun"]
    rich = (
        "<si><r><t>Count 2</t></r><r><rPr><vertAlign val='superscript'/></rPr><t>30</t></r><r>"
        "<t xml:space='preserve'> of H</t></r><r><rPr><vertAlign val='subscript'/></rPr><t>2</t>"
        "</r><r><t>O</t></r></si>"
    )
    cells = ""
    for at, row in enumerate(rows[:4], 1):
        values = "".join(
            f'<c r="{"ABC"[c]}{at}" t="s"><v>{strings.index(v)}</v></c>'
            if v in strings
            else f'<c r="{"ABC"[c]}{at}"><v>{v}</v></c>'
            for c, v in enumerate(row)
            if v
        )
        cells += f'<row r="{at}">{values}</row>'
    cells += f'<row r="5"><c r="A5" t="s"><v>{len(strings)}</v></c><c r="B5"><f>1+1</f></c></row>'
    sheet = (
        f"<worksheet {main} {_R}><sheetData>{cells}</sheetData><mergeCells><mergeCell ref='A1:C1'/>"
        "<mergeCell ref='A2:A3'/><mergeCell ref='B2:C2'/></mergeCells><headerFooter><oddHeader>"
        '&amp;CTeahouse &amp;P</oddHeader></headerFooter><drawing r:id="rD"/></worksheet>'
    )
    hidden = (
        f"<worksheet {main}><sheetData><row r='1'><c r='A1' t='inlineStr'><is><t>Concealed</t></is>"
        "</c></row></sheetData></worksheet>"
    )
    base = "officedocument.spreadsheetml"
    _write(
        path,
        {
            "[Content_Types].xml": _types(
                {
                    "xl/workbook.xml": f"{base}.sheet.main",
                    "xl/worksheets/sheet1.xml": f"{base}.worksheet",
                    "xl/worksheets/sheet2.xml": f"{base}.worksheet",
                    "xl/sharedStrings.xml": f"{base}.sharedStrings",
                }
            ),
            "_rels/.rels": _relations(("r1", "officeDocument", "xl/workbook.xml")),
            "xl/workbook.xml": f"<workbook {main} {_R}><sheets><sheet name='Prices' sheetId='1' "
            "r:id='r1'/><sheet name='Secret' sheetId='2' state='hidden' r:id='r2'/></sheets>"
            "</workbook>",
            "xl/_rels/workbook.xml.rels": _relations(
                ("r1", "worksheet", "worksheets/sheet1.xml"),
                ("r2", "worksheet", "worksheets/sheet2.xml"),
                ("r3", "sharedStrings", "sharedStrings.xml"),
            ),
            "xl/sharedStrings.xml": f"<sst {main}>"
            + "".join(f"<si><t>{s}</t></si>" for s in strings)
            + f"{rich}</sst>",
            "xl/worksheets/sheet1.xml": sheet,
            "xl/worksheets/sheet2.xml": hidden,
            "xl/worksheets/_rels/sheet1.xml.rels": _relations(
                ("rD", "drawing", "../drawings/drawing1.xml"),
                ("rC", "comments", "../comments1.xml"),
            ),
            "xl/comments1.xml": f"<comments {main}><commentList><comment ref='A1'><text><t>Remark"
            "</t></text></comment></commentList></comments>",
            "xl/drawings/drawing1.xml": f"<xdr:wsDr {drawing} {_A}><xdr:sp><xdr:txBody><a:p><a:r>"
            "<a:t>Textbox</a:t></a:r></a:p></xdr:txBody></xdr:sp><xdr:pic><a:blip/></xdr:pic></xdr:wsDr>",
            "xl/drawings/_rels/drawing1.xml.rels": _relations(
                ("rC", "chart", "../charts/chart1.xml"),
                ("rS", "diagramData", "../diagrams/data1.xml"),
            ),
            "xl/charts/chart1.xml": CHART,
            "xl/diagrams/data1.xml": DIAGRAM,
        },
    )


SHEETS = [
    "# Prices",
    "| Report |  |  |\n",
    "| Tea | Price | Price |\n| Tea | Cup | Pot |\n| Keemun | 3 | 8 |",
    "Count 2^30 of H2O",
    *CHART_TEXT,
    "Wither",
    "Roll",
    "Textbox",
    "Header: Teahouse",
    "# Secret",
    "Concealed",
]

SHEETS_NOTES = [
    "hidden sheets: 1 (first: Secret)",
    "comments left out: 1 (first: Prices)",
    "pictures left out: 1 (first: Prices)",
    "formulas without a stored value: 1 (first: Prices)",
]


def open_document_file(path: Path) -> None:
    """Write an OpenDocument text with every feature."""
    urn = "urn:oasis:names:tc:opendocument:xmlns"
    names = " ".join(
        f'xmlns:{name}="{urn}:{long}:1.0"'
        for name, long in {
            **{n: n for n in ("office", "style", "text", "table", "chart")},
            "draw": "drawing",
            "fo": "xsl-fo-compatible",
        }.items()
    )
    names += ' xmlns:xlink="http://www.w3.org/1999/xlink"'

    def level(number: int, kind: str, more: str) -> str:
        tag = "text:list-level-style-number"
        return f'<{tag} text:level="{number}" style:num-format="{kind}" {more}/>'

    def item(text: str) -> str:
        return f"<text:list-item><text:p>{text}</text:p></text:list-item>"

    def cell(text: str, more: str = "") -> str:
        return f"<table:table-cell {more}><text:p>{text}</text:p></table:table-cell>"

    raised, lowered = (
        f'<style:style style:name="{name}" style:family="text"><style:text-properties '
        f'style:text-position="{name} 58%"/></style:style>'
        for name in ("super", "sub")
    )
    high, wide = 'table:number-rows-spanned="2"', 'table:number-columns-spanned="2"'
    third, both = 'style:num-suffix=")" text:start-value="3"', 'text:display-levels="2"'
    covered = "<table:covered-table-cell/>"
    body = (
        '<text:h text:outline-level="1">Buying</text:h>'
        '<text:h text:outline-level="2">Green</text:h>'
        f'<text:list text:style-name="L">{item("Boil")}{item("Pour")}</text:list>'
        "<text:p>Between.</text:p>"
        f'<text:list text:style-name="L" text:continue-numbering="true">{item("Drink")}</text:list>'
        '<text:p>Count 2<text:span text:style-name="super">30</text:span> and H<text:span '
        'text:style-name="sub">2</text:span>O, <text:date>Field</text:date></text:p>'
        "<text:p>Noted<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>"
        "Footnote</text:p></text:note-body></text:note></text:p>"
        "<text:p>Said<office:annotation><text:p>Remark</text:p></office:annotation></text:p>"
        '<text:p>Is <draw:frame><draw:object xlink:href="./Object 1"/></draw:frame></text:p>'
        '<text:p><draw:frame><draw:object xlink:href="./Object 2"/></draw:frame></text:p>'
        "<text:p><draw:frame><draw:text-box><text:p>Textbox</text:p></draw:text-box></draw:frame>"
        "<draw:frame><draw:image/></draw:frame></text:p><table:table><table:table-row>"
        f"{cell('Tea', high)}{cell('Price', wide)}{covered}</table:table-row>"
        f"<table:table-row>{covered}{cell('Cup')}{cell('Pot')}</table:table-row></table:table>"
    )
    math = (
        '<math xmlns="http://www.w3.org/1998/Math/MathML"><semantics><mrow><msup><mi>a</mi><mn>2'
        "</mn></msup><mo>+</mo><mfrac><mi>b</mi><msqrt><mi>c</mi></msqrt></mfrac></mrow><annotation>"
        "a^2</annotation></semantics></math>"
    )
    chart = (
        f"<office:document-content {names}><chart:chart><chart:title><text:p>Harvest</text:p>"
        "</chart:title><table:table><table:table-row>"
        f"{cell('Spring')}{cell('41')}</table:table-row></table:table></chart:chart>"
        "</office:document-content>"
    )
    _write(
        path,
        {
            "mimetype": "application/vnd.oasis.opendocument.text",
            "META-INF/manifest.xml": "<manifest/>",
            "content.xml": f"<office:document-content {names}><office:automatic-styles>{raised}"
            f'{lowered}<text:list-style style:name="L">'
            f"{level(1, 'a', third)}</text:list-style>"
            "</office:automatic-styles><office:body><office:text><text:tracked-changes><text:deletion>"
            "<text:p>Deleted</text:p></text:deletion></text:tracked-changes>"
            f"{body}</office:text></office:body></office:document-content>",
            "styles.xml": f"<office:document-styles {names}><text:outline-style>"
            f"{level(1, '1', '')}{level(2, '1', both)}</text:outline-style>"
            "<style:header><text:p>Teahouse</text:p></style:header></office:document-styles>",
            "Object 1/content.xml": math,
            "Object 2/content.xml": chart,
        },
    )


OPEN_DOCUMENT = [
    "# 1 Buying",
    "## 1.1 Green",
    "c) Boil\nd) Pour",
    "e) Drink",
    "Count 2^30 and H2O, Field",
    "Noted (Footnote)",
    "Is a^2 + b/sqrt(c)",
    "Chart: Harvest",
    "Spring 41",
    "Textbox",
    "| Tea | Price | Price |\n| --- | --- | --- |\n| Tea | Cup | Pot |",
    "\n\nHeader: Teahouse",
]

OPEN_DOCUMENT_NOTES = [
    "comments left out: 1",
    "deleted passages left out: 1",
    "pictures left out: 1",
]


def rich_text_file(path: Path) -> None:
    """Write a rich text with its features."""
    path.write_text(
        r"{\rtf1\ansi{\header Teahouse\par}{\pard\outlinelevel0 Buying\par}Count 2{\super 30} and "
        r"H\sub 2\nosupersub O.{\super 5} Noted{\super\chftn}{\footnote Footnote}\par "
        r"{\field{\*\fldinst DATE}{\fldrslt Field}} {\pict 00}"
        r"{\*\annotation{\*\atnid x}Remark}\par}"
    )


RICH_TEXT = ["# Buying", "Count 2^30 and H2O.[5] Noted (Footnote)", "Field", "Header: Teahouse"]

RICH_TEXT_NOTES = ["pictures left out: 1", "comments left out: 1"]


def _compound_file(streams: Mapping[str, bytes]) -> bytes:
    """Return an OLE file of streams of up to 4,096 bytes."""
    free, end = 0xFFFFFFFF, 0xFFFFFFFE

    def entry(name: str, kind: int, start: int, size: int, child: int, following: int) -> bytes:
        raw = f"{name}\0".encode("utf-16-le")
        numbers = struct.pack("<HBBIII", len(raw), kind, 1, free, following, child)
        return raw.ljust(64, b"\0") + numbers + bytes(36) + struct.pack("<IQ", start, size)

    fat = [0xFFFFFFFD, end]
    entries = entry("Root Entry", 5, end, 0, 1, free)
    names = sorted(streams, key=lambda name: (len(name), name))
    for number, name in enumerate(names, 2):
        following = number if number <= len(names) else free
        entries += entry(name, 2, len(fat), 4096, free, following)
        fat += [*range(len(fat) + 1, len(fat) + 8), end]
    head = bytes.fromhex("d0cf11e0a1b11ae1") + bytes(16)
    head += struct.pack("<6H10I", 0x3E, 3, 0xFFFE, 9, 6, 0, 0, 0, 1, 1, 0, 4096, end, 0, end, 0)
    head += struct.pack("<I", 0)
    table = struct.pack(f"<{len(fat)}I", *fat)
    body = b"".join(streams[name].ljust(4096, b"\0") for name in names)
    return head.ljust(512, b"\xff") + table.ljust(512, b"\xff") + entries.ljust(512, b"\0") + body


def old_word_file(path: Path, text: str) -> None:
    """Write a document of Word 97 with paragraphs that end with ``\\r``."""
    data = text.encode("cp1252")
    header = bytearray(1024)
    for place, value in ((0, 0xA5EC), (2, 0xC1), (10, 0x200), (32, 14), (62, 22), (152, 0x5D)):
        struct.pack_into("<H", header, place, value)
    pieces = b"\x02" + struct.pack("<3IHIH", 16, 0, len(data), 0, 2048 | 0x40000000, 0)
    struct.pack_into("<I", header, 76, len(data))
    struct.pack_into("<II", header, 418, 0, len(pieces))
    path.write_bytes(_compound_file({"WordDocument": bytes(header) + data, "1Table": pieces}))


def old_slides_file(path: Path, *slides: tuple[str, str]) -> None:
    """Write slides of PowerPoint 97: titles and texts."""

    def record(kind: int, data: bytes, flags: int = 0) -> bytes:
        return struct.pack("<HHI", flags, kind, len(data)) + data

    listed = b""
    for number, parts in enumerate(slides):
        listed += record(0x3F3, struct.pack("<5I", number + 2, 0, 0, 256 + number, 0))
        for kind, text in enumerate(parts):
            listed += record(0xF9F, struct.pack("<I", kind)) + record(0xFA8, text.encode("latin-1"))
    data = record(0x3E8, record(0xFF0, listed, 15), 15)
    data += record(0x3EE, record(0x3EF, bytes(24)), 15) * len(slides)
    user = record(0xFF6, struct.pack("<3I2H2BH", 20, 0xE391C05F, 0, 0, 0x3F4, 3, 0, 0))
    path.write_bytes(_compound_file({"PowerPoint Document": data, "Current User": user}))


FEATURES: dict[str, tuple[Callable[[Path], None], list[str], list[str]]] = {
    "features.docx": (word_file, WORD, WORD_NOTES),
    "features.pptx": (slides_file, SLIDES, SLIDES_NOTES),
    "features.odt": (open_document_file, OPEN_DOCUMENT, OPEN_DOCUMENT_NOTES),
    "features.rtf": (rich_text_file, RICH_TEXT, RICH_TEXT_NOTES),
    "features.xlsx": (sheets_file, SHEETS, SHEETS_NOTES),
}
"""By file name: a function that writes the file, its text in parts, and the notes on the rest."""


Features = tuple[bytes, str, dict[str, str]]
"""A file, its words, and by note: the words of the file that are left out."""


def web_page() -> Features:
    html = (
        '<!DOCTYPE html><html><head><meta charset="gb2312"><title>Crown</title>'
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
        "<p id=n>7 Noted 镕</p><footer>Footline</footer></body></html>"
    )
    words = "Headline Chapter Inside bold 2^30 H2O [7] Label Outer Inner Third Term Meaning "
    words += "Caption Merged One Two Nested indent code Quoted Math alpha 12 漢 kan Pictured Below "
    words += "Deleted Inserted Summary Detail Sidebar Noted 镕 Footline"
    left_out = {
        "menus left out: 1 (first: line 1)": "Menuword",
        "form fields left out: 3": "Optional Push Typed",
        "pictures left out: 2": "Drawn",
        "hidden parts left out: 2": "Concealed Vanished",
    }
    return html.encode("gb18030"), words, left_out


def mail_file() -> Features:
    mail = EmailMessage()
    mail["Subject"], mail["From"] = "Subjected", "sender@example.org"
    mail.set_content("Plain words only here\n")
    mail.add_alternative("<p>Rich 茶 words</p><img src='cid:1' alt='Photo'>", subtype="html")
    mail.get_payload()[1].add_related(b"\x89PNG", "image", "png", cid="<1>")
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
    words = "Rich 茶 Photo a.csv Attached Forwarded Köln Rhein ありがとうございます"
    left_out = {
        "alternative texts with other words left out: 1": "Plain only here",
        "inline images left out: 1": "",
        "attachments without a reader: 1 (first: b.bin)": "b.bin",
    }
    return bytes(mail), words, left_out


def book_file() -> Features:
    ns = 'xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/"'
    names = ("one", "gone", "two")
    items = "".join(f'<item id="{name}" href="{name}.xhtml"/>' for name in names)
    package = (
        f"<package {ns}><metadata><dc:title>Titled</dc:title></metadata><manifest>{items}"
        '<item id="toc" href="toc.xhtml" properties="nav"/></manifest><spine>'
        '<itemref idref="toc"/><itemref idref="one"/><itemref idref="gone"/><itemref idref="two"/>'
        "</spine></package>"
    )
    declared = (
        '<?xml version="1.0" encoding="shift_jis"?><html><body><p>①番 Second</p></body></html>'
    )
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("mimetype", "application/epub+zip")
        archive.writestr(
            "META-INF/container.xml",
            '<c:container xmlns:c="x"><c:rootfile full-path="book.opf"/></c:container>',
        )
        archive.writestr("book.opf", package)
        archive.writestr("one.xhtml", "<html><body><h1>First</h1><nav>Menu</nav></body></html>")
        archive.writestr("two.xhtml", declared.encode("cp932"))
        archive.writestr("toc.xhtml", "<html><body><nav>Contents</nav></body></html>")
    left_out = {
        "menus left out: 1 (first: chapter 1)": "Menu",
        "missing chapters: 1 (first: gone.xhtml)": "",
        "tables of contents left out: 1": "Contents",
    }
    return buffer.getvalue(), "First ①番 Second", left_out


def csv_file() -> Features:
    rows = 'Titled\n\nid;note;price\n1;"multi\nline; quoted";1,20\n2;"un""even";2,40\nRemark\n'
    return (
        b"\xef\xbb\xbf" + rows.encode() + b"\xff\n",
        "Titled id note multi line; quoted 1,20 Remark",
        {
            "bytes that are not utf-8: 1 (first: line 8)": "",
        },
    )


def json_lines() -> Features:
    lines = (
        '{"a": {"b": "Deep", "n": 41.5}, "list": ["x1", "x2"], "rows": [{"k": "r1"}, {"k": "r2"}]}'
        '\n{"broken": \n{"text": "Texted", "same": 2}\n["Listed", [7]]\n"Alone"\n'
    )
    left_out = {"lines that are not JSON, left out: 1 (first: line 2)": "broken"}
    return lines.encode(), "a.b Deep a.n 41.5 x1 x2 rows.k r1 r2 Texted Listed 7 Alone", left_out


def notebook() -> Features:
    outputs = [
        {"output_type": "stream", "text": ["\x1b[31mStreamed\x1b[0m\n"]},
        {
            "output_type": "execute_result",
            "data": {"text/plain": "Plain", "text/html": "<b>Plain</b>"},
        },
        {"output_type": "display_data", "data": {"text/html": "<p>Paged</p>"}},
        {"output_type": "display_data", "data": {"image/png": "iVBOR"}},
        {"output_type": "error", "ename": "KeyError", "evalue": "tea", "traceback": []},
    ]
    cells = [
        {"cell_type": "markdown", "source": ["# Headed\n", "Text"], "attachments": {"a.png": {}}},
        {"cell_type": "code", "source": "print(1)", "outputs": outputs},
        {"cell_type": "raw", "source": "Rawly"},
    ]
    left_out = {
        "pictures left out: 1 (first: cell 1)": "",
        "outputs of type image/png left out: 1 (first: cell 2)": "iVBOR",
    }
    words = "Headed Text print(1) Streamed Plain Paged KeyError tea Rawly"
    return json.dumps({"cells": cells, "metadata": {}}).encode(), words, left_out


def xml_file() -> Features:
    text = '<?xml version="1.0" encoding="iso-8859-9"?><kitap adı="çay">Şeker, ığüö</kitap>'
    return text.encode("cp1254"), "kitap adı çay Şeker ığüö", {}


TEXT_FEATURES: dict[str, Callable[[], Features]] = {
    "a.html": web_page,
    "a.eml": mail_file,
    "a.epub": book_file,
    "a.csv": csv_file,
    "a.jsonl": json_lines,
    "a.ipynb": notebook,
    "a.xml": xml_file,
}
