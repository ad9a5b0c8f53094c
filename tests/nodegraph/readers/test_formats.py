"""All formats from the outside: a folder of them, files of other people's, LibreOffice's files."""

import io
import json
import mailbox
import zipfile
from email.message import EmailMessage
from pathlib import Path

import pytest
from office_files import HANDBOOK, HANDBOOK_ZH, convert, fidelity, flat_document, text_of

from nodekin.nodegraph import NodeGraph, ReadError, ReadOptions

SAMPLES = Path(__file__).parents[3] / "examples" / "files"


def text_in(path: Path) -> str:
    (node,) = NodeGraph(path, progress=False).nodes("ROOT")
    return node.text


def headings(text: str) -> list[str]:
    return [line for line in text.split("\n") if line.startswith("#")]


HEADINGS = [
    "# 1 The tea handbook",
    "## 1.1 Buying",
    "## 1.2 Prices",
    "# 2 Serving",
    "## 2.1 Water",
    "## 2.2 Complaints",
]


def test_a_folder_with_a_pdf_and_a_word_file_is_read() -> None:
    graph = NodeGraph(SAMPLES, progress=False)
    assert graph.failures == []
    english, chinese = graph.node("files/handbook.pdf"), graph.node("files/手册.docx")
    assert headings(english.text) == HEADINGS
    assert "\n\n- Smell the dry leaves.\n\n" in english.text
    assert english.text.count("\f") == 1
    assert "It is read by everyone who begins to work" in english.text  # two lines on paper
    assert "bitter gets a new cup without a question. The old cup" in english.text  # two columns
    assert english.metadata["page_count"] == 2
    assert headings(chinese.text)[:2] == ["# 第一章 茶室手册", "## 1.1 采购"]
    assert "| 龙井 | 四元二角 | 十一元 |" in chinese.text
    assert "一律不买[1]\n" in chinese.text
    assert "乌龙茶例外：可以存放一年。" in chinese.text


@pytest.mark.slow
@pytest.mark.parametrize("vertical", [False, True])
@pytest.mark.parametrize(("name", "blocks"), [("en", HANDBOOK), ("zh", HANDBOOK_ZH)])
def test_what_libreoffice_writes_is_read_whole_and_in_order(
    tmp_path: Path, name: str, blocks, vertical: bool
) -> None:
    # Footnotes stand at the end of a page or a file there, not in their paragraph.
    blocks = [("p", block[1]) if block[0] == "note" else block for block in blocks]
    source = tmp_path / f"{name}.fodt"
    source.write_text(flat_document(blocks, vertical=vertical), encoding="utf-8")
    formats = ["pdf"] if vertical else ["pdf", "docx", "odt", "rtf", "html", "epub"]
    convert(source, *formats)
    known = text_of(blocks)
    expected = [f"{'#' * block[1]} {block[2]}" for block in blocks if block[0] == "h"]
    for suffix in formats:
        read = text_in(tmp_path / f"{name}.{suffix}")
        assert fidelity(known, read) >= 0.98, suffix
        if suffix not in ("rtf", "epub"):  # of which LibreOffice writes headings as paragraphs
            squeezed = ["".join(line.split()) for line in headings(read)]
            assert squeezed == ["".join(line.split()) for line in expected], suffix


