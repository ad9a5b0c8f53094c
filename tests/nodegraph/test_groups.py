"""Groups: registration, replacement and errors."""

from collections.abc import Callable
from typing import Any

import pytest
from support.node_texts import split_lines, texts

from nodekin.nodegraph import NodeGraph, UnknownGroupError

pytestmark = pytest.mark.usefixtures("every_store")


def test_unknown_parent_raises_with_nearest_names(graph: NodeGraph) -> None:
    message = "unknown group 'lines', registered groups: 'line', "
    with pytest.raises(UnknownGroupError, match=message):
        graph.create_node_group("new", str.split, parent="lines")
    assert "new" not in graph.groups


@pytest.mark.parametrize(
    "use",
    [
        lambda graph: graph.nodes("wrod"),
        lambda graph: graph.find("wrod"),
        lambda graph: graph.build("wrod"),
        lambda graph: graph.reader.lineage("wrod"),
        lambda graph: graph.reader.reading("wrod").__enter__(),
    ],
)
def test_unknown_group_raises_with_nearest_names(
    graph: NodeGraph, use: Callable[[NodeGraph], Any]
) -> None:
    with pytest.raises(LookupError, match="unknown group 'wrod', registered groups: 'word', "):
        use(graph)


def test_second_rule_of_a_name_raises(graph: NodeGraph) -> None:
    with pytest.raises(ValueError, match=r"'line' already exists with another rule .*replace=True"):
        graph.create_node_group("line", str.split)
    with pytest.raises(ValueError, match="'word' already exists with another rule"):
        graph.create_node_group("word", str.split)  # the same transform, another parent
    assert texts(graph.nodes("line")) == ["a b", "c", "d"]


def test_equal_rule_keeps_the_group_built(graph: NodeGraph) -> None:
    graph.nodes("line")
    graph.create_node_group("line", split_lines)
    assert graph.groups["line"].built


def test_replaced_rule_rebuilds_group_and_descendants(graph: NodeGraph) -> None:
    assert texts(graph.nodes("word")) == ["a", "b", "c", "d"]
    graph.create_node_group("other", split_lines)
    graph.nodes("other")
    graph.create_node_group("line", lambda text: [text.upper()], replace=True)
    assert {name: each.built for name, each in graph.groups.items() if each.size} == {
        "ROOT": True,
        "line": False,
        "word": False,
        "other": True,
    }
    assert texts(graph.nodes("word")) == ["A", "B", "C", "D"]
    assert texts(graph.nodes("line")) == ["A B\nC", "D"]
    assert graph.node("1").children.keys() == {"line", "other"}


def test_group_moves_to_another_parent(graph: NodeGraph) -> None:
    graph.nodes("word")
    graph.create_node_group("word", str.split, replace=True)
    assert [node.parent_id for node in graph.nodes("word")] == ["1", "1", "1", "2"]
    assert graph.groups["word"].parent == "ROOT"


def test_cycle_of_groups_raises(graph: NodeGraph) -> None:
    with pytest.raises(
        ValueError, match="'line' cannot be derived from 'word', which is derived from"
    ):
        graph.create_node_group("line", str.split, parent="word", replace=True)
    assert graph.groups["line"].parent == "ROOT"
    assert texts(graph.nodes("word")) == ["a", "b", "c", "d"]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (dict(name="x", parent="x"), ValueError, "'x' cannot be its own parent"),
        (dict(name="ROOT"), ValueError, "must not be blank or 'ROOT', got 'ROOT'"),
        (dict(name=""), ValueError, "must not be blank or 'ROOT', got ''"),
        (dict(name=" \n"), ValueError, "must not be blank"),
        (dict(name=3), TypeError, "group name must be a str, got 3"),
        (dict(name="x", parent=None), TypeError, "parent must be a str, got None"),
        (dict(name="x", num_workers=-1), ValueError, "num_workers must be 0 or more, got -1"),
        (dict(name="x", transform=3), TypeError, "transform must be a callable"),
        (dict(name="x", transform=[len]), TypeError, "transform must be a callable"),
        (dict(name="x", scope="corpus"), ValueError, 'scope must be "node" or "group"'),
    ],
)
def test_invalid_group_arguments_raise(
    graph: NodeGraph, arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    before = list(graph.groups)
    with pytest.raises(error, match=message):
        graph.create_node_group(**{"transform": str.split, **arguments})
    assert list(graph.groups) == before


def test_unknown_group_lists_names_of_small_graph(graph: NodeGraph) -> None:
    with pytest.raises(UnknownGroupError) as caught:
        graph.nodes("xyz")
    names = ("line", "ROOT", "section", "page", "table", "symbol")
    assert [name for name in names if repr(name) not in str(caught.value)] == []
