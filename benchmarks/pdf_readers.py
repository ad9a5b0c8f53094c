"""Compare PDF readers by the quality of their output and by their speed.

The table shows how many paragraphs, headings and table rows are read correctly, how often the first
passage found contains the answer to a question, and the CPU time per page. The PDF files are
typeset from known texts with Typst: a German report (XQuAD, one column, an outline, tables with
borders), an English paper (MuSiQue, two columns, numbered headings, tables with three horizontal
lines, no outline), a Russian journal (XQuAD, two columns, large headings, running titles, no
outline), and a Chinese manual (CMRC 2018, one column, an outline, tables with borders; ``apt-get
install fonts-noto-cjk``). Each reader converts the same files to Markdown. Readers that are not
installed are left out.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

from harness import arguments, show

from nodekin.nodegraph import Document, NodeGraph, PassageSplitter, ReadOptions
from nodekin.nodegraph.readers.source_files import SourceFile
from nodekin.retrievers import Retriever


class Known(NamedTuple):
    """The source of a typeset text, and its parts that a reader should recognize."""

    source: str
    headings: list[str]
    paragraphs: list[str]
    rows: list[list[str]]
    questions: list[tuple[str, str]]  # with their answers


REPORT = """#set page(paper: "a4", header: [Teehandel, Jahresbericht], numbering: "1")
#set text(lang: "de", size: 11pt)
#set par(justify: true, spacing: 1.4em)
#set table(stroke: 0.5pt)"""

PAPER = """#set page(paper: "us-letter", columns: 2, header: context [Journal of Tea Research 12
  (2026) #h(1fr) #counter(page).display()])
#set text(size: 10pt)
#set par(justify: true, spacing: 0.65em, first-line-indent: 1.2em)
#set heading(numbering: "1.1", bookmarked: false)
#show heading: set text(size: 10pt)
#set table(stroke: none)"""

JOURNAL = """#set page(paper: "a4", columns: 2, header: context {
  let titles = query(heading).filter(it => it.location().page() <= here().page())
  if titles.len() > 0 { upper(titles.last().body) }
}, footer: context align(center, counter(page).display("— 1 —")))
#set text(lang: "ru", size: 10.5pt)
#set par(justify: true, spacing: 0.65em, first-line-indent: 1.5em)
#set heading(bookmarked: false)
#show heading: set text(size: 13pt)"""


MANUAL = """#set page(paper: "a4", header: [茶叶手册], numbering: "— 1 —")
#set text(lang: "zh", size: 10.5pt, font: ("Libertinus Serif", "Noto Serif CJK SC"))
#set par(justify: true, first-line-indent: (amount: 2em, all: true))
#set table(stroke: 0.5pt)"""


def written(text: str) -> str:
    """Escape the special characters of Typst in a text."""
    return re.sub(r"([\\#$*_`<>@=\[\]~/-])", r"\\\1", text)


def typeset(setting: str, parts: Sequence[tuple[str, list[str]]], questions: list) -> Known:
    """Return the Typst source for a list of sections, with a table after every third section."""
    is_ruled = "stroke: 0.5pt" in setting
    source, headings, rows = [f"{setting}\n#set smartquote(enabled: false)"], [], []
    for number, (title, paragraphs) in enumerate(parts, 1):
        headings.append(f"{number} {title}" if 'numbering: "1.1"' in setting else title)
        source += [f"= {written(title)}", *map(written, paragraphs)]
        if number % 3 == 0 and "table(" in setting:
            table = [["Name", "Amount", "Price"]]
            table += [[f"Leaf {number}{n}", f"{n} tons", f"{n}{number}.20"] for n in range(1, 6)]
            rows += table
            cells = [", ".join(f"[{cell}]" for cell in row) for row in table]
            line = "" if is_ruled else "table.hline(), "
            cells[0] = f"{line}{cells[0]}, {line}".rstrip(", ")
            source.append(f"#table(columns: 3, {', '.join(cells)}, {line.rstrip(', ')})")
    known = [paragraph for _, paragraphs in parts for paragraph in paragraphs]
    return Known("\n\n".join(source), headings, known, rows, questions)


