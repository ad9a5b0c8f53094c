"""Fields at the beginning of Markdown files become metadata, and stay text."""

from pathlib import Path
from typing import Any

import pytest

from nodekin.nodegraph import NodeGraph
from nodekin.nodegraph.splitters.headings import headings_in

YAML = """---
title: Green tea
author: José
tags: [tea, green]
date: 2024-05-01
draft: false
weight: 3
seo:
  keywords: [hot]
---

# Steep

Pour water.
"""

TOML = """+++
# a comment
title = "Green tea"
tags = ["tea", "green"]
date = 2024-05-01
[seo]
keywords = ["hot"]
+++

# Steep

Pour water.
"""


def _graph(folder: Path, text: str, name: str = "a.md") -> NodeGraph:
    (folder / name).write_text(text, "utf-8")
    (folder / "b.md").write_text("Pour milk.", "utf-8")
    return NodeGraph(folder, progress=False)


def _metadata(graph: NodeGraph, name: str = "a.md") -> dict[str, Any]:
    (document,) = [node for node in graph.nodes("ROOT") if node.id.endswith(name)]
    return dict(document.metadata)


@pytest.mark.parametrize("text", [YAML, TOML, YAML.replace("\n", "\r\n")])
@pytest.mark.parametrize("name", ["a.md", "a.markdown", "a.mdx", "a.MD"])
def test_front_matter_is_metadata_that_filters(tmp_path: Path, text: str, name: str) -> None:
    graph = _graph(tmp_path, text, name)
    metadata = _metadata(graph, name)
    assert metadata["title"] == "Green tea"
    assert metadata["tags"] == ["tea", "green"]
    assert metadata["date"] == "2024-05-01"
    assert metadata["seo.keywords"] == ["hot"]
    filters: list[dict[str, Any]] = [
        {"tags": "green"},
        {"date": {"gte": "2024-01-01"}},
        {"seo.keywords": "hot"},
    ]
    for condition in filters:
        found = graph.search("pour", filters=condition)
        assert {result.node.document_id for result in found} == {f"{tmp_path.name}/{name}"}


def test_title_and_tags_are_searched(tmp_path: Path) -> None:
    graph = _graph(tmp_path, YAML.replace("green]", "sencha]"))
    for query in ("green tea", "sencha", "José"):
        assert graph.search(query)[0].node.document_id.endswith("a.md")


@pytest.mark.parametrize("text", [YAML, TOML])
def test_headings_skip_front_matter(text: str) -> None:
    assert list(headings_in(text, "a.md")) == [(text.index("# Steep"), 1, "Steep")]


@pytest.mark.parametrize(
    "text",
    [
        "---\n\nText between lines.\n\n---\n\nMore.",
        "---\n# Heading\n---\n",
        "---\n- item\n- item\n---\n",
        "Text.\n---\ntitle: Tea\n---\n",
        "---\ntitle: Tea\n\nNo end.",
        "---\n---\n",
    ],
)
def test_other_lines_are_text(tmp_path: Path, text: str) -> None:
    metadata = _metadata(_graph(tmp_path, text))
    assert "title" not in metadata
    assert "read_notes" not in metadata


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{above}'] * 9)}]\n"
    for above, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("body", "note"),
    [
        (BOMB, "front matter that is not YAML, read as text only"),
        (f"title: {'x' * 20_000}\n", "front matter above 20,000 characters, read as text only"),
        ("title: [Tea\n", "front matter that is not YAML, read as text only"),
        (f"title: {'[' * 19_900}\n", "front matter that is not YAML, read as text only"),
        ("title: !!python/object/apply:os.system [ls]\n", "front matter that is not YAML"),
        ("date: 2024-13-45\n", "front matter that is not YAML"),
        ("".join(f"k{n}: 1\n" for n in range(101)), "front matter with more than 100 fields"),
        ("file_path: /etc/passwd\n", "fields of front matter with reserved names"),
    ],
)
def test_invalid_front_matter_is_noted(tmp_path: Path, body: str, note: str) -> None:
    graph = _graph(tmp_path, f"---\n{body}---\n\nPour water.")
    metadata = _metadata(graph)
    assert any(note in each for each in metadata["read_notes"])
    assert metadata["file_path"] == str(tmp_path / "a.md")
    assert graph.search("pour water")[0].node.document_id.endswith("a.md")


def test_title_of_another_type_is_text(tmp_path: Path) -> None:
    assert (
        _metadata(_graph(tmp_path, "---\ntitle: 1984\nyear: 1949\n---\nText."))["title"] == "1984"
    )
