"""The contract of what holds the graph: documents, and nodes by group and document.

It is small so that an engine can fit it: everything is written a document at a time, everything
is read by id or by group, and one counter a group tells an index what it has missed. Whoever
writes holds the graph's write lock; a store needs no lock of its own against its own process.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from .document import Document
from .node import Node


@dataclass(frozen=True, slots=True)
class Derivation:
    """All nodes of one group that were made from one document.

    Attributes:
        key: What they were made from, and how: as long as it is what the graph expects, they
            are good.
        rule: How alone; where only ``key`` differs, nodes whose parent is unchanged are reused.
        metadata: Digest of the document's metadata, which the nodes inherit.
        nodes: In document order; the children of one parent stand together.
    """

    key: str
    rule: str
    metadata: str
    nodes: Sequence[Node]


@dataclass(frozen=True, slots=True)
class Changes:
    """What happened to a group between two revisions.

    Attributes:
        revision: The revision these changes lead to.
        removed: Ids of the nodes that are gone.
        added: New nodes, and nodes whose place or metadata changed (their id is in ``removed``
            too where they were there before). Apply the removals first.
        complete: True when ``added`` is the whole group, and what an index had is to be dropped.
    """

    revision: int
    removed: Sequence[str]
    added: Sequence[Node]
    complete: bool = False


class NodeStore(Protocol):
    """Hold documents and nodes; keep every write whole."""

    def snapshot(self) -> AbstractContextManager[object]:
        """Let this thread read one state until the block ends, whatever other processes write."""
        ...

    def change_documents(self, put: Sequence[Document], remove: Sequence[str] = ()) -> None:
        """Remove documents with everything made from them, then put others; all or nothing.

        Unknown ids are not there to be removed. A document whose id is known is replaced and
        keeps its place in order; what was derived from it stays until it is derived again.
        """
        ...

    def put_derivations(self, group: str, derivations: Mapping[str, Derivation]) -> None:
        """Insert or replace what was derived in one group, by document id; all or nothing."""
        ...

    def drop_group(self, group: str) -> None:
        """Remove all nodes of a group."""
        ...

    def derivation(self, group: str, document_id: str) -> Derivation | None:
        """Return what was derived in a group from one document."""
        ...

    def document_ids(self) -> Iterable[str]:
        """Return the ids of all documents, in the order they were first added."""
        ...

    def nodes(self, group: str) -> Iterator[Node]:
        """Return the nodes of a group (also ``ROOT``), in document order."""
        ...

    def count(self, group: str) -> int:
        """Return how many nodes a group has; 0 for a group that was never built."""
        ...

    def get(self, ids: Iterable[str]) -> list[Node | None]:
        """Return nodes by id, None where there is none."""
        ...

    def children(self, group: str, parent: Node) -> Sequence[Node]:
        """Return the nodes of a group made from one parent, in document order."""
        ...

    def revision(self, group: str) -> int:
        """Return the group's counter, which grows with every change of its nodes."""
        ...

    def changes(self, group: str, since: int) -> Changes:
        """Return what happened to the group after a revision; 0 for everything."""
        ...

    def recall(self, kind: str, keys: Collection[str]) -> dict[str, bytes]:
        """Return those of the values that were remembered, by key."""
        ...

    def remember(self, kind: str, values: Mapping[str, bytes]) -> None:
        """Keep values by kind and key, over what was there; readers need no lock."""
        ...
