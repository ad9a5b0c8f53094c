"""Any vector store as an index, without a framework: a backend of four methods is enough."""

from collections.abc import Sequence

import numpy as np
import pytest

from nodekin.adapters.vector_store_index import EmbeddedNode, StoreIndexes
from nodekin.nodegraph import NodeGraph
from nodekin.retrievers import Retriever
from nodekin.retrievers.indexes.nearest_vectors import unit
from nodekin.retrievers.testing import check_index


class ListBackend:
    """Vectors in a dictionary; finds at most ``most`` of them."""

    name = "list"

    def __init__(self, most: int = 1000) -> None:
        self.vectors: dict[str, np.ndarray] = {}
        self.fingerprints: dict[str, str] = {}
        self.most = most

    def nearest_ids(self, vector: np.ndarray, count: int) -> list[str]:
        ranking = sorted(self.vectors, key=lambda i: -float(self.vectors[i] @ vector))
        return ["foreign", *ranking][: min(count, self.most)]

    def stored(self, ids: Sequence[str]) -> dict[str, str]:
        return {i: self.fingerprints[i] for i in ids if i in self.fingerprints}

    def delete(self, ids: Sequence[str]) -> None:
        for i in ids:
            del self.vectors[i], self.fingerprints[i]

    def add(self, nodes: Sequence[EmbeddedNode]) -> None:
        assert not {row.node.id for row in nodes} & set(self.vectors)
        self.vectors.update((row.node.id, unit(row.vector[np.newaxis])[0]) for row in nodes)
        self.fingerprints.update((row.node.id, row.fingerprint) for row in nodes)


@pytest.mark.slow
@pytest.mark.parametrize("most", [1000, 2])
def test_it_is_an_index_like_any_other(most: int) -> None:
    check_index(
        "cosine",
        index=StoreIndexes("store", lambda graph, group, key: ListBackend(most), one_store=False),
    )


def test_the_store_has_the_nodes_of_the_group_and_no_other() -> None:
    backend = ListBackend()
    index = StoreIndexes(backend, lambda graph, group, key: backend, one_store=True)
    graph = NodeGraph(embed=lambda texts: [[len(text), 1] for text in texts], progress=False)
    ids = graph.add(["tea", "river"])
    retriever = Retriever(graph, "ROOT", "cosine", index=index)
    retriever("x")
    assert set(backend.vectors) == set(ids)
    graph.remove(ids[0])
    retriever("x")
    assert set(backend.vectors) == {ids[1]}


def test_equal_stores_are_one_index() -> None:
    store = object()
    first, second, other = (
        StoreIndexes(s, lambda *_: ListBackend(), one_store=True) for s in (store, store, object())
    )
    assert first == second != other
    assert hash(first) == hash(second)
    graph = NodeGraph(embed=lambda texts: [[1, 1] for _ in texts], progress=False)
    assert first.cosine.open(graph, "ROOT", "default") is second.cosine.open(
        graph, "ROOT", "default"
    )
