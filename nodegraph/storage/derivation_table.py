"""The database table that records which nodes of a group were derived from which document."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from ..derivation import Derivation, Stamp, unmoved
from ..hashing import full_digest
from ..node import ROOT, Link, Node
from .block_table import StoredBlocks
from .columns import check_numbers, from_id, marks, reading_rows, to_id, to_ids
from .database import Row, select
from .group_table import StoredGroups
from .link_table import StoredLinks
from .node_rows import FIELDS, NEW_NODE, NO_FIELD, NO_FIELDS, Fields, NodeRows
from .node_table import StoredNodes
from .transactions import Transactions

# SQLite looks up the documents first. With a plain JOIN, it may read all derivations of the group.
_STORED = (
    f"SELECT docs.key, docs.id, d.key, d.revision, {FIELDS}, d.source, d.rule, "
    "d.metadata, d.text FROM documents docs CROSS JOIN derivations d "
    "WHERE d.document = docs.key AND d.grp = ?"
)

# The hashes of a derivation, without the columns that only changes need.
_STAMPS = (
    "SELECT docs.key, docs.id, d.source, d.rule, d.metadata FROM documents docs "
    "CROSS JOIN derivations d WHERE d.document = docs.key AND d.grp = ?"
)

_INSERT_DERIVATION = (
    "INSERT INTO derivations (key, grp, document, source, rule, metadata, revision, text) "
    f"VALUES ({marks(range(8))})"
)

_CACHED = 256  # number of hashes of rules and metadata whose conversion is cached

_NO_METADATA = full_digest({})


class DerivationRow(NamedTuple):
    """A row of the derivations table. The fields are in the order of the query ``_STORED``.

    Attributes:
        document: The database key of the document.
        document_id: The encoded id of the document.
        key: The database key of the derivation.
        revision: The revision of the group in which the derivation was last changed.
        document_metadata: The encoded metadata of the document.
        document_search_text: The encoded search text of the document.
        source: The encoded value of ``Stamp.key``.
        rule: The encoded value of ``Stamp.rule``. The hash of no metadata is stored as no bytes.
        metadata: The encoded value of ``Stamp.metadata``, in the same form.
        text: The database key of the document's text, or 0 if the nodes are stored with their
            texts.
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
        """Check the types of all columns.

        Raises:
            ValueError: If a column has the wrong type.
        """
        check_numbers(self.document, self.key, self.revision, self.text)
        if not type(self.source) is type(self.rule) is type(self.metadata) is bytes:
            raise ValueError("a stamp must have bytes")

    @property
    def stamp(self) -> Stamp:
        """The hashes that determine whether the derivation is up to date."""
        return Stamp(from_id(self.source), _from_hash(self.rule), _from_hash(self.metadata))

    @property
    def fields(self) -> Fields:
        """The encoded metadata and search text of the document."""
        return Fields(self.document_metadata or None, self.document_search_text)


class _WrittenDocument(NamedTuple):
    """The row of a document that was written during the current build or before it.

    Attributes:
        row: The row, as it would be read from the store.
        stamp: The stamp of the row.
    """

    row: DerivationRow
    stamp: Stamp


class NewDerivation(NamedTuple):
    """A derivation that is to be inserted, replaced or deleted.

    Attributes:
        document: The database key of the document.
        stored: The existing row in the store, or None if the derivation is new.
        derivation: The new derivation. If None, the stored derivation is deleted.
        fields: The encoded metadata and search text of the document.
        text: The database key of the document's text, or 0 if nodes are stored with their texts.
    """

    document: int
    stored: DerivationRow | None
    derivation: Derivation | None = None
    fields: Fields = NO_FIELDS
    text: int = 0

    def has_span(self, node: Node) -> bool:
        """Return whether the text of a new node is stored as a reference to the document's text."""
        return self.text > 0 and self.derivation is not None and self.derivation.has_span(node)

    @property
    def has_equal_fields(self) -> bool:
        """True if the metadata and search text of the document equal the stored values."""
        return self.stored is not None and self.stored.fields == self.fields


