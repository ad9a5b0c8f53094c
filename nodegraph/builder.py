"""Build groups when they are needed: once, and only what is missing or out of date."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from .derive import derivation_key, derive, reusable
from .document import full_digest
from .errors import TransformError
from .group import NodeGroup
from .locks import ReadWriteLock
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
        self._fresh: dict[str, int] = {}  # group -> revision of the documents it was made from
        self._failed: dict[tuple[str, str], tuple[str, Failure]] = {}
        self.unread: list[Failure] = []

    @property
    def failures(self) -> list[Failure]:
        """The documents left out so far."""
        return [*self.unread, *(failure for _, failure in self._failed.values())]

    def fresh(self, name: str) -> bool:
        """Tell whether a group is built for the documents as they are now."""
        return name == ROOT or self._fresh.get(name) == self._store.revision(ROOT)

    def started(self, name: str) -> bool:
        """Tell whether a group has been built for some state of the documents."""
        return name in self._fresh

    def forget(self, names: Sequence[str]) -> None:
        """Take groups as not built: their rule, or one above, has changed."""
        for name in names:
            self._fresh.pop(name, None)

    def build(
        self, lineage: Sequence[NodeGroup], on_error: Literal["raise", "skip"], retry: bool = False
    ) -> None:
        """Build the last group of a lineage, its ancestors first.

        Raises:
            TransformError: If a transform raises and is not to be skipped. What other documents
                gave is kept, so that only the failed one is tried again.
        """
        if not lineage or (self.fresh(lineage[-1].name) and not retry):
            return
        for group in lineage:
            with self._building.setdefault(group.name, threading.RLock()):
                if retry:
                    self._retry(group.name)
                if not self.fresh(group.name):
                    self._build_one(group, on_error)

    def _retry(self, name: str) -> None:
        failed = [key for key in self._failed if key[0] == name]
        for key in failed:
            del self._failed[key]
        if failed:
            self._fresh.pop(name, None)

    def _build_one(self, group: NodeGroup, on_error: str) -> None:
        revision = self._store.revision(ROOT)
        pending = self._pending(group)
        done: dict[str, Derivation] = {}
        try:
            for job in track(
                self._jobs(group, pending),
                len(pending),
                f"building {group.name}",
                self._graph.progress if pending else False,
            ):
                try:
                    families = [(parent, _result(made)) for parent, made in job.families]
                    done[job.root.id] = derive(group, job.key, job.root, families, self._graph)
                    self._failed.pop((group.name, job.root.id), None)
                except Exception as error:
                    reason = f"{type(error).__name__}: {error}"
                    failure = TransformError(job.root.id, group.name, reason)
                    failure.__cause__ = error
                    if on_error == "raise":
                        raise failure from error
                    done[job.root.id] = Derivation("", "", "", ())
                    kept = Failure(job.root.id, group.name, failure)
                    self._failed[group.name, job.root.id] = (job.key, kept)
        finally:
            if done:
                with self._lock.write():
                    alive = {i: d for i, d in done.items() if self._store.get([i])[0] is not None}
                    self._store.put_derivations(group.name, alive)
        self._fresh[group.name] = revision

    def _pending(self, group: NodeGroup) -> list[tuple[Node, str]]:
        """List the documents whose nodes are missing or out of date, with their new keys."""
        with self._lock.read():
            since = self._fresh.get(group.name, 0)
            pending = []
            for root in self._store.changes(ROOT, since).added:
                above = None
                if group.parent != ROOT:
                    above = self._store.derivation(group.parent, root.id)
                key = derivation_key(group, root, above)
                old = self._store.derivation(group.name, root.id)
                failed = self._failed.get((group.name, root.id))
                if failed is not None and failed[0] == key:
                    continue
                metadata = full_digest(root.own_metadata)
                if old is None or old.key != key or old.metadata != metadata:
                    pending.append((self._graph.attach(root), key))
        return pending

    def _jobs(self, group: NodeGroup, pending: Sequence[tuple[Node, str]]) -> Iterator[_Job]:
        """Yield the documents in order, their parents being worked on by the group's threads."""
        if group.num_workers < 2:
            for root, key in pending:
                yield self._job(group, root, key, None)
            return
        with ThreadPoolExecutor(group.num_workers, f"build-{group.name}") as pool:
            window: deque[_Job] = deque()
            try:
                for root, key in pending:
                    window.append(self._job(group, root, key, pool))
                    if len(window) > 2 * group.num_workers:
                        yield window.popleft()
                while window:
                    yield window.popleft()
            finally:  # left early: what has not begun need not be done
                pool.shutdown(wait=True, cancel_futures=True)

    def _job(self, group: NodeGroup, root: Node, key: str, pool: ThreadPoolExecutor | None) -> _Job:
        parents = [root]
        if group.parent != ROOT:
            above = self._store.derivation(group.parent, root.id)
            parents = [self._graph.attach(node) for node in above.nodes] if above else []
        known = reusable(group, key, self._store.derivation(group.name, root.id))
        families: list[tuple[Node, list[Draft] | Future[list[Draft]]]] = []
        for parent in parents:
            if parent.id in known:
                families.append((parent, known[parent.id]))
            elif pool is not None:
                families.append((parent, pool.submit(group.rule, parent)))
            else:
                families.append((parent, _try(group, parent)))
        return _Job(root, key, families)


def _try(group: NodeGroup, parent: Node) -> Future[list[Draft]]:
    future: Future[list[Draft]] = Future()
    try:
        future.set_result(group.rule(parent))
    except Exception as error:
        future.set_exception(error)
    return future


def _result(made: list[Draft] | Future[list[Draft]]) -> list[Draft]:
    return made.result() if isinstance(made, Future) else made
