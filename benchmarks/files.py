"""Files of all formats: how true, how fast beside the bare library, how much faster on two cores.

Known text is written by LibreOffice (``apt-get install libreoffice-writer-nogui fonts-noto-cjk``)
and read back. ``python benchmarks/files.py --data ../shared/data``; ``--only cores`` takes the
small files of the tests without it.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from office_files import FIXTURES, FORMATS, Block, convert, fidelity, flat_document, text_of
from sample_files import sample_files

from nodekin.nodegraph import NodeGraph, ReadOptions
from nodekin.nodegraph.readers.file_records import SourceFile
from nodekin.nodegraph.readers.read_options import ReadOptions as Options
from nodekin.nodegraph.readers.reader_registry import find_reader

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


def read(file: SourceFile) -> list:
    """Read a file as nodekin does, in this process."""
    return find_reader(file.path).records(file)


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


def ratio(ours: Callable[[], object], bare: Callable[[], object]) -> tuple[float, float]:
    """Return the processor time of a call, and how many times that of another, run in turn."""
    times: list[tuple[float, float]] = []
    for _ in range(9):
        began = time.process_time()
        bare()
        between = time.process_time()
        ours()
        times.append((time.process_time() - between, between - began))
    least = min(own for own, _ in times)
    return least, least / min(other for _, other in times)


def write_known(
    folder: Path, data: Path, language: str, chapters: int, formats: Sequence[str]
) -> tuple[list[Block], Path]:
    """Let LibreOffice write known text; return it, and the file that it wrote the others from."""
    texts = list(dict.fromkeys(paragraphs(data, language)))
    known = list(blocks(texts, language, chapters))
    source = folder / f"{language}.fodt"
    source.write_text(flat_document(known), encoding="utf-8")
    convert(source, *formats)
    return known, source


def show_fidelity(folder: Path, data: Path, chapters: int) -> None:
    """Print how true what is read is to what was written, and how long it takes."""
    print(f"{'file':<10}{'F1':>8}{'ms':>8}{'x bare':>8}")
    for language in ("en", "zh"):
        known, source = write_known(folder, data, language, chapters, FORMATS)
        for suffix in (".pdf", ".docx", ".html", ".odt", ".rtf", ".epub"):
            file = SourceFile(source.with_suffix(suffix), Options())
            ((text, _, _),) = read(file)
            bare = BARE.get(suffix, read)
            argument = file.path if suffix in BARE else file
            least, times = ratio(
                lambda file=file: read(file), lambda bare=bare, what=argument: bare(what)
            )
            line = f"{language + suffix:<10}{fidelity(text_of(known), text):>8.4f}"
            line += f"{least * 1e3:>8.0f}" + (f"{times:>8.2f}" if suffix in BARE else "")
            print(line)


def processor_seconds() -> tuple[float, float]:
    """Return the processor time of this process, and of those that it started and that ended."""
    from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage

    own, others = getrusage(RUSAGE_SELF), getrusage(RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime, others.ru_utime + others.ru_stime


def show_cores(folder: Path, count: int, repeat: int) -> None:
    """Print how long a folder of mixed files takes with one and with two processes, in turn.

    Processor times tell what two could reach at most on two free cores: all of this process's
    work is done before or after that of the others (Amdahl 1967), though most is done meanwhile.
    """
    seeds = [path for path in sample_files(folder / "seeds") if path.suffix != ".mbox"]
    docs = folder / "docs"
    docs.mkdir()
    larger = [path for path in folder.glob("*.*") if path.suffix in BARE] or [*FIXTURES.iterdir()]
    for number in range(count):
        seed = larger[number % len(larger)] if number % 10 == 0 else seeds[number % len(seeds)]
        (docs / f"{number:05}{seed.suffix}").write_bytes(seed.read_bytes())
    walls: dict[int, list[float]] = {1: [], 2: []}
    spent: dict[int, list[tuple[float, float]]] = {1: [], 2: []}
    report = ""
    for number in range(repeat):
        for workers in (1, 2):
            own, others = processor_seconds()
            began = time.perf_counter()
            store = folder / f"{number}-{workers}.nodekin"
            options = ReadOptions(workers=workers)
            with NodeGraph(docs, store=store, progress=False, reading=options) as graph:
                walls[workers].append(time.perf_counter() - began)
                report = str(graph.read_report)
            after = processor_seconds()
            spent[workers].append((after[0] - own, after[1] - others))
    print(f"\n{count} mixed files, kept in a file, least of {repeat}: {report}")
    print(f"{'processes':<12}{'seconds':>9}{'processor: this one':>21}{'others':>8}")
    least = {n: min(spent[n], key=sum) for n in spent}
    for workers, (own, others) in least.items():
        print(f"{workers:<12}{min(walls[workers]):>9.1f}{own:>21.2f}{others:>8.2f}")
    bound = sum(least[1]) / (least[2][0] + least[2][1] / 2)
    print(f"two are {min(walls[1]) / min(walls[2]):.2f} times as fast as one")
    print(f"by processor times {bound:.2f} times, if this process waited for the others")


def main() -> None:
    """Run it all."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--data", type=Path, default=Path("../shared/data"))
    arguments.add_argument("--chapters", type=int, default=20)
    arguments.add_argument("--count", type=int, default=1000)
    arguments.add_argument("--repeat", type=int, default=3)
    arguments.add_argument("--only", choices=["fidelity", "cores"])
    options = arguments.parse_args()
    with tempfile.TemporaryDirectory() as name:
        if options.only != "cores":
            show_fidelity(Path(name), options.data, options.chapters)
        elif shutil.which("soffice"):
            for language in ("en", "zh"):
                write_known(
                    Path(name), options.data, language, options.chapters, ("pdf", "docx", "html")
                )
        if options.only != "fidelity":
            show_cores(Path(name), options.count, options.repeat)


if __name__ == "__main__":
    main()