class StoredDerivations:
    """Reads and writes the derivations in a store.

    Args:
        transactions: The manager of transactions.
        groups: The table of groups.
        nodes: The table of nodes.
        blocks: The table of the documents' texts.
        links: The table of links.
        rows: The converter between nodes and rows.
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
        # New documents, which the next build needs, keyed by document id.
        self._written: dict[str, _WrittenDocument] = {}
        transactions.on_forget.append(self.forget_written)

    def forget_written(self) -> None:
        """Discard the rows of new documents that were kept in memory."""
        self._written = {}

    def _written_documents(
        self, group: str, ids: Collection[str] | None
    ) -> dict[str, _WrittenDocument] | None:
        """Return the rows of documents in document order, or None if some are not in memory."""
        written = self._written
        if group != ROOT or not written:
            return None
        if ids is None:
            if len(written) != self._groups.row(ROOT).size:
                return None
            found = list(written.items())
        else:
            if not all([i in written for i in ids]):
                return None
            found = [(i, written[i]) for i in ids]
        found.sort(key=lambda item: item[1].row.document)
        return dict(found)

    # Reading

    def stored(self, group: str, ids: Collection[str] | None = None) -> dict[str, DerivationRow]:
        """Return the rows of a group's derivations in document order, keyed by document id.

        Args:
            group: The name of the group.
            ids: The document ids. If None, the derivations of all documents are returned.
        """
        with self._transactions:
            written = self._written_documents(group, ids)
            if written is not None:
                return {i: document.row for i, document in written.items()}
            return self._by_document_id(self._rows_of(_STORED, group, ids))

    def of_documents(self, group: str, keys: Iterable[int]) -> dict[str, DerivationRow]:
        """Return the rows of a group's derivations from documents with the given database keys.

        They are in document order, and keyed by document id.
        """
        with self._transactions:
            values = [self._groups.row(group).key]
            rows = select(self._database, f"{_STORED} AND d.document IN", keys, values)
        return self._by_document_id(rows)

    def stamps(self, group: str, ids: Collection[str] | None = None) -> dict[str, Stamp]:
        """Return the hashes of a group's derivations in document order, keyed by document id.

        Args:
            group: The name of the group.
            ids: The document ids. If None, the hashes for all documents are returned.
        """
        with self._transactions:
            written = self._written_documents(group, ids)
            if written is not None:
                return {i: document.stamp for i, document in written.items()}
            rows = self._rows_of(_STAMPS, group, ids)
        name_of = lru_cache(_CACHED)(_from_hash)  # Most documents have the same rule and metadata.
        stamps: dict[str, Stamp] = {}
        with reading_rows(self._database.place):
            for _, document_id, source, rule, metadata in sorted(rows):
                stamp = Stamp(from_id(source), name_of(rule), name_of(metadata))
                stamps[from_id(document_id)] = stamp
        return stamps

    def _rows_of(self, query: str, group: str, ids: Collection[str] | None) -> list[Row]:
        """Return the rows of a query for all derivations of a group, or for some documents."""
        if ids is not None and not ids:
            return []
        with self._transactions:
            row = self._groups.row(group)
            values = [row.key]
            is_empty = group == ROOT and not row.size
            # A size that is wrong in a damaged file must not hide documents.
            if is_empty and not self._database.rows(f"{query} LIMIT 1", values):
                return []
            if ids is None:
                return self._database.rows(query, values)
            return select(self._database, f"{query} AND docs.id IN", to_ids(ids), values)

    def _by_document_id(self, rows: Iterable[Row]) -> dict[str, DerivationRow]:
        stored: dict[str, DerivationRow] = {}
        with reading_rows(self._database.place):
            for columns in sorted(rows):  # The first column is the key of the document.
                row = DerivationRow(*columns)
                row.check()
                stored[from_id(row.document_id)] = row
        return stored

    def nodes(self, group: str, ids: Collection[str]) -> dict[str, list[Node]]:
        """Return the nodes of a group, keyed by document id, in the order of the given ids.

        Documents from which the group has not been derived are left out.
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
        """Return the derivations of a group from the given documents, keyed by document id."""
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

    # Writing (inside a transaction)

    def write(
        self, group: str, new: Mapping[str, NewDerivation], *, keep_nodes: bool = False
    ) -> None:
        """Insert, replace or delete derivations of a group.

        Args:
            group: The name of the group.
            new: The derivations to write, keyed by document id.
            keep_nodes: Whether the new nodes equal the nodes that will be read from the store. If
                True, they are kept in memory, so that a build does not have to read them again.

        Raises:
            TypeError: If a node contains a value that cannot be stored.
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
        rows = self._insert(group, new, difference, revision)
        self._delete_texts(new.values())
        replaced_documents = [i for i, change in new.items() if change.stored is not None]
        self._nodes.forget_written(group, replaced_documents)
        if group == ROOT:
            for i in replaced_documents:
                self._written.pop(i, None)
        if keep_nodes:
            nodes = {i: difference.added[i] for i in new.keys() - replaced_documents}
            self._nodes.keep_written(group, nodes)
            if group == ROOT:
                self._keep_rows(rows, new)
        self._transactions.has_changed = True

    def _keep_rows(self, rows: Mapping[str, Row], new: Mapping[str, NewDerivation]) -> None:
        """Keep the rows of new documents whose nodes are also kept in memory.

        Args:
            rows: The inserted rows, keyed by document id.
            new: The documents that were written, keyed by document id.
        """
        kept = self._nodes.written(ROOT)
        for i, row in rows.items():
            change = new[i]
            if i not in kept or change.stored is not None or change.derivation is None:
                continue
            key, _, document, source, rule, metadata, revision, text = row
            stored = DerivationRow(
                document, to_id(i), key, revision, *change.fields, source, rule, metadata, text
            )
            self._written[i] = _WrittenDocument(stored, change.derivation.stamp)

    def _delete(self, rows: str, keys: Iterable[object]) -> None:
        self._database.run_many(f"DELETE FROM {rows}", [(key,) for key in keys])

    def _insert(
        self,
        group: str,
        new: Mapping[str, NewDerivation],
        difference: _Difference,
        revision: int,
    ) -> dict[str, Row]:
        """Insert new derivations together with their new nodes and links.

        Returns:
            The inserted rows of derivations, keyed by document id.
        """
        group_key = self._groups.key(group)
        new_key = self._transactions.next_key("derivations", len(new))
        node_key = self._transactions.next_key("nodes", difference.count)
        new_rows = self._rows.new_rows()
        to_stamp = lru_cache(_CACHED)(_to_hash)
        derivations: dict[str, Row] = {}
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
            source, rule, metadata = derivation.stamp
            hashes = (to_id(source), to_stamp(rule), to_stamp(metadata))
            derivations[i] = (key, group_key, change.document, *hashes, last, change.text)
            has_span = derivation.has_span if change.text else _has_no_span
            rows += new_rows.of(node_key, key, revision, nodes, change.fields, has_span)
            node_key += len(nodes)
            links += derivation.links
        self._database.run_many(_INSERT_DERIVATION, [*derivations.values()])
        self._database.run_many(NEW_NODE, rows)
        self._links.write(links)
        return derivations

    def change_fields(self, changes: Iterable[NewDerivation]) -> None:
        """Change the fields of documents. Outdated derivations keep the former fields."""
        former: list[Row] = []
        new: list[Row] = []
        groups = [key for key in self._groups.all_keys() if key]
        for change in changes:
            if change.stored is not None and not change.has_equal_fields:
                metadata, search_text = change.stored.fields
                kept = (NO_FIELD if metadata is None else metadata, search_text)
                former += [(*kept, change.document, group) for group in groups]
                new.append((*change.fields, change.document))
        self._database.run_many(
            "UPDATE derivations SET fields = ?, search_text = ? "
            "WHERE document = ? AND grp = ? AND fields IS NULL",
            former,
        )
        self._database.run_many(
            "UPDATE documents SET fields = ?, search_text = ? WHERE key = ?", new
        )

    def _delete_texts(self, changes: Iterable[NewDerivation]) -> None:
        """Delete the previous texts of documents, unless other groups still refer to them."""
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
    """The differences between the stored nodes and the new nodes of a group.

    Args:
        group: The name of the group.

    Attributes:
        removed: The ids of nodes that are deleted or changed.
        deleted: The ids of nodes that are deleted.
        added: The new and changed nodes, keyed by document id.
        count: The number of new and changed nodes.
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
        """Compare the stored and the new nodes of one document, and record the differences.

        Args:
            document_id: The id of the document.
            change: The new derivation.
            old: The stored nodes of the document.
            links: The links of the stored nodes, keyed by node id.
        """
        nodes: dict[str, Node] = {}
        if change.derivation is not None:
            nodes = {node.id: node for node in change.derivation.nodes}
            if not old:
                self.added[document_id] = [*nodes.values()]
                self.count += len(nodes)
                return
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


