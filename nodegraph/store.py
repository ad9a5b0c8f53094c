"""The base class of what stores a graph: documents, nodes, links, and values by kind and key.

A store implements twelve methods that read and write. What is common to all stores is here:
what a write changes, the revisions of groups, which links are deleted together with nodes.

The graph sees to it that one thread of a process writes while none reads. Where several processes
share a store, ``writing`` keeps the others from writing and ``snapshot`` gives a reader one state.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, overload
from weakref import WeakKeyDictionary

from .derivation import (
    CORPUS,
    DOCUMENT_STRIDE,
    Amendment,
    Derivation,
    Stamp,
    derive_root,
    unmoved,
)
from .document import Document
from .journal import Journal
from .locations import LAYOUTS
from .locking import Lock
from .node import ROOT, Link, Node

if TYPE_CHECKING:
    from .vector_table import VectorTable


_locks: WeakKeyDictionary[NodeStore, dict[str, Lock]] = WeakKeyDictionary()

_STATE = "state"  # the kind and key of the value that counts all writes


@dataclass(frozen=True, slots=True)
class Changes:
    """What happened to a group between two revisions.

    Attributes:
        revision: The revision these changes lead to.
        removed: Ids of the nodes that were removed.
        added: New nodes, and nodes whose place or metadata changed (their id is in ``removed``
            too). Apply the removals first.
        complete: True when ``added`` is the whole group, and what an index had is to be dropped.
    """

    revision: int
    removed: Sequence[str]
    added: Sequence[Node]
    complete: bool = False


class NodeStore(ABC):
    """Store documents, nodes, links and values; every write happens completely or not at all.

    To write a store, implement the abstract methods, which do no more than they say; whatever a
    write means for revisions and links is worked out before they are called. A subclass may
    replace the other methods by faster ones, and where it is shared by processes ``snapshot``,
    ``writing`` and ``touch``.
    """

    def in_transaction(self) -> bool:
        """Return whether this thread has a transaction open, where the store knows."""
        return False

    def made_again(self) -> AbstractContextManager[None]:
        """Let a power cut undo what this thread writes in the block.

        For what is made again at once. What is written later is not there without it.
        """
        return nullcontext()

    # What a store has to implement

    @abstractmethod
    def transaction(self) -> AbstractContextManager[object]:
        """Take all writes of this thread in the block as one; undo them if it raises.

        A transaction within another one is part of it. A store that can fail to write raises
        ``StoreError``, and nothing has changed then.
        """

    @abstractmethod
    def stamps(self, group: str, ids: Collection[str] | None = None) -> dict[str, Stamp]:
        """Return the stamps of a group's derivations by document id, of some documents or of all.

        In document order: ``CORPUS`` first, then as the documents were added to ``ROOT``, where
        each document is a derivation, too.
        """

    @abstractmethod
    def derivation(self, group: str, document_id: str) -> Derivation | None:
        """Return what was derived in a group from one document; None if nothing was."""

    @abstractmethod
    def write_derivations(
        self, group: str, derivations: Mapping[str, Derivation | None], changed: Collection[str]
    ) -> None:
        """Insert or replace derivations by document id; delete those that are None.

        Args:
            group: The group; in ``ROOT`` the documents themselves. One that is replaced stays
                where it is in document order.
            derivations: What is to be stored.
            changed: Ids of those nodes that are new or different from what is stored.
        """

    @abstractmethod
    def get(self, ids: Iterable[str]) -> list[Node | None]:
        """Return nodes by id, None where there is none."""

    def parent_ids(self, ids: Iterable[str]) -> dict[str, str | None]:
        """Return the id of the parent of each of those nodes that exist, None where it has none."""
        return {node.id: node.parent_id for node in self.get(ids) if node is not None}

    @abstractmethod
    def read_links(self, ids: Sequence[str], *, incoming: bool = False) -> list[list[Link]]:
        """Return the links from (or to) each id, in the order they were put.

        Also links to nodes that don't exist.
        """

    @abstractmethod
    def put_links(self, links: Sequence[Link]) -> None:
        """Store links, over those between the same nodes of the same type."""

    @abstractmethod
    def delete_links(self, links: Sequence[Link]) -> None:
        """Delete links by source, target and type; those that don't exist are skipped."""

    @abstractmethod
    def get_values(self, kind: str, keys: Collection[str] | None = None) -> dict[str, bytes]:
        """Return those of the values that exist, or all of a kind, by key."""

    @abstractmethod
    def put_values(self, kind: str, values: Mapping[str, bytes]) -> None:
        """Store values by kind and key, over existing ones. Any thread may do so at any time."""

    @abstractmethod
    def delete_values(self, kind: str, keys: Collection[str] | None = None) -> None:
        """Delete values, or all of a kind; those that don't exist are skipped."""

    @abstractmethod
    def kinds(self) -> Iterable[str]:
        """Return the kinds of the values."""

    # What a store may replace

    @property
    def index_folder(self) -> Path | None:
        """Where indexes may be stored that can be built again; None for a store in memory."""
        return None

    @property
    def journal(self) -> Journal:
        """The revisions of the groups."""
        return Journal(self)

    def snapshot(self) -> AbstractContextManager[int]:
        """Let this thread read one state until the block ends; the block gets its number.

        The number changes with every write, by whichever process.
        """
        return nullcontext(int(self.get_values(_STATE, [_STATE]).get(_STATE, b"0")))

    def touch(self) -> None:
        """Change the number that ``snapshot`` returns, in a transaction."""
        with self.snapshot() as number:
            self.put_values(_STATE, {_STATE: str(number + 1).encode()})

    def writing(self) -> AbstractContextManager[object]:
        """Keep other processes from writing until the block ends; wait while one of them does.

        Raises:
            StoreError: If the wait has become too long, or the store can't be written to.
        """
        return nullcontext()

    @property
    def place(self) -> str:
        """Where the store is, by which a copy elsewhere is told from it; empty if it won't last."""
        return ""

    def exclusive(self, purpose: str, *, wait: bool) -> AbstractContextManager[bool]:
        """Keep threads and processes from what is made of the graph elsewhere, by one at a time.

        A store that several processes share replaces it by a lock that ends with its process.

        Args:
            purpose: What they are kept from.
            wait: Whether to wait until the lock is free; else the block gets False.
        """
        lock = Lock(f"another thread that works on {purpose}")
        return _locks.setdefault(self, {}).setdefault(purpose, lock).held(wait=wait)

    def vector_table(self, group: str, *names: str) -> VectorTable | None:
        """Return a table of vectors that the store searches; None if it can't.

        Args:
            group: The group whose nodes have the vectors.
            names: Distinguish the tables of a group: the model, the search text.
        """
        return None

    def close(self) -> None:
        """Close files and connections; the next use opens them again."""
        return

    def compact(self) -> None:
        """Free the space of what was removed."""
        return

    def check(self, nodes: Sequence[Node]) -> None:
        """Check nodes before they are written.

        Raises:
            TypeError: If one has a value that the store can't hold.
        """
        return

    def nodes(self, group: str) -> Iterator[Node]:
        """Yield the nodes of a group (also ``ROOT``), in document order."""
        for document_id in self.stamps(group):
            if (derivation := self.derivation(group, document_id)) is not None:
                yield from derivation.nodes

    def ids(self, group: str) -> list[str]:
        """Return the ids of the nodes of a group (also ``ROOT``), in document order."""
        return [node.id for node in self.nodes(group)]

    def node_ids(self, group: str, document_id: str) -> list[str]:
        """Return the ids of the nodes of a derivation."""
        derivation = self.derivation(group, document_id)
        return [] if derivation is None else [node.id for node in derivation.nodes]

    def children(self, group: str, parent: Node) -> Sequence[Node]:
        """Return the nodes of a group made from one parent, in document order."""
        derivation = self.derivation(group, parent.document_id)
        nodes = () if derivation is None else derivation.nodes
        return [node for node in nodes if node.parent_id == parent.id]

    def neighbours(self, node: Node) -> tuple[Node | None, Node | None]:
        """Return the nodes before and after a node in its group and document, across parents."""
        derivation = self.derivation(node.group, node.document_id)
        return nodes_beside(node, () if derivation is None else derivation.nodes)

    def links(self, ids: Sequence[str], *, incoming: bool = False) -> list[list[Link]]:
        """Return the links from (or to) each node, in the order they were put.

        Only those of which both nodes exist.
        """
        rows = self.read_links(ids, incoming=incoming)
        ends = {
            node_id for links in rows for link in links for node_id in (link.source, link.target)
        }
        existing = {node.id for node in self.get(ends) if node is not None}
        return [
            [link for link in links if link.source in existing and link.target in existing]
            for links in rows
        ]

    # Documents and nodes

    def document_ids(self) -> list[str]:
        """Return the ids of all documents, in the order they were first added."""
        return list(self.stamps(ROOT))

    def groups(self) -> list[str]:
        """Return the names of the groups that have been built."""
        return [group for group in self.journal.groups() if group != ROOT]

    def count(self, group: str) -> int:
        """Return how many nodes a group has; 0 for a group that was never built."""
        return self.journal.state(group).size

    def change_documents(self, put: Sequence[Document], remove: Sequence[str] = ()) -> None:
        """Remove documents with everything made from them, then put others.

        Unknown ids are not removed. A document whose id exists is replaced and keeps its place in
        order; what was derived from it stays until it is derived again. One that is the same as
        the stored one changes nothing.

        Raises:
            TypeError: If metadata has a value that the store can't hold; nothing has changed then.
        """
        with self.transaction():
            removed = self.stamps(ROOT, remove) if remove else {}
            if removed:
                for group in self.groups():
                    self._write(group, dict.fromkeys(self.stamps(group, removed)))
                self._write(ROOT, dict.fromkeys(removed))
                self.delete_values(LAYOUTS, removed)
            self._write(ROOT, self._roots(put))

    def _roots(self, documents: Sequence[Document]) -> dict[str, Derivation | None]:
        """Return the derivations in ``ROOT`` of those documents that are new or different."""
        unique = {document.id: document for document in documents}
        stamps = self.stamps(ROOT, unique) if unique else {}
        state = self.journal.state(ROOT)
        positions = state.places
        roots: dict[str, Derivation | None] = {}
        for document_id, document in unique.items():
            if document_id not in stamps:
                positions += 1
                roots[document_id] = derive_root(document, positions)
                continue
            root = derive_root(document, 0)
            if root.stamp != stamps[document_id]:
                roots[document_id] = derive_root(document, self._place(document_id))
        if positions > state.places:
            self.journal.put_state(ROOT, state._replace(places=positions))
        return roots

    def _place(self, document_id: str) -> int:
        """Return the number of a document that exists, in document order."""
        (document,) = self.get([document_id])
        return 0 if document is None else document.order // DOCUMENT_STRIDE

    def put_derivations(self, group: str, derivations: Mapping[str, Derivation]) -> None:
        """Insert or replace what was derived in one group, by document id.

        The links belong to the derivation, and are returned while their target exists.

        Raises:
            LookupError: If there is no such document.
        """
        with self.transaction():
            documents = self.stamps(ROOT, derivations.keys())
            for document_id in derivations:
                if document_id != CORPUS and document_id not in documents:
                    raise LookupError(f"no document {document_id!r} to derive nodes from")
            self._write(group, derivations)

    def _write(self, group: str, derivations: Mapping[str, Derivation | None]) -> None:
        """Write derivations, and what follows from it for the journal and for links."""
        if not derivations:
            return
        existing = self.stamps(group, derivations.keys())
        removed: list[str] = []  # ids of nodes that are deleted or changed
        changed: list[str] = []  # ids of nodes that are new or changed
        deleted: list[str] = []
        replaced: list[str] = []
        links_changed = False  # whether links of nodes that stay are others
        for document_id, new in derivations.items():
            nodes = {} if new is None else dict.fromkeys(node.id for node in new.nodes)
            ids, unchanged = list[str](), set[str]()
            if document_id in existing and (new is None or group == ROOT):
                ids = self.node_ids(group, document_id)
            elif document_id in existing and new is not None:
                old = self.derivation(group, document_id) or new
                ids = [node.id for node in old.nodes]
                unchanged = _unchanged(old.nodes, new.nodes)
                links_changed = links_changed or [*old.links] != _as_derived(new.links)
            removed += [i for i in ids if i not in unchanged]
            changed += [i for i in nodes if i not in unchanged]
            deleted += [i for i in ids if i not in nodes]
            replaced += ids
        self._record(group, removed, changed, links_changed)
        stale = self._stale_links(replaced, deleted)
        self.write_derivations(group, derivations, changed)
        if stale:
            self.delete_links(stale)
        links = [link for new in derivations.values() if new is not None for link in new.links]
        if links:
            self.put_links(_as_derived(links))
        self.touch()

    def _record(
        self, group: str, removed: Sequence[str], changed: Sequence[str], links_changed: bool
    ) -> None:
        """Count a change of nodes, or of links alone; a new group gets a state in any case."""
        journal = self.journal
        if removed or changed or links_changed:
            journal.record(group, removed, changed)
        elif group not in journal.groups():
            journal.put_state(group, journal.state(group))

    def amend(self, group: str, document_id: str, amendment: Amendment) -> None:
        """Change a derivation where it is different, or make it; see ``put_derivations``."""
        with self.transaction():
            removed = [*amendment.removed]
            nodes = [node.id for node in amendment.nodes]
            existing = [node.id for node in self.get(nodes) if node is not None]
            links_changed = bool(amendment.unlinked or amendment.links)
            self._record(group, [*removed, *existing], nodes, links_changed)
            stale = [*amendment.unlinked, *self._stale_links(removed, removed)]
            self.write_amendment(group, document_id, amendment)
            if stale:
                self.delete_links(stale)
            if amendment.links:
                self.put_links(_as_derived(amendment.links))
            self.touch()

    def write_amendment(self, group: str, document_id: str, amendment: Amendment) -> None:
        """Write the nodes and the stamp of an amendment; a store may do so without the others."""
        new = amendment.of(self.derivation(group, document_id))
        self.write_derivations(group, {document_id: new}, [node.id for node in amendment.nodes])

    def _stale_links(self, replaced: Sequence[str], deleted: Sequence[str]) -> list[Link]:
        """Return the links that are deleted when nodes are replaced, of which some are deleted.

        Those that transforms derived from the nodes are put again; those to deleted nodes stay.
        """
        if not replaced:
            return []
        deleted_ids = set(deleted)
        outgoing = (link for links in self.read_links(replaced) for link in links)
        incoming = (link for links in self.read_links(deleted, incoming=True) for link in links)
        return [
            *(link for link in outgoing if link.derived or link.source in deleted_ids),
            *(link for link in incoming if not link.derived),
        ]

    # Revisions

    def revision(self, group: str) -> int:
        """Return the group's counter, which grows with every change of its nodes and their links.

        Links from documents don't count: nothing is derived from them.
        """
        return self.journal.state(group).revision

    def changes(self, group: str, since: int, *, stream: bool = False) -> Changes:
        """Return what happened to the group after a revision; 0 for everything.

        After a revision that the group never had, or had too long ago, everything as well.

        Args:
            group: The group.
            since: The revision.
            stream: Whether everything is read as it is iterated, while the graph is held.
        """
        with self.snapshot():
            revision = self.revision(group)
            if since and since == revision:
                return Changes(revision, [], [])
            changes = self.journal.changes(group, since)
            if changes is None:
                everything = StreamedNodes(lambda: self.nodes(group), self.count(group))
                nodes: Sequence[Node] = everything if stream else list(everything)
                return Changes(revision, [], nodes, complete=True)
            removed, added = changes
            existing = [n for n in self.get(added) if n is not None and n.group == group]
            return Changes(revision, removed, sorted(existing, key=lambda node: node.order))

    def built(self, group: str) -> tuple[str, int] | None:
        """Return by which rules a group is built, and up to which ``ROOT`` revision.

        What has not changed since that revision has its nodes, by these rules.
        """
        state = self.journal.state(group)
        return None if state.rules is None else (state.rules, state.built_for)

    def mark_built(self, group: str, rules: str, revision: int) -> None:
        """Note by which rules a group is built, and up to which revision."""
        with self.transaction():
            state = self.journal.state(group)._replace(rules=rules, built_for=revision)
            self.journal.put_state(group, state)
            self.touch()

    # Links

    def link(self, links: Sequence[Link]) -> None:
        """Put links, over those between the same nodes of the same type.

        They are deleted with either of their nodes, except for derived ones, which remain for a
        target that is added again.

        Raises:
            LookupError: If a node doesn't exist.
        """
        with self.transaction():
            ends = [i for link in links for i in (link.source, link.target)]
            nodes = self.get(ends)
            for i, node in zip(ends, nodes, strict=True):
                if node is None:
                    raise LookupError(f"no node {i!r} to link; it may have been removed or changed")
            self.put_links(links)
            self._record_links(nodes[::2])

    def unlink(self, links: Sequence[Link]) -> None:
        """Remove links; those that don't exist are skipped."""
        with self.transaction():
            self.delete_links(links)
            self._record_links(self.get([link.source for link in links]))

    def _record_links(self, sources: Sequence[Node | None]) -> None:
        """Count a change of the links from nodes as a change of their groups."""
        groups = dict.fromkeys(node.group for node in sources if node is not None)
        groups.pop(ROOT, None)
        for group in groups:
            self.journal.record(group, [], [])
        self.touch()


