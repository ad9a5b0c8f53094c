"""Use LangChain's text splitters and document transformers to make node groups."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_core.document_loaders import BaseLoader
from langchain_core.documents import Document

from ...nodegraph.builder import OnError
from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import ROOT, Node
from ...nodegraph.readers.source_files import ReadOptions, ReadReport
from ..frameworks import is_start, own_metadata
from .documents import to_document


def as_transform(splitter: object) -> SplitterTransform:
    """Return a transform that calls a LangChain splitter, for ``graph.create_node_group``.

    A graph takes a bare text splitter too, and searches for the starts of its chunks. Choose this
    one for a splitter with ``add_start_index=True``, whose index is used where it is true, and
    for what splits or changes documents and has no ``split_text``.

    The metadata that the splitter adds to its chunks (headings, ``start_index``) becomes the
    nodes' own. A chunk that is no part of the text, for example one that
    ``MarkdownHeaderTextSplitter`` joined of several lines, has no span.

    Args:
        splitter: An object with ``create_documents``, ``split_text``, ``transform_documents`` or
            ``split_documents``, tried in this order. The first two see a text. The others a
            document with the node's metadata and id.

    Raises:
        TypeError: If it has none of them, or is a class.

    Example:
        >>> from langchain_text_splitters import CharacterTextSplitter
        >>> from nodekin.nodegraph import NodeGraph
        >>> splitter = CharacterTextSplitter(
        ...     separator=" ", chunk_size=9, chunk_overlap=0, add_start_index=True
        ... )
        >>> graph = NodeGraph()
        >>> ids = graph.add("Rivers run to the sea.")
        >>> graph.create_node_group("chunk", as_transform(splitter))
        >>> [(node.text, node.start) for node in graph.nodes("chunk")]
        [('Rivers', 0), ('run to', 7), ('the sea.', 14)]
    """
    return SplitterTransform(splitter)


_TEXT_METHODS = ("create_documents", "split_text")

_DOCUMENT_METHODS = ("transform_documents", "split_documents")

_METHODS = (*_TEXT_METHODS, *_DOCUMENT_METHODS)


@dataclass(frozen=True, slots=True)
class SplitterTransform:
    """Hold a LangChain splitter and call it with a node or a text."""

    splitter: object

    def __post_init__(self) -> None:
        if inspect.isclass(self.splitter):
            raise TypeError(
                f"as_transform takes a splitter, not the class; give {self.splitter.__name__}(...)"
            )
        if not any(hasattr(self.splitter, m) for m in _METHODS):
            raise TypeError(
                f"a LangChain splitter has one of {', '.join(_METHODS)}; {self.splitter!r:.80} has "
                "none"
            )

    @property
    def trans_node(self) -> bool:
        """Whether it takes nodes: then a change of a document's metadata rebuilds its nodes."""
        return not any(hasattr(self.splitter, method) for method in _TEXT_METHODS)

    def __call__(self, node: Node | str) -> list[Node]:
        """Split a node or a text."""
        if isinstance(node, str):
            node = Node(node)
        chunks = [
            Document(chunk) if isinstance(chunk, str) else chunk for chunk in self._split(node)
        ]
        return [
            Node(chunk.page_content, own_metadata(chunk.metadata, node.metadata), start=start)
            for chunk, start in zip(chunks, _starts(chunks, node.text), strict=True)
        ]

    def _split(self, node: Node) -> list[Document] | list[str]:
        method = next(name for name in _METHODS if hasattr(self.splitter, name))
        texts_or_documents: Any = [node.text]
        if method == "split_text":
            texts_or_documents = node.text
        elif method in _DOCUMENT_METHODS:
            metadata = deepcopy(node.metadata)
            texts_or_documents = [Document(node.text, metadata=metadata, id=node.id or None)]
        return list(getattr(self.splitter, method)(texts_or_documents))


def _starts(chunks: list[Document], text: str) -> list[int | None]:
    """Return the chunks' ``start_index``. None for all where one is wrong.

    Splitters search for it, and miss where the overlap is counted in tokens.
    """
    starts: list[Any] = [chunk.metadata.get("start_index") for chunk in chunks]
    previous = 0
    for chunk, start in zip(chunks, starts, strict=True):
        if not is_start(start, chunk.page_content, text) or start < previous:
            return [None] * len(chunks)
        previous = start
    return starts


class FileLoader(BaseLoader):
    """Load a file or a folder as ``NodeGraph`` reads it: known by content, tables as Markdown.

    Choose this for a chain of LangChain's own. A graph reads paths itself. It can be the
    ``loader_cls`` of LangChain's ``DirectoryLoader``, too.

    Args:
        file_path: The file or the folder.
        group: What becomes a document: whole files, or their ``"page"``, ``"section"``,
            ``"table"`` or ``"symbol"``, whose metadata say where it stands (``place``,
            ``page_label``).
        reading: How files are read.
        on_error: As in ``NodeGraph``. None: unreadable files of a folder are skipped with a
            warning.

    Attributes:
        report: What became of the files, after they were loaded.
    """

    def __init__(
        self,
        file_path: str | Path,
        group: str = ROOT,
        *,
        reading: ReadOptions | None = None,
        on_error: OnError | None = None,
    ) -> None:
        self.file_path = Path(file_path)
        self.group = group
        self.reading = reading
        self.on_error = on_error
        self.report = ReadReport()

    def lazy_load(self) -> Iterator[Document]:
        """Read the files. Yield their documents.

        Pictures, archives and encrypted files of a folder are skipped, and named in ``report``.

        Raises:
            ReadError: If the file or folder is missing, or a named file can't be read.
            LookupError: If the group is unknown.
        """
        graph = NodeGraph(
            self.file_path, reading=self.reading, on_error=self.on_error, progress=False
        )
        self.report = graph.read_report
        for node in graph.nodes(self.group):
            document = to_document(node)
            document.metadata.setdefault("source", str(node.metadata["file_path"]))
            if self.group != ROOT:
                document.metadata.setdefault("place", node.place)
            yield document
