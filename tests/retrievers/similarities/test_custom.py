"""Custom similarities and indexes."""

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nodekin.nodegraph import Document, Embedder, Node, NodeGraph
from nodekin.retrievers import (
    Filter,
    FusionRetriever,
    Retriever,
    register_similarity,
)
from nodekin.retrievers.results import Hits
from nodekin.retrievers.similarities import registry


@pytest.fixture(autouse=True)
def unregistered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove registered similarities after a test."""
    monkeypatch.setattr(registry, "REGISTERED", {})


def letters(texts: Sequence[str]) -> np.ndarray:
    return np.array([[text.count(c) + 0.1 for c in "aeiou"] for text in texts], np.float32)


@pytest.fixture(params=["memory", "file"])
def graph(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[NodeGraph]:
    store = tmp_path / "g" if request.param == "file" else None
    with NodeGraph(store=store, embed=Embedder(letters, "letters"), progress=False) as graph:
        graph.add(
            [
                Document("tea\ncoffee\nmilk", {"shop": 1}, id="drinks"),
                Document("bread\nrice", {"shop": 2}, id="food"),
            ]
        )
        graph.create_node_group("line", str.splitlines)
        yield graph


def found(results: Sequence[Any]) -> list[tuple[str, float]]:
    return [(result.node.text, round(result.score, 3)) for result in results]


def test_custom_similarity_per_node(graph: NodeGraph) -> None:
    @register_similarity
    def common(query: str, node: Node) -> float | None:
        return len(set(query) & set(node.text)) or None

    results = Retriever(graph, "line", "common", top_k=3)("milk tea")
    assert found(results) == [("milk", 4.0), ("tea", 3.0), ("bread", 2.0)]
    assert results[0].evidence[0].similarity == "common"
    assert found(Retriever(graph, "line", common, top_k=3)("milk tea")) == found(results)
    assert Retriever(graph, "line", "common")("xyz") == []  # nodes without a match are not returned


def test_custom_batch_similarity_scores_all_nodes(graph: NodeGraph) -> None:
    @register_similarity(mode="text", batch=True, name="length")
    def by_length(query: str, nodes: list[Node]) -> list[float]:
        return [len(node.text) ** 2 for node in nodes]

    assert found(Retriever(graph, "line", "length", top_k=2)("?")) == [
        ("coffee", 36.0),
        ("bread", 25.0),
    ]


def test_custom_similarity_returning_pairs(graph: NodeGraph) -> None:
    @register_similarity(batch=True)
    def some(query: str, nodes: list[Node]) -> list[tuple[Node, float]]:
        return [(node, 1.5) for node in reversed(nodes) if query in node.text]

    assert found(Retriever(graph, "line", "some")("e")) == [
        ("tea", 1.5),  # ties in document order
        ("coffee", 1.5),
        ("bread", 1.5),
        ("rice", 1.5),
    ]


def test_custom_vector_similarity_single_and_batch(graph: NodeGraph) -> None:
    @register_similarity(mode="embedding", higher_is_better=False)
    def distance(query: np.ndarray, vector: np.ndarray) -> float:
        return float(np.abs(query - vector).sum())

    @register_similarity(mode="embedding", batch=True, higher_is_better=False)
    def distances(query: np.ndarray, vectors: np.ndarray) -> np.ndarray:
        return np.abs(query - vectors).sum(axis=1)

    @register_similarity(mode="embedding", higher_is_better=False)
    def of_node(query: np.ndarray, node: Node) -> float:
        return float(np.abs(query - node.embedding()).sum())

    expected = [("tea", 0.0), ("bread", 0.0), ("rice", -2.0)]
    for name in ("distance", "distances", "of_node"):
        results = Retriever(graph, "line", name, top_k=3)("ea")
        assert found(results) == expected
        assert results[0].evidence[0].embed_key == "default"


def test_custom_similarity_supports_all_retriever_options(graph: NodeGraph) -> None:
    @register_similarity
    def common(query: str, node: Node) -> float:
        return len(set(query) & set(node.text))

    lifted = Retriever(graph, "line", "common", target="ROOT")
    assert [result.node.id for result in lifted("bread")] == ["food", "drinks"]
    assert [result.node.id for result in lifted("bread", filters={"shop": 1})] == ["drinks"]
    assert found(Retriever(graph, "line", "common", min_score=4)("bread")) == [("bread", 5.0)]
    graph.add(Document("beard", id="new"))
    graph.remove("food")
    assert found(Retriever(graph, "line", "common", min_score=4)("bread")) == [("beard", 5.0)]
    both = FusionRetriever([Retriever(graph, "line", "common"), Retriever(graph, "line", "bm25")])
    assert both("milk")[0].node.text == "milk"
    assert {match.similarity for match in both("milk")[0].evidence} == {"common", "bm25"}


def test_invalid_custom_similarity_raises(graph: NodeGraph) -> None:
    with pytest.raises(ValueError, match="'bm25' already exists"):
        register_similarity(lambda query, node: 1.0, name="bm25")  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="its first parameter is the query"):

        @register_similarity
        def lonely(query: str) -> float:
            return 1.0

    @register_similarity
    def nothing(query: str, node: Node) -> float:
        return float("nan")

    with pytest.raises(ValueError, match="returned NaN for Node"):
        Retriever(graph, "line", "nothing")("x")

    @register_similarity(batch=True)
    def few(query: str, nodes: list[Node]) -> list[float]:
        return [1.0]

    with pytest.raises(ValueError, match="returned 1 scores for 5 nodes"):
        Retriever(graph, "line", "few")("x")


def test_custom_index_is_used(graph: NodeGraph) -> None:
    made = []

    class Backwards:
        def __init__(self, graph: NodeGraph, group: str, key: str | None, similarity: Any) -> None:
            made.append((group, key, similarity.name))
            self.graph, self.group = graph, group
            self.closed = False

        def ready(self) -> None:
            pass

        def sync(self) -> None:
            self.nodes = self.graph.nodes(self.group)

        def search(self, query: Any, limit: int | None, filter: Filter) -> Hits:
            ids = [node.id for node in reversed(self.nodes)][:limit]
            return Hits(ids, [float(-at) for at in range(len(ids))])

        def close(self) -> None:
            self.closed = True

    results = Retriever(graph, "line", index=Backwards, top_k=2)("anything")
    assert found(results) == [("rice", 0.0), ("bread", -1.0)]
    Retriever(graph, "line", index=Backwards, top_k=2)("again")
    assert made == [("line", None, "bm25")]
    index = Retriever(graph, "line", index=Backwards).similarity.open(graph, "line")
    graph.close()
    assert index.closed
    for wrong in ("forwards", 3):
        with pytest.raises(TypeError, match="index must be 'default', 'map' or a callable"):
            Retriever(graph, "line", index=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "error", [KeyError("weight"), IndexError("out of range"), LookupError("no weight")]
)
@pytest.mark.parametrize("batch", [False, True])
def test_error_of_similarity_is_raised_after_one_call(
    graph: NodeGraph, error: Exception, batch: bool
) -> None:
    queries: list[str] = []

    def fails(query: str, nodes: Any) -> float:
        queries.append(query)
        raise error

    function = fails if batch else lambda query, node: fails(query, node)
    register_similarity(batch=batch, name="fails")(function)
    alone = Retriever(graph, "ROOT", "fails")
    fused = FusionRetriever([Retriever(graph, "ROOT", "bm25"), alone])
    for retriever in (alone, fused):
        queries.clear()
        with pytest.raises(type(error)) as raised:
            retriever("tea")
        assert raised.value is error
        assert queries == ["tea"]


class Beside:
    """Runs a function in another thread while a similarity is called."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self.ended: list[bool] = []

    def __call__(self) -> None:
        ended = threading.Event()

        def run() -> None:
            self.function()
            ended.set()

        threading.Thread(target=run, daemon=True).start()
        self.ended.append(ended.wait(30))


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("mode", ["text", "embedding"])
@pytest.mark.parametrize("target", [None, "ROOT"])
def test_custom_similarity_runs_without_lock(
    graph: NodeGraph, mode: Any, batch: bool, target: str | None
) -> None:
    beside = Beside(lambda: graph.nodes("line"))

    def of_nodes(query: Any, nodes: list[Node]) -> list[float]:
        beside()
        return [len(node.text) for node in nodes]

    def of_node(query: Any, node: Node) -> float:
        return of_nodes(query, [node])[0]

    register_similarity(mode=mode, batch=batch, name="waits")(of_nodes if batch else of_node)
    alone = Retriever(graph, "line", "waits", target=target)
    fused = FusionRetriever([alone, Retriever(graph, "line", "bm25", target=target)])
    for retriever in (alone, fused):
        similarities = {match.similarity for match in retriever("tea")[0].evidence}
        assert "waits" in similarities
    assert beside.ended
    assert all(beside.ended)


def test_custom_similarity_repeats_without_lock_after_change(graph: NodeGraph) -> None:
    # The first call changes a found node. The second call changes nothing.
    beside = Beside(lambda: graph.add(Document("coffee beans", id="drinks")))

    @register_similarity(batch=True)
    def waits(query: str, nodes: list[Node]) -> list[float]:
        beside()
        return [len(node.text) for node in nodes]

    assert found(Retriever(graph, "ROOT", "waits", top_k=1)("tea")) == [("coffee beans", 12.0)]
    assert beside.ended == [True, True]
