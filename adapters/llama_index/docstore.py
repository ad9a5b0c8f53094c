"""Let a node graph be the document store of LlamaIndex components that read one."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, NoReturn

from llama_index.core.schema import BaseNode
from llama_index.core.storage.docstore import SimpleDocumentStore
from llama_index.core.storage.docstore.types import (
    DEFAULT_PERSIST_PATH,
    BaseDocumentStore,
    RefDocInfo,
)
from llama_index.core.storage.kvstore import SimpleKVStore

from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import ROOT, Node
from ..frameworks import in_thread
from .import_export import export_nodes
from .nodes import all_relationships, find_node, id_in_llama_index, to_document, to_text_node

logger = logging.getLogger(__name__)

DOCUMENTS = "nodekin_documents"
"""Where in a file of LlamaIndex's docstore the documents are, which are no nodes there."""


class NodeGraphDocstore(BaseDocumentStore):
    """Read a graph's nodes as LlamaIndex nodes, with all their relationships.

    For ``AutoMergingRetriever``, ``PrevNextNodePostprocessor`` and other components that look up
    the parent, the children or the neighbours of a result in a docstore. Nothing is copied, and
    later changes of the graph are visible. ``export_nodes`` fills a docstore that is independent
    of the graph. It is read-only: documents are added to the graph, which derives the rest; it
    is no docstore for an ``IngestionPipeline`` or a ``VectorStoreIndex``, which write to theirs.

    Args:
        graph: The node graph.
        groups: The visible groups, with the groups above them; all of the graph by default. Nodes
            of other groups are no nodes and no children here.

    Raises:
        UnknownGroupError: If there is no such group.

    Example:
        >>> graph = NodeGraph()
        >>> ids = graph.add("One. Two.\\nThree.")
        >>> graph.create_node_group("line", str.splitlines)
        >>> graph.create_node_group("word", str.split, parent="line")
        >>> docstore = NodeGraphDocstore(graph, ["word"])
        >>> word = docstore.get_node(graph.nodes("word")[1].id)
        >>> docstore.get_node(word.parent_node.node_id).text
        'One. Two.'
        >>> docstore.get_node(word.next_node.node_id).text
        'Three.'
    """

    def __init__(self, graph: NodeGraph, groups: Sequence[str] | None = None) -> None:
        if not isinstance(graph, NodeGraph):
            raise TypeError(f"graph is a NodeGraph, not {graph!r:.80}")
        self.graph = graph
        self._groups = None if groups is None else tuple(groups)
        for name in self._groups or ():
            graph.reader.lineage(name)

    @property
    def groups(self) -> list[str]:
        """Names of the visible groups, the documents' first."""
        names = self._groups
        if names is None:  # those that are built; the others would be built for nothing
            names = tuple(name for name, group in self.graph.groups.items() if group.size)
        lineages = [self.graph.reader.lineage(name) for name in names if name != ROOT]
        return list(dict.fromkeys([ROOT, *(g.name for lineage in lineages for g in lineage)]))

    # Nodes

    @property
    def docs(self) -> dict[str, BaseNode]:
        """All nodes of the groups by their ids; builds what is missing.

        Documents are among them only if ``"ROOT"`` is one of the ``groups``, as in
        ``export_nodes``; by its id ``get_document`` returns any.
        """
        names = self.groups if ROOT in (self._groups or ()) else self.groups[1:]
        nodes = export_nodes(self.graph, *names) if names else []
        return {node.node_id: node for node in nodes}

    def get_document(self, doc_id: str, raise_error: bool = True) -> BaseNode | None:
        """Return a node with its relationships.

        Raises:
            ValueError: If there is none, and ``raise_error`` is set.
        """
        groups = self.groups
        with self.graph.reader.reading(*groups):
            node = find_node(self.graph, doc_id)
            if node is not None and node.group in groups:
                return to_text_node(node, all_relationships(node, groups))
        if raise_error:
            raise ValueError(
                f"no node {doc_id!r} in the groups {groups}; it may have been removed or changed"
            )
        return None

    aget_document = in_thread(get_document)

    def document_exists(self, doc_id: str) -> bool:
        """Return whether there is a node of that id."""
        node = find_node(self.graph, doc_id)
        return node is not None and node.group in self.groups

    adocument_exists = in_thread(document_exists)

    # Hashes and source documents

    def get_document_hash(self, doc_id: str) -> str | None:
        """Return a node's hash, None if there is no such node."""
        node = self.get_document(doc_id, raise_error=False)
        return None if node is None else node.hash

    aget_document_hash = in_thread(get_document_hash)

    def get_all_document_hashes(self) -> dict[str, str]:
        """Return the ids of all nodes by their hashes, as LlamaIndex's own stores do."""
        return {node.hash: i for i, node in self.docs.items()}

    aget_all_document_hashes = in_thread(get_all_document_hashes)

    def get_all_ref_doc_info(self) -> dict[str, RefDocInfo] | None:
        """Return for each document the ids of its nodes."""
        groups = self.groups
        with self.graph.reader.reading(*groups):
            return {root.id: self._info(root, groups) for root in self.graph.nodes(ROOT)}

    aget_all_ref_doc_info = in_thread(get_all_ref_doc_info)

    def get_ref_doc_info(self, ref_doc_id: str) -> RefDocInfo | None:
        """Return the ids of a document's nodes, None if there is no such document."""
        groups = self.groups
        with self.graph.reader.reading(*groups):
            root = find_node(self.graph, ref_doc_id)
            return None if root is None or root.group != ROOT else self._info(root, groups)

    def _info(self, root: Node, groups: Sequence[str]) -> RefDocInfo:
        nodes = [node for name in groups[1:] for node in self.graph.find(name)(root)]
        return RefDocInfo([*map(id_in_llama_index, nodes)], to_text_node(root).metadata)

    aget_ref_doc_info = in_thread(get_ref_doc_info)

    # Writing

    def persist(
        self,
        persist_path: str = DEFAULT_PERSIST_PATH,
        fs: Any = None,
    ) -> None:
        """Write all nodes as JSON that ``SimpleDocumentStore.from_persist_path`` reads.

        ``StorageContext.persist`` calls it, and ``StorageContext.from_defaults(persist_dir=...)``
        reads what it wrote: a docstore of these nodes that no longer depends on the graph. The
        documents are written, too, for ``load_index_from_storage``. A graph with a store
        (``NodeGraph(store="corpus.nodekin")``) is kept without it. The log says what is not
        written: vectors, and nodes where no group is named and none is built yet.
        """
        values, nodes = SimpleKVStore(), list(self.docs.values())
        if not nodes:
            logger.warning(
                "no node was written to %s: no group is built; name those to write: "
                "NodeGraphDocstore(graph, [...]), of %s",
                *(persist_path, list(self.graph.groups)),
            )
        if self.graph.embeddings.embedders:
            logger.warning(
                "%s has no vectors: an index that is loaded from it embeds again what its vector "
                "store does not have; store='corpus.nodekin' keeps everything",
                persist_path,
            )
        SimpleDocumentStore(values, DOCUMENTS).add_documents(
            [to_document(root) for root in self.graph.nodes(ROOT)]
        )
        copied = SimpleDocumentStore(values)
        copied.add_documents(nodes)
        copied.persist(persist_path, fs)

    def add_documents(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise NotImplementedError, as all methods that write: the graph itself is changed."""
        raise NotImplementedError(
            "a NodeGraphDocstore shows what is in its graph; change that: graph.add(documents), "
            "graph.remove(ids); or give the index or pipeline a SimpleDocumentStore of "
            "export_nodes(graph, ...)"
        )

    async def async_add_documents(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Async version of ``add_documents``."""
        self.add_documents()

    delete_document = delete_ref_doc = add_documents
    set_document_hash = set_document_hashes = add_documents
    adelete_document = adelete_ref_doc = async_add_documents
    aset_document_hash = aset_document_hashes = async_add_documents
