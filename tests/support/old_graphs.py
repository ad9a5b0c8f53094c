"""The same small graph as each format of a store wrote it, and what has to be read of it.

The texts in ``old_formats`` are dumps of what nodekin wrote at the time. None is ever changed.
"""

import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from nodekin.nodegraph import Document, Embedder, EntityExtractor, Link, NodeGraph

FOLDER = Path(__file__).parent / "old_formats"


def formats(store: str) -> list[int]:
    """Return the formats that there are dumps of."""
    return sorted(int(path.stem.split("_")[1]) for path in FOLDER.glob(f"{store}_*.sql"))


def write_file(path: Path, version: int) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.executescript((FOLDER / f"sqlite_{version}.sql").read_text(encoding="utf-8"))


def write_schema(run: Callable[[str], object], schema: str, version: int) -> None:
    script = (FOLDER / f"postgres_{version}.sql").read_text(encoding="utf-8")
    run(re.sub(r"\bgraph\.", f"{schema}.", script).replace("SCHEMA graph", f"SCHEMA {schema}"))


def declared(graph: NodeGraph, transform: Callable[[str], list[str]] = str.splitlines) -> NodeGraph:
    graph.create_node_group("line", transform, version="1")
    graph.create_node_group("entity", EntityExtractor(), scope="group")
    return graph


def contents(graph: NodeGraph) -> list[object]:
    nodes = [node for group in ("ROOT", "line", "entity") for node in graph.nodes(group)]
    of_nodes = [
        (n.id, n.text, n.start, n.end, n.parent_id, n.order % 2**32, n.metadata) for n in nodes
    ]
    return [*of_nodes, *(links_of(graph, node.id) for node in nodes)]


def links_of(graph: NodeGraph, i: str) -> list[tuple[Link, object, bool]]:
    return [(link, link.metadata, link.derived) for link in graph.links(i)]


def embed(texts: list[str]) -> list[list[float]]:
    return [[text.count(c) + 0.25 for c in "aeio"] for text in texts]


def check_old(store: str | Path) -> None:
    """Check that a graph that an older nodekin wrote is read, searched and written."""
    documents = [
        Document("The tea of Anna is green.\nBlack tea — 茶.", {"kind": "tea", "n": 1}, id="a"),
        Document("The cup of Anna is cold.", id="b"),
    ]
    right = declared(NodeGraph())
    right.add(documents)
    right.link("a", "b", "cites", weight=0.5, metadata={"page": 3})
    derived = list[str]()

    def lines(text: str) -> list[str]:
        derived.append(text)
        return text.splitlines()

    with NodeGraph(store=store, embed=Embedder(embed, "letters")) as graph:
        declared(graph, lines)
        assert graph.nodes("line")[0].text == "The tea of Anna is green."
        assert derived == []  # what was made is not made again
        assert contents(graph) == contents(right)
        assert graph.reader.verify() == []
        for each in (graph, right):
            each.update([Document("The milk of Anna.", {"kind": "milk"}, id="b")])
            each.add(Document("The cup of Anna.", id="c"))
            each.link("c", "a", "cites")
            each.remove("a")
        assert derived == []
        assert contents(graph) == contents(right)
        assert derived == ["The milk of Anna.", "The cup of Anna."]
    with NodeGraph(store=store) as graph:
        assert contents(declared(graph)) == contents(right)
