"""The database table of links between nodes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from ..node import ROOT, Link
from .columns import ValueColumns, from_id, from_text, reading_rows, to_id, to_ids, to_text
from .database import Row, select
from .group_table import StoredGroups
from .node_table import StoredNodes
from .transactions import Transactions


class LinkRow(NamedTuple):
    """A row of the links table. The fields are in the order of the query ``_LINKS``."""

    source: bytes
    target: bytes
    type: bytes
    weight: float
    metadata: bytes | None
    derived: int

    def link(self, values: ValueColumns) -> Link:
        """Convert the row to a link.

        Raises:
            TypeError: If a column has the wrong type.
        """
        return Link(
            source=from_id(self.source),
            target=from_id(self.target),
            type=from_text(self.type),
            weight=float(self.weight),
            metadata={} if self.metadata is None else values.read_metadata(self.metadata),
            derived=bool(self.derived),
        )


_LINKS = "SELECT l.source, l.target, l.type, l.weight, l.metadata, l.derived FROM links l"


class StoredLinks:
    """Reads and writes the links in a store.

    A link that was created by a transform is kept while its target node is missing. All other links
    are deleted together with either of their nodes.

    Args:
        transactions: The manager of transactions.
        groups: The table of groups.
        nodes: The table of nodes.
        values: The converter for metadata.
    """

    def __init__(
        self,
        transactions: Transactions,
        groups: StoredGroups,
        nodes: StoredNodes,
        values: ValueColumns,
    ) -> None:
        self._transactions = transactions
        self._database = transactions.database
        self._groups = groups
        self._nodes = nodes
        self._values = values

    # Reading

    def of(self, ids: Sequence[str], *, incoming: bool = False) -> list[list[Link]]:
        """Return the links of each node in the order in which they were added.

        Links whose other node is missing are left out.

        Args:
            ids: The ids of the nodes.
            incoming: Whether to return links to the nodes instead of links from the nodes.
        """
        side = "target" if incoming else "source"
        query = (
            f"{_LINKS} JOIN nodes s ON s.id = l.source JOIN nodes t ON t.id = l.target "
            f"WHERE l.{side} IN"
        )
        links: dict[str, list[Link]] = {i: [] for i in ids}
        with self._transactions:
            for link in self._read(query, links):
                end = link.target if incoming else link.source
                links[end].append(link)
        return [links[i] for i in ids]

    def derived(self, ids: Collection[str]) -> dict[str, list[Link]]:
        """Return the links that were created by transforms, keyed by the id of their source node.

        Links to missing nodes are included.
        """
        links: dict[str, list[Link]] = {}
        for link in self._read(f"{_LINKS} WHERE l.derived = 1 AND l.source IN", ids):
            links.setdefault(link.source, []).append(link)
        return links

    def _read(self, query: str, ids: Collection[str]) -> list[Link]:
        rows = select(self._database, query, to_ids(ids), order="ORDER BY l.key")
        with reading_rows(self._database.place):
            return [LinkRow(*row).link(self._values) for row in rows]

    # Writing

    def put(self, links: Sequence[Link]) -> None:
        """Insert links. Existing links with the same nodes and type are replaced.

        Raises:
            LookupError: If a node does not exist.
        """
        with self._transactions.transaction():
            ends = [link.source for link in links]
            ends += [link.target for link in links]
            for i, node in zip(ends, self._nodes.get(ends), strict=True):
                if node is None:
                    raise LookupError(f"no node {i!r} to link; it may have been removed or changed")
            self.write(links)
            self._record(links)

    def remove(self, links: Sequence[Link]) -> None:
        """Remove links. Links that do not exist are ignored."""
        with self._transactions.transaction():
            self._database.run_many(
                "DELETE FROM links WHERE source = ? AND target = ? AND type = ?",
                [_key(link) for link in links],
            )
            self._record(links)

    def _record(self, links: Iterable[Link]) -> None:
        """Record the change of links as a change of the groups that contain their source nodes."""
        self._transactions.has_changed = True
        nodes = self._nodes.get([link.source for link in links])
        # No nodes are derived from the links of documents.
        groups = {node.group: None for node in nodes if node and node.group != ROOT}
        for group in groups:
            self._groups.record(group)

    # Writing (inside a transaction)

    def write(self, links: Iterable[Link]) -> None:
        """Insert links. Existing links with the same nodes and type are replaced."""
        rows: list[Row] = []
        for link in links:
            metadata = self._values.write_metadata(link.metadata, f"a link of {link.source!r}")
            rows.append((*_key(link), float(link.weight), metadata, int(link.derived)))
        if rows:
            first = self._transactions.next_key("links", len(rows))
            self._database.run_many(
                "INSERT INTO links (key, source, target, type, weight, metadata, derived) "
                "VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (source, target, type) DO UPDATE SET "
                "weight = excluded.weight, metadata = excluded.metadata, "
                "derived = excluded.derived",
                [(key, *row) for key, row in enumerate(rows, first)],
            )

    def delete_of(self, replaced: Sequence[str], deleted: Sequence[str]) -> None:
        """Delete links of nodes that were replaced or deleted.

        Args:
            replaced: The ids of nodes whose derived links are deleted.
            deleted: The ids of nodes whose remaining links are deleted. Links that a transform
                created to these nodes are kept.
        """
        of_replaced = [(i,) for i in to_ids(replaced)]
        of_deleted = [(i,) for i in to_ids(deleted)]
        delete = "DELETE FROM links WHERE"
        self._database.run_many(f"{delete} source = ? AND derived = 1", of_replaced)
        self._database.run_many(f"{delete} source = ?", of_deleted)
        self._database.run_many(f"{delete} target = ? AND derived = 0", of_deleted)


def _key(link: Link) -> tuple[bytes, bytes, bytes]:
    return to_id(link.source), to_id(link.target), to_text(link.type)
