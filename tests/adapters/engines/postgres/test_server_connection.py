"""Graphs on one server share idle connections, without sharing settings or locks."""

import psycopg
import pytest
from support.postgres_server import RunningServer

from nodekin.adapters.engines.postgres.address import PostgresAddress
from nodekin.adapters.engines.postgres.postgres_store import PostgresStore
from nodekin.adapters.engines.postgres.server_connection import idle_connections
from nodekin.nodegraph import Document, StoreError


def count(server: RunningServer) -> int:
    with psycopg.connect(server.uri) as db:
        query = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'nodekin'"
        return int(db.execute(query).fetchall()[0][0])


def test_graphs_in_turn_share_connections(postgres_server: RunningServer) -> None:
    stores = [PostgresStore(postgres_server.address()) for _ in range(10)]
    before = count(postgres_server)
    for _ in range(8):  # often enough for prepared statements
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


def test_timeout_is_that_of_each_store(postgres_server: RunningServer) -> None:
    address = postgres_server.address()
    patient, hasty = PostgresStore(address), PostgresStore(address, timeout=0.1)
    for _ in range(3):
        patient.change_documents([Document("a", id="a")])
        with patient.transaction():
            patient.put_values("kind", {"a": b"1"})
            with pytest.raises(StoreError, match="another process has been writing for too long"):
                hasty.put_values("kind", {"b": b"2"})
    for store in (patient, hasty):
        store.close()


def test_other_users_and_databases_share_no_connections() -> None:
    addresses = ("postgresql://a@db/x", "postgresql://b@db/x", "postgresql://a@db/y")
    pools = [idle_connections(PostgresAddress.parse(address)) for address in addresses]
    assert len({id(pool) for pool in pools}) == 3
    again = idle_connections(PostgresAddress.parse("postgresql://a@db/x?schema=other"))
    assert again is pools[0]