def xquad(data: Path, language: str, setting: str) -> Known:
    """Return paragraphs from XQuAD in sections, with questions about them."""
    articles = json.loads((data / f"xquad/xquad.{language}.json").read_text("utf-8"))["data"]
    parts, questions = [], []
    for article in articles[:30]:
        texts = [" ".join(each["context"].split()) for each in article["paragraphs"]]
        parts.append((" ".join(re.findall(r"\w+", texts[0])[:4]), texts))
        for paragraph in article["paragraphs"]:
            questions += [(q["question"], q["answers"][0]["text"]) for q in paragraph["qas"][:2]]
    return typeset(setting, parts, questions)


def musique(data: Path) -> Known:
    """Return passages from MuSiQue, in sections of three passages."""
    passages = json.loads((data / "musique/musique_train_corpus.json").read_text("utf-8"))
    texts = [" ".join(p["text"].split()) for p in passages if 300 < len(p["text"]) < 1_200][:120]
    threes = [texts[at : at + 3] for at in range(0, len(texts), 3)]
    parts = [(" ".join(re.findall(r"\w+", three[0])[:4]), three) for three in threes]
    return typeset(PAPER, parts, [])


def cmrc(data: Path) -> Known:
    """Return paragraphs from CMRC in sections of three paragraphs, with questions about them."""
    lines = (data / "cmrc2018/questions.jsonl").read_text("utf-8").splitlines()
    rows = [row for row in map(json.loads, lines) if len(row["context"]) > 150]
    texts = list(dict.fromkeys("".join(row["context"].split()) for row in rows))[:120]
    parts = [(texts[at][:8], texts[at : at + 3]) for at in range(0, len(texts), 3)]
    known = set(texts)
    asked = [row for row in rows if "".join(row["context"].split()) in known]
    return typeset(MANUAL, parts, [(row["question"], row["answers"][0]) for row in asked[:300]])


def nodekin_text(path: Path) -> str:
    """Convert a PDF to text with nodekin in the current process."""
    from nodekin.adapters.files.pdf import read_pdf

    return read_pdf(SourceFile(path, ReadOptions())).text


def liteparse_text(path: Path) -> str:
    """Convert a file with liteparse."""
    from liteparse import LiteParse

    return LiteParse(output_format="markdown", ocr_enabled=False, quiet=True).parse(path).text


def opendataloader_text(path: Path) -> str:
    """Convert a file with opendataloader in a Java process."""
    from opendataloader_pdf import convert

    with tempfile.TemporaryDirectory() as folder:
        convert(str(path), folder, format="markdown", quiet=True, image_output="off")
        return (Path(folder) / f"{path.stem}.md").read_text("utf-8")


def pdf_oxide_text(path: Path) -> str:
    """Convert a file with pdf_oxide."""
    from pdf_oxide import PdfDocument

    return PdfDocument(str(path)).to_markdown_all()


def edgeparse_text(path: Path) -> str:
    """Convert a file with edgeparse."""
    from edgeparse import convert

    return convert(str(path), format="markdown", raster_table_ocr=False)


def markitdown_text(path: Path) -> str:
    """Convert a file with MarkItDown."""
    from markitdown import MarkItDown

    return MarkItDown().convert(path).markdown


READERS: dict[str, Callable[[Path], str]] = {
    "nodekin": nodekin_text,
    "liteparse": liteparse_text,
    "opendataloader-pdf": opendataloader_text,
    "pdf_oxide": pdf_oxide_text,
    "edgeparse": edgeparse_text,
    "markitdown": markitdown_text,
}


