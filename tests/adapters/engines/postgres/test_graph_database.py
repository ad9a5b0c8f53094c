"""What happens when the server, or a connection to it, is gone."""

import gc
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import psycopg
import pytest
from postgres_server import RunningServer, running_server
from stress import amount

from nodekin.adapters.engines.postgres import server_connection
from nodekin.adapters.engines.postgres.postgres_store import PostgresStore
from nodekin.adapters.engines.postgres.server_connection import (
    PostgresAddress,
    ServerConnection,
    ServerLostError,
)
from nodekin.nodegraph import Document, NodeGraph, StoreError, TransientStoreError
from nodekin.retrievers import Retriever


@pytest.fixture(scope="module")
def mortal() -> Iterator[RunningServer]:
    """Yield a server that may be killed."""
    with running_server() as server:
        yield server


def end_connections(uri: str) -> None:
    with psycopg.connect(uri) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
            "WHERE application_name = 'nodekin'"
        )


def document(i: str) -> Document:
    return Document(f"text {i}", id=i)


@pytest.mark.slow
def test_a_server_that_is_down_is_named_and_comes_back(mortal: RunningServer) -> None:
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
def test_nothing_acknowledged_is_lost_when_the_server_is_killed(mortal: RunningServer) -> None:
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
                    with store.writing(), store.transaction():
                        store.change_documents([document(i)])
                        store.put_values("vectors", {i: i.encode()})
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
                    with store.snapshot():
                        ids = store.document_ids()
                        assert [n.id for n in store.get(ids) if n] == ids
                        assert store.count("ROOT") == len(ids)
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
    ids = set(again.document_ids())
    assert set(acknowledged) <= ids
    assert set(again.get_values("vectors")) == ids
    assert not ids & set(refused)
    again.close()


def test_readers_do_not_notice_that_idle_connections_were_ended(
    postgres_server: RunningServer, address: str
) -> None:
    store = PostgresStore(address)
    store.change_documents([document("a")])
    for use in (store.document_ids, lambda: store.get(["a"]), lambda: store.revision("ROOT")):
        end_connections(postgres_server.uri)
        assert use()
    end_connections(postgres_server.uri)
    store.change_documents([document("b")])
    end_connections(postgres_server.uri)
    with store.writing(), store.snapshot():
        assert store.document_ids() == ["a", "b"]
    store.close()


@pytest.mark.slow
def test_a_stream_that_is_cut_off_is_an_error_and_leaves_nothing_open(
    postgres_server: RunningServer, address: str
) -> None:
    store = PostgresStore(address)
    store.change_documents([document(str(number)) for number in range(5_000)])
    database = store._database

    def cut_off(statement: str, read_first: bool) -> None:
        with store.snapshot():
            stream = database.stream(statement)
            if read_first:
                next(stream)
                end_connections(postgres_server.uri)
            for _ in stream:
                pass

    for statement in ("SELECT id FROM nodes", "SELECT id FROM nodes LIMIT 10"):
        with pytest.raises(ServerLostError, match="the connection to the server was lost"):
            cut_off(statement, True)
    with pytest.raises(StoreError, match="no_such_table"):
        cut_off("SELECT id FROM no_such_table", False)
    gc.collect()  # warnings of what is still open are errors
    assert len(store.document_ids()) == 5_000
    store.close()


def test_who_has_read_everything_does_not_notice_that_the_connection_was_ended(
    postgres_server: RunningServer, address: str
) -> None:
    store = PostgresStore(address)
    store.change_documents([document("a")])
    with store.snapshot():
        nodes = store.nodes("ROOT")
        assert next(iter(nodes)).id == "a"
        end_connections(postgres_server.uri)
        nodes.close()  # type: ignore[attr-defined]  # a generator
    store.close()
    gc.collect()


def test_who_has_lost_the_lock_does_not_write(postgres_server: RunningServer, address: str) -> None:
    store = PostgresStore(address)
    with store.writing():
        store.change_documents([document("a")])
        end_connections(postgres_server.uri)
        for _ in range(2):
            with pytest.raises(ServerLostError, match=r"the connection to the server was lost"):
                store.change_documents([document("b")])
    store.change_documents([document("c")])
    assert store.document_ids() == ["a", "c"]
    store.close()


def test_nobody_joins_those_who_have_lost_the_lock(
    postgres_server: RunningServer, address: str
) -> None:
    store = PostgresStore(address)

    def write() -> None:
        with store.writing():
            store.change_documents([document("b")])

    with ThreadPoolExecutor(1) as other:
        with store.writing():
            end_connections(postgres_server.uri)
            with pytest.raises(ServerLostError):
                store.change_documents([document("a")])
            with pytest.raises(ServerLostError, match="others may have written meanwhile"):
                other.submit(write).result()
        other.submit(write).result()
    assert store.document_ids() == ["b"]
    store.close()


def test_a_transaction_that_loses_its_connection_changes_nothing(
    postgres_server: RunningServer, address: str
) -> None:
    store = PostgresStore(address)

    def change() -> None:
        with store.transaction():
            store.change_documents([document("a")])
            end_connections(postgres_server.uri)
            store.change_documents([document("b")])

    with pytest.raises(ServerLostError, match="nothing was changed"):
        change()
    assert store.document_ids() == []
    store.close()


