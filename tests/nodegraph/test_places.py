"""Positions of nodes as text for citations."""

from pathlib import Path

import pytest

from nodekin.nodegraph import Document, Node, NodeGraph, PassageSplitter, split_sentences


@pytest.mark.parametrize(
    ("metadata", "place"),
    [
        ({"file_name": "a.pdf", "page_label": "iv"}, "a.pdf, page iv"),
        ({"source": "docs/a.pdf", "page": 3}, "a.pdf, page 4"),  # LangChain's loaders count from 0
        ({"source": "docs/a.pdf", "page": 3, "page_label": "4"}, "a.pdf, page 4"),
        ({"file_name": "a.md", "headings": ["A", "B"]}, "a.md, B"),
        ({}, ""),
    ],
)
def test_place_of_foreign_metadata(metadata, place: str) -> None:
    graph = NodeGraph(progress=False)
    graph.add(Document("One. Two.", metadata, id="a"))
    graph.create_node_group("sentence", split_sentences)
    assert graph.nodes("sentence")[1].place == place


def test_place_without_a_graph() -> None:
    assert Node("text", {"file_name": "a.md", "headings": ["A", "B"]}).place == "a.md, B"
    assert Node("text").place == ""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.rst", "Tea\n===\n\nGreen\n-----\n\nIt is unfermented."),
        ("a.adoc", "= Tea\n\n== Green\n\nIt is unfermented."),
        ("a.tex", "\\section{Tea}\n\n\\subsection{Green}\n\nIt is unfermented."),
        ("a.org", "* Tea\n\n** Green\n\nIt is unfermented."),
        ("a.md", "# Tea\n\n## Green\n\nIt is unfermented."),
    ],
)
def test_headings_of_each_markup(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    graph = NodeGraph(tmp_path / name, progress=False)
    graph.create_node_group("passage", PassageSplitter(1))
    graph.create_node_group("sentence", split_sentences)
    (sentence,) = graph.nodes("sentence")[-1:]
    line = sentence.root.text.count("\n", 0, sentence.start) + 1
    assert sentence.place == f"{name}, line {line}, Green"
    assert graph.nodes("passage")[-1].metadata["headings"] == ["Tea", "Green"]
    assert [node.own_metadata["heading"] for node in graph.nodes("section")] == ["Tea", "Green"]


def test_place_follows_changed_headings(tmp_path: Path) -> None:
    graph = NodeGraph(store=tmp_path / "graph", progress=False)
    graph.create_node_group("line", str.splitlines)
    graph.add(Document("# Tea\nGreen.\nBlack.", {"file_name": "a.md"}, id="a"))
    lines = graph.nodes("line")
    assert [line.place for line in lines[1:]] == ["a.md, Tea", "a.md, Tea"]
    graph.add(Document("# Leaves\nGreen.\nBlack.", {"file_name": "a.md"}, id="a"))
    assert graph.nodes("line")[2].place == "a.md, Leaves"
    with NodeGraph(store=tmp_path / "graph", progress=False) as other:
        other.create_node_group("line", str.splitlines)
        other.add(Document("# Coffee\nGreen.\nBlack.", {"file_name": "a.md"}, id="a"))
        changed = other.nodes("line")[2].id
    assert graph.node(changed).place == "a.md, Coffee"
    assert graph.nodes("line")[2].place == "a.md, Coffee"
    graph.remove("a")
    assert lines[2].place == "a.md"


def test_place_has_the_nearest_heading_inside_a_passage() -> None:
    text = "# Tea\n\nTea is old.\n\n## Complaints\n\nSend it back."
    graph = NodeGraph(progress=False)
    graph.add(Document(text, {"file_name": "tea.md"}, id="a"))
    graph.create_node_group("passages", PassageSplitter())
    graph.create_node_group("sentence", split_sentences, parent="passages")
    assert graph.nodes("passages")[0].place == "tea.md, Tea"
    assert graph.nodes("sentence")[-1].place == "tea.md, Complaints"
