"""PDF: pages without a text, fonts unreadable characters, passwords, OCR."""

from pathlib import Path

import pytest
from support.sample_files import pdf_of

from nodekin.adapters.files import pdf_layout
from nodekin.adapters.files.pdf import read_pdf
from nodekin.adapters.files.pdf_layout import TextLine, lines_of_text
from nodekin.nodegraph import Document, NodeGraph, ReadError, ReadOptions
from nodekin.nodegraph.locations import SCALE, unpack_layout
from nodekin.nodegraph.readers.source_files import SourceFile
from nodekin.nodegraph.readers.text import markdown_table

TEXT = b"BT /F 12 Tf 20 250 Td (Tea is a drink.) Tj ET"
IMAGE = b"q 200 0 0 200 20 20 cm /I Do Q"


def test_pages_without_text_are_reported(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(pdf_of(TEXT, IMAGE, b"", IMAGE))
    graph = NodeGraph(tmp_path / "a.pdf", progress=False)
    (node,) = graph.nodes("ROOT")
    assert node.text.strip("\n\f") == "Tea is a drink."
    assert node.metadata["unread_pages"] == [2, 4]  # the third is blank
    (note,) = graph.read_report.notes.values()
    assert "without readable text, which ReadOptions(ocr=...) may read: 2 (first: page 2)" in note
    assert str(graph.read_report) == "1 read; 1 read with notes"


def test_scan_raises_instead_of_empty_document(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(pdf_of(IMAGE, IMAGE))
    with pytest.raises(ReadError, match=r"has no text on its pages \(2\).*ReadOptions\(ocr="):
        NodeGraph(tmp_path / "a.pdf", progress=False)
    (tmp_path / "b.txt").write_text("Tea.")
    graph = NodeGraph(tmp_path, progress=False)
    assert str(graph.read_report) == "1 read, 1 skipped: 1 scanned PDF"


def test_ocr_reads_page_images_without_text(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(pdf_of(TEXT, IMAGE))
    seen = []

    def ocr(image) -> str:
        seen.append(image.size)
        return "Scanned line one.\nAnd two."

    graph = NodeGraph(tmp_path / "a.pdf", progress=False, reading=ReadOptions(ocr=ocr))
    (node,) = graph.nodes("ROOT")
    assert node.text == "Tea is a drink.\n\n\f\n\nScanned line one.\n\nAnd two."
    assert "unread_pages" not in node.metadata
    assert seen == [(834, 834)]


def test_failed_ocr_skips_only_its_file(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(pdf_of(IMAGE))
    (tmp_path / "b.pdf").write_bytes(pdf_of(TEXT))
    options = ReadOptions(ocr=lambda image: 1 / 0, num_workers=1)
    graph = NodeGraph(tmp_path, progress=False, on_error="skip", reading=options)
    assert len(graph.nodes("ROOT")) == 1
    (failure,) = graph.failures
    assert "ZeroDivisionError" in str(failure.error)


def pages_as_text(pages, outline):
    """Return the text of pages and the places of its parts."""
    numbered = [[line._replace(page=n) for line in lines] for n, lines in enumerate(pages)]
    return pdf_layout.pages_as_text(numbered, outline)


MEANINGLESS = (
    b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding<</Type/Encoding/Differences"
    b"[65/g1/g2/g3/g4/g5/g6/g7/g8]>>>>"
)


def test_text_without_unicode_mapping_raises(tmp_path: Path) -> None:
    page = b"BT /F 12 Tf 20 250 Td (ABCDEFGHABCDEFGH) Tj ET"
    (tmp_path / "a.pdf").write_bytes(pdf_of(page, font=MEANINGLESS))
    with pytest.raises(ReadError, match="unreadable characters"):
        NodeGraph(tmp_path / "a.pdf", progress=False)


def test_encrypted_pdf_raises(tmp_path: Path) -> None:
    encrypted = b"/Encrypt<</Filter/Standard/V 1/R 2/P -4/O<%s>/U<%s>>>/ID[<00><00>]" % (
        b"ab" * 32,
        b"cd" * 32,
    )
    (tmp_path / "a.pdf").write_bytes(pdf_of(TEXT, extra=encrypted))
    with pytest.raises(ReadError, match=r"a\.pdf is encrypted"):
        NodeGraph(tmp_path / "a.pdf", progress=False)


@pytest.mark.parametrize(
    ("lines", "joined"),
    [
        ("A con-\nsumer in-\ncludes tea.", "A consumer includes tea."),
        ("Die Über-\ngabe.\n\nÜBERGABE: über eine Gabe.", "Die Übergabe."),
        ("A low-\ndose scan.\n\nThe low-dose scan.", "A low-dose scan."),
        ("An art-of-\ntea art.\n\nThe art-of-tea art.", "An art-of-tea art."),
        ("茶室购买绿-\n茶和红茶。", "茶室购买绿茶和红茶。"),
    ],
)
@pytest.mark.parametrize("filling", ["", "Other words and cups. " * 2000])
def test_hyphen_at_line_end_follows_the_rest_of_the_text(
    lines: str, joined: str, filling: str
) -> None:
    text, _ = pages_as_text([lines_of_text(f"{lines}\n\n{filling}")], [])
    assert text.startswith(joined)


def test_number_sign_at_line_start_is_no_heading() -> None:
    assert pages_as_text([lines_of_text("# of cups – two.")], [])[0] == "\\# of cups – two."


def test_cyclic_outline_still_gives_headings(tmp_path: Path) -> None:
    pages = [b"BT /F 12 Tf 20 250 Td (%s) Tj ET" % name for name in (b"Tea", b"Cups", b"Pots")]
    below = b"/First<</Title(Cups)/Dest[6 0 R/Fit]/Next<</Title(Nowhere)>>>>"
    entry = b"/Title(Tea)/Dest[4 0 R/Fit]/Next 3 0 R" + below
    data = pdf_of(*pages, font=b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica%s>>" % entry)
    data = data.replace(b"/Catalog", b"/Catalog/Outlines<</First 3 0 R>>")
    (tmp_path / "a.pdf").write_bytes(data)
    (node,) = NodeGraph(tmp_path / "a.pdf", progress=False).nodes("ROOT")
    assert node.text.replace("\f", "").split() == ["#", "Tea", "##", "Cups", "Pots"]


def page_of(*texts: str, pitch: float = 1.2, head: str = "", foot: str = "") -> list[TextLine]:
    """Return stacked 10-point lines with a running head and foot."""
    lines = [TextLine(head, 0, 50, 200, 800, 10)] if head else []
    for n, text in enumerate(texts):
        lines.append(TextLine(text, 0, 50, 50 + 5 * len(text), 700 - 10 * pitch * n, 10))
    return [*lines, TextLine(foot, 0, 270, 280, 30, 10)] if foot else lines


LINES = ("green tea is grown in the hills of the south, where it rains for most", "of the year.")


@pytest.mark.parametrize("pitch", [1.2, 1.5, 2.4, 3.0])
def test_paragraph_continues_with_any_line_spacing(pitch: float) -> None:
    text, _ = pages_as_text([page_of(*LINES[:1] * 5, LINES[1], pitch=pitch)], [])
    assert "\n" not in text
    assert text.endswith("for most of the year.")


@pytest.mark.parametrize("number", ["{}", "- {} -", "Page {} of 9", "第 {} 页"])
def test_page_numbers_and_repeated_titles_are_removed(number: str) -> None:
    pages = [
        page_of(*LINES[:1] * 5, head="Journal of Tea", foot=number.format(n)) for n in (7, 8, 9)
    ]
    text, _ = pages_as_text(pages, [])
    assert text.count("Journal of Tea") == 1
    assert not set("789") & set(text)
    assert text.count("\n\n") == 1  # after the head, followed by one paragraph over three pages
    pages[0][0] = TextLine("JOURNAL of Tea", 0, 50, 200, 740, 10)  # the title, lower on its page
    text, _ = pages_as_text([*pages, *pages[1:]], [])
    assert text.casefold().count("journal") == 1


@pytest.mark.parametrize(
    ("following", "is_same"),
    [
        ("Yunnan.", True),
        ("100 metres high.", True),
        ("Figure 2: The hills of Yunnan.", False),
        ("2 Results and Discussion", False),
    ],
)
def test_paragraph_continues_on_next_page_unless_heading_follows(
    following: str, is_same: bool
) -> None:
    full = "green tea is grown in the hills of the south, some of which are in"
    text, _ = pages_as_text([page_of(LINES[0], full), page_of(following)], [])
    assert ("\n\n" not in text) == is_same


def test_text_without_positions_continues_on_next_page() -> None:
    pages = [[TextLine(line, page=n)] for n, line in enumerate(LINES)]
    assert pages_as_text(pages, [])[0] == "\f".join(LINES)


@pytest.mark.parametrize(
    ("heads", "feet"),
    [
        (["Invoice 1001", "Invoice 1002", "Invoice 1003"], ["", "", ""]),
        (["", "", ""], ["120", "95", "4711"]),
        (["Journal of Tea", "Journal of Tea", ""], ["", "", ""]),
        (["Question 1", "Question 2", "Question 3"], ["", "", ""]),
        (["练习题 1", "练习题 2", "练习题 3"], ["", "", ""]),
    ],
)
def test_lines_unlike_running_heads_stay_on_their_pages(heads: list[str], feet: list[str]) -> None:
    pages = [page_of(*LINES, head=h, foot=f) for h, f in zip(heads, feet, strict=True)]
    text, _ = pages_as_text(pages, [])
    for line in {*heads, *feet} - {""}:
        assert text.count(line) == (heads + feet).count(line)


@pytest.mark.parametrize(
    ("count", "heads"),
    [
        (8, ["J. Biol. 12 (2024) {j}"]),
        (8, ["The Tea Report {n}"]),
        (8, ["J. Biol. 12:{j}", "Berg and Li {n}"]),
        (8, ["{n} The Tea Report", "On Water"]),
        (8, ["茶叶科学研究进展 {n}", "王磊等 茶与水的关系"]),
        (8, ["Chapter 2: Water and Tea {n}"]),
        (4, ["Annual report of tea"]),
        (4, ["Annual report of tea", "Volume 2 of the house"]),
        (5, ["Tea: the second volume"]),
        (5, ["茶室年度报告：第二卷"]),
        (2, ["Tea House News"]),
        (3, ["Tea House News"]),
    ],
)
@pytest.mark.parametrize("size", [10, 16])
def test_running_heads_appear_once(count: int, heads: list[str], size: int) -> None:
    shown = [heads[n % len(heads)].format(n=n, j=n + 344) for n in range(1, count + 1)]
    pages = [page_of(*LINES, head=head) for head in shown]
    for lines in pages:
        lines[0] = lines[0]._replace(size=size)
    text, _ = pages_as_text(pages, [])
    assert sum(map(text.count, set(shown))) == len(heads)
    assert "#" not in text


def test_page_numbers_next_to_chapter_titles_are_removed() -> None:
    pages = [page_of(*LINES, head=f"On {'ABC'[n // 4]} of Tea {n + 1}") for n in range(12)]
    pages[0] = page_of(*LINES)
    pages[5] = page_of(*LINES, foot="6")  # the first page of a chapter
    text, _ = pages_as_text(pages, [])
    assert [line for line in text.split() if line.isdecimal()] == ["2"]  # first occurrence
    titles = [page_of(*LINES, head=f"{n + 1} {'ABCDEFGH'[n]}") for n in range(8)]
    assert "8 H" in pages_as_text(titles, [])[0]


@pytest.mark.parametrize("number", ["第1章 ", "第 十二 节", "Chapter 3: ", "3.1 "])
def test_heading_keeps_number_missing_from_outline(number: str) -> None:
    text, _ = pages_as_text([page_of(f"{number}茶与水", LINES[0])], [(0, 2, "茶与水")])
    assert text.startswith(f"## {number}茶与水\n")


def numbered_page(*titles: str) -> list[TextLine]:
    """Return headings as large as the text, each above a paragraph."""
    lines: list[TextLine] = []
    for n, title in enumerate(titles):
        top = 740 - 80 * n
        lines.append(TextLine(title, 0, 50, 50 + 5 * len(title), top - 20, 10))
        for row, text in enumerate(LINES):
            place = (50, 50 + 5 * len(text), top - 40 - 12 * row, 10)
            lines.append(TextLine(text, 0, *place))
    return lines


def test_numbered_headings_are_detected_without_outline() -> None:
    titles = ["1 Tea", "1.1 Green Tea", "1.2 茶", "2 水", "2.1. Hard Water"]
    pages = [numbered_page(*titles[:3]), numbered_page(*titles[3:])]
    text, _ = pages_as_text(pages, [])
    headings = [line for line in text.splitlines() if line.startswith("#")]
    assert headings == ["# 1 Tea", "## 1.1 Green Tea", "## 1.2 茶", "# 2 水", "## 2.1. Hard Water"]


@pytest.mark.parametrize(
    "titles",
    [
        ["1. Boil water", "2. Put in leaves", "3. Wait"],  # items
        ["1 Tea 3", "2 Water 12", "3 Cups 14"],  # a list of contents
        ["1 Tea", "3 Water", "7 Cups"],
        ["1 Tea is good.", "2 Water is good.", "3 Cups are good."],
        ["2 x03", "3 x04", "4 x05"],
        ["1 Tea", "2 Water"],
    ],
)
def test_other_numbered_lines_are_not_headings(titles: list[str]) -> None:
    assert "#" not in pages_as_text([numbered_page(*titles)], [])[0]


def test_running_heads_that_repeat_headings_are_removed() -> None:
    titles = ["1 Tea", "1.1 Green Tea", "1.2 Black Tea", "2 Water", "2.1 Hard Water"]
    pages = [
        [TextLine(f"{title} {titles[n // 3 * 3].upper()}", 0, 50, 200, 800, 10), *lines]
        for n, title in enumerate(titles)
        for lines in [numbered_page(title)]
    ]
    text, _ = pages_as_text(pages, [])
    assert [line for line in text.splitlines() if "TEA" in line or "WATER" in line] == []
    assert "## 2.1 Hard Water" in text


@pytest.mark.parametrize("dots", [". " * 20, "." * 20, "…" * 10])
def test_dot_leaders_of_contents_are_shortened(dots: str) -> None:
    pages = [page_of(f"1.2 Green Tea {dots}12", f"1.3 Black Tea {dots}14")]
    assert pages_as_text(pages, [])[0] == "1.2 Green Tea .... 12\n\n1.3 Black Tea .... 14"


@pytest.mark.parametrize(
    ("first", "is_same"), [(LINES[0], True), (f"{LINES[0]}:", False), (f"- {LINES[0]}", False)]
)
def test_paragraph_line_may_start_with_dash(first: str, is_same: bool) -> None:
    text, _ = pages_as_text([page_of(first, "- " + LINES[0])], [])
    assert (" - green" in text) == is_same


def table_of(*rows: tuple[str, str], left: float = 50) -> TextLine:
    """Return a table as a line."""
    boxes = [(left + x, 690, left + x + 60, 700) for x in (0, 60)]
    return TextLine("", rows=[list(zip(row, boxes, strict=True)) for row in rows])


@pytest.mark.parametrize(
    ("second", "text"),
    [
        ((("Tea", "Cup"), ("Oolong", "5")), "| Keemun | 4 |\n\f| Oolong | 5 |"),
        ((("Oolong", "5"), ("Pu'er", "6")), "| Keemun | 4 |\n\f| Oolong | 5 |\n| Pu'er | 6 |"),
    ],
)
def test_table_over_two_pages_is_merged(second: tuple[tuple[str, str], ...], text: str) -> None:
    pages = [[table_of(("Tea", "Cup"), ("Keemun", "4"))], [table_of(*second)]]
    whole, placed = pages_as_text(pages, [])
    assert whole == f"| Tea | Cup |\n| --- | --- |\n{text}"
    cells = [whole[int(start) : int(end)] for start, end, *_ in placed.T]
    rows = second if second[0][0] != "Tea" else second[1:]
    assert cells == ["Tea", "Cup", "Keemun", "4", *(cell for row in rows for cell in row)]
    graph = NodeGraph(progress=False)
    graph.add(Document(whole, {"page_unit": "page"}, id="a"))
    (table,) = graph.nodes("table")
    assert (table.own_metadata["rows"], table.pages) == (len(rows) + 1, (1, 2))
    pages[1] = [table_of(*second, left=90)]
    assert "\n\n\f\n\n| " in pages_as_text(pages, [])[0]


def test_broken_page_is_skipped_and_noted(tmp_path: Path) -> None:
    data = pdf_of(TEXT, TEXT, TEXT)
    (tmp_path / "a.pdf").write_bytes(data.replace(b"6 0 obj<</Type/Page/", b"6 0 obj<</Type/Pagx/"))
    graph = NodeGraph(tmp_path / "a.pdf", progress=False)
    (node,) = graph.nodes("ROOT")
    assert node.text.count("Tea is a drink.") == 2
    (note,) = graph.read_report.notes.values()
    assert note.endswith("damaged pages left out: 1 (first: page 2)")
    (tmp_path / "a.pdf").write_bytes(data.replace(b"/Type/Page/", b"/Type/Pagx/"))
    with pytest.raises(ReadError, match="damaged PDF"):
        NodeGraph(tmp_path / "a.pdf", progress=False)


@pytest.mark.parametrize("size", [9, 20])
def test_header_of_any_size_is_kept_once(tmp_path: Path, size: int) -> None:
    typst = pytest.importorskip("typst", reason="no typst: pip install typst")
    header = f'#set page(paper: "a5", header: text(size: {size}pt)[Journal of Tea])\n'
    pages = [f"= Chapter {n}\n\n#lorem({n + 150})" for n in range(1, 6)]
    (tmp_path / "a.typ").write_text(header + "\n#pagebreak()\n".join(pages))
    typst.compile(str(tmp_path / "a.typ"), output=str(tmp_path / "a.pdf"))
    (node,) = NodeGraph(tmp_path / "a.pdf", progress=False).nodes("ROOT")
    assert node.text.count("Journal of Tea") == 1
    headings = [line for line in node.text.split("\n") if line.startswith("#")]
    assert headings == [f"# Chapter {n}" for n in range(1, 6)]


def test_table_with_three_rules_is_found(tmp_path: Path) -> None:
    typst = pytest.importorskip("typst", reason="no typst: pip install typst")
    rows = "[BM25 with words], [.84], [12 ms], [Vectors], [.88], [30 ms], [Both], [.92], [41 ms],"
    table = (
        "#table(columns: 3, stroke: none, table.hline(), [*Method*], [*Recall*], [*Time*], "
        f"table.hline(), {rows} table.hline())"
    )
    (tmp_path / "a.typ").write_text(f"#lorem(50)\n\n{table}\n\n#lorem(50)\n\n{table}")
    typst.compile(str(tmp_path / "a.typ"), output=str(tmp_path / "a.pdf"))
    (node,) = NodeGraph(tmp_path / "a.pdf", progress=False).nodes("ROOT")
    expected = [
        ["Method", "Recall", "Time"],
        ["BM25 with words", ".84", "12 ms"],
        ["Vectors", ".88", "30 ms"],
        ["Both", ".92", "41 ms"],
    ]
    assert node.text.count(markdown_table(expected)) == 2


@pytest.mark.parametrize(("turn", "expected"), [(0, 0.1), (90, 0.9), (180, 0.9), (270, 0.1)])
def test_boxes_of_rotated_pages_match_displayed_positions(
    tmp_path: Path, turn: int, expected: float
) -> None:
    file = tmp_path / "a.pdf"
    data = pdf_of(b"BT /F 12 Tf 20 270 Td (Tea is a drink.) Tj ET")
    file.write_bytes(data.replace(b"/Type/Page/", b"/Type/Page/Rotate %d/" % turn))
    document = read_pdf(SourceFile(file, ReadOptions()))
    (box,) = unpack_layout(document.layout or b"")
    is_across = turn in (0, 180)
    middle = (box.top + box.bottom if is_across else box.left + box.right) / 2
    assert abs(middle / SCALE - expected) < 0.1
    assert (box.right - box.left > box.bottom - box.top) == is_across
    assert box.is_line == (turn == 0)
