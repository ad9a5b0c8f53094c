"""The relationships of a graph's nodes in LlamaIndex."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import suppress
from copy import deepcopy
from typing import Any

from llama_index.core.schema import (
    NodeRelationship,
    ObjectType,
    RelatedNodeInfo,
    RelatedNodeType,
    TextNode,
)

from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import ROOT, Node
from ..frameworks import different_text, inherited_fields
from .imported_fields import (
    IMPORT_FIELDS,
    id_in_llama_index,
    original_metadata,
    parent_id_in_llama_index,
)

Relationships = dict[NodeRelationship, RelatedNodeType]

RECORD = "nodekin"
"""Key in the metadata of a node's SOURCE, under which the rest of the graph's node is recorded.

There it survives JSON, docstores, vector stores and pickle, and is no part of the node's own
metadata, so neither of its hash nor of what models read.
"""


def related(node_id: str, group: str | None = None) -> RelatedNodeInfo:
    """Refer to a node by its id: its metadata and hash would be copied into every neighbour."""
    node_type = ObjectType.DOCUMENT if group == ROOT else ObjectType.TEXT
    return RelatedNodeInfo(node_id=node_id, node_type=node_type)


def link_neighbours(previous: TextNode, following: TextNode) -> None:
    """Relate two nodes as PREVIOUS and NEXT."""
    previous.relationships[NodeRelationship.NEXT] = related(following.node_id)
    following.relationships[NodeRelationship.PREVIOUS] = related(previous.node_id)


def fixed_relationships(node: Node) -> Relationships:
    """Return the SOURCE of a node, with its record, and its PARENT.

    A document, and a node made from a whole group, is its own source. A node below a document has
    no PARENT, as in LlamaIndex, whose parents are nodes and never documents.
    """
    source = related(node.document_id or node.id, ROOT)
    source.metadata = {RECORD: node_record(node)}
    relationships: Relationships = {NodeRelationship.SOURCE: source}
    if (parent_id := parent_id_in_llama_index(node)) is not None:
        relationships[NodeRelationship.PARENT] = related(parent_id)
    return relationships


def all_relationships(node: Node, groups: Collection[str] | None = None) -> Relationships:
    """Return all relationships of a node, also to its children and neighbours in its graph.

    Builds nothing. CHILD is absent on leaves; PREVIOUS and NEXT lead across parents.

    Args:
        node: The node; one that is in no graph any more has neither children nor neighbours.
        groups: The groups of its children; None for all that have nodes.
    """
    relationships = fixed_relationships(node)
    graph = node.graph
    if isinstance(graph, NodeGraph):
        with suppress(LookupError), graph.reading():
            before, after = graph.neighbours(node)
            if before is not None:
                relationships[NodeRelationship.PREVIOUS] = related(id_in_llama_index(before))
            if after is not None:
                relationships[NodeRelationship.NEXT] = related(id_in_llama_index(after))
            children = [related(id_in_llama_index(n)) for n in _children(graph, node, groups)]
            if children:
                relationships[NodeRelationship.CHILD] = children
    return relationships


def _children(graph: NodeGraph, node: Node, groups: Collection[str] | None) -> Iterator[Node]:
    for name, group in graph.groups.items():
        if group.parent == node.group and group.size and (groups is None or name in groups):
            # What was made from the whole group has no parent, only members.
            yield from (n for n in graph.children_in(name, node) if n.parent_id == node.id)


def node_record(node: Node) -> dict[str, Any]:
    """Return what a LlamaIndex node has no field for, as plain values."""
    record: dict[str, Any] = {"group": node.group, "id": node.id, "order": node.order}
    content = node.content if isinstance(node.content, str) else str(node.content)
    metadata = original_metadata(node)
    inherited, hidden = inherited_fields(node)
    hidden.update({f: deepcopy(node.inherited[f]) for f in inherited if f not in metadata})
    optional = {
        "document_id": None if node.document_id == "" else node.document_id,
        "parent_id": node.parent_id,
        "offset": node.offset,
        "inherited": [field for field in inherited if field in metadata],
        "hidden": hidden,
        "own": {f: node.own_metadata[f] for f in IMPORT_FIELDS if f in node.own_metadata},
        "search_text": node.search_text and node.search_text.to_row(),
        "inherited_search_text": node.inherited_search_text and node.inherited_search_text.to_row(),
    }
    record.update({name: value for name, value in optional.items() if value not in (None, [], {})})
    return {**record, **different_text(node, content)}
