"""The conformance kit: it accepts what is right, and says what is wrong."""

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import pytest

from nodekin.nodegraph import Node, NodeGraph
from nodekin.retrievers import (
    AutoMergeRetriever,
    FusionRetriever,
    Retriever,
    ScoredNode,
    register_similarity,
)
from nodekin.retrievers.filters import Filter
from nodekin.retrievers.indexes.synced_index import SyncedIndex
from nodekin.retrievers.indexes.text_index import TextIndex
from nodekin.retrievers.results import Hits
from nodekin.retrievers.similarities import registry
from nodekin.retrievers.similarities.bm25 import Bm25
from nodekin.retrievers.testing import check_index, check_retriever


@pytest.mark.slow
@pytest.mark.parametrize(
    "similarity",
    ["bm25", Bm25(analyzer=str.split), "cosine", "exact"],
    ids=str,
)
def test_built_in_similarities(similarity: Any) -> None:
    check_index(similarity)


def test_the_map_index(capsys: pytest.CaptureFixture[str]) -> None:
    check_index(index="map")
    assert capsys.readouterr() == ("", "")  # no bar


@pytest.mark.parametrize("batch", [False, True])
def test_registered_functions(monkeypatch: pytest.MonkeyPatch, batch: bool) -> None:
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
    """A small index by someone else: the number of words in common."""

    def clear(self) -> None:
        self.nodes: dict[str, Node] = {}

    def remove(self, ids: Sequence[str]) -> None:
        for node_id in ids:
            self.nodes.pop(node_id, None)

    def add(self, nodes: Sequence[Node], prepared: Any) -> None:
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
def test_an_index_of_someone_else() -> None:
    check_index(index=maker(WordIndex))


class StoredWords(WordIndex):
    """The same with a file, whatever its size."""

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
def test_an_index_with_a_file_of_someone_else() -> None:
    check_index(index=maker(StoredWords))


class Truncated(WordIndex):
    def search(self, query: str, limit: int | None, filter: Filter) -> Hits:
        best = [(s, n) for s, n in self.scored(query, Filter())[:limit] if filter.matches(n)]
        return Hits([node.id for _, node in best], [score for score, _ in best])


class ByFiltered(WordIndex):
    def search(self, query: str, limit: int | None, filter: Filter) -> Hits:
        hits = super().search(query, limit, filter)
        return Hits(hits.ids, [score / (1 + bool(filter)) for score in hits.scores])


class BackwardTies(WordIndex):
    def search(self, query: str, limit: int | None, filter: Filter) -> Hits:
        scored = sorted(self.scored(query, filter), key=lambda p: (-p[0], -p[1].order))
        best = scored[:limit]
        return Hits([node.id for _, node in best], [score for score, _ in best])


class Unequal(WordIndex):
    def score(self, query: str, node: Node) -> float:
        return float("inf") if query in node.text else super().score(query, node)


class NoRemoval(WordIndex):
    """Counts nodes that were removed."""

    def add(self, nodes: Sequence[Node], prepared: Any) -> None:
        super().add(nodes, prepared)
        self.count = getattr(self, "count", 0) + len(nodes)

    def score(self, query: str, node: Node) -> float:
        return self.count * super().score(query, node)


class Once(WordIndex):
    def sync(self) -> None:
        if not self.nodes:
            super().sync()


