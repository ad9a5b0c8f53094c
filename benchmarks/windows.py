"""How much of the answer is within so many tokens: chunks of 400 tokens, passages, windows.

The share of the answers' characters that is returned, in the mean over questions: Chroma's
five corpora with the excerpts that answer, XQuAD's articles, HotpotQA's supporting sentences and
the answers of MuSiQue's steps. For how-tos, facts and CMRC (see ``passages.py``) the number of
questions whose whole answer is there. Chunks and passages are the first of BM25 and of the default
search, each where it fits; windows are what the default search returns for ``max_tokens=``.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from harness import arguments, show
from passages import cmrc_questions, own_questions, texts

from nodekin.nodegraph import Document, NodeGraph, PassageSplitter, SentenceSplitter, count_tokens
from nodekin.retrievers import Retriever, ScoredNode, as_retriever

BUDGETS = (400, 800, 1_600)

Span = tuple[str, int, int]
"""A document, and the first character of a part of it, and the one behind the last."""


class Task(NamedTuple):
    """Documents, and questions with the places of their answers."""

    name: str
    documents: Sequence[Document]
    questions: Sequence[tuple[str, Sequence[Span]]]
    whole: bool = False  # whether questions count whose answer is there as a whole


def chroma(data: Path) -> Task:
    """Read five corpora and 472 questions, each with the excerpts that answer it."""
    folder = data / "chroma"
    documents = [Document(p.read_text("utf8"), id=p.stem) for p in sorted(folder.glob("*.md"))]
    csv.field_size_limit(10**9)
    with (folder / "questions_df.csv").open(encoding="utf8", newline="") as file:
        questions = [
            (
                row["question"],
                [
                    (row["corpus_id"], part["start_index"], part["end_index"])
                    for part in json.loads(row["references"])
                ],
            )
            for row in csv.DictReader(file)
        ]
    return Task("Chroma", documents, questions)


def articles(path: Path) -> Task:
    """Read whole articles of a file in SQuAD's form, and a quarter of its questions."""
    documents, questions = [], []
    for number, article in enumerate(json.loads(path.read_text("utf8"))["data"]):
        text = ""
        for paragraph in article["paragraphs"]:
            for question in paragraph["qas"]:
                answer = question["answers"][0]
                start = len(text) + answer["answer_start"]
                span = (str(number), start, start + len(answer["text"]))
                questions.append((question["question"], [span]))
            text += paragraph["context"] + "\n\n"
        documents.append(Document(text, id=str(number)))
    return Task(path.stem, documents, questions[::4])


def guides(data: Path) -> Iterator[Task]:
    """Yield the how-tos and facts of our own, and CMRC's questions, over one corpus."""
    documents = list(texts(data))
    sources = {str(document.id): document.text for document in documents}
    lines = Path(__file__).with_name("passage_questions.jsonl").read_text("utf8").splitlines()
    source_of = {row["question"]: row["source"] for row in map(json.loads, lines)}
    for kind, dataset in own_questions(sources).items():
        questions = []
        for question in dataset.questions:
            source = source_of[question.text]
            text, answer = sources[source], question.answers[0]
            start = text.find(answer)
            if start < 0:  # it differs in white space
                continue
            questions.append((question.text, [(source, start, start + len(answer))]))
        yield Task(kind, documents, questions, whole=True)
    spans: list[tuple[str, list[Span]]] = []
    for question in cmrc_questions(data, sources):
        (gold,) = question.gold
        spans.append((question.text, [(gold.document_id, gold.start, gold.end)]))
    yield Task("CMRC", documents, spans, whole=True)


def hotpotqa(data: Path) -> Task:
    """Read 100 questions with the sentences that support the answer."""
    folder = data / "hotpotqa"
    rows = json.loads((folder / "hotpotqa_train.json").read_text("utf8"))
    corpus = json.loads((folder / "hotpotqa_train_corpus.json").read_text("utf8"))
    documents = [Document("".join(s), {"title": t}, id=t) for t, s in corpus.items()]
    questions = []
    for row in rows:
        spans = []
        for title, at in row["supporting_facts"]:
            start = len("".join(corpus[title][:at]))
            if at < len(corpus[title]):
                spans.append((title, start, start + len(corpus[title][at])))
        questions.append((row["question"], spans))
    return Task("HotpotQA", documents, questions)