@pytest.mark.parametrize("written", [True, False])
def test_a_commit_whose_answer_is_lost_is_looked_up(
    written: bool, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = PostgresStore(address)
    store.change_documents([document("a")])
    run = ServerConnection.run_script

    def run_and_lose(self: ServerConnection, script: str) -> object:
        if "COMMIT" in script and script.startswith("UPDATE"):
            if written:
                run(self, script)
            self.close()
            raise ServerLostError("lost; nothing was changed")
        return run(self, script)

    monkeypatch.setattr(ServerConnection, "run_script", run_and_lose)
    if written:
        store.change_documents([document("b")])
        assert store.document_ids() == ["a", "b"]
    else:
        with pytest.raises(ServerLostError):
            store.change_documents([document("b")])
        assert store.document_ids() == ["a"]
    store.close()


def test_one_process_writes_at_a_time(address: str) -> None:
    one, other = PostgresStore(address), PostgresStore(address, timeout=0.2)
    with one.writing():
        with one.writing():  # the same process may again
            one.change_documents([document("a")])
        with pytest.raises(StoreError, match=r"another process has been writing to .* 0\.2 sec"):
            other.writing().__enter__()
        assert other.document_ids() == ["a"]
        other.put_values("vectors", {"a": b"1"})  # needs no lock
    with other.writing():
        other.change_documents([document("b")])
    with one.transaction():
        one.put_values("vectors", {"b": b"1"})
        with pytest.raises(StoreError, match="another process has been writing for too long"):
            other.put_values("vectors", {"b": b"2"})
    assert one.get_values("vectors") == {"a": b"1", "b": b"1"}
    one.close()
    other.close()


def refusing(server: RunningServer, address: str, sqlstate: str) -> None:
    """Let the server refuse to insert nodes, once they are nodes of a document "bad"."""
    schema = PostgresAddress.parse(address).schema
    with psycopg.connect(server.uri) as db:
        db.execute(
            f"CREATE FUNCTION {schema}.refuse() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN RAISE EXCEPTION 'as told' USING ERRCODE = '{sqlstate}'; END $$"
        )
        db.execute(
            f"CREATE TRIGGER refuse BEFORE INSERT ON {schema}.nodes FOR EACH ROW "
            f"WHEN (NEW.text = 'bad') EXECUTE FUNCTION {schema}.refuse()"
        )


@pytest.mark.parametrize(
    ("sqlstate", "remedy"),
    [
        ("53100", "make room on the server's disk"),
        ("53200", "too little memory"),
        ("57014", "raise its statement_timeout"),
        ("40001", "another process was in the way; nothing was changed; try again"),
        ("40P01", "another process was in the way"),
        ("42501", "lacks the right"),
        ("25006", "write to its primary"),
    ],
)
def test_an_error_of_the_server_says_what_to_do(
    postgres_server: RunningServer, address: str, sqlstate: str, remedy: str
) -> None:
    store = PostgresStore(address)
    store.change_documents([document("a")])
    refusing(postgres_server, address, sqlstate)
    with pytest.raises(StoreError, match=remedy) as caught:
        store.change_documents([document("b"), Document("bad", id="c")])
    assert "schema=" in str(caught.value)
    assert isinstance(caught.value, TransientStoreError) == (sqlstate[:2] == "40")
    assert store.document_ids() == ["a"]
    store.close()


def test_a_graph_repeats_what_gave_way(postgres_server: RunningServer, address: str) -> None:
    graph = NodeGraph(store=address, progress=False)
    schema = PostgresAddress.parse(address).schema
    with psycopg.connect(postgres_server.uri) as db:  # the first two attempts are refused
        db.execute(f"CREATE SEQUENCE {schema}.attempts")
        db.execute(
            f"CREATE FUNCTION {schema}.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            f"IF nextval('{schema}.attempts') < 3 THEN RAISE EXCEPTION USING ERRCODE = '40001'; "
            "END IF; RETURN NEW; END $$"
        )
        db.execute(
            f"CREATE TRIGGER refuse BEFORE INSERT ON {schema}.nodes FOR EACH ROW "
            f"EXECUTE FUNCTION {schema}.refuse()"
        )
    assert graph.add(document("a")) == ["a"]
    assert graph.reader.document_ids() == ["a"]
    graph.close()


def test_an_old_server_is_named(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_connection, "_OLDEST", 990_000)
    with pytest.raises(StoreError, match=r"is PostgreSQL 1\d; a graph needs 99 or later"):
        PostgresStore(address)


def test_paid_vectors_survive_a_lost_connection(
    postgres_server: RunningServer, address: str
) -> None:
    store = PostgresStore(address)
    for number in range(5):
        end_connections(postgres_server.uri)
        store.put_values("vectors", {str(number): b"1"})
    assert len(store.get_values("vectors")) == 5
    store.close()


def test_an_interrupt_in_a_statement_ends_its_connection(postgres_server: RunningServer) -> None:
    address = postgres_server.address()

    def interrupted(store: PostgresStore) -> None:
        with store.writing():
            writer = store._database._writer
            assert writer is not None
            with writer._explained():
                writer._db.pgconn.send_query(b"SELECT 1")  # whose answer is not read
                raise KeyboardInterrupt

    with closing(PostgresStore(address)) as store, closing(PostgresStore(address)) as other:
        with pytest.raises(KeyboardInterrupt):
            interrupted(store)
        for each in (other, store):
            with each.writing():
                each.put_values("kind", {"key": b"value"})
        assert store.get_values("kind") == {"key": b"value"}


def test_an_interrupt_before_a_lock_is_noted_leaves_it_to_nobody(
    postgres_server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = postgres_server.address()
    other = PostgresStore(address, timeout=5)
    with closing(PostgresStore(address)) as store, closing(other):
        locked = store._database._on_writer

        def interrupted(work: Any) -> Any:
            locked(work)
            raise KeyboardInterrupt

        monkeypatch.setattr(store._database, "_on_writer", interrupted)
        with pytest.raises(KeyboardInterrupt), store.writing():
            pass
        with other.writing():
            other.put_values("kind", {"key": b"value"})
