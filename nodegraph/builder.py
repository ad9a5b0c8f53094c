"""Build groups when they are needed: once, and only what is missing or out of date."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from .derive import derivation_key, derive, reusable
from .document import full_digest
from .errors import TransformError
from .group import NodeGroup
from .locks import ReadWriteLock
from .needs import Needs
from .node import ROOT, Node
from .progress import track
from .store import Derivation, NodeStore
from .transform import Draft

if TYPE_CHECKING:
    from .graph import NodeGraph


@dataclass(frozen=True, slots=True)
class Failure:
    """Tell which document was left out of which group, and why.

    ``group`` is ``ROOT`` for a file that could not be read.
    """

    document: str
    group: str
    error: Exception


_Rules = tuple[tuple[str, int], ...]
"""What made a group: for it and each above it the version, and how often it was retried."""


@dataclass(frozen=True, slots=True)
class _Task:
    """A document whose share of a group is to be made: from what, and what there was."""

    root: Node
    key: str
    parents: Sequence[Node]
    old: Derivation | None


@dataclass(frozen=True, slots=True)
class _Job:
    """One document's share of a group: each parent with what is known of it or being made."""

    root: Node
    key: str
    families: list[tuple[Node, list[Draft] | Future[list[Draft]]]]


class GroupBuilder:
    """Derive what a group lacks, one thread a group, and write it in one piece."""

    def __init__(self, graph: NodeGraph, store: NodeStore, lock: ReadWriteLock) -> None:
        self._graph = graph
        self._store = store
        self._lock = lock
        self._building: dict[str, threading.RLock] = {}
        self._made: dict[str, tuple[_Rules, int]] = {}  # group -> by what, from which revision
        self._failed: dict[tuple[str, str], tuple[str, Failure]] = {}
        self._retries: Counter[str] = Counter()
        self.needs = Needs()
        self.unread: list[Failure] = []

    @property
    def failures(self) -> list[Failure]:
        """The documents left out so far, of those that are still there."""
        failed = [failure for _, failure in list(self._failed.values())]
        roots = self._store.get(failure.document for failure in failed)
        return [*self.unread, *(f for f, root in zip(failed, roots, strict=True) if root)]

    def fresh(self, lineage: Sequence[NodeGroup]) -> bool:
        """Tell whether a group, the last of its lineage, is built by the rules and for the
        documents as they are now.
        """
        now = (self._rules(lineage), self._store.revision(ROOT))
        return not lineage or self._made.get(lineage[-1].name) == now

    def started(self, name: str) -> bool:
        """Tell whether a group has been built for some state of the documents."""
        return name in self._made or self._store.revision(name) > 0

    def retry(self, lineage: Sequence[NodeGroup]) -> None:
        """Forget the failures in these groups, so that the next build tries again."""
        names = {group.name for group in lineage}
        for key in [key for key in list(self._failed) if key[0] in names]:
            self._failed.pop(key, None)
            self._retries[key[0]] += 1

    def build(self, lineage: Sequence[NodeGroup], on_error: Literal["raise", "skip"]) -> None:
        """Build the last group of a lineage, its ancestors first.

        When documents or rules change meanwhile it may be out of date afterwards.

        Raises:
            TransformError: If a transform raises and is not to be skipped. What was made before
                is kept, so that of the documents only the failed one is tried again.
            RuntimeError: If this thread reads the graph, or is in a transform that the group
                waits for.
        """
        if self.fresh(lineage):
            return
        for end in range(1, len(lineage) + 1):
            name = lineage[end - 1].name
            if not self.fresh(lineage[:end]):
                with self.needs.waiting(name), self._alone(name):
                    if not self.fresh(lineage[:end]):
                        self._build_last(lineage[:end], on_error)

    @contextmanager
    def _alone(self, name: str) -> Iterator[None]:
        """Let one thread at a time build a group."""
        lock = self._building.setdefault(name, threading.RLock())
        if not lock.acquire(blocking=False):
            self._lock.check_write()  # who builds has to write, for which it waits for readers
            lock.acquire()
        try:
            yield
        finally:
            lock.release()

    def _rules(self, lineage: Sequence[NodeGroup]) -> _Rules:
        return tuple((group.version, self._retries[group.name]) for group in lineage)

    def _build_last(self, lineage: Sequence[NodeGroup], on_error: str) -> None:
        group = lineage[-1]
        rules = self._rules(lineage)
        until = self._store.revision(ROOT)
        if len(lineage) > 1:  # as far as the parent group is, which documents may have overtaken
            above, until = self._made[group.parent]
            if above != rules[:-1]:
                return
        before, since = self._made.get(group.name, (rules, 0))
        pending = self._pending(group, since if before == rules else 0, until)
        done: list[tuple[Node, Derivation]] = []
        try:
            for job in track(
                self._jobs(group, pending),
                len(pending),
                f"building {group.name}",
                " documents",
                self._graph.progress if pending else False,
            ):
                try:
                    families = [(parent, _result(made)) for parent, made in job.families]
                    derived = derive(group, job.key, job.root, families, self._graph)
                    done.append((job.root, derived))
                    self._failed.pop((group.name, job.root.id), None)
                except Exception as error:
                    if not self._unchanged(job.root):
                        continue  # its turn comes again, or it is gone
                    reason = f"{type(error).__name__}: {error}"
                    failure = TransformError(job.root.id, group.name, reason)
                    failure.__cause__ = error
                    if on_error == "raise":
                        raise failure from error
                    done.append((job.root, Derivation("", "", "", ())))
                    kept = Failure(job.root.id, group.name, failure)
                    self._failed[group.name, job.root.id] = (job.key, kept)
        finally:
            if done:
                with self._lock.write():
                    current = {root.id: d for root, d in done if self._unchanged(root)}
                    self._store.put_derivations(group.name, current)
        self._made[group.name] = (rules, until)

    def _unchanged(self, root: Node) -> bool:
        """Tell whether a document is there as it was when the work on it began."""
        (now,) = self._store.get([root.id])
        return now is not None and (now.order, now.text) == (root.order, root.text)

    def _pending(self, group: NodeGroup, since: int, until: int) -> list[_Task]:
        """List the documents whose nodes are missing or out of date, in document order.

        Those that changed after ``until`` are left for later: their parents may not be there.
        """
        with self._lock.read():
            later = {root.id for root in self._store.changes(ROOT, until).added}
            pending = []
            for root in self._store.changes(ROOT, since).added:
                if root.id in later:
                    continue
                above = None
                if group.parent != ROOT:
                    above = self._store.derivation(group.parent, root.id)
                key = derivation_key(group, root, above)
                old = self._store.derivation(group.name, root.id)
                failed = self._failed.get((group.name, root.id))
                if failed is not None and failed[0] == key and old is not None:
                    continue
                metadata = full_digest(root.own_metadata)
                if old is None or old.key != key or old.metadata != metadata:
                    parents = [root] if group.parent == ROOT else above.nodes if above else ()
                    pending.append(_Task(self._graph.attach(root), key, parents, old))
        if pending:
            self._lock.check_write()  # before the work, not when it is to be written
        return sorted(pending, key=lambda task: task.root.order)

    def _jobs(self, group: NodeGroup, pending: Sequence[_Task]) -> Iterator[_Job]:
        """Yield the documents in order, their parents being worked on by the group's threads."""
        if group.num_workers < 2:
            for task in pending:
                yield self._job(group, task, None)
            return
        with ThreadPoolExecutor(group.num_workers, f"build-{group.name}") as pool:
            window: deque[_Job] = deque()
            try:
                for task in pending:
                    window.append(self._job(group, task, pool))
                    if len(window) > 2 * group.num_workers:
                        yield window.popleft()
                while window:
                    yield window.popleft()
            finally:  # left early: what has not begun need not be done
                pool.shutdown(wait=True, cancel_futures=True)

    def _job(self, group: NodeGroup, task: _Task, pool: ThreadPoolExecutor | None) -> _Job:
        known = reusable(group, task.key, task.parents, task.old)
        families: list[tuple[Node, list[Draft] | Future[list[Draft]]]] = []
        for parent in task.parents:
            self._graph.attach(parent)
            if parent.id in known:
                families.append((parent, known[parent.id]))
            elif pool is not None:
                families.append((parent, pool.submit(self._run, group, parent)))
            else:
                families.append((parent, self._try(group, parent)))
        return _Job(task.root, task.key, families)

    def _run(self, group: NodeGroup, parent: Node) -> list[Draft]:
        with self.needs.inside(group.name):
            return group.rule(parent)

    def _try(self, group: NodeGroup, parent: Node) -> Future[list[Draft]]:
        future: Future[list[Draft]] = Future()
        try:
            future.set_result(self._run(group, parent))
        except Exception as error:
            future.set_exception(error)
        return future


def _result(made: list[Draft] | Future[list[Draft]]) -> list[Draft]:
    return made.result() if isinstance(made, Future) else made
