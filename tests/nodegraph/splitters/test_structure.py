"""The predefined groups of sections, pages, tables and symbols."""

from typing import Any

import pytest

from nodekin.nodegraph import Document, NodeGraph

MARKDOWN = """before

# Tea
Green.

| kind | color |
| --- | --- |
| green | pale |

## Black
Strong."""


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        (
            "section",
            [
                ("before", {"heading": "", "headings": [], "level": 0}),
                ("# Tea", {"heading": "Tea", "headings": ["Tea"], "level": 1}),
                ("## Black", {"heading": "Black", "headings": ["Tea", "Black"], "level": 2}),
            ],
        ),
        ("table", [("| kind", {"columns": ["kind", "color"], "rows": 1, "headings": ["Tea"]})]),
        ("page", [("before", {})]),
        ("symbol", []),
    ],
)
def test_predefined_group_of_markdown(group: str, expected: list[tuple[str, Any]]) -> None:
    graph = NodeGraph(progress=False)
    graph.add(Document(MARKDOWN, {"file_name": "tea.md"}, id="tea"))
    nodes = graph.nodes(group)
    assert [node.own_metadata for node in nodes] == [metadata for _, metadata in expected]
    for node, (start, _) in zip(nodes, expected, strict=True):
        assert node.text.startswith(start)
        assert node.text == MARKDOWN[node.start : node.end]


def test_pages_are_numbered_and_blank_pages_left_out() -> None:
    graph = NodeGraph(progress=False)
    graph.add(Document("One.\n\f \f\n# Three", {"page_unit": "slide"}))
    pages = [(node.text, node.own_metadata) for node in graph.nodes("page")]
    assert pages == [("One.", {"page": 1}), ("# Three", {"page": 3})]
    assert [node.metadata["page"] for node in graph.nodes("section")] == [1, 3]
