"""Links in the file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..link import Link
from ..node import NO_METADATA
from .connection import Connection
from .values import from_json, from_key, marks, portions, to_json, to_key


def put_links(db: Connection, links: Iterable[Link], *, made: bool) -> None:
    """Put those links whose nodes are there; ``made`` by a transform, or by hand."""
    db.run_many(
        "INSERT INTO links (source, target, type, weight, metadata, made) "
        "SELECT s.key, t.key, ?, ?, ?, ? FROM nodes s, nodes t WHERE s.id = ? AND t.id = ? "
        "ON CONFLICT (source, target, type) DO UPDATE SET weight = excluded.weight, "
        "metadata = excluded.metadata, made = excluded.made",
        (
            (
                *(link.type, link.weight, to_json(link.metadata), made),
                *(to_key(link.source), to_key(link.target)),
            )
            for link in links
        ),
    )


def replace_made_links(db: Connection, derivation: int, links: Iterable[Link]) -> None:
    """Put what a transform made in place of what it made before."""
    db.run(
        "DELETE FROM links WHERE made = 1 AND source IN "
        "(SELECT key FROM nodes WHERE derivation = ?)",
        [derivation],
    )
    put_links(db, links, made=True)


def remove_links(db: Connection, links: Iterable[Link]) -> None:
    """Remove links."""
    db.run_many(
        "DELETE FROM links WHERE source = (SELECT key FROM nodes WHERE id = ?) "
        "AND target = (SELECT key FROM nodes WHERE id = ?) AND type = ?",
        ((to_key(link.source), to_key(link.target), link.type) for link in links),
    )


def read_links(db: Connection, ids: Sequence[str], *, incoming: bool) -> list[list[Link]]:
    """Return the links from (or to) each node."""
    found: dict[str, list[Link]] = {i: [] for i in ids}
    side = "t" if incoming else "s"
    for some in portions(to_key(i) for i in found):
        for source, target, kind, weight, metadata in db.rows(
            "SELECT s.id, t.id, links.type, links.weight, links.metadata FROM links "
            "JOIN nodes s ON s.key = links.source JOIN nodes t ON t.key = links.target "
            f"WHERE {side}.id IN ({marks(some)}) ORDER BY links.key",
            some,
        ):
            more = NO_METADATA if metadata is None else from_json(metadata)
            link = Link(from_key(source), from_key(target), kind, weight, more)
            found[link.target if incoming else link.source].append(link)
    return [found[i] for i in ids]
