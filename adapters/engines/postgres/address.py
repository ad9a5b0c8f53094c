"""Where a graph is on a PostgreSQL server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

SCHEMES = ("postgresql", "postgres")

_DEFAULT_SCHEMA = "nodekin"

_PARAMETERS = ("schema", "vectors", "cache")

VECTORS = ("auto", "pgvector", "memory")

_MAX_NAME_BYTES = 63  # bytes of a name, above which PostgreSQL cuts it off without an error


@dataclass(frozen=True, slots=True)
class PostgresAddress:
    """Name a server, a database on it, and the schema that holds one graph.

    Attributes:
        conninfo: What libpq takes: a URI, with a password if there was one.
        schema: The schema.
        shown: The address without the password, for error messages.
        vectors: Where vectors are searched: in the database, by ``"pgvector"``; in the
            ``"memory"`` of each process; or ``"auto"``: in the database where it has pgvector.
        cache: A folder of this machine for other indexes; empty for none.
    """

    conninfo: str
    schema: str
    shown: str
    vectors: str = "auto"
    cache: str = ""

    @classmethod
    def parse(cls, address: str) -> PostgresAddress:
        """Read ``postgresql://user:password@host:port/database?schema=name``.

        ``vectors`` says where vectors are searched, ``cache`` where other indexes are stored.
        All other parameters are libpq's: ``sslmode``, ``host`` (of a socket), ``options``.

        Raises:
            ValueError: If it is no such address, or the schema is no name.
        """
        parts = urlsplit(address)
        if parts.scheme not in SCHEMES:  # a password is never in a message
            kind = address.partition(":")[0]
            raise ValueError(
                f"'{kind:.40}:...' is no address of a PostgreSQL server; write "
                "'postgresql://user@host/database?schema=name'"
            )
        behind = parts.path + parts.fragment + parts.query.partition("=")[0]
        if "@" in behind and "@" not in parts.netloc and ":" in parts.netloc:
            raise ValueError(
                "the password of the address has one of the characters / ? #; write them as %2F, "
                "%3F, %23"
            )
        pairs = parse_qsl(parts.query, keep_blank_values=True)
        schema = _parameter(pairs, "schema", _DEFAULT_SCHEMA)
        if not schema or "\0" in schema or schema.startswith("pg_"):
            raise ValueError(
                f"schema={schema!r:.80} names no schema for a graph; give one name that doesn't "
                'begin with "pg_"'
            )
        if len(schema.encode("utf-8", "surrogatepass")) > _MAX_NAME_BYTES:
            raise ValueError(
                f"schema={schema!r:.80} is longer than {_MAX_NAME_BYTES} bytes, which "
                "PostgreSQL cuts off; give a shorter name"
            )
        vectors = _parameter(pairs, "vectors", "auto")
        if vectors not in VECTORS:
            raise ValueError(
                f"vectors={vectors!r:.80} says not where vectors are searched; write one of "
                f"{', '.join(VECTORS)}"
            )
        cache = _parameter(pairs, "cache", "")
        if "\0" in cache:
            raise ValueError(f"cache={cache!r:.80} is no folder; give one path")
        others = urlencode([(k, v) for k, v in pairs if k not in _PARAMETERS], quote_via=quote)
        conninfo = f"postgresql://{parts.netloc}{parts.path}" + (f"?{others}" if others else "")
        user, _, server = parts.netloc.rpartition("@")
        user = unquote(user.partition(":")[0])
        host = server or dict(pairs).get("host", "")
        where = f"{user}@{host}" if user else host
        displayed = f"postgresql://{where}{parts.path}?schema={schema}"
        return cls(conninfo, schema, displayed, vectors, cache)

    def lock(self, purpose: str) -> int:
        """Return the number of this graph's advisory lock for a purpose."""
        digest = sha256(f"nodekin {purpose} {self.schema}".encode()).digest()
        return int.from_bytes(digest[:8], "big", signed=True)


def _parameter(pairs: Sequence[tuple[str, str]], name: str, default: str) -> str:
    """Return a parameter; several values with a NUL between, which no value may have."""
    values = [value for key, value in pairs if key == name]
    return "\0".join(values) if values else default