def _has_no_span(node: Node) -> bool:
    """Return False, since all nodes of a document are stored with their texts."""
    return False


def _to_hash(name: str) -> bytes:
    """Encode the hash of a rule or of metadata. See ``DerivationRow``."""
    return b"" if name == _NO_METADATA else to_id(name)


def _from_hash(value: bytes) -> str:
    """Decode a hash that was encoded with ``_to_hash``."""
    return from_id(value) if value else _NO_METADATA


def _keeps_text(change: NewDerivation, node: Node) -> bool:
    """Return whether the stored row of a node still yields the right text after a change.

    A row either contains the text itself, or refers to a part of the new document.
    """
    if change.stored is not None and change.stored.text == 0:
        return True  # All rows of this derivation contain their texts.
    return node.start is None or change.has_span(node)


def _by_document(nodes: Iterable[Node]) -> dict[str, list[Node]]:
    of_documents: dict[str, list[Node]] = {}
    for node in nodes:
        of_documents.setdefault(node.document_id, []).append(node)
    return of_documents


def _in_order(links: Mapping[str, list[Link]], nodes: Iterable[Node]) -> list[Link]:
    """Return all links of the given nodes, in the order of the nodes."""
    found: list[Link] = []
    for node in nodes:
        found += links.get(node.id, [])
    return found
