"""Build node groups on demand, in batches. Only missing and outdated nodes are derived."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias
from weakref import WeakSet

from .concurrency import ProgressBar, call_pickled, fork_safe_lock, pickled
from .derivation import (
    CORPUS,
    Derivation,
    MergedMetadata,
    Stamp,
    corpus_key,
    derivation_key,
    derive,
    reusable,
)
from .errors import Failure, OnError, StoreError, TransformError
from .groups import Lineage, NodeGroup
from .hashing import digest, digests
from .models.answer_cache import AnswerCache
from .node import ROOT, Node
from .storage.graph_store import GraphStore
from .transforms import Draft

if TYPE_CHECKING:
    from .splitters.passage_splitter import Part
    from .splitters.plain_parts import PlainSplitter, PlainText

_FIRST_DOCUMENTS = 16  # number of documents in the first batch

_DOCUMENTS = 128  # maximum number of documents in a batch

_CHARACTERS = 300_000  # approximate maximum number of characters in the nodes of a batch

_NODES = 2_000  # a transaction is committed after this number of nodes

_SECONDS = 1.0  # seconds between commits, so that few results of paid models are lost in a crash

_FAILED = Stamp("", "", "")

_Source: TypeAlias = tuple[Node | None, Sequence[Node], dict[str, list[Draft]]]
"""The input for deriving the nodes of one document.

