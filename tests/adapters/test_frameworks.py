"""Functions of both framework adapters."""

from importlib import import_module
from inspect import ismodule

from nodekin.adapters.frameworks import copied_metadata, own_metadata
from nodekin.nodegraph import Node
from nodekin.nodegraph.lazy_names import SHARED


def test_star_imports_have_no_names_of_frameworks():
    modules = (
        *("langchain_core.documents", "langchain_core.retrievers", "langchain_core.prompts"),
        *("langchain_classic.retrievers", "langchain_core.vectorstores"),
        *("llama_index.core", "llama_index.core.retrievers", "llama_index.core.schema"),
        *("llama_index.core.query_engine", "llama_index.core.node_parser"),
    )
    theirs = {
        name
        for module in map(import_module, modules)
        for name in dir(module)
        if not ismodule(vars(module).get(name))  # a submodule that some test has imported
    }
    assert theirs >= SHARED
    for package in (
        "",
        ".nodegraph",
        ".retrievers",
        ".adapters.langchain",
        ".adapters.llama_index",
    ):
        assert not theirs & {*import_module(f"nodekin{package}").__all__}


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
