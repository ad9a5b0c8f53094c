"""Write a custom similarity and a custom index, and compare them with BM25.

Usage: python examples/own_similarity.py
"""

import math

from nodekin.nodegraph import NodeGraph
from nodekin.retrievers import Retriever, TextAnalyzer
from nodekin.retrievers.indexes.bm25_weights import Saturation, TermWeights
from nodekin.retrievers.indexes.synced_index import SyncedIndex
from nodekin.retrievers.indexes.text_index import TextIndex
from nodekin.retrievers.results import Hits
from nodekin.retrievers.similarities.bm25 import Bm25


class TfIdf:
    """A TF-IDF similarity that uses the index of BM25 with different weights."""

    name, mode = "tf-idf", "text"

    def open(self, graph: NodeGraph, group: str, key: str | None = None) -> TextIndex:
        return Bm25().open(graph, group)

    def prepare(self, query: str, indexes: list[TextIndex]) -> TermWeights:
        size, weights = sum(index.size for index in indexes), {}
        for term in TextAnalyzer().query(query):
            if count := sum(index.frequency(term) for index in indexes):
                weights[term] = weights.get(term, 0) + math.log(1 + size / count)
        return TermWeights(weights, Saturation(k1=1e9, b=0, average_length=1))


class TrigramIndex(SyncedIndex):
    """An index for misspelled words, which compares the three-letter sequences of texts."""

    def clear(self):
        self.nodes = {}

    def remove(self, ids):
        for id in ids:
            self.nodes.pop(id, None)

    def add(self, nodes):
        self.nodes.update((node.id, (node, trigrams(node.text))) for node in nodes)

    def search(self, query, limit, filter):
        in_query, scored = trigrams(query), []
        for node, in_node in self.nodes.values():
            if filter.matches(node) and (common := in_query & in_node):
                scored.append((len(common) / len(in_query), node))
        scored.sort(key=lambda pair: (-pair[0], pair[1].order))
        return Hits([node.id for _, node in scored[:limit]], [score for score, _ in scored[:limit]])


def trigrams(text: str) -> set[str]:
    return {text.lower()[at : at + 3] for at in range(max(1, len(text) - 2))}


def trigram_index(graph, group, key, similarity):
    return TrigramIndex(graph, group)


graph = NodeGraph()
graph.add(["The Yangtze is a river.", "The Yellow River floods; the river moves.", "Tea grows."])
for query in ("river river banks", "the Jangtse rivr"):
    print(query)
    for name, retriever in {
        "bm25": Retriever(graph, "ROOT", "bm25"),
        "tf-idf": Retriever(graph, "ROOT", TfIdf()),
        "trigrams": Retriever(graph, "ROOT", index=trigram_index),
    }.items():
        print(f"  {name:9}", *[f"{r.score:.2f} {r.node.text}" for r in retriever(query)][:2])