A tuple of the document, its nodes in the parent group, and the transform outputs that can be
reused, keyed by parent id. The document is None if the nodes are derived from a whole group.
"""

_Submit: TypeAlias = Callable[[Node], Future[list[Draft]]]


class _Batch(NamedTuple):
    """A batch of documents whose nodes are derived together.

    Attributes:
        tasks: The stamp (the content hashes) that each derivation will have, keyed by document id.
        sources: The input for each derivation, keyed by document id.
    """

    tasks: dict[str, Stamp]
    sources: dict[str, _Source]

    @property
    def characters(self) -> int:
        """The total number of characters in the nodes that still have to be transformed."""
        return sum([len(parent.text) for parent, _ in self.missing()])

    def missing(self) -> Iterator[tuple[Node, dict[str, list[Draft]]]]:
        """Yield each node that still has to be transformed, with the outputs for its document."""
        for _, parents, drafts in self.sources.values():
            for parent in parents:
                if parent.id not in drafts:
                    yield parent, drafts


@dataclass
class _Build:
    """The state of a build of one node group.

    Attributes:
        lineage: The group and its ancestors.
        on_error: Whether an error in a transform is raised or skipped.
        bar: The progress bar.
        revisions: The revisions of the graph for which the tasks were computed.
        tasks: The expected stamps of missing and outdated derivations, keyed by document id.
        old: The ids of documents that may have been derived before.
        done: The derivations that are ready to be written, keyed by document id.
        failures: The documents in ``done`` for which the transform failed.
        count: The number of nodes that are ready to be written.
        keeps_nodes: Whether all nodes so far equal the nodes that will be read from the store.
        since: The time at which nodes were last written.
    """

    lineage: Lineage
    on_error: OnError
    bar: ProgressBar
    revisions: tuple[int, int]
    tasks: dict[str, Stamp]
    old: Collection[str]
    done: dict[str, Derivation] = field(default_factory=dict)
    failures: dict[str, Failure] = field(default_factory=dict)
    count: int = 0
    keeps_nodes: bool = True
    since: float = field(default_factory=lambda: time.monotonic())


class NodeListener(Protocol):
    """An object that is informed about new nodes, such as an index."""

    def nodes_written(self, nodes: Sequence[Node]) -> None:
        """Receive nodes that were written to the store during a build, in the order of the build.

        The graph is not locked. The nodes equal the nodes that will be read from the store, unless
        they are changed before. This method must return quickly and must not raise errors.
        """


class GroupBuilder:
    """Builds the node groups of a graph.

    Transforms run without holding the graph's lock. If two threads or processes build the same
    group concurrently, they create equal nodes, so the second write changes nothing.

    Args:
        store: The store of the graph.
        progress: Whether to display a progress bar. If None, it is displayed only in a terminal.
    """

    def __init__(self, store: GraphStore, progress: bool | None) -> None:
        self._store = store
        self._progress = progress
        self._locks: dict[str, Any] = {}  # keyed by group name
        # Builds in which some documents failed: the hash of the rules and the revision of ROOT.
        # They are not stored, so other processes retry the documents.
        self._partial: dict[str, tuple[str, int]] = {}
        # keyed by group name and document id
        self._failed: dict[tuple[str, str], tuple[Stamp, Failure]] = {}
        self._thread = threading.local()
        self._merged = MergedMetadata()
        self._listeners: dict[str, WeakSet[NodeListener]] = {}  # keyed by group name
        self._listener_lock = fork_safe_lock()
        self.answers = AnswerCache(store)

    @property
    def running(self) -> tuple[str, ...]:
        """The groups whose transforms are currently running in this thread, outermost first."""
        return getattr(self._thread, "groups", ())

    @property
    def failures(self) -> list[Failure]:
        """The documents that still exist and could not be transformed in this process."""
        failed = [failure for _, failure in list(self._failed.values())]
        existing = self._store.stamps(ROOT, {failure.document for failure in failed})
        return [f for f in failed if f.document in existing or f.document == CORPUS]

    @property
    def has_failures(self) -> bool:
        """True if a transform failed for some documents during a build in this process."""
        return bool(self._partial)

    def add_listener(self, group: str, listener: NodeListener) -> None:
        """Inform an object about new nodes of a group until it is garbage-collected."""
        with self._listener_lock:
            self._listeners.setdefault(group, WeakSet()).add(listener)

    def is_fresh(self, lineage: Lineage) -> bool:
        """Return whether a group and its ancestors are up to date with the current documents."""
        return self._fresh_groups(lineage) == len(lineage)

    def _fresh_groups(self, lineage: Lineage) -> int:
        """Return how many groups are up to date, counted from the topmost ancestor."""
        with self._store.transactions.turn():
            now = self._store.groups.revision(ROOT)
            all_rules = _rules_of_all(lineage)
            for number, group in enumerate(lineage):
                if (all_rules[number], now) not in self.builds(group.name):
                    return number
        return len(lineage)

    def builds(self, group: str) -> list[tuple[str, int]]:
        """Return the rules hash and the ``ROOT`` revision of each recent build of a group."""
        builds = [self._store.groups.built(group), self._partial.get(group)]
        return [build for build in builds if build is not None]

    def is_stored(self, lineage: Lineage) -> bool:
        """Return whether the stored nodes of a group were created with the current rules."""
        return _rules(lineage) in dict(self.builds(lineage[-1].name))

    def retry(self, lineage: Lineage) -> None:
        """Clear the failures recorded for these groups, so that the next build retries them."""
        names = {group.name for group in lineage}
        for key in [key for key in list(self._failed) if key[0] in names]:
            self._failed.pop(key, None)
        self._partial.clear()  # Groups derived from these groups also lack the failed documents.

    def build(
        self, lineages: Iterable[Lineage], on_error: OnError, executor: Executor | None = None
    ) -> None:
        """Build groups. The ancestors of each group are built first.

        If documents change during the build, the groups may be out of date afterwards.

        Args:
            lineages: The groups to build, each with its ancestors.
            on_error: If ``"raise"``, an error in a transform is raised. If ``"skip"``, the document
                is skipped.
            executor: An executor for transforms that receive texts. If None, they run in this
                thread or in ``num_workers`` threads.

        Raises:
            TransformError: If a transform raises an error. Documents that were finished before are
                stored.
            RuntimeError: If the call is made during a search in the graph or inside a transform of
                one of the groups, or if a worker of the executor has ended.
            TypeError: If a transform cannot be pickled for the executor.
            StoreError: If the store cannot be written to.
        """
        with ProgressBar(" documents", self._progress) as bar:
            for lineage in lineages:
                first = self._fresh_groups(lineage)
                for end in range(first + 1, len(lineage) + 1):
                    self._build_group(lineage[:end], on_error, executor, bar)
                    self._store.database.truncate_log()
                if first < len(lineage):
                    self._forget_documents()

    def _forget_documents(self) -> None:
        """Discard the new documents that are kept in memory for the first build."""
        with self._store.database.lock:
            self._store.forget_written_documents()

    def _build_group(
        self, lineage: Lineage, on_error: OnError, executor: Executor | None, bar: ProgressBar
    ) -> None:
        """Build a group whose ancestors are already built."""
        if self.is_fresh(lineage):
            return
        group = lineage[-1]
        rules = _rules(lineage)
        if group.name in self.running:
            path = " -> ".join((*self.running, group.name))
            raise RuntimeError(
                f"the transform of group {self.running[-1]!r} reads group {group.name!r}, which is "
                f"being built and needs that transform: {path}; a transform can only read groups "
                "that are built without it"
            )
        if self._store.transactions.is_held:
            raise RuntimeError(
                f"group {group.name!r} is not built, and cannot be built inside a retrieval of the "
                f"same graph; build it before: graph.build({group.name!r})"
            )
        # Only one thread at a time builds a group. A thread that runs a transform never waits,
        # because waiting for another thread could deadlock.
        lock = self._locks.setdefault(group.name, fork_safe_lock())
        with nullcontext() if self.running else lock:
            with self._store.transactions.turn():
                if self.is_fresh(lineage) or not self.is_fresh(lineage[:-1]):
                    # Another thread has built it, or it is outdated again. The caller checks this.
                    return
                revisions = self._revisions(group)
                build = _Build(lineage, on_error, bar, revisions, *self._pending(lineage))
                # Nodes that were derived from a whole group are not attached to the graph.
                build.keeps_nodes = group.scope == "node"
                built = self._store.groups.built(group.name)
            if build.tasks and built is not None and built[0] != rules:
                # The stored nodes were created with different rules, so they are invalid.
                self._store.groups.mark_built(group.name, rules, 0)
            bar.start(len(build.tasks), f"building {group.name}")
            with self._workers(group, executor) as submit:
                try:
                    for batch in self._split_batches(build, executor):
                        self._build_batch(build, batch, submit)
                except BaseException:
                    self._write(build)
                    raise
                self._write(build, revisions[0])

    def _revisions(self, group: NodeGroup) -> tuple[int, int]:
        """Return the revisions of ``ROOT`` and the parent group, which determine the work to do."""
        return self._store.groups.revision(ROOT), self._store.groups.revision(group.parent)

    def _pending(self, lineage: Lineage) -> tuple[dict[str, Stamp], Collection[str]]:
        """Return the derivations that are missing or outdated, and those that already exist.

        Both are keyed by document id. The missing and outdated derivations are in document order.
        """
        group = lineage[-1]
        rules = _rules(lineage)
        since = max((at for by, at in self.builds(group.name) if by == rules), default=0)
        changed = self._store.groups.changed_ids(ROOT, since) if since else None
        if changed is None:
            tasks = self._tasks(lineage, None)
            old = self._store.stamps(group.name)
        else:
            tasks = self._tasks(lineage, changed[1])
            old = self._store.stamps(group.name, list(tasks))
        pending: dict[str, Stamp] = {}
        for i, task in tasks.items():
            failed = self._failed.get((group.name, i))
            if old.get(i) != task and (failed is None or failed[0] != task):
                pending[i] = task
        return pending, old

    def _tasks(self, lineage: Lineage, ids: Collection[str] | None) -> dict[str, Stamp]:
        """Compute the stamps (content hashes) that a group should have for the current documents.

        For a group that is derived from a whole parent group, the only key is ``CORPUS``. A
        document is skipped until the next build if the metadata of its parent nodes is outdated.

        Args:
            lineage: The group and its ancestors.
            ids: The document ids. If None, all documents are included.

        Returns:
            The stamps, keyed by document id.
        """
        group = lineage[-1]
        store = self._store
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
        tasks: dict[str, Stamp] = {}
        for i, root in roots.items():
            above = above_stamps.get(i)
            if above is not None and (above == _FAILED or above.metadata == root.metadata):
                key = derivation_key(group, root, above)
                tasks[i] = Stamp(key, group.version, root.metadata)
        return tasks

    # Processing one batch

    def _batches(self, build: _Build) -> Iterator[_Batch]:
        """Read the documents to be processed and yield them in batches."""
        group = build.lineage[-1]
        ids = list(build.tasks)
        start = 0
        count = _FIRST_DOCUMENTS
        while start < len(ids):
            tasks = {i: build.tasks[i] for i in ids[start : start + count]}
            start += count
            with self._store.transactions.turn():
                if self._revisions(group) != build.revisions:
                    tasks = build.old = self._tasks(build.lineage, tasks)
                    build.tasks |= tasks
                sources = self._sources(group, tasks, [i for i in tasks if i in build.old])
            batch = _Batch(tasks, sources)
            yield batch
            of_one = max(1, batch.characters // count)
            count = max(1, min(_DOCUMENTS, _CHARACTERS // of_one))

    def _split_batches(self, build: _Build, executor: Executor | None) -> Iterator[_Batch]:
        """Yield the batches of documents.

        If the transform is a built-in splitter, the texts are split in parallel processes.
        """
        group = build.lineage[-1]
        batches = self._batches(build)
        splitter = _plain_splitter(group)
        if splitter is None or executor is not None or group.num_workers > 1:
            return batches
        if group.scope == "group":
            return batches
        return _with_parts(batches, splitter, len(build.tasks))

    def _build_batch(self, build: _Build, batch: _Batch, submit: _Submit | None) -> None:
        """Derive the nodes of a batch of documents.

        The results are written to the store when enough nodes have accumulated, or after some time.

        Args:
            build: The state of the build.
            batch: The batch of documents.
            submit: A function that starts the transform of a node in a worker, or None.
        """
        group = build.lineage[-1]
        tasks = batch.tasks
        has_storable_nodes = _plain_splitter(group) is not None
        futures: dict[str, Future[list[Draft]]] = {}
        try:
            if submit is not None:
                futures = {parent.id: submit(parent) for parent, _ in batch.missing()}
            for i, source in batch.sources.items():
                try:
                    derivation = self._derive(group, tasks[i], source, futures)
                    if not has_storable_nodes and not derivation.has_plain_nodes:
                        self._store.node_rows.check(derivation.nodes)
                        build.keeps_nodes = False
                except (StoreError, BrokenExecutor):  # not caused by the transform
                    raise
                except Exception as error:
                    with self._store.transactions.turn():
                        if self._tasks(build.lineage, [i]).get(i) != tasks[i]:
                            continue  # The document changed while the transform was running.
                    failure = TransformError(i, group.name, f"{type(error).__name__}: {error}")
                    if build.on_error == "raise":
                        raise failure from error
                    failure.__cause__ = error
                    derivation = Derivation(_FAILED, ())
                    build.failures[i] = Failure(i, group.name, failure)
                build.done[i] = derivation
                build.count += len(derivation.nodes)
                if build.count >= _NODES or time.monotonic() - build.since > _SECONDS:
                    self._write(build)
        finally:
            for future in futures.values():
                future.cancel()

    def _sources(
        self, group: NodeGroup, tasks: Mapping[str, Stamp], reused: Sequence[str]
    ) -> dict[str, _Source]:
        """Read the nodes to transform, and the existing outputs that can be reused."""
        store = self._store
        ids = list(tasks)
        if group.scope == "group":
            return {i: (None, list(store.nodes.of_group(group.parent)), {}) for i in ids}
        roots = dict(zip(ids, store.nodes.get(ids), strict=True))
        if group.parent == ROOT:
            parents = {i: [root] for i, root in roots.items() if root is not None}
        else:
            parents = store.derived_nodes(group.parent, ids)
        old = store.derivations(group.name, reused)
        return {
            i: (roots[i], nodes, reusable(group, tasks[i].key, nodes, old.get(i)))
            for i, nodes in parents.items()
        }

    def _write(self, build: _Build, until: int | None = None) -> None:
        """Write the derivations in one transaction, except those whose documents have changed.

        Args:
            build: The state of the build.
            until: The revision of ``ROOT`` for which the build is complete. If None, the build is
                incomplete.
        """
        group = build.lineage[-1]
        done = build.done
        with self._store.transactions.transaction(durable=group.num_workers > 1, derived=True):
            keep_nodes = build.keeps_nodes
            are_current = True
            if self._revisions(group) != build.revisions:
                tasks = self._tasks(build.lineage, list(done))
                done = {i: new for i, new in done.items() if tasks.get(i) == build.tasks[i]}
                keep_nodes = False  # A document that was removed and added again has moved.
                are_current = False
            self._store.put_derivations(
                group.name, done, keep_nodes=keep_nodes, are_current=are_current
            )
            for i in done:
                self._failed.pop((group.name, i), None)
                if i in build.failures:
                    self._failed[group.name, i] = build.tasks[i], build.failures[i]
            if until is not None:
                self._finish(build.lineage, until)
        if keep_nodes:
            self._inform_listeners(group.name, done)
        build.bar.advance(len(build.done))
        build.done = {}
        build.count = 0
        build.since = time.monotonic()

    def _inform_listeners(self, group: str, done: Mapping[str, Derivation]) -> None:
        with self._listener_lock:
            listeners = [*self._listeners.get(group, ())]
        if not listeners:
            return
        nodes = [node for derivation in done.values() for node in derivation.nodes]
        for listener in listeners:
            listener.nodes_written(nodes)

    def _finish(self, lineage: Lineage, until: int) -> None:
        """Record that a group is completely built for a revision of ``ROOT``.

        This must be called inside a transaction. Documents that changed after this revision are
        processed by the next build.
        """
        name = lineage[-1].name
        rules = _rules(lineage)
        if len(lineage) > 1 and not self.is_stored(lineage[:-1]):
            return  # another process has built the parent group with different rules
        has_failed = any(failure.group == name for failure in self.failures)
        if has_failed or lineage[-1].parent in self._partial:
            self._partial[name] = rules, until
        else:
            self._partial.pop(name, None)
            self._store.groups.mark_built(name, rules, until)

    # Transforms

    def _derive(
        self,
        group: NodeGroup,
        stamp: Stamp,
        source: _Source,
        futures: Mapping[str, Future[list[Draft]]],
    ) -> Derivation:
        """Derive the nodes of one document, or of a whole group, and return the derivation."""
        root, parents, reused = source
        if group.scope == "group":
            return derive(
                group.name, stamp, root, [(None, self._call(group, parents))], self._merged
            )
        families: list[tuple[Node, list[Draft]]] = []
        for parent in parents:
            if parent.id in reused:
                drafts = reused[parent.id]
            elif parent.id in futures:
                drafts = futures[parent.id].result()
            else:
                drafts = self._call(group, parent)
            families.append((parent, drafts))
        return derive(group.name, stamp, root, families, self._merged)

    def _call(self, group: NodeGroup, source: Node | Sequence[Node]) -> list[Draft]:
        """Call the transform of a group.

        The call may be nested in the transform of another group.
        """
        outer = self.running
        self._thread.groups = (*outer, group.name)
        try:
            return group.rule(source, self.answers)
        finally:
            self._thread.groups = outer

    @contextmanager
    def _workers(self, group: NodeGroup, executor: Executor | None) -> Iterator[_Submit | None]:
        """Provide a function that starts the transform of a node in a worker thread or process.

        If the function is None, the caller has to run the transforms itself.
        """
        if executor is not None and group.scope == "node" and not group.rule.trans_node:
            rule = pickled(group.rule, f"the transform of group {group.name!r}")
            try:
                yield lambda parent: executor.submit(call_pickled, rule, Node(parent.text))
            except BrokenExecutor as error:
                raise RuntimeError(
                    f"a worker of the executor that builds group {group.name!r} has ended "
                    f"({error}); finished documents are stored: build again with a new executor"
                ) from error
        elif group.num_workers > 1 and group.scope == "node":
            outer = (self._thread, "groups", self.running)
            with ThreadPoolExecutor(
                group.num_workers, f"build-{group.name}", setattr, outer
            ) as pool:
                yield lambda parent: pool.submit(self._call, group, parent)
        else:
            yield None


def _plain_splitter(group: NodeGroup) -> PlainSplitter | None:
    """Return a version of a built-in splitter that can be pickled, or None for other transforms."""
    from .splitters.plain_parts import plain_splitter

    return plain_splitter(group.rule.call)


def _with_parts(
    batches: Iterator[_Batch], splitter: PlainSplitter, num_documents: int
) -> Iterator[_Batch]:
    """Split the texts of each batch in parallel processes, and yield the batches with the results.

    A text for which the splitter raises an error has no results. The caller then calls the
    transform again and reports the error.

    Args:
        batches: The batches.
        splitter: The splitter, which can be pickled.
        num_documents: The total number of documents in all batches.
    """
    from .splitters.plain_parts import split_all
    from .workers.idle_processors import WORTH_STARTING, shared_map, work_of

    waiting: deque[_Batch] = deque()
    # Nodes of a batch with equal metadata share one dictionary.
    shared: dict[str, dict[str, Any]] = {}

    def texts() -> Iterator[list[PlainText]]:
        for batch in batches:
            waiting.append(batch)
            yield splitter.plain_texts([parent for parent, _ in batch.missing()])

    def is_worth(texts: list[PlainText]) -> bool:
        work = work_of([text for text, *_ in texts])
        return work * num_documents >= WORTH_STARTING * len(waiting[0].tasks)

    def draft(parent: Node, part: Part) -> Draft:
        start, end, metadata = part
        if metadata:
            metadata = shared.setdefault(repr(metadata), metadata)
        return Draft(parent.text[start:end], None, metadata, start, end)

    for parts_of_texts in shared_map(partial(split_all, splitter.parts_of), texts(), is_worth):
        batch = waiting.popleft()
        for (parent, drafts), parts in zip([*batch.missing()], parts_of_texts, strict=True):
            if parts is not None:
                drafts[parent.id] = [draft(parent, part) for part in parts]
        shared.clear()
        yield batch


_digests = lru_cache(256)(digests)


def _rules_of_all(lineage: Lineage) -> tuple[str, ...]:
    """Return a hash for each group in a lineage, computed from its own and its ancestors' rules."""
    return _digests(*[group.version for group in lineage])


def _rules(lineage: Lineage) -> str:
    """Return a hash of the rules of a group and all its ancestors."""
    return _rules_of_all(lineage)[-1]
