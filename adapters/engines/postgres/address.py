"""Parse the address of a graph on a PostgreSQL server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlencode, urlsplit

_SCHEMES = ("postgresql", "postgres")

_PARAMETERS = ("schema", "vectors", "cache")

_VECTORS = ("auto", "pgvector", "memory")

_MAX_NAME_BYTES = 63  # PostgreSQL truncates longer names without an error


@dataclass(frozen=True, slots=True)
class PostgresAddress:
    """The address of a graph: a server, a database, and a schema of the database.

    Attributes:
        conninfo: The connection string for libpq, including the password.
        schema: The name of the schema.
        shown: The address without the password, for error messages.
        vectors: Where vectors are searched: ``"pgvector"``, ``"memory"``, or ``"auto"`` to use
            pgvector if it is available.
        cache: A local folder in which other indexes are saved. If empty, they are not saved.
    """

    conninfo: str
    schema: str
    shown: str
    vectors: str = "auto"
    cache: str = ""

    @classmethod
    def parse(cls, address: str) -> PostgresAddress:
        """Parse an address such as ``postgresql://user:password@host:port/database?schema=name``.

        All parameters except ``schema``, ``vectors`` and ``cache`` are passed to libpq.

        Raises:
            ValueError: If the address or a parameter is invalid.
        """
        parts = _split(address)
        pairs = parse_qsl(parts.query, keep_blank_values=True)
        schema = _parameter(pairs, "schema", "nodekin")
        _check_schema(schema)
        vectors = _parameter(pairs, "vectors", "auto")
        if vectors not in _VECTORS:
            raise ValueError(f"vectors must be one of {', '.join(_VECTORS)}, got {vectors!r:.80}")
        cache = _parameter(pairs, "cache", "")
        if "\0" in cache:
            raise ValueError(f"cache must be one folder, got {cache!r:.80}")
        conninfo = f"postgresql://{parts.netloc}{parts.path}"
        others = [(name, value) for name, value in pairs if name not in _PARAMETERS]
        if others:
            conninfo += f"?{urlencode(others, quote_via=quote)}"
        shown = f"{_shown(conninfo)}?schema={schema}"
        return cls(conninfo, schema, shown, vectors, cache)

    @property
    def quoted_schema(self) -> str:
        """The name of the schema as a quoted SQL identifier."""
        return '"' + self.schema.replace('"', '""') + '"'

    def lock(self, purpose: str) -> int:
        """Return the number of the graph's advisory lock with the given purpose."""
        digest = sha256(f"nodekin {purpose} {self.schema}".encode()).digest()
        return int.from_bytes(digest[:8], "big", signed=True)


def _split(address: str) -> SplitResult:
    """Split an address into its parts. Error messages never contain the password.

    Raises:
        ValueError: If the address is not the URL of a PostgreSQL server.
    """
    if not _is_unicode(address) or not _is_unicode(unquote(address, errors="surrogatepass")):
        raise ValueError(
            "the address of a PostgreSQL server must not have lone surrogates; write the "
            "characters as UTF-8"
        )
    parts = urlsplit(address)
    if parts.scheme not in _SCHEMES:
        kind = address.partition(":")[0]
        raise ValueError(
            f"the address of a PostgreSQL server must start with postgresql://, got "
            f"'{kind:.40}:...'; write 'postgresql://user@host/database?schema=name'"
        )
    rest = parts.path + parts.fragment + parts.query.partition("=")[0]
    if "@" in rest and "@" not in parts.netloc and ":" in parts.netloc:
        raise ValueError(
            "the password in the address contains / ? or #; write them as %2F, %3F, %23"
        )
    return parts


def _is_unicode(text: str) -> bool:
    """Return whether a text can be encoded as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _parameter(pairs: Sequence[tuple[str, str]], name: str, default: str) -> str:
    """Return the value of a parameter.

    If a parameter is repeated, its values are joined by NUL characters, which makes them invalid.
    """
    values = [value for key, value in pairs if key == name]
    return "\0".join(values) if values else default


def _check_schema(schema: str) -> None:
    is_reserved = schema.startswith("pg_") or schema == "information_schema"
    if not schema or "\0" in schema or is_reserved:
        raise ValueError(
            'schema must be one name other than "information_schema" that does not start with '
            f'"pg_", got {schema!r:.80}'
        )
    if len(schema.encode("utf-8", "surrogatepass")) > _MAX_NAME_BYTES:
        raise ValueError(f"schema must have at most {_MAX_NAME_BYTES} bytes, got {schema!r}")


def _shown(conninfo: str) -> str:
    """Return an address without its password and parameters.

    Raises:
        ValueError: If libpq rejects the address.
    """
    from psycopg import ProgrammingError
    from psycopg.conninfo import conninfo_to_dict

    try:
        settings = conninfo_to_dict(conninfo)
    except ProgrammingError as error:
        raise ValueError(
            f"the address is invalid: {' '.join(str(error).split())}; its parameters are those of "
            f"libpq, and {', '.join(_PARAMETERS)}"
        ) from error
    where = str(settings.get("host") or "")
    if settings.get("user"):
        where = f"{settings['user']}@{where}"
    if settings.get("port"):
        where += f":{settings['port']}"
    return f"postgresql://{where}/{settings.get('dbname') or ''}"
