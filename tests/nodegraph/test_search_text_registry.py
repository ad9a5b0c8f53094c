from nodekin.nodegraph import NodeGraph, SearchText
from nodekin.nodegraph.groups import SearchTextRegistry, make_group
from nodekin.nodegraph.node import Node
from nodekin.nodegraph.search_text import SearchTextRule


def registry(default: SearchTextRule | None, group: object) -> SearchTextRegistry:
    made = make_group("a", str.split, "ROOT", None, 0, None, {}, search_text=group)
    return SearchTextRegistry(default, lambda name: [made])


def test_the_nearest_declaration_holds() -> None:
    title, page, name = SearchText("title"), SearchText("page"), SearchText("name")
    node = Node("t", {"title": "T", "page": 1, "name": "N"}, group="a")
    below = Node("t", node.own_metadata, group="a", inherited_search_text=name)
    assert registry(title, page).texts([node, below]) == ["1\nt", "1\nt"]
    assert registry(title, None).texts([node, below]) == ["T\nt", "T\nt"]
    assert registry(None, None).texts([node, below]) == ["T\nt", "N\nt"]
    assert registry(page, title).declared("a") == (title, title.version, ())


def test_versions_are_those_of_what_is_declared() -> None:
    graph = NodeGraph()
    graph.create_node_group("a", str.split)
    graph.create_node_group("b", str.split, search_text="title")
    graph.create_node_group("c", str.split, search_text=SearchText("title"))
    graph.create_node_group("d", str.split, search_text=SearchText(["title"], groups="a"))
    versions = {name: graph.reader.search_version(name) for name in "abcd"}
    assert versions["a"] == graph.reader.search_version("ROOT") != versions["b"] == versions["c"]
    assert versions["d"][0] not in versions["b"]
    assert graph.reader.searched_groups("d") == ("d", "a")
    before = versions["d"]
    graph.add("text")
    graph.build("a")
    assert graph.reader.search_version("d") != before
    assert graph.reader.search_version("b") == versions["b"]