def musique(data: Path) -> Task:
    """Read 100 questions with the answers of their steps, wherever these are in its passages."""
    folder = data / "musique"
    rows = json.loads((folder / "musique_train.json").read_text("utf8"))
    corpus = json.loads((folder / "musique_train_corpus.json").read_text("utf8"))
    ids = {(row["title"], row["text"]): str(at) for at, row in enumerate(corpus)}
    documents = [
        Document(r["text"], {"title": r["title"]}, id=str(n)) for n, r in enumerate(corpus)
    ]
    questions = []
    for row in rows:
        spans = []
        for step in row["question_decomposition"]:
            paragraph = row["paragraphs"][step["paragraph_support_idx"]]
            start = paragraph["paragraph_text"].find(step["answer"])
            if start >= 0:
                source = ids[paragraph["title"], paragraph["paragraph_text"]]
                spans.append((source, start, start + len(step["answer"])))
        questions.append((row["question"], spans))
    return Task("MuSiQue", documents, [q for q in questions if q[1]])


def tasks(data: Path) -> Iterator[tuple[str, Callable[[], Iterator[Task]]]]:
    """Yield what reads each set that there is."""
    yield "chroma", lambda: iter([chroma(data)])
    for path in sorted((data / "xquad").glob("*.json")):
        yield path.stem, lambda path=path: iter([articles(path)])
    yield "guides", lambda: guides(data)
    yield "hotpotqa", lambda: iter([hotpotqa(data)])
    yield "musique", lambda: iter([musique(data)])


def recall(results: Sequence[ScoredNode], spans: Sequence[Span], whole: bool) -> float:
    """Return the share of the spans' characters that results have; of whole answers 0 or 1."""
    have: set[tuple[str, int]] = set()
    for result in results:
        node = result.node
        start, end = (0, len(node.text)) if node.start is None else (node.start, node.end)
        have.update((node.document_id, at) for at in range(start, end))
    gold = {(document, at) for document, start, end in spans for at in range(start, end)}
    share = len(gold & have) / len(gold)
    return float(share == 1.0) if whole else share


def fitting(ranking: Sequence[ScoredNode], budget: int) -> list[ScoredNode]:
    """Return the first results, each where it fits."""
    found, left = [], budget
    for result in ranking:
        if (cost := count_tokens(result.node.text)) <= left:
            found.append(result)
            left -= cost
    return found


def row_of(task: Task, chunks: Retriever, default: Any) -> list[str]:
    """Return what chunks, passages and windows have of a task's answers at each budget."""
    totals = np.zeros((len(BUDGETS), 3))
    for question, spans in task.questions:
        rankings = [one.retrieve(question, top_k=20) for one in (chunks, default)]
        for budget, total in zip(BUDGETS, totals, strict=True):
            windows = default.retrieve(question, max_tokens=budget)
            assert sum(count_tokens(item.node.text) for item in windows) <= budget
            ways = [*(fitting(ranking, budget) for ranking in rankings), windows]
            total += [recall(results, spans, task.whole) for results in ways]
    count = len(task.questions)
    if task.whole:
        return [
            task.name,
            *(" / ".join(f"{n:.0f}" for n in row) + f" of {count}" for row in totals),
        ]
    return [task.name, *(" / ".join(f"{n / count:.3f}" for n in row) for row in totals)]


def rows(data: Path, names: Sequence[str]) -> Iterator[list[str]]:
    """Yield a row for each set that is there."""
    for name, read in tasks(data):
        if names and name not in names:
            continue
        documents: Sequence[Document] = ()
        try:
            for task in read():
                if task.documents is not documents:
                    documents, graph = task.documents, NodeGraph(progress=False)
                    graph.add(task.documents)
                    graph.create_node_group("chunk", SentenceSplitter(400, 0))
                    chunks, default = Retriever(graph, "chunk"), as_retriever(graph)
                yield row_of(task, chunks, default)
        except FileNotFoundError as error:
            yield [f"{name}: skipped, no {error.filename}"]


def whole_excerpts(data: Path) -> float:
    """Return the share of Chroma's excerpts that one passage has as a whole."""
    task = chroma(data)
    graph = NodeGraph(progress=False)
    graph.add(task.documents)
    graph.create_node_group("passage", PassageSplitter)
    spans = [(n.document_id, n.start, n.end) for n in graph.nodes("passage")]
    excerpts = [span for _, of_question in task.questions for span in of_question]
    held = [
        any(d == document and a <= start and end <= b for d, a, b in spans)
        for document, start, end in excerpts
    ]
    return sum(held) / len(held)


def main() -> None:
    """Print the table."""
    parser = arguments(__doc__)
    parser.add_argument("--sets", nargs="*", default=[], help="chroma, xquad.de, guides, ...")
    options = parser.parse_args()
    print(f"one passage has {whole_excerpts(options.data):.3f} of Chroma's excerpts as a whole")
    header = ["set", *(f"{budget:,} tokens" for budget in BUDGETS)]
    show("What of the answer is within a budget", header, rows(options.data, options.sets))


if __name__ == "__main__":
    main()
