"""nodekin's ways to retrieve passages, for ``quality.py``; what each is made of goes with it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from comparing import graph_of
from harness import e5
from rerank_models import chinese, english

from nodekin.nodegraph import ROOT, EntityExtractor, NodeGraph, SentenceSplitter, split_sentences
from nodekin.retrievers import (
    FusionRetriever,
    LinkRetriever,
    RecursiveRetriever,
    RerankRetriever,
    Retriever,
)
from nodekin.retrievers.evaluation import Dataset

DEPTH = 10  # passages that are returned
FUSED_DEPTH = 50
RERANKED = 10

PARAGRAPH, SENTENCE = "paragraph, bm25", "sentence -> paragraph, bm25"
POOL = "sentences and chunks of 160 as one pool, bm25"
GROUPS_FUSED = "paragraphs and sentences fused (relative), bm25"
BY_VECTOR = "paragraph, cosine"
SENTENCE_BY_VECTOR = "sentence -> paragraph, cosine"
POOL_BY_VECTOR = "paragraphs and sentences as one pool, cosine"
RRF, RELATIVE = "paragraph, bm25 + cosine fused (rrf)", "paragraph, bm25 + cosine fused (relative)"
SENTENCES_FUSED = "sentence -> paragraph, bm25 + cosine fused (relative)"
LINKS = "paragraph, bm25, following links"


class System(NamedTuple):
    """A set-up, and the names of those it is made of."""

    name: str
    retriever: Any
    parts: tuple[str, ...] = ()
    few: bool = False  # whether it is slow, and asked some of the questions only


class Uncut:
    """Search without a number of results, so that the parts of a fusion give as many as they are
    made for; a call with a number would bind them.

    Args:
        retriever: The retriever.
    """

    def __init__(self, retriever: Any) -> None:
        self.retriever = retriever

    def retrieve(self, query: str, *, top_k: int | None = None, filters: Any = None) -> Any:
        """Return the first of as many results as the retriever gives."""
        return self.retriever.retrieve(query)[:top_k]

    async def aretrieve(self, query: str, *, top_k: int | None = None, filters: Any = None) -> Any:
        """Return the same."""
        return self.retrieve(query, top_k=top_k)


def word_systems(dataset: Dataset, cache: Path) -> Iterator[System]:
    """Search by words: passages, sentences for them, both, and along links."""
    graph = graph_of(dataset)
    graph.create_node_group("sentence", split_sentences)
    graph.create_node_group("chunk", SentenceSplitter, chunk_size=160, chunk_overlap=16)
    graph.create_node_group("entity", EntityExtractor(), scope="group")
    whole = Retriever(graph, ROOT, "bm25", top_k=DEPTH)
    lifted = Retriever(graph, "sentence", "bm25", target=ROOT, top_k=DEPTH)
    pool = RecursiveRetriever(graph, ["sentence", "chunk"], target=ROOT, top_k=DEPTH)
    both = FusionRetriever([whole, lifted], mode="relative", top_k=DEPTH)
    yield System(PARAGRAPH, whole)
    yield System(SENTENCE, lifted)
    yield System(POOL, pool, (SENTENCE,))
    yield System(GROUPS_FUSED, both, (PARAGRAPH, SENTENCE))
    graph.build("entity")
    yield System(LINKS, LinkRetriever(whole, graph, via="entity", top_k=DEPTH), (PARAGRAPH,))


def vector_graph(dataset: Dataset, cache: Path) -> NodeGraph:
    """Return the graph of passages and their sentences that knows the model."""
    graph = graph_of(dataset, embed=e5(cache))
    graph.create_node_group("sentence", split_sentences)
    return graph


def vector_systems(dataset: Dataset, cache: Path) -> Iterator[System]:
    """Compare vectors of passages, and of sentences for their passages; fuse with words."""
    graph = vector_graph(dataset, cache)
    words, meaning, lifted_words, lifted = (
        Retriever(graph, group, name, target=ROOT, top_k=FUSED_DEPTH)
        for group in (ROOT, "sentence")
        for name in ("bm25", "cosine")
    )
    pool = RecursiveRetriever(graph, [ROOT, "sentence"], ROOT, "cosine", top_k=DEPTH)
    rrf, relative = (
        FusionRetriever([words, meaning], mode, top_k=DEPTH) for mode in ("rrf", "relative")
    )
    small = FusionRetriever([lifted_words, lifted], "relative", top_k=DEPTH)
    yield System(BY_VECTOR, meaning)
    yield System(SENTENCE_BY_VECTOR, lifted)
    yield System(POOL_BY_VECTOR, pool, (BY_VECTOR, SENTENCE_BY_VECTOR))
    yield System(RRF, Uncut(rrf), (PARAGRAPH, BY_VECTOR))
    yield System(RELATIVE, Uncut(relative), (PARAGRAPH, BY_VECTOR))
    yield System(SENTENCES_FUSED, Uncut(small), (SENTENCE, SENTENCE_BY_VECTOR))


def reranked_systems(dataset: Dataset, cache: Path, folder: Path | None) -> Iterator[System]:
    """Rerank passages found by words, and by words and vectors fused.

    By the cross-encoder in the folder; without one, by a model for English that is none.
    """
    model = english(cache) if folder is None else chinese(cache, folder)
    graph = vector_graph(dataset, cache)
    words, meaning = (Retriever(graph, ROOT, name) for name in ("bm25", "cosine"))
    fused = FusionRetriever([words, meaning], "relative")  # as many of each as are reranked
    for part, inner in ((PARAGRAPH, words), (RELATIVE, fused)):
        reranked = RerankRetriever(
            inner, "ModuleReranker", model=model, top_k=DEPTH, fetch=RERANKED, on_error="raise"
        )
        yield System(f"{part}, reranked", reranked, (part,), few=True)
        both = FusionRetriever([inner, reranked], "relative", top_k=DEPTH)
        yield System(f"{part}, fused with its reranking (relative)", both, (part,), few=True)


def fusion_systems(dataset: Dataset, cache: Path) -> Iterator[System]:
    """Fuse words and vectors of passages in the ways there are."""
    graph = vector_graph(dataset, cache)
    for depth in (5, FUSED_DEPTH):
        parts = [Retriever(graph, ROOT, name, top_k=depth) for name in ("bm25", "cosine")]
        if depth == FUSED_DEPTH:
            yield System(PARAGRAPH, parts[0])
            yield System(BY_VECTOR, parts[1])
        for mode in ("rrf", "relative"):
            for weight in (1.0, 2.0, 4.0):
                fused = FusionRetriever(parts, mode, weights=[weight, 1.0], top_k=DEPTH)
                name = f"{mode}, first {depth}, bm25 weighs {weight:.0f}"
                yield System(name, Uncut(fused), (PARAGRAPH, BY_VECTOR))
