"""Load files of all formats as LangChain documents."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from langchain_core.document_loaders import BaseLoader
from langchain_core.documents import Document

from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import ROOT
from ...nodegraph.readers.read_options import ReadOptions
from ...nodegraph.readers.read_report import ReadReport
from .documents import to_document


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

    Attributes:
        report: What became of the files, after they were loaded.
    """

    def __init__(
        self, file_path: str | Path, group: str = ROOT, *, reading: ReadOptions | None = None
    ) -> None:
        self.file_path = Path(file_path)
        self.group = group
        self.reading = reading
        self.report = ReadReport()

    def lazy_load(self) -> Iterator[Document]:
        """Read the files. Yield their documents.

        What is no document (a picture, an encrypted file) is passed over in a folder, and named
        in ``report``.

        Raises:
            ReadError: If there is no such file or folder, or a file is damaged.
            LookupError: If there is no such group.
        """
        graph = NodeGraph(self.file_path, reading=self.reading, progress=False)
        self.report = graph.read_report
        for node in graph.nodes(self.group):
            document = to_document(node)
            document.metadata.setdefault("source", str(node.metadata["file_path"]))
            if self.group != ROOT:
                document.metadata.setdefault("place", node.place)
            yield document