class Unlocked(WordIndex):
    """Calls itself current before it is: other threads search it while it has half of a change."""

    def __init__(self, graph: NodeGraph, group: str) -> None:
        super().__init__(graph, group)
        self.thread = threading.get_ident()
        self.state: Literal["whole", "half", "done"] = "whole"
        self.before, self.after = WordIndex(graph, group), WordIndex(graph, group)
        self.wrong_searches = 0
        self.changed = threading.Condition()

    def sync(self) -> None:
        if not self.is_current():
            version = self._current_search_version()
            changes = self._graph.reader.changes(self._group, self._since(version))
            self._revision, self._search_version = changes.revision, version
            if changes.complete:
                self.clear()
            self.remove(changes.removed)
            self.add(changes.added, None)

    def add(self, nodes: Sequence[Node], prepared: Any) -> None:
        with self.changed:
            is_first = self.state == "whole" and bool(nodes)
            is_half = is_first and threading.get_ident() != self.thread
            if is_half:
                self.before.nodes = dict(self.nodes)
                self.after.nodes = self.nodes | {node.id: node for node in nodes}
                super().add(nodes[:1], prepared)
                self.state = "half"
        if is_half:
            self.wait_for_wrong_searches()
            self.state = "done"
        super().add(nodes, prepared)

    def search(self, query: str, limit: int | None, filter: Filter) -> Hits:
        hits = super().search(query, limit, filter)
        if self.state == "half":
            right = [index.search(query, limit, filter).ids for index in (self.before, self.after)]
            if hits.ids not in right:
                with self.changed:
                    self.wrong_searches += 1
                    self.changed.notify_all()
                self.wait_for_wrong_searches()
        return hits

    def wait_for_wrong_searches(self) -> None:
        """Wait until two threads have searched: one of them is no writer, and compares."""
        with self.changed:
            assert self.changed.wait_for(lambda: self.wrong_searches >= 2, timeout=120)


class Trusting(StoredWords):
    def restore(self, arrays: Mapping[str, Any]) -> None:
        super().restore(arrays)
        self.nodes = dict([*self.nodes.items()][1:])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (Truncated, r"filters=\{'color': .*: got .* was expected"),
        (ByFiltered, r"top_k=1, filters=\{'color': 'red'\}: got "),
        (BackwardTies, "a tie is not in document order"),
        (Unequal, "the score of .* is inf, not a finite float"),
        (NoRemoval, "after a document was .*, beside a new graph"),
        (Once, "the index returns a node that is gone: no node"),
        (Unlocked, "a search during changes returns"),
        (Trusting, "after the graph was reopened"),
    ],
)
def test_wrong_indexes_are_refused(wrong: type[SyncedIndex], message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_index(index=maker(wrong))


def test_queries_that_match_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match=r"no query of .* has two results; pass queries="):
        check_index("exact", queries=["a", "b"])
    check_index("exact", texts=["a\nb", "b", "a\nc"], queries=["a", "b"])


def test_retrievers() -> None:
    check_retriever(lambda graph: Retriever(graph, "line", "cosine"))
    check_retriever(lambda graph: AutoMergeRetriever(Retriever(graph, "line"), target="ROOT"))
    check_retriever(
        lambda graph: FusionRetriever(
            [Retriever(graph, "line"), Retriever(graph, "line", "cosine")]
        )
    )


class Wrapped:
    def __init__(self, graph: NodeGraph, change: Callable[[list[ScoredNode]], list[Any]]) -> None:
        self.retriever, self.change = Retriever(graph, "line"), change

    def retrieve(self, query: str, **options: Any) -> list[Any]:
        return self.change(self.retriever.retrieve(query, **options))

    async def aretrieve(self, query: str, **options: Any) -> list[Any]:
        await asyncio.sleep(0)
        return await self.retriever.aretrieve(query, **options)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda results: [result.node for result in results], "no ScoredNodes"),
        (lambda results: sorted(results, key=lambda result: result.score), "not best first"),
        (lambda results: results + results[-1:], "comes twice"),
        (lambda results: results[1:], "aretrieve, beside retrieve"),
    ],
)
def test_wrong_retrievers_are_refused(change: Any, message: str) -> None:
    check_retriever(lambda graph: Wrapped(graph, lambda results: results))
    with pytest.raises(AssertionError, match=message):
        check_retriever(lambda graph: Wrapped(graph, change))


class StaleTexts(TextIndex):
    """Does not notice that another text is searched."""

    uses_search_text = False


class StaleBm25(Bm25):
    def open(self, graph: NodeGraph, group: str, key: str | None = None) -> TextIndex:
        make = lambda: StaleTexts(graph, group, self.analyzer)  # noqa: E731
        return graph.reader.shared(("stale texts", group), make)


def test_an_index_of_an_earlier_search_text_is_refused() -> None:
    with pytest.raises(AssertionError, match=r"after search_text=.* was declared"):
        check_index(StaleBm25())
