"""Turn nodes into LlamaIndex nodes and back, losing nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from copy import deepcopy
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

from ...nodegraph import ROOT, Document, Node
from ...retrievers import ScoredNode
from ..conversion import different_text, evidence_dicts, inherited_fields, restore_inherited

PREFIX = "nodekin_"
"""Of nodekin's metadata fields; a user's field with this prefix gets ``_USER`` before it."""

GROUP, NODEKIN_ID = PREFIX + "group", PREFIX + "id"

_ORDER, _OFFSET, _INHERITED = PREFIX + "order", PREFIX + "offset", PREFIX + "inherited"

_TEXT, _CONTENT = PREFIX + "text", PREFIX + "content"

_OVERRIDDEN, _USER = PREFIX + "overridden_", PREFIX + "user_"

_PARENT, _PROPERTIES = PREFIX + "parent", PREFIX + "properties"

IMPORT_FIELDS = LLAMA_INDEX_ID, LLAMA_INDEX_PROPERTIES = "llama_index_id", "llama_index_properties"
"""Fields of an imported node: its id in LlamaIndex, and what makes it differ from an exported one.

``import_nodes`` writes them. ``to_text_node`` restores the original node from them.
"""

TEMPLATES = ("metadata_template", "metadata_separator", "text_template", "mimetype")
"""The properties of an imported node, besides ``embed``, ``llm`` and ``without``."""

# Fields of a file that LlamaIndex's own reader hides from models, too.
_FILE_FIELDS = (
    *("file_name", "file_type", "file_size"),
    *("creation_date", "last_modified_date", "last_accessed_date"),
)

_HIDDEN = frozenset((*_FILE_FIELDS, *IMPORT_FIELDS))


def to_text_node(node: Node) -> TextNode:
    """Make a LlamaIndex ``TextNode`` of a node, sharing nothing with it.

    Choose ``export_nodes`` for whole groups: there nodes have their children and neighbours, too.

    The text is the node's content (its text, if the content is no text), the id the node's;
    ``start_char_idx`` and ``end_char_idx`` count in the source document. SOURCE is the document,
    PARENT the parent; both are ids only. The metadata is the node's own and inherited fields,
    flat, as users know them, and a few flat fields of nodekin that begin with ``nodekin_``, first
    of all ``nodekin_group``. Those, and the name, type, size and dates of a file, are hidden from
    models.

    Nothing depends on a query, so that ``hash`` is the same in every retrieval.

    A node that ``import_nodes`` imported is restored: its id, parent, templates and excluded
    fields are the original ones.

    Raises:
        TypeError: If it is no node.
        ValueError: If the node has no id, as LlamaIndex refers to nodes by their ids.

    Example:
        >>> node = Node("Tea is a drink.", {"page": 3}, id="n1", group="line", document_id="d1")
        >>> text_node = to_text_node(node)
        >>> text_node.text, text_node.node_id, text_node.ref_doc_id
        ('Tea is a drink.', 'n1', 'd1')
        >>> text_node.get_content("llm")
        'page: 3\\n\\nTea is a drink.'
    """
    if not isinstance(node, Node):
        raise TypeError(f"to_text_node takes a nodekin Node, not {node!r:.80}")
    if not node.id:
        raise ValueError(f"{node!r} has no id yet; take it from a graph, or give it one")
    content = node.content if isinstance(node.content, str) else str(node.content)
    metadata = {_escape(field): value for field, value in deepcopy(node.metadata).items()}
    metadata.update(_position(node, content))
    original_id, properties = original_id_of(node), _properties(node)
    if original_id is not None:
        metadata[NODEKIN_ID] = node.id
        del metadata[LLAMA_INDEX_ID]
    if properties:
        metadata[_PROPERTIES] = metadata.pop(LLAMA_INDEX_PROPERTIES)
        for field in properties.get("without", ()):  # its parent had it, the node did not
            if field in node.inherited and field not in node.own_metadata:
                metadata[_OVERRIDDEN + field] = metadata.pop(_escape(field))
    original_parent = _original_parent(node)
    if original_parent is not None:
        metadata[_PARENT] = node.parent_id
    hidden = hidden_fields(metadata)
    own_hidden = [field for field in hidden if field not in _FILE_FIELDS]

    def excluded(kind: str) -> list[str]:
        return [*properties[kind], *own_hidden] if kind in properties else hidden

    return TextNode(
        id_=original_id or node.id,
        text=content,
        metadata=metadata,
        excluded_embed_metadata_keys=excluded("embed"),
        excluded_llm_metadata_keys=excluded("llm"),
        relationships=_relationships(node, original_parent),
        start_char_idx=node.start,
        end_char_idx=node.end,
        **{name: properties[name] for name in TEMPLATES if name in properties},
    )


def to_node_with_score(result: ScoredNode) -> NodeWithEvidence:
    """Make a LlamaIndex ``NodeWithScore`` of a result, with its evidence.

    Example:
        >>> to_node_with_score(ScoredNode(Node("Tea", id="n1"), 0.0)).score
        0.0
    """
    return NodeWithEvidence(
        node=to_text_node(result.node), score=float(result.score), evidence=evidence_dicts(result)
    )


def from_text_node(text_node: BaseNode) -> Node | Document:
    """Turn a LlamaIndex node back into the node it was made of, or into a source document.

    A node that ``to_text_node`` made gives that node, also after a docstore, JSON or pickle
    (without a graph: ``graph.node(node.id)`` is the one in the graph). Fields that were added to
    its metadata since become the node's own.

    Any other node, a LlamaIndex ``Document`` or a chunk of a parser, is a text that no graph has
    derived: it becomes a nodekin ``Document`` with its id, text and metadata, as in ``graph.add``.

    Raises:
        TypeError: If it is no LlamaIndex node.

    Example:
        >>> from_text_node(to_text_node(Node("Tea", {"page": 3}, id="n1", group="line")))
        Node('Tea', group='line', id='n1')
        >>> from_text_node(TextNode(text="Tea is a drink.", id_="tea"))
        Document(text='Tea is a drink.', metadata={}, id='tea')
    """
    if not isinstance(text_node, BaseNode):
        raise TypeError(
            f"from_text_node takes a LlamaIndex node, not {text_node!r:.80}; of a NodeWithScore "
            "give the .node"
        )
    metadata = deepcopy(text_node.metadata)
    text = text_node.get_content()
    if not isinstance(text_node, TextNode) or GROUP not in metadata:
        return Document(text, metadata, id=text_node.node_id or None)
    unescaped = {field: field.removeprefix(_USER) for field in metadata}
    own = {f: metadata[field] for field, f in unescaped.items() if _escape(f) == field}
    if NODEKIN_ID in metadata:
        own[LLAMA_INDEX_ID] = text_node.node_id
    if _PROPERTIES in metadata:
        own[LLAMA_INDEX_PROPERTIES] = metadata[_PROPERTIES]
    overriding = [field for field in metadata if field.startswith(_OVERRIDDEN)]
    overridden = {field.removeprefix(_OVERRIDDEN): metadata[field] for field in overriding}
    inherited = restore_inherited(own, json.loads(metadata.get(_INHERITED, "[]")), overridden)
    parent, source = text_node.parent_node, text_node.source_node
    return Node(
        metadata.get(_TEXT, text),
        own,
        metadata.get(_CONTENT, text),
        text_node.start_char_idx,
        text_node.end_char_idx,
        metadata.get(NODEKIN_ID, text_node.node_id),
        metadata[GROUP],
        source.node_id if source else "",
        metadata.get(_PARENT, parent.node_id if parent else None),
        metadata.get(_OFFSET),
        metadata.get(_ORDER, 0),
        inherited,
    )


def hidden_fields(metadata: Mapping[str, Any]) -> list[str]:
    """Return the metadata fields that are hidden from models."""
    return [field for field in metadata if field.startswith(PREFIX) or field in _HIDDEN]


def original_id_of(node: Node) -> str | None:
    """Return the id that a node had in LlamaIndex, None if it was not imported."""
    original_id = node.own_metadata.get(LLAMA_INDEX_ID) if node.group != ROOT else None
    return original_id if isinstance(original_id, str) and original_id else None


def id_in_llama_index(node: Node) -> str:
    """Return the id of the LlamaIndex node that ``to_text_node`` makes of a node."""
    return original_id_of(node) or node.id


def _original_parent(node: Node) -> str | None:
    """Return the id that a node's parent had in LlamaIndex."""
    parent_id = node.inherited.get(LLAMA_INDEX_ID)
    if not isinstance(parent_id, str) or node.parent_id in (None, node.document_id):
        return None
    if original_id_of(node) is not None:  # the parent of an imported node was imported too
        return parent_id or None
    with suppress(LookupError):  # it was removed a moment ago
        if node.graph is not None and (parent := node.parent) is not None:
            return original_id_of(parent)
    return None


