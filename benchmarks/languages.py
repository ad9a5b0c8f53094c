"""Retrieval by words in other languages than Chinese and English, and of code, beside the peers.

XQuAD's 240 paragraphs and 1,190 questions in each language of which there is a file, each alone
and all in one corpus; functions of the standard library by the first line of what documents them.
"""

from __future__ import annotations

import json
import re
import statistics
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from code_questions import functions, in_camel_case
from harness import Question, arguments, show

DEPTH = 10

SNOWBALL = {"ar": "arabic", "de": "german", "el": "greek", "en": "english", "es": "spanish"} | {
    "hi": "hindi",
    "ro": "romanian",
    "ru": "russian",
    "tr": "turkish",
}

Words = Callable[[str], list[str]]
Search = Callable[[str], list[str]]


class Task(NamedTuple):
    """Passages to search, questions with the passage that answers each, a stemmer's name."""

    name: str
    passages: list[str]
    questions: list[Question]
    stemmer: str | None


def xquad(data: Path) -> Iterator[Task]:
    """Read the languages there are, then all as one corpus, asked in each."""
    tasks = []
    for path in sorted((data / "xquad").glob("xquad.*.json")):
        language = path.suffixes[-2][1:]
        articles = json.loads(path.read_text(encoding="utf-8"))["data"]
        rows = [row for article in articles for row in article["paragraphs"]]
        questions = [Question(qa["question"], row["context"]) for row in rows for qa in row["qas"]]
        passages = [row["context"] for row in rows]
        tasks.append(Task(language, passages, questions, SNOWBALL.get(language)))
    yield from tasks
    together = [passage for task in tasks for passage in task.passages]
    for task in tasks:
        yield task._replace(name=f"{task.name} among all", passages=together)


def code(limit: int) -> Iterator[Task]:
    """Return functions of the standard library, as they are and in camel case."""
    some = functions(limit)
    for name, style in (("code", str), ("code, camelCase", in_camel_case)):
        sources = [style(function.source) for function in some]
        pairs = zip(some, sources, strict=True)
        questions = [Question(function.question, source) for function, source in pairs]
        yield Task(name, sources, questions, "english")


def words(text: str) -> list[str]:
    """Cut into words in lower case, marks of a letter being part of it."""
    normal = unicodedata.normalize("NFC", text).lower()
    return re.findall(r"\w(?:\w|[\u064b-\u0652\u0900-\u0903\u093a-\u094f])*", normal)


def grams(text: str) -> list[str]:
    """Cut words into four letters each, as they stand between spaces."""
    padded = [f"_{word}_" for word in words(text)]
    return [word[at : at + 4] for word in padded for at in range(max(1, len(word) - 3))]


def nodekin(task: Task) -> Search:
    """The settings as they come."""
    from nodekin.nodegraph import NodeGraph
    from nodekin.retrievers import Retriever

    graph = NodeGraph(progress=False)
    graph.add(task.passages)
    retriever = Retriever(graph, "ROOT", top_k=DEPTH)
    return lambda query: [result.node.text for result in retriever(query)]


def rank_bm25(cut: Words) -> Callable[[Task], Search]:
    """The formula's reference, over any terms."""

    def make(task: Task) -> Search:
        from rank_bm25 import BM25Okapi

        index = BM25Okapi([cut(text) for text in task.passages])

        def search(query: str) -> list[str]:
            best = np.argsort(-index.get_scores(cut(query)), kind="stable")[:DEPTH]
            return [task.passages[at] for at in best]

        return search

    return make


def bm25s(task: Task) -> Search:
    """The fastest Python library, with the language's stemmer where there is one."""
    import bm25s as library
    import Stemmer

    stemmer = Stemmer.Stemmer(task.stemmer) if task.stemmer else None

    def cut(texts: Sequence[str]) -> Any:
        return library.tokenize(list(texts), stopwords=None, stemmer=stemmer, show_progress=False)

    index = library.BM25(corpus=task.passages)
    index.index(cut(task.passages), show_progress=False)

    def search(query: str) -> list[str]:
        found, _ = index.retrieve(cut([query]), k=DEPTH, show_progress=False)
        return [str(text) for text in found[0]]

    return search


SYSTEMS: dict[str, Callable[[Task], Search]] = {
    "**nodekin**": nodekin,
    "rank-bm25, words": rank_bm25(words),
    "rank-bm25, 4-grams": rank_bm25(grams),
    "bm25s, Snowball": bm25s,
}


def measured(tasks: Sequence[Task]) -> Iterator[list[str]]:
    """Return a row for each task and system, as it is done."""
    for task in tasks:
        for name, make in SYSTEMS.items():
            try:
                search = make(task)
            except ImportError as error:
                yield [task.name, name, f"skipped, not installed: {error.name}", "", ""]
                continue
            places = [place(search(question), gold) for question, gold in task.questions]
            shares = (statistics.mean(0 < at <= k for at in places) for k in (1, 5, 10))
            mean = statistics.mean(1 / at if at else 0.0 for at in places)
            yield [task.name, name, *(f"{share:.3f}" for share in shares), f"{mean:.4f}"]


def place(found: Sequence[str], gold: str) -> int:
    """Return where a text is, from 1; 0 where it is not."""
    return found.index(gold) + 1 if gold in found else 0


def main() -> None:
    """Run what there is data for."""
    parser = arguments(__doc__)
    parser.add_argument("--functions", type=int, default=1500, help="how many, of those there are")
    options = parser.parse_args()
    tasks = [*xquad(options.data), *code(options.functions)]
    if len(tasks) == 2:
        print(f"\nskipped: no xquad in {options.data}")
    columns = ["questions", "system", "recall@1", "recall@5", "recall@10", "MRR@10"]
    sizes = ", ".join(f"{t.name}: {len(t.passages)}, {len(t.questions)}" for t in tasks)
    show(f"Passages and questions: {sizes}", columns, measured(tasks))


if __name__ == "__main__":
    main()
