"""Built-in and custom indexes return the same results after every kind of change."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from support.index_checks import check_index, check_retriever

from nodekin.nodegraph import Node
from nodekin.retrievers import AutoMergeRetriever, FusionRetriever, Retriever, register_similarity
from nodekin.retrievers.filters import Filter
from nodekin.retrievers.indexes.synced_index import SyncedIndex
from nodekin.retrievers.results import Hits
from nodekin.retrievers.similarities import registry
from nodekin.retrievers.similarities.bm25 import Bm25


@pytest.mark.slow
@pytest.mark.parametrize(
    "similarity", ["bm25", Bm25(analyzer=str.split), "cosine", "exact"], ids=str
)
def test_built_in_similarity_passes(similarity: Any) -> None:
    check_index(similarity)


def test_map_index_passes(capsys: pytest.CaptureFixture[str]) -> None:
    check_index(index="map")
    assert capsys.readouterr() == ("", "")  # no bar


@pytest.mark.parametrize("batch", [False, True])
def test_registered_function_passes(monkeypatch: pytest.MonkeyPatch, batch: bool) -> None:
    monkeypatch.setattr(registry, "REGISTERED", {})

    def common(query: str, node: Node) -> float | None:
        return float(len(set(query) & set(node.text))) or None

    def common_of_all(query: str, nodes: Sequence[Node]) -> list[float | None]:
        return [common(query, node) for node in nodes]

    if batch:
        check_index(register_similarity(batch=True)(common_of_all))
    else:
        check_index(register_similarity(common))


class WordIndex(SyncedIndex):
    """A custom index: the number of common words."""

    def clear(self) -> None:
        self.nodes: dict[str, Node] = {}

    def remove(self, ids: Sequence[str]) -> None:
        for node_id in ids:
            self.nodes.pop(node_id, None)

    def add(self, nodes: Sequence[Node]) -> None:
        self.nodes.update((node.id, node) for node in nodes)

    def score(self, query: str, node: Node) -> float:
        return float((Counter(query.split()) & Counter(node.text.split())).total())

    def scored(self, query: str, filter: Filter) -> list[tuple[float, Node]]:
        nodes = sorted(self.nodes.values(), key=lambda node: node.order)
        scored = [(self.score(query, n), n) for n in nodes if filter.matches(n)]
        return sorted((pair for pair in scored if pair[0]), key=lambda pair: -pair[0])

    def search(self, query: str, limit: int | None, filter: Filter) -> Hits:
        best = self.scored(query, filter)[:limit]
        return Hits([node.id for _, node in best], [score for score, _ in best])


def maker(cls: type[SyncedIndex]) -> Callable[..., SyncedIndex]:
    return lambda graph, group, key, similarity: cls(graph, group)


@pytest.mark.slow
def test_custom_index_passes() -> None:
    check_index(index=maker(WordIndex))


class StoredWords(WordIndex):
    """The same index with a file of any size."""

    def file_name(self) -> str:
        return "words"

    def arrays(self) -> dict[str, Any]:
        import numpy as np

        rows = [[n.id, n.text, n.order, dict(n.metadata)] for n in self.nodes.values()]
        return {"json": np.frombuffer(json.dumps(rows).encode(), np.uint8)}

    def restore(self, arrays: Mapping[str, Any]) -> None:
        rows = json.loads(arrays["json"].tobytes())
        self.nodes = {i: Node(text, data, id=i, order=order) for i, text, order, data in rows}


@pytest.mark.slow
def test_custom_index_with_file_passes() -> None:
    check_index(index=maker(StoredWords))


def test_retrievers_pass() -> None:
    check_retriever(lambda graph: Retriever(graph, "line", "cosine"))
    check_retriever(lambda graph: AutoMergeRetriever(Retriever(graph, "line"), target="ROOT"))
    check_retriever(
        lambda graph: FusionRetriever(
            [Retriever(graph, "line"), Retriever(graph, "line", "cosine")]
        )
    )
