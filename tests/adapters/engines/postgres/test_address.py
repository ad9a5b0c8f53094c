"""Addresses of graphs on a server."""

import pytest

from nodekin.adapters.engines.postgres.address import PostgresAddress


def test_an_address_has_server_database_and_schema() -> None:
    address = PostgresAddress.parse(
        "postgresql://me:se%40cret@db:5433/texts?schema=tea&sslmode=require"
    )
    assert address.schema == "tea"
    assert address.conninfo == "postgresql://me:se%40cret@db:5433/texts?sslmode=require"
    assert address.shown == "postgresql://me@db:5433/texts?schema=tea"


def test_a_socket_is_used_as_host() -> None:
    address = PostgresAddress.parse("postgres:///texts?host=/run/postgresql&options=-c%20x%3D1")
    assert address.schema == "nodekin"
    assert address.conninfo == ("postgresql:///texts?host=%2Frun%2Fpostgresql&options=-c%20x%3D1")
    assert address.shown == "postgresql:///run/postgresql/texts?schema=nodekin"


@pytest.mark.parametrize(
    "address",
    [
        "postgresql+psycopg://me:secret@db/x",
        "postgresql://me:sec/secret@db/x",
        "postgresql://me:sec?secret@db/x",
        "postgresql://me:sec#secret@db/x?schema=tea",
        "postgresql://me:1/secret@db/x",
        "me:secret@db/x",
    ],
)
def test_messages_contain_no_password(address: str) -> None:
    with pytest.raises(ValueError, match="address") as caught:
        PostgresAddress.parse(address)
    assert "sec" not in str(caught.value)


def test_schemas_and_purposes_have_separate_locks() -> None:
    one, other = (PostgresAddress.parse(f"postgresql://db/x?schema={name}") for name in "ab")
    assert len({one.lock("a"), one.lock("b"), other.lock("a"), other.lock("b")}) == 4


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("mysql://db/x", "must start with postgresql://"),
        ("postgresql://db/x?schema=", "must be one name"),
        ("postgresql://db/x?schema=a&schema=b", "must be one name"),
        ("postgresql://db/x?schema=pg_tea", "must be one name"),
        ("postgresql://db/x?schema=information_schema", "must be one name"),
        ("postgresql://db/x\ud800?schema=tea", "must not have lone surrogates"),
        ("postgresql://db/x?schema=tea%ED%A0%80", "must not have lone surrogates"),
        (f"postgresql://db/x?schema={'茶' * 22}", "at most 63 bytes"),
        (
            "postgresql://db/x?scheme=tea",
            'invalid URI query parameter: "scheme".*libpq, and schema',
        ),
    ],
)
def test_an_invalid_address_raises(address: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PostgresAddress.parse(address)


def test_vectors_parameter_is_parsed() -> None:
    assert PostgresAddress.parse("postgresql://db/texts").vectors == "auto"
    address = PostgresAddress.parse("postgresql://db/texts?vectors=pgvector&sslmode=require")
    assert (address.vectors, address.conninfo) == (
        "pgvector",
        "postgresql://db/texts?sslmode=require",
    )
    with pytest.raises(ValueError, match=r"one of auto, pgvector, memory, got 'faiss'"):
        PostgresAddress.parse("postgresql://db/texts?vectors=faiss")