def test_slides(tmp_path: Path) -> None:
    from pptx import Presentation
    from pptx.util import Inches

    deck = Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[1])
    slide.shapes.title.text = "Tea in numbers"
    slide.placeholders[1].text = "Green\nBlack"
    slide.notes_slide.notes_text_frame.text = "Say it slowly."
    slide = deck.slides.add_slide(deck.slide_layouts[5])
    slide.shapes.title.text = "价格"
    table = slide.shapes.add_table(2, 2, Inches(1), Inches(2), Inches(4), Inches(1)).table
    for at, value in enumerate(["茶", "价", "龙井", "4|2"]):
        table.cell(at // 2, at % 2).text = value
    deck.core_properties.title = "Numbers"
    deck.save(str(tmp_path / "deck.pptx"))
    (node,) = NodeGraph(tmp_path / "deck.pptx", progress=False).nodes("ROOT")
    assert node.text == (
        "# Tea in numbers\n\n- Green\n- Black\n\nNotes: Say it slowly.\n\n\f\n\n"
        "# 价格\n\n| 茶 | 价 |\n| --- | --- |\n| 龙井 | 4\\|2 |"
    )
    assert (node.metadata["title"], node.metadata["page_unit"]) == ("Numbers", "slide")


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


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", 'tea,"price, cup"\nKeemun,3\n'),
        ("a.csv", "tea;price, cup\nKeemun;3\n"),
        ("a.tsv", "tea\tprice, cup\nKeemun\t3\n"),
    ],
)
def test_values_in_columns_become_a_table(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    expected = "| tea | price, cup |\n| --- | --- |\n| Keemun | 3 |"
    assert text_in(tmp_path / name) == expected


PAGE = """<!DOCTYPE html><html><head><meta charset="{charset}"><title>茶 &amp; 水</title>
<script>var hidden = 1</script><style>p {{ color: red }}</style></head><body>
<nav><a href="/">Home</a></nav><h1>茶</h1><p>一种<b>饮料</b>，见<a href="water.html">水</a>。</p>
<ul><li>绿</li><li>红</li></ul><h2>价格</h2><table><tr><th>茶</th><th>价</th></tr>
<tr><td>龙井</td><td>4</td></tr></table><pre><code># boil
go</code></pre></body></html>"""


@pytest.mark.parametrize("charset", ["utf-8", "gb2312", "big5"])
@pytest.mark.parametrize("name", ["tea.html", "tea.htm", "tea.txt", "tea"])
def test_web_pages_by_what_they_are(tmp_path: Path, charset: str, name: str) -> None:
    page = PAGE.format(charset=charset)
    if charset == "big5":
        page = page.translate(str.maketrans("种饮见龙红绿", "種飲見龍紅綠")).replace("价", "價")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / name).write_bytes(page.encode(charset))
    (node,) = NodeGraph(tmp_path / "docs", progress=False).nodes("ROOT")
    text = node.text.translate(str.maketrans("種飲見龍紅綠價", "种饮见龙红绿价"))
    assert text == (
        "# 茶\n\n一种饮料，见[水](water.html)。\n\n- 绿\n- 红\n\n## 价格\n\n"
        "| 茶 | 价 |\n| --- | --- |\n| 龙井 | 4 |\n\n```\n# boil\ngo\n```"
    )
    assert node.metadata["title"] == "茶 & 水"


def test_a_book(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "book.epub", "w") as archive:
        archive.writestr("mimetype", "application/epub+zip")
        archive.writestr(
            "META-INF/container.xml",
            '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
            '<rootfile full-path="OEBPS/book.opf"/></rootfiles></container>',
        )
        archive.writestr(
            "OEBPS/book.opf",
            '<package xmlns="http://www.idpf.org/2007/opf"><metadata '
            'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>茶经</dc:title>'
            "<dc:creator>陆羽</dc:creator></metadata><manifest>"
            '<item id="two" href="b.xhtml"/><item id="one" href="text/a%20b.xhtml"/>'
            '</manifest><spine><itemref idref="one"/><itemref idref="two"/></spine></package>',
        )
        archive.writestr("OEBPS/text/a b.xhtml", "<html><body><h1>一</h1><p>源。</p></body></html>")
        archive.writestr("OEBPS/b.xhtml", "<html><body><h1>二</h1><p>具。</p></body></html>")
    (node,) = NodeGraph(tmp_path / "book.epub", progress=False).nodes("ROOT")
    assert node.text == "# 一\n\n源。\n\n\f\n\n# 二\n\n具。"
    assert (node.metadata["title"], node.metadata["author"]) == ("茶经", "陆羽")


def message(subject: str, text: str, html: str = "") -> EmailMessage:
    mail = EmailMessage()
    mail["Subject"], mail["From"], mail["To"] = subject, "刘 <liu@example.org>", "b@example.org"
    mail["Date"] = "Mon, 02 Mar 2026 10:00:00 +0100"
    if text:
        mail.set_content(text, charset="gb2312" if not text.isascii() else "utf-8")
    if html:
        mail.add_alternative(html, subtype="html")
    return mail


def test_mail(tmp_path: Path) -> None:
    mail = message("茶的价格", "三月的价格见附件。\n", "<p>not read</p>")
    mail.add_attachment(b"%PDF-", maintype="application", subtype="pdf", filename="价格.pdf")
    (tmp_path / "a.eml").write_bytes(bytes(mail))
    (node,) = NodeGraph(tmp_path / "a.eml", progress=False).nodes("ROOT")
    assert node.text == "三月的价格见附件。"
    fields = ("title", "from", "to", "date", "attachments")
    assert [node.metadata[name] for name in fields] == [
        "茶的价格",
        "刘 <liu@example.org>",
        "b@example.org",
        "2026-03-02T10:00:00+01:00",
        ["价格.pdf"],
    ]
    box = mailbox.mbox(tmp_path / "all.mbox")
    box.add(message("One", "First.\n"))
    box.add(message("Two", "", "<h1>Second</h1><p>Text.</p>"))
    box.close()
    nodes = NodeGraph(tmp_path / "all.mbox", progress=False).nodes("ROOT")
    assert [(node.id[-10:], node.text, node.metadata["title"]) for node in nodes] == [
        ("all.mbox#1", "First.", "One"),
        ("all.mbox#2", "# Second\n\nText.", "Two"),
    ]


