"""The peers' retrieval by words, over passages of either set."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from multi_hop import Passage

Words = Callable[[str], list[str]]
Search = Callable[[str], list[str]]
DEPTH = 10


def rank_bm25_systems(passages: list[Passage], words: Words) -> Iterator[tuple[str, Search]]:
    """The formula's reference."""
    from rank_bm25 import BM25Okapi

    index = BM25Okapi([words(passage.titled) for passage in passages])

    def search(query: str) -> list[str]:
        best = np.argsort(-index.get_scores(words(query)), kind="stable")[:DEPTH]
        return [passages[at].text for at in best]

    yield "rank-bm25, words", search


def bm25s_systems(passages: list[Passage], words: Words) -> Iterator[tuple[str, Search]]:
    """The fastest Python library."""
    import bm25s

    index = bm25s.BM25(corpus=[passage.text for passage in passages])
    index.index([words(passage.titled) for passage in passages], show_progress=False)

    def search(query: str) -> list[str]:
        found, _ = index.retrieve([words(query)], k=DEPTH, show_progress=False)
        return [str(text) for text in found[0]]

    yield "bm25s (lucene), words", search


def langchain_systems(passages: list[Passage], words: Words) -> Iterator[tuple[str, Search]]:
    """LangChain's own retriever, as it comes and with words."""
    from langchain_community.retrievers import BM25Retriever

    for name, settings in (("as it comes", {}), ("words", {"preprocess_func": words})):
        titled = [passage.titled for passage in passages]
        places = [{"at": at} for at in range(len(passages))]
        made: Any = BM25Retriever.from_texts(titled, places, k=DEPTH, **settings)
        yield (
            f"LangChain BM25Retriever, {name}",
            lambda query, r=made: [passages[d.metadata["at"]].text for d in r.invoke(query)],
        )


def llama_index_systems(passages: list[Passage], words: Words) -> Iterator[tuple[str, Search]]:
    """LlamaIndex's own retriever, as it comes and over text cut into words."""
    from llama_index.core.schema import TextNode
    from llama_index.retrievers.bm25 import BM25Retriever

    plain = [
        TextNode(text=passage.text, metadata={"title": passage.title} if passage.title else {})
        for passage in passages
    ]
    as_is = BM25Retriever.from_defaults(nodes=plain, similarity_top_k=DEPTH)
    yield (
        "LlamaIndex BM25Retriever, as it comes",
        lambda q: [n.node.get_content() for n in as_is.retrieve(q)],
    )
    cut = [
        TextNode(text=" ".join(words(passage.titled)), metadata={"at": at})
        for at, passage in enumerate(passages)
    ]
    for node in cut:
        node.excluded_embed_metadata_keys = ["at"]
        node.excluded_llm_metadata_keys = ["at"]
    spaced = BM25Retriever.from_defaults(nodes=cut, similarity_top_k=DEPTH, skip_stemming=True)
    yield (
        "LlamaIndex BM25Retriever, words",
        lambda q: [
            passages[n.node.metadata["at"]].text for n in spaced.retrieve(" ".join(words(q)))
        ],
    )


PEERS = {
    "rank-bm25": rank_bm25_systems,
    "bm25s": bm25s_systems,
    "LangChain": langchain_systems,
    "LlamaIndex": llama_index_systems,
}
