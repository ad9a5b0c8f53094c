"""The number of times that a graph waits for the server."""

from collections.abc import Iterator

import pytest
from support.postgres_server import RunningServer
from support.round_trips import Relay, relay

from nodekin.adapters.engines.postgres.postgres_store import PostgresStore
from nodekin.nodegraph import Document, Embedder, Node, NodeGraph, StoreError
from nodekin.retrievers import DefaultRetriever, Retriever, register_similarity

WARM = 20  # repetitions, until psycopg has prepared all statements


@pytest.fixture
def server(postgres_server: RunningServer) -> Iterator[Relay]:
    with relay(postgres_server.address()) as result:
        yield result


def test_warm_question_takes_one_round_trip(server: Relay) -> None:
    with NodeGraph(store=server.address) as graph:
        graph.add([Document(f"a line about tea number {n}", id=f"{n}") for n in range(20)])
        retriever = Retriever(graph, "ROOT", "bm25")
        for number in range(WARM):
            retriever.retrieve(f"tea {number}")
        before = server.trips
        (found, *_) = retriever.retrieve("tea number 5")
        assert (found.node.id, server.trips - before) == ("5", 1)


def opened(store: str) -> NodeGraph:
    """Return a graph of lines with vectors."""

    def embed(texts: list[str]) -> list[list[float]]:
        return [[text.count("a") + 1.0, len(text), text.count("e")] for text in texts]

    graph = NodeGraph(store=store, embed=Embedder(embed, "letters"), progress=False)
    graph.create_node_group("line", str.splitlines)
    graph.add([Document(f"a line about tea {n}\nthe end", id=f"{n}") for n in range(20)])
    graph.add([Document(f"coffee {n} " + "cup " * n, id=f"coffee {n}") for n in range(80)])
    return graph


@pytest.fixture
def lines(server: Relay) -> Iterator[NodeGraph]:
    """Yield a graph whose vectors are searched in this process."""
    with opened(f"{server.address}&vectors=memory") as graph:
        yield graph


@pytest.fixture
def lines_in_pgvector(server: Relay) -> Iterator[NodeGraph]:
    """Yield a graph whose vectors are searched by the server."""
    with opened(f"{server.address}&vectors=pgvector") as graph:
        yield graph


@pytest.mark.parametrize("question", ["tea 5 about", "coffee 70"])
def test_warm_question_by_words_and_vectors_takes_two_round_trips(
    server: Relay, lines: NodeGraph, question: str
) -> None:
    retriever = Retriever(lines, "line")
    for number in range(WARM):
        retriever.retrieve(f"tea {number}")
    before = server.trips
    assert retriever.retrieve(question)
    assert server.trips - before == 2


@pytest.mark.parametrize("similarity", ["cosine", "auto"])
def test_warm_question_to_pgvector_takes_two_round_trips_and_its_search(
    server: Relay, lines_in_pgvector: NodeGraph, similarity: str
) -> None:
    retriever = Retriever(lines_in_pgvector, "line", similarity)
    for number in range(WARM):
        retriever.retrieve(f"tea {number}")
    before = server.trips
    assert retriever.retrieve("tea 5 about")
    assert server.trips - before == 3


def test_warm_default_search_takes_two_round_trips(server: Relay, lines: NodeGraph) -> None:
    retriever = DefaultRetriever(lines, "line")
    for number in range(WARM):
        retriever.retrieve(f"tea {number}")
    before = server.trips
    assert retriever.retrieve("tea 5 about")
    assert server.trips - before == 2


def test_default_search_sees_changes_of_another_process(server: Relay, lines: NodeGraph) -> None:
    retriever = DefaultRetriever(lines, "line")
    assert retriever.retrieve("tea 5 about")
    with NodeGraph(store=server.address) as other:
        other.add(Document("a newcomer about tea", id="newcomer"))
    (found, *_) = retriever.retrieve("newcomer")
    assert found.node.document_id == "newcomer"


def test_search_repeats_if_another_process_changes_a_hit(server: Relay) -> None:
    with NodeGraph(store=server.address) as graph, NodeGraph(store=server.address) as other:
        graph.add([Document(f"tea number {number}", id=f"{number}") for number in range(3)])
        changes = [Document("tea of the second state", id="1")]

        @register_similarity
        def changing(query: str, node: Node) -> float:
            if changes:
                other.add(changes.pop())
            return float(node.text.count(query))

        found = Retriever(graph, "ROOT", changing).retrieve("tea")
        texts = {result.node.id: result.text for result in found}
        assert texts["1"] == "tea of the second state"


def test_question_sees_changes_of_another_process(server: Relay) -> None:
    with NodeGraph(store=server.address) as graph, NodeGraph(store=server.address) as other:
        graph.add(Document("a line about tea", id="first"))
        retriever = Retriever(graph, "ROOT", "bm25")
        assert [result.node.id for result in retriever.retrieve("tea")] == ["first"]
        other.add(Document("tea", id="second"))
        assert {result.node.id for result in retriever.retrieve("tea")} == {"first", "second"}


@pytest.mark.parametrize(("group", "trips"), [(None, 3), ("line", 4)])
def test_addition_takes_at_most_four_round_trips(
    server: Relay, group: str | None, trips: int
) -> None:
    with NodeGraph(store=server.address) as graph:
        if group is not None:  # The id of a document must differ from those of derived nodes.
            graph.create_node_group(group, str.splitlines)
            graph.add("a line")
            graph.build(group)
        for number in range(WARM):
            graph.add(Document(f"text {number}", id=f"{number}"))
        before = server.trips
        graph.add(Document("the last text", id="last"))
        assert server.trips - before == trips
        assert graph.nodes("ROOT")[-1].text == "the last text"


def test_failing_delayed_statement_prevents_the_commit(postgres_server: RunningServer) -> None:
    address = postgres_server.address()
    store = PostgresStore(address)
    insert = "INSERT INTO kept VALUES (?, ?, ?)"

    def change() -> None:
        with store.transactions.transaction():
            store.values.put("kind", {"a": b"1"})
            for _ in range(2):
                store.database.run_many(insert, [(b"kind", b"b", b"2")])

    with pytest.raises(StoreError, match="duplicate key"):
        change()
    assert store.values.get("kind", ["a"]) == {}
    store.values.put("kind", {"c": b"3"})
    assert store.values.get("kind", ["a", "c"]) == {"c": b"3"}
    store.close()


def test_question_after_an_addition_takes_at_most_seventy_round_trips(
    server: Relay, lines: NodeGraph
) -> None:
    retriever = DefaultRetriever(lines, "line")
    for number in range(WARM):
        lines.add(Document(f"earlier {number}", id=f"earlier {number}"))
        retriever.retrieve(f"tea {number}")
    lines.add(Document("a newcomer about tea", id="newcomer"))
    before = server.trips
    (found, *_) = retriever.retrieve("newcomer")
    assert found.node.document_id == "newcomer"
    assert server.trips - before <= 70
