"""Measure the quality and speed of file readers, and the speed of the command line on a folder.

For the readers, LibreOffice writes known texts in each format (``apt-get install
libreoffice-writer-nogui fonts-noto-cjk``). The quality is measured as the F1 score of characters in
order, and as the share of paragraphs, headings and table rows that are read completely. The speed
is the CPU time relative to calling the underlying library directly. Both are run alternately.

For the command line, a folder with ``--files`` Markdown files of about 6.6 kB is created. The files
consist of random sentences (with a fixed seed) from HotpotQA, and every fifth file consists of
sentences from CMRC 2018. Each command is run in a new process. Its CPU time includes its child
processes, and its memory is the peak of the largest process.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from harness import arguments, bytes_on_disk, cmrc_texts, hotpotqa, in_new_process, show
from office_files import FORMATS, convert, flat_document
from pdf_readers import Known, score
from support.office_files import Block, fidelity, text_of

from nodekin.nodegraph import ReadOptions
from nodekin.nodegraph.readers.formats import format_of
from nodekin.nodegraph.readers.source_files import SourceFile

FILE = 6_600  # number of bytes in a Markdown file

NOTE = (
    "English / Chinese: 20 chapters of MuSiQue and CMRC 2018 by LibreOffice 7.4. F1 of characters; "
    "other shares as in `pdf_readers.py`."
)

TABLES = {
    "en": [["Year", "Output", "Region"], ["1998", "3,000 tons", "Yunnan"]],
    "zh": [["年份", "产量", "地区"], ["一九九八", "三千吨", "云南"]],
}
LISTS = {
    "en": ["Boil the water", "Put in the leaves", "Wait for three minutes"],
    "zh": ["第一步：烧水", "第二步：放茶叶", "第三步：等三分钟"],
}
HEADINGS = {
    "en": ("{} Overview of part {}", "{}.1 Methods", "{}.2 Results", "What footnote {} says."),
    "zh": ("第{}章 概述", "{}.1 方法", "{}.2 结果", "第{}个脚注的内容。"),
}


def paragraphs(data: Path, language: str) -> Iterator[str]:
    """Yield paragraphs from MuSiQue (English) or CMRC (Chinese)."""
    if language == "en":
        for passage in json.loads((data / "musique/musique_train_corpus.json").read_text("utf-8")):
            if len(passage["text"]) > 300:
                yield " ".join(passage["text"].split())
        return
    articles = json.loads((data / "cmrc2018/dev.json").read_text("utf-8"))
    for article in articles["data"] if isinstance(articles, dict) else articles:
        for part in article.get("paragraphs", [article]):
            yield " ".join((part.get("context") or part.get("context_text")).split())


def blocks(texts: list[str], language: str, chapters: int) -> Iterator[Block]:
    """Yield the content of chapters with headings, a footnote, a list, a table and two columns."""
    title, methods, results, note = HEADINGS[language]
    for number in range(1, chapters + 1):
        one, two, three, four, five, six = texts[6 * number - 6 : 6 * number]
        yield ("h", 1, title.format(number, number))
        yield ("p", one)
        yield ("h", 2, methods.format(number))
        yield ("note", two, note.format(number))
        yield ("list", LISTS[language])
        yield ("h", 2, results.format(number))
        yield ("p", three)
        yield ("table", TABLES[language])
        yield ("p", four)
        yield ("columns", [("p", five), ("p", six)])


def bare_pdf(path: Path) -> None:
    """Extract the text of a PDF by calling PDFium directly."""
    import pypdfium2

    pdf = pypdfium2.PdfDocument(path)
    for number in range(len(pdf)):
        pdf[number].get_textpage().get_text_range()


def bare_docx(path: Path) -> None:
    """Convert a Word document by calling anydoc directly."""
    from anydoc import to_markdown

    to_markdown(path)


def bare_html(path: Path) -> None:
    """Convert a web page by calling html-to-markdown directly."""
    from html_to_markdown import convert as to_markdown

    to_markdown(path.read_text(encoding="utf-8"))


BARE = {".pdf": bare_pdf, ".docx": bare_docx, ".html": bare_html}


def ratio(ours: Callable[[], object], bare: Callable[[], object]) -> tuple[float, float]:
    """Run two calls alternately.

    Return the CPU time of the first call and its ratio to the second.
    """
    times: list[tuple[float, float]] = []
    for _ in range(9):
        start = time.process_time()
        bare()
        between = time.process_time()
        ours()
        times.append((time.process_time() - between, between - start))
    least = min(own for own, _ in times)
    return least, least / min(other for _, other in times)


def parse(file: SourceFile) -> list[Any]:
    """Read a file with nodekin in the current process."""
    reader = format_of(file.path)
    assert reader is not None, file.path
    return [*reader.records(file)]


def parts_of(blocks: Sequence[Block]) -> Known:
    """Return the headings, the paragraphs and the table rows in a list of blocks."""
    columns = [inner for block in blocks if block[0] == "columns" for inner in block[1]]
    return Known(
        source="",
        headings=[block[2] for block in blocks if block[0] == "h"],
        paragraphs=[block[1] for block in [*blocks, *columns] if block[0] in ("p", "note")],
        rows=[row for block in blocks if block[0] == "table" for row in block[1]],
        questions=[],
    )


def fidelity_rows(folder: Path, data: Path, chapters: int) -> Iterator[list[str]]:
    """Yield a row of the table for each format, with figures for English and Chinese texts."""
    found: dict[str, list[list[str]]] = {}
    for language in ("en", "zh"):
        texts = list(dict.fromkeys(paragraphs(data, language)))
        known = list(blocks(texts, language, chapters))
        source = folder / f"{language}.fodt"
        source.write_text(flat_document(known), encoding="utf-8")
        convert(source, *FORMATS)
        for suffix in (".pdf", ".docx", ".html", ".odt", ".rtf", ".epub"):
            file = SourceFile(source.with_suffix(suffix), ReadOptions())
            ((text, *_),) = parse(file)
            bare = BARE.get(suffix, parse)
            argument = file.path if suffix in BARE else file
            least, times = ratio(
                lambda file=file: parse(file), lambda bare=bare, what=argument: bare(what)
            )
            beside = f"{times:.2f}" if suffix in BARE else ""
            shares = [fidelity(text_of(known), text), *score(parts_of(known), text)[:3]]
            cells = [f"{share:.3f}".replace("1.000", "1") for share in shares]
            found.setdefault(suffix, []).append([*cells, f"{1000 * least:.0f}", beside])
    for suffix, languages in found.items():
        yield [
            suffix[1:].upper(),
            *(" / ".join(filter(None, cells)) for cells in zip(*languages, strict=True)),
        ]


class Cost(NamedTuple):
    """The cost of running a command: its CPU time in seconds and its peak memory in megabytes."""

    seconds: float
    memory: float


def write_files(data: Path, folder: Path, count: int) -> None:
    """Write Markdown files with random sentences into a folder."""
    english = [d.text for d in hotpotqa(data).documents]
    languages = {
        "en": ([s for t in english for s in re.split(r"(?<=[.!?])\s+", t) if len(s) > 20], " "),
        "zh": (
            [s for t in cmrc_texts(data)[0] for s in re.split("(?<=[。！？])", t) if len(s) > 6],
            "",
        ),
    }
    rng = random.Random(331)
    for number in range(count):
        sentences, joint = languages["zh" if number % 5 == 0 else "en"]
        parts, length = [f"# {rng.choice(sentences)[:40]}"], 0
        while length < FILE:
            if rng.random() < 0.2:
                parts.append(f"## {rng.choice(sentences)[:30]} {rng.randrange(10_000)}")
            parts.append(joint.join(rng.choices(sentences, k=rng.randint(2, 6))))
            length += len(parts[-1].encode())
        path = folder / f"part{number // 500:03}" / f"page{number:05}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes("\n\n".join(parts).encode())


def command(folder: Path, *words: str) -> Cost:
    """Run a subcommand of nodekin in a folder, and return its cost."""
    program = [sys.executable, "-m", "nodekin", *words]
    with (folder / "output.txt").open("ab") as output:
        process = subprocess.Popen(program, cwd=folder, stdout=output, stderr=output)
        _, status, used = os.wait4(process.pid, 0)
    if status:
        sys.exit((folder / "output.txt").read_text(encoding="utf-8")[-2000:])
    return Cost(used.ru_utime + used.ru_stime, used.ru_maxrss / 1e3)


def median(costs: Sequence[Cost]) -> Cost:
    """Return the median of each measurement over several runs."""
    return Cost(*(statistics.median(column) for column in zip(*costs, strict=True)))


def main() -> None:
    """Run both benchmarks and print their tables."""
    parser = arguments(__doc__)
    parser.add_argument("--work", type=json.loads, help=argparse.SUPPRESS)
    parser.add_argument("--chapters", type=int, default=20, help="of the files that are read")
    parser.add_argument("--files", type=int, default=5_000, help="how many the commands work on")
    parser.add_argument("--only", choices=["reading"], help="leave out the command line")
    parser.add_argument("--folder", type=Path, help="where to work; what was indexed there is used")
    args = parser.parse_args()
    if args.work:
        write_files(Path(args.work["data"]), Path(args.work["folder"]), args.work["count"])
        print("{}")
        return
    if shutil.which("soffice"):
        with tempfile.TemporaryDirectory() as name:
            rows = fidelity_rows(Path(name), args.data, args.chapters)
            header = ["", "F1", "whole paragraphs", "headings", "rows", "CPU ms"]
            show("Reading files", [*header, "x bare"], rows, NOTE)
    else:
        print("skipped: no soffice (LibreOffice)")
    if args.only:
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        docs = folder / "docs"
        costs = {"a bare `nodekin --version`": command(folder, "--version")}
        if not docs.exists():
            work = {"data": str(args.data), "folder": str(docs), "count": args.files}
            in_new_process(__file__, work)  # This excludes the memory of the current process.
        if not (folder / ".nodekin").exists():
            costs["index"] = command(folder, "index", "docs", "--quiet")
        questions = (
            ["Which", "magazine", "was", "started", "first?"],
            ["范廷颂是什么时候被任为主教的？"],
        )
        costs["search, the first"] = command(folder, "search", *questions[0])
        costs["search"] = median([command(folder, "search", *q) for q in questions * 3])
        costs["index again, nothing changed"] = median(
            [command(folder, "index", "docs", "--quiet") for _ in range(3)]
        )
        changed = docs / "part000" / "page00000.md"
        changed.write_bytes(changed.read_bytes() + b"\n\nOne more line.")
        costs["index again, one file changed"] = command(folder, "index", "docs", "--quiet")
        size = sum(path.stat().st_size for path in docs.rglob("*.md"))
        disk = bytes_on_disk(folder / ".nodekin")
    show(
        f"{args.files:,} files, {size / 1e6:.0f} MB; {disk / 1e6:.0f} MB on disk",
        ("command", "CPU s", "MB"),
        [(name, f"{cost.seconds:.2f}", f"{cost.memory:.0f}") for name, cost in costs.items()],
    )


if __name__ == "__main__":
    main()
