"""The contract of what holds the graph: documents, nodes, links, and what was paid for.

It is small so that an engine can fit it: nodes are written a document at a time and read by id
or by group, one counter a group tells an index what it has missed, and everything that is merely
remembered (vectors, answers of models, source files) is a value by kind and key.

The graph sees to it that one thread of a process writes while none reads. Where several processes
share a store, ``writing`` keeps the others from writing and ``snapshot`` gives a reader one state.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

from .document import Document
from .node import Link, Node

CORPUS = ""
"""Stands for a document's id where nodes are made from a whole group, not from one document."""


class Stamp(NamedTuple):
    """Tell what the nodes of one document and group are good for.

    Attributes:
        key: What they were made from, and how: as long as it is what the graph expects, they
            are good. In ``ROOT`` a hash of the text.
        rule: How alone; where only ``key`` differs, nodes whose parent is unchanged are reused.
            In ``ROOT`` a hash of the metadata that transforms may look at.
        metadata: Hash of the document's whole metadata, which the nodes inherit.
    """

    key: str
    rule: str
    metadata: str


@dataclass(frozen=True, slots=True)
class Derivation:
    """All nodes of one group that were made from one document.

    Attributes:
        key: See ``Stamp``.
        rule: See ``Stamp``.
        metadata: See ``Stamp``.
        nodes: In document order; the children of one parent stand together.
        links: The links that the transform made, from these nodes; their targets may be away.
    """

    key: str
    rule: str
    metadata: str
    nodes: Sequence[Node]
    links: Sequence[Link] = ()

    @property
    def stamp(self) -> Stamp:
        """The derivation without its nodes."""
        return Stamp(self.key, self.rule, self.metadata)


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
    """Hold documents, nodes and links; keep every write whole."""

    @property
    def index_folder(self) -> Path | None:
        """Where indexes that can be made again may be kept; None where nothing lasts."""
        ...

    # Who reads and who writes

    def snapshot(self) -> AbstractContextManager[int]:
        """Let this thread read one state until the block ends, and give the state's number.

        The number changes with every write, by whichever process.
        """
        ...

    def writing(self) -> AbstractContextManager[object]:
        """Keep other processes from writing until the block ends; wait while one of them does.

        Raises:
            StoreError: If the wait has become too long, or the store can't be written to.
        """
        ...

    def transaction(self) -> AbstractContextManager[object]:
        """Take all writes of this thread in the block as one: all or nothing.

        Raises:
            StoreError: If the store can't be written to; nothing has changed then.
        """
        ...

    def close(self) -> None:
        """Let go of files and connections; the next use opens them again."""
        ...

    def compact(self) -> None:
        """Give back the space of what was removed."""
        ...

    # Documents and nodes

    def change_documents(self, put: Sequence[Document], remove: Sequence[str] = ()) -> None:
        """Remove documents with everything made from them, then put others; all or nothing.

        Unknown ids are not there to be removed. A document whose id is known is replaced and
        keeps its place in order; what was derived from it stays until it is derived again. One
        that is there as it is changes nothing.
        """
        ...

    def put_derivations(self, group: str, derivations: Mapping[str, Derivation]) -> None:
        """Insert or replace what was derived in one group, by document id; all or nothing.

        The links last as long as the derivation does, and are seen while their target is there.
        """
        ...

    def check(self, nodes: Sequence[Node]) -> None:
        """Look at nodes that are to be put.

        Raises:
            TypeError: If one has a value that the store can't hold.
        """
        ...

    def drop_group(self, group: str) -> None:
        """Remove all nodes of a group."""
        ...

    def derivation(self, group: str, document_id: str) -> Derivation | None:
        """Return what was derived in a group from one document."""
        ...

    def stamps(self, group: str, ids: Collection[str] | None = None) -> dict[str, Stamp]:
        """Return the stamps of a group (also ``ROOT``) by document id, in document order.

        Of some documents, or of all.
        """
        ...

    def document_ids(self) -> Iterable[str]:
        """Return the ids of all documents, in the order they were first added."""
        ...

    def groups(self) -> Iterable[str]:
        """Return the names of the groups that have been built."""
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
        """Return what happened to the group after a revision; 0 for everything.

        After a revision that the group never had, or had too long ago, everything as well.
        """
        ...

    def built(self, group: str) -> tuple[str, int] | None:
        """Return by which rules a group is built, and up to which ``ROOT`` revision.

        What has not changed since that revision has its nodes, by these rules.
        """
        ...

    def mark_built(self, group: str, rules: str, revision: int) -> None:
        """Note by which rules a group is built, and up to which revision."""
        ...

    # Links

    def link(self, links: Sequence[Link]) -> None:
        """Put links, over those between the same nodes of the same type; all or nothing.

        They go when one of their nodes goes, but for derived ones, which a target that comes
        back has again.

        Raises:
            LookupError: If a node is not there.
        """
        ...

    def unlink(self, links: Sequence[Link]) -> None:
        """Remove links; what is not there need not be removed."""
        ...

    def links(self, ids: Sequence[str], *, incoming: bool = False) -> list[list[Link]]:
        """Return the links from (or to) each node, in the order they were put.

        Only those of which both nodes are there.
        """
        ...

    # What is remembered

    def kinds(self) -> Iterable[str]:
        """Return the kinds of what is remembered."""
        ...

    def recall(self, kind: str, keys: Collection[str] | None = None) -> dict[str, bytes]:
        """Return those of the values that were remembered, or all of a kind, by key."""
        ...

    def remember(self, kind: str, values: Mapping[str, bytes]) -> None:
        """Keep values by kind and key, over what was there. Whoever writes need hold no lock."""
        ...

    def forget(self, kind: str, keys: Collection[str] | None = None) -> None:
        """Drop values, or all of a kind."""
        ...
