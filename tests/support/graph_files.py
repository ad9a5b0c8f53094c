"""Graphs in files, and what is in such a file."""

import sqlite3
from pathlib import Path
from typing import Any

from nodekin.nodegraph import Document, NodeGraph


def opened(path: Path, **settings: Any) -> NodeGraph:
    graph = NodeGraph(store=path, progress=False, **settings)
    graph.create_node_group("word", str.split)
    return graph


def fill(path: Path, count: int = 30) -> None:
    with opened(path) as graph:
        graph.add(
            [Document(f"tea {i} " + "leaf " * 40, {"n": i}, id=f"d{i}") for i in range(count)]
        )
        graph.build("word")


def tables(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Return what is in a file, by table, and which version it has."""
    database = sqlite3.connect(path)
    try:
        names = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        rows = {name: database.execute(f"SELECT * FROM {name}").fetchall() for (name,) in names}
        return {**rows, "version": database.execute("PRAGMA user_version").fetchall()}
    finally:
        database.close()


def words(graph: NodeGraph) -> list[str]:
    return [node.text for node in graph.nodes("word")]
