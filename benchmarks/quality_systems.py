"""nodekin's ways to retrieve passages, for ``quality.py``; what each is made of goes with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from harness import e5
from multi_hop import Passage, documents
from rerank_models import chinese, english

Search = Callable[[str], list[str]]
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
    """A way to retrieve, and the names of those it is made of."""

    name: str
    search: Search
    parts: tuple[str, ...] = ()
    few: bool = False  # whether it is slow, and asked some of the questions only


def word_systems(passages: list[Passage], cache: Path) -> Iterator[System]:
    """Search by words: passages, sentences for them, both, and along links."""
    from nodekin.nodegraph import ROOT, EntityExtractor, NodeGraph, SentenceSplitter
    from nodekin.nodegraph import split_sentences as sentences
    from nodekin.retrievers import FusionRetriever, LinkRetriever, RecursiveRetriever, Retriever

    graph = NodeGraph(progress=False)
    graph.add(documents({str(at): passage for at, passage in enumerate(passages)}))
    graph.create_node_group("sentence", sentences)
    graph.create_node_group("chunk", SentenceSplitter, chunk_size=160, chunk_overlap=16)
    graph.create_node_group("entity", EntityExtractor(), scope="group")
    whole = Retriever(graph, ROOT, "bm25", top_k=DEPTH)
    lifted = Retriever(graph, "sentence", "bm25", target=ROOT, top_k=DEPTH)
    pool = RecursiveRetriever(graph, ["sentence", "chunk"], target=ROOT, top_k=DEPTH)
    both = FusionRetriever([whole, lifted], mode="relative", top_k=DEPTH)
    yield System(PARAGRAPH, texts(whole))
    yield System(SENTENCE, texts(lifted))
    yield System(POOL, texts(pool), (SENTENCE,))
    yield System(GROUPS_FUSED, texts(both), (PARAGRAPH, SENTENCE))
    graph.build("entity")
    linked = LinkRetriever(whole, graph, via="entity", top_k=DEPTH)
    yield System(LINKS, texts(linked), (PARAGRAPH,))


def vector_graph(passages: list[Passage], cache: Path) -> Any:
    """Return the graph of passages and their sentences that knows the model."""
    from nodekin.nodegraph import NodeGraph, split_sentences

    graph = NodeGraph(embed=e5(cache), progress=False)
    graph.add(documents({str(at): passage for at, passage in enumerate(passages)}))
    graph.create_node_group("sentence", split_sentences)
    return graph


def vector_systems(passages: list[Passage], cache: Path) -> Iterator[System]:
    """Compare vectors of passages, and of sentences for their passages; fuse with words."""
    from nodekin.nodegraph import ROOT
    from nodekin.retrievers import FusionRetriever, RecursiveRetriever, Retriever

    graph = vector_graph(passages, cache)
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
    yield System(BY_VECTOR, texts(meaning))
    yield System(SENTENCE_BY_VECTOR, texts(lifted))
    yield System(POOL_BY_VECTOR, texts(pool), (BY_VECTOR, SENTENCE_BY_VECTOR))
    # The parts give more to a fusion than is returned here: a call with a top_k would bind them.
    yield System(RRF, texts(rrf, None), (PARAGRAPH, BY_VECTOR))
    yield System(RELATIVE, texts(relative, None), (PARAGRAPH, BY_VECTOR))
    yield System(SENTENCES_FUSED, texts(small, None), (SENTENCE, SENTENCE_BY_VECTOR))


def reranked_systems(passages: list[Passage], cache: Path, folder: Path | None) -> Iterator[System]:
    """Rerank passages found by words, and by words and vectors fused.

    By the cross-encoder in the folder; without one, by a model for English that is none.
    """
    from nodekin.nodegraph import ROOT
    from nodekin.retrievers import FusionRetriever, RerankRetriever, Retriever

    model = english(cache) if folder is None else chinese(cache, folder)
    graph = vector_graph(passages, cache)
    words, meaning = (Retriever(graph, ROOT, name) for name in ("bm25", "cosine"))
    fused = FusionRetriever([words, meaning], "relative")  # as many of each as are reranked
    for part, inner in ((PARAGRAPH, words), (RELATIVE, fused)):
        reranked = RerankRetriever(
            inner, "ModuleReranker", model=model, top_k=DEPTH, fetch=RERANKED, on_error="raise"
        )
        yield System(f"{part}, reranked", texts(reranked), (part,), few=True)
        both = FusionRetriever([inner, reranked], "relative", top_k=DEPTH)
        yield System(f"{part}, fused with its reranking (relative)", texts(both), (part,), few=True)


def fusion_systems(passages: list[Passage], cache: Path) -> Iterator[System]:
    """Fuse words and vectors of passages in the ways there are."""
    from nodekin.nodegraph import ROOT
    from nodekin.retrievers import FusionRetriever, Retriever

    graph = vector_graph(passages, cache)
    for depth in (5, FUSED_DEPTH):
        parts = [Retriever(graph, ROOT, name, top_k=depth) for name in ("bm25", "cosine")]
        if depth == FUSED_DEPTH:
            yield System(PARAGRAPH, texts(parts[0]))
            yield System(BY_VECTOR, texts(parts[1]))
        for mode in ("rrf", "relative"):
            for weight in (1.0, 2.0, 4.0):
                fused = FusionRetriever(parts, mode, weights=[weight, 1.0], top_k=DEPTH)
                name = f"{mode}, first {depth}, bm25 weighs {weight:.0f}"
                yield System(name, texts(fused, None), (PARAGRAPH, BY_VECTOR))


def texts(retriever: Any, top_k: int | None = DEPTH) -> Search:
    """Return a function from a query to texts."""
    return lambda query: [result.node.text for result in retriever.retrieve(query, top_k=top_k)]
