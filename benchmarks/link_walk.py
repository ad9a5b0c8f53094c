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

from harness import arguments, cmrc, milliseconds_each, seconds, show
from multi_hop import PLACES, Passage, documents, hotpotqa, measure, musique

MANY = 9_450
CHANGES = 15

Single = list[tuple[str, str]]


def systems(passages: Mapping[str, Passage]) -> Iterator[tuple[str, Any]]:
    """Plain, and following links through the entities found by default."""
    from nodekin.nodegraph import ROOT, NodeGraph
    from nodekin.nodegraph.extractors.entity_extractor import EntityExtractor
    from nodekin.retrievers import Retriever
    from nodekin.retrievers.composite.link_retriever import LinkRetriever

    graph = NodeGraph(progress=False)
    graph.add(documents(passages))
    graph.create_node_group("entity", EntityExtractor(), scope="group")
    graph.build("entity")
    plain = Retriever(graph, ROOT, "bm25", top_k=max(PLACES))
    yield "bm25", plain
    yield "bm25, following links", LinkRetriever(plain, graph, via="entity", top_k=max(PLACES))


def rows_of_hops(hops: Any) -> Iterator[list[str]]:
    """Measure both halves."""
    for name, retriever in systems(hops.passages):

        def search(query: str, asked: Any = retriever) -> list[str]:
            return [result.node.id for result in asked.retrieve(query)]

        halves = [hops._replace(questions=hops.questions[half::2]) for half in (0, 1)]
        each = milliseconds_each(search, [question for question, _ in hops.questions], rounds=1)
        shares = [share for half in halves for share in measure(search, half)]
        yield [name, *shares, f"{each:.2f}"]


def rows_of_single(passages: Mapping[str, Passage], questions: Single) -> Iterator[list[str]]:
    """Measure questions with one gold passage."""
    for name, retriever in systems(passages):
        ranks = []
        for question, gold in questions:
            found = [result.node.id for result in retriever.retrieve(question, top_k=5)]
            ranks.append(found.index(gold) + 1 if gold in found else 0)
        recalls = [sum(0 < rank <= k for rank in ranks) / len(ranks) for k in (1, 3, 5)]
        mrr = sum(1 / rank for rank in ranks if rank) / len(ranks)
        yield [name, *(f"{recall:.3f}" for recall in recalls), f"{mrr:.4f}"]


def single_hops(data: Path) -> Single:
    """Return MuSiQue's questions taken apart, the answers to earlier ones filled in."""
    path = data / "musique" / "musique_train.json"
    numbers = {passage: i for i, passage in musique(data).passages.items()}
    questions = []
    for row in json.loads(path.read_text(encoding="utf-8")):
        passages = {p["idx"]: Passage(p["title"], p["paragraph_text"]) for p in row["paragraphs"]}
        answers: dict[str, str] = {}
        for number, step in enumerate(row["question_decomposition"], 1):
            question = step["question"]
            for mark, answer in answers.items():
                question = question.replace(mark, answer)
            answers[f"#{number}"] = step["answer"]
            questions.append((question, numbers[passages[step["paragraph_support_idx"]]]))
    return questions


def rows_of_changes(passages: Mapping[str, Passage], count: int) -> Iterator[list[str]]:
    """Measure changes of a graph of many passages: copies whose names end in other letters."""
    from nodekin.nodegraph import Document

    def document(at: int) -> Document:
        copy, place = divmod(at, len(titled))
        end = "" if not copy else chr(ord("a") + copy)
        title, text = (re.sub(r"\b[A-Z]\w+", rf"\g<0>{end}", part) for part in titled[place])
        return Document(text, {"title": title}, id=str(at))

    titled = [*passages.values()]
    documents = [document(at) for at in range(count + CHANGES)]
    for where in ("memory", "file"):
        with TemporaryDirectory() as folder:
            store = f"{folder}/graph.db" if where == "file" else None
            for name, *cells in changes(documents, store):
                yield [f"{name}, in {where}", *cells]


def changes(documents: list[Any], store: str | None) -> Iterator[list[str]]:
    """Add all documents but a few, then those one by one; replace and remove as many."""
    from nodekin.nodegraph import ROOT, Document, EntityExtractor, NodeGraph
    from nodekin.retrievers import LinkRetriever, Retriever

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
    header = ["system", *(f"{half} @{k}" for half in ("even", "odd") for k in PLACES), "ms a query"]
    for read in (hotpotqa, musique):
        try:
            hops = read(options.data)
        except FileNotFoundError as error:
            print(f"\nskipped: no {error.filename}")
            continue
        show(f"{hops.name}: all gold passages found", header, rows_of_hops(hops))
    columns = ["change", "ms to change", "ms of the next query", "s to build at first"]
    with contextlib.suppress(FileNotFoundError):
        rows = rows_of_changes(musique(options.data).passages, MANY)
        show(f"One passage of {MANY:,}: median of {CHANGES}", columns, rows)
    header = ["system", "recall@1", "@3", "@5", "MRR@5"]
    try:
        passages, taken_apart = musique(options.data).passages, single_hops(options.data)
        rows = rows_of_single(passages, taken_apart)
        show(f"MuSiQue, {len(taken_apart)} single steps", header, rows)
    except FileNotFoundError as error:
        print(f"\nskipped: no {error.filename}")
    paragraphs, questions = cmrc(options.data)
    ids = {text: str(at) for at, text in enumerate(paragraphs)}
    asked = [(q.text, ids[q.gold]) for q in questions[:300] if q.gold in ids]
    rows = rows_of_single({i: Passage("", text) for text, i in ids.items()}, asked)
    show(f"CMRC 2018, {len(asked)} questions", header, rows)


if __name__ == "__main__":
    main()
