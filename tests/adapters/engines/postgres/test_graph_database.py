"""Lost servers, lost connections, interrupts, and errors of the server."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import closing

import psycopg
import pytest
from support.postgres_server import RunningServer, running_server
from support.stress import amount

from nodekin.adapters.engines.postgres import graph_database, server_connection
from nodekin.adapters.engines.postgres.address import PostgresAddress
from nodekin.adapters.engines.postgres.postgres_store import PostgresStore
from nodekin.adapters.engines.postgres.server_connection import ServerConnection, ServerLostError
from nodekin.nodegraph import Document, NodeGraph, StoreError, TransientStoreError
from nodekin.retrievers import Retriever


@pytest.fixture(scope="module")
def mortal() -> Iterator[RunningServer]:
    """Yield a server that tests may kill."""
    with running_server() as server:
        yield server


@pytest.fixture
def store(address: str) -> Iterator[PostgresStore]:
    with closing(PostgresStore(address)) as store:
        yield store


def end_connections(uri: str) -> None:
    with psycopg.connect(uri) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
            "WHERE application_name = 'nodekin'"
        )


def document(i: str) -> Document:
    return Document(f"text {i}", id=i)


@pytest.mark.slow
def test_errors_name_an_unreachable_server(
    mortal: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graph_database, "_PATIENCE", 0.5)
    graph = NodeGraph(store=mortal.address(), progress=False)
    graph.create_node_group("word", str.split)
    graph.add(document("a"))
    retriever = Retriever(graph, "word")
    assert len(retriever("text")) == 1
    mortal.kill()
    for use in (
        lambda: graph.add(document("b")),
        lambda: retriever("text"),
        graph.reader.document_ids,
    ):
        with pytest.raises(StoreError, match=r"postgresql://postgres@.*\?schema=graph_"):
            use()
    mortal.start()
    graph.add(document("c"))
    assert graph.reader.document_ids() == ["a", "c"]
    assert len(retriever("text")) == 2
    graph.close()


@pytest.mark.slow
def test_a_restarting_server_is_waited_for(
    mortal: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graph_database, "_PATIENCE", 120.0)
    graph = NodeGraph(store=mortal.address(), progress=False)
    graph.add(document("a"))
    mortal.kill()
    starting = threading.Thread(target=mortal.start)
    starting.start()
    graph.add(document("b"))
    starting.join()
    mortal.kill()
    starting = threading.Thread(target=mortal.start)
    starting.start()
    assert graph.reader.document_ids() == ["a", "b"]
    starting.join()
    graph.close()


@pytest.mark.slow
def test_a_killed_server_loses_no_acknowledged_write(
    mortal: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graph_database, "_PATIENCE", 0.2)
    address = mortal.address()
    store = PostgresStore(address)
    acknowledged: list[str] = []
    refused: list[str] = []
    stop = threading.Event()
    errors: list[BaseException] = []

    def write() -> None:
        number = 0
        try:
            while not stop.is_set():
                number += 1
                i = str(number)
                try:
                    with store.transactions.transaction():
                        store.change_documents([document(i)])
                        store.values.put("vectors", {i: i.encode()})
                except StoreError as error:
                    (refused if "nothing was changed" in str(error) else []).append(i)
                    time.sleep(0.01)
                else:
                    acknowledged.append(i)
        except BaseException as error:
            errors.append(error)

    def read() -> None:
        try:
            while not stop.is_set():
                try:
                    with store.transactions.turn():
                        ids = store.nodes.ids("ROOT")
                        assert [n.id for n in store.nodes.get(ids) if n] == ids
                        assert store.groups.count("ROOT") == len(ids)
                except StoreError:
                    time.sleep(0.01)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for work in (write, read)]
    for thread in threads:
        thread.start()
    for _ in range(amount(2, 5)):
        target = len(acknowledged) + 20
        end = time.monotonic() + 60
        while len(acknowledged) < target and time.monotonic() < end and not errors:
            time.sleep(0.005)
        assert len(acknowledged) >= target, errors
        mortal.kill()
        mortal.start()
    stop.set()
    for thread in threads:
        thread.join(60)
    assert not errors
    store.close()
    again = PostgresStore(address)
    ids = set(again.nodes.ids("ROOT"))
    assert set(acknowledged) <= ids
    assert set(again.values.get("vectors")) == ids
    assert not ids & set(refused)
    again.close()


def test_lost_idle_connections_are_replaced(
    postgres_server: RunningServer, store: PostgresStore
) -> None:
    store.change_documents([document("a")])
    for use in (
        lambda: store.nodes.ids("ROOT"),
        lambda: store.nodes.get(["a"]),
        lambda: store.values.get("kind") == {},
    ):
        end_connections(postgres_server.uri)
        assert use()
    end_connections(postgres_server.uri)
    store.change_documents([document("b")])
    end_connections(postgres_server.uri)
    with store.transactions.turn():
        assert store.nodes.ids("ROOT") == ["a", "b"]


def test_a_turn_that_loses_its_connection_raises(
    postgres_server: RunningServer, address: str, store: PostgresStore
) -> None:
    with closing(PostgresStore(address)) as other:  # so that the store has no nodes in memory
        other.change_documents([document("a"), document("b")])

    def read() -> None:
        with store.transactions.turn():
            store.nodes.get(["a"])
            end_connections(postgres_server.uri)
            store.nodes.get(["b"])

    with pytest.raises(ServerLostError, match="the connection to the server was lost"):
        read()
    assert store.nodes.ids("ROOT") == ["a", "b"]


def test_a_transaction_that_loses_its_connection_changes_nothing(
    postgres_server: RunningServer, store: PostgresStore
) -> None:

    def change() -> None:
        with store.transactions.transaction():
            store.change_documents([document("a")])
            end_connections(postgres_server.uri)
            store.change_documents([document("b")])

    with pytest.raises(ServerLostError, match="nothing was changed"):
        change()
    assert store.nodes.ids("ROOT") == []


@pytest.mark.parametrize("written", [True, False])
def test_a_commit_without_answer_is_looked_up(
    written: bool, store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.change_documents([document("a")])
    commit = ServerConnection.commit

    def commit_and_lose(self: ServerConnection) -> None:
        if written:
            commit(self)
        self.close()
        raise ServerLostError("lost; nothing was changed")

    with monkeypatch.context() as patched:
        patched.setattr(ServerConnection, "commit", commit_and_lose)
        if written:
            store.change_documents([document("b")])
        else:
            with pytest.raises(ServerLostError):
                store.change_documents([document("b")])
    assert store.nodes.ids("ROOT") == (["a", "b"] if written else ["a"])
    store.change_documents([document("c")])
    assert store.nodes.ids("ROOT")[-1] == "c"


def test_a_failed_statement_prevents_the_commit(store: PostgresStore) -> None:
    def change() -> None:
        with store.transactions.transaction():
            store.change_documents([document("a")])
            with pytest.raises(StoreError, match="no_such_table"):
                store.database.rows("SELECT 1 FROM no_such_table")

    with pytest.raises(StoreError, match="nothing was changed"):
        change()
    assert store.nodes.ids("ROOT") == []


def refusing(server: RunningServer, address: str, sqlstate: str) -> None:
    """Make the server reject the node of the document "bad"."""
    schema = PostgresAddress.parse(address).schema
    with psycopg.connect(server.uri) as db:
        db.execute(
            f"CREATE FUNCTION {schema}.refuse() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN RAISE EXCEPTION 'as told' USING ERRCODE = '{sqlstate}'; END $$"
        )
        db.execute(
            f"CREATE TRIGGER refuse BEFORE INSERT ON {schema}.nodes FOR EACH ROW "
            f"WHEN (NEW.id = '\\xff626164') EXECUTE FUNCTION {schema}.refuse()"
        )


@pytest.mark.parametrize(
    ("sqlstate", "remedy"),
    [
        ("53100", "free space on the server's disk"),
        ("53200", "too little memory"),
        ("57014", "raise the server.s statement_timeout"),
        ("40001", "lost a conflict with another process; nothing was changed; retry"),
        ("40P01", "lost a conflict with another process"),
        ("42501", "has no permission"),
        ("25006", "write to its primary"),
    ],
)
def test_server_errors_name_a_remedy(
    postgres_server: RunningServer, store: PostgresStore, address: str, sqlstate: str, remedy: str
) -> None:
    store.change_documents([document("a")])
    refusing(postgres_server, address, sqlstate)
    with pytest.raises(StoreError, match=remedy) as caught:
        store.change_documents([document("b"), document("bad")])
    assert "schema=" in str(caught.value)
    assert isinstance(caught.value, TransientStoreError) == (sqlstate[:2] == "40")
    assert store.nodes.ids("ROOT") == ["a"]


def test_an_old_server_raises(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_connection, "_OLDEST", 990_000)
    with pytest.raises(StoreError, match=r"is PostgreSQL 1\d; a graph needs 99 or later"):
        PostgresStore(address)


def test_an_interrupted_statement_ends_its_connection(
    store: PostgresStore, address: str, interrupts: None
) -> None:
    def interrupted() -> None:
        with store.transactions.transaction():
            store.change_documents([document("a")])
            timer = threading.Timer(0.5, os.kill, [os.getpid(), signal.SIGINT])
            timer.start()
            store.database.rows("SELECT pg_sleep(60)")

    with closing(PostgresStore(address, timeout=30)) as other:
        with pytest.raises(KeyboardInterrupt):
            interrupted()
        for number, each in enumerate((other, store)):
            each.change_documents([document(str(number))])
            assert each.nodes.ids("ROOT") == ["0", "1"][: number + 1]
