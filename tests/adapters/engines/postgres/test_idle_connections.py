"""Graphs on one server share connections, and see nothing of each other by that."""

import threading

import psycopg
import pytest
from postgres_server import RunningServer

from nodekin.adapters.engines.postgres.postgres_store import PostgresStore
from nodekin.adapters.engines.postgres.server_connection import PostgresAddress, idle_connections
from nodekin.nodegraph import Document


def count(server: RunningServer) -> int:
    with psycopg.connect(server.uri) as db:
        query = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'nodekin'"
        return int(db.execute(query).fetchall()[0][0])


def test_graphs_in_turn_use_one_connection(postgres_server: RunningServer) -> None:
    stores = [PostgresStore(postgres_server.address()) for _ in range(10)]
    before = count(postgres_server)
    for _ in range(8):  # often enough for statements to be prepared
        for number, store in enumerate(stores):
            store.change_documents([Document(f"text {number}", id="same")])
    for _ in range(8):
        for number, store in enumerate(stores):
            (node,) = store.get(["same"])
            assert node is not None
            assert node.text == f"text {number}"
    assert count(postgres_server) <= max(before, 8)
    for store in stores:
        store.close()


def test_a_lock_does_not_go_with_the_connection(postgres_server: RunningServer) -> None:
    one, other = (PostgresStore(postgres_server.address()) for _ in range(2))
    same = PostgresStore(one.address, timeout=0.1)
    with one.writing():
        one.change_documents([Document("a", id="a")])
    with other.writing():
        other.change_documents([Document("b", id="b")])
    with same.writing():  # nobody has the lock any more
        assert same.document_ids() == ["a"]
    for store in (one, other, same):
        store.close()


def test_a_wait_is_as_long_as_each_store_says(postgres_server: RunningServer) -> None:
    patient = PostgresStore(postgres_server.address())
    hasty = PostgresStore(patient.address, timeout=0.1)
    for _ in range(3):
        patient.change_documents([Document("a", id="a")])
        with patient.transaction():
            patient.put_values("kind", {"a": b"1"})
            with pytest.raises(Exception, match="another process has been writing for too long"):
                hasty.put_values("kind", {"b": b"2"})
    for store in (patient, hasty):
        store.close()


def test_other_users_and_databases_have_connections_of_their_own() -> None:
    addresses = ("postgresql://a@db/x", "postgresql://b@db/x", "postgresql://a@db/y")
    pools = [idle_connections(PostgresAddress.parse(address)) for address in addresses]
    assert len({id(pool) for pool in pools}) == 3
    again = idle_connections(PostgresAddress.parse("postgresql://a@db/x?schema=other"))
    assert again is pools[0]


def test_a_closed_graph_leaves_the_others_theirs(postgres_server: RunningServer) -> None:
    one, other = (PostgresStore(postgres_server.address()) for _ in range(2))
    stop, errors = threading.Event(), []

    def read() -> None:
        try:
            while not stop.is_set():
                assert other.document_ids() == []
        except BaseException as error:
            errors.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(30):
        one.change_documents([Document("a", id=str(number))])
        one.close()
    stop.set()
    reader.join(60)
    assert not errors
    other.close()
