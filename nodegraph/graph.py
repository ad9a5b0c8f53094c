"""The node graph: documents, and the groups made from them when they are needed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, TypeVar

from .builder import Failure, GroupBuilder
from .corpus import Corpus, Reading, Refresh
from .document import Document, as_document, flatten
from .embedder import as_embedders
from .embeddings import Embeddings
from .errors import nearest
from .find import find
from .group import GroupSummary, NodeGroup, make_group
from .locks import ReadWriteLock
from .memory_store import MemoryStore
from .node import ROOT, Node
from .registry import GroupRegistry
from .sentence_splitter import SentenceSplitter
from .store import Changes, NodeStore

T = TypeVar("T")
OnError = Literal["raise", "skip"]

PREDEFINED = {"CoarseChunk": (1024, 100), "MediumChunk": (256, 25), "FineChunk": (128, 12)}


class NodeGraph:
    """Hold a corpus as documents and named groups of nodes made from them.

    Declaring a group builds nothing: it is built when something first needs it, its ancestors
    before it, once, for all documents. Documents may come, change and go at any time; only what
    depends on them is made again. All methods may be called from many threads.

    Args:
        source: Path of a folder or a file, or a list of them. Texts are added with ``add``.
        embed: The embedding model, or several by key: ``{"e5": model, "title": other}``. A
            callable from a list of texts to vectors, an ``Embedder``, or a model of LangChain,
            LlamaIndex, or sentence-transformers. Nothing is embedded until a search needs it.
        store: What holds the nodes; memory by default.
        on_error: What a failing transform or an unreadable file does: ``"raise"``, or ``"skip"``
            to go on without the document and list it in ``failures``.
        progress: Whether long builds draw a progress bar on stderr; None where it is a terminal.

    Raises:
        ReadError: If a source can't be read.

    Example:
        >>> graph = NodeGraph()
        >>> ids = graph.add(["Tea is a drink. It is made of leaves.", "Rivers run."])
        >>> graph.create_node_group("sentence", lambda text: text.split(". "))
        >>> [node.text for node in graph.nodes("sentence")]
        ['Tea is a drink', 'It is made of leaves.', 'Rivers run.']
    """

    def __init__(
        self,
        source: str | Path | Sequence[str | Path] | None = None,
        *,
        embed: object = None,
        store: NodeStore | None = None,
        on_error: OnError = "raise",
        progress: bool | None = None,
    ) -> None:
        if isinstance(store, str | Path):
            raise TypeError(f"store takes a store, not a path yet ({store!r}); leave it out")
        _check_on_error(on_error)
        self.on_error: OnError = on_error
        self.progress = progress
        self._store: NodeStore = MemoryStore() if store is None else store
        self._embedders = as_embedders(embed)
        self._registry = GroupRegistry()
        self._corpus = Corpus()
        self._set_up()
        for name, (size, overlap) in PREDEFINED.items():
            self.create_node_group(name, SentenceSplitter, chunk_size=size, chunk_overlap=overlap)
        for each in () if source is None else flatten(source):
            if not isinstance(each, str | Path):
                raise TypeError(
                    f"source takes paths, not {each!r:.80}; add texts and documents with add()"
                )
            self.add(Path(each))

    def _set_up(self) -> None:
        self._lock = ReadWriteLock()
        self._builder = GroupBuilder(self, self._store, self._lock)
        self.embeddings = Embeddings(self._store, self._embedders, self.progress)
        self._shared: dict[object, object] = {}
        self._shared_lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        derived = ("_lock", "_builder", "embeddings", "_shared", "_shared_lock")
        return {k: v for k, v in self.__dict__.items() if k not in derived}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._set_up()

    def __enter__(self) -> NodeGraph:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        names = ", ".join(group.name for group in self._registry)
        return f"NodeGraph({self._store.count(ROOT)} documents, groups: {names})"

    # Documents

    def add(self, items: object) -> list[str]:
        """Add documents, or update those whose id is known; all of them or none.

        Args:
            items: One or many of: a text (``str`` is always text), a ``pathlib.Path`` of a file
                or folder, a ``Document``, a LangChain or LlamaIndex document.

        Returns:
            The documents' ids, in the order of the items; a folder gives one for each file.

        Raises:
            TypeError: If an item is none of these.
            ReadError: If a file can't be read, unless the graph skips such files.
            ValueError: If two different documents in the call, or two files, have the same id.
        """
        given = [i if isinstance(i, Path) else as_document(i) for i in flatten(items)]
        documents: list[Document] = []
        readings: list[Reading] = []
        for item in given:
            if isinstance(item, Path):
                readings.append(self._corpus.read(item, self._skipping()))
                documents += readings[-1].documents
            else:
                documents.append(item)
        known: dict[str, Document] = {}
        for document in documents:
            if known.setdefault(document.id, document) != document:
                raise ValueError(
                    f"two different documents in one call have the id {document.id!r}; give each "
                    "its own: Document(text, id=...)"
                )
        with self._writing():
            self._check_free(known)
            self._store.change_documents(list(known.values()))
            for reading in readings:
                self._corpus.keep(reading)
        return [document.id for document in documents]

    def update(self, items: object) -> list[str]:
        """Update documents that are in the graph already; like ``add``, which also inserts.

        Raises:
            LookupError: If the graph has no document with one of the ids.
        """
        documents = [as_document(item) for item in flatten(items)]
        self._check_documents(document.id for document in documents)
        return self.add(documents)

    def remove(self, ids: str | Iterable[str]) -> None:
        """Remove documents and everything made from them.

        Raises:
            LookupError: If the graph has no document with one of the ids; nothing is removed.
        """
        wanted = [ids] if isinstance(ids, str) else list(ids)
        with self._writing():
            self._check_documents(wanted)
            self._store.change_documents([], remove=wanted)
            self._corpus.forget(wanted)

    def refresh(self) -> Refresh:
        """Read the source folders and files again; add, update and remove what has changed.

        Only files whose content changed are updated. Documents that came from no file stay.

        Raises:
            ReadError: If a file can't be read, unless the graph skips such files; nothing has
                changed then.
            ValueError: If two files have come to have the same id; nothing has changed then.
        """
        before, reading = self._corpus.read_again(self._skipping())
        with self._writing():
            documents, report = self._corpus.compare(before, reading, self._store, self.failures)
            self._store.change_documents(documents, remove=report.removed)
            self._corpus.forget(report.removed)
        return report

    def _check_documents(self, ids: Iterable[str]) -> None:
        for i in ids:
            (node,) = self._store.get([i])
            if node is None or node.group != ROOT:
                known = list(self._store.document_ids())
                raise LookupError(f"no document {i!r}; the graph has {nearest(i, known)}")

    def _check_free(self, ids: Iterable[str]) -> None:
        for node in self._store.get(ids):
            if node is not None and node.group != ROOT:
                raise ValueError(
                    f"the id {node.id!r} is taken by a node of group {node.group!r}; give the "
                    "document another one"
                )

    def _skipping(self) -> list[Failure] | None:
        return self._builder.unread if self.on_error == "skip" else None

    def close(self) -> None:
        """Let go of what the graph holds besides its documents: indexes."""
        with self._shared_lock:
            self._shared.clear()

    # Groups

    def create_node_group(
        self,
        name: str,
        transform: object,
        parent: str = ROOT,
        *,
        trans_node: bool | None = None,
        num_workers: int = 0,
        version: str | None = None,
        replace: bool = False,
        **settings: Any,
    ) -> None:
        """Declare a group: which transform makes its nodes, from which parent group.

        Declaring the same rule again does nothing.

        Args:
            name: The group's name.
            transform: A callable from one parent's text (or Node) to texts or nodes, one or many
                (a number or any object counts as its text form); a class of such; a LangChain or
                LlamaIndex text splitter; or, where files want different rules, a list of pairs
                ``("*.md", transform)`` of which the first that matches the file's name is taken.
            parent: The group to make it from.
            trans_node: Whether the transform gets a Node (True) or its text (False). None asks
                the transform's ``trans_node`` attribute, then its annotation, then takes text.
            num_workers: Threads to run the transform in, for transforms that wait (a model).
            version: Names the rule; give it when the transform calls code that changes.
            replace: Whether the group may exist with another rule, which this one replaces.
            **settings: Passed to the transform, to its constructor where it is a class.

        Raises:
            UnknownGroupError: If there is no parent group.
            ValueError: If the group exists with another rule and ``replace`` is not given, or
                the group would be its own ancestor.
            TypeError: If the transform can't be one.
        """
        group = make_group(name, transform, parent, trans_node, num_workers, version, settings)
        with self._lock.write():
            self._registry.declare(group, replace)

    @property
    def groups(self) -> dict[str, GroupSummary]:
        """All groups by name, ``ROOT`` first: parent, size, whether built. Builds nothing."""
        summaries = {ROOT: GroupSummary(ROOT, None, self._store.count(ROOT), True)}
        for group in self._registry:
            built = self._fresh(group.name)
            size = self._store.count(group.name)
            summaries[group.name] = GroupSummary(group.name, group.parent, size, built)
        return summaries

    @property
    def failures(self) -> list[Failure]:
        """The documents that were left out because of ``on_error="skip"``, and why."""
        return self._builder.failures

    def build(self, *groups: str, on_error: OnError | None = None) -> list[Failure]:
        """Build groups now instead of when they are first needed; retry what failed before.

        Returns:
            The documents that failed, where ``on_error`` is ``"skip"``.

        Raises:
            UnknownGroupError: If there is no such group.
            TransformError: If a transform raises and ``on_error`` is ``"raise"``.
        """
        mode = self.on_error if on_error is None else _check_on_error(on_error)
        for name in groups:
            self._builder.retry(self.ancestry(name))
        with self._reading(groups, mode):
            built = {group.name for name in groups for group in self.ancestry(name)}
        return [failure for failure in self.failures if failure.group in built]

    def ancestry(self, name: str) -> list[NodeGroup]:
        """Return the groups from the first below ``ROOT`` down to this one.

        Raises:
            UnknownGroupError: If there is no such group.
        """
        return self._registry.lineage(name)

    # Nodes

    def nodes(self, group: str) -> list[Node]:
        """Return all nodes of a group in document order, built where they are missing.

        Raises:
            UnknownGroupError: If there is no such group.
            TransformError: If a transform raises.
        """
        with self.reading(group):
            return [self.attach(node) for node in self._store.nodes(group)]

    def node(self, id: str) -> Node:
        """Return one node by its id; a document's id is that of its node in ``ROOT``.

        Raises:
            LookupError: If there is none, or none any more.
        """
        (found,) = self._store.get([id])
        if found is None:
            raise LookupError(f"no node {id!r} in the graph; it may have been removed or changed")
        return self.attach(found)

    def find(self, group: str) -> Callable[[Any], list[Node]]:
        """Return a function that takes nodes to their kin in a group: up, down or across.

        The function takes a node, a retrieval result, or many; it returns each kin node once,
        in document order.

        Raises:
            UnknownGroupError: If there is no such group.

        Example:
            >>> graph = NodeGraph()
            >>> _ = graph.add("One. Two.\\nThree.")
            >>> graph.create_node_group("line", str.splitlines)
            >>> graph.create_node_group("word", str.split, parent="line")
            >>> [n.text for n in graph.find("line")(graph.nodes("word")[1])]
            ['One. Two.']
        """
        self.ancestry(group)
        return lambda nodes: find(self, group, flatten(nodes))

    def children(self, node: Node) -> dict[str, list[Node]]:
        """Return a node's children by group, of the groups that something has needed already.

        Inside a transform only of those that are up to date: to wait for another one could be
        to wait for itself.

        Raises:
            LookupError: If the node has been removed or changed.
        """
        below = [group.name for group in self._registry if group.parent == node.group]
        below = [name for name in below if self._builder.started(name)]
        within = self._builder.needs.running is not None
        with self.reading(*(() if within else below)):
            here = self.node(node.id)
            return {name: self.children_in(name, here) for name in below if self._fresh(name)}

    def children_in(self, group: str, node: Node) -> list[Node]:
        """Return a node's children in one group of which its own is the parent."""
        return [self.attach(child) for child in self._store.children(group, node)]

    def attach(self, node: Node) -> Node:
        """Let a node that came from the store know its graph."""
        if node.graph is None:
            object.__setattr__(node, "graph", self)
        return node

    # For what is built on the graph

    @contextmanager
    def reading(self, *groups: str) -> Iterator[None]:
        """Hold one consistent state in which the groups are built, until the block ends.

        Raises:
            UnknownGroupError: If there is no such group.
            TransformError: If a transform raises while a group is built.
        """
        with self._reading(groups, self.on_error):
            yield

    @contextmanager
    def _reading(self, groups: Sequence[str], on_error: OnError) -> Iterator[None]:
        while True:
            for name in groups:
                self._builder.build(self.ancestry(name), on_error)
            self._lock.acquire_read()
            if all(self._fresh(name) for name in groups):
                break
            self._lock.release_read()
        try:
            with self._store.snapshot():
                yield
        finally:
            self._lock.release_read()

    @contextmanager
    def _writing(self) -> Iterator[None]:
        if self._builder.needs.running is not None:
            raise RuntimeError(
                "the documents of a graph can't be changed from inside a transform of one of its "
                f"groups ({self._builder.needs.running!r}); change them after the build"
            )
        with self._lock.write():
            yield

    def _fresh(self, group: str) -> bool:
        return self._builder.fresh(self.ancestry(group))

    def revision(self, group: str) -> int:
        """Return a counter that grows with every change of the group's nodes."""
        return self._store.revision(group)

    def changes(self, group: str, since: int) -> Changes:
        """Return what happened to a group's nodes after a revision; 0 for everything."""
        changes = self._store.changes(group, since)
        for node in changes.added:
            self.attach(node)
        return changes

    def index_file(self, name: str) -> Path | None:
        """Return where an index that can be made again may be kept, None where nothing lasts."""
        return None

    def shared(self, key: object, make: Callable[[], T]) -> T:
        """Return what was made for the key before, or make it: an index that many may use.

        It lives as long as the graph is open, and is left out when the graph is pickled.
        """
        with self._shared_lock:
            if key not in self._shared:
                self._shared[key] = make()
            return self._shared[key]  # type: ignore[return-value]


def _check_on_error(on_error: str) -> OnError:
    if on_error == "raise":
        return "raise"
    if on_error == "skip":
        return "skip"
    raise ValueError(f'on_error is "raise" or "skip", not {on_error!r}')
