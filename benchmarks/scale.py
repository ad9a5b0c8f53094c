"""Measure large graphs in a file, compared with tantivy and bm25s.

One graph contains a million lines, the other contains 300,000 short passages. ``speed.py --scale``
runs this benchmark. Each system builds its files in one process, and opens and changes them in a
second process, so that no memory is shared. The lines belong to 1,000 documents and are searched by
plain BM25. Each passage is a document and is searched by nodekin's default search. The texts are
the same as in ``speed.py``. All systems store the texts and return them.

- Build: the time until the first answer, including all processes that nodekin starts. The peak
  memory is the sum of the peaks of these processes.
- Opening: the CPU seconds and private memory (anonymous pages) for the first answer in a new
  process, after all imports.
- Questions: the median CPU time of a new question, without a filter and with a filter that matches
  1 % of the documents.
- Edit: the median CPU time of replacing one document and answering the next question. bm25s does
  not support updates, so its index is built again.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from harness import (
    arguments,
    bytes_on_disk,
    in_new_process,
    jieba_words,
    peak_megabytes,
    show,
)
from speed import corpora, english_words

TOP_K = 10
DOCUMENTS = 1000  # number of documents to which the lines belong
PARTS = 100  # number of values, of which a filter selects one
WARM = 5
QUESTIONS = 60
EDITS = 5
HEADER = [
    "graph",
    "system",
    "build s",
    "CPU s",
    "peak MB",
    "file MB",
    "opening CPU s",
    "private MB",
    "question ms",
    "filter 1 % ms",
    "edit ms",
]


# Texts


@dataclass(frozen=True)
class Case:
    """A combination of a system and a set of texts to measure.

    Attributes:
        system: The name of the system, which is a key of ``SYSTEMS``.
        kind: The kind of texts, ``"lines"`` or ``"passages"``.
        language: The language, ``"English"`` or ``"Chinese"``.
        size: The number of lines or passages.
        folder: The folder that contains the texts, the questions and the files of the system.
    """

    system: str
    kind: str
    language: str
    size: int
    folder: str

    @property
    def texts(self) -> Path:
        """The file that contains the texts, one per line."""
        return Path(self.folder) / "texts.txt"

    @property
    def store(self) -> Path:
        """The folder that contains the files of the system."""
        return Path(self.folder) / self.system

    @property
    def lines_per_document(self) -> int:
        """The number of texts in a document."""
        return max(1, self.size // DOCUMENTS) if self.kind == "lines" else 1

    def questions(self) -> list[str]:
        """Read the questions and return them."""
        text = (Path(self.folder) / "questions.json").read_text(encoding="utf-8")
        questions: list[str] = json.loads(text)
        return questions


class Page(NamedTuple):
    """A document, which consists of a number that is also its id, and its texts."""

    number: int
    texts: list[str]

    @property
    def part(self) -> int:
        """The value of the metadata field that filters select."""
        return self.number % PARTS


def pages(case: Case) -> Iterator[Page]:
    """Read the documents of a case one by one, without keeping them in memory."""
    number = 0
    texts: list[str] = []
    with case.texts.open(encoding="utf-8") as file:
        for line in file:
            texts.append(line.rstrip("\n"))
            if len(texts) == case.lines_per_document:
                yield Page(number, texts)
                number += 1
                texts = []
    if texts:
        yield Page(number, texts)


def write_texts(folder: Path, texts: Iterable[str], questions: Sequence[str]) -> None:
    """Write the texts and the questions to files that all systems read."""
    with (folder / "texts.txt").open("w", encoding="utf-8") as file:
        file.writelines(f"{' '.join(text.split())}\n" for text in texts)
    (folder / "questions.json").write_text(json.dumps(questions), encoding="utf-8")


# Systems


class System(Protocol):
    """A search engine that stores its data in files.

    ``open`` must be called before questions are asked or documents are edited.
    """

    def __init__(self, case: Case) -> None: ...

    def build(self, pages: Iterable[Page]) -> None:
        """Index all documents and write the files."""

    def open(self) -> None:
        """Open the files that ``build`` wrote."""

    def ask(self, question: str, part: int | None = None) -> list[str]:
        """Return the texts of the best results for a question.

        If ``part`` is given, only documents with this value are searched.
        """

    def edit(self, page: Page) -> bool:
        """Replace a document. Return False if the system does not support updates."""


class Nodekin:
    """A node graph in a file, with plain BM25 for lines and the default search for passages."""

    def __init__(self, case: Case) -> None:
        from nodekin.nodegraph import Document, NodeGraph
        from nodekin.retrievers import DefaultRetriever, Retriever

        self.case = case
        self.document = Document
        self.graph_class = NodeGraph
        self.plain = Retriever
        self.default = DefaultRetriever

    def build(self, pages: Iterable[Page]) -> None:
        """Add all documents to the graph."""
        self.open()
        self.graph.add(self._document(page) for page in pages)

    def open(self) -> None:
        """Open the graph and create its retriever."""
        self.graph = self.graph_class(store=self.case.store / "graph.db", progress=False)
        if self.case.kind == "lines":
            self.graph.create_node_group("line", str.splitlines)
            self.retriever = self.plain(self.graph, "line", "bm25", top_k=TOP_K)
        else:
            self.retriever = self.default(self.graph, top_k=TOP_K)

    def ask(self, question: str, part: int | None = None) -> list[str]:
        """Search the graph, with a filter if ``part`` is given."""
        filters = None if part is None else {"part": part}
        return [found.node.text for found in self.retriever.retrieve(question, filters=filters)]

    def edit(self, page: Page) -> bool:
        """Replace a document by adding a document with the same id."""
        self.graph.add(self._document(page))
        return True

    def _document(self, page: Page) -> Any:
        return self.document("\n".join(page.texts), {"part": page.part}, id=str(page.number))


class Tantivy:
    """Tantivy with its default number of threads. Each line is a separate document."""

    def __init__(self, case: Case) -> None:
        import tantivy

        self.library = tantivy
        self.case = case
        chinese = case.language == "Chinese"
        builder = tantivy.SchemaBuilder()
        builder.add_text_field("words", tokenizer_name="whitespace" if chinese else "en_stem")
        builder.add_text_field("text", stored=True, tokenizer_name="raw", index_option="basic")
        builder.add_text_field("page", tokenizer_name="raw", index_option="basic")
        builder.add_integer_field("part", indexed=True)
        self.schema = builder.build()

    def build(self, pages: Iterable[Page]) -> None:
        """Add all documents, and wait until the segments of the index are merged."""
        self.open()
        for page in pages:
            self._add(page)
        self.writer.commit()
        self.writer.wait_merging_threads()
        self.index.reload()

    def open(self) -> None:
        """Open the index."""
        self.index = self.library.Index(self.schema, path=str(self.case.store))
        self._writer: Any = None

    def ask(self, question: str, part: int | None = None) -> list[str]:
        """Search for the words of the question. If ``part`` is given, it must match as well."""
        words = " ".join(english_words(searched_words(self.case.language, question)))
        query = self.index.parse_query(words, ["words"])
        if part is not None:
            must = self.library.Occur.Must
            condition = self.library.Query.term_query(self.schema, "part", part)
            query = self.library.Query.boolean_query([(must, query), (must, condition)])
        searcher = self.index.searcher()
        hits = searcher.search(query, TOP_K).hits
        return [searcher.doc(address)["text"][0] for _, address in hits]

    def edit(self, page: Page) -> bool:
        """Delete the lines of a document and add its new lines."""
        self.writer.delete_documents("page", str(page.number))
        self._add(page)
        self.writer.commit()
        self.index.reload()
        return True

    @property
    def writer(self) -> Any:
        """The writer of the index, which is created when it is first used."""
        if self._writer is None:
            self._writer = self.index.writer()
        return self._writer

    def _add(self, page: Page) -> None:
        for text in page.texts:
            words = searched_words(self.case.language, text)
            fields = {"words": words, "text": text, "page": str(page.number), "part": page.part}
            self.writer.add_document(self.library.Document.from_dict(fields, self.schema))


class Bm25s:
    """bm25s with its own tokenizer. The index is opened as a memory-mapped file."""

    def __init__(self, case: Case) -> None:
        import bm25s
        import numpy as np
        import Stemmer

        self.library = bm25s
        self.numpy = np
        self.case = case
        self.stemmer = Stemmer.Stemmer("english")

    def build(self, pages: Iterable[Page]) -> None:
        """Index all texts and save the index."""
        texts: list[str] = []
        for page in pages:
            texts.extend(page.texts)
        self.index = self.library.BM25()
        self.index.index(self._tokens(texts), show_progress=False)
        self.index.save(self.case.store, corpus=texts, show_progress=False)
        self.open()

    def open(self) -> None:
        """Open the saved index as a memory-mapped file."""
        self.index = self.library.BM25.load(self.case.store, mmap=True, load_corpus=True)
        documents = self.numpy.arange(self.case.size) // self.case.lines_per_document
        self.parts = documents % PARTS

    def ask(self, question: str, part: int | None = None) -> list[str]:
        """Search the index, with a mask if ``part`` is given."""
        mask = None if part is None else (self.parts == part).astype("float32")
        tokens = self._tokens([question])
        found, _ = self.index.retrieve(tokens, k=TOP_K, show_progress=False, weight_mask=mask)
        return [one["text"] for one in found[0]]

    def edit(self, page: Page) -> bool:
        """Return False, since bm25s does not support updates."""
        return False

    def _tokens(self, texts: list[str]) -> Any:
        if self.case.language == "Chinese":
            return [jieba_words(text) for text in texts]
        return self.library.tokenize(
            texts, stopwords="en", stemmer=self.stemmer, show_progress=False
        )


SYSTEMS: dict[str, Callable[[Case], System]] = {
    "nodekin": Nodekin,
    "tantivy": Tantivy,
    "bm25s": Bm25s,
}


def searched_words(language: str, text: str) -> str:
    """Prepare a text for tantivy. Chinese words are separated by spaces."""
    return " ".join(jieba_words(text)) if language == "Chinese" else text


# Timers and memory


class OtherProcesses:
    """Measures the CPU seconds and peak memory of the child processes of this process (Linux only).

    A thread reads the values several times per second, because they are lost when a process ends.
    """

    def __init__(self) -> None:
        self.cpu_seconds: dict[int, float] = {}
        self.peaks: dict[int, float] = {}
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> OtherProcesses:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._end.set()
        self._thread.join()
        self._read()

    def _watch(self) -> None:
        while not self._end.wait(0.25):
            self._read()

    def _read(self) -> None:
        for path in Path("/proc/self/task").glob("*/children"):
            try:
                children = path.read_text().split()
            except OSError:  # The thread has ended.
                continue
            for child in children:
                self._read_process(int(child))

    def _read_process(self, pid: int) -> None:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            peak = field_megabytes("VmHWM", pid)
        except OSError:  # The process has ended.
            return
        user_ticks, system_ticks = fields[11:13]
        ticks = int(user_ticks) + int(system_ticks)
        self.cpu_seconds[pid] = ticks / os.sysconf("SC_CLK_TCK")
        self.peaks[pid] = max(peak, self.peaks.get(pid, 0))


def field_megabytes(field: str, process: int | str = "self") -> float:
    """Return a memory field of a process's status, such as RssAnon, in megabytes.

    The result is 0 if the field is missing.
    """
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except FileNotFoundError:  # This file exists only on Linux.
        return 0.0
    found = re.search(rf"{field}:\s+(\d+) kB", status)
    return int(found[1]) / 1024 if found else 0.0


def median_milliseconds(work: Callable[[Any], Any], items: Iterable[Any]) -> float:
    """Call a function with each item, and return the median CPU time in milliseconds.

    The CPU time of all threads in this process is measured.
    """
    times = []
    for item in items:
        start = time.process_time()
        work(item)
        times.append(time.process_time() - start)
    return 1000 * statistics.median(times)


# Functions that run in the measured processes


def build(case: Case) -> dict[str, float]:
    """Build the files of a system, and return the measurements."""
    system = SYSTEMS[case.system](case)
    case.store.mkdir()
    start = time.perf_counter()
    cpu_start = time.process_time()
    with OtherProcesses() as others:
        system.build(pages(case))
        answers = system.ask(case.questions()[0])
        wall = time.perf_counter() - start
        cpu = time.process_time() - cpu_start
    assert answers
    return {
        "wall": wall,
        "cpu": cpu + sum(others.cpu_seconds.values()),
        "peak": peak_megabytes() + sum(others.peaks.values()),
        "disk": bytes_on_disk(case.store) / 1e6,
    }


def use(case: Case) -> dict[str, float | None]:
    """Open the files of a system, and measure opening, questions and edits."""
    questions = iter(case.questions())
    system = SYSTEMS[case.system](case)
    memory = field_megabytes("RssAnon")
    cpu_start = time.process_time()
    system.open()
    answers = system.ask(next(questions))
    opening = time.process_time() - cpu_start
    private = field_megabytes("RssAnon") - memory
    assert answers
    for _ in range(WARM):
        system.ask(next(questions))
    new = [next(questions) for _ in range(QUESTIONS)]
    question = median_milliseconds(system.ask, new)
    part = PARTS // 2
    system.ask(next(questions), part)
    filtered = [next(questions) for _ in range(QUESTIONS)]
    with_filter = median_milliseconds(lambda query: system.ask(query, part), filtered)
    return {
        "opening": opening,
        "private": private,
        "question": question,
        "filter": with_filter,
        "edit": edit_milliseconds(system, case),
    }


def edit_milliseconds(system: System, case: Case) -> float | None:
    """Return the median CPU time of an edit and the next answer in milliseconds.

    The result is None if the system does not support updates.
    """
    edits = []
    for page in pages(case):
        if len(edits) == EDITS:
            break
        edits.append(Page(page.number, [*page.texts[1:], f"newcomer{page.number} was added."]))

    def edit(page: Page) -> bool:
        changes = system.edit(page)
        if changes:
            assert page.texts[-1] in system.ask(f"newcomer{page.number}")[0]
        return changes

    if not edit(edits[0]):
        return None
    return median_milliseconds(edit, edits[1:])


TASKS: dict[str, Callable[[Case], Any]] = {"build": build, "use": use}


# Functions that run in the main process


def measure(data: Path, language: str, lines: int, passages: int) -> Iterator[list[str]]:
    """Measure all systems on all sets of texts, and yield a row for each combination."""
    for kind, size in (("lines", lines), ("passages", passages)):
        (corpus,) = corpora(data, size, [language])
        with tempfile.TemporaryDirectory() as folder:
            write_texts(Path(folder), corpus.texts, corpus.queries)
            text = bytes_on_disk(Path(folder) / "texts.txt") / 1e6
            del corpus
            for system in SYSTEMS:
                case = Case(system, kind, language, size, folder)
                yield [f"{size:,} {kind}, {text:,.0f} MB", *row(case)]


def row(case: Case) -> list[str]:
    """Measure a system in two new processes, and return its row of the table."""
    name = f"**{case.system}**" if case.system == "nodekin" else case.system
    try:
        built = in_new_process(__file__, {"task": "build", "case": vars(case)})
        used = in_new_process(__file__, {"task": "use", "case": vars(case)})
    except ImportError as error:
        return [name, f"not installed: {error.name}", *[""] * (len(HEADER) - 3)]
    return [
        name,
        f"{built['wall']:.1f}",
        f"{built['cpu']:.1f}",
        f"{built['peak']:,.0f}",
        f"{built['disk']:,.0f}",
        f"{used['opening']:.3f}",
        f"{used['private']:.1f}",
        f"{used['question']:.2f}",
        f"{used['filter']:.2f}",
        "a build" if used["edit"] is None else f"{used['edit']:.1f}",
    ]


def show_scale(data: Path, languages: Sequence[str], lines: int, passages: int) -> None:
    """Measure and print the table of each language.

    With ``--save``, it is saved for docs/scale.md.
    """
    for language in languages:
        rows = measure(data, language, lines, passages)
        show(f"Scale, {language}", HEADER, rows, script="scale")


def main() -> None:
    """Run the benchmark, or do the work of one of its processes."""
    parser = arguments(__doc__)
    parser.add_argument("--languages", nargs="+", default=["English"])
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--passages", type=int, default=300_000)
    parser.add_argument("--work", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work is None:
        show_scale(options.data, options.languages, options.lines, options.passages)
        return
    try:
        result = TASKS[options.work["task"]](Case(**options.work["case"]))
    except ImportError as error:
        result = {"missing": error.name}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
