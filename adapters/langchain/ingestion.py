"""Use LangChain splitters as transforms of a graph, and nodekin's file readers in LangChain."""

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
    """Convert a LangChain splitter to a transform for ``graph.create_node_group``.

    A graph also accepts text splitters directly, and then searches the text for each chunk to find
    its position. Use this function for document transformers without ``split_text``, and for
    splitters with ``add_start_index=True``, whose positions are used if they are correct. Metadata
    that the splitter adds, such as headings or ``start_index``, is stored as metadata of the nodes.

    Args:
        splitter: An object with a method ``create_documents``, ``split_text`` or
            ``transform_documents``. The first of these that exists is used.

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
    """A transform that splits nodes with a method of a LangChain splitter."""

    splitter: Any
    method: str

    @property
    def trans_node(self) -> bool:
        """Whether the splitter reads metadata, so that changed metadata requires new nodes."""
        return self.method not in _TEXT_METHODS

    def __call__(self, node: Node | str) -> list[Node]:
        """Split a node or a text into new nodes."""
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
    """Return the ``start_index`` of each chunk, or None for all chunks if one of them is wrong.

    Splitters that count an overlap in tokens return wrong positions.
    """
    starts: list[Any] = [chunk.metadata.get("start_index") for chunk in chunks]
    is_correct = all(
        isinstance(start, int) and start >= 0 and text.startswith(chunk.page_content, start)
        for chunk, start in zip(chunks, starts, strict=True)
    )
    return starts if is_correct and starts == sorted(starts) else [None] * len(chunks)


class FileLoader(BaseLoader):
    """A LangChain document loader that reads a file or a folder with nodekin's readers.

    File types are detected from the contents of the files, and tables are converted to Markdown. A
    graph can read files without this class, which is meant for chains that do not use a graph. It
    can also be the ``loader_cls`` of LangChain's ``DirectoryLoader``.

    Args:
        file_path: The file or folder.
        group: ``"ROOT"`` to load whole files, or ``"page"``, ``"section"``, ``"table"`` or
            ``"symbol"`` to load parts of files. The metadata of each part contains its ``place``.
        reading: Options for the readers, as described in ``NodeGraph``.
        on_error: What to do with files that cannot be read: ``"raise"`` or ``"skip"``, as described
            in ``NodeGraph``.

    Attributes:
        report: A report about the files, available after loading.

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
        """Read the files, and yield their documents one at a time.

        Raises:
            ReadError: If the file or folder does not exist, or if the given file cannot be read.
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
