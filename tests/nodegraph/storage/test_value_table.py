"""Values that are kept with a graph."""

from nodekin.nodegraph.storage.graph_store import GraphStore


def test_values_are_read_by_kind_and_key(store: GraphStore) -> None:
    store.values.put("kind", {"a": b"1", "b": b"2"})
    store.values.put("other", {"a": b"3"})
    store.values.put("kind", {"b": b"4"})
    assert store.values.get("kind") == {"a": b"1", "b": b"4"}
    assert store.values.get("kind", ["b", "missing"]) == {"b": b"4"}
    assert store.values.get("kind", []) == {}
    assert len(store.values.get("kind", limit=1)) == 1


def test_delete_removes_keys_or_whole_kind(store: GraphStore) -> None:
    store.values.put("kind", {"a": b"1", "b": b"2", "c": b"3"})
    store.values.put("other", {"a": b"4"})
    store.values.delete("kind", [])
    store.values.delete("kind", ["a", "missing"])
    assert store.values.get("kind") == {"b": b"2", "c": b"3"}
    store.values.delete("kind")
    assert store.values.get("kind") == {}
    assert store.values.get("other") == {"a": b"4"}
