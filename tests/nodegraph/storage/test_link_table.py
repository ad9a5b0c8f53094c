"""The links of a store."""

import pytest

from nodekin.nodegraph import Document
from nodekin.nodegraph.node import Link
from nodekin.nodegraph.storage.graph_store import GraphStore


def test_links_are_read_from_both_ends(store: GraphStore) -> None:
    cites = Link("a", "b", "cites", 0.5, {"page": 3})
    follows = Link("a", "b", "follows")
    store.links.put([cites, follows])
    assert store.links.of(["a", "b", "a"]) == [[cites, follows], [], [cites, follows]]
    assert store.links.of(["a", "b"], incoming=True) == [[], [cites, follows]]
    assert store.links.of(["a"])[0][0].metadata == {"page": 3}


def test_equal_link_replaces_weight_in_place(store: GraphStore) -> None:
    store.links.put([Link("a", "b", "cites"), Link("a", "b", "follows")])
    store.links.put([Link("a", "b", "cites", 0.1)])
    assert [(link.type, link.weight) for link in store.links.of(["a"])[0]] == [
        ("cites", 0.1),
        ("follows", 1.0),
    ]


def test_link_to_missing_node_raises(store: GraphStore) -> None:
    with pytest.raises(LookupError, match="no node 'missing' to link"):
        store.links.put([Link("a", "b"), Link("a", "missing")])
    assert store.links.of(["a"]) == [[]]


def test_removed_document_loses_its_links(store: GraphStore) -> None:
    store.links.put([Link("a", "b"), Link("b", "a")])
    store.change_documents([], remove=["b"])
    store.change_documents([Document("text", id="b")])
    assert store.links.of(["a", "b"]) == [[], []]
