"""What a store could not do for now is done again, for some seconds, and once in the end."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from nodekin.nodegraph import (
    Document,
    MemoryStore,
    NodeGraph,
    StoreError,
    TransientStoreError,
    locking,
)
from nodekin.nodegraph.locking import retried


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return how long was waited, without waiting."""
    slept: list[float] = []
    monkeypatch.setattr(locking.time, "sleep", slept.append)
    return slept


class Failing(MemoryStore):
    """Fails to write some times."""

    failures = 0
    error: type[StoreError] = TransientStoreError

    @contextmanager
    def writing(self) -> Iterator[None]:
        if self.failures:
            self.failures -= 1
            raise self.error("not now; nothing was changed")
        yield


def test_it_is_done_again_with_growing_waits(waits: list[float]) -> None:
    outcomes = iter([TransientStoreError(), TransientStoreError(), TransientStoreError(), None])

    def work() -> str:
        if (error := next(outcomes)) is not None:
            raise error
        return "done"

    assert retried(work) == "done"
    assert len(waits) == 3
    assert max(waits) < 1


def test_it_is_given_up_in_the_end(waits: list[float]) -> None:
    def work() -> None:
        raise TransientStoreError("still not")

    with pytest.raises(TransientStoreError, match="still not"):
        retried(work)
    assert 1 < sum(waits) < 10


def test_what_is_not_for_now_is_not_repeated(waits: list[float]) -> None:
    store = Failing()
    store.failures, store.error = 1, StoreError
    with pytest.raises(StoreError):
        NodeGraph(store=store).add("text")
    assert waits == []


def test_whatever_changes_a_graph_is_repeated(waits: list[float]) -> None:
    store = Failing()
    graph = NodeGraph(store=store, progress=False)
    graph.create_node_group("word", str.split)
    for change in (
        lambda: graph.add([Document("a b", id="1"), Document("c", id="2")]),
        lambda: graph.link("1", "2"),
        lambda: graph.build("word"),
        lambda: graph.unlink("1", "2"),
        lambda: graph.remove("2"),
    ):
        store.failures = 2
        before = len(waits)
        change()
        assert len(waits) == before + 2
        assert store.failures == 0
    assert [node.text for node in graph.nodes("word")] == ["a", "b"]


def test_a_store_that_fails_in_a_build_leaves_no_document_out(waits: list[float]) -> None:
    class Checking(MemoryStore):
        failures = 2

        def check(self, nodes: object) -> None:
            if self.failures:
                self.failures -= 1
                raise TransientStoreError("not now; nothing was changed")

    graph = NodeGraph(store=Checking(), on_error="skip", progress=False)
    graph.create_node_group("word", str.split)
    graph.add("a b")
    assert [node.text for node in graph.nodes("word")] == ["a", "b"]
    assert graph.failures == []
    assert len(waits) == 2
