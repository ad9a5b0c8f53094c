"""Build groups when they are needed: once, and only what is missing or out of date."""

from __future__ import annotations

import secrets
import threading
from collections import Counter, deque
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import lru_cache
from typing import Literal

from .build_writer import (
    FAILED_STAMP,
    BatchWriter,
    BuildCheckpoint,
    DerivationJob,
    DerivationTask,
    Failure,
    GroupFollower,
    GroupFollowers,
    PendingOutput,
)
from .concurrency import threads, track
from .derivation import (
    CORPUS,
    Amendment,
    Derivation,
    Stamp,
    corpus_key,
    derivation_key,
    derive,
    reusable,
)
from .errors import StoreError, TransformError
from .groups import NodeGroup
from .hashing import digest
from .locking import Access, Lock, mutex, release_after_fork
from .models.answer_cache import AnswerCache, keep_answers
from .node import ROOT, Node
from .store import Changes, NodeStore
from .transforms import Draft, PatternRule


class GroupBuilder:
    """Derive the missing nodes of a group, in one thread for a group, and write them in batches."""

    def __init__(
        self,
        store: NodeStore,
        access: Access,
        attach: Callable[[Node], Node],
        progress: bool | None,
    ) -> None:
        self._attach = attach  # lets a node from the store know its graph
        self._progress = progress
        self._store = store
        self._access = access
        self._building: dict[str, Lock] = {}
        # Built but for what failed: by which rules and up to which revision, as ``built`` says,
        # while the store says what it said then.
        self._partial: dict[str, tuple[tuple[str, int], tuple[str, int] | None]] = {}
        self._failed: dict[tuple[str, str], tuple[str, Failure]] = {}
        self._followers = GroupFollowers(store, attach)
        self._retries: Counter[str] = Counter()
        self._session = secrets.token_hex(8)
        self.guard = DeadlockGuard()
        self.answers = AnswerCache(store)  # of models that transforms ask
        release_after_fork(self)

    def after_fork(self) -> None:
        """Forget what threads were doing that are not in this process."""
        self._followers = GroupFollowers(self._store, self._attach)
        self.guard.after_fork()

    @property
    def failures(self) -> list[Failure]:
        """The documents left out so far, of those that still exist."""
        failed = [failure for _, failure in list(self._failed.values())]
        existing = self._store.stamps(ROOT, {failure.document for failure in failed})
        return [f for f in failed if f.document in existing or f.document == CORPUS]

    def fresh(self, lineage: Sequence[NodeGroup]) -> bool:
        """Tell whether a group, the last of its lineage, and those above are built by the rules
        and for the documents as they are now.
        """
        if not lineage:
            return True
        key = ("fresh", lineage[-1].name, _versions(lineage))
        return self._access.cached(key, lambda: self._compare(lineage))

    def _compare(self, lineage: Sequence[NodeGroup]) -> bool:
        """Return whether the groups of a lineage are built, by what the store says."""
        now = self._store.revision(ROOT)
        above = (lineage[:end] for end in range(len(lineage), 0, -1))
        return all(self._built(part) == (self._rules(part), now) for part in above)

    def _built(self, lineage: Sequence[NodeGroup]) -> tuple[str, int] | None:
        """Return by which rules and up to which revision a group is built."""
        name = lineage[-1].name
        built = self._store.built(name)
        partial, then = self._partial.get(name, (None, None))
        return partial if partial is not None and then == built else built

    def is_stored(self, lineage: Sequence[NodeGroup]) -> bool:
        """Tell whether the store has the last group of a lineage by these rules."""
        built = self._store.built(lineage[-1].name)
        return built is not None and built[0] == _versions(lineage)

    def started(self, name: str) -> bool:
        """Tell whether a group has been built for some state of the documents."""
        return name in self._partial or self._store.built(name) is not None

    def retry(self, lineage: Sequence[NodeGroup]) -> None:
        """Forget the failures in these groups, so that the next build tries again."""
        names = {group.name for group in lineage}
        for key in [key for key in list(self._failed) if key[0] in names]:
            self._failed.pop(key, None)
            self._retries[key[0]] += 1
        self._access.forget()

    def build(
        self,
        lineage: Sequence[NodeGroup],
        on_error: Literal["raise", "skip"],
    ) -> None:
        """Build the last group of a lineage, its ancestors first.

        When documents or rules change meanwhile it may be out of date afterwards.

        Args:
            lineage: The group and those above.
            on_error: What a failing transform does.

        Raises:
            TransformError: If a transform raises and is not to be skipped. Finished work
                is stored, so that only what failed is tried again.
            RuntimeError: If this thread reads the graph, or is in a transform that the group
                waits for.
            StoreError: If the store can't be written to.
        """
        if self.fresh(lineage):
            return
        for end in range(1, len(lineage) + 1):
            name = lineage[end - 1].name
            if end == len(lineage) or not self.fresh(lineage[:end]):
                with self.guard.waiting(name), self._exclusively(name):
                    if not self.fresh(lineage[:end]):
                        try:
                            self._build_last(lineage[:end], on_error)
                        finally:
                            self._access.forget()

    @contextmanager
    def _exclusively(self, name: str) -> Iterator[None]:
        """Let one thread at a time build a group, and one process any."""
        self._access.check_write()  # who builds has to write, for which it waits for readers
        lock = self._building.setdefault(name, Lock(f"another thread that builds group {name!r}"))
        with lock.held(), self._store.writing():
            yield

    def _rules(self, lineage: Sequence[NodeGroup]) -> str:
        """Name what makes a group: its version and those above; where something failed, also how
        often it was tried in this session, so that another one tries again.
        """
        versions = _versions(lineage)
        if not self._failed and not self._retries:
            return versions
        tried = [self._retries[group.name] for group in lineage]
        failed = any(tried) or any(self._has_failed(group.name) for group in lineage)
        return f"{versions} {self._session} {tried}" if failed else versions

    def _has_failed(self, group: str) -> bool:
        return any(name == group for name, _ in list(self._failed))

    def _build_last(self, lineage: Sequence[NodeGroup], on_error: str) -> None:
        group = lineage[-1]
        until, pending = self._pending(lineage)
        if until is None:
            return
        writer = BatchWriter(self._store, self._access, group, _versions(lineage), self._failed)
        writer.is_costly = group.num_workers > 1  # what several threads wait for is not timed
        try:
            # Left early, it waits for what other threads have begun, which is kept.
            with closing(self._jobs(lineage, pending, writer)) as jobs:
                self._write_jobs(group, jobs, len(pending), writer, on_error)
        except BaseException:
            if self._access.can_write():  # else an interrupt has left a block, until it is handled
                writer.flush()
            raise
        self._drop_stale_failures()
        with self._access.writing(lasting=writer.is_costly):
            writer.write()
            if writer.written < len(pending):
                return  # some changed meanwhile: the next build looks at all of them again
            rules = self._rules(lineage)
            if rules == writer.rules:
                writer.checkpoint.clear()
                self._store.mark_built(group.name, rules, until)
        if rules == writer.rules:
            self._partial.pop(group.name, None)
        else:  # something was left out: another session tries again
            self._partial[group.name] = (rules, until), self._store.built(group.name)

    def _write_jobs(
        self,
        group: NodeGroup,
        jobs: Iterator[DerivationJob],
        count: int,
        writer: BatchWriter,
        on_error: str,
    ) -> None:
        """Give each document's nodes to the writer as they are there, or its failure."""
        show = self._progress if count else False
        with closing(track(jobs, count, f"building {group.name}", " documents", show)) as tracked:
            for job in tracked:
                try:
                    derived = _derived(group, job)
                    self._store.check(derived.nodes)
                except StoreError:  # no fault of the transform: the document is not left out
                    raise
                except Exception as error:
                    if writer.revisions() != job.revisions:
                        continue  # it may have seen two states, and is done again
                    failure = _failure(job.task.document_id, group.name, error)
                    if on_error == "raise":
                        raise failure from error
                    writer.leave_out(job, failure)
                else:
                    writer.add(job, derived)

    def _drop_stale_failures(self) -> None:
        if self._failed:
            existing = {CORPUS, *self._store.stamps(ROOT, {i for _, i in list(self._failed)})}
            for key in [key for key in list(self._failed) if key[1] not in existing]:
                self._failed.pop(key, None)

    def _pending(self, lineage: Sequence[NodeGroup]) -> tuple[int | None, list[DerivationTask]]:
        """List the documents whose nodes are missing or out of date, in document order.

        Also return up to which revision the group is built with them: as far as the parent group
        is, which documents may have overtaken; None if nothing can be built now. Documents that
        changed after it are left for later: their parents may not be there.
        """
        group = lineage[-1]
        rules = self._rules(lineage)
        with self._access.reading():
            until = now = self._store.revision(ROOT)
            if len(lineage) > 1:
                by, until = self._built(lineage[:-1]) or ("", 0)
                if by != self._rules(lineage[:-1]):
                    return None, []
            by, since = self._built(lineage) or ("", 0)
            if by != rules:
                since = 0
            elif since >= until:
                return None, []
            if group.scope == "group" and until != now:
                return None, []
            tasks = self._changed(lineage, since, until, now)
            old = self._store.stamps(group.name, {task.document_id for task in tasks})
        pending = []
        for task in tasks:
            stamp = old.get(task.document_id)
            failed = self._failed.get((group.name, task.document_id))
            if failed is not None and failed[0] == task.key and stamp == FAILED_STAMP:
                continue  # it would fail again
            if stamp != (task.key, group.version, _metadata(task)):
                pending.append(task)
        if pending:
            self._access.check_write()  # before the work, not when it is to be written
        return until, pending

    def _changed(
        self, lineage: Sequence[NodeGroup], since: int, until: int, now: int
    ) -> list[DerivationTask]:
        """List what a group is made from, as far as it may have changed between two revisions."""
        if any(group.scope == "group" for group in lineage):
            return list(self._tasks(lineage, [CORPUS]))
        changes = self._store.changes(ROOT, since) if since else None
        ids = None if changes is None or changes.complete else [n.id for n in changes.added]
        added = () if until == now else self._store.changes(ROOT, until).added
        later = {node.id for node in added}
        return [task for task in self._tasks(lineage, ids) if task.document_id not in later]

    def _tasks(
        self, lineage: Sequence[NodeGroup], ids: Collection[str] | None
    ) -> Iterator[DerivationTask]:
        """Yield what a group is made from now, of some documents or all; of CORPUS if it is."""
        group = lineage[-1]
        if group.scope == "group":
            if group.following:  # the revision tells as much as all stamps, and at once
                key = digest(group.version, str(self._store.revision(group.parent)))
            else:
                key = corpus_key(group, self._store.stamps(group.parent))
            yield DerivationTask(CORPUS, key, None, None)
            return
        of_corpus = any(above.scope == "group" for above in lineage)
        roots = {} if of_corpus else self._store.stamps(ROOT, ids)
        above = roots if group.parent == ROOT else self._store.stamps(group.parent, ids)
        if of_corpus:
            for stamp in above.values():
                yield DerivationTask(CORPUS, digest(group.version, stamp.key), None, stamp)
        for document_id, root in roots.items():
            if document_id in above:
                key = derivation_key(group, root, above[document_id])
                yield DerivationTask(document_id, key, root, above[document_id])

    def _jobs(
        self,
        lineage: Sequence[NodeGroup],
        pending: Sequence[DerivationTask],
        writer: BatchWriter,
    ) -> Generator[DerivationJob, None, None]:
        """Yield the documents in order, while threads call the transform on parents."""
        num_workers = lineage[-1].num_workers
        if num_workers < 2:
            for task in pending:
                if (job := self._job(lineage, task, writer, None)) is not None:
                    yield job
            return
        with threads(num_workers, f"build-{lineage[-1].name}") as pool:
            window: deque[DerivationJob] = deque()
            for task in pending:
                if (job := self._job(lineage, task, writer, pool)) is not None:
                    window.append(job)
                if len(window) > 2 * num_workers:
                    yield window.popleft()
            while window:
                yield window.popleft()

    def _job(
        self,
        lineage: Sequence[NodeGroup],
        task: DerivationTask,
        writer: BatchWriter,
        pool: ThreadPoolExecutor | None,
    ) -> DerivationJob | None:
        """Start the work on one document; None if its sources have changed."""
        group = lineage[-1]
        with self._access.reading():
            if next(self._tasks(lineage, [task.document_id]), None) != task:
                return None
            revisions = writer.revisions()
            (root,) = self._store.get([task.document_id]) if task.root else (None,)
            follower, missed = self._followers.missed(group) if group.following else (None, None)
            if follower is not None:
                everything, old = [], None
            elif group.scope == "group":
                everything = [self._attach(n) for n in self._store.nodes(group.parent)]
                old = None
            else:
                everything = self._parents(group, task, root)
                old = self._store.derivation(group.name, task.document_id)
        if follower is not None and missed is not None:
            failed = self._follow(group, follower, missed)
            return DerivationJob(task, root, failed, revisions, follower)
        if group.scope == "group":
            return DerivationJob(task, root, [(None, self._attempt(group, everything))], revisions)
        reused = reusable(group, task.key, everything, old)
        remaining = [parent for parent in everything if parent.id not in reused]
        reused = writer.checkpoint.load(remaining, task.key) | reused
        families: list[tuple[Node | None, PendingOutput]] = []
        for parent in everything:
            if parent.id in reused:
                families.append((parent, reused[parent.id]))
            elif pool is not None:
                call = pool.submit(self._run, group, parent, task.key, writer.checkpoint)
                families.append((parent, call))
            else:
                attempt = self._try(group, parent, task.key, writer.checkpoint)
                families.append((parent, attempt))
                if isinstance(attempt, Future):
                    break  # it failed: the document can't be finished
        return DerivationJob(task, root, families, revisions)

    def _follow(
        self, group: NodeGroup, follower: GroupFollower, missed: Changes
    ) -> list[tuple[Node | None, PendingOutput]]:
        """Tell a transform what has changed in the group that it follows; return its error."""
        try:
            with self.guard.inside(group.name), keep_answers(self.answers):
                follower.update(missed.revision, missed.removed, missed.added)
        except BaseException as error:
            self._followers.drop(group)
            if not isinstance(error, Exception):
                raise
            return [(None, _failed_output(error))]
        return []

    def _parents(self, group: NodeGroup, task: DerivationTask, root: Node | None) -> list[Node]:
        if group.parent == ROOT:
            return [] if root is None else [self._attach(root)]
        above = self._store.derivation(group.parent, task.document_id)
        return [self._attach(node) for node in above.nodes] if above else []

    def _run(
        self,
        group: NodeGroup,
        parent: Node,
        key: str,
        checkpoint: BuildCheckpoint,
    ) -> list[Draft]:
        with self.guard.inside(group.name), keep_answers(self.answers):
            output = group.rule(parent)
        checkpoint.add(parent, key, output)
        return output

    def _try(
        self,
        group: NodeGroup,
        parent: Node,
        key: str,
        checkpoint: BuildCheckpoint,
    ) -> PendingOutput:
        try:
            return self._run(group, parent, key, checkpoint)
        except Exception as error:
            return _failed_output(error)

    def _attempt(self, group: NodeGroup, nodes: Sequence[Node]) -> PendingOutput:
        if isinstance(group.rule, PatternRule):  # make_group refuses it
            return []
        try:
            with self.guard.inside(group.name), keep_answers(self.answers):
                return group.rule.of_group(nodes)
        except Exception as error:
            return _failed_output(error)


