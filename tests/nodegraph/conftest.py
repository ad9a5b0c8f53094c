"""What the tests of this package share."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.node_texts import split_lines
from support.postgres_server import RunningServer

import nodekin.nodegraph.graph
from nodekin.nodegraph import Document, NodeGraph
from nodekin.nodegraph.storage.graph_store import GraphStore, as_store


@pytest.fixture(params=["memory", "file"])
def every_store(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """Run a test twice: with graphs in memory, and with graphs that are kept in files."""
    made: list[GraphStore] = []
    numbers = itertools.count()

    def open_in_file(store: object) -> GraphStore:
        made.append(as_store(store or tmp_path / f"{next(numbers)}.nodekin"))
        return made[-1]

    if request.param == "file":
        monkeypatch.setattr(nodekin.nodegraph.graph, "as_store", open_in_file)
    yield request.param
    for store in made:
        store.close()


@pytest.fixture
def graph() -> NodeGraph:
    """Return a graph of two documents with their lines and words."""
    graph = NodeGraph(progress=False)
    graph.add([Document("a b\nc", {"topic": "one"}, id="1"), Document("d", id="2")])
    graph.create_node_group("line", split_lines)
    graph.create_node_group("word", str.split, parent="line")
    return graph


@pytest.fixture(params=["memory", "file", "server"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[GraphStore]:
    """Yield a store with two documents: in memory, in a file, and on a server."""
    store: GraphStore = as_store(None)
    if request.param == "file":
        store = as_store(tmp_path / "g")
    elif request.param == "server":
        from nodekin.adapters.engines.postgres.postgres_store import PostgresStore

        server: RunningServer = request.getfixturevalue("postgres_server")
        store = PostgresStore(server.address())
    store.change_documents([Document("text", id="a"), Document("text", id="b")])
    yield store
    store.close()
