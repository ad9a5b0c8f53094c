"""How ids, texts and metadata are written in a column."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any
from zlib import crc32

from ..codec import decode, encode
from ..node import NO_METADATA, Link
from ..search_text import SearchText
from .connection import Connection, Row

_HEXADECIMAL = re.compile("[0-9a-f]{24}")

_SURROGATES = b"surrogatepass"  # longer than an id of ours

_VARIABLES = 900  # that one statement may have, in every build of SQLite


def to_key(name: str) -> bytes | str:
    """Write an id or a hash; one of ours in half the bytes."""
    return bytes.fromhex(name) if _HEXADECIMAL.fullmatch(name) else to_column(name)


def from_key(value: bytes | str) -> str:
    """Read an id."""
    if isinstance(value, bytes) and len(value) == 12:
        return value.hex()
    return from_column(value)


def to_column(text: str) -> str | bytes:
    """Write a text, also one with half a character in it, which UTF-8 has no form for."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return _SURROGATES + text.encode("utf-8", "surrogatepass")
    return text


def checksum(value: str | bytes | None) -> int:
    """Return a number by which a damaged column is recognised: its CRC-32."""
    return crc32(value.encode() if isinstance(value, str) else value or b"")


def row_checksum(values: Iterable[Any]) -> int:
    """Return a number by which a damaged row is recognised: the CRC-32 of its values."""
    return crc32("\0".join(map(str, values)).encode())


def from_column(value: str | bytes) -> str:
    """Read a text."""
    if isinstance(value, str):
        return value
    return value[len(_SURROGATES) :].decode("utf-8", "surrogatepass")


def to_json(metadata: Mapping[str, Any]) -> str | bytes | None:
    """Write metadata; None where there is none."""
    return to_column(encode(dict(metadata))) if metadata else None


def from_json(value: str | bytes) -> Any:
    """Read metadata, or any value."""
    return decode(from_column(value))


def put_search_text(db: Connection, search_text: SearchText | None) -> int | None:
    """Store a search text, each once; return its key, None where there is none."""
    if search_text is None:
        return None
    value = to_column(encode(search_text.to_row()))
    row = db.row("SELECT key FROM search_texts WHERE value = ?", [value])
    return row[0] if row else db.run("INSERT INTO search_texts (value) VALUES (?)", [value])


def portions(values: Iterable[Any]) -> Iterator[list[Any]]:
    """Cut values into lists that one statement can have as variables."""
    iterator = iter(values)
    while batch := list(itertools.islice(iterator, _VARIABLES)):
        yield batch


def placeholders(values: Sequence[Any]) -> str:
    """Return a question mark for each value."""
    return ",".join("?" * len(values))


_LINK = (
    "s.id, links.target, links.type, links.weight, links.metadata, links.derived, links.checksum"
)


ALL_LINKS = (
    f"SELECT links.key, links.derived, {_LINK} FROM links JOIN nodes s ON s.key = links.source"
)


def put_links(db: Connection, links: Iterable[Link]) -> None:
    """Put those links whose source exists."""
    db.run_many(
        "INSERT INTO links (source, target, type, weight, metadata, derived, checksum) "
        "SELECT key, ?, ?, ?, ?, ?, ? FROM nodes WHERE id = ? "
        "ON CONFLICT (source, target, type) DO UPDATE SET weight = excluded.weight, "
        "metadata = excluded.metadata, derived = excluded.derived, checksum = excluded.checksum",
        ((*row, row_checksum((source, *row)), source) for source, row in map(_row, links)),
    )


def _row(link: Link) -> tuple[bytes | str, Row]:
    metadata, derived = to_json(link.metadata), int(link.derived)
    row = (to_key(link.target), link.type, float(link.weight), metadata, derived)
    return to_key(link.source), row


def derived_links(db: Connection, derivation: int) -> list[Link]:
    """Return the links that a transform derived, also those to nodes that don't exist."""
    rows = db.rows(
        f"SELECT {_LINK} FROM links JOIN nodes s ON s.key = links.source "
        "WHERE s.derivation = ? AND links.derived = 1 ORDER BY links.key",
        [derivation],
    )
    return [_link(db, row) for row in rows]


def delete_links(db: Connection, links: Iterable[Link]) -> None:
    """Delete links."""
    db.run_many(
        "DELETE FROM links WHERE source = (SELECT key FROM nodes WHERE id = ?) "
        "AND target = ? AND type = ?",
        ((to_key(link.source), to_key(link.target), link.type) for link in links),
    )


def read_links(
    db: Connection, ids: Sequence[str], *, incoming: bool, existing: bool
) -> list[list[Link]]:
    """Return the links from (or to) each id, of all or of those whose target exists."""
    links: dict[str, list[Link]] = {i: [] for i in ids}
    side = "links.target" if incoming else "s.id"
    targets = "JOIN nodes t ON t.id = links.target " if existing else ""
    for keys in portions(to_key(i) for i in links):
        for row in db.rows(
            f"SELECT {_LINK} FROM links JOIN nodes s ON s.key = links.source {targets}"
            f"WHERE {side} IN ({placeholders(keys)}) ORDER BY links.key",
            keys,
        ):
            link = _link(db, row)
            links[link.target if incoming else link.source].append(link)
    return [links[i] for i in ids]


def is_intact(row: Row) -> bool:
    """Tell whether a row is as it was written, by its checksum, which is its last value."""
    return row[-1] is None or row[-1] == row_checksum(row[:-1])


def _link(db: Connection, row: Row) -> Link:
    source, target, kind, weight, metadata, derived, _ = row
    if not is_intact(row):
        raise db.damaged(f"a link of node {source!r} is not what was written")
    more = NO_METADATA if metadata is None else from_json(metadata)
    return Link(from_key(source), from_key(target), kind, weight, more, bool(derived))


def get_values(db: Connection, kind: str, keys: Collection[str] | None) -> dict[str, bytes]:
    """Return those of the values that exist, or all of a kind, by key."""
    query = (
        "SELECT memory.key, value FROM memory WHERE kind = (SELECT key FROM kinds WHERE name = ?)"
    )
    if keys is None:
        return {from_key(key): value for key, value in db.rows(query, [kind])}
    values: dict[str, bytes] = {}
    for batch in portions(to_key(i) for i in keys):
        rows = db.rows(f"{query} AND memory.key IN ({placeholders(batch)})", [kind, *batch])
        values.update((from_key(key), value) for key, value in rows)
    return values


def put_values(db: Connection, kind: str, values: Mapping[str, bytes]) -> None:
    """Store values, over existing ones."""
    row = db.row("SELECT key FROM kinds WHERE name = ?", [kind])
    key = row[0] if row else db.run("INSERT INTO kinds (name) VALUES (?)", [kind])
    db.run_many(
        "INSERT INTO memory VALUES (?, ?, ?) "
        "ON CONFLICT (kind, key) DO UPDATE SET value = excluded.value",
        ((key, to_key(name), value) for name, value in values.items()),
    )


def delete_values(db: Connection, kind: str, keys: Collection[str] | None) -> None:
    """Delete values, or all of a kind."""
    if keys is None:
        db.run("DELETE FROM kinds WHERE name = ?", [kind])
        return
    db.run_many(
        "DELETE FROM memory WHERE key = ? AND kind = (SELECT key FROM kinds WHERE name = ?)",
        ((to_key(key), kind) for key in keys),
    )
