"""Read files of all formats as LlamaIndex documents."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from llama_index.core.readers.base import BaseReader
from llama_index.core.schema import Document

from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import ROOT
from ...nodegraph.readers.read_options import ReadOptions
from .nodes import to_text_node


class FileReader(BaseReader):
    """Read a file or a folder as ``NodeGraph`` reads it: known by content, tables as Markdown.

    Choose this for LlamaIndex's own pipelines, by itself or in the ``file_extractor`` of
    ``SimpleDirectoryReader``; a graph reads paths itself.

    Args:
        group: What becomes a document: whole files, or their ``"page"``, ``"section"``,
            ``"table"`` or ``"symbol"``, whose metadata say where it stands (``place``,
            ``page_label``).
        reading: How files are read.
    """

    def __init__(self, group: str = ROOT, *, reading: ReadOptions | None = None) -> None:
        self.group = group
        self.reading = reading

    def load_data(
        self, file: str | Path, extra_info: dict[str, Any] | None = None
    ) -> list[Document]:
        """Return the documents of a file or folder.

        Args:
            file: The file or the folder.
            extra_info: More metadata, in place of fields of the same name.

        Raises:
            ReadError: If there is no such file or folder, or a file can't be read.
            LookupError: If there is no such group.
        """
        graph = NodeGraph(Path(file), reading=self.reading, progress=False)
        documents = []
        for node in graph.nodes(self.group):
            own = to_text_node(node)
            place = {} if self.group == ROOT else {"place": node.place}
            documents.append(
                Document(
                    text=own.text,
                    metadata={**place, **own.metadata, **(extra_info or {})},
                    id_=own.node_id,
                    excluded_embed_metadata_keys=own.excluded_embed_metadata_keys,
                    excluded_llm_metadata_keys=own.excluded_llm_metadata_keys,
                )
            )
        return documents
