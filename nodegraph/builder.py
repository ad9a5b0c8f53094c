"""Build groups on demand: only missing and outdated derivations, in batches."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, TypeAlias

from .concurrency import ProgressBar, call_pickled, pickled
from .derivation import CORPUS, Derivation, Stamp, corpus_key, derivation_key, derive, reusable
from .errors import StoreError, TransformError
from .groups import NodeGroup
from .hashing import digest
from .locking import Lock
from .models.answer_cache import AnswerCache, keep_answers
from .node import ROOT, Node
from .storage.graph_store import GraphStore
from .storage.rows import portions
from .transforms import Draft, PatternRule

_DOCUMENTS = 128  # documents per batch

_NODES = 2_000  # a transaction is written at this number of nodes

_SECONDS = 1.0  # write interval, so that a crash loses few results of paid models

_FAILED = Stamp("", "", "")

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


@dataclass(frozen=True, slots=True)
class _Sources:
    """The source nodes of a derivation.

    Attributes:
        root: The document. None: the nodes are derived from a whole group.
        parents: The nodes of the parent group.
        reused: Drafts of an earlier derivation that are still valid, by parent id.
    """

    root: Node | None
    parents: Sequence[Node]
    reused: Mapping[str, list[Draft]]


class GroupBuilder:
    """The builder of a graph's groups.

    Transforms run outside the graph's lock. Two threads or processes can build one group
    concurrently: they create equal nodes, and the second write changes nothing.

    Args:
        store: The store of the graph.
        attach: Connects a node from the store with its graph.
        progress: Whether to print a progress bar. None: only to a terminal.
    """

    def __init__(
        self, store: GraphStore, attach: Callable[[Node], Node], progress: bool | None
    ) -> None:
        self._store = store
        self._attach = attach
        self._progress = progress
        self._locks: dict[str, Lock] = {}  # by group
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

    def _builds(self, group: str) -> list[tuple[str, int] | None]:
        """Return the rules and ``ROOT`` revisions of the last builds of a group."""
        return [self._store.built(group), self._partial.get(group)]

    def is_stored(self, lineage: Sequence[NodeGroup]) -> bool:
        """Return whether the last complete build of a group used these rules."""
        built = self._store.built(lineage[-1].name)
        return built is not None and built[0] == _rules(lineage)

    def is_started(self, name: str) -> bool:
        """Return whether a group was built for any state of the documents."""
        return name in self._partial or self._store.built(name) is not None

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
        with self._locks.setdefault(group.name, Lock()).held(wait=not self.running):
            with self._store.turn() as state:
                if self.is_fresh(lineage) or not self.is_fresh(lineage[:-1]):
                    return  # built by another thread, or outdated again: the caller checks
                until = self._store.revision(ROOT)
                pending = self._pending(lineage)
                built = self._store.built(group.name)
            if pending and built is not None and built[0] != rules:
                self._store.mark_built(group.name, rules, 0)  # by other rules: invalid from now on
            bar.start(len(pending), f"building {group.name}")
            with self._workers(group, executor) as submit:
                for ids in portions(pending, _DOCUMENTS):
                    tasks = {i: pending[i] for i in ids}
                    self._build_batch(lineage, state, tasks, on_error, submit, bar.advance)
            self._finish(lineage, rules, until)

    def _finish(self, lineage: Sequence[NodeGroup], rules: str, until: int) -> None:
        """Mark a group as built for a ``ROOT`` revision.

        Documents that changed after that revision are derived by the next build.
        """
        name = lineage[-1].name
        above = lineage[-2].name if len(lineage) > 1 else ROOT
        with self._store.transaction(durable=False):
            builds = [build for build in self._builds(above) if build is not None]
            if above != ROOT and _rules(lineage[:-1]) not in [by for by, _ in builds]:
                return  # another process has built the parent group by other rules
            failed = any(group == name for group, _ in list(self._failed))
            if failed or above in self._partial:
                self._partial[name] = rules, until
            else:
                self._partial.pop(name, None)
                self._store.mark_built(name, rules, until)
        self._fresh = -1, set()

    def _pending(self, lineage: Sequence[NodeGroup]) -> dict[str, Stamp]:
        """Return the missing or outdated derivations, in document order. See ``_tasks``."""
        group, rules = lineage[-1], _rules(lineage)
        builds = self._builds(group.name)
        since = max((build[1] for build in builds if build and build[0] == rules), default=0)
        changed = self._store.changed_ids(ROOT, since) if since else None
        ids = None if changed is None else changed[1]
        tasks = self._tasks(lineage, ids)
        old = self._store.stamps(group.name, ids and list(tasks))
        return {i: stamp for i, stamp in tasks.items() if not self._is_done(group, i, stamp, old)}

    def _is_done(
        self, group: NodeGroup, document_id: str, stamp: Stamp, old: Mapping[str, Stamp]
    ) -> bool:
        if old.get(document_id) == _FAILED:  # skip it only if its sources are unchanged
            failed = self._failed.get((group.name, document_id))
            return failed is not None and failed[0] == stamp.key
        return old.get(document_id) == stamp

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

    def _build_batch(
        self,
        lineage: Sequence[NodeGroup],
        state: int,
        tasks: Mapping[str, Stamp],
        on_error: OnError,
        submit: _Submit | None,
        advance: Callable[[int], object],
    ) -> None:
        """Read the sources of some documents, derive nodes, and write the derivations.

        Args:
            lineage: The group with its ancestors.
            state: The state of the tasks. In another state, they are computed again.
            tasks: The expected stamps by document id.
            on_error: Whether a failing transform raises.
            submit: See ``_workers``.
            advance: Advances the progress bar.
        """
        group = lineage[-1]
        with self._store.turn() as now:
            if now != state:
                tasks = self._tasks(lineage, list(tasks))
            sources = self._sources(group, tasks)
        futures: dict[str, dict[str, Future[list[Draft]]]] = {}
        if submit is not None:
            for i, source in sources.items():
                new = [parent for parent in source.parents if parent.id not in source.reused]
                futures[i] = {parent.id: submit(parent) for parent in new}
        done: dict[str, Derivation] = {}
        failed: dict[str, Failure] = {}
        count, since = 0, time.monotonic()
        try:
            for i, source in sources.items():
                try:
                    derived = self._derive(group, tasks[i], source, futures.get(i, {}))
                    self._store.check(derived.nodes)
                    done[i] = derived
                except StoreError:  # not caused by the transform
                    raise
                except BrokenExecutor as error:
                    raise RuntimeError(
                        f"a worker of the executor that builds group {group.name!r} has ended "
                        f"({error}); finished documents are stored: build again with a new executor"
                    ) from error
                except Exception as error:
                    failure = TransformError(i, group.name, f"{type(error).__name__}: {error}")
                    with self._store.turn():
                        if self._tasks(lineage, [i]).get(i) != tasks[i]:
                            continue  # the transform may have seen two states
                    if on_error == "raise":
                        raise failure from error
                    failure.__cause__ = error
                    failed[i] = Failure(i, group.name, failure)
                    done[i] = Derivation(*_FAILED, ())
                count += len(done[i].nodes)
                if count >= _NODES or time.monotonic() - since > _SECONDS:
                    self._write(lineage, now, tasks, done, failed)
                    advance(len(done))
                    done, failed, count, since = {}, {}, 0, time.monotonic()
        finally:
            for future in (future for of_one in futures.values() for future in of_one.values()):
                future.cancel()
            self._write(lineage, now, tasks, done, failed)
            advance(len(done))

    def _sources(self, group: NodeGroup, tasks: Mapping[str, Stamp]) -> dict[str, _Sources]:
        """Read the source nodes of derivations."""
        store, ids = self._store, list(tasks)
        if group.scope == "group":
            nodes = [self._attach(node) for node in store.nodes(group.parent)]
            return {CORPUS: _Sources(None, nodes, {})} if tasks else {}
        roots = {} if CORPUS in tasks else dict(zip(ids, store.get(ids), strict=True))
        if group.parent == ROOT:
            parents = {i: [root] for i, root in roots.items() if root is not None}
        else:
            parents = {i: [*d.nodes] for i, d in store.derivations(group.parent, ids).items()}
        old = store.derivations(group.name, ids)
        sources = {}
        for i in ids:
            nodes = [self._attach(node) for node in parents.get(i, ())]
            reused = reusable(group, tasks[i].key, nodes, old.get(i))
            sources[i] = _Sources(roots.get(i), nodes, reused)
        return sources

    def _write(
        self,
        lineage: Sequence[NodeGroup],
        state: int,
        tasks: Mapping[str, Stamp],
        done: Mapping[str, Derivation],
        failed: Mapping[str, Failure],
    ) -> None:
        """Write the derivations whose sources are unchanged since a state in one transaction."""
        if not done:
            return
        group = lineage[-1]
        with self._store.transaction(durable=group.num_workers > 1) as now:
            if now != state:
                tasks_now = self._tasks(lineage, list(done))
                done = {i: derived for i, derived in done.items() if tasks_now.get(i) == tasks[i]}
            stored = self._store.stamps(group.name, list(done)) if now != state else {}
            new = {i: derived for i, derived in done.items() if stored.get(i) != derived.stamp}
            self._store.put_derivations(group.name, new)
        for i in done:
            self._failed.pop((group.name, i), None)
            if i in failed:
                self._failed[group.name, i] = tasks[i].key, failed[i]

    # Transforms

    def _derive(
        self,
        group: NodeGroup,
        stamp: Stamp,
        source: _Sources,
        futures: Mapping[str, Future[list[Draft]]],
    ) -> Derivation:
        """Return the derivation of one document, or of a whole group."""
        families: list[tuple[Node | None, Sequence[Draft]]] = []
        if group.scope == "group":
            families.append((None, self._call(group, self.running, source.parents)))
        for parent in source.parents if group.scope == "node" else ():
            drafts = source.reused.get(parent.id)
            if drafts is None and parent.id in futures:
                drafts = futures[parent.id].result()
            if drafts is None:
                drafts = self._call(group, self.running, parent)
            families.append((parent, drafts))
        return derive(group.name, stamp, source.root, families)

    def _call(
        self, group: NodeGroup, outer: tuple[str, ...], source: Node | Sequence[Node]
    ) -> list[Draft]:
        """Call the transform of a group in this thread, inside the transforms of other groups."""
        before = self.running
        self._thread.groups = (*outer, group.name)
        transform: Any = group.rule
        try:
            with keep_answers(self.answers):
                drafts: list[Draft] = (
                    transform(source) if isinstance(source, Node) else transform.of_group(source)
                )
            return drafts
        finally:
            self._thread.groups = before

    @contextmanager
    def _workers(self, group: NodeGroup, executor: Executor | None) -> Iterator[_Submit | None]:
        """Provide a function that starts the transform of a node. None: this thread calls it."""
        sees_text = not group.trans_node and not isinstance(group.rule, PatternRule)
        if executor is not None and group.scope == "node" and sees_text:
            rule = pickled(group.rule, f"the transform of group {group.name!r}")

            def send(parent: Node) -> Future[list[Draft]]:
                node = Node(parent.text, dict(parent.own_metadata), id=parent.id)
                return executor.submit(call_pickled, rule, node)

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


@lru_cache(1024)
def _digest(versions: tuple[str, ...]) -> str:
    return digest(*versions)


def _rules(lineage: Sequence[NodeGroup]) -> str:
    """Return a hash of the rules of a group and its ancestors."""
    return _digest(tuple(group.version for group in lineage))
