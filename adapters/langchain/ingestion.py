"""Use LangChain's splitters as transforms, and nodekin's readers as a LangChain loader."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_core.document_loaders import BaseLoader
from langchain_core.documents import BaseDocumentTransformer, Document

from ...nodegraph.errors import OnError, explain_names
from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import ROOT, Node
from ...nodegraph.readers.source_files import ReadOptions, ReadReport
from ..argument_types import Splitter
from ..frameworks import own_metadata
from .documents import to_document

_TEXT_METHODS = ("create_documents", "split_text")

_METHODS = (*_TEXT_METHODS, "transform_documents")


def as_transform(splitter: Splitter | BaseDocumentTransformer) -> SplitterTransform:
    """Return a transform that calls a LangChain splitter, for ``graph.create_node_group``.

    A graph also accepts a text splitter itself, and searches the text for the chunks. Use this
    function for document transformers without ``split_text``, and for a splitter with
    ``add_start_index=True``, whose indexes are used if they are correct.

    Metadata that the splitter adds (headings, ``start_index``) becomes the nodes' own metadata.

    Args:
        splitter: An object with ``create_documents``, ``split_text`` or ``transform_documents``,
            tried in this order.

    Raises:
        TypeError: If the object has none of these methods, or is a class.

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
    if inspect.isclass(splitter):
        raise TypeError(
            f"splitter must be an object, got the class {splitter.__name__}; write "
            f"{splitter.__name__}(...)"
        )
    method = next((name for name in _METHODS if hasattr(splitter, name)), None)
    if method is None:
        raise TypeError(f"splitter must have one of {', '.join(_METHODS)}, got {splitter!r:.80}")
    return SplitterTransform(splitter, method)


@dataclass(frozen=True, slots=True)
class SplitterTransform:
    """A transform that calls a method of a LangChain splitter."""

    splitter: Any
    method: str

    @property
    def trans_node(self) -> bool:
        """Whether the method reads metadata, so that a change of metadata rebuilds the nodes."""
        return self.method not in _TEXT_METHODS

    def __call__(self, node: Node | str) -> list[Node]:
        """Split a node or a text."""
        node = Node(node) if isinstance(node, str) else node
        parts = self._split(node)
        chunks = [Document(part) if isinstance(part, str) else part for part in parts]
        return [
            Node(chunk.page_content, own_metadata(chunk.metadata, node.metadata), start=start)
            for chunk, start in zip(chunks, _starts(chunks, node.text), strict=True)
        ]

    def _split(self, node: Node) -> list[Any]:
        given: Any = [node.text]
        if self.method == "split_text":
            given = node.text
        elif self.trans_node:
            given = [Document(node.text, metadata=deepcopy(node.metadata), id=node.id or None)]
        return list(getattr(self.splitter, self.method)(given))


def _starts(chunks: list[Document], text: str) -> list[int | None]:
    """Return the ``start_index`` of each chunk. If one index is wrong, return None for all chunks.

    Splitters that count an overlap in tokens return wrong indexes.
    """
    starts: list[Any] = [chunk.metadata.get("start_index") for chunk in chunks]
    is_correct = all(
        isinstance(start, int) and start >= 0 and text.startswith(chunk.page_content, start)
        for chunk, start in zip(chunks, starts, strict=True)
    )
    return starts if is_correct and starts == sorted(starts) else [None] * len(chunks)


class FileLoader(BaseLoader):
    """A loader for a file or folder that uses nodekin's readers.

    File types are detected by content, and tables become Markdown. A graph reads paths itself. This
    class is for chains without a graph, and it can be the ``loader_cls`` of LangChain's
    ``DirectoryLoader``.

    Args:
        file_path: The file or folder.
        group: ``"ROOT"`` for whole files, or ``"page"``, ``"section"``, ``"table"`` or ``"symbol"``
            for parts. The metadata of a part contains its ``place``.
        reading: The readers' options. See ``NodeGraph``.
        on_error: What to do with files that cannot be read: ``"raise"`` or ``"skip"``. See
            ``NodeGraph``.

    Attributes:
        report: The report on the files after loading.

    Example:
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     _ = Path(folder, "tea.md").write_text("# Green tea\\n\\nIt is steamed.")
        ...     (document,) = FileLoader(folder, group="section").load()
        >>> document.page_content, document.metadata["place"]
        ('# Green tea\\n\\nIt is steamed.', 'tea.md, line 1, Green tea')
    """

    @explain_names
    def __init__(
        self,
        file_path: str | Path,
        group: str = ROOT,
        *,
        reading: ReadOptions | None = None,
        on_error: OnError | None = None,
    ) -> None:
        self.reading = reading
        self.on_error = on_error
        self.file_path = Path(file_path)
        self.group = group
        self.report = ReadReport()

    def lazy_load(self) -> Iterator[Document]:
        """Read the files and yield their documents.

        Raises:
            ReadError: If the file or folder is missing, or a named file cannot be read.
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
