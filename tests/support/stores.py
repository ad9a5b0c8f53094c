"""Stores of graphs, opened without a graph."""

from pathlib import Path

from nodekin.nodegraph.storage.graph_store import GraphStore
from nodekin.nodegraph.storage.opening import as_store


def memory_store() -> GraphStore:
    return as_store(None)


def file_store(path: str | Path) -> GraphStore:
    return as_store(path)
