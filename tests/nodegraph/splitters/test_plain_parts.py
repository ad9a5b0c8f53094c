"""Groups of nodekin's splitters are equal if several processes split the documents."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.worker_processes import started_workers

from nodekin.nodegraph import (
    Document,
    Node,
    NodeGraph,
    PassageSplitter,
    RecursiveSplitter,
    SentenceSplitter,
    split_paragraphs,
    split_sentences,
)
from nodekin.nodegraph.splitters.plain_parts import plain_splitter
from nodekin.nodegraph.workers import idle_processors

SECTION = """# Tea {n}

Green tea {n} is steamed. 绿茶{n}是蒸的。

| a | b |
|---|---|
| {n} | 2 |

"""
DOCUMENTS = [
    *(Document(SECTION.format(n=n) * 9, {"file_name": f"{n}.md"}) for n in range(150)),
    *(Document(f"Page {n}.\fNext page. " * 30, {"page_unit": "page"}) for n in range(20)),
    Document("Title\n=====\n\nText. " * 40, {"file_name": "tea.rst", "year": 2024}),
    Document(" \n "),
    Document("\ud800 lone surrogate. And more."),
]
SPLITTERS = [
    PassageSplitter(),
    PassageSplitter(40, headings=False),
    SentenceSplitter(60, 10),
    RecursiveSplitter(50, 5),
    split_sentences,
    split_paragraphs,
]


@pytest.fixture
def workers(monkeypatch) -> Iterator[Any]:
    monkeypatch.setattr(idle_processors, "WORTH_STARTING", 1)
    with started_workers(monkeypatch) as started:
        yield started


def nodes_of(splitter: Any) -> list[tuple[Any, ...]]:
    """Return the nodes of a splitter, and of sentences below them, also after a change."""
    graph = NodeGraph()
    graph.add(DOCUMENTS)
    graph.create_node_group("part", splitter)
    graph.create_node_group("sentence", split_sentences, parent="part")
    found = []
    for document in DOCUMENTS[:2]:
        for node in (*graph.nodes("part"), *graph.nodes("sentence")):
            place = (node.start, node.end, node.order, node.parent_id)
            found.append((node.id, node.text, dict(node.metadata), *place))
        graph.add(Document("# New\n\nOne. Two.", id="new"))
        graph.remove(document.id)
    return found


@pytest.mark.parametrize("splitter", SPLITTERS, ids=range(len(SPLITTERS)))
def test_nodes_are_equal_with_several_processes(monkeypatch, workers, splitter) -> None:
    found = nodes_of(splitter)
    assert workers.num_running > 0
    monkeypatch.setattr(idle_processors, "processors", lambda: 1)
    assert found == nodes_of(splitter)


def test_transforms_of_users_stay_in_their_process() -> None:
    class OwnSplitter(SentenceSplitter):
        pass

    for transform in (str.split, OwnSplitter(), PassageSplitter(length=len)):
        assert plain_splitter(transform) is None


def fields_of(nodes: Any) -> list[dict[str, Any]]:
    hidden = {"graph"}
    return [{n: getattr(node, n) for n in node.__slots__ if n not in hidden} for node in nodes]


class MarkedText(str):
    """A text of a class of its own, as in template engines."""

    __slots__ = ()

    def __str__(self) -> str:
        return "marked"


def test_nodes_that_a_build_has_written_equal_those_that_are_read(tmp_path) -> None:
    documents = [
        *DOCUMENTS,
        Document("# Tea\n\nIt is green.", {"tags": ("a", 1), "title": "T"}, search_text=["tags"]),
        Document("Plain.", {"n": 1}, search_text=False),
        Document(MarkedText("Marked."), {"path": Path("a", "b")}),
    ]
    path = tmp_path / "graph.db"
    graph = NodeGraph(store=path)
    graph.add(documents)
    roots = fields_of(graph.nodes("ROOT"))
    graph.create_node_group("part", PassageSplitter(40))
    graph.create_node_group("sentence", split_sentences, parent="part")
    graph.build("sentence")
    written = {group: fields_of(graph.nodes(group)) for group in ("part", "sentence")}
    written["ROOT"] = roots
    assert all(type(node["text"]) is str for node in roots)
    assert all(node.graph is graph for node in graph.nodes("sentence"))
    graph.close()
    reopened = NodeGraph(store=path)
    reopened.create_node_group("part", PassageSplitter(40))
    reopened.create_node_group("sentence", split_sentences, parent="part")
    for group, nodes in written.items():
        assert fields_of(reopened.nodes(group)) == nodes


@pytest.mark.parametrize(
    "transform",
    [
        str.splitlines,
        lambda text: [MarkedText(text), "added"],
        lambda text: [Node(text, {"tags": ("a", 1)}, content=["b"]), "added"],
        lambda text: [1, 2.5, text.upper()],
        lambda text: [Node(text, {"kind": "x"}, search_text=["kind"])],
    ],
)
def test_nodes_of_own_transforms_equal_those_that_are_read(transform: Any, tmp_path: Path) -> None:
    documents = [Document("One.\nTwo.", {"n": 1}), Document("Three.", search_text=["n"])]
    path = tmp_path / "graph.db"
    written: list[list[dict[str, Any]]] = []
    for _ in range(2):
        with NodeGraph(store=path) as graph:
            graph.create_node_group("own", transform, version="1")
            graph.create_node_group("all", len, scope="group", trans_node=True, version="1")
            graph.add(documents)
            nodes = [*graph.nodes("own"), *graph.nodes("all")]
            assert all(node.graph is graph for node in nodes)
            written.append(fields_of(nodes))
    assert written[0] == written[1]


def test_changed_documents_have_their_new_nodes() -> None:
    graph = NodeGraph()
    graph.add([Document("One. Two.", id="a"), Document("Three.", id="b")])
    graph.create_node_group("sentence", split_sentences)
    assert [node.text for node in graph.nodes("sentence")] == ["One.", "Two.", "Three."]
    graph.add(Document("One. Four.", id="a"))
    assert [node.text for node in graph.nodes("sentence")] == ["One.", "Four.", "Three."]
    graph.remove("b")
    assert [node.text for node in graph.nodes("sentence")] == ["One.", "Four."]
