"""Build groups when they are needed: once, and only what is missing or out of date."""

from __future__ import annotations

import secrets
import threading
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

from .build_writer import BatchWriter, Drafts, Failure, Job, Made, Task
from .derivation import corpus_key, derivation_key, derive, reusable
from .errors import TransformError
from .groups import NodeGroup
from .hashing import digest
from .locking import Access
from .node import ROOT, Node
from .progress import track
from .store import CORPUS, NodeStore, Stamp
from .transforms import Draft, PatternRule

if TYPE_CHECKING:
    from .graph import NodeGraph


class GroupBuilder:
    """Derive what a group lacks, one thread a group, and write it as it comes."""

    def __init__(self, graph: NodeGraph, store: NodeStore, access: Access) -> None:
        self._graph = graph
        self._store = store
        self._access = access
        self._building: dict[str, threading.RLock] = {}
        self._partial: dict[str, tuple[str, int]] = {}  # built, but for what failed
        self._failed: dict[tuple[str, str], tuple[str, Failure]] = {}
        self._retries: Counter[str] = Counter()
        self._session = secrets.token_hex(8)
        self.needs = Needs()
        self.unread: list[Failure] = []

    @property
    def failures(self) -> list[Failure]:
        """The documents left out so far, of those that are still there."""
        failed = [failure for _, failure in list(self._failed.values())]
        there = self._store.stamps(ROOT, {failure.document for failure in failed})
        kept = [f for f in failed if f.document in there or f.document == CORPUS]
        return [*self.unread, *kept]

    def fresh(self, lineage: Sequence[NodeGroup]) -> bool:
        """Tell whether a group, the last of its lineage, is built by the rules and for the
        documents as they are now.
        """
        if not lineage:
            return True
        return self._built(lineage) == (self._rules(lineage), self._store.revision(ROOT))

    def _built(self, lineage: Sequence[NodeGroup]) -> tuple[str, int] | None:
        """Return by which rules and for which revision a group was built last."""
        name = lineage[-1].name
        return self._partial.get(name) or self._store.built(name)

    def started(self, name: str) -> bool:
        """Tell whether a group has been built for some state of the documents."""
        return name in self._partial or self._store.revision(name) > 0

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
                is kept, so that only what failed is tried again.
            RuntimeError: If this thread reads the graph, or is in a transform that the group
                waits for.
            StoreError: If the store can't be written to.
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
        """Let one thread at a time build a group, and one process any."""
        lock = self._building.setdefault(name, threading.RLock())
        if not lock.acquire(blocking=False):
            self._access.check_write()  # who builds has to write, for which it waits for readers
            lock.acquire()
        try:
            with self._store.writing():
                yield
        finally:
            lock.release()

    def _rules(self, lineage: Sequence[NodeGroup]) -> str:
        """Name what makes a group: its version and those above; where something failed, also how
        often it was tried in this session, so that another one tries again.
        """
        versions = digest(*(group.version for group in lineage))
        tried = [self._retries[group.name] for group in lineage]
        failed = any(tried) or any(self._has_failed(group.name) for group in lineage)
        return f"{versions} {self._session} {tried}" if failed else versions

    def _has_failed(self, group: str) -> bool:
        return any(name == group for name, _ in list(self._failed))

    def _build_last(self, lineage: Sequence[NodeGroup], on_error: str) -> None:
        group = lineage[-1]
        rules = self._rules(lineage)
        until = self._store.revision(ROOT)
        if len(lineage) > 1:  # as far as the parent group is, which documents may have overtaken
            by, until = self._built(lineage[:-1]) or ("", 0)
            if by != self._rules(lineage[:-1]):
                return
        before = self._built(lineage)
        since = before[1] if before is not None and before[0] == rules else 0
        pending = self._pending(lineage, since, until)
        writer = BatchWriter(self._store, self._access, group, self._failed)
        try:
            for job in track(
                self._jobs(group, pending, writer),
                len(pending),
                f"building {group.name}",
                " documents",
                self._graph.progress if pending else False,
            ):
                try:
                    families = [(parent, _result(made)) for parent, made in job.families]
                    stamp = Stamp(job.task.key, group.version, _metadata(job.task))
                    derived = derive(group.name, stamp, job.root, families)
                    self._store.check(derived.nodes)
                except Exception as error:
                    if not writer.current(job.task, job.root):
                        continue  # its turn comes again, or it is gone
                    failure = _failure(job.task.document_id, group.name, error)
                    if on_error == "raise":
                        raise failure from error
                    writer.leave_out(job, failure)
                else:
                    writer.add(job, derived)
        except BaseException:
            writer.flush()
            raise
        self._forget_failures_of_the_gone()
        rules = self._rules(lineage)
        if self._session in rules:  # something was left out: another session tries again
            writer.flush()
            self._partial[group.name] = rules, until
        else:
            writer.flush((rules, until))
            self._partial.pop(group.name, None)

    def _forget_failures_of_the_gone(self) -> None:
        if self._failed:
            there = {CORPUS, *self._store.stamps(ROOT, {i for _, i in list(self._failed)})}
            for key in [key for key in list(self._failed) if key[1] not in there]:
                self._failed.pop(key, None)

    def _pending(self, lineage: Sequence[NodeGroup], since: int, until: int) -> list[Task]:
        """List the documents whose nodes are missing or out of date, in document order.

        Those that changed after ``until`` are left for later: their parents may not be there.
        """
        group = lineage[-1]
        with self._access.reading():
            tasks = list(self._tasks(lineage, since, until))
            old = self._store.stamps(group.name, {task.document_id for task in tasks})
        pending = []
        for task in tasks:
            failed = self._failed.get((group.name, task.document_id))
            if failed is not None and failed[0] == task.key:
                continue  # it would fail again
            if old.get(task.document_id) != (task.key, group.version, _metadata(task)):
                pending.append(task)
        if pending:
            self._access.check_write()  # before the work, not when it is to be written
        return pending

    def _tasks(self, lineage: Sequence[NodeGroup], since: int, until: int) -> Iterator[Task]:
        """Yield what a group is made from, as far as it may have changed since a revision."""
        group = lineage[-1]
        if group.scope == "group":
            if self._store.revision(ROOT) == until:
                yield Task(CORPUS, corpus_key(group, self._store.stamps(group.parent)), None)
            return
        if any(above.scope == "group" for above in lineage):
            for above_stamp in self._store.stamps(group.parent, [CORPUS]).values():
                key = digest(group.version, above_stamp.key)
                yield Task(CORPUS, key, None)
            return
        changes = self._store.changes(ROOT, since) if since else None
        ids = None if changes is None or changes.complete else [n.id for n in changes.added]
        roots = self._store.stamps(ROOT, ids)
        above = roots if group.parent == ROOT else self._store.stamps(group.parent, ids)
        later = {node.id for node in self._store.changes(ROOT, until).added}
        for document_id, root in roots.items():
            if document_id in above and document_id not in later:
                key = derivation_key(group, root, above[document_id])
                yield Task(document_id, key, root)

    def _jobs(
        self, group: NodeGroup, pending: Sequence[Task], writer: BatchWriter
    ) -> Iterator[Job]:
        """Yield the documents in order, their parents being worked on by the group's threads."""
        if group.num_workers < 2:
            for task in pending:
                if (job := self._job(group, task, writer, None)) is not None:
                    yield job
            return
        with ThreadPoolExecutor(group.num_workers, f"build-{group.name}") as pool:
            window: deque[Job] = deque()
            try:
                for task in pending:
                    if (job := self._job(group, task, writer, pool)) is not None:
                        window.append(job)
                    if len(window) > 2 * group.num_workers:
                        yield window.popleft()
                while window:
                    yield window.popleft()
            finally:  # left early: what has not begun need not be done
                pool.shutdown(wait=True, cancel_futures=True)

    def _job(
        self, group: NodeGroup, task: Task, writer: BatchWriter, pool: ThreadPoolExecutor | None
    ) -> Job | None:
        """Begin the work on one document; None if it has changed since, or is gone."""
        with self._access.reading():
            if not writer.current(task):
                return None
            (root,) = self._store.get([task.document_id]) if task.root else (None,)
            if group.scope == "group":
                everything = [self._graph.attach(n) for n in self._store.nodes(group.parent)]
                old = None
            else:
                everything = self._parents(group, task, root)
                old = self._store.derivation(group.name, task.document_id)
        if group.scope == "group":
            return Job(task, root, [(None, self._attempt(group, everything))])
        known = reusable(group, task.key, everything, old)
        known = writer.drafts.known([p for p in everything if p.id not in known]) | known
        families: list[tuple[Node | None, Made]] = []
        for parent in everything:
            if parent.id in known:
                families.append((parent, known[parent.id]))
            elif pool is not None:
                families.append((parent, pool.submit(self._run, group, parent, writer.drafts)))
            else:
                made = self._try(group, parent, writer.drafts)
                families.append((parent, made))
                if isinstance(made, Future):
                    break  # it failed: the document can't be finished
        return Job(task, root, families)

    def _parents(self, group: NodeGroup, task: Task, root: Node | None) -> list[Node]:
        if group.parent == ROOT:
            return [] if root is None else [self._graph.attach(root)]
        above = self._store.derivation(group.parent, task.document_id)
        return [self._graph.attach(node) for node in above.nodes] if above else []

    def _run(self, group: NodeGroup, parent: Node, drafts: Drafts) -> list[Draft]:
        with self.needs.inside(group.name):
            made = group.rule(parent)
        drafts.add(parent, made)
        return made

    def _try(self, group: NodeGroup, parent: Node, drafts: Drafts) -> Made:
        try:
            return self._run(group, parent, drafts)
        except Exception as error:
            return _failed(error)

    def _attempt(self, group: NodeGroup, nodes: Sequence[Node]) -> Made:
        if isinstance(group.rule, PatternRule):  # make_group refuses it
            return []
        try:
            with self.needs.inside(group.name):
                return group.rule.of_group(nodes)
        except Exception as error:
            return _failed(error)


