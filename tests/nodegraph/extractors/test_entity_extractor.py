"""Names in passages and questions."""

from pathlib import Path
from typing import Any

import pytest

from nodekin.nodegraph import Document, NodeGraph, TransformError
from nodekin.nodegraph.extractors.entity_extractor import EntityExtractor, name_key, names_in


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The Beatles", "beatles"),
        ("Brand (play)", "BRAND"),
        ("Dvořák's", "Dvorak"),
        ("O’Neill", "O'Neill"),
        ("Johnnycake, West Virginia", "Johnnycake West Virginia"),
        ("《红楼梦》", "红楼梦"),
        ("Spider-Man", "spider man"),
        ("The The", "the"),
        ("...", ""),
    ],
)
def test_name_key_normalizes_spellings(one: str, other: str) -> None:
    assert name_key(one) == name_key(other)


@pytest.mark.parametrize(
    ("text", "names", "expected"),
    [
        ("Who wrote Brand?", ["Brand", "Who", "wrote"], ["brand"]),
        ("who wrote brand?", ["Brand"], []),  # a lowercase word
        ("Brand by whom?", ["Brand"], []),  # any first word has a capital
        ("the play peer gynt", ["Peer Gynt"], ["peer gynt"]),
        ("New York City Hall", ["New York City", "York", "City Hall"], ["new york city"]),
        ("Is The Beatles' song long?", ["The Beatles", "Beatles song"], ["beatles song"]),
        ("Über Café Central", ["Cafe Central"], ["cafe central"]),
        ("《红楼梦》和红楼的作者", ["红楼梦", "红楼", "作者"], ["红楼梦", "红楼", "作者"]),
        ("iPhone手机的价格", ["手机"], ["手机"]),
        ("", ["Brand"], []),
    ],
)
def test_names_in(text: str, names: list[str], expected: list[str]) -> None:
    assert names_in(text, {*map(name_key, names)}.__contains__) == expected


def test_names_in_is_linear() -> None:
    lookups = 0

    def is_name(key: str) -> bool:
        nonlocal lookups
        lookups += 1
        return False

    names_in("Word " * 1000 + "字" * 1000, is_name)
    assert lookups < 30 * 2000


@pytest.mark.parametrize(
    ("settings", "error", "says"),
    [
        ({}, TypeError, "reads one passage: declare its group without scope='group'"),
        ({"find": "Oslo".format}, TypeError, "several names, got one text: 'Oslo'"),
    ],
)
def test_invalid_use_of_extractor_raises(settings: Any, error: Any, says: str) -> None:
    graph = NodeGraph(progress=False)
    graph.add("text")
    scope = "node" if settings else "group"
    graph.create_node_group("entity", EntityExtractor(**settings), scope=scope)
    with pytest.raises(TransformError, match=says):
        graph.nodes("entity")


def test_find_without_function_raises() -> None:
    with pytest.raises(TypeError, match="find must be a function from a text to names, got 3"):
        EntityExtractor(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("stored", [False, True])
def test_extractor_reads_only_new_passages(stored: bool, tmp_path: Path) -> None:
    read: list[str] = []

    def find(text: str) -> list[str]:
        read.append(text)
        return text.split()

    with NodeGraph(store=tmp_path / "graph" if stored else None, progress=False) as graph:
        graph.add([Document(f"Tea {number}", id=str(number)) for number in range(50)])
        graph.create_node_group("mention", EntityExtractor(find))
        assert [node.parent_id for node in graph.nodes("mention")] == [str(n) for n in range(50)]
        read.clear()
        graph.remove("7")
        graph.add(Document("Tea now", id="new"))
        assert len(graph.nodes("mention")) == 50
        assert read == ["Tea now"]


@pytest.mark.parametrize("run", [" ", "(", "（a", "a ", "(a)", "\n"])
def test_name_key_of_long_runs_ends(run: str) -> None:
    name = f"Tea{run * 300_000}x"
    assert name_key(name).startswith("tea")


@pytest.mark.parametrize(
    ("name", "key"),
    [
        *(("Tea (play) ", "tea"), ("Tea(1)（2）", "tea 1"), ("Tea (a", "tea a"), ("(play)", "")),
        *(("Tea ((a))", "tea a"), ("Tea (a) b", "tea a b"), ("Tea（戏剧）", "tea")),
    ],
)
def test_name_key_drops_last_remark(name: str, key: str) -> None:
    assert name_key(name) == key
