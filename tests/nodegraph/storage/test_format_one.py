"""Files of format 1, in which each node was stored with its text.

``format_one.sql`` is the dump of a file that the last version with this format wrote: the documents
below, with all groups built, a vector of each line and a link. Afterwards, document "c" was
changed, so its derived nodes are outdated.
"""

import os
import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from support.other_user import as_other_user, freeze, shared_folder

from nodekin.nodegraph import Document, Embedder, NodeGraph, StoreError
from nodekin.nodegraph.node import Node
from nodekin.retrievers import Retriever

LONG = "\n".join([f"第{number}行：{'绿茶要蒸，红茶要发酵。' * 9}" for number in range(11)])

DOCUMENTS = [
    Document("Green tea is steamed.\nBlack tea is fermented.", {"year": 2024}, id="a"),
    Document(LONG, id="b"),
    Document("Milk is white.\nMilk keeps a week.", id="c"),
]


class Counted:
    """A graph's transforms and model, which record their inputs."""

    def __init__(self) -> None:
        self.split: list[str] = []
        self.embedded: list[str] = []

    def lines(self, text: str) -> list[str]:
        self.split.append(text)
        return text.splitlines()

    def shout(self, text: str) -> str:
        return f"{text.upper()}!"

    def count(self, texts: list[str]) -> str:
        return f"{len(texts)} lines"

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        self.embedded += texts
        return [[len(text), text.count("e") + 1] for text in texts]

    def graph(self, path: Path | None) -> NodeGraph:
        embedder = Embedder(self.embed, "counted")
        graph = NodeGraph(store=path, embed=embedder, progress=False)
        graph.create_node_group("line", self.lines, version="1")
        graph.create_node_group("shout", self.shout, "line", version="1")
        graph.create_node_group("count", self.count, "line", scope="group", version="1")
        return graph


@pytest.fixture
def path(tmp_path: Path) -> Path:
    script = Path(__file__).with_name("format_one.sql").read_text(encoding="utf-8")
    with closing(sqlite3.connect(tmp_path / "graph.db")) as db:
        db.executescript(script)
    return tmp_path / "graph.db"


def parts(node: Node) -> tuple[object, ...]:
    span = node.start, node.end, node.offset, node.order
    return node.id, node.text, node.parent_id, *span, dict(node.metadata)


@pytest.mark.parametrize("group", ["ROOT", "line", "shout", "count"])
def test_old_file_has_the_nodes_of_a_new_graph(path: Path, group: str) -> None:
    expected = Counted().graph(None)
    expected.add(DOCUMENTS)
    with Counted().graph(path) as graph:
        assert [parts(n) for n in graph.nodes(group)] == [parts(n) for n in expected.nodes(group)]


def test_old_file_keeps_derived_nodes_and_vectors(path: Path) -> None:
    counted = Counted()
    with counted.graph(path) as graph:
        rows = graph._store.database.rows("SELECT kind FROM kept")
        assert not [kind for (kind,) in rows if kind.startswith(b"embedding")]
        (found, *_) = Retriever(graph, "line", "cosine").retrieve("Green tea is steamed.")
        assert found.node.text == "Green tea is steamed."
        first, second, *_ = graph.nodes("line")
        (link,) = first.links
        assert (link.target, link.type, link.weight) == (second.id, "next", 0.5)
    assert counted.split == [DOCUMENTS[2].text]
    new = ["Milk keeps a week."]
    assert set(counted.embedded) <= {*new, "Green tea is steamed."}


def test_old_file_is_converted_once_and_changes(path: Path) -> None:
    for number in range(2):
        with Counted().graph(path) as graph:
            graph.add(Document(f"New {number}.\nTea.", id="a"))
            assert [n.text for n in graph.nodes("line")][:2] == [f"New {number}.", "Tea."]
            assert graph.node("b").text == LONG
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (3,)
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE nodes SET text = X'C328'",
        "UPDATE nodes SET begin = 'x'",
        "UPDATE derivations SET source = X'00'",
        "DROP INDEX nodes_by_parent",
        "CREATE TRIGGER t AFTER INSERT ON nodes BEGIN DELETE FROM nodes; END",
    ],
)
def test_damaged_old_file_raises_and_stays_unchanged(path: Path, damage: str) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute(damage)
        db.commit()
        before = [*db.iterdump()]
    with pytest.raises(StoreError, match="the file is damaged"):
        NodeGraph(store=path)
    with closing(sqlite3.connect(path)) as db:
        assert [*db.iterdump()] == before
        assert db.execute("PRAGMA user_version").fetchone() == (1,)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs another user")
@pytest.mark.parametrize("group", ["ROOT", "line"])
def test_read_only_old_file_is_converted_in_memory(path: Path, group: str) -> None:
    expected = Counted().graph(None)
    expected.add(DOCUMENTS)
    right = [parts(node) for node in expected.nodes(group)]

    def read() -> bool:
        with Counted().graph(folder / "graph.db") as graph:
            with pytest.raises(StoreError, match="is read-only; copy the file into a folder"):
                graph.add("more")
            found = [parts(node) for node in graph.nodes(group)]
            graph.close()  # The next read converts the file again.
            return found == right == [parts(node) for node in graph.nodes(group)]

    with shared_folder() as folder:
        shutil.copy(path, folder / "graph.db")
        before = path.read_bytes()
        freeze(folder)
        assert as_other_user(read)
        assert (folder / "graph.db").read_bytes() == before
        assert [file.name for file in folder.iterdir()] == ["graph.db"]
