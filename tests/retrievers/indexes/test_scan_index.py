"""The index that scores every node: changes, and vectors in the order of nodes."""

import numpy as np
import pytest

from nodekin.nodegraph import Document, NodeGraph
from nodekin.nodegraph.concurrency import with_deferred_work
from nodekin.retrievers import Filter
from nodekin.retrievers.indexes.scan_index import ScanIndex


def held(index: ScanIndex, scores):
    with index._graph.reader.reading("ROOT"):
        return index.search(scores, 1, Filter())


@pytest.mark.parametrize("key", [None, "default"])
def test_scan_index_scores_current_nodes_with_their_vectors(key: str | None) -> None:
    graph = NodeGraph(embed=lambda texts: [[len(text), 1] for text in texts], progress=False)
    index = ScanIndex(graph, "ROOT", key)
    seen: list[list[str]] = []

    def longest(nodes, vectors):
        seen.append([node.id for node in nodes])
        lengths = [len(node.text) for node in nodes]
        if key is not None:
            assert np.asarray(vectors)[:, 0].tolist() == lengths
        return lengths

    for number in range(12):
        graph.add(Document("x" * (number + 1), id=str(number % 3)))
        with graph.reader.reading("ROOT"):
            index.sync()
        hits = with_deferred_work(lambda: held(index, longest))
        assert (hits.ids, hits.scores) == ([str(number % 3)], [number + 1])
    assert seen[-1] == [node.id for node in graph.nodes("ROOT")]
