"""A graph behind PgBouncer in session mode."""

from collections.abc import Iterator

import pytest
from support.pooler import running_pooler
from support.postgres_server import RunningServer

from nodekin.nodegraph import Document, Embedder, NodeGraph
from nodekin.retrievers import Retriever


@pytest.fixture
def pooled(postgres_server: RunningServer) -> Iterator[str]:
    """Yield the address of a new graph behind a pooler."""
    with running_pooler(postgres_server.address()) as address:
        yield address


def embed(texts: list[str]) -> list[list[float]]:
    return [[float(text.count(letter)) for letter in "aet"] for text in texts]


@pytest.mark.parametrize("vectors", ["memory", "pgvector"])
def test_pooled_graph_finds_changes_of_other_clients(pooled: str, vectors: str) -> None:
    store = f"{pooled}&vectors={vectors}"
    model = Embedder(embed, "letters")
    with (
        NodeGraph(store=store, embed=model, progress=False) as graph,
        NodeGraph(store=store, embed=model, progress=False) as other,
    ):
        graph.add([Document(f"tea number {number}", id=f"{number}") for number in range(60)])
        retriever = Retriever(other, "ROOT")
        for number in range(12):  # until psycopg has prepared all statements
            assert retriever.retrieve(f"tea number {number}")[0].node.id == f"{number}"
        graph.add(Document("a teapot", id="pot"))
        graph.remove(["5"])
        found = {result.node.id for result in retriever.retrieve("teapot number 5", top_k=99)}
        assert found == {"pot", *(f"{number}" for number in range(60) if number != 5)}


def test_next_client_of_a_pooled_connection_finds_its_graph(pooled: str) -> None:
    """The pooler resets a connection before another client gets it."""
    for schema in ("first", "second", "first"):
        with NodeGraph(store=pooled.replace("schema=", f"schema={schema}_")) as graph:
            graph.add(Document(f"the {schema} graph", id="one"))
            assert [node.text for node in graph.nodes("ROOT")] == [f"the {schema} graph"]
