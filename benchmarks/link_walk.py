"""Walking links without a model, beside plain bm25: on questions that need several passages.

The share of questions whose gold passages are all among the first 2, 5 and 10, for the even
numbered questions, which the settings were chosen on, and the odd ones, which they were not. Then
questions that one passage answers, where links should do no harm: recall and MRR at 5. Last what
one passage more, less or different costs, up to the answer of the first question after it.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from comparing import cells, compare, graph_of, ms, rows_of
from datasets import cmrc, multi_hop, musique, size
from harness import arguments, seconds, show
from quality import DOUBLE, SINGLE

from nodekin.nodegraph import ROOT, Document, EntityExtractor, NodeGraph
from nodekin.retrievers import LinkRetriever, Retriever
from nodekin.retrievers.evaluation import Dataset, GoldDocument, Question

DEPTH = 10
MANY = 9_450
CHANGES = 15


def systems(dataset: Dataset) -> Iterator[tuple[str, Any]]:
    """Plain, and following links through the entities found by default."""
    graph = graph_of(dataset)
    graph.create_node_group("entity", EntityExtractor(), scope="group")
    graph.build("entity")
    plain = Retriever(graph, ROOT, "bm25", top_k=DEPTH)
    yield "bm25", plain
    yield "bm25, following links", LinkRetriever(plain, graph, via="entity", top_k=DEPTH)


def rows_of_hops(dataset: Dataset) -> Iterator[list[str]]:
    """Measure both halves."""
    halves = [Dataset(dataset.questions[half::2], (), dataset.name) for half in (0, 1)]
    for name, retriever in systems(dataset):
        evaluations = [compare(half, {name: retriever}, DOUBLE) for half in halves]
        shares = [share for one in evaluations for share in cells(one, name, 2)]
        yield [name, *shares, ms(evaluations[1], name)]


def rows_of_single(dataset: Dataset) -> Iterator[list[str]]:
    """Measure questions with one gold passage."""
    return rows_of(dataset, {"links": lambda: systems(dataset)}, SINGLE, top_k=5)


def single_hops(data: Path) -> Dataset:
    """Return MuSiQue's questions taken apart, the answers to earlier ones filled in."""
    path = data / "musique" / "musique_train.json"
    whole = musique(data)
    ids = {(one.metadata["title"], one.text): one.id for one in whole.documents}
    questions = []
    for row in json.loads(path.read_text(encoding="utf-8")):
        passages = {p["idx"]: ids.get((p["title"], p["paragraph_text"])) for p in row["paragraphs"]}
        answers: dict[str, str] = {}
        for number, step in enumerate(row["question_decomposition"], 1):
            question = step["question"]
            for mark, answer in answers.items():
                question = question.replace(mark, answer)
            answers[f"#{number}"] = step["answer"]
            gold = GoldDocument(str(passages[step["paragraph_support_idx"]]))
            questions.append(Question(str(len(questions)), question, (gold,)))
    return Dataset(questions, whole.documents, "MuSiQue, single steps")


def rows_of_changes(dataset: Dataset, count: int) -> Iterator[list[str]]:
    """Measure changes of a graph of many passages: copies whose names end in other letters."""

    def document(at: int) -> Document:
        copy, place = divmod(at, len(titled))
        end = "" if not copy else chr(ord("a") + copy)
        title, text = (re.sub(r"\b[A-Z]\w+", rf"\g<0>{end}", part) for part in titled[place])
        return Document(text, {"title": title}, id=str(at))

    titled = [(one.metadata["title"], one.text) for one in dataset.documents]
    documents = [document(at) for at in range(count + CHANGES)]
    for where in ("memory", "file"):
        with TemporaryDirectory() as folder:
            store = f"{folder}/graph.db" if where == "file" else None
            for name, *cells in changes(documents, store):
                yield [f"{name}, in {where}", *cells]


def changes(documents: list[Any], store: str | None) -> Iterator[list[str]]:
    """Add all documents but a few, then those one by one; replace and remove as many."""
    graph = NodeGraph(store=store, progress=False)
    graph.create_node_group("entity", EntityExtractor(), scope="group")
    graph.add(documents[:-CHANGES])
    retriever = LinkRetriever(Retriever(graph, ROOT), graph, via="entity")
    building, _ = seconds(lambda: graph.build("entity"))
    retriever("Who wrote the play Brand?")

    def measured(change: Callable[[int], object], at: int) -> tuple[float, float]:
        changing, _ = seconds(lambda: (change(at), graph.build("entity")))
        return changing, seconds(lambda: retriever("Who wrote Brand?"))[0]

    kinds: Mapping[str, Callable[[int], object]] = {
        "one more": lambda at: graph.add(documents[at - CHANGES]),
        "one replaced": lambda at: graph.add(Document(documents[at].text, id=str(at))),
        "one less": lambda at: graph.remove(documents[-CHANGES - 1 - at].id),
    }
    for name, change in kinds.items():
        parts = [measured(change, at) for at in range(CHANGES)]
        medians = [f"{1000 * median(part):.1f}" for part in zip(*parts, strict=True)]
        yield [name, *medians, f"{building:.1f}"]
    graph.close()


def main() -> None:
    """Run each set that is there."""
    options = arguments(__doc__).parse_args()
    header = ["system", *(f"{half}, {k}" for half in ("even", "odd") for k in DOUBLE), "ms a query"]
    for dataset in multi_hop(options.data):
        show(f"{size(dataset)}: all gold passages found", header, rows_of_hops(dataset))
    columns = ["change", "ms to change", "ms of the next query", "s to build at first"]
    with contextlib.suppress(FileNotFoundError):
        rows = rows_of_changes(musique(options.data), MANY)
        show(f"One passage of {MANY:,}: median of {CHANGES}", columns, rows)
    header = ["system", *SINGLE]
    try:
        steps = single_hops(options.data)
        show(size(steps), header, rows_of_single(steps))
    except FileNotFoundError as error:
        print(f"\nskipped: no {error.filename}")
    chinese = cmrc(options.data)
    some = Dataset(chinese.questions[:300], chinese.documents, chinese.name)
    show(size(some), header, rows_of_single(some))


if __name__ == "__main__":
    main()