@lru_cache(1024)
def _digest(versions: tuple[str, ...]) -> str:
    return digest(*versions)


def _versions(lineage: Sequence[NodeGroup]) -> str:
    """Name the rules of a group and those above."""
    return _digest(tuple(group.version for group in lineage))


def _metadata(task: DerivationTask) -> str:
    return "" if task.root is None else task.root.metadata


def _derived(group: NodeGroup, job: DerivationJob) -> Derivation | Amendment:
    """Return what is made of a document, or what is amended of a group, when that is there."""
    families = [(parent, _result(output)) for parent, output in job.families]
    stamp = Stamp(job.task.key, group.version, _metadata(job.task))
    if job.follower is not None:
        return job.follower.amendment(stamp)
    return derive(group.name, stamp, job.root, families)


def _result(output: PendingOutput) -> list[Draft]:
    return output.result() if isinstance(output, Future) else output


def _failed_output(error: Exception) -> Future[list[Draft]]:
    future: Future[list[Draft]] = Future()
    future.set_exception(error)
    return future


def _failure(document_id: str, group: str, error: Exception) -> TransformError:
    failure = TransformError(document_id, group, f"{type(error).__name__}: {error}")
    failure.__cause__ = error
    return failure


class DeadlockGuard:
    """Record which transforms wait for which groups, and refuse a wait for oneself."""

    def __init__(self) -> None:
        self._lock = mutex()
        self._requests: Counter[tuple[str, str]] = Counter()  # (whose transform, for which group)
        self._thread = threading.local()

    def after_fork(self) -> None:
        """Forget what threads wait for that are not in this process."""
        self._requests.clear()

    @property
    def running(self) -> str | None:
        """The group whose transform this thread is in, or None."""
        return getattr(self._thread, "group", None)

    @contextmanager
    def inside(self, group: str) -> Iterator[None]:
        """Note that this thread runs the group's transform until the block ends."""
        outer, self._thread.group = self.running, group
        try:
            yield
        finally:
            self._thread.group = outer

    @contextmanager
    def waiting(self, group: str) -> Iterator[None]:
        """Note that the transform this thread is in, if any, waits for a group.

        Raises:
            RuntimeError: If the group waits for that transform.
        """
        requester = self.running
        if requester is None:
            yield
            return
        with self._lock:
            if self._leads(group, requester):
                raise RuntimeError(
                    f"group {group!r} needs itself: the transform of group {requester!r}, which it "
                    "waits for, asks for it; let a transform ask only for groups that can be "
                    "built without its own"
                )
            self._requests[requester, group] += 1
        try:
            yield
        finally:
            with self._lock:
                self._requests[requester, group] -= 1
                self._requests += Counter()  # drops what has come to zero

    def _leads(self, group: str, to: str) -> bool:
        """Tell whether a group is another, or waits for it, directly or not."""
        return group == to or any(
            self._leads(after, to) for before, after in self._requests if before == group
        )
