"""Documents whose owner and text change in one transaction, and retrievers that search them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from nodekin.nodegraph import Document, Embedder, EntityExtractor, NodeGraph
from nodekin.retrievers import (
    AutoMergeRetriever,
    FusionRetriever,
    LinkRetriever,
    MultiQueryRetriever,
    RecursiveRetriever,
    RerankRetriever,
    Retriever,
    RetrieverProtocol,
    ScoredNode,
    WindowRetriever,
    register_reranker,
)

QUERY = "Which green tea has Henrik Ibsen?"
OWNER = {"tenant": "A"}
IDS = ("a", "b", "c", "d")


def documents(state: int) -> list[Document]:
    """Return the documents in the given state.

    Two of them belong to A. The text of each document contains its owner and the state.
    """
    made = []
    for place, i in enumerate(IDS):
        owner = "A" if (place + state) % 2 == 0 else "B"
        mark = f"{owner}{state}"
        lines = [f"Henrik Ibsen {i}", f"Green tea of Henrik Ibsen, {mark}.", f"Milk, {mark}."]
        lines += [f"Green tea again, {mark}."] * (1 + (place + state) % 3)
        made.append(Document("\n".join(lines), {"tenant": owner, "state": state}, id=i))
    return made


def moving_graph(state: int = 0, store: Any = None) -> NodeGraph:
    """Return a graph of the documents in the given state."""
    graph = NodeGraph(store=store, progress=False, embed=Embedder(letters, "letters"))
    graph.create_node_group("line", str.splitlines)
    graph.create_node_group("word", str.split, parent="line")
    graph.create_node_group("entity", EntityExtractor())
    graph.add(documents(state))
    return graph


def letters(texts: list[str]) -> list[list[float]]:
    return [[text.lower().count(letter) + 0.1 for letter in "aegkrt0123456789"] for text in texts]


@register_reranker(batch=True, name="longest_first")
def longest_first(nodes: list[Any], query: str) -> list[float]:
    return [float(len(node.root.text)) for node in nodes]  # this reads other nodes of the graph


def variants(prompt: str) -> str:
    return "Which tea has milk?\nWho is Henrik Ibsen?"


Inner = Callable[[RetrieverProtocol], RetrieverProtocol]

COMPOSITES: Mapping[str, Callable[[NodeGraph, Inner], RetrieverProtocol]] = {
    "merge": lambda g, inner: AutoMergeRetriever(inner(Retriever(g, "line")), ratio=0.2),
    "merge words": lambda g, inner: AutoMergeRetriever(
        inner(Retriever(g, "word", top_k=40)), ratio=0.2, target="ROOT"
    ),
    "window": lambda g, inner: WindowRetriever(inner(Retriever(g, "line")), 2, 2),
    "fuse": lambda g, inner: FusionRetriever(
        [inner(Retriever(g, "line", target="ROOT")), inner(Retriever(g, "ROOT"))]
    ),
    "rerank": lambda g, inner: RerankRetriever(inner(Retriever(g, "line")), "longest_first"),
    "links": lambda g, inner: LinkRetriever(inner(Retriever(g, "ROOT")), g, via="entity"),
    "recurse": lambda g, inner: RecursiveRetriever(
        g, ["line", "ROOT"], references={i: inner(Retriever(g, "line", top_k=2)) for i in IDS}
    ),
    "queries": lambda g, inner: MultiQueryRetriever(inner(Retriever(g, "line")), variants),
    "vectors": lambda g, inner: WindowRetriever(inner(Retriever(g, "line", "cosine"))),
    "nested": lambda g, inner: FusionRetriever(
        [
            LinkRetriever(
                FusionRetriever([inner(Retriever(g, "ROOT")), inner(Retriever(g, "ROOT"))]),
                g,
                via="entity",
            ),
            RerankRetriever(
                AutoMergeRetriever(
                    WindowRetriever(inner(Retriever(g, "line"))), ratio=0.2, target="ROOT"
                ),
                "longest_first",
            ),
        ]
    ),
}
"""Functions that create composite retrievers.

Each function takes a graph and a function that is applied to each inner ``Retriever``.
"""

WAYS: Mapping[str, Callable[[RetrieverProtocol], list[ScoredNode]]] = {
    "sync": lambda retriever: retriever.retrieve(QUERY, filters=OWNER),
    "async": lambda retriever: asyncio.run(retriever.aretrieve(QUERY, filters=OWNER)),
    "batch": lambda retriever: retriever.batch([QUERY, "milk"], filters=OWNER)[0],  # type: ignore[attr-defined]
}