def nodes_beside(node: Node, nodes: Sequence[Node]) -> tuple[Node | None, Node | None]:
    """Return those of some nodes, which are in their order, that are before and after a node."""
    position = bisect_left(nodes, node.order, key=lambda other: other.order)
    after = position + (position < len(nodes) and nodes[position].order == node.order)
    before = nodes[position - 1] if position else None
    return before, nodes[after] if after < len(nodes) else None


def _unchanged(old: Iterable[Node], new: Iterable[Node]) -> set[str]:
    """Return the ids of the nodes that are the same, at the same places."""
    nodes = {node.id: node for node in new}
    return {node.id for node in old if node.id in nodes and unmoved(node, nodes[node.id])}


def _as_derived(links: Iterable[Link]) -> list[Link]:
    return [replace(link, derived=True) for link in links]


class StreamedNodes(Sequence[Node]):
    """Read nodes one by one, in document order, so that a large group is never held whole.

    The graph must be held as long as they are used.

    Args:
        read: Returns all nodes, each time it is called.
        size: How many there are.
    """

    def __init__(self, read: Callable[[], Iterator[Node]], size: int) -> None:
        self._read = read
        self._size = size

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Node]:
        return self._read()

    @overload
    def __getitem__(self, index: int) -> Node: ...

    @overload
    def __getitem__(self, index: slice) -> list[Node]: ...

    def __getitem__(self, index: int | slice) -> Node | list[Node]:
        return list(self)[index]
