"""Let a graph be the record manager of LangChain's ``index()``."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.documents import Document
from langchain_core.indexing import RecordManager

from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import ROOT
from .documents import delete_documents, existing_nodes, to_document


class NodeGraphRecordManager(RecordManager):
    """Tell ``index()`` which documents a graph has, without a second database that may differ.

    It goes with a ``NodeGraphRetriever`` or ``NodeGraphVectorStore`` of the same graph. What was
    removed from the graph itself is added again by the next ``index()``, where a record manager of
    its own would skip it. When a document was indexed is known within the process that did it,
    which is what a cleanup asks for.

    Args:
        graph: The graph that ``index()`` writes to.
        source_id_key: As for ``index()``: the metadata field that names a document's source, or
            a function of the document.

    Raises:
        TypeError: If ``graph`` is no ``NodeGraph``.

    Example:
        >>> from langchain_core.indexing import index
        >>> from nodekin.adapters.langchain import NodeGraphRetriever
        >>> retriever = NodeGraphRetriever.from_documents([])
        >>> records = NodeGraphRecordManager(retriever.graph)
        >>> settings = {"cleanup": "full", "key_encoder": "sha256"}
        >>> result = index([Document("Tea."), Document("Milk.")], records, retriever, **settings)
        >>> index([Document("Tea.")], records, retriever, **settings)["num_deleted"]
        1
    """

    def __init__(
        self, graph: NodeGraph, source_id_key: str | Callable[[Document], str | None] = "source"
    ) -> None:
        if not isinstance(graph, NodeGraph):
            raise TypeError(f"graph is a NodeGraph, not {graph!r:.80}")
        super().__init__("nodekin")
        self.graph = graph
        self.source_id_key = source_id_key
        self._times: dict[str, float] = {}

    def create_schema(self) -> None:
        """Do nothing: a graph has its tables."""

    def get_time(self) -> float:
        """Return the time in seconds."""
        return time.time()

    def update(
        self,
        keys: Sequence[str],
        *,
        group_ids: Sequence[str | None] | None = None,
        time_at_least: float | None = None,
    ) -> None:
        """Note that documents were indexed now; their sources are in their metadata."""
        self._times.update(dict.fromkeys(keys, max(time.time(), time_at_least or 0.0)))

    def exists(self, keys: Sequence[str]) -> list[bool]:
        """Return which documents the graph has."""
        existing = {node.id for node in existing_nodes(self.graph, keys, ROOT)}
        return [key in existing for key in keys]

    def list_keys(
        self,
        *,
        before: float | None = None,
        after: float | None = None,
        group_ids: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> list[str]:
        """Return documents by when they were indexed, and by their sources."""
        keys = []
        for node in self.graph.nodes(ROOT):
            updated = self._times.get(node.id, 0.0)
            in_time = (before is None or updated < before) and (after is None or updated > after)
            if in_time and (group_ids is None or self._source(to_document(node)) in group_ids):
                keys.append(node.id)
        return keys[:limit]

    def delete_keys(self, keys: Sequence[str]) -> None:
        """Remove documents from the graph, where they still are."""
        delete_documents(self.graph, keys)
        for key in keys:
            self._times.pop(key, None)

    def _source(self, document: Document) -> Any:
        if callable(self.source_id_key):
            return self.source_id_key(document)
        return document.metadata.get(self.source_id_key)

    async def acreate_schema(self) -> None:
        """Async version of ``create_schema``."""

    async def aget_time(self) -> float:
        """Async version of ``get_time``."""
        return self.get_time()

    async def aupdate(self, keys: Sequence[str], **settings: Any) -> None:
        """Async version of ``update``."""
        self.update(keys, **settings)

    async def aexists(self, keys: Sequence[str]) -> list[bool]:
        """Async version of ``exists``."""
        return await asyncio.to_thread(self.exists, keys)

    async def alist_keys(self, **settings: Any) -> list[str]:
        """Async version of ``list_keys``."""
        return await asyncio.to_thread(self.list_keys, **settings)

    async def adelete_keys(self, keys: Sequence[str]) -> None:
        """Async version of ``delete_keys``."""
        await asyncio.to_thread(self.delete_keys, keys)
