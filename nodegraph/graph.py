"""The node graph: documents, and the groups made from them when they are needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from .builder import Failure, GroupBuilder, OnError
from .corpus import Corpus, Refresh
from .document import as_document, flatten
from .document_files import report_changed_files, stable_document
from .errors import explain_names, nearest_names
from .graph_reader import GraphReader, ImportedGroups
from .groups import PREDEFINED_STRUCTURE, GroupRegistry, GroupSummary, Scope, make_group
from .hashing import digest
from .models.embedder import as_embedders
from .models.embedding_cache import EmbeddingCache
from .navigation import OutlineOf, as_node, find, outlines_of, pages_of, place_of
from .node import ROOT, Link, Node
from .readers.source_files import ReadOptions, ReadReport
from .search_text import SearchTextOption, as_search_text
from .splitters.sentences import SentenceSplitter
from .storage.graph_store import GraphStore
from .storage.opening import as_store
from .transforms import check_model_names

if TYPE_CHECKING:
    from .models.embedder import Vectors

# What is sorted by length and embedded at once, whatever else the corpus has.
_EMBEDDED_TEXTS = 16_384
_EMBEDDED_CHARACTERS = 1 << 22
_READ_AT_ONCE = 128  # nodes

PREDEFINED = {"CoarseChunk": (1024, 100), "MediumChunk": (256, 25), "FineChunk": (128, 12)}


class NodeGraph:
    """Hold a corpus as documents and named groups of nodes made from them.

    Declaring a group builds nothing: it is built when something first needs it, its ancestors
    before it, once, for all documents. ``section``, ``page``, ``table`` and ``symbol`` (functions
    and classes of programs) need no declaration. Documents may come, change and go at any time;
    only what depends on them is made again. All methods may be called from many threads.

    Args:
        source: Path of a folder or a file, or a list of them. Texts are added with ``add``. A
            source that the store has read before is refreshed: only what changed is read.
        embed: The embedding model, or several by key: ``{"e5": model, "title": other}``. A
            callable from a list of texts to vectors, an ``Embedder``, or a model of LangChain,
            LlamaIndex, or sentence-transformers. Nothing is embedded until a search needs it.
        store: Where the graph is kept: the path of a file, to be opened again later; memory by
            default. Or the address of a PostgreSQL server
            (``"postgresql://user@host/database?schema=name"``),
        on_error: ``"raise"``: an unreadable file or a failing transform raises. ``"skip"``: the
            document is left out and listed in ``failures``. None: unreadable files of folders are
            skipped with a warning, unreadable files that are named raise, and failing transforms
            raise.
        search_text: What is searched and embedded of nodes, in all groups that declare nothing
            else: a metadata field, a list of them, a ``SearchText``, a function from a node to a
            text; False for the text alone. None for what the documents declare: all metadata but
            ``excluded_embed_metadata_keys`` for those of LlamaIndex, none for those of LangChain,
            ``title`` and ``headings`` for others.
        reading: How files and folders are read: limits, encodings, what is passed over, OCR.
        progress: Whether long builds draw a progress bar on stderr; None where it is a terminal.

    Raises:
        ReadError: If a source can't be read.
        StoreError: If the store can't be opened.

    Example:
        >>> graph = NodeGraph()
        >>> ids = graph.add(["Tea is a drink. It is made of leaves.", "Rivers run."])
        >>> graph.create_node_group("sentence", lambda text: text.split(". "))
        >>> [node.text for node in graph.nodes("sentence")]
        ['Tea is a drink', 'It is made of leaves.', 'Rivers run.']
    """

    @explain_names
    def __init__(
        self,
        source: str | Path | Sequence[str | Path] | None = None,
        *,
        embed: object = None,
        store: str | Path | GraphStore | None = None,
        on_error: OnError | None = None,
        search_text: SearchTextOption = None,
        reading: ReadOptions | None = None,
        progress: bool | None = None,
    ) -> None:
        _check_on_error(on_error)
        self._read_options = reading or ReadOptions()
        self._search_text = as_search_text(search_text)
        self.on_error: OnError | None = on_error
        self.progress = progress
        self._store = as_store(store)
        self._embedders = as_embedders(embed, stored=bool(self._store.place))
        self._registry = GroupRegistry(PREDEFINED_STRUCTURE)
        self._set_up()
        for name, (size, overlap) in PREDEFINED.items():
            self.create_node_group(name, SentenceSplitter, chunk_size=size, chunk_overlap=overlap)
        for group in self.imports:
            self._registry.declare(group, replace=True)
        for path in () if source is None else flatten(source):
            if not isinstance(path, str | Path):
                raise TypeError(
                    f"source takes paths, not {path!r:.80}; add texts and documents with add()"
                )
            if self._corpus.follow(Path(path), on_error=self.on_error) is None:
                self.add(Path(path))

    def _set_up(self) -> None:
        """Make what is derived from the settings, and not pickled."""
        self._outlines: tuple[int, OutlineOf | None] = -1, None
        self._builder = GroupBuilder(
            self._store, lambda node: self.reader.attach(node), self.progress
        )
        self.reader: GraphReader = GraphReader(
            self, self._store, self._builder, self._registry, self._search_text
        )
        self._corpus: Corpus = Corpus(
            self._store, self.reader.change_lock, self._read_options, self.progress
        )
        self.imports: ImportedGroups = ImportedGroups(self._store, self.reader, self._check_outside)
        self.embeddings = EmbeddingCache(self._store, self._embedders, self.progress)

    def __getstate__(self) -> dict[str, Any]:
        derived = {"_builder", "_outlines", "_corpus", "embeddings", "imports", "reader"}
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
        declared = [group.name for group in self._registry]
        names = [n for n in declared if n not in PREDEFINED or self._store.count(n)]
        groups = f", groups: {', '.join(names)}" if names else ""
        return f"NodeGraph({self._store.count(ROOT)} documents{groups})"

    # Documents

    def add(self, items: object) -> list[str]:
        """Add documents, or update those whose id is known; all of them or none.

        Args:
            items: One or many of: a text (``str`` is always text), a ``pathlib.Path`` of a file
                or folder, a ``Document``, a LangChain or LlamaIndex document; or a LangChain
                loader. A LlamaIndex document of a file (with ``file_path`` in its metadata) whose
                id is random is known by its file and content, so that a folder that is read twice
                is there once.

        Returns:
            The documents' ids, in the order of the items; a folder gives one for each file.

        Raises:
            TypeError: If an item is none of these.
            ReadError: If a named file can't be read, or a file of a folder with
                ``on_error="raise"``.
            ValueError: If two different documents in the call, or two files, have the same id; or
                if a text is the path of a file or folder that there is.
        """
        sources = [i if isinstance(i, Path) else stable_document(i) for i in flatten(items)]
        self._check_outside()
        documents = [source for source in sources if not isinstance(source, Path)]
        paths = [source for source in sources if isinstance(source, Path)]
        of_paths = iter(self._corpus.add(documents, paths, on_error=self.on_error))
        report_changed_files(self._store, documents)
        ids = [next(of_paths) if isinstance(source, Path) else [source.id] for source in sources]
        return [i for batch in ids for i in batch]

    def update(self, items: object) -> list[str]:
        """Update documents that are in the graph already; like ``add``, which also inserts.

        Raises:
            LookupError: If the graph has no document with one of the ids.
        """
        documents = [as_document(item) for item in flatten(items)]
        self._check_documents(document.id for document in documents)
        return self.add(documents)

    def remove(self, items: str | Path | Iterable[str | Path]) -> None:
        """Remove documents and everything made from them.

        Args:
            items: One or many of: a document's id; a ``pathlib.Path`` of a file or folder, which is
                not read again by ``refresh`` either, until it is added again.

        Raises:
            LookupError: If the graph has no document with one of the ids, or has read nothing at
                one of the paths; nothing is removed.
        """
        requested = [items] if isinstance(items, str | Path) else list(items)
        ids = [item for item in requested if not isinstance(item, Path)]
        self._check_outside()

        with self.reader.change_lock.held(), self._store.transaction():
            self._check_documents(ids)
            for item in requested:
                if isinstance(item, Path):
                    self._corpus.remove_source(item)
            self._corpus.remove(ids)

    def refresh(self) -> Refresh:
        """Read the source folders and files again; add, update and remove what has changed.

        Only files whose content changed are read. What was made of a file that was renamed moves
        with it. Documents that came from no file stay.

        Raises:
            ReadError: If a source folder is gone, unless ``on_error`` is ``"skip"``, or if a file
                can't be read, as in ``add``. Nothing has changed.
            ValueError: If two files have come to have the same id; nothing has changed then.
        """
        self._check_outside()
        return self._corpus.refresh(on_error=self.on_error)

    def _check_documents(self, ids: Iterable[str]) -> None:
        requested = list(ids)
        existing = self._store.stamps(ROOT, requested)
        for i in requested:
            if i not in existing:
                names = list(self._store.document_ids())
                raise LookupError(f"no document {i!r}; the graph has {nearest_names(i, names)}")

    def _check_outside(self) -> None:
        if self._builder.running:
            raise RuntimeError(
                "the documents of a graph cannot be changed inside a transform of one of its "
                f"groups ({self._builder.running[-1]!r}); change them after the build"
            )

    def compact(self) -> None:
        """Free the disk space of deleted data: nodes, vectors of deleted texts, cached LLM answers.

        Declare first the groups with their own ``search_text``, which determines their vectors.

        Raises:
            StoreError: If the disk has no room for a second copy of the file.
        """
        self._check_outside()
        used = self._searched_digests() if self.embeddings.stored() else set()
        with self._store.transaction():
            self.embeddings.delete_unused(used)
            self._builder.answers.clear()
        self._store.compact()

    def close(self) -> None:
        """Keep the indexes beside the store, and close it; the next use opens it again."""
        self.reader.close()
        self._store.close()

    # Groups

    @explain_names
    def create_node_group(
        self,
        name: str,
        transform: object,
        parent: str = ROOT,
        *,
        trans_node: bool | None = None,
        num_workers: int = 0,
        version: str | None = None,
        scope: Scope = "node",
        search_text: SearchTextOption = None,
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
            scope: ``"group"`` for a transform that gets the list of all nodes of the parent group
                (or of their texts, with ``trans_node=False``) and makes nodes that come from
                several of them: clusters, entities, summaries. It returns ``LinkedText(item,
                to=nodes)`` to say from which, and runs again when anything in the group changes.
            search_text: What is searched and embedded of the group's nodes, as for the graph;
                None for what holds there. Another one derives nothing again: indexes are made
                anew, and what was not embedded yet is.
            replace: Whether the group may exist with another rule, which this one replaces.
            **settings: Passed to the transform, to its constructor where it is a class.

        Raises:
            UnknownGroupError: If there is no parent group.
            ValueError: If the group exists with another rule and ``replace`` is not given, or
                the group would be its own ancestor.
            TypeError: If the transform can't be one.
            ValueError: If the transform's language model is a function without a name and the
                graph is stored in a file.
        """
        group = make_group(
            name, transform, parent, trans_node, num_workers, version, settings, scope, search_text
        )
        if self._store.place:
            check_model_names(group.rule)
        self.reader.declare(group, replace)
        if replace and name in self.imports:
            self.imports.drop(name)

    @property
    def groups(self) -> dict[str, GroupSummary]:
        """All groups by name, ``ROOT`` first: parent, size, whether built. Builds nothing."""
        summaries = {ROOT: GroupSummary(ROOT, None, self._store.count(ROOT), True)}
        for group in self._registry:
            built = self.reader.is_fresh(group.name)
            size = self._store.count(group.name)
            summaries[group.name] = GroupSummary(group.name, group.parent, size, built)
        return summaries

    @property
    def failures(self) -> list[Failure]:
        """The documents that were left out, and why: unreadable files, and with
        ``on_error="skip"`` documents with a failing transform. Failures of files are stored until
        the files can be read or are gone.

        Of a folder some files are passed over whatever ``on_error`` says, unless it is read
        strictly (``ReadOptions``). Of those without a reader there is one entry for each folder,
        with how many of which kind (``UnsupportedFilesError``); one entry of its own has each that
        is encrypted, too large, or no document.
        """
        return [*self._corpus.failures, *self._builder.failures]

    @property
    def sources(self) -> list[Path]:
        """The folders and files that documents were read from, which ``refresh`` reads again."""
        return self._corpus.sources()

    @property
    def read_report(self) -> ReadReport:
        """What became of the files when they were last read, by ``add`` or ``refresh``."""
        return self._corpus.report

    def build(
        self,
        *groups: str,
        on_error: OnError | None = None,
        embed: bool | str | Sequence[str] = False,
        executor: Executor | None = None,
    ) -> list[Failure]:
        """Build groups now instead of when they are first needed; retry what failed before.

        An interrupted build is continued by the next call.

        Args:
            groups: The groups; those above them are built first.
            on_error: ``"raise"`` or ``"skip"`` for failing transforms. None: the graph's setting.
            embed: Whether the groups are embedded, too, by all embeddings of the graph; or by
                which of them.
            executor: Runs transforms of texts, and embedding models: any executor of
                ``concurrent.futures``, such as a ``ProcessPoolExecutor``, or Dask's
                ``client.get_executor()``. Transforms of nodes and of whole groups run in this
                process. None: in this process, or in ``num_workers`` threads.

        Returns:
            The documents that failed, where ``on_error`` is ``"skip"``.

        Raises:
            UnknownGroupError: If there is no such group.
            LookupError: If the graph has no such embedding.
            TransformError: If a transform raises and ``on_error`` is ``"raise"``.
            EmbeddingError: If an embedding model fails.
            TypeError: If a transform or a model cannot be pickled for the executor.

        Example:
            >>> graph = NodeGraph(embed=lambda texts: [[len(text), 1] for text in texts])
            >>> _ = graph.add(["Tea is a drink.", "Rivers run."])
            >>> graph.create_node_group("word", str.split)
            >>> graph.build("word", embed=True)
            []
        """
        _check_on_error(on_error)
        mode = on_error or self.on_error or "raise"
        keys = self._embedding_keys(embed)
        for name in groups:
            self._builder.retry(self.reader.lineage(name))
        with self.reader.building(groups, mode, executor):
            built = {group.name for name in groups for group in self.reader.lineage(name)}
        for name in dict.fromkeys(groups) if keys else ():
            self._embed(name, keys, executor)
        return [failure for failure in self.failures if failure.group in built]

    def _embedding_keys(self, embed: bool | str | Sequence[str]) -> list[str]:
        if isinstance(embed, bool):
            if embed and not self.embeddings.embedders:
                self.embeddings.key(None)  # says that there is none
            return list(self.embeddings.embedders) if embed else []
        return [self.embeddings.key(key) for key in ([embed] if isinstance(embed, str) else embed)]

    def _embed(self, group: str, keys: Sequence[str], executor: Executor | None) -> None:
        """Embed the nodes of a group, some thousands at a time, without the graph's lock."""
        for texts in self._searched_windows(group):
            for key in keys:
                self.embeddings.embed(texts, key, group, executor)

    def _searched_windows(self, group: str) -> Iterator[list[str]]:
        """Yield what is embedded of a group's nodes, in lists that take little memory."""
        groups = self.reader.searched_groups(group)
        with self.reader.reading(*groups):
            ids = self._store.ids(group)
        window: list[str] = []
        for start in range(0, len(ids), _READ_AT_ONCE):
            with self.reader.reading(*groups):
                nodes = self.reader.existing_nodes(ids[start : start + _READ_AT_ONCE])
                window += self.reader.searched_texts(nodes)
            if (
                len(window) >= _EMBEDDED_TEXTS
                or sum(map(len, window)) >= _EMBEDDED_CHARACTERS
                or start + _READ_AT_ONCE >= len(ids)
            ):
                yield window
                window = []

    # Nodes

    def nodes(self, group: str) -> list[Node]:
        """Return all nodes of a group in document order. A missing group is built first.

        Raises:
            UnknownGroupError: If there is no such group.
            TransformError: If a transform raises.
        """
        with self.reader.reading(group):
            pass
        return [self.reader.attach(node) for node in self._store.nodes(group)]

    def node(self, id: str) -> Node:
        """Return one node by its id; a document's id is that of its node in ``ROOT``.

        Raises:
            LookupError: If there is none, or none any more.
        """
        (node,) = self.reader.nodes_by_id([id])
        return node

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
        self.reader.lineage(group)
        return lambda nodes: find(self, group, flatten(nodes))

    def children(self, node: Node) -> dict[str, list[Node]]:
        """Return a node's children by group, of the groups that something has needed already.

        Inside a transform only of those that are up to date: to wait for another one could be
        to wait for itself.

        Raises:
            LookupError: If the node has been removed or changed.
        """
        below = self.reader.groups_below(node.group)
        below = [name for name in below if self._builder.is_started(name)]
        in_transform = bool(self._builder.running)
        with self.reader.reading(*(() if in_transform else below)):
            current = self.node(node.id)
            return {
                name: self.reader.children_in(name, current)
                for name in below
                if self.reader.is_fresh(name)
            }

    def neighbours(self, node: Node) -> tuple[Node | None, Node | None]:
        """Return the nodes before and after a node in its group and document, across parents.

        None where there is none, and for documents and nodes made from a whole group, which have
        no neighbours. Quick: the rest of the document is not read.

        Raises:
            LookupError: If the node has been removed or changed.

        Example:
            >>> graph = NodeGraph()
            >>> _ = graph.add("One. Two.\\nThree.")
            >>> graph.create_node_group("word", str.split)
            >>> one, two, three = graph.nodes("word")
            >>> graph.neighbours(two) == (one, three), graph.neighbours(one) == (None, two)
            (True, True)
        """
        with self.reader.reading():
            return self.reader.neighbours(node)

    # Links

    def link(
        self,
        source: Node | str,
        target: Node | str | Iterable[Node | str],
        type: str = "related",
        *,
        weight: float = 1.0,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        """Link a node to one or many others, beside parenthood; again to change the link.

        Links last as long as both nodes do: they go when one of them is removed or its text
        changes.

        Args:
            source: The node the link starts from, or its id.
            target: The nodes it leads to, or their ids.
            type: What it means: ``"cites"``, ``"mentions"``.
            weight: How much it counts for those who follow links.
            metadata: Anything else.

        Raises:
            LookupError: If there is no such node; nothing is linked then.
        """
        targets = [target] if isinstance(target, str | Node) else list(target)
        more = dict(metadata or {})
        links = [Link(_id(source), _id(end), type, float(weight), more) for end in targets]
        self._check_outside()
        self._store.link(links)

    def unlink(
        self, source: Node | str, target: Node | str | Iterable[Node | str], type: str = "related"
    ) -> None:
        """Remove links; those that are not there do nothing."""
        targets = [target] if isinstance(target, str | Node) else list(target)
        links = [Link(_id(source), _id(end), type) for end in targets]
        self._check_outside()
        self._store.unlink(links)

    def links(self, node: Node | str, *, incoming: bool = False) -> list[Link]:
        """Return the links from a node, or to it."""
        return self.reader.links_of([_id(node)], incoming=incoming)[0]

    def linked(
        self, node: Node | str, type: str | None = None, *, incoming: bool = False
    ) -> list[Node]:
        """Return the nodes that a node is linked to (or from), in document order, each once."""
        links = self.links(node, incoming=incoming)
        ids = dict.fromkeys(
            link.source if incoming else link.target for link in links if type in (None, link.type)
        )
        nodes = [
            self.reader.attach(target_node)
            for target_node in self._store.get(ids)
            if target_node is not None
        ]
        return sorted(nodes, key=lambda other: other.order)

    def place(self, node: Node) -> str:
        """Say where a node stands in its file; see ``Node.place``."""
        with self._store.turn() as state:
            known, outlines = self._outlines
            if outlines is None or known != state:
                outlines = outlines_of(self)
                self._outlines = state, outlines
            return place_of(node, outlines)

    def pages(self, node: Node) -> tuple[int, int] | None:
        """Return the first and the last page that a node stands on; see ``Node.pages``."""
        return pages_of(node)

    def embedding(self, node: Node, key: str | None = None) -> Vectors:
        """Return a node's vector, (dimension,) float32, embedded if it is not yet.

        Args:
            node: The node.
            key: Which embedding; None where the graph has but one.

        Raises:
            LookupError: If the graph has no such embedding.
            EmbeddingError: If the model fails.
        """
        texts = self.reader.searched_texts([node])
        vector: Vectors = self.embeddings.vectors(texts, self.embeddings.key(key))[0]
        return vector

    def _searched_digests(self) -> set[str]:
        """Return the hashes of all searched texts, for which nothing is built."""
        digests: set[str] = set()
        with self._store.turn():
            for group in (ROOT, *self._store.groups()):
                with suppress(LookupError):  # a group that is searched with it is not declared
                    if all(
                        self.reader.is_fresh(name) for name in self.reader.searched(group).groups
                    ):
                        nodes = map(self.reader.attach, self._store.nodes(group))
                        digests.update(
                            digest(self.reader.searched_texts([node])[0]) for node in nodes
                        )
        return digests


def _id(node: Node | str) -> str:
    return node if isinstance(node, str) else as_node(node).id


def _check_on_error(on_error: str | None) -> None:
    if on_error not in (None, "raise", "skip"):
        raise ValueError(f'on_error must be "raise" or "skip", got {on_error!r}')
