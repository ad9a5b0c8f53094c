"""Stores of graphs, opened without a graph."""

from pathlib import Path

from nodekin.nodegraph.storage.graph_store import GraphStore, as_store


def memory_store() -> GraphStore:
    return as_store(None)


def file_store(path: str | Path) -> GraphStore:
    return as_store(path)
