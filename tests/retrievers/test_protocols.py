"""Classes that conform to the protocols, and a custom similarity."""

import inspect
from collections.abc import Sequence
from typing import Literal

import pytest

from nodekin.nodegraph import NodeGraph
from nodekin.retrievers import (
    Filter,
    FusionRetriever,
    Retriever,
    RetrieverProtocol,
    ScoredNode,
    TextAnalyzer,
)
from nodekin.retrievers.analysis.text_analyzer import Analyzer
from nodekin.retrievers.indexes.text_index import TextIndex
from nodekin.retrievers.indexes.vector_index import VectorIndex
from nodekin.retrievers.protocols import Index, Similarity
from nodekin.retrievers.results import Hits
from nodekin.retrievers.similarities.bm25 import Bm25
from nodekin.retrievers.similarities.registry import Cosine


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


@pytest.mark.parametrize(
    ("concrete", "contract"),
    [
        (Retriever, RetrieverProtocol),
        (Bm25, Similarity),
        (TextIndex, Index),
        (Length, Similarity),
        (LengthIndex, Index),
        (Cosine, Similarity),
        (VectorIndex, Index),
        (FusionRetriever, RetrieverProtocol),
        (TextAnalyzer, Analyzer),
    ],
)
def test_class_conforms_to_protocol(concrete: type, contract: type) -> None:
    for name, member in vars(contract).items():
        if inspect.isfunction(member) and (not name.startswith("_") or name == "__call__"):
            method = getattr(concrete, name)
            wanted, has = inspect.signature(member), inspect.signature(method)
            parameters = list(has.parameters.values())
            names = [parameter.name for parameter in parameters[: len(wanted.parameters)]]
            assert names == list(wanted.parameters), name
            further = parameters[len(names) :]
            assert all(p.default is not inspect.Parameter.empty for p in further), name
            assert inspect.iscoroutinefunction(member) == inspect.iscoroutinefunction(method)


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
