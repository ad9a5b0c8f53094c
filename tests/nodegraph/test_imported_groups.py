"""Groups of imported nodes."""

import logging
from pathlib import Path

import pytest

from nodekin.nodegraph import Document, Node, NodeGraph, SearchText, UnknownGroupError
from nodekin.nodegraph.graph_reader import Family

LINES = [
    Family("1", "one two", [Node("one", {"key": "a", "n": 1}, start=0), Node("two", {"key": "b"})]),
    Family("2", "three", [Node("Three.", {"key": "c"}, content=3, search_text=SearchText("n"))]),
]
WORDS = [Family("b", "two", [Node("t", {"tags": ("x",)}), Node("w")])]


def imported(store: Path | None = None) -> NodeGraph:
    graph = NodeGraph(store=store, progress=False)
    graph.add([Document("one two", id="1"), Document("three", id="2")])
    graph.imports.add("line", LINES, id_field="key")
    graph.imports.add("word", WORDS, "line", id_field="key")
    return graph


def rows(graph: NodeGraph) -> list[tuple[object, ...]]:
    return [
        (n.id, n.text, n.content, n.start, dict(n.own_metadata), n.parent_id, n.search_text)
        for group in ("line", "word")
        for n in graph.nodes(group)
    ]


def test_imported_nodes_keep_their_fields() -> None:
    graph = imported()
    one, two, three = graph.nodes("line")
    assert (one.text, one.start, two.start, three.content) == ("one", 0, 4, 3)
    assert [n.text for n in graph.find("word")(two)] == ["t", "w"]
    assert graph.nodes("word")[0].own_metadata == {"tags": ("x",)}
    assert [name in graph.imports for name in ("line", "word", "ROOT", "MediumChunk")] == [
        *(True, True, False, False)
    ]


def test_reopened_graph_has_imported_groups(tmp_path: Path) -> None:
    with imported(tmp_path / "graph.db") as graph:
        wanted = rows(graph)
    for _ in range(2):
        with NodeGraph(store=tmp_path / "graph.db") as again:
            assert [again.groups[name].built for name in ("line", "word")] == [True, True]
            assert rows(again) == wanted
            again.create_node_group("letter", lambda text: list(text), parent="word")
            assert [n.text for n in again.nodes("letter")] == ["t", "w"]


def test_repeated_import_changes_nothing() -> None:
    graph = imported()
    before, versions = rows(graph), [graph.reader.revision(name) for name in ("line", "word")]
    graph.imports.add("line", LINES, id_field="key")
    assert all(graph.groups[name].built for name in ("line", "word"))
    assert (rows(graph), [graph.reader.revision(name) for name in ("line", "word")]) == (
        before,
        versions,
    )
    graph.imports.add("line", [Family("2", "three", [Node("th")])], id_field="key")
    assert [n.text for n in graph.nodes("line")] == ["one", "two", "th"]


def test_changed_document_has_no_imported_nodes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    graph = imported()
    graph.build("word")
    graph.add([Document("one two three", id="1"), Document("new", id="3")])
    with caplog.at_level(logging.WARNING):
        assert [n.text for n in graph.nodes("line")] == ["Three."]
    assert "'1' has another text than when its nodes were imported into 'line'" in caplog.text
    graph.add(Document("one two", id="1"))
    assert [n.text for n in graph.nodes("line")] == ["one", "two", "Three."]


def test_imported_group_is_replaced(tmp_path: Path) -> None:
    with imported(tmp_path / "graph.db") as graph:
        with pytest.raises(ValueError, match="already exists with another rule"):
            graph.create_node_group("line", str.splitlines)
        graph.create_node_group("line", str.split, replace=True)
        assert "line" not in graph.imports
        assert len(graph.nodes("line")) == 3
    with NodeGraph(store=tmp_path / "graph.db") as graph:
        graph.create_node_group("line", str.split)
        assert graph.groups["line"].built
        assert "word" not in graph.groups


def test_invalid_imports_raise() -> None:
    graph = imported()
    graph.create_node_group("own", str.split)
    with pytest.raises(ValueError, match="'own' is there with another rule"):
        graph.imports.add("own", LINES, id_field="key")
    with pytest.raises(UnknownGroupError, match="'lines'"):
        graph.imports.add("word", WORDS, "lines", id_field="key")
    with pytest.raises(TypeError, match="can't be kept in a file"):
        graph.imports.add(
            "line", [Family("1", "one two", [Node("one", {"x": object()})])], id_field="key"
        )
    assert len(rows(graph)) == 5
