"""Retrieval by words in other languages than Chinese and English, and of code, beside the peers.

XQuAD's 240 paragraphs and 1,190 questions in each language of which there is a file, each alone
and all in one corpus; Wikipedia in Japanese and Thai; functions of the standard library by the
first line of what documents them.
"""

from __future__ import annotations

import ast
import re
import sysconfig
import textwrap
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from harness import Ranking, arguments, graph_of, japanese_and_thai, rows_of, show
from harness import xquad as read_xquad

from nodekin.nodegraph import Document
from nodekin.retrievers import DefaultRetriever, Retriever
from nodekin.retrievers.evaluation import Dataset, GoldDocument, Matching, Question

DEPTH = 10

METRICS = ("recall@1", "recall@5", "recall@10", "mrr@10")

EXACT = Matching("contains")
"""A passage is itself, and no other that resembles it."""

SNOWBALL = {"ar": "arabic", "de": "german", "el": "greek", "en": "english", "es": "spanish"} | {
    "hi": "hindi",
    "ro": "romanian",
    "ru": "russian",
    "tr": "turkish",
}

_FEWEST_WORDS, _FEWEST_LINES = 5, 4

Words = Callable[[str], list[str]]


class Task(NamedTuple):
    """Passages and questions, and a stemmer's name."""

    dataset: Dataset
    stemmer: str | None


def xquad(data: Path) -> Iterator[Task]:
    """Read the languages there are, then all as one corpus, asked in each."""
    tasks = [Task(dataset, SNOWBALL.get(dataset.name)) for dataset in read_xquad(data)]
    yield from tasks
    together = [
        replace(document, id=f"{dataset.name}/{document.id}")
        for dataset, _ in tasks
        for document in dataset.documents
    ]
    for dataset, stemmer in tasks:
        yield Task(Dataset(dataset.questions, together, f"{dataset.name} among all"), stemmer)


def code(limit: int) -> Iterator[Task]:
    """Return functions of the standard library, as they are and in camel case."""
    some = functions(limit)
    for name, style in (("code", str), ("code, camelCase", in_camel_case)):
        documents = [Document(style(one.source), id=str(at)) for at, one in enumerate(some)]
        questions = [
            Question(str(at), one.question, (GoldDocument(str(at)),)) for at, one in enumerate(some)
        ]
        yield Task(Dataset(questions, documents, name), "english")


class Function(NamedTuple):
    """A function of a module: the question that it answers, and its source without that."""

    module: str
    name: str
    question: str
    source: str