def _properties(node: Node) -> dict[str, Any]:
    """Return the properties of an imported node."""
    with suppress(TypeError, ValueError):  # a user's field that has the same name by chance
        properties = json.loads(node.own_metadata.get(LLAMA_INDEX_PROPERTIES, "{}"))
        return properties if isinstance(properties, dict) else {}
    return {}


def related(node_id: str, group: str | None = None) -> RelatedNodeInfo:
    """Refer to a node by its id: its metadata and hash would be copied into every neighbour."""
    node_type = ObjectType.DOCUMENT if group == ROOT else ObjectType.TEXT
    return RelatedNodeInfo(node_id=node_id, node_type=node_type)


def _relationships(
    node: Node, original_parent: str | None
) -> dict[NodeRelationship, RelatedNodeInfo]:
    relationships = {}
    if node.document_id:
        relationships[NodeRelationship.SOURCE] = related(node.document_id, ROOT)
    if node.parent_id is not None:
        group = ROOT if node.parent_id == node.document_id else None
        relationships[NodeRelationship.PARENT] = related(original_parent or node.parent_id, group)
    return relationships


def _position(node: Node, content: str) -> dict[str, Any]:
    """Return what a ``TextNode`` has no field for; flat, as some vector stores require it."""
    fields: dict[str, Any] = {GROUP: node.group, _ORDER: node.order}
    if node.offset is not None:
        fields[_OFFSET] = node.offset
    inherited, overridden = inherited_fields(node)
    if inherited:
        fields[_INHERITED] = json.dumps(inherited)
    fields.update((_OVERRIDDEN + field, value) for field, value in overridden.items())
    fields.update((PREFIX + key, value) for key, value in different_text(node, content).items())
    return fields


def _escape(field: str) -> str:
    return _USER + field if field.startswith(PREFIX) else field


class NamedByClass:
    """Let LlamaIndex serialise an object under the name of its class."""

    @classmethod
    def class_name(cls) -> str:
        """Return the name that LlamaIndex serialises it under."""
        return cls.__name__


class NodeWithEvidence(NamedByClass, NodeWithScore):
    """Hold a node, its score and its evidence, wherever LlamaIndex holds a ``NodeWithScore``.

    The evidence depends on the query, so it is not in the node's metadata, which LlamaIndex
    compares nodes by. Postprocessors, fusion and query engines pass it on unchanged.

    Attributes:
        evidence: The matches that led to the node, the best first: dicts with ``id``, ``group``,
            ``text``, ``start``, ``end``, ``score``, ``similarity`` and ``query``.
    """

    evidence: list[dict[str, Any]] = Field(default_factory=list)
