"""Documents: conversion, ids and validation."""

from pathlib import Path

import pytest

from nodekin.nodegraph import Document, NodeGraph


@pytest.mark.parametrize("item", [None, 3, b"Tea.", {"text": "Tea."}, object(), ["Tea.", 3]])
def test_unsupported_item_raises(item: object) -> None:
    graph = NodeGraph()
    with pytest.raises(TypeError, match=r"a document must be a text .* got"):
        graph.add(item)
    assert graph.nodes("ROOT") == []


def test_default_ids_hash_text_and_metadata() -> None:
    assert Document("Tea.").id == Document("Tea.", {}).id == Document("Tea.", None).id
    assert Document("Tea.", {"a": 1, "b": 2}).id == Document("Tea.", {"b": 2, "a": 1}).id
    ids = [
        Document("Tea.").id,
        Document("Tea").id,
        Document("Tea.", {"a": 1}).id,
        Document("Tea.", {"a": "1"}).id,
        Document("Tea.", {"a": [1]}).id,
    ]
    assert len(set(ids)) == len(ids)
    facts = {"file_name": "a.txt", "last_modified_date": "2024-01-01", "file_path": "/a/a.txt"}
    moved = {"file_name": "a.txt", "last_modified_date": "2025-01-01", "file_path": "/b/a.txt"}
    assert Document("Tea.", facts).id == Document("Tea.", moved).id


def test_id_equals_that_of_earlier_releases() -> None:
    assert Document("Tea.").id == "1a6ce32aef631c96b8a2c500"
    tags = {"tags": {"x", "y", "z"}}  # in any order
    assert Document("Tea is hot. 冰很冷。", tags).id == "e2bed812953c45e8fb164ab3"


def nested(levels: int) -> list:
    value: list = []
    for _ in range(levels):
        value = [value]
    return value


def test_metadata_of_80_levels_is_kept(tmp_path: Path) -> None:
    with NodeGraph(store=tmp_path / "graph", progress=False) as graph:
        graph.add(Document("Green tea.", {"deep": nested(80)}))
    with NodeGraph(store=tmp_path / "graph", progress=False) as graph:
        (node,) = graph.nodes("ROOT")
        assert node.metadata["deep"] == nested(80)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"text": 3}, TypeError, "text must be a str, got int"),
        ({"text": None}, TypeError, "text must be a str, got NoneType"),
        (
            {"text": "a", "metadata": ["page"]},
            TypeError,
            r"metadata must be a mapping .*\['page'\]",
        ),
        ({"text": "a", "metadata": {1: 2}}, TypeError, r"metadata must be a mapping .*\{1: 2\}"),
        ({"text": "a", "metadata": {"deep": nested(1_000)}}, ValueError, "at most 100 levels"),
        ({"text": "a", "metadata": {"deep": nested(100_000)}}, ValueError, "'deep' is deeper"),
        ({"text": "a", "id": ""}, ValueError, "non-empty str, got ''"),
        ({"text": "a", "id": 7}, ValueError, "non-empty str, got 7"),
    ],
)
def test_invalid_arguments_raise(arguments: dict, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Document(**arguments)


def test_text_of_an_existing_path_raises(tmp_path, monkeypatch) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("Green tea.", "utf-8")
    (tmp_path / "notes of tea.md").write_text("Black tea.", "utf-8")
    monkeypatch.chdir(tmp_path)
    graph = NodeGraph(progress=False)
    for text, kind in {"docs/a.md": "file", "notes of tea.md": "file", "docs/": "folder"}.items():
        with pytest.raises(ValueError, match=rf"^'{text}' is an existing {kind}; pass Path"):
            graph.add(["tea", text])
    assert graph.nodes("ROOT") == []
    graph.add(["docs/b.md", "and/or", "docs", Document("docs/a.md"), Path("docs/a.md")])
    texts = ["docs/b.md", "and/or", "docs", "docs/a.md", "Green tea."]
    assert [node.text for node in graph.nodes("ROOT")] == texts
