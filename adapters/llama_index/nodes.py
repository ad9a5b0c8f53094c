"""Convert nodes and results between nodekin and LlamaIndex."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from itertools import groupby, pairwise
from typing import Any

from llama_index.core.bridge.pydantic import Field
from llama_index.core.schema import (
    BaseNode,
    NodeRelationship,
    NodeWithScore,
    ObjectType,
    RelatedNodeInfo,
    TextNode,
)
from llama_index.core.schema import Document as LlamaIndexDocument

from ...nodegraph.foreign_documents import their_template
from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import ROOT, Node
from ...retrievers.results import ScoredNode
from ..frameworks import copied_metadata, evidence_dicts
from .docstore import GraphDocstore

# Metadata fields about files, which LlamaIndex's readers hide from models.
_FILE_FIELDS = frozenset(
    "file_name file_type file_size creation_date last_modified_date last_accessed_date "
    "page_unit page_count encoding read_notes".split()
)


def related(node_id: str, group: str | None = None) -> RelatedNodeInfo:
    """Return a reference to the node with the given id. The reference does not contain metadata."""
    node_type = ObjectType.DOCUMENT if group == ROOT else ObjectType.TEXT
    return RelatedNodeInfo(node_id=node_id, node_type=node_type)


def link_neighbors(nodes: Sequence[TextNode]) -> None:
    """Connect consecutive nodes with PREVIOUS and NEXT relationships."""
    for previous, following in pairwise(nodes):
        previous.relationships[NodeRelationship.NEXT] = related(following.node_id)
        following.relationships[NodeRelationship.PREVIOUS] = related(previous.node_id)


def to_text_node(node: Node) -> TextNode:
    """Convert a node of a graph to an independent LlamaIndex ``TextNode``.

    The text is the content of the node, and the metadata includes inherited fields. The SOURCE
    relationship refers to the document, PARENT to the parent node if it is not the document itself,
    and PREVIOUS and NEXT to the neighbors in the same group and document. ``start_char_idx`` and
    ``end_char_idx`` are positions in the document.

    Raises:
        ValueError: If the node has no id.

    Example:
        >>> node = Node("Tea is a drink.", {"page": 3}, id="n1", group="line", document_id="d1")
        >>> text_node = to_text_node(node)
        >>> text_node.text, text_node.node_id, text_node.ref_doc_id, text_node.metadata
        ('Tea is a drink.', 'n1', 'd1', {'page': 3})
    """
    text_node = _text_node(node)
    if isinstance(node.graph, NodeGraph) and node.group != ROOT:
        with suppress(LookupError):  # the node was removed after the search
            neighbors = node.graph.neighbors(node)
            names = (NodeRelationship.PREVIOUS, NodeRelationship.NEXT)
            for name, neighbor in zip(names, neighbors, strict=True):
                if neighbor is not None:
                    text_node.relationships[name] = related(neighbor.id)
    return text_node


def _text_node(node: Node) -> TextNode:
    if not node.id:
        raise ValueError(f"{node!r} has no id; take the node from a graph, or set an id")
    relationships: dict[NodeRelationship, Any] = {
        NodeRelationship.SOURCE: related(node.document_id or node.id, ROOT)
    }
    if node.parent_id not in (None, node.document_id):
        relationships[NodeRelationship.PARENT] = related(str(node.parent_id))
    metadata = copied_metadata(node, node.metadata)
    return TextNode(
        id_=node.id,
        text=str(node.content),
        metadata=metadata,
        start_char_idx=node.start,
        end_char_idx=node.end,
        relationships=relationships,
        **shown_metadata(node, metadata),
    )


def shown_metadata(node: Node, metadata: Iterable[str]) -> dict[str, Any]:
    """Return the metadata templates and excluded metadata fields for a converted node.

    A node that was derived from a LlamaIndex document uses the settings of this document.
    """
    searched = node.search_text or node.inherited_search_text
    if searched is None or searched.fields is not None:
        hidden = [field for field in metadata if field in _FILE_FIELDS]
        return {"excluded_embed_metadata_keys": hidden, "excluded_llm_metadata_keys": [*hidden]}
    return {
        "excluded_embed_metadata_keys": [*searched.excluded],
        "excluded_llm_metadata_keys": [*searched.excluded_llm],
        "metadata_template": searched.field_template,
        "metadata_separator": searched.separator,
        "text_template": their_template(searched.template),
    }


def to_document(node: Node) -> LlamaIndexDocument:
    """Convert a node of a graph to a LlamaIndex document."""
    metadata = copied_metadata(node, node.metadata)
    shown = shown_metadata(node, metadata)
    return LlamaIndexDocument(id_=node.id, text=str(node.content), metadata=metadata, **shown)


def export_nodes(graph: NodeGraph, *groups: str) -> list[TextNode]:
    """Convert node groups and their ancestors to independent LlamaIndex nodes.

    The nodes can be added to a docstore or a vector store. Parent nodes have CHILD relationships to
    nodes of the exported groups. Documents are included only if ``"ROOT"`` is one of the groups.

    Args:
        graph: The node graph.
        *groups: The names of the groups to export.

    Returns:
        The nodes of all groups. Parents come before their children, and the nodes of a group are in
        document order.

    Raises:
        UnknownGroupError: If a group is unknown.
        TransformError: If a transform fails while a group is built.

    Example:
        >>> from llama_index.core.node_parser import get_leaf_nodes
        >>> from nodekin.nodegraph import NodeGraph
        >>> graph = NodeGraph()
        >>> ids = graph.add("One. Two.\\nThree.")
        >>> graph.create_node_group("line", str.splitlines)
        >>> graph.create_node_group("word", str.split, parent="line")
        >>> [node.text for node in get_leaf_nodes(export_nodes(graph, "word"))]
        ['One.', 'Two.', 'Three.']
    """
    lineages = [group.name for name in groups for group in graph.reader.lineage(name)]
    names = dict.fromkeys([ROOT, *lineages] if ROOT in groups else lineages)
    children: dict[str, list[RelatedNodeInfo]] = defaultdict(list)
    exported: list[TextNode] = []
    for name in names:
        nodes = graph.nodes(name)
        text_nodes = [_text_node(node) for node in nodes]
        for _, pairs in groupby(zip(nodes, text_nodes, strict=True), lambda p: p[0].document_id):
            link_neighbors([text_node for _, text_node in pairs])
        for node in nodes:
            children[str(node.parent_id)].append(related(node.id))
        exported += text_nodes
    for text_node in exported:
        if text_node.node_id in children:
            text_node.relationships[NodeRelationship.CHILD] = children[text_node.node_id]
    return exported


class NamedByClass:
    """A LlamaIndex component that is serialized under the name of its class."""

    @classmethod
    def class_name(cls) -> str:
        """Return the name of the class."""
        return cls.__name__


class NodeWithEvidence(NamedByClass, NodeWithScore):
    """A ``NodeWithScore`` that also contains the matches that led to the result.

    The evidence depends on the query. It is therefore not part of the metadata of the node, which
    LlamaIndex includes in hashes. Postprocessors, fusion, query engines, copies and pickles
    preserve the evidence, but ``to_dict`` and JSON do not include it.
    """

    evidence: list[dict[str, Any]] = Field(
        default_factory=list,
        exclude=True,
        description="The matches that led to the node, best first: dicts with id, group, text, "
        "start, end, score, similarity and query.",
    )


def to_results(results: Iterable[ScoredNode]) -> list[NodeWithEvidence]:
    """Convert results to LlamaIndex results.

    For an index, the original LlamaIndex nodes are returned. Other nodes are converted to text
    nodes.
    """
    converted: list[NodeWithEvidence] = []
    for graph, of_graph in groupby(results, lambda result: result.node.graph):
        group = [*of_graph]
        given: Mapping[str, BaseNode] = {}
        if isinstance(graph, NodeGraph):
            given = GraphDocstore(graph).given_nodes([result.node for result in group])
        for result in group:
            node = _to_node(result.node, given)
            score = float(result.score)
            evidence = evidence_dicts(result)
            converted.append(NodeWithEvidence(node=node, score=score, evidence=evidence))
    return converted


def _to_node(node: Node, given: Mapping[str, BaseNode]) -> BaseNode:
    """Return the original LlamaIndex node, or a new text node for a part of it."""
    original = given.get(node.id) or _original(node)
    if original is not None:
        return original
    converted = to_text_node(node)
    above = given.get(node.document_id or "")
    if above is not None:
        relate_part(converted, above)
    return converted


def relate_part(part: TextNode, node: BaseNode) -> None:
    """Link a part of a node to the source document of the node, and set its position there."""
    offset = getattr(node, "start_char_idx", None)
    if node.ref_doc_id is None or offset is None or part.start_char_idx is None:
        return
    part.relationships[NodeRelationship.SOURCE] = related(node.ref_doc_id, ROOT)
    part.relationships.setdefault(NodeRelationship.PARENT, related(node.node_id))
    part.start_char_idx += offset
    part.end_char_idx = part.start_char_idx + len(part.text)


def _original(node: Node) -> BaseNode | None:
    """Return a copy of the original LlamaIndex node if a LlamaIndex retriever returned it."""
    original = getattr(node, "original", None)
    return original.model_copy(deep=True) if isinstance(original, BaseNode) else None


def evidence_of(result: NodeWithScore) -> list[dict[str, Any]]:
    """Return a copy of the evidence of a result."""
    return deepcopy(result.evidence) if isinstance(result, NodeWithEvidence) else []


def copy_result(result: NodeWithScore) -> NodeWithScore:
    """Return a deep copy of a result."""
    node = result.node.model_copy(deep=True)
    return NodeWithEvidence(node=node, score=result.score, evidence=evidence_of(result))
