"""Write the nodes of a build in batches, with checkpoints, and amend what follows a whole group."""

from __future__ import annotations

import time
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any

from .codec import decode, encode
from .derivation import (
    CORPUS,
    DOCUMENT_STRIDE,
    Amendment,
    Derivation,
    Stamp,
    derive_of_group,
    unmoved,
)
from .errors import TransformError
from .groups import NodeGroup
from .hashing import digest, metadata_digest
from .locking import Access, mutex
from .node import ROOT, Link, Node
from .search_text import SearchText
from .store import Changes, NodeStore
from .transforms import Draft, Follower, RankedDraft

_GAP = 1 << 16  # between the places of two nodes, for those that come between them later


class GroupFollower:
    """Know what a store has of a group that follows another one, and say what is to be amended.

    Places of nodes have gaps, so that one that comes between two changes neither.

    Args:
        name: The group.
        version: That of its rule.
        follower: Makes the drafts.

    Attributes:
        version: That of the group's rule.
        since: The revision of the parent group that the drafts are of; 0 before the first update.
        revision: The revision of the group whose nodes are known; None where the store has to be
            read, as before the first amendment and after one that was not written.
    """

    def __init__(self, name: str, version: str, follower: Follower) -> None:
        self.version = version
        self.since = 0
        self.revision: int | None = None
        self._name = name
        self._follower = follower
        self._drafts: dict[str, RankedDraft] = {}  # by key
        self._pending: dict[str, RankedDraft | None] = {}  # by key, what is not amended yet
        self._ranked: list[tuple[tuple[Any, ...], str]] = []  # ranks and keys, in order
        self._places: dict[str, int] = {}  # by key
        self._ids: dict[str, str] = {}  # by key
        self._nodes: dict[str, Node] = {}  # by id, as the store has them
        self._links: dict[str, list[Link]] = {}  # by id

    def update(self, revision: int, removed: Sequence[str], added: Sequence[Node]) -> None:
        """Make drafts of what has changed in the parent group."""
        self._pending.update(self._follower.update(removed, added))
        self.since = revision

    def read(self, stored: Derivation | None) -> None:
        """Take what the store has of the group as what is to be amended."""
        self._nodes = {} if stored is None else {node.id: node for node in stored.nodes}
        self._links = {node_id: [] for node_id in self._nodes}
        for link in () if stored is None else stored.links:
            self._links[link.source].append(link)
        self._pending = {**self._drafts, **self._pending}
        self._places, self._ids = {}, {}
        self.revision = None

    def amendment(self, stamp: Stamp) -> Amendment:
        """Return what is to be changed; ``revision`` is to be set when it is written."""
        everything, self.revision = self.revision is None, None
        removed_ids = set(self._nodes) if everything else set[str]()
        removed_ids.update(self._ids[key] for key in self._pending if key in self._ids)
        unplaced = self._rank(everything)
        keys = self._assign_places(unplaced, everything)
        nodes, unlinked, links = list[Node](), list[Link](), list[Link]()
        for key in keys:
            node, created = derive_of_group(self._name, self._drafts[key].draft, self._places[key])
            old = self._nodes.get(node.id)
            if old is None or not unmoved(old, node):
                nodes.append(node)
            stale, new = _difference(self._links.get(node.id, []), created)
            unlinked += stale
            links += new
            self._ids[key], self._nodes[node.id], self._links[node.id] = node.id, node, created
            removed_ids.discard(node.id)
        for node_id in removed_ids:
            del self._nodes[node_id], self._links[node_id]
        self._pending = {}
        return Amendment(stamp, sorted(removed_ids), nodes, unlinked, links)

    def _rank(self, everything: bool) -> list[str]:
        """Take over the pending drafts; return the keys of those that have no place yet."""
        unplaced = []
        for key, ranked in self._pending.items():
            old = self._drafts.pop(key, None)
            if old is not None and not everything:
                del self._ranked[bisect_left(self._ranked, (old.rank, key))]
            if ranked is None:
                self._ids.pop(key, None)
                self._places.pop(key, None)
                continue
            self._drafts[key] = ranked
            if not everything:
                insort(self._ranked, (ranked.rank, key))
            if old is None or (old.rank, old.draft.text) != (ranked.rank, ranked.draft.text):
                self._places.pop(key, None)
            if key not in self._places:
                unplaced.append(key)
        if everything:
            self._ranked = sorted((ranked.rank, key) for key, ranked in self._drafts.items())
        return unplaced

    def _assign_places(self, unplaced: Sequence[str], everything: bool) -> Iterable[str]:
        """Give places to those that have none; return the keys whose nodes may be different."""
        if everything:
            self._places = self._stored_places()
            unplaced = [key for key in self._drafts if key not in self._places]
        changed = [key for key, ranked in self._pending.items() if ranked is not None]
        if len(unplaced) < len(self._ranked) and self._fill(unplaced):
            return changed
        gap = max(1, min(_GAP, DOCUMENT_STRIDE // (2 * len(self._ranked) + 2)))
        self._places = {key: at * gap for at, (_, key) in enumerate(self._ranked, 1)}
        return list(self._drafts)

    def _stored_places(self) -> dict[str, int]:
        """Return the places that nodes have in the store; none if their order is another."""
        positions: dict[str, int] = {}
        last = 0
        for _, key in self._ranked:
            node, _ = derive_of_group(self._name, self._drafts[key].draft, 0)
            if (stored := self._nodes.get(node.id)) is not None:
                if stored.order <= last:
                    return {}
                positions[key] = last = stored.order
        return positions

    def _fill(self, unplaced: Sequence[str]) -> bool:
        """Give places between those of others; return whether there was room."""
        entries = sorted((self._drafts[key].rank, key) for key in unplaced)
        while entries:
            start = stop = bisect_left(self._ranked, entries[0])
            while stop < len(self._ranked) and self._ranked[stop][1] not in self._places:
                stop += 1
            before = self._places[self._ranked[start - 1][1]] if start else 0
            after = before + _GAP * (stop - start + 1)
            if stop < len(self._ranked):
                after = self._places[self._ranked[stop][1]]
            step = (after - before) // (stop - start + 1)
            if not step or after >= DOCUMENT_STRIDE:
                return False
            for number, (_, key) in enumerate(self._ranked[start:stop], 1):
                self._places[key] = before + step * number
            del entries[: stop - start]
        return True


class GroupFollowers:
    """Keep a follower for each group whose transform follows a whole group.

    Args:
        store: The store to read from.
        attach: Lets a node from the store know its graph.
    """

    def __init__(self, store: NodeStore, attach: Callable[[Node], Node]) -> None:
        self._store = store
        self._attach = attach
        self._followers: dict[str, GroupFollower] = {}  # by group

    def missed(self, group: NodeGroup) -> tuple[GroupFollower, Changes]:
        """Return a group's follower, and what has changed since its last update; while reading."""
        assert group.following is not None
        follower = self._followers.get(group.name)
        if follower is not None and follower.version != group.version:
            follower = None
        changes = self._store.changes(group.parent, 0 if follower is None else follower.since)
        if follower is None or changes.complete:
            follower = GroupFollower(group.name, group.version, group.following.follower())
            self._followers[group.name] = follower
        if follower.revision is None or follower.revision != self._store.revision(group.name):
            follower.read(self._store.derivation(group.name, CORPUS))
        return follower, replace(changes, added=[self._attach(node) for node in changes.added])

    def drop(self, group: NodeGroup) -> None:
        """Forget a follower that failed: it may know half of what has changed."""
        self._followers.pop(group.name, None)


def _difference(old: Sequence[Link], new: Sequence[Link]) -> tuple[list[Link], list[Link]]:
    """Return which links are to be deleted and which put, for them to be in the order of the new.

    New ones are put behind those that are there.
    """
    new_ends = {_target(link) for link in new}
    retained = [_target(link) for link in old if _target(link) in new_ends]
    if retained == [_target(link) for link in new[: len(retained)]]:
        stale = [link for link in old if _target(link) not in new_ends]
        return stale, list(new[len(retained) :])
    return list(old), list(new)


def _target(link: Link) -> tuple[str, str]:
    return link.target, link.type


_BATCH = 2_000  # nodes that are written at once, at most

PERIOD = 0.1
"""Seconds after which finished documents are written; for parts of one, at least twice as many."""

_MADE_AGAIN = 0.001  # seconds a parent, up to which it takes as long to wait for the disk

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

    Attributes:
        is_costly: Whether something took a millisecond a parent, as all does that a model has
            made. Then writes wait for the disk; the rest is made again as soon as it is read.
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
        self._since, self._pause = time.monotonic(), PERIOD
        self._last, self.is_costly = self._since, False
        self.checkpoint = BuildCheckpoint(store, group)
        self.written = 0

    def revisions(self) -> tuple[int, int]:
        """Return the revisions of the documents and of the parent group."""
        return self._store.revision(ROOT), self._store.revision(self._group.parent)

    def add(self, job: DerivationJob, derived: Derivation | Amendment) -> None:
        """Add the derivation of one document; write all if that is due."""
        self._done.append((job, derived, None))
        self._size += len(derived.nodes) + 1
        before, self._last = self._last, time.monotonic()
        self.is_costly |= self._last - before > _MADE_AGAIN * (1 + len(job.families))
        if self._size >= _BATCH or self._last - self._since > self._pause:
            self.flush()

    def leave_out(self, job: DerivationJob, error: TransformError) -> None:
        """Note that a derivation failed; its checkpoint stays."""
        failure = Failure(job.task.document_id, self._group.name, error)
        self._done.append((job, Derivation(*FAILED_STAMP, ()), failure))

    def flush(self) -> None:
        """Write all derivations that were added."""
        if self._done:
            started = time.monotonic()
            with self._access.writing(lasting=self.is_costly):
                self.write()
            # On a busy machine or a slow disk a write takes a tenth of the time, not most of it.
            self._since = self._last = time.monotonic()
            self._pause = PERIOD * (1 + 100 * (self._since - started))
        else:
            self.checkpoint.save()

    def write(self) -> None:
        """Write what is done, within ``access.writing``.

        What changed since the work on it began is dropped, also if it has changed back: the
        transform may have seen either state.
        """
        changed = self._changed()
        shares: dict[str, Derivation] = {}
        amendments: list[tuple[GroupFollower, Amendment]] = []
        for job, derived, failure in self._done:
            document_id = job.task.document_id
            parents = [parent for parent, _ in job.families if parent is not None]
            if document_id in changed:
                if self._group.trans_node:
                    self.checkpoint.delete(parents, job.task.key)
                continue
            if isinstance(derived, Amendment):
                assert job.follower is not None
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
            follower.revision = self._store.revision(self._group.name)
        self.checkpoint.save()  # of what failed, or is not finished
        self.written += len(shares) + len(amendments)
        self._done, self._size = [], 0

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
            # What takes a millisecond is made again as soon as it would be written and read.
            late = time.monotonic() - self._since > PERIOD * (2 + len(self._unsaved) / 100)
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
