"""Documents and unknown groups in each store."""

from store_machine import GROUP, put_words

from nodekin.nodegraph import Document
from nodekin.nodegraph.storage.graph_store import Changes, GraphStore


def test_unknown_group_is_empty(store: GraphStore) -> None:
    assert list(store.nodes("never")) == []
    assert (store.count("never"), store.revision("never")) == (0, 0)
    assert store.derivations("never", ["a"]) == {}
    assert store.get(["never", "a"])[0] is None
    (root,) = store.get(["a"])
    assert root is not None
    assert list(store.children("never", root)) == []
    assert store.changes("never", 0) == Changes(0, [], [], complete=True)


def test_replaced_document_keeps_position_and_nodes(store: GraphStore) -> None:
    put_words(store, ["x"])
    (old,) = store.get(["a"])
    store.change_documents([Document("new", id="a")])
    (new,) = store.get(["a"])
    assert old is not None
    assert new is not None
    assert (new.text, new.order) == ("new", old.order)
    assert [node.id for node in store.nodes("ROOT")] == ["a", "b"]
    assert [node.text for node in store.nodes(GROUP)] == ["x"]


def test_remove_of_unknown_document_does_nothing(store: GraphStore) -> None:
    before = store.revision("ROOT")
    store.change_documents([], remove=["never"])
    assert store.revision("ROOT") == before
    assert store.count("ROOT") == 2
