"""Let a node graph be the document store of LlamaIndex components that read one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from llama_index.core.schema import BaseNode, NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.storage.docstore.types import BaseDocumentStore, RefDocInfo

from ...nodegraph import ROOT, Node, NodeGraph
from .export_nodes import export_nodes
from .node_lookup import graph_nodes
from .nodes import origin_of, related, to_text_node


class NodeGraphDocstore(BaseDocumentStore):
    """Read a graph's nodes as LlamaIndex nodes, with all their relationships.

    For ``AutoMergingRetriever``, ``PrevNextNodePostprocessor`` and whatever else asks a docstore
    for the parent, the children or the neighbours of a result: nothing is copied, and what is
    added to the graph is there. ``export_nodes`` fills a docstore that is independent of the
    graph. It can't be written to: documents are added to the graph, which derives the rest.

    Args:
        graph: The node graph.
        groups: The groups that are shown, with those above them; all that the graph has by
            default. Of a group that is not shown there are no nodes and no children.

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
        self._wanted = None if groups is None else tuple(groups)
        for name in self._wanted or ():
            graph.ancestry(name)

    @property
    def groups(self) -> list[str]:
        """Names of the groups that are shown, the documents' first."""
        wanted = self._wanted
        if wanted is None:  # those that something has needed; others would be built for nothing
            wanted = tuple(name for name, group in self.graph.groups.items() if group.size)
        below = (each.name for name in wanted if name != ROOT for each in self.graph.ancestry(name))
        return list(dict.fromkeys([ROOT, *below]))

    # Nodes

    @property
    def docs(self) -> dict[str, BaseNode]:
        """All nodes of the groups by their ids; builds what is missing."""
        names = [name for name in self.groups if name != ROOT]
        return {node.node_id: node for node in export_nodes(self.graph, *names)}

    def get_document(self, doc_id: str, raise_error: bool = True) -> BaseNode | None:
        """Return a node with its relationships.

        Raises:
            ValueError: If there is none, where ``raise_error`` is set.
        """
        groups = self.groups
        with self.graph.reading(*groups):
            (node,) = graph_nodes(self.graph, [doc_id])
            if node is not None and node.group in groups:
                return self._related(node, groups)
        if raise_error:
            raise ValueError(
                f"no node {doc_id!r} in the groups {groups}; it may have been removed or changed"
            )
        return None

    def _related(self, node: Node, groups: Sequence[str]) -> TextNode:
        made = to_text_node(node)
        children = [
            related(_id(child))
            for name, found in node.children.items()
            if name in groups
            for child in found
        ]
        if children:
            made.relationships[NodeRelationship.CHILD] = children
        before, after = self._neighbours(node)
        if before is not None:
            made.relationships[NodeRelationship.PREVIOUS] = before
        if after is not None:
            made.relationships[NodeRelationship.NEXT] = after
        return made

    def _neighbours(self, node: Node) -> tuple[RelatedNodeInfo | None, RelatedNodeInfo | None]:
        """Return what stands beside a node in its group and document."""
        if node.group == ROOT or not node.document_id:
            return None, None
        beside = self.graph.find(node.group)(node.root)
        at = next(place for place, each in enumerate(beside) if each.id == node.id)
        before = related(_id(beside[at - 1])) if at else None
        return before, related(_id(beside[at + 1])) if at + 1 < len(beside) else None

    async def aget_document(self, doc_id: str, raise_error: bool = True) -> BaseNode | None:
        """Do what ``get_document`` does, in a thread."""
        return await asyncio.to_thread(self.get_document, doc_id, raise_error)

    def document_exists(self, doc_id: str) -> bool:
        """Tell whether there is a node of that id."""
        (node,) = graph_nodes(self.graph, [doc_id])
        return node is not None and node.group in self.groups

    async def adocument_exists(self, doc_id: str) -> bool:
        """Do what ``document_exists`` does, in a thread."""
        return await asyncio.to_thread(self.document_exists, doc_id)

    # Hashes and source documents

    def get_document_hash(self, doc_id: str) -> str | None:
        """Return a node's hash, None where there is no such node."""
        node = self.get_document(doc_id, raise_error=False)
        return None if node is None else node.hash

    async def aget_document_hash(self, doc_id: str) -> str | None:
        """Do what ``get_document_hash`` does, in a thread."""
        return await asyncio.to_thread(self.get_document_hash, doc_id)

    def get_all_document_hashes(self) -> dict[str, str]:
        """Return the ids of all nodes by their hashes, as LlamaIndex's own stores do."""
        return {node.hash: i for i, node in self.docs.items()}

    async def aget_all_document_hashes(self) -> dict[str, str]:
        """Do what ``get_all_document_hashes`` does, in a thread."""
        return await asyncio.to_thread(self.get_all_document_hashes)

    def get_all_ref_doc_info(self) -> dict[str, RefDocInfo] | None:
        """Return for each document which nodes were made from it."""
        infos: dict[str, RefDocInfo] = {}
        for i, node in self.docs.items():
            source = node.ref_doc_id
            if source is not None and i != source:
                infos.setdefault(source, RefDocInfo()).node_ids.append(i)
        for root in self.graph.nodes(ROOT):
            infos.setdefault(root.id, RefDocInfo()).metadata = to_text_node(root).metadata
        return infos

    async def aget_all_ref_doc_info(self) -> dict[str, RefDocInfo] | None:
        """Do what ``get_all_ref_doc_info`` does, in a thread."""
        return await asyncio.to_thread(self.get_all_ref_doc_info)

    def get_ref_doc_info(self, ref_doc_id: str) -> RefDocInfo | None:
        """Return which nodes were made from a document, None where there is no such document."""
        groups = [name for name in self.groups if name != ROOT]
        with self.graph.reading(*groups):
            (root,) = graph_nodes(self.graph, [ref_doc_id])
            if root is None or root.group != ROOT:
                return None
            ids = [_id(each) for name in groups for each in self.graph.find(name)(root)]
        return RefDocInfo(ids, to_text_node(root).metadata)

    async def aget_ref_doc_info(self, ref_doc_id: str) -> RefDocInfo | None:
        """Do what ``get_ref_doc_info`` does, in a thread."""
        return await asyncio.to_thread(self.get_ref_doc_info, ref_doc_id)

    # What a graph is not told by its docstore

    def persist(self, *args: Any, **kwargs: Any) -> None:
        """Do nothing: a graph with a store is kept already."""

    def add_documents(self, docs: Sequence[BaseNode], *args: Any, **kwargs: Any) -> None:
        """Refuse: documents are added to the graph."""
        raise _read_only()

    async def async_add_documents(
        self, docs: Sequence[BaseNode], *args: Any, **kwargs: Any
    ) -> None:
        """Refuse: documents are added to the graph."""
        raise _read_only()

    def delete_document(self, doc_id: str, raise_error: bool = True) -> None:
        """Refuse: documents are removed from the graph."""
        raise _read_only()

    async def adelete_document(self, doc_id: str, raise_error: bool = True) -> None:
        """Refuse: documents are removed from the graph."""
        raise _read_only()

    def delete_ref_doc(self, ref_doc_id: str, raise_error: bool = True) -> None:
        """Refuse: documents are removed from the graph."""
        raise _read_only()

    async def adelete_ref_doc(self, ref_doc_id: str, raise_error: bool = True) -> None:
        """Refuse: documents are removed from the graph."""
        raise _read_only()

    def set_document_hash(self, doc_id: str, doc_hash: str) -> None:
        """Refuse: a hash is that of the node."""
        raise _read_only()

    async def aset_document_hash(self, doc_id: str, doc_hash: str) -> None:
        """Refuse: a hash is that of the node."""
        raise _read_only()

    def set_document_hashes(self, doc_hashes: Mapping[str, str]) -> None:
        """Refuse: a hash is that of the node."""
        raise _read_only()

    async def aset_document_hashes(self, doc_hashes: Mapping[str, str]) -> None:
        """Refuse: a hash is that of the node."""
        raise _read_only()


def _id(node: Node) -> str:
    return origin_of(node) or node.id


def _read_only() -> NotImplementedError:
    return NotImplementedError(
        "a NodeGraphDocstore shows what is in its graph; change that: graph.add(documents), "
        "graph.remove(ids)"
    )
