"""Write what a build has made: soon where the work is slow, many at once where it is not."""

from __future__ import annotations

import time
from concurrent.futures import Future
from dataclasses import dataclass

from .access import Access
from .drafts import PERIOD, Drafts
from .errors import TransformError
from .group import NodeGroup
from .node import ROOT, Node
from .store import Derivation, NodeStore, Stamp
from .transform import Draft

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
