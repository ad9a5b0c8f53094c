"""Files of all formats: how true, how fast beside the bare library, how much faster on two cores.

Known text is written by LibreOffice (``apt-get install libreoffice-writer-nogui fonts-noto-cjk``)
and read back. ``python benchmarks/files.py --data ../shared/data``.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from office_files import Block, convert, fidelity, flat_document, text_of
from sample_files import sample_files

from nodekin.nodegraph import NodeGraph, ReadOptions
from nodekin.nodegraph.readers.read_options import ReadOptions as Options
from nodekin.nodegraph.readers.source_file import SourceFile
from nodekin.nodegraph.readers.worker import parse

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
    """Yield real paragraphs: of MuSiQue in English, of CMRC in Chinese."""
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
    """Yield chapters with headings, a footnote, a list, a table and two columns each."""
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
    """Get the text of a PDF from PDFium as it is."""
    import pypdfium2

    pdf = pypdfium2.PdfDocument(path)
    for number in range(len(pdf)):
        pdf[number].get_textpage().get_text_range()


def bare_docx(path: Path) -> None:
    """Let mammoth convert a Word document."""
    import mammoth

    with path.open("rb") as file:
        mammoth.convert_to_html(file)


def bare_html(path: Path) -> None:
    """Let html-to-markdown convert a page."""
    from html_to_markdown import convert as to_markdown

    to_markdown(path.read_text(encoding="utf-8"))


BARE = {".pdf": bare_pdf, ".docx": bare_docx, ".html": bare_html}


def seconds(call: Callable[[], object], repeat: int = 5) -> float:
    """Return the processor time of a call, the least of some."""
    times = []
    for _ in range(repeat):
        began = time.process_time()
        call()
        times.append(time.process_time() - began)
    return min(times)


def show_fidelity(folder: Path, data: Path, chapters: int) -> None:
    """Print how true what is read is to what was written, and how long it takes."""
    print(f"{'file':<10}{'F1':>8}{'ms':>8}{'x bare':>8}")
    for language in ("en", "zh"):
        texts = list(dict.fromkeys(paragraphs(data, language)))
        known = list(blocks(texts, language, chapters))
        source = folder / f"{language}.fodt"
        source.write_text(flat_document(known), encoding="utf-8")
        convert(source, "pdf", "docx", "html", "odt", "rtf", "epub")
        for suffix in (".pdf", ".docx", ".html", ".odt", ".rtf", ".epub"):
            file = SourceFile(source.with_suffix(suffix), Options())
            ((text, _, _),) = parse(file)
            ours = seconds(lambda file=file: parse(file))
            line = (
                f"{language + suffix:<10}{fidelity(text_of(known), text):>8.4f}{ours * 1e3:>8.0f}"
            )
            if suffix in BARE:
                bare = seconds(lambda file=file, suffix=suffix: BARE[suffix](file.path))
                line += f"{ours / bare:>8.2f}"
            print(line)


def show_cores(folder: Path, count: int) -> None:
    """Print how long a folder of mixed files takes with one and with two processes."""
    seeds = [path for path in sample_files(folder / "seeds") if path.suffix != ".mbox"]
    docs = folder / "docs"
    docs.mkdir()
    larger = [path for path in folder.glob("*.*") if path.suffix in (".pdf", ".docx", ".html")]
    for number in range(count):
        seed = larger[number % len(larger)] if number % 10 == 0 else seeds[number % len(seeds)]
        (docs / f"{number:05}{seed.suffix}").write_bytes(seed.read_bytes())
    times = {}
    for workers in (1, 2):
        began = time.perf_counter()
        graph = NodeGraph(docs, progress=False, reading=ReadOptions(workers=workers))
        times[workers] = time.perf_counter() - began
        print(
            f"{count} mixed files, {workers} processes: {times[workers]:.1f} s, {graph.read_report}"
        )
    print(f"two are {times[1] / times[2]:.2f} times as fast as one")


def main() -> None:
    """Run it all."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--data", type=Path, default=Path("../shared/data"))
    arguments.add_argument("--chapters", type=int, default=20)
    arguments.add_argument("--count", type=int, default=1000)
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory() as name:
        show_fidelity(Path(name), options.data, options.chapters)
        show_cores(Path(name), options.count)


if __name__ == "__main__":
    main()
