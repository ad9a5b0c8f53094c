"""The peers' retrieval by words, over passages of either set."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from comparing import Ranking

from nodekin.retrievers.evaluation import Dataset

Words = Callable[[str], list[str]]
DEPTH = 10


def titled(dataset: Dataset) -> dict[str, str]:
    """Return texts below their titles by id, for systems that know no metadata."""
    return {
        one.id: f"{one.metadata['title']}\n{one.text}" if "title" in one.metadata else one.text
        for one in dataset.documents
    }


def rank_bm25_systems(dataset: Dataset, words: Words) -> Iterator[tuple[str, Any]]:
    """The formula's reference."""
    from rank_bm25 import BM25Okapi

    ids = [one.id for one in dataset.documents]
    index = BM25Okapi([words(text) for text in titled(dataset).values()])

    def rank(query: str) -> list[str]:
        best = np.argsort(-index.get_scores(words(query)), kind="stable")[:DEPTH]
        return [ids[at] for at in best]

    yield "rank-bm25, words", Ranking(dataset, rank)


def bm25s_systems(dataset: Dataset, words: Words) -> Iterator[tuple[str, Any]]:
    """The fastest Python library."""
    import bm25s

    index = bm25s.BM25(corpus=[one.id for one in dataset.documents])
    index.index([words(text) for text in titled(dataset).values()], show_progress=False)

    def rank(query: str) -> list[str]:
        ids, _ = index.retrieve([words(query)], k=DEPTH, show_progress=False)
        return [str(one) for one in ids[0]]

    yield "bm25s (lucene), words", Ranking(dataset, rank)


def langchain_systems(dataset: Dataset, words: Words) -> Iterator[tuple[str, Any]]:
    """LangChain's own retriever, as it comes and with words."""
    from langchain_community.retrievers import BM25Retriever

    for name, settings in (("as it comes", {}), ("words", {"preprocess_func": words})):
        texts = titled(dataset)
        ids = [{"id": one} for one in texts]
        bm25: Any = BM25Retriever.from_texts([*texts.values()], ids, k=DEPTH, **settings)

        def rank(query: str, bm25: Any = bm25) -> list[str]:
            return [document.metadata["id"] for document in bm25.invoke(query)]

        yield f"LangChain BM25Retriever, {name}", Ranking(dataset, rank)


def llama_index_systems(dataset: Dataset, words: Words) -> Iterator[tuple[str, Any]]:
    """LlamaIndex's own retriever, as it comes and over text cut into words."""
    from llama_index.core.schema import TextNode
    from llama_index.retrievers.bm25 import BM25Retriever

    plain = [
        TextNode(id_=one.id, text=one.text, metadata=dict(one.metadata))
        for one in dataset.documents
    ]
    yield (
        "LlamaIndex BM25Retriever, as it comes",
        BM25Retriever.from_defaults(nodes=plain, similarity_top_k=DEPTH),
    )
    cut = [TextNode(id_=i, text=" ".join(words(text))) for i, text in titled(dataset).items()]
    spaced = BM25Retriever.from_defaults(nodes=cut, similarity_top_k=DEPTH, skip_stemming=True)

    def rank(query: str) -> list[str]:
        return [result.node.node_id for result in spaced.retrieve(" ".join(words(query)))]

    yield "LlamaIndex BM25Retriever, words", Ranking(dataset, rank)


PEERS = {
    "rank-bm25": rank_bm25_systems,
    "bm25s": bm25s_systems,
    "LangChain": langchain_systems,
    "LlamaIndex": llama_index_systems,
}
