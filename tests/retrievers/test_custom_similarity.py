"""Classes that conform to the protocols, and a custom similarity."""

from collections.abc import Sequence
from typing import Literal

from nodekin.nodegraph import NodeGraph
from nodekin.retrievers import (
    Filter,
    Retriever,
    ScoredNode,
)
from nodekin.retrievers.results import Hits


class LengthIndex:
    """Finds the nodes whose length is nearest to a number."""

    def __init__(self, graph: NodeGraph, group: str) -> None:
        self._graph, self._group = graph, group

    def ready(self) -> None:
        """Nothing takes long here."""

    def sync(self) -> None:
        """Read everything."""
        self._nodes = self._graph.reader.changes(self._group, 0).added

    def search(self, query: int, limit: int | None, filter: Filter) -> Hits:
        """Score by the difference."""
        scored = sorted((-abs(len(n.text) - query), n.order, n.id) for n in self._nodes)
        scored.sort(key=lambda row: (-row[0], row[1]))
        return Hits([i for _, _, i in scored][:limit], [float(s) for s, _, _ in scored][:limit])


class Length:
    name = "length"
    mode: Literal["text"] = "text"

    def open(self, graph: NodeGraph, group: str, key: str | None = None) -> LengthIndex:
        return LengthIndex(graph, group)

    def prepare(self, query: str, indexes: Sequence[LengthIndex]) -> int:
        return int(query)


def test_custom_similarity_is_accepted(library: NodeGraph) -> None:
    results = Retriever(library, "word", Length(), top_k=2).retrieve("5")
    assert [(r.node.text, r.score) for r in results] == [("green", 0.0), ("black", 0.0)]
    assert results[0].evidence[0].similarity == "length"
    lifted = Retriever(library, "word", Length(), target="ROOT", top_k=9).retrieve("2")
    assert [(type(r), r.score) for r in lifted] == [
        *[(ScoredNode, -1.0)] * 2,
        *[(ScoredNode, -2.0)],
        *[(ScoredNode, lifted[3].score)],
    ]