def test_a_notebook(tmp_path: Path) -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Tea\n", "About it."]},
        {
            "cell_type": "code",
            "source": "print(1)",
            "outputs": [{"text": ["1\n"]}, {"data": {"text/plain": "2", "image/png": "xx"}}],
        },
    ]
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": cells, "metadata": {}}))
    assert text_in(tmp_path / "a.ipynb") == (
        "# Tea\nAbout it.\n\n\f\n\n```python\nprint(1)\n```\n\n```\n1\n2\n```"
    )


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ('{"t": "\\u8336"}', '{\n  "t": "茶"\n}'),
        ('{"a":[1,2]}', '{\n  "a": [\n    1,\n    2\n  ]\n}'),
        ('{\n "a": 1 // why\n}', '{\n "a": 1 // why\n}'),
    ],
)
def test_json_is_text_that_can_be_searched(tmp_path: Path, content: str, text: str) -> None:
    (tmp_path / "a.json").write_text(content)
    assert text_in(tmp_path / "a.json") == text


def test_the_content_decides_where_the_name_is_wrong(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "plain.pdf").write_text("Only text.")
    (docs / "pdf.txt").write_bytes((SAMPLES / "handbook.pdf").read_bytes())
    (docs / "word").write_bytes((SAMPLES / "手册.docx").read_bytes())
    graph = NodeGraph(docs, progress=False)
    assert graph.node("docs/plain.pdf").text == "Only text."
    assert graph.node("docs/pdf.txt").text.startswith("# 1 The tea handbook")
    assert graph.node("docs/word").text.startswith("# 第一章 茶室手册")


def zipped(**parts: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name.replace("__", "/"), content)
    return buffer.getvalue()


OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504)


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("a.docx", zipped(word__document=b"0" * 2_000_000), "too large unpacked"),
        ("a.docx", OLE + "EncryptedPackage".encode("utf-16-le"), "encrypted Word document"),
        ("a.xls", OLE + "EncryptedPackage".encode("utf-16-le"), "encrypted spreadsheet"),
        ("a.doc", OLE, "without a reader"),
        ("a.txt", b"\0\1\2\3" * 99, "not text"),
        ("a.pdf", b"", "empty"),
        ("a.docx", zipped(readme=b"x"), "archive"),
        ("a.md", b"x" * 2_000_001, "too large"),
    ],
)
def test_what_is_no_document_is_passed_over_in_a_folder_and_told(
    tmp_path: Path, name: str, content: bytes, kind: str
) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / name).write_bytes(content)
    (docs / "b.txt").write_text("Tea.")
    limits = ReadOptions(max_bytes=2_000_000, max_unpacked_bytes=1_000_000)
    graph = NodeGraph(docs, progress=False, reading=limits)
    assert [node.id for node in graph.nodes("ROOT")] == ["docs/b.txt"]
    (failure,) = graph.failures
    assert isinstance(failure.error, ReadError)
    assert failure.error.kind == kind
    assert str(graph.read_report) == f"1 read, 1 skipped: 1 {kind}"
    strict = ReadOptions(max_bytes=2_000_000, max_unpacked_bytes=1_000_000, strict=True)
    with pytest.raises(ReadError, match=name):
        NodeGraph(docs, progress=False, reading=strict)
    with pytest.raises(ReadError, match=name):
        NodeGraph(docs / name, progress=False, reading=limits)


@pytest.mark.parametrize("name", ["handbook.pdf", "手册.docx"])
def test_a_truncated_file_is_an_error_that_names_it(tmp_path: Path, name: str) -> None:
    whole = (SAMPLES / name).read_bytes()
    (tmp_path / name).write_bytes(whole[: len(whole) // 2])
    (tmp_path / "b.txt").write_text("Tea.")
    with pytest.raises(ReadError, match=name):
        NodeGraph(tmp_path, progress=False)
    graph = NodeGraph(tmp_path, progress=False, on_error="skip")
    assert len(graph.nodes("ROOT")) == 1
    assert str(graph.read_report) == "1 read, 1 skipped: 1 damaged"
