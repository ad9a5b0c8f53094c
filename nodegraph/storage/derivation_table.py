"""The table of derivations: the nodes of one group from one document, with their links."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from ..derivation import Derivation, Stamp, unmoved
from ..node import ROOT, Link, Node
from .block_table import StoredBlocks
from .columns import check_numbers, from_id, marks, reading_rows, to_ids
from .database import Row, select
from .group_table import StoredGroups
from .link_table import StoredLinks
from .node_rows import NEW_NODE, NO_FIELDS, Fields, NodeRows
from .node_table import StoredNodes
from .transactions import Transactions

# SQLite looks up the documents first. With JOIN, it may read all derivations of the group.
_STORED = (
    "SELECT docs.key, docs.id, d.key, d.revision, d.fields, d.search_text, d.source, d.rule, "
    "d.metadata, d.text FROM documents docs CROSS JOIN derivations d "
    "WHERE d.document = docs.key AND d.grp = ?"
)

_INSERT_DERIVATION = (
    "INSERT INTO derivations (key, grp, document, source, rule, metadata, revision, fields, "
    f"search_text, text) VALUES ({marks(range(10))})"
)


class DerivationRow(NamedTuple):
    """A derivation in the store. The fields are in the order of ``_STORED``.

    Attributes:
        document: The key of its document.
        document_id: The id of its document, as a column.
        key: Its key.
        revision: The revision of its last change.
        document_metadata: The metadata of its document, as a column.
        document_search_text: The search text of its document, as a column.
        source: The column of ``Stamp.key``.
        rule: The column of ``Stamp.rule``.
        metadata: The column of ``Stamp.metadata``.
        text: The key of the document's text, or 0 if nodes are stored with their texts.
    """

    document: int
    document_id: bytes
    key: int
    revision: int
    document_metadata: bytes | None
    document_search_text: bytes | None
    source: bytes
    rule: bytes
    metadata: bytes
    text: int

    def check(self) -> None:
        """Check the types of the columns.

        Raises:
            ValueError: If a column has the wrong type.
        """
        check_numbers(self.document, self.key, self.revision, self.text)
        if not type(self.source) is type(self.rule) is type(self.metadata) is bytes:
            raise ValueError("a stamp must have bytes")

    @property
    def stamp(self) -> Stamp:
        """The stamp of the derivation."""
        return Stamp(from_id(self.source), from_id(self.rule), from_id(self.metadata))

    @property
    def fields(self) -> Fields:
        """The columns of the document."""
        return Fields(self.document_metadata, self.document_search_text)


class NewDerivation(NamedTuple):
    """A derivation to insert, replace or delete.

    Attributes:
        document: The key of its document.
        stored: The derivation in the store, or None if there is none.
        derivation: The new derivation. If None, the stored derivation is deleted.
        fields: The columns of the document.
        text: The key of the document's text, or 0 if nodes are stored with their texts.
    """

    document: int
    stored: DerivationRow | None
    derivation: Derivation | None = None
    fields: Fields = NO_FIELDS
    text: int = 0

    def has_span(self, node: Node) -> bool:
        """Return whether the text of a new node is stored as a span of the document."""
        return self.text > 0 and self.derivation is not None and self.derivation.has_span(node)

    @property
    def has_equal_fields(self) -> bool:
        """Whether the columns of the document are equal to those in the store."""
        return self.stored is not None and self.stored.fields == self.fields


class StoredDerivations:
    """The derivations of a store.

    Args:
        transactions: The turns and transactions of the store.
        groups: The groups of the store.
        nodes: The nodes of the store.
        blocks: The texts of documents.
        links: The links of the store.
        rows: The conversion of nodes to rows.
    """

    def __init__(
        self,
        transactions: Transactions,
        groups: StoredGroups,
        nodes: StoredNodes,
        blocks: StoredBlocks,
        links: StoredLinks,
        rows: NodeRows,
    ) -> None:
        self._transactions = transactions
        self._database = transactions.database
        self._groups = groups
        self._nodes = nodes
        self._blocks = blocks
        self._links = links
        self._rows = rows

    # Reading

    def stored(self, group: str, ids: Collection[str] | None = None) -> dict[str, DerivationRow]:
        """Return the derivations of a group by document id, in document order.

        Args:
            group: The group.
            ids: The document ids. If None, all documents are read.
        """
        if ids is not None and not ids:
            return {}
        with self._transactions:
            values = [self._groups.row(group).key]
            if ids is None:
                rows = self._database.rows(_STORED, values)
            else:
                rows = select(self._database, f"{_STORED} AND docs.id IN", to_ids(ids), values)
        stored: dict[str, DerivationRow] = {}
        with reading_rows(self._database.place):
            for columns in sorted(rows):  # the first column is the key of the document
                row = DerivationRow(*columns)
                row.check()
                stored[from_id(row.document_id)] = row
        return stored

    def nodes(self, group: str, ids: Collection[str]) -> dict[str, list[Node]]:
        """Return the nodes of a group by document id, in the order of the ids.

        Documents without a derivation are left out.
        """
        with self._transactions:
            found = self._nodes.written(group)
            unread = [i for i in ids if i not in found]
            if unread:
                stored = self.stored(group, unread)
                read = self._nodes.of_derivations([row.key for row in stored.values()])
                found = found | {i: [] for i in stored} | _by_document(read)
        return {i: found[i] for i in ids if i in found}

    def get(self, group: str, ids: Collection[str]) -> dict[str, Derivation]:
        """Return the derivations of a group from some documents, by document id."""
        with self._transactions:
            stored = self.stored(group, ids)
            nodes = self._nodes.of_derivations([row.key for row in stored.values()])
            links = self._links.derived([node.id for node in nodes])
        of_documents = _by_document(nodes)
        derivations = {}
        for i, row in stored.items():
            of_one = of_documents.get(i, [])
            derivations[i] = Derivation(row.stamp, of_one, _in_order(links, of_one))
        return derivations

    # Writing, inside a transaction

    def write(
        self, group: str, new: Mapping[str, NewDerivation], *, keep_nodes: bool = False
    ) -> None:
        """Insert, replace or delete derivations of a group, by document id.

        Args:
            group: The group.
            new: The derivations.
            keep_nodes: Whether new nodes are equal to the nodes that will be read. A build then
                need not read what it wrote.

        Raises:
            TypeError: If a node has a value that the store cannot hold.
        """
        if not new:
            return
        replaced = [change.stored.key for change in new.values() if change.stored is not None]
        old = self._nodes.of_derivations(replaced)
        old_ids = [node.id for node in old]
        self._nodes.drop(old_ids)
        links = self._links.derived(old_ids)
        of_documents = _by_document(old)
        difference = _Difference(group)
        for i, change in new.items():
            difference.add(i, change, of_documents.get(i, []), links)
        revision = self._groups.row(group).revision
        if difference:
            revision = self._groups.record(group, difference.removed, difference.count)
        self._links.delete_of(old_ids, difference.deleted)
        self._delete("nodes WHERE id = ?", to_ids(difference.removed))
        self._delete("derivations WHERE key = ?", replaced)
        self._insert(group, new, difference, revision)
        self._delete_texts(new.values())
        replaced_documents = [i for i, change in new.items() if change.stored is not None]
        self._nodes.forget_written(group, replaced_documents)
        if keep_nodes:
            nodes = {i: difference.added[i] for i in new.keys() - replaced_documents}
            self._nodes.keep_written(group, nodes)
        self._transactions.has_changed = True

    def _delete(self, rows: str, keys: Iterable[object]) -> None:
        self._database.run_many(f"DELETE FROM {rows}", [(key,) for key in keys])

    def _insert(
        self,
        group: str,
        new: Mapping[str, NewDerivation],
        difference: _Difference,
        revision: int,
    ) -> None:
        """Insert new derivations with their new nodes and their links."""
        group_key = self._groups.key(group)
        new_key = self._transactions.next_key("derivations", len(new))
        node_key = self._transactions.next_key("nodes", difference.count)
        derivations: list[Row] = []
        rows: list[Row] = []
        links: list[Link] = []
        for i, nodes in difference.added.items():
            change = new[i]
            stored = change.stored
            derivation = change.derivation
            assert derivation is not None
            key = new_key
            last = revision
            if stored is not None:
                key = stored.key
                last = revision if nodes else stored.revision
            new_key += 1
            stamp = to_ids(derivation.stamp)
            row = (key, group_key, change.document, *stamp, last, *change.fields, change.text)
            derivations.append(row)
            rows += self._rows.rows(node_key, key, revision, nodes, change.fields, change.has_span)
            node_key += len(nodes)
            links += derivation.links
        self._database.run_many(_INSERT_DERIVATION, derivations)
        self._database.run_many(NEW_NODE, rows)
        self._links.write(links)

    def _delete_texts(self, changes: Iterable[NewDerivation]) -> None:
        """Delete the former texts of documents, except those with nodes of other groups."""
        former: set[int] = set()
        documents: set[int] = set()
        for change in changes:
            if change.stored is not None and change.stored.text not in (0, change.text):
                former.add(change.stored.text)
                documents.add(change.document)
        if former:
            groups = ", ".join([str(key) for key in self._groups.all_keys()])
            query = f"SELECT text FROM derivations WHERE grp IN ({groups}) AND document IN"
            former.difference_update([text for (text,) in select(self._database, query, documents)])
            self._blocks.delete(former)


class _Difference:
    """The difference between the stored and the new nodes of a group.

    Args:
        group: The group.

    Attributes:
        removed: Ids of nodes that are deleted or changed.
        deleted: Ids of nodes that are deleted.
        added: New and changed nodes by document id.
        count: The number of these nodes.
        has_other_links: Whether links have changed.
    """

    def __init__(self, group: str) -> None:
        self._group = group
        self.removed: list[str] = []
        self.deleted: list[str] = []
        self.added: dict[str, list[Node]] = {}
        self.count = 0
        self.has_other_links = False

    def __bool__(self) -> bool:
        return bool(self.removed or self.count or self.has_other_links)

    def add(
        self,
        document_id: str,
        change: NewDerivation,
        old: list[Node],
        links: Mapping[str, list[Link]],
    ) -> None:
        """Compare the nodes of one document.

        Args:
            document_id: The id of the document.
            change: The new derivation.
            old: The stored nodes.
            links: The links of the stored nodes, by node.
        """
        nodes = {}
        if change.derivation is not None:
            nodes = {node.id: node for node in change.derivation.nodes}
        unchanged: set[str] = set()
        if self._group != ROOT and change.has_equal_fields:
            for node in old:
                new = nodes.get(node.id)
                if new is not None and unmoved(node, new) and _keeps_text(change, new):
                    unchanged.add(node.id)
        self.removed += [node.id for node in old if node.id not in unchanged]
        self.deleted += [node.id for node in old if node.id not in nodes]
        if change.derivation is not None:
            added = [node for i, node in nodes.items() if i not in unchanged]
            self.added[document_id] = added
            self.count += len(added)
            if old and _in_order(links, old) != list(change.derivation.links):
                self.has_other_links = True


def _keeps_text(change: NewDerivation, node: Node) -> bool:
    """Return whether the row of an unmoved node gives its text even after the change.

    A row without a span contains the text. A row with a span is part of the new document.
    """
    return node.start is None or change.has_span(node)


def _by_document(nodes: Iterable[Node]) -> dict[str, list[Node]]:
    of_documents: dict[str, list[Node]] = {}
    for node in nodes:
        of_documents.setdefault(node.document_id, []).append(node)
    return of_documents


def _in_order(links: Mapping[str, list[Link]], nodes: Iterable[Node]) -> list[Link]:
    """Return the links of nodes in the order of the nodes."""
    found: list[Link] = []
    for node in nodes:
        found += links.get(node.id, [])
    return found
