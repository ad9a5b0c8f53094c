"""Write what a build has made: soon where the work is slow, many at once where it is not."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from .codec import decode, encode
from .errors import TransformError
from .groups import NodeGroup
from .hashing import digest, metadata_digest
from .locking import Access
from .node import ROOT, Node
from .store import Derivation, NodeStore, Stamp
from .transforms import Draft

_BATCH = 2_000  # nodes that are written at once, at most

_FAILED = Stamp("", "", "")


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
class Task:
    """A document whose share of a group is to be made, as it was when that was found out."""

    document_id: str
    key: str
    root: Stamp | None  # None for what is made from a whole group


Made = list[Draft] | Future[list[Draft]]


@dataclass(frozen=True, slots=True)
class Job:
    """One document's share of a group: each parent with what is known of it or being made."""

    task: Task
    root: Node | None
    families: list[tuple[Node | None, Made]]


class BatchWriter:
    """Write what is done in batches: soon where the work is slow, many at once where it is not."""

    def __init__(
        self,
        store: NodeStore,
        access: Access,
        group: NodeGroup,
        failed: dict[tuple[str, str], tuple[str, Failure]],
    ) -> None:
        self._store = store
        self._access = access
        self._group = group.name
        self._failed = failed
        self._done: list[tuple[Job, Derivation]] = []
        self._size = 0
        self._since = time.monotonic()
        self.drafts = Drafts(store, group)

    def current(self, task: Task, root: Node | None = None) -> bool:
        """Tell whether a document is there as it was when the task was found, in its place."""
        if task.root is None:
            return True
        if self._store.stamps(ROOT, [task.document_id]).get(task.document_id) != task.root:
            return False
        (now,) = self._store.get([task.document_id]) if root is not None else (None,)
        return root is None or (now is not None and now.order == root.order)

    def add(self, job: Job, derived: Derivation) -> None:
        """Take one document's share."""
        self._failed.pop((self._group, job.task.document_id), None)
        self._done.append((job, derived))
        self._size += len(derived.nodes) + 1
        if self._size >= _BATCH or time.monotonic() - self._since > PERIOD:
            self.flush()

    def leave_out(self, job: Job, failure: TransformError) -> None:
        """Note that a document's share could not be made; what was made of it is kept."""
        kept = Failure(job.task.document_id, self._group, failure)
        self._failed[self._group, job.task.document_id] = job.task.key, kept
        self._done.append((job, Derivation(*_FAILED, ())))

    def flush(self, built: tuple[str, int] | None = None) -> None:
        """Write what is done, of documents that have not changed since.

        Args:
            built: By which rules, and for which revision, the group is built with this.
        """
        if not self._done and not built:
            self.drafts.save()
        else:
            with self._access.writing():
                current = [
                    (job, made) for job, made in self._done if self.current(job.task, job.root)
                ]
                self._store.put_derivations(
                    self._group, {job.task.document_id: made for job, made in current}
                )
                for job, made in current:
                    if made.stamp != _FAILED:
                        self.drafts.forget([p for p, _ in job.families if p is not None])
                self.drafts.save()  # of what failed, or is not finished
                if built:
                    self.drafts.forget_all()
                    self._store.mark_built(self._group, *built)
        self._done, self._size, self._since = [], 0, time.monotonic()


PERIOD = 0.1
"""Seconds after which finished documents are written; twice as many for parts of one."""


class Drafts:
    """Keep the drafts of single parents while their document's share of a group is being made.

    Threads may add at the same time.
    """

    def __init__(self, store: NodeStore, group: NodeGroup) -> None:
        self._store = store
        self._group = group
        self._kind = f"drafts {group.name}"
        self._lock = threading.Lock()
        self._unsaved: dict[str, tuple[Node, Sequence[Draft]]] = {}  # by parent id
        self._saved = set(store.recall(self._kind))
        self._since = time.monotonic()

    def known(self, parents: Sequence[Node]) -> dict[str, list[Draft]]:
        """Return what was made of parents before an interruption, by parent id."""
        if not self._saved:
            return {}
        keys = {self._key(parent): parent.id for parent in parents}
        found = self._store.recall(self._kind, [key for key in keys if key in self._saved])
        return {keys[key]: _read(value) for key, value in found.items()}

    def add(self, parent: Node, made: Sequence[Draft]) -> None:
        """Take what was made of a parent; write it when the last time is long ago."""
        with self._lock:
            self._unsaved[parent.id] = parent, made
            late = time.monotonic() - self._since > 2 * PERIOD
        if late:
            self.save()

    def save(self) -> None:
        """Write what is not written yet."""
        with self._lock:  # not held while the store is asked, which has locks of its own
            unsaved, self._unsaved = self._unsaved, {}
            self._since = time.monotonic()
        written = {self._key(p): _write(made) for p, made in unsaved.values()}
        values = {key: value for key, value in written.items() if value is not None}
        if values:
            self._store.remember(self._kind, values)
            with self._lock:
                self._saved.update(values)

    def forget(self, parents: Sequence[Node]) -> None:
        """Drop what was kept of parents whose nodes are in the store now."""
        with self._lock:
            for parent in parents:
                self._unsaved.pop(parent.id, None)
            some = bool(self._saved)
        if some:
            gone = {self._key(parent) for parent in parents} & self._saved
            self._store.forget(self._kind, gone)
            with self._lock:
                self._saved -= gone

    def forget_all(self) -> None:
        """Drop what was kept, also of documents that are gone: the group is built."""
        if self._saved:
            self._store.forget(self._kind)
            self._saved = set()

    def _key(self, parent: Node) -> str:
        seen = metadata_digest(parent.metadata) if self._group.trans_node else ""
        return digest(self._group.version, parent.id, parent.text, seen)


def _write(made: Sequence[Draft]) -> bytes | None:
    """Write drafts; None for what no file can hold, which is made again then."""
    try:
        rows = [[d.text, d.content, d.metadata, d.start, d.end, d.links] for d in made]
        return encode(rows).encode("utf-8", "surrogatepass")
    except TypeError:
        return None


def _read(value: bytes) -> list[Draft]:
    rows: list[tuple[str, object, Mapping[str, object], int | None, int | None, tuple[()]]]
    rows = decode(value.decode("utf-8", "surrogatepass"))
    return [Draft(*row) for row in rows]