def _metadata(task: Task) -> str:
    return "" if task.root is None else task.root.metadata


def _result(made: Made) -> list[Draft]:
    return made.result() if isinstance(made, Future) else made


def _failed(error: Exception) -> Future[list[Draft]]:
    future: Future[list[Draft]] = Future()
    future.set_exception(error)
    return future


def _failure(document_id: str, group: str, error: Exception) -> TransformError:
    failure = TransformError(document_id, group, f"{type(error).__name__}: {error}")
    failure.__cause__ = error
    return failure


class Needs:
    """Keep which groups' transforms have asked for which groups and wait for them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked: Counter[tuple[str, str]] = Counter()  # (whose transform, for which group)
        self._mine = threading.local()

    @property
    def running(self) -> str | None:
        """The group whose transform this thread is in, or None."""
        return getattr(self._mine, "group", None)

    @contextmanager
    def inside(self, group: str) -> Iterator[None]:
        """Take what this thread does in the block as done by the group's transform."""
        outer, self._mine.group = self.running, group
        try:
            yield
        finally:
            self._mine.group = outer

    @contextmanager
    def waiting(self, group: str) -> Iterator[None]:
        """Note that the transform this thread is in, if any, waits for a group.

        Raises:
            RuntimeError: If the group waits for that transform.
        """
        asking = self.running
        if asking is None:
            yield
            return
        with self._lock:
            if self._leads(group, asking):
                raise RuntimeError(
                    f"group {group!r} needs itself: the transform of group {asking!r}, which it "
                    "waits for, asks for it; let a transform ask only for groups that can be "
                    "built without its own"
                )
            self._asked[asking, group] += 1
        try:
            yield
        finally:
            with self._lock:
                self._asked[asking, group] -= 1
                self._asked += Counter()  # drops what has come to zero

    def _leads(self, group: str, to: str) -> bool:
        """Tell whether a group is another, or waits for it, directly or not."""
        return group == to or any(
            self._leads(after, to) for before, after in self._asked if before == group
        )
