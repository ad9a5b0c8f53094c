"""Write the nodes of a build in batches, and store checkpoints of unfinished documents."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from .codec import decode, encode
from .derivation import CORPUS, Amendment, Derivation, Stamp
from .errors import TransformError
from .group_follower import GroupFollower
from .groups import NodeGroup
from .hashing import digest, metadata_digest
from .locking import Access, mutex
from .node import ROOT, Node
from .search_text import SearchText
from .store import NodeStore
from .transforms import Draft

_BATCH = 2_000  # nodes that are written at once, at most

PERIOD = 0.1
"""Seconds after which finished documents are written; twice as many for parts of one."""

FAILED_STAMP = Stamp("", "", "")
"""The stamp of a derivation that failed."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Tell which document was left out of which group, and why.

    ``group`` is ``ROOT`` for a file that could not be read; ``document`` is empty where a
    transform saw a whole group.
    """

    document: str
    group: str
    error: Exception


@dataclass(frozen=True, slots=True)
class DerivationTask:
    """A document of which nodes of a group are to be derived, and its sources.

    Attributes:
        document_id: The document.
        key: The hash of the sources, see ``Stamp``.
        root: The document's stamp; None for a derivation from a whole group.
        above: The stamp of its derivation in the parent group; None for a transform that sees that
            group as a whole.
    """

    document_id: str
    key: str
    root: Stamp | None
    above: Stamp | None


PendingOutput = list[Draft] | Future[list[Draft]]


@dataclass(frozen=True, slots=True)
class DerivationJob:
    """The work on one document: each parent with its output, or the future of it.

    Attributes:
        task: The document, and its sources.
        root: The document.
        families: The parents, each with the output of the transform.
        revisions: The revisions of the documents and the parent group when the parents were read.
        follower: What amends the group, where its transform follows the whole parent group.
    """

    task: DerivationTask
    root: Node | None
    families: list[tuple[Node | None, PendingOutput]]
    revisions: tuple[int, int]
    follower: GroupFollower | None = None


class BatchWriter:
    """Write derivations in batches: soon where the work is slow, many at once where it is fast.

    Args:
        store: The store to write to.
        access: The lock of the graph.
        group: The group that is built.
        rules: The hash of the rules it is built by. The first write ends what the store says of
            other rules.
        failed: The failures so far, by group and document, with the key of the task.
    """

    def __init__(
        self,
        store: NodeStore,
        access: Access,
        group: NodeGroup,
        rules: str,
        failed: dict[tuple[str, str], tuple[str, Failure]],
    ) -> None:
        self._store = store
        self._access = access
        self._group = group
        self.rules = rules
        self._failed = failed
        self._done: list[tuple[DerivationJob, Derivation | Amendment, Failure | None]] = []
        self._size = 0
        self._since = time.monotonic()
        self.checkpoint = BuildCheckpoint(store, group)
        self.written = 0

    def revisions(self) -> tuple[int, int]:
        """Return the revisions of the documents and of the parent group."""
        return self._store.revision(ROOT), self._store.revision(self._group.parent)

    def add(self, job: DerivationJob, derived: Derivation | Amendment) -> None:
        """Add the derivation of one document; write all if that is due."""
        self._done.append((job, derived, None))
        self._size += len(derived.nodes) + 1
        if self._size >= _BATCH or time.monotonic() - self._since > PERIOD:
            self.flush()

    def leave_out(self, job: DerivationJob, error: TransformError) -> None:
        """Note that a derivation failed; its checkpoint stays."""
        failure = Failure(job.task.document_id, self._group.name, error)
        self._done.append((job, Derivation(*FAILED_STAMP, ()), failure))

    def flush(self) -> None:
        """Write all derivations that were added."""
        if self._done:
            with self._access.writing():
                self.write()
        else:
            self.checkpoint.save()

    def write(self) -> None:
        """Write what is done, within ``access.writing``.

        What changed since the work on it began is dropped, also if it has changed back: the
        transform may have seen either state.
        """
        changed = self._changed()
        shares: dict[str, Derivation] = {}
        amendments: list[tuple[GroupFollower | None, Amendment]] = []
        for job, derived, failure in self._done:
            document_id = job.task.document_id
            parents = [parent for parent, _ in job.families if parent is not None]
            if document_id in changed:
                if self._group.trans_node:
                    self.checkpoint.delete(parents, job.task.key)
                continue
            if isinstance(derived, Amendment):
                amendments.append((job.follower, derived))
            else:
                shares[document_id] = derived
            if failure is None:
                self._failed.pop((self._group.name, document_id), None)
                self.checkpoint.delete(parents, job.task.key)
            else:
                self._failed[self._group.name, document_id] = job.task.key, failure
        if shares or amendments:
            built = self._store.built(self._group.name)
            if built is None or built[0] != self.rules:
                self._store.mark_built(self._group.name, self.rules, 0)
        if shares:
            self._store.put_derivations(self._group.name, shares)
        for follower, amendment in amendments:
            self._store.amend(self._group.name, CORPUS, amendment)
            if follower is not None:
                follower.revision = self._store.revision(self._group.name)
        self.checkpoint.save()  # of what failed, or is not finished
        self.written += len(shares) + len(amendments)
        self._done, self._size, self._since = [], 0, time.monotonic()

    def _changed(self) -> set[str]:
        """Return which documents changed since the work on them began; CORPUS if any did."""
        if not self._done:
            return set()
        oldest = min(job.revisions[0] for job, _, _ in self._done)
        changes = self._store.changes(ROOT, oldest)
        if changes.revision == oldest:
            return set()
        return {CORPUS, *changes.removed, *(node.id for node in changes.added)}


class BuildCheckpoint:
    """Store the outputs of single parents until the derivation of their document is written.

    Threads may add at the same time.
    """

    def __init__(self, store: NodeStore, group: NodeGroup) -> None:
        self._store = store
        self._group = group
        self._kind = f"drafts {group.name}"
        self._lock = mutex()
        self._unsaved: dict[tuple[str, str], tuple[Node, Sequence[Draft]]] = {}  # by id and key
        self._saved = set(store.get_values(self._kind))
        self._since = time.monotonic()

    def load(self, parents: Sequence[Node], key: str) -> dict[str, list[Draft]]:
        """Return the outputs of parents from before an interruption, by parent id.

        Args:
            parents: The parents, all of one document.
            key: The hash of the sources of the document's derivation, see ``Stamp``.
        """
        if not self._saved:
            return {}
        keys = {self._key(parent, key): parent.id for parent in parents}
        values = self._store.get_values(self._kind, [key for key in keys if key in self._saved])
        return {keys[key]: _read(value) for key, value in values.items()}

    def add(self, parent: Node, key: str, output: Sequence[Draft]) -> None:
        """Add the output of a parent; save all if that is due."""
        with self._lock:
            self._unsaved[parent.id, key] = parent, output
            late = time.monotonic() - self._since > 2 * PERIOD
        if late:
            self.save()

    def save(self) -> None:
        """Save all outputs that were added."""
        with self._lock:  # not held while the store is asked, which has locks of its own
            unsaved, self._unsaved = self._unsaved, {}
            self._since = time.monotonic()
        written = {self._key(p, key): _write(output) for (_, key), (p, output) in unsaved.items()}
        values = {key: value for key, value in written.items() if value is not None}
        if values:
            self._store.put_values(self._kind, values)
            with self._lock:
                self._saved.update(values)

    def delete(self, parents: Sequence[Node], key: str) -> None:
        """Delete the outputs of parents."""
        with self._lock:
            for parent in parents:
                self._unsaved.pop((parent.id, key), None)
            batch = bool(self._saved)
        if batch:
            stale = {self._key(parent, key) for parent in parents} & self._saved
            self._store.delete_values(self._kind, stale)
            with self._lock:
                self._saved -= stale

    def clear(self) -> None:
        """Delete all outputs, also of removed documents: the group is built."""
        if self._saved:
            self._store.delete_values(self._kind)
            self._saved = set()

    def _key(self, parent: Node, key: str) -> str:
        """Return the key of a parent's output: a rule that sees nodes may read other nodes, too."""
        seen = (key, metadata_digest(parent.metadata)) if self._group.trans_node else ("",)
        return digest(self._group.version, parent.id, parent.text, *seen)


def _write(output: Sequence[Draft]) -> bytes | None:
    """Encode drafts; None for values that no file can hold: they are derived again."""
    try:
        rows = [
            [d.text, d.content, d.metadata, d.start, d.end, d.links, _row(d.search_text)]
            for d in output
        ]
        return encode(rows).encode("utf-8", "surrogatepass")
    except TypeError:
        return None


def _read(value: bytes) -> list[Draft]:
    rows: list[list[Any]] = decode(value.decode("utf-8", "surrogatepass"))
    return [_draft(*row) for row in rows]


def _draft(
    text: str,
    content: Any,
    metadata: Mapping[str, Any],
    start: int | None,
    end: int | None,
    links: tuple[tuple[str, str], ...],
    search_text: list[Any] | None = None,
) -> Draft:
    own = None if search_text is None else SearchText.from_row(search_text)
    return Draft(text, content, metadata, start, end, links, own)


def _row(search_text: SearchText | None) -> list[Any] | None:
    return None if search_text is None else search_text.to_row()
