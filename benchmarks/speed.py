"""Build, query and update times at growing sizes, beside the peers, in one run.

The texts are short Chinese passages of about 65 characters, put together at random (fixed seed)
from the clauses of CMRC 2018; the queries are its questions. The peers work on jieba's
search-mode words: their build includes cutting the texts, their query cutting the query. Peers
without updates build anew when a document comes. Ratios are the peer's time over nodekin's.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from harness import arguments, cmrc, jieba_words, milliseconds_each, seconds, show

SLOW_PEERS_UP_TO = 100_000


class Peer(NamedTuple):
    """One system's times: build and add in seconds, query in milliseconds."""

    name: str
    build: float
    query: float
    add: float


def passages(paragraphs: list[str], size: int) -> list[str]:
    """Make passages of two to six clauses."""
    clauses = [c for p in paragraphs for c in re.split("(?<=[，。！？；])", p) if len(c) > 3]
    rng = random.Random(2018)
    return ["".join(rng.choices(clauses, k=rng.randint(2, 6))) for _ in range(size)]


def nodekin(texts: list[str], queries: list[str], top_k: int) -> Peer:
    """One group of nodes under documents of a thousand."""
    from nodekin.nodegraph import Document, NodeGraph
    from nodekin.retrievers import Retriever

    graph = NodeGraph(progress=False)
    graph.create_node_group("passage", str.splitlines)
    retriever = Retriever(graph, "passage", "bm25_chinese", top_k=top_k)

    def build() -> None:
        step = range(0, len(texts), 1000)
        graph.add([Document("\n".join(texts[i : i + 1000]), id=str(i)) for i in step])
        retriever.retrieve(queries[0])

    built, _ = seconds(build)
    each = milliseconds_each(retriever.retrieve, queries)
    numbers = itertools.count()

    def add(query: str) -> None:
        graph.add(f"新来的第{next(numbers)}篇文章：{query}")
        assert "新来的" in retriever.retrieve(f"新来的文章 {query}", top_k=1)[0].node.text

    return Peer("**nodekin**", built, each, milliseconds_each(add, queries[:20], 1) / 1000)


def bm25s(texts: list[str], queries: list[str], top_k: int) -> Peer:
    """The library, on numpy."""
    import bm25s as library

    def build() -> Any:
        index = library.BM25()
        index.index([jieba_words(text) for text in texts], show_progress=False)
        return index

    built, index = seconds(build)

    def search(query: str) -> Any:
        return index.retrieve([jieba_words(query)], k=top_k, show_progress=False)

    return Peer("bm25s (numpy)", built, milliseconds_each(search, queries), built)


def rank_bm25(texts: list[str], queries: list[str], top_k: int) -> Peer:
    """The reference, with numpy's partition in place of its full sort."""
    import numpy as np
    from rank_bm25 import BM25Okapi

    built, index = seconds(lambda: BM25Okapi([jieba_words(text) for text in texts]))

    def search(query: str) -> Any:
        return np.argpartition(index.get_scores(jieba_words(query)), -top_k)[-top_k:]

    return Peer("rank-bm25", built, milliseconds_each(search, queries[:10], 1), built)


def langchain(texts: list[str], queries: list[str], top_k: int) -> Peer:
    """LangChain's BM25Retriever."""
    from langchain_community.retrievers import BM25Retriever

    built, made = seconds(
        lambda: BM25Retriever.from_texts(texts, preprocess_func=jieba_words, k=top_k)
    )
    each = milliseconds_each(made.invoke, queries[:10], 1)
    return Peer("LangChain BM25Retriever", built, each, built)


def llama_index(texts: list[str], queries: list[str], top_k: int) -> Peer:
    """LlamaIndex's BM25Retriever."""
    from llama_index.core.schema import TextNode
    from llama_index.retrievers.bm25 import BM25Retriever

    def build() -> Any:
        nodes = [TextNode(text=" ".join(jieba_words(text))) for text in texts]
        return BM25Retriever.from_defaults(nodes=nodes, similarity_top_k=top_k, skip_stemming=True)

    built, made = seconds(build)
    each = milliseconds_each(lambda q: made.retrieve(" ".join(jieba_words(q))), queries, 1)
    return Peer("LlamaIndex BM25Retriever", built, each, built)


def peers(size: int) -> Iterator[Callable[[list[str], list[str], int], Peer]]:
    """Yield what is to be measured at a size."""
    yield nodekin
    yield bm25s
    if size <= SLOW_PEERS_UP_TO:
        yield rank_bm25
        yield langchain
        yield llama_index


def main() -> None:
    """Measure each size in one go."""
    parser = arguments(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--top-k", type=int, default=10)
    options = parser.parse_args()
    paragraphs, questions = cmrc(options.data)
    queries = [question.text for question in questions[:100]]
    jieba_words("暖机")
    for size in options.sizes:
        texts = passages(paragraphs, size)
        rows: list[list[str]] = []
        own: Peer | None = None
        for measure in peers(size):
            try:
                peer = measure(texts, queries, options.top_k)
            except ImportError as error:
                rows.append([measure.__name__, f"not installed: {error.name}", "", "", "", "", ""])
                continue
            own = own or peer
            rows.append(
                [
                    peer.name,
                    f"{peer.build:.2f}",
                    f"{peer.build / own.build:.1f}",
                    f"{peer.query:.2f}",
                    f"{peer.query / own.query:.1f}",
                    f"{1000 * peer.add:,.1f}",
                    f"{peer.add / own.add:,.0f}",
                ]
            )
        header = ["system", "build s", "ratio", "query ms", "ratio", "add one ms", "ratio"]
        show(f"{size:,} passages", header, rows)


if __name__ == "__main__":
    main()
