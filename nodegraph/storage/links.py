"""The links of a store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from ..node import NO_METADATA, Link
from .database import Database, Row
from .rows import Table, ValueColumns, from_id, from_text, marks, portions, to_id, to_text

_LINK = "l.source, l.target, l.type, l.weight, l.metadata, l.derived"


class LinkTable(Table):
    """The links between nodes, by their ids.

    A derived link stays while its target is missing. Other links are deleted with either end.

    Args:
        database: The database.
        next_key: Assigns keys of a table.
        columns: Converts metadata.
    """

    def __init__(
        self, database: Database, next_key: Callable[[str, int], int], columns: ValueColumns
    ) -> None:
        super().__init__(database, next_key)
        self._columns = columns

    def _exist(self) -> bool:
        return bool(self._db.rows("SELECT 1 FROM links LIMIT 1"))

    def put(self, links: Iterable[Link]) -> None:
        """Insert links, or replace links with equal nodes and type."""
        rows: list[Row] = []
        for link in links:
            metadata = self._columns.to_metadata(link.metadata, f"a link of {link.source!r}")
            ends = (to_id(link.source), to_id(link.target), to_text(link.type))
            rows.append((*ends, float(link.weight), metadata, int(link.derived)))
        if not rows:
            return
        last = self._next_key("links", len(rows))
        self._db.run_many(
            "INSERT INTO links (key, source, target, type, weight, metadata, derived) "
            "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (source, target, type) DO UPDATE SET "
            "weight = excluded.weight, metadata = excluded.metadata, derived = excluded.derived",
            [(key, *row) for key, row in enumerate(rows, last - len(rows) + 1)],
        )

    def delete(self, links: Iterable[Link]) -> None:
        """Delete links by source, target and type."""
        self._db.run_many(
            "DELETE FROM links WHERE source = ? AND target = ? AND type = ?",
            [(to_id(link.source), to_id(link.target), to_text(link.type)) for link in links],
        )

    def delete_of_nodes(self, replaced: Sequence[str], deleted: Sequence[str]) -> None:
        """Delete the derived links of replaced nodes, and the other links of deleted nodes."""
        if not self._exist():
            return
        of_replaced = [(to_id(i),) for i in replaced]
        of_deleted = [(to_id(i),) for i in deleted]
        self._db.run_many("DELETE FROM links WHERE source = ? AND derived = 1", of_replaced)
        self._db.run_many("DELETE FROM links WHERE source = ?", of_deleted)
        self._db.run_many("DELETE FROM links WHERE target = ? AND derived = 0", of_deleted)

    def derived(self, ids: Sequence[str]) -> dict[str, list[Link]]:
        """Return the derived links from nodes, including links to missing nodes."""
        links: dict[str, list[Link]] = {}
        if not ids or not self._exist():
            return links
        for batch in portions(map(to_id, ids)):
            query = (
                f"SELECT {_LINK} FROM links l WHERE l.derived = 1 "
                f"AND l.source IN ({marks(batch)}) ORDER BY l.key"
            )
            for row in self._db.rows(query, batch):
                link = self._link(row)
                links.setdefault(link.source, []).append(link)
        return links

    def of(self, ids: Sequence[str], *, incoming: bool) -> list[list[Link]]:
        """Return the links from (or to) each node whose both ends exist."""
        links: dict[str, list[Link]] = {i: [] for i in ids}
        side = "target" if incoming else "source"
        for batch in portions(map(to_id, links)):
            query = (
                f"SELECT {_LINK} FROM links l JOIN nodes s ON s.id = l.source "
                f"JOIN nodes t ON t.id = l.target WHERE l.{side} IN ({marks(batch)}) "
                "ORDER BY l.key"
            )
            for row in self._db.rows(query, batch):
                link = self._link(row)
                links[link.target if incoming else link.source].append(link)
        return [links[i] for i in ids]

    def _link(self, row: Row) -> Link:
        source, target, kind, weight, metadata, derived = row
        more = NO_METADATA if metadata is None else self._columns.from_value(metadata)
        ends = (from_id(source), from_id(target))
        return Link(*ends, from_text(kind), weight, more, bool(derived))
