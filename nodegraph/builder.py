"""Build groups on demand: only missing and outdated derivations, in batches."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NamedTuple, TypeAlias

from .concurrency import ProgressBar, call_pickled, fork_safe_lock, pickled
from .derivation import CORPUS, Derivation, Stamp, corpus_key, derivation_key, derive, reusable
from .errors import StoreError, TransformError
from .groups import NodeGroup
from .hashing import digest
from .models.answer_cache import AnswerCache
from .node import ROOT, Node
from .storage.columns import portions
from .storage.graph_store import GraphStore
from .transforms import Draft

_DOCUMENTS = 128  # documents per batch

_NODES = 2_000  # a transaction is written at this number of nodes

_SECONDS = 1.0  # write interval, so that a crash loses few results of paid models

_FAILED = Stamp("", "", "")

_Source: TypeAlias = tuple[Node | None, Sequence[Node], Mapping[str, list[Draft]]]
"""A document, its nodes in the parent group, and the drafts that are still valid, by parent id.

Without a document, the nodes are derived from a whole group.
"""

_Submit: TypeAlias = Callable[[Node], Future[list[Draft]]]

OnError: TypeAlias = Literal["raise", "skip"]
"""Whether a failing transform or an unreadable file raises an error, or is skipped."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A document that is missing in a group, or a file that could not be read.

    Attributes:
        document: The id of the document. Empty for a transform of a whole group.
        group: The name of the group. ``ROOT`` for a file.
        error: The reason.
    """

    document: str
    group: str
    error: Exception


class _Output(NamedTuple):
    """A derivation to write.

    Attributes:
        document: The id of the document, or ``CORPUS``.
        task: The expected stamp.
        state: The state in which the sources were read.
        derivation: The derivation.
        failure: The failure of the transform, or None.
    """

    document: str
    task: Stamp
    state: int
    derivation: Derivation
    failure: Failure | None = None


class GroupBuilder:
    """The builder of a graph's groups.

    Transforms run outside the graph's lock. Two threads or processes can build one group
    concurrently: they create equal nodes, and the second write changes nothing.

    Args:
        store: The store of the graph.
        progress: Whether to print a progress bar. None: only to a terminal.
    """

    def __init__(self, store: GraphStore, progress: bool | None) -> None:
        self._store = store
        self._progress = progress
        self._locks: dict[str, Any] = {}  # by group
        # Builds with failed documents: rules and ROOT revision. Other processes retry them.
        self._partial: dict[str, tuple[str, int]] = {}
        self._failed: dict[tuple[str, str], tuple[str, Failure]] = {}  # by group and document
        self._fresh: tuple[int, set[tuple[str, str]]] = -1, set()
        self._thread = threading.local()
        self.answers = AnswerCache(store)

    @property
    def running(self) -> tuple[str, ...]:
        """The groups whose transforms are running in this thread, outermost first."""
        return getattr(self._thread, "groups", ())

    @property
    def failures(self) -> list[Failure]:
        """The failures of this process, for existing documents."""
        failed = [failure for _, failure in list(self._failed.values())]
        existing = self._store.stamps(ROOT, {failure.document for failure in failed})
        return [f for f in failed if f.document in existing or f.document == CORPUS]

    def is_fresh(self, lineage: Sequence[NodeGroup]) -> bool:
        """Return whether a group and its ancestors are built for the current documents."""
        if not lineage:
            return True
        with self._store.turn() as state:
            known, fresh = self._fresh
            if state != known:
                known, fresh = self._fresh = state, set()
            key = (lineage[-1].name, _rules(lineage))
            if key in fresh:
                return True
            now = self._store.revision(ROOT)
            if (key[1], now) not in self._builds(key[0]) or not self.is_fresh(lineage[:-1]):
                return False
            if state >= 0:
                fresh.add(key)
            return True

    def _builds(self, group: str) -> list[tuple[str, int]]:
        """Return the rules and ``ROOT`` revisions of the last builds of a group."""
        builds = [self._store.built(group), self._partial.get(group)]
        return [build for build in builds if build is not None]

    def is_stored(self, lineage: Sequence[NodeGroup]) -> bool:
        """Return whether a group was built by these rules."""
        return _rules(lineage) in dict(self._builds(lineage[-1].name))

    def is_started(self, name: str) -> bool:
        """Return whether a group was built for any state of the documents."""
        return bool(self._builds(name))

    def retry(self, lineage: Sequence[NodeGroup]) -> None:
        """Clear the failures of these groups, so that the next build retries them."""
        names = {group.name for group in lineage}
        for key in [key for key in list(self._failed) if key[0] in names]:
            self._failed.pop(key, None)
        self._partial.clear()  # including groups below, which lack these documents
        self._fresh = -1, set()

    def build(
        self,
        lineages: Iterable[Sequence[NodeGroup]],
        on_error: OnError,
        executor: Executor | None = None,
    ) -> None:
        """Build groups after their ancestors.

        If documents change during the build, the groups may be stale afterwards.

        Args:
            lineages: The groups, each with its ancestors.
            on_error: ``"raise"``: a failing transform raises. ``"skip"``: its document is skipped.
            executor: Runs the transforms of texts. None: this thread, or ``num_workers`` threads.

        Raises:
            TransformError: If a transform raises. Finished derivations are stored.
            RuntimeError: If this thread is inside a retrieval of the graph, or in a transform of
                one of the groups, or if a worker of the executor has ended.
            TypeError: If a transform cannot be pickled for the executor.
            StoreError: If the store cannot be written to.
        """
        with ProgressBar(" documents", self._progress) as bar:
            for lineage in lineages:
                for end in range(1, len(lineage) + 1):
                    self._build_part(lineage[:end], on_error, executor, bar)

    def _build_part(
        self,
        lineage: Sequence[NodeGroup],
        on_error: OnError,
        executor: Executor | None,
        bar: ProgressBar,
    ) -> None:
        """Build a group whose ancestors are built."""
        if self.is_fresh(lineage):
            return
        group, rules = lineage[-1], _rules(lineage)
        if group.name in self.running:
            path = " -> ".join((*self.running, group.name))
            raise RuntimeError(
                f"the transform of group {self.running[-1]!r} reads group {group.name!r}, which is "
                f"being built and needs that transform: {path}; a transform can only read groups "
                "that are built without it"
            )
        if self._store.is_held:
            raise RuntimeError(
                f"group {group.name!r} is not built, and cannot be built inside a retrieval of the "
                f"same graph; build it before: graph.build({group.name!r})"
            )
        # One thread builds a group. Inside a transform, never wait for another thread.
        lock = self._locks.setdefault(group.name, fork_safe_lock())
        is_held = lock.acquire(blocking=not self.running)
        try:
            with self._store.turn() as state:
                if self.is_fresh(lineage) or not self.is_fresh(lineage[:-1]):
                    return  # built by another thread, or outdated again: the caller checks
                until = self._store.revision(ROOT)
                pending, old = self._pending(lineage)
                built = self._store.built(group.name)
            if pending and built is not None and built[0] != rules:
                self._store.mark_built(group.name, rules, 0)  # built by other rules, so invalid
            bar.start(len(pending), f"building {group.name}")
            states = {state}
            done: list[_Output] = []
            count, since = 0, time.monotonic()
            with (
                self._workers(group, executor) as submit,
                closing(self._outputs(lineage, states, pending, old, on_error, submit)) as outputs,
            ):
                try:
                    for output in outputs:
                        done.append(output)
                        count += len(output.derivation.nodes)
                        if count >= _NODES or time.monotonic() - since > _SECONDS:
                            self._write(lineage, done, states)
                            bar.advance(len(done))
                            done, count, since = [], 0, time.monotonic()
                except BaseException:
                    self._write(lineage, done, states)
                    raise
            self._write(lineage, done, states, until)
            bar.advance(len(done))
        finally:
            if is_held:
                lock.release()

    def _pending(
        self, lineage: Sequence[NodeGroup]
    ) -> tuple[dict[str, Stamp], Mapping[str, Stamp]]:
        """Return the missing or outdated derivations, in document order, and the old stamps.

        See ``_tasks``.
        """
        group, rules = lineage[-1], _rules(lineage)
        since = max((at for by, at in self._builds(group.name) if by == rules), default=0)
        changed = self._store.changed_ids(ROOT, since) if since else None
        ids = None if changed is None else changed[1]
        tasks = self._tasks(lineage, ids)
        old = self._store.stamps(group.name, None if ids is None else list(tasks))
        pending = {}
        for i, task in tasks.items():
            key, _ = self._failed.get((group.name, i), ("", None))
            is_same_failure = old.get(i) == _FAILED and key == task.key
            if old.get(i) != task and not is_same_failure:
                pending[i] = task
        return pending, old

    def _tasks(self, lineage: Sequence[NodeGroup], ids: Collection[str] | None) -> dict[str, Stamp]:
        """Return the expected stamps of a group for the current documents, by document id.

        The id is ``CORPUS`` for nodes derived from a whole group. Documents whose parent derivation
        has outdated metadata are left to the next build.

        Args:
            lineage: The group with its ancestors.
            ids: The ids of documents. None: all documents.
        """
        group, store = lineage[-1], self._store
        if group.scope == "group":
            key = corpus_key(group, store.stamps(group.parent))
            return {CORPUS: Stamp(key, group.version, "")}
        if any(above.scope == "group" for above in lineage):
            stamps = store.stamps(group.parent, [CORPUS])
            return {
                i: Stamp(digest(group.version, stamp.key), group.version, "")
                for i, stamp in stamps.items()
            }
        roots = store.stamps(ROOT, ids)
        above_stamps = roots if group.parent == ROOT else store.stamps(group.parent, ids)
        return {
            i: Stamp(derivation_key(group, root, above_stamps[i]), group.version, root.metadata)
            for i, root in roots.items()
            if i in above_stamps
            and (above_stamps[i] == _FAILED or above_stamps[i].metadata == root.metadata)
        }

    # One batch

    def _outputs(
        self,
        lineage: Sequence[NodeGroup],
        states: Collection[int],
        pending: Mapping[str, Stamp],
        old: Mapping[str, Stamp],
        on_error: OnError,
        submit: _Submit | None,
    ) -> Generator[_Output, None, None]:
        """Read the sources of documents in batches, and yield derivations.

        Args:
            lineage: The group with its ancestors.
            states: The states in which the tasks are valid. Otherwise, they are computed again.
            pending: The expected stamps by document id.
            old: The stamps of the old derivations.
            on_error: Whether a failing transform raises.
            submit: See ``_workers``.
        """
        group = lineage[-1]
        for ids in portions(pending, _DOCUMENTS):
            tasks = {i: pending[i] for i in ids}
            with self._store.turn() as now:
                if now not in states:
                    tasks = self._tasks(lineage, ids)
                    old = tasks
                sources = self._sources(group, tasks, [i for i in tasks if i in old])
            futures: dict[str, Future[list[Draft]]] = {}
            if submit is not None:
                for _, parents, reused in sources.values():
                    futures |= {p.id: submit(p) for p in parents if p.id not in reused}
            try:
                for i, source in sources.items():
                    try:
                        derivation = self._derive(group, tasks[i], source, futures)
                        self._store.check(derivation.nodes)
                        output = _Output(i, tasks[i], now, derivation)
                    except StoreError:  # not caused by the transform
                        raise
                    except BrokenExecutor as error:
                        raise RuntimeError(
                            f"a worker of the executor that builds group {group.name!r} has ended "
                            f"({error}); finished documents are stored: build again with a new "
                            "executor"
                        ) from error
                    except Exception as error:
                        with self._store.turn():
                            if self._tasks(lineage, [i]).get(i) != tasks[i]:
                                continue  # the transform may have seen two states
                        reason = f"{type(error).__name__}: {error}"
                        failure = TransformError(i, group.name, reason)
                        if on_error == "raise":
                            raise failure from error
                        failure.__cause__ = error
                        failed = Failure(i, group.name, failure)
                        output = _Output(i, tasks[i], now, Derivation(_FAILED, ()), failed)
                    yield output
            finally:
                for future in futures.values():
                    future.cancel()

    def _sources(
        self, group: NodeGroup, tasks: Mapping[str, Stamp], reused: Sequence[str]
    ) -> dict[str, _Source]:
        """Read the source nodes of derivations, and the old derivations of some documents."""
        store, ids = self._store, list(tasks)
        if group.scope == "group":
            nodes = [*store.nodes(group.parent)] if tasks else []
            return {i: (None, nodes, {}) for i in tasks}
        roots = {} if CORPUS in tasks else dict(zip(ids, store.get(ids), strict=True))
        if group.parent == ROOT:
            parents = {i: [root] for i, root in roots.items() if root is not None}
        else:
            parents = {i: [*d.nodes] for i, d in store.derivations(group.parent, ids).items()}
        old = store.derivations(group.name, reused)
        sources: dict[str, _Source] = {}
        for i in ids:
            nodes = parents.get(i, [])
            sources[i] = roots.get(i), nodes, reusable(group, tasks[i].key, nodes, old.get(i))
        return sources

    def _write(
        self,
        lineage: Sequence[NodeGroup],
        outputs: Sequence[_Output],
        states: set[int],
        until: int | None = None,
    ) -> None:
        """Write the derivations whose sources are unchanged, in one transaction.

        Args:
            lineage: The group with its ancestors.
            outputs: The derivations.
            states: The states between which only this build has written. The new state is added.
            until: The ``ROOT`` revision of a complete build. None: the build is incomplete.
        """
        group = lineage[-1]
        new = {output.document: output.derivation for output in outputs}
        with self._store.transaction(durable=group.num_workers > 1) as (now, after):
            valid = states if now in states else {now}
            if any(output.state not in valid for output in outputs):
                tasks = self._tasks(lineage, list(new))
                stored = self._store.stamps(group.name, list(new))
                new = {
                    output.document: output.derivation
                    for output in outputs
                    if tasks.get(output.document) == output.task
                    and stored.get(output.document) != output.derivation.stamp
                }
            self._store.put_derivations(group.name, new)
            for output in outputs:
                self._failed.pop((group.name, output.document), None)
                if output.failure is not None:
                    self._failed[group.name, output.document] = output.task.key, output.failure
            if until is not None:
                self._finish(lineage, until)
            if now in states:
                states.add(after)
        self._fresh = -1, set()

    def _finish(self, lineage: Sequence[NodeGroup], until: int) -> None:
        """Mark a group as built for a ``ROOT`` revision; inside a transaction.

        Documents that changed after that revision are derived by the next build.
        """
        name, rules = lineage[-1].name, _rules(lineage)
        above = lineage[-2].name if len(lineage) > 1 else ROOT
        if above != ROOT and not self.is_stored(lineage[:-1]):
            return  # another process has built the parent group by other rules
        failed = any(group == name for group, _ in list(self._failed))
        if failed or above in self._partial:
            self._partial[name] = rules, until
        else:
            self._partial.pop(name, None)
            self._store.mark_built(name, rules, until)

    # Transforms

    def _derive(
        self,
        group: NodeGroup,
        stamp: Stamp,
        source: _Source,
        futures: Mapping[str, Future[list[Draft]]],
    ) -> Derivation:
        """Return the derivation of one document, or of a whole group."""
        root, parents, reused = source
        families: list[tuple[Node | None, Sequence[Draft]]] = []
        if group.scope == "group":
            families.append((None, self._call(group, self.running, parents)))
        for parent in parents if group.scope == "node" else ():
            drafts = reused.get(parent.id)
            if drafts is None and parent.id in futures:
                drafts = futures[parent.id].result()
            if drafts is None:
                drafts = self._call(group, self.running, parent)
            families.append((parent, drafts))
        return derive(group.name, stamp, root, families)

    def _call(
        self, group: NodeGroup, outer: tuple[str, ...], source: Node | Sequence[Node]
    ) -> list[Draft]:
        """Call the transform of a group in this thread, inside the transforms of other groups."""
        before = self.running
        self._thread.groups = (*outer, group.name)
        try:
            return group.rule(source, self.answers)
        finally:
            self._thread.groups = before

    @contextmanager
    def _workers(self, group: NodeGroup, executor: Executor | None) -> Iterator[_Submit | None]:
        """Provide a function that starts the transform of a node. None: this thread calls it."""
        if executor is not None and group.scope == "node" and not group.rule.trans_node:
            rule = pickled(group.rule, f"the transform of group {group.name!r}")

            def send(parent: Node) -> Future[list[Draft]]:
                node = Node(parent.text, dict(parent.own_metadata), id=parent.id)
                try:
                    return executor.submit(call_pickled, rule, node)
                except BrokenExecutor as error:  # a worker ended before this call
                    failed = Future[list[Draft]]()
                    failed.set_exception(error)
                    return failed

            yield send
        elif group.num_workers > 1 and group.scope == "node":
            outer = self.running
            with ThreadPoolExecutor(group.num_workers, f"build-{group.name}") as threads:
                try:
                    yield lambda parent: threads.submit(self._call, group, outer, parent)
                finally:
                    threads.shutdown(cancel_futures=True)
        else:
            yield None


_digest = lru_cache(1024)(digest)


def _rules(lineage: Sequence[NodeGroup]) -> str:
    """Return a hash of the rules of a group and its ancestors."""
    return _digest(*(group.version for group in lineage))