def functions(limit: int | None = None) -> list[Function]:
    """Return the documented functions of the standard library, every n-th where there is a limit.

    Functions with equal questions are left out, since nothing could tell them apart.
    """
    folder = Path(sysconfig.get_path("stdlib"))
    found = [f for path in sorted(_modules(folder)) for f in _functions(path, folder)]
    questions = [f.question for f in found]
    once = {question for question in questions if questions.count(question) == 1}
    distinct = [f for f in found if f.question in once]
    step = 1 if limit is None else max(1, len(distinct) // limit)
    return distinct[::step][:limit]


def in_camel_case(source: str) -> str:
    """Write the names in a program as other languages do: ``run_target`` becomes ``runTarget``."""

    def joined(match: re.Match[str]) -> str:
        first, *others = match[0].split("_")
        return first + "".join(map(str.capitalize, others))

    return re.sub(r"\b[a-z]+(?:_[a-z0-9]+)+\b", joined, source)


def _modules(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*.py"):
        parts = path.relative_to(folder).parts
        if not {"test", "tests", "idlelib", "site-packages", "lib2to3", "idle_test"} & {*parts}:
            yield path


def _functions(path: Path, folder: Path) -> Iterator[Function]:
    text = path.read_text(encoding="utf-8", errors="replace")
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return
    lines = text.splitlines()
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        documentation = ast.get_docstring(node) or ""
        question = documentation.partition("\n")[0].strip()
        first, end = node.body[0], node.end_lineno or node.lineno
        source = lines[node.lineno - 1 : first.lineno - 1] + lines[first.end_lineno or 0 : end]
        long_enough = len(question.split()) >= _FEWEST_WORDS and len(source) >= _FEWEST_LINES
        if long_enough and first.lineno > node.lineno:
            module = path.relative_to(folder).with_suffix("").as_posix().replace("/", ".")
            yield Function(module, node.name, question, textwrap.dedent("\n".join(source)))


def words(text: str) -> list[str]:
    """Cut into words in lower case, marks of a letter being part of it."""
    normal = unicodedata.normalize("NFC", text).lower()
    return re.findall(r"\w(?:\w|[\u064b-\u0652\u0900-\u0903\u093a-\u094f])*", normal)


def grams(text: str) -> list[str]:
    """Cut words into four letters each, as they stand between spaces."""
    padded = [f"_{word}_" for word in words(text)]
    return [word[at : at + 4] for word in padded for at in range(max(1, len(word) - 3))]


def default(task: Task) -> Any:
    """What every command searches by; its passages are the paragraphs."""
    return DefaultRetriever(graph_of(task.dataset), top_k=DEPTH)


def plain(task: Task) -> Any:
    """Words of the paragraphs, as the peers have them."""
    return Retriever(graph_of(task.dataset), "ROOT", top_k=DEPTH)


def rank_bm25(cut: Words) -> Callable[[Task], Any]:
    """The formula's reference, over any terms."""

    def make(task: Task) -> Any:
        from rank_bm25 import BM25Okapi

        ids = [document.id for document in task.dataset.documents]
        index = BM25Okapi([cut(document.text) for document in task.dataset.documents])

        def rank(query: str) -> list[str]:
            best = np.argsort(-index.get_scores(cut(query)), kind="stable")[:DEPTH]
            return [ids[at] for at in best]

        return Ranking(task.dataset, rank)

    return make


def bm25s(task: Task) -> Any:
    """The fastest Python library, with the language's stemmer where there is one."""
    import bm25s as library
    import Stemmer

    stemmer = Stemmer.Stemmer(task.stemmer) if task.stemmer else None

    def cut(texts: list[str]) -> Any:
        return library.tokenize(texts, stopwords=None, stemmer=stemmer, show_progress=False)

    index = library.BM25(corpus=[document.id for document in task.dataset.documents])
    index.index(cut([document.text for document in task.dataset.documents]), show_progress=False)

    def rank(query: str) -> list[str]:
        ids, _ = index.retrieve(cut([query]), k=DEPTH, show_progress=False)
        return [str(one) for one in ids[0]]

    return Ranking(task.dataset, rank)


SYSTEMS: dict[str, Callable[[Task], Any]] = {
    "**nodekin**, default": default,
    "**nodekin**, plain words": plain,
    "rank-bm25, words": rank_bm25(words),
    "rank-bm25, 4-grams": rank_bm25(grams),
    "bm25s, Snowball": bm25s,
}


def measured(tasks: list[Task]) -> Iterator[list[str]]:
    """Yield a row for each task and system, as it is done."""
    for task in tasks:

        def system(name: str, task: Task = task) -> Iterator[tuple[str, Any]]:
            yield name, SYSTEMS[name](task)

        families = {name: lambda name=name: system(name) for name in SYSTEMS}
        for row in rows_of(task.dataset, families, METRICS, matching=EXACT):
            yield [task.dataset.name, *row]


def main() -> None:
    """Run what there is data for."""
    parser = arguments(__doc__)
    parser.add_argument("--functions", type=int, default=1500, help="how many, of those there are")
    options = parser.parse_args()
    others = [Task(dataset, None) for dataset in japanese_and_thai(options.data)]
    tasks = [*xquad(options.data), *others, *code(options.functions)]
    if len(tasks) == 2:
        print(f"\nskipped: no xquad and no languages in {options.data}")
    sizes = (f"{t.name}: {len(t.documents)}, {len(t)}" for t, _ in tasks)
    columns = ["questions", "system", *METRICS]
    show(f"Passages and questions: {', '.join(sizes)}", columns, measured(tasks))


if __name__ == "__main__":
    main()
