"""The main class of the package: a graph of documents and the nodes derived from them on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from .builder import GroupBuilder
from .corpus import Corpus, Refresh
from .errors import Failure, OnError, explain_names, nearest_names
from .foreign_documents import flatten, stable_document
from .foreign_names import missing_attribute
from .graph_reader import GraphReader
from .groups import GroupSummary, NodeGroup, Scope, make_group
from .hashing import digest
from .models.embedder import as_embedders
from .models.embedding_cache import EmbeddingCache
from .navigation import as_node, find
from .node import ROOT, Link, Node
from .readers.source_files import ReadOptions, ReadReport
from .search_text import SearchTextOption, as_search_text
from .splitters.sentences import SentenceSplitter
from .storage.columns import portions
from .storage.graph_store import GraphStore, as_store
from .transforms import check_model_names

if TYPE_CHECKING:
    from ..retrievers import DefaultRetriever
    from ..retrievers.results import ScoredNode

# Texts are embedded in windows of this many nodes, to limit memory use.
_EMBEDDED_TEXTS = 16_384
_EMBEDDED_CHARACTERS = 1 << 22
_READ_AT_ONCE = 128  # number of nodes

PREDEFINED = {"CoarseChunk": (1024, 100), "MediumChunk": (256, 25), "FineChunk": (128, 12)}


class NodeGraph:
    """A document collection, organized as a graph of documents and named groups of derived nodes.

    A group is built when it is first used, after the groups it is derived from. The predefined
    groups are ``section``, ``page``, ``table``, ``symbol`` (functions and classes of source code),
    and three groups of chunks that consist of whole sentences: ``CoarseChunk``, ``MediumChunk`` and
    ``FineChunk`` with up to 1,024, 256 and 128 tokens. After a change, only the affected nodes are
    rebuilt. All methods are thread-safe.

    Args:
        source: The path of a file or folder to read, or a list of paths. If a source is already in
            the store, only its changed files are read. If None, nothing is read. To add texts, use
            ``add``.
        embed: An embedding model, or a dictionary of models such as ``{"e5": model, "title":
            other}``. A model is a function that converts a list of texts to vectors, an
            ``Embedder``, or a LangChain, LlamaIndex or sentence-transformers model. Texts are
            embedded on the first search. If None, searches compare words.
        store: The path of a SQLite file, or the URL of a PostgreSQL server
            (``"postgresql://user@host/database?schema=name"``). If None, the graph is kept in
            memory.
        on_error: If ``"raise"``, an unreadable file or a failing transform raises an error. If
            ``"skip"``, the document is left out and listed in ``failures``. If None, a failing
            transform or an unreadable file that was given by its path raises an error, but
            unreadable files in folders are skipped. A warning summarizes the skipped files and
            explains how they can be read.
        search_text: Determines the text that is indexed and embedded for each node: one or several
            metadata fields to add, a ``SearchText``, a function that returns the text for a node,
            or False to add nothing. A group can override this setting. If None, the setting of each
            document is used. By default, all metadata except ``excluded_embed_metadata_keys`` is
            added for LlamaIndex documents, ``headings`` for LangChain documents, and ``title``,
            ``headings`` and ``table_head`` for other documents.
        reading: Options for reading files and folders, such as size limits, encodings and OCR.
        progress: Whether to display progress bars on stderr. If None, they are displayed only in a
            terminal.

    Raises:
        ReadError: If a source cannot be read.
        StoreError: If the store cannot be opened.
        TypeError: If an argument has the wrong type.
        ValueError: If ``on_error`` or the scheme of ``store`` is unknown, or ``store`` is a file
            and ``embed`` is a function without a name.
        ModelError: If ``embed`` is the name of a model on a server, and no server is configured.

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
        self._groups: dict[str, NodeGroup] = {}
        self._set_up()
        for name, (size, overlap) in PREDEFINED.items():
            self.create_node_group(name, SentenceSplitter, chunk_size=size, chunk_overlap=overlap)
        if source is not None:
            self._corpus.open(_source_paths(source), on_error=self.on_error)

    def _set_up(self) -> None:
        """Create the attributes that are not included when the graph is pickled."""
        self._default_retriever: DefaultRetriever | None = None
        self._store.nodes.attach_to(self)
        self._builder = GroupBuilder(self._store, self.progress)
        self.reader: GraphReader = GraphReader(
            self, self._store, self._builder, self._groups, self._search_text
        )
        self._corpus: Corpus = Corpus(
            self._store, self.reader.change_lock, self._read_options, self.progress
        )
        self.embeddings = EmbeddingCache(self._store, self._embedders, self.progress)

    def __getstate__(self) -> dict[str, Any]:
        derived = {"_builder", "_corpus", "_default_retriever", "embeddings", "reader"}
        return {k: v for k, v in self.__dict__.items() if k not in derived}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._set_up()

    def __enter__(self) -> NodeGraph:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    if not TYPE_CHECKING:  # Type checkers report missing attributes themselves.

        def __getattr__(self, name):
            raise missing_attribute(self, name)

    def __repr__(self) -> str:
        content = f"{self._store.groups.count(ROOT)} documents"
        names = [n for n in self._groups if n not in PREDEFINED or self._store.groups.count(n)]
        if names:
            content = f"{content}, groups: {', '.join(names)}"
        return f"NodeGraph({content})"

    # Documents

    @explain_names
    def add(self, items: object) -> list[str]:
        """Add documents to the graph. An existing document with the same id is replaced.

        Document ids are compared independently of their Unicode form. If an error occurs, none of
        the items is added.

        Args:
            items: One or several texts (``str``, which is never interpreted as a path), paths of
                files or folders (``pathlib.Path``), ``Document`` objects, LangChain or LlamaIndex
                documents, or a LangChain loader. If a LlamaIndex document has a random id and
                ``file_path`` in its metadata, the id is replaced by a hash of the path and the
                content, so that reading a folder twice does not create duplicates.

        Returns:
            The document ids, in the order of the items. For a folder, the ids of all documents in
            it are returned. For a JSON Lines file, one id per line is returned.

        Raises:
            ReadError: If a file that was given by its path cannot be read, or if a file in a folder
                cannot be read and ``on_error`` is ``"raise"``.
            RuntimeError: If the method is called inside a transform.
            TypeError: If the type of an item is not supported.
            ValueError: If two different documents or files have the same id, if a node already uses
                the id, or if a string is the path of an existing file or folder.
        """
        sources = [i if isinstance(i, Path) else stable_document(i) for i in flatten(items)]
        self._check_outside()
        documents = [source for source in sources if not isinstance(source, Path)]
        paths = [source for source in sources if isinstance(source, Path)]
        of_paths = iter(self._corpus.add(documents, paths, on_error=self.on_error))
        ids: list[str] = []
        for source in sources:
            ids += next(of_paths) if isinstance(source, Path) else [source.id]
        return ids

    @explain_names
    def update(self, items: object) -> list[str]:
        """Replace existing documents, and return their ids.

        Use ``add`` to insert new documents, and ``refresh`` to update documents from files.

        Args:
            items: One or several items as in ``add``, except for paths.

        Raises:
            LookupError: If an id is unknown. Nothing is changed in this case.
            RuntimeError: If the method is called inside a transform.
            TypeError: If an item is a path or its type is not supported. Nothing is changed in this
                case.
            ValueError: If two different documents have the same id.
        """
        given = list(flatten(items))
        if paths := [item for item in given if isinstance(item, Path)]:
            raise TypeError(f"update takes no paths, got {paths[0]!r:.80}; call graph.refresh()")
        documents = [stable_document(item) for item in given]
        self._check_documents(document.id for document in documents)
        return self.add(documents)

    def remove(self, items: str | Path | Iterable[str | Path]) -> None:
        """Remove documents and all nodes derived from them.

        Args:
            items: Document ids, or paths of files or folders (``pathlib.Path``). A removed path is
                ignored by ``refresh`` until it is added again. A document that was removed by its
                id is added again by the next ``refresh`` if its file still exists.

        Raises:
            LookupError: If an id or path is unknown. Nothing is removed in this case.
            RuntimeError: If the method is called inside a transform.
        """
        requested = [items] if isinstance(items, str | Path) else list(items)
        ids = [item for item in requested if not isinstance(item, Path)]
        self._check_outside()

        with self._store.transactions.changing(self.reader.change_lock):
            stored = self._check_documents(ids)
            for item in requested:
                if isinstance(item, Path):
                    self._corpus.remove_source(item)
            self._store.change_documents([], remove=stored)

    def refresh(self) -> Refresh:
        """Synchronize the documents with the source files and folders.

        Only new and changed files are parsed. Documents that were not read from a file are kept.

        Raises:
            ReadError: If a source folder is missing and ``on_error`` is not ``"skip"``, or if a
                file cannot be read, as in ``add``. Nothing is changed in this case.
            RuntimeError: If the method is called inside a transform.
            ValueError: If two files have the same id. Nothing is changed in this case.
        """
        self._check_outside()
        return self._corpus.refresh(on_error=self.on_error)

    def _check_documents(self, ids: Iterable[str]) -> list[str]:
        """Check that the documents exist, and return their ids in the stored Unicode form."""
        requested = list(ids)
        existing = self.reader.stored_ids(requested)
        for i in requested:
            if i not in existing:
                raise LookupError(f"unknown document id {i!r}, {self._nearest_documents(i)}")
        return list(existing.values())

    def _nearest_documents(self, unknown: str) -> str:
        """Describe the document that a user may mean by an unknown id, for an error message."""
        try:
            node = self.node(unknown)
        except LookupError:
            names = self._store.nodes.ids(ROOT)
            return f"nearest ids: {nearest_names(unknown, names)}"
        if not node.document_id:
            return f"it is the id of a node of the group {node.group!r}"
        return (
            f"it is the id of a node of the group {node.group!r}; the id of its document is "
            f"node.document_id, {node.document_id!r}"
        )

    def _check_outside(self) -> None:
        if self._builder.running:
            raise RuntimeError(
                "documents cannot be changed inside a transform (group "
                f"{self._builder.running[-1]!r}); change them after the build"
            )

    def compact(self) -> None:
        """Free the disk space used by deleted data, and delete all cached LLM answers.

        This includes vectors of deleted texts that the graph's models computed. Groups with their
        own ``search_text`` must be registered first, otherwise their vectors are deleted as well.

        Raises:
            StoreError: If there is not enough disk space for a second copy of the file.
        """
        self._check_outside()
        used = self._searched_digests() if self.embeddings.embedders else set()
        with self._store.transactions.transaction():
            self.embeddings.delete_unused(used)
            self._builder.answers.clear()
        self._store.compact()

    def close(self) -> None:
        """Save the indexes next to the store file and close the store.

        The store is reopened automatically by the next call. A graph in memory keeps its data.
        """
        try:
            self.reader.close()
        finally:
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
        """Register a node group, which is defined by a transform and a parent group.

        The group is not built yet. Registering the same definition again has no effect.

        Args:
            name: The name of the group.
            transform: A callable that converts a text or ``Node`` to one or several texts or nodes,
                a class that is instantiated with ``**settings``, or a LangChain or LlamaIndex text
                splitter. Return values of other types are converted with ``str``.
            parent: The name of the parent group, to which the transform is applied.
            trans_node: Whether the transform receives a ``Node`` (True) or a text (False). If None,
                the attribute ``trans_node`` or the type annotation of the transform is used. If it
                has neither, it receives a text, or nodes if ``scope`` is ``"group"``.
            num_workers: The number of threads, for transforms that spend most of their time waiting
                for a model.
            version: A version that replaces the fingerprint of the transform and its settings. The
                group is rebuilt if the version changes. The fingerprint does not cover functions
                that the transform calls. If a version is given, code changes are not detected.
            scope: If ``"node"``, the transform is called once per parent node. If ``"group"``, it
                is called once with a list of all parent nodes (or texts if ``trans_node`` is
                False), and again after each change of the parent group. Use it for clusters,
                entities or summaries of several documents. The transform can return
                ``LinkedText(item, to=nodes)`` to link a result to the nodes it was made from.
            search_text: Determines the text that is indexed and embedded for each node, as for
                ``NodeGraph``. Defaults to the graph's setting. After a change, the indexes are
                rebuilt and new texts are embedded, but the nodes are not derived again.
            replace: Whether to replace an existing group that has a different definition.
            **settings: Keyword arguments for the transform, or for its constructor if it is a
                class.

        Raises:
            UnknownGroupError: If the parent group is unknown.
            TypeError: If the transform is not supported.
            ValueError: If the group exists with a different definition and ``replace`` is False, if
                the group would be its own ancestor, or if the transform's language model is a
                function without a name and the graph is stored in a file.
        """
        group = make_group(
            name, transform, parent, trans_node, num_workers, version, settings, scope, search_text
        )
        if self._store.place:
            check_model_names(group.rule)
        self.reader.declare(group, replace)

    @property
    def groups(self) -> dict[str, GroupSummary]:
        """The registered groups, their sizes and whether they are built, keyed by name.

        ``ROOT`` is the first key. Reading this property does not build any group. The predefined
        groups ``section``, ``page``, ``table`` and ``symbol`` are included after they are first
        used.
        """
        summaries = {ROOT: GroupSummary(ROOT, None, self._store.groups.count(ROOT), True)}
        for group in list(self._groups.values()):
            built = self.reader.is_fresh(group.name)
            size = self._store.groups.count(group.name)
            summaries[group.name] = GroupSummary(group.name, group.parent, size, built)
        return summaries

    @property
    def failures(self) -> list[Failure]:
        """The skipped documents and files, with the errors that occurred.

        An unreadable file is listed until it can be read or is deleted. With ``on_error="skip"``,
        the list also contains the documents whose transform failed.

        In folders, empty files and files of unsupported types are skipped even with
        ``on_error="raise"``, unless ``ReadOptions`` has ``strict=True``. Files of unsupported types
        are combined into one entry per folder (``UnsupportedFilesError``), which contains the
        number of files for each suffix.
        """
        return [*self._corpus.failures, *self._builder.failures]

    @property
    def sources(self) -> list[Path]:
        """The files and folders that ``refresh`` synchronizes."""
        return self._corpus.sources()

    @property
    def read_report(self) -> ReadReport:
        """The number of files read and the problems found by the last ``add`` or ``refresh``.

        After ``NodeGraph(source)``, the report covers all paths of the source. Calling ``add``
        without paths resets the report. The report is not stored with the graph.
        """
        return self._corpus.report

    def build(
        self,
        *groups: str,
        on_error: OnError | None = None,
        embed: bool | str | Sequence[str] = False,
        executor: Executor | None = None,
    ) -> list[Failure]:
        """Build groups and their ancestors immediately, and retry documents that failed before.

        If a build is interrupted, the next call continues it.

        Args:
            groups: The names of the groups. If no names are given, the sentences that ``search``
                uses are built if ``embed`` is set. Otherwise nothing is built.
            on_error: Whether to ``"raise"`` or ``"skip"`` errors in transforms. Defaults to the
                graph's setting.
            embed: If True, the nodes are embedded with all models. If it is a key or a list of
                keys, only these models are used. If a group has more than 200,000 vectors and the
                extra ``faiss`` is installed, an approximate nearest-neighbor index is built as
                well, which takes minutes. With pgvector, it is built for more than 10,000 vectors.
            executor: An executor that runs embedding models and transforms of texts. It can be any
                executor of ``concurrent.futures``, such as a ``ProcessPoolExecutor``, or Dask's
                ``client.get_executor()``. Transforms of nodes or whole groups run in this process.
                If None, everything runs in this process, with ``num_workers`` threads.

        Returns:
            The documents that failed in these groups and their ancestors, if ``on_error`` is
            ``"skip"``.

        Raises:
            UnknownGroupError: If a group is unknown.
            LookupError: If an embedding key is unknown.
            TransformError: If a transform raises an error and ``on_error`` is ``"raise"``.
            EmbeddingError: If an embedding model fails.
            TypeError: If ``executor`` is not an executor, or if a transform or a model cannot be
                pickled for it.

        Example:
            >>> graph = NodeGraph(embed=lambda texts: [[len(text), 1] for text in texts])
            >>> _ = graph.add(["Tea is a drink.", "Rivers run."])
            >>> graph.create_node_group("word", str.split)
            >>> graph.build("word", embed=True)
            []
        """
        _check_on_error(on_error)
        if executor is not None and not hasattr(executor, "submit"):
            raise TypeError(
                "executor must be an executor of concurrent.futures, such as "
                f"ProcessPoolExecutor(4), got {executor!r:.80}"
            )
        keys = self._embedding_keys(embed)
        if keys and not groups:
            groups = (self._default_search().sentences,)
        built: set[str] = set()
        for name in groups:
            lineage = self.reader.lineage(name)
            built.update(group.name for group in lineage)
            self._builder.retry(lineage)
        with self.reader.reading(*groups, on_error=on_error, executor=executor):
            pass
        if keys:
            for name in dict.fromkeys(groups):
                self._embed(name, keys, executor)
                self._link_vectors(name, keys)
        return [failure for failure in self.failures if failure.group in built]

    def _embedding_keys(self, embed: bool | str | Sequence[str]) -> list[str]:
        if embed is False:
            return []
        if embed is True:
            # If the graph has no model, this call raises the error.
            return list(self.embeddings.embedders) or [self.embeddings.key(None)]
        keys = [embed] if isinstance(embed, str) else embed
        return [self.embeddings.key(key) for key in keys]

    def _embed(self, group: str, keys: Sequence[str], executor: Executor | None) -> None:
        """Compute the missing embeddings for the nodes of a group."""
        for texts in self._searched_windows(group):
            for key in keys:
                self.embeddings.embed(texts, key, group, executor)

    def _link_vectors(self, group: str, keys: Sequence[str]) -> None:
        """Build approximate nearest-neighbor indexes for large sets of vectors."""
        from ..retrievers import Cosine

        for key in keys:
            index = Cosine().open(self, group, key)
            if (link := getattr(index, "link", None)) is not None:
                link()

    def _searched_windows(self, group: str) -> Iterator[list[str]]:
        """Yield the search texts of a group in lists of limited size."""
        groups = self.reader.searched_groups(group)
        with self.reader.reading(*groups):
            ids = self._store.nodes.ids(group)
        window: list[str] = []
        characters = 0
        for batch in portions(ids, _READ_AT_ONCE):
            with self.reader.reading(*groups):
                texts = self.reader.searched_texts(self.reader.existing_nodes(batch))
            window += texts
            characters += sum([len(text) for text in texts])
            if len(window) >= _EMBEDDED_TEXTS or characters >= _EMBEDDED_CHARACTERS:
                yield window
                window = []
                characters = 0
        yield window

    # Search

    @explain_names
    def search(
        self,
        query: str,
        top_k: int | None = None,
        *,
        filters: Mapping[str, Any] | None = None,
        min_score: float | None = None,
        max_tokens: int | None = None,
        phrases: Literal["first", "required"] = "first",
    ) -> list[ScoredNode]:
        """Return the passages that best match a question, best first.

        This is the default search. For other kinds of search, use ``nodekin.retrievers``. Node
        groups that the search needs are built first.

        Args:
            query: The question.
            top_k: The maximum number of results. Defaults to 6. If ``max_tokens`` is set, the
                default is as many results as fit.
            filters: Conditions on the metadata. If None, all passages are searched.
            min_score: The minimum score, from 0 to 1.
            max_tokens: The maximum total number of tokens of all results. If set, the results are
                windows of consecutive whole sentences.
            phrases: If ``"required"``, results that do not contain all phrases in quotation marks
                are left out. If ``"first"``, results that contain them are ranked first.

        Raises:
            TypeError: If ``query`` is not a string, or a numeric argument has the wrong type.
            ValueError: If a numeric argument is out of range, or a condition or ``phrases`` is
                invalid.

        Example:
            >>> graph = NodeGraph()
            >>> _ = graph.add(["Green tea is steamed.", "Black tea is fermented."])
            >>> print(graph.search("Which tea is steamed?", top_k=1)[0])
            0.596  Green tea is steamed.
        """
        search = self._default_search()
        if phrases != search.phrases:
            search = search.with_phrases(phrases)
        if min_score is not None:
            search = search.with_min_score(min_score)
        return search.retrieve(query, top_k=top_k, filters=filters, max_tokens=max_tokens)

    def _default_search(self) -> DefaultRetriever:
        from ..retrievers import DefaultRetriever

        if self._default_retriever is None:
            self._default_retriever = DefaultRetriever(self)
        return self._default_retriever

    # Nodes

    def nodes(self, group: str) -> list[Node]:
        """Return all nodes of a group in document order. Missing nodes are created first.

        Raises:
            UnknownGroupError: If the group is unknown.
            TransformError: If a transform raises an error.
        """
        with self.reader.reading(group):
            pass
        return [*self._store.nodes.of_group(group)]

    def node(self, id: str) -> Node:
        """Return the node with the given id. A document's id is also the id of its ``ROOT`` node.

        Raises:
            LookupError: If the node does not exist or was removed.
        """
        (node,) = self.reader.nodes_by_id([id])
        return node

    def find(self, group: str) -> Callable[[Any], list[Node]]:
        """Return a function that finds the relatives of nodes in a group.

        The relatives of a node are its ancestors, its descendants, and nodes with a common
        ancestor. The function accepts one or several nodes or search results, and returns each
        relative once, in document order. It raises LookupError for removed nodes and ValueError for
        nodes of another graph.

        Raises:
            UnknownGroupError: If the group is unknown.

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

    def neighbors(self, node: Node) -> tuple[Node | None, Node | None]:
        """Return the previous and the next node in the same group and document.

        Neighbors may have different parents. None is returned for a missing neighbor. Documents and
        nodes derived from a whole group have no neighbors.

        Raises:
            LookupError: If the node was removed or changed.

        Example:
            >>> graph = NodeGraph()
            >>> _ = graph.add("One. Two.\\nThree.")
            >>> graph.create_node_group("word", str.split)
            >>> one, two, three = graph.nodes("word")
            >>> graph.neighbors(two) == (one, three), graph.neighbors(one) == (None, two)
            (True, True)
        """
        with self._store.transactions.turn():
            current = self.node(node.id)
            if current.group == ROOT or not current.document_id:
                return None, None
            found = {node.order: node for node in self._store.nodes.around(current, 1, 1)}
            return found.get(current.order - 1), found.get(current.order + 1)

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
        """Add links of a given type from one node to other nodes.

        Calling the method again with the same nodes and type replaces the weight and the metadata.
        A link is deleted together with either of its nodes. If the text of a derived node changes,
        the node is replaced by a node with a new id, and its links are lost. A document keeps its
        links as long as its id stays the same.

        Args:
            source: The node from which the links start, or its id.
            target: One or several target nodes, or their ids.
            type: The type of the links, such as ``"cites"`` or ``"mentions"``.
            weight: The strength of the links. Searches treat weights above 1 as 1, and ignore
                weights of 0 or less.
            metadata: Additional fields to store with the links.

        Raises:
            LookupError: If a node does not exist. No link is added in this case.
            RuntimeError: If the method is called inside a transform.
        """
        self._check_outside()
        self._store.links.put(
            self._links(source, target, type, float(weight), dict(metadata or {}))
        )

    def unlink(
        self, source: Node | str, target: Node | str | Iterable[Node | str], type: str = "related"
    ) -> None:
        """Remove links of a given type from one node to other nodes. Missing links are ignored.

        Raises:
            RuntimeError: If the method is called inside a transform.
        """
        self._check_outside()
        self._store.links.remove(self._links(source, target, type))

    def linked(
        self, node: Node | str, type: str | None = None, *, incoming: bool = False
    ) -> list[Node]:
        """Return the nodes that are linked to a node, each once, in document order.

        Args:
            node: The node, or its id.
            type: The type of the links. If None, links of all types are followed.
            incoming: Whether to follow incoming links instead of outgoing links.
        """
        (found,) = self.reader.links_of([self._id(node)], incoming=incoming)
        links = [link for link in found if type in (None, link.type)]
        end = attrgetter("source" if incoming else "target")
        ids = dict.fromkeys([end(link) for link in links])
        return sorted(self.reader.existing_nodes([*ids]), key=lambda other: other.order)

    def _id(self, node: Node | str) -> str:
        """Return the id of a node.

        If an id is passed, it is converted to its stored Unicode form.
        """
        if not isinstance(node, str):
            return as_node(node).id
        return node if node.isascii() else self.reader.stored_ids([node]).get(node, node)

    def _links(
        self, source: Node | str, target: Node | str | Iterable[Node | str], *fields: Any
    ) -> list[Link]:
        targets = [target] if isinstance(target, str | Node) else target
        return [Link(self._id(source), self._id(end), *fields) for end in targets]

    def _searched_digests(self) -> set[str]:
        """Return the hashes of all indexed or embedded texts, without building any group."""
        digests: set[str] = set()
        with self._store.transactions.turn():
            for group in (ROOT, *self._store.groups.names()):
                # The search text of this group requires a group that is not registered.
                with suppress(LookupError):
                    searched = self.reader.searched_groups(group)[1:]
                    if all(self.reader.is_fresh(name) for name in searched):
                        for node in self._store.nodes.of_group(group):
                            digests.add(digest(self.reader.searched_texts([node])[0]))
        return digests


def _source_paths(source: object) -> list[Path]:
    """Return the given files and folders as a list of paths.

    Raises:
        TypeError: If a source is not a path.
    """
    paths = []
    for path in flatten(source):
        if not isinstance(path, str | Path):
            raise TypeError(
                f"source must be a path or a list of paths, got {path!r:.80}; add texts with "
                "graph.add()"
            )
        paths.append(Path(path))
    return paths


def _check_on_error(on_error: str | None) -> None:
    if on_error not in (None, "raise", "skip"):
        raise ValueError(f'on_error must be "raise" or "skip", got {on_error!r}')