NOTE = (
    "A German report, an English paper and a Russian journal in two columns, a Chinese manual, "
    "typeset with Typst. Shares of paragraphs that are one block, of rows of tables (without the "
    "journal), and of questions whose answer is in the first passage of 200 tokens (without the "
    "paper); F1 of headings. CPU time with child processes."
)


def squeezed(text: str) -> str:
    """Remove whitespace, hyphens and Markdown formatting from a text."""
    return re.sub(r"[\s\\*_#`\u00ad\u2010-]", "", text.replace("…", "..."))


def blocks_of(text: str) -> Iterator[str]:
    """Yield the blocks of a Markdown text. A heading counts as a separate block."""
    for block in re.split(r"\n\s*\n", text.replace("\f", "")):
        for heading, rest in re.findall(r"(?m)(^#+ .*$)|((?:^(?!#+ ).*\n?)+)", block):
            yield heading or rest


def score(known: Known, text: str) -> list[float | None]:
    """Return the shares of paragraphs, headings (as F1), table rows and answers found."""
    blocks = [block for block in blocks_of(text) if block.strip()]
    found = {squeezed(block) for block in blocks if block.startswith("#")}
    expected = set(map(squeezed, known.headings))
    bodies = [squeezed(block) for block in blocks if not block.startswith("#")]
    whole = sum(
        any(own in body and len(body) < 1.1 * len(own) + 20 for body in bodies)
        for own in map(squeezed, known.paragraphs)
    )
    lines = {tuple(map(squeezed, line.strip(" |").split("|"))) for line in text.split("\n")}
    rows = sum(tuple(map(squeezed, row)) in lines for row in known.rows)
    answered = None
    if known.questions:
        graph = NodeGraph(progress=False)
        graph.add(Document(text, id="a"))
        graph.create_node_group("passage", PassageSplitter(chunk_size=200))
        retriever = Retriever(graph, "passage", "bm25", top_k=1)
        hits = [
            squeezed(answer) in squeezed(retriever(question)[0].node.text)
            for question, answer in known.questions
        ]
        answered = sum(hits) / len(hits)
    return [
        whole / len(known.paragraphs),
        2 * len(found & expected) / (len(found) + len(expected)),
        rows / len(known.rows) if known.rows else None,
        answered,
    ]


def main() -> None:
    """Typeset the files, convert them with each reader, and print a table of the results."""
    parser = arguments(__doc__)
    parser.add_argument("--readers", nargs="+", default=[*READERS], help="the readers to compare")
    args = parser.parse_args()
    import pypdfium2
    import typst

    made = {
        "report": xquad(args.data, "de", REPORT),
        "paper": musique(args.data),
        "journal": xquad(args.data, "ru", JOURNAL),
        "manual": cmrc(args.data),
    }
    table, pages = [], 0
    with tempfile.TemporaryDirectory() as name:
        paths = {kind: Path(name) / f"{kind}.pdf" for kind in made}
        for kind, known in made.items():
            typst.compile(known.source.encode(), output=str(paths[kind]))
            pages += len(pypdfium2.PdfDocument(paths[kind]))
        for reader in args.readers:
            try:
                row, seconds = [f"{reader} {version(reader)}"], 0.0
                scores = []
                for kind, known in made.items():
                    times = []
                    for _ in range(3):
                        start = sum(os.times()[:4])  # including child processes
                        text = READERS[reader](paths[kind])
                        times.append(sum(os.times()[:4]) - start)
                    seconds += min(times)
                    scores.append(score(known, text))
            except (ImportError, PackageNotFoundError) as error:
                print(f"skipped: {reader}: {error}")
                continue
            for column in zip(*scores, strict=True):
                row.append(" / ".join(f"{value:.3f}" for value in column if value is not None))
            table.append([*row, f"{1000 * seconds / pages:.1f}"])
    header = [
        "",
        "whole paragraphs",
        "headings, F1",
        "rows of tables",
        "answers",
        "CPU ms per page",
    ]
    show("PDF readers", header, table, NOTE)


if __name__ == "__main__":
    main()
