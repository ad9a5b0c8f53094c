"""Locations of text parts: pages and rectangles."""

import pickle
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nodekin.nodegraph import Document, Location, Node, NodeGraph, split_sentences
from nodekin.nodegraph.locations import TextBox, pack_layout, unpack_layout

EXAMPLES = Path(__file__).parents[2] / "examples" / "files"


def part(graph: NodeGraph, text: str) -> Node:
    """Return a node for a part of the only document."""
    (root,) = graph.nodes("ROOT")
    start = root.text.index(text)
    return replace(root, text=text, start=start, end=start + len(text))


@given(
    st.lists(st.tuples(st.integers(0, 99), *[st.integers(-9, 2**31 - 1)] * 4, st.booleans())),
)
def test_packed_layout_is_restored(rows) -> None:
    boxes, at = [], 0
    for length, left, top, right, bottom, is_line in rows:
        boxes.append(TextBox(at + 1, at + 1 + length, left, top, right, bottom, is_line=is_line))
        at += 1 + length
    assert unpack_layout(pack_layout(boxes)) == boxes


def test_lines_of_a_page_have_rectangles() -> None:
    text = "| a |\n\nTea is good. So it is\nsaid.\n\n\f\n\nMore."
    at = text.index("Tea")
    layout = pack_layout(
        [
            TextBox(2, 3, 100, 100, 900, 200, is_line=False),
            TextBox(at, at + 21, 1000, 300, 9000, 400),
            TextBox(at + 22, at + 27, 1000, 500, 2000, 600),
        ]
    )
    graph = NodeGraph(progress=False)
    graph.add(Document(text, {"page_unit": "page"}, id="a", layout=layout))
    assert part(graph, "a").locations == [Location(1, (0.01, 0.01, 0.09, 0.02))]
    first, second = part(graph, "So it is\nsaid.").locations
    assert first.rectangle is not None
    assert 0.5 < first.rectangle[0] < 0.65
    assert (first.page, *first.rectangle[1:]) == (1, 0.03, 0.9, 0.04)
    assert second == Location(1, (0.1, 0.05, 0.2, 0.06))
    assert part(graph, "said.\n\n\f\n\nMore.").locations == [second, Location(2)]


def test_files_without_pages_have_no_locations(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# Tea\n\nGreen.\nBlack.\n", encoding="utf-8")
    graph = NodeGraph(tmp_path / "a.md", progress=False)
    assert part(graph, "Green.\nBlack.").locations == []
    assert Node("Green.").locations == []
    paged = NodeGraph(progress=False)
    paged.add(Document("One.\n\n\f\n\nTwo.", {"page_unit": "slide"}, id="a"))
    assert part(paged, "Two.").locations == [Location(2)]


def test_layout_is_deleted_with_its_text(tmp_path: Path) -> None:
    layout = pack_layout([TextBox(0, 3, 100, 100, 900, 200)])
    document = Document("Tea", {"page_unit": "page"}, id="a", layout=layout)
    with NodeGraph(store=tmp_path / "graph", progress=False) as graph:
        graph.add(document)
    with NodeGraph(store=tmp_path / "graph", progress=False) as graph:
        assert part(graph, "Tea").locations == [Location(1, (0.01, 0.01, 0.09, 0.02))]
        node = pickle.loads(pickle.dumps(part(graph, "Tea")))
        assert node.locations == []
        graph.add(Document("Tea.", {"page_unit": "page"}, id="a"))
        assert part(graph, "Tea").locations == [Location(1)]
        graph.remove("a")
        assert not graph.reader.values("layout")


@pytest.mark.parametrize("where", ["memory", "file"])
def test_pdf_sentences_have_rectangles(tmp_path: Path, where: str) -> None:
    pytest.importorskip("pypdfium2")
    store = tmp_path / "graph" if where == "file" else None
    graph = NodeGraph(EXAMPLES / "handbook.pdf", store=store, progress=False)
    graph.create_node_group("sentence", split_sentences)
    (table,) = [n for n in graph.nodes("table") if "Keemun" in n.text][:1]
    assert len(table.locations) == 12
    for node in graph.nodes("sentence"):
        for location in node.locations if "---" not in node.text else []:
            assert location.page is not None
            assert location.rectangle is not None
            left, top, right, bottom = location.rectangle
            assert 0 < left < right < 1
            assert 0 < top < bottom < 1
            assert node.pages is not None
            assert node.pages[0] <= location.page <= node.pages[1]
