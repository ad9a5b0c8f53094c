"""What comes back from a file is what was put."""

import math
from datetime import date, datetime, timezone
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from graph_files import fill, opened, words

from nodekin.nodegraph import Document, Node, NodeGraph, TransformError


def test_metadata_that_no_file_can_hold_is_refused_by_name(path: Path) -> None:
    fill(path)
    graph = opened(path)
    new = [Document("good", id="good"), Document("bad", {"how": [object()]}, id="bad one")]
    with pytest.raises(TypeError, match=r"metadata of document 'bad one': object <object .*file"):
        graph.add(new)
    assert len(graph.nodes("ROOT")) == 30
    assert graph.add(new[:1]) == ["good"]
    assert words(graph)[-1] == "good"
    graph.close()


def awkward(text: str) -> list[Node]:
    value = object() if "bad" in text else 1
    return [Node(text, {"value": value}), Node(text, content=value)]


@pytest.mark.parametrize("num_workers", [0, 2])
def test_nodes_that_no_file_can_hold_leave_other_documents_unharmed(
    path: Path, num_workers: int
) -> None:
    graph = opened(path)
    graph.create_node_group("made", awkward, version="1", num_workers=num_workers)
    graph.add([Document(text, id=text) for text in ("one", "bad", "two")])
    with pytest.raises(TransformError, match=r"document 'bad'.*object <object .*kept in a file"):
        graph.nodes("made")
    (failure,) = graph.build("made", on_error="skip")
    assert failure.document == "bad"
    graph.close()
    with opened(path, on_error="skip") as graph:
        graph.create_node_group("made", awkward, version="1")
        assert [(n.document_id, n.content) for n in graph.nodes("made")] == [
            ("one", "one"),
            ("one", 1),
            ("two", "two"),
            ("two", 1),
        ]


METADATA: dict[str, Any] = {
    "tuple": (1, ("a", [2])),
    "set": {1, "a", frozenset({2})},
    "day": date(2024, 5, 1),
    "at": datetime(2024, 5, 1, 12, 30, 1, 5, timezone.utc),
    "raw": b"\0\xff",
    "price": Decimal("1.10"),
    "id": UUID(int=7),
    "most": math.inf,
    "least": -math.inf,
    "nested": {1: {None: "n"}, (1, 2): {"deep": {3.5: True}}, "$type": "tuple"},
    "half \ud800": "a half \udfff of a character",
    "nul\0": "a\0b",
    "": None,
    "yes": True,
    "large": 2**80,
}

STRANGE = [
    "tea",
    "nul\0id",
    "half \ud83d",
    "halves \ud83d\ude00",
    "😀",
    "0" * 24,
    "surrogatepass",
    " ",
]


def test_documents_come_back_as_they_were(path: Path) -> None:
    documents = [
        Document(f"{name} a\0b {name}\ud800 c", {**METADATA, "name": name}, id=name)
        for name in STRANGE
    ]
    with opened(path) as graph:
        graph.add(documents)
        graph.create_node_group("same", lambda text: Node(text, METADATA, (text, 1)), version="1")
        graph.build("same")
    fresh = NodeGraph(progress=False)
    fresh.create_node_group("word", str.split)
    fresh.add(documents)
    with opened(path) as graph:
        graph.create_node_group("same", lambda text: Node(text, METADATA, (text, 1)), version="1")
        found = [(n.id, n.text, dict(n.metadata)) for n in graph.nodes("ROOT")]
        assert found == [(d.id, d.text, d.metadata) for d in documents]
        assert [list(metadata) for *_, metadata in found] == [list(d.metadata) for d in documents]
        assert [type(value) for value in found[0][2].values()] == [
            type(value) for value in documents[0].metadata.values()
        ]
        ours = [(n.id, n.text, n.metadata, n.document_id) for n in graph.nodes("word")]
        assert ours == [(n.id, n.text, n.metadata, n.document_id) for n in fresh.nodes("word")]
        for node in graph.nodes("same"):
            assert node.content == (node.text, 1)
            assert node.metadata == {**METADATA, "name": node.document_id}
        before = graph.reader.revision("ROOT")
        graph.add(documents)  # nothing has changed, whatever the values look like
        assert graph.reader.revision("ROOT") == before
        graph.remove(STRANGE)
        assert graph.nodes("word") == graph.nodes("ROOT") == []


def test_a_number_that_is_none_comes_back(path: Path) -> None:
    with opened(path) as graph:
        graph.add(Document("tea", {"score": float("nan"), "in": [float("nan")]}, id="tea"))
        graph.build("word")
    with opened(path) as graph:
        (word,) = graph.nodes("word")
        assert math.isnan(word.metadata["score"])
        assert math.isnan(word.metadata["in"][0])


class Name(str, Enum):
    """A text that is written in another way than it is shown."""

    CITES = "cites"
    ID = "an id"


def test_texts_of_enums_and_negative_zero_come_back(path: Path) -> None:
    with NodeGraph(store=path, progress=False) as graph:
        graph.add([Document("Tea.", id=Name.ID), Document("Water.", id="b")])
        graph.link("an id", "b", Name.CITES, weight=1)
        graph.link("b", "an id", "sim", weight=-0.0)
        graph.create_node_group(Name.CITES, str.split)
        graph.build("cites")
    with NodeGraph(store=path, progress=False) as graph:
        assert [node.id for node in graph.nodes("ROOT")] == ["an id", "b"]
        assert [link.type for link in graph.links("an id")] == ["cites"]
        assert [link.weight for link in graph.links("b")] == [0.0]
