"""Graphs on one server share connections, without sharing settings or locks."""

import threading
from contextlib import closing

import psycopg
import pytest
from support.postgres_server import RunningServer

from nodekin.adapters.engines.postgres import graph_database, server_connection
from nodekin.adapters.engines.postgres.address import PostgresAddress
from nodekin.adapters.engines.postgres.postgres_store import PostgresStore
from nodekin.adapters.engines.postgres.server_connection import (
    ServerLostError,
    leave_pool,
    shared_pool,
)
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
            (node,) = store.nodes.get(["same"])
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
        with patient.transactions.transaction():
            patient.values.put("kind", {"a": b"1"})
            with pytest.raises(StoreError, match="another process has been writing for too long"):
                hasty.values.put("kind", {"b": b"2"})
    for store in (patient, hasty):
        store.close()


def test_other_users_and_databases_share_no_connections() -> None:
    names = ("postgresql://a@db/x", "postgresql://b@db/x", "postgresql://a@db/y")
    addresses = [PostgresAddress.parse(name) for name in names]
    again = PostgresAddress.parse("postgresql://a@db/x?schema=other")
    users = [threading.Event() for _ in range(4)]
    try:
        pools = [shared_pool(*pair) for pair in zip((*addresses, again), users, strict=True)]
        assert len({id(pool) for pool in pools}) == 3
        assert pools[-1] is pools[0]
        leave_pool(addresses[0], users[0])
        assert not pools[0].pool.closed
    finally:
        for pair in zip((*addresses, again), users, strict=True):
            leave_pool(*pair)
    assert all(pool.pool.closed for pool in pools)


def test_closing_the_last_graph_closes_the_connections(postgres_server: RunningServer) -> None:
    alone = "&keepalives_idle=99"  # other tests have graphs with connections of the same settings
    stores = [PostgresStore(f"{postgres_server.address()}{alone}") for _ in range(2)]
    for store in stores:
        assert store.nodes.ids("ROOT") == []
    address = stores[0].database.address
    pool = shared_pool(address, stores[0].database).pool
    for store in stores:
        assert not pool.closed
        store.close()
    assert pool.closed
    assert stores[0].nodes.ids("ROOT") == []  # with a new pool
    stores[0].close()


def test_all_connections_in_use_raises(
    postgres_server: RunningServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_connection, "_MAX_CONNECTIONS", 1)
    monkeypatch.setattr(server_connection, "_POOL_TIMEOUT", 0.05)
    monkeypatch.setattr(graph_database, "_PATIENCE", 0.2)
    with closing(PostgresStore(f"{postgres_server.address()}&connect_timeout=9")) as store:
        with (
            store.transactions.turn(),
            pytest.raises(ServerLostError, match=r"all 1 connections.*are in use"),
        ):
            store.database.call(lambda connection: None)
        assert store.nodes.ids("ROOT") == []


def test_settings_and_locks_end_with_their_use(postgres_server: RunningServer) -> None:
    with closing(PostgresStore(postgres_server.address())) as store:
        with store.database.exclusive("purpose", wait=True) as connection:
            assert connection is not None
            connection.run_script("SET maintenance_work_mem TO 2048")
            with store.database.exclusive("purpose", wait=False) as second:
                assert second is None
        for _ in range(3):
            query = "SELECT (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory')"
            setting = "current_setting('maintenance_work_mem')"
            ((locks, memory),) = store.database.rows(f"{query}, {setting}")
            assert (locks, memory != "2MB") == (0, True)
