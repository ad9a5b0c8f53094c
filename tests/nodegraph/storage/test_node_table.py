"""The cache of recently read nodes."""

import pytest

from nodekin.nodegraph import Document
from nodekin.nodegraph.errors import StoreError
from nodekin.nodegraph.storage import node_table
from nodekin.nodegraph.storage.graph_store import GraphStore


def test_failed_read_leaves_no_node_missing(
    store: GraphStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.change_documents([Document("text", id="a")])
    store.transactions.forget()
    with store.transactions.turn(), monkeypatch.context() as broken:

        def fail(*_: object) -> list[object]:
            raise StoreError("the connection is lost")

        broken.setattr(store.database, "rows", fail)
        with pytest.raises(StoreError, match="lost"):
            store.nodes.get(["a"])
    (node,) = store.nodes.get(["a"])
    assert node is not None


def test_lookups_of_missing_nodes_are_not_cached(store: GraphStore) -> None:
    store.nodes.get([f"missing {n}" for n in range(1_000)])
    assert len(store.nodes._cached) <= store.groups.count("ROOT")


def test_cache_drops_oldest_nodes(store: GraphStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_table, "_CACHED_CHARACTERS", 4_000)
    ids = [f"document {n}" for n in range(40)]
    store.change_documents([Document(f"text {n}", id=i) for n, i in enumerate(ids)])
    for i in ids:
        (node,) = store.nodes.get([i])
        assert node is not None
        assert node.id == i
    assert ids[0] not in store.nodes._cached
    assert ids[-1] in store.nodes._cached
    assert len(store.nodes._cached) < 10
