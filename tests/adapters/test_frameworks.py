"""Functions of both framework adapters."""

from nodekin.adapters.frameworks import copied_metadata, own_metadata
from nodekin.nodegraph import Node


def test_copied_metadata_is_a_deep_copy():
    node = Node("a", {"tags": ["x"], "page": 3})
    copied = copied_metadata(node, node.metadata)
    assert copied == {"tags": ["x"], "page": 3}
    copied["tags"].append("y")
    assert node.metadata["tags"] == ["x"]


def test_own_metadata_drops_fields_of_parent():
    assert own_metadata({"page": 3, "topic": "tea", "n": 1}, {"page": 3, "topic": "x"}) == {
        "topic": "tea",
        "n": 1,
    }
    assert own_metadata({"flag": True, "n": 1}, {"flag": 1, "n": 1}) == {"flag": True}
