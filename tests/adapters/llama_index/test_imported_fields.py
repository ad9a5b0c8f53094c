"""What a graph's node says of the LlamaIndex node it was."""

from nodekin.adapters.llama_index.nodes import (
    id_in_llama_index,
    original_id,
    original_metadata,
    original_properties,
    parent_id_in_llama_index,
)
from nodekin.nodegraph import Node


def test_fields_of_an_imported_node() -> None:
    fields = {"llama_index_id": "a", "llama_index_properties": '{"fields": ["y", "x"]}', "y": 1}
    inherited = {"llama_index_id": "above", "x": 2, "z": 3}
    node = Node("Tea", fields, id="n", group="g", parent_id="p", inherited=inherited)
    assert (original_id(node), id_in_llama_index(node)) == ("a", "a")
    assert list(original_metadata(node).items()) == [("y", 1), ("x", 2)]
    assert parent_id_in_llama_index(node) == "above"


def test_fields_of_other_nodes() -> None:
    node = Node("Tea", {"llama_index_properties": "no JSON", "x": 1}, id="n", group="g")
    assert (original_id(node), id_in_llama_index(node)) == (None, "n")
    assert original_properties(node) == {}
    assert original_metadata(node) == {"x": 1}
    assert parent_id_in_llama_index(node) is None
