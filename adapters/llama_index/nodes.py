"""Turn nodes into LlamaIndex nodes and back, losing nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
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
from ..conversion import evidence_dicts

OURS = "nodekin_"
"""How metadata fields begin that are ours; a user's field of that kind is kept behind _USERS."""

GROUP = OURS + "group"

_ORDER, _OFFSET, _INHERITED = OURS + "order", OURS + "offset", OURS + "inherited"

_TEXT, _CONTENT = OURS + "text", OURS + "content"

_OVERRIDDEN, _USERS = OURS + "overridden_", OURS + "user_"

NODEKIN_ID = OURS + "id"

_PARENT, _FORM = OURS + "parent", OURS + "form"

ORIGIN, FORM = "llama_index_id", "llama_index_form"
"""Fields of a node that came from LlamaIndex: the id it had there, and what is particular of it.

``import_nodes`` writes them. A node that has them is that of the same id in LlamaIndex again.
"""

# Facts about a file that LlamaIndex's own reader keeps from models, too.
_FILE_FACTS = (
    *("file_name", "file_type", "file_size"),
    *("creation_date", "last_modified_date", "last_accessed_date"),
)


def to_text_node(node: Node) -> TextNode:
    """Make a LlamaIndex ``TextNode`` of a node, sharing nothing with it.

    Choose ``export_nodes`` for whole groups: there nodes know their children and neighbours, too.

    The text is the node's content (its text form, where it is no text), the id the node's,
    ``start_char_idx`` and ``end_char_idx`` count in the source document. SOURCE is the document,
    PARENT the parent; both are ids only. The metadata is the node's own and inherited fields,
    flat, as users know them, and a few flat fields of ours that begin with ``nodekin_``, first of
    all ``nodekin_group``. Those, and the name, type, size and dates of a file, are kept from the
    text for models.

    Nothing depends on a query, so that ``hash`` is the same whenever the node is found.

    A node that ``import_nodes`` took from LlamaIndex is the one it was there: its id, parent,
    templates and excluded fields are the old ones.

    Raises:
        TypeError: If it is no node.
        ValueError: If the node has no id, since LlamaIndex knows nodes by their ids.

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
    metadata = {_escaped(field): value for field, value in deepcopy(node.metadata).items()}
    metadata.update(_facts(node, content))
    origin, form = origin_of(node), _form(node)
    if origin is not None:
        metadata[NODEKIN_ID] = node.id
        del metadata[ORIGIN]
    if form:
        metadata[_FORM] = metadata.pop(FORM)
        for each in form.get("without", ()):  # its parent has them, it had not
            if each in node.inherited and each not in node.own_metadata:
                metadata[_OVERRIDDEN + each] = metadata.pop(_escaped(each))
    parent = _parent_origin(node)
    if parent is not None:
        metadata[_PARENT] = node.parent_id
    hidden = hidden_fields(metadata)
    ours = [field for field in hidden if field not in _FILE_FACTS]
    made = TextNode(
        id_=origin or node.id,
        text=content,
        metadata=metadata,
        excluded_embed_metadata_keys=[*form["embed"], *ours] if "embed" in form else hidden,
        excluded_llm_metadata_keys=[*form["llm"], *ours] if "llm" in form else hidden,
        relationships=_relationships(node, parent),
        start_char_idx=node.start,
        end_char_idx=node.end,
    )
    for name in TEMPLATES:
        if name in form:
            setattr(made, name, form[name])
    return made


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

    Any other node, a LlamaIndex ``Document`` or a chunk that a parser made, is a text that no
    graph has derived: it gives a nodekin ``Document`` with its id, text and metadata, which is
    what ``graph.add`` makes of it as well.

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
    own = {_unescaped(f): v for f, v in metadata.items() if _escaped(_unescaped(f)) == f}
    if NODEKIN_ID in metadata:
        own[ORIGIN] = text_node.node_id
    if _FORM in metadata:
        own[FORM] = metadata[_FORM]
    inherited = {f: own.pop(f) for f in json.loads(metadata.get(_INHERITED, "[]")) if f in own}
    cut = len(_OVERRIDDEN)
    inherited.update({f[cut:]: v for f, v in metadata.items() if f.startswith(_OVERRIDDEN)})
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
    """Return which metadata fields are kept from the text for models."""
    kept = (*_FILE_FACTS, ORIGIN, FORM)
    return [field for field in metadata if field.startswith(OURS) or field in kept]


TEMPLATES = ("metadata_template", "metadata_separator", "text_template", "mimetype")
"""What else of a LlamaIndex node ``FORM`` has, beside ``embed``, ``llm`` and ``without``."""


def origin_of(node: Node) -> str | None:
    """Return the id that a node had in LlamaIndex, None for a node that came from elsewhere."""
    origin = node.own_metadata.get(ORIGIN) if node.group != ROOT else None
    return origin if isinstance(origin, str) and origin else None


def _parent_origin(node: Node) -> str | None:
    """Return the id that a node's parent had in LlamaIndex."""
    above = node.inherited.get(ORIGIN)
    if not isinstance(above, str) or not above or node.parent_id in (None, node.document_id):
        return None
    if origin_of(node) is not None:  # what was imported has its parents from there too
        return above
    try:
        parent = node.parent if node.graph is not None else None
    except LookupError:  # it was removed a moment ago
        parent = None
    return None if parent is None else origin_of(parent)


def _form(node: Node) -> dict[str, Any]:
    """Return what is particular of a node that came from LlamaIndex."""
    text = node.own_metadata.get(FORM)
    if not isinstance(text, str):
        return {}
    try:
        form = json.loads(text)
    except ValueError:  # a field of the user's that has the name by chance
        return {}
    return form if isinstance(form, dict) else {}


def related(node_id: str, group: str | None = None) -> RelatedNodeInfo:
    """Refer to a node by its id: its metadata and hash would be copied into every neighbour."""
    kind = ObjectType.DOCUMENT if group == ROOT else ObjectType.TEXT
    return RelatedNodeInfo(node_id=node_id, node_type=kind)


def _relationships(
    node: Node, parent: str | None = None
) -> dict[NodeRelationship, RelatedNodeInfo]:
    relationships = {}
    if node.document_id:
        relationships[NodeRelationship.SOURCE] = related(node.document_id, ROOT)
    if node.parent_id is not None:
        above = ROOT if node.parent_id == node.document_id else None
        relationships[NodeRelationship.PARENT] = related(parent or node.parent_id, above)
    return relationships


def _facts(node: Node, content: str) -> dict[str, Any]:
    """Return what a ``TextNode`` has no field for: flat, since some vector stores allow no more."""
    facts: dict[str, Any] = {GROUP: node.group, _ORDER: node.order}
    if node.offset is not None:
        facts[_OFFSET] = node.offset
    if inherited := [field for field in node.inherited if field not in node.own_metadata]:
        facts[_INHERITED] = json.dumps(inherited)
    for field, value in node.inherited.items():
        if field in node.own_metadata:
            facts[_OVERRIDDEN + field] = deepcopy(value)
    if node.text != content:
        facts[_TEXT] = node.text
    if not isinstance(node.content, str):
        facts[_CONTENT] = deepcopy(node.content)
    return facts


def _escaped(field: str) -> str:
    return _USERS + field if field.startswith(OURS) else field


def _unescaped(field: str) -> str:
    return field[len(_USERS) :] if field.startswith(_USERS) else field


class NodeWithEvidence(NodeWithScore):
    """Hold a node, its score and its evidence, wherever LlamaIndex holds a ``NodeWithScore``.

    What depends on the query stands here and not in the node's metadata, by which LlamaIndex
    tells nodes apart. Postprocessors, fusion and query engines pass it on as it is.

    Attributes:
        evidence: The matches that led to the node, the best first: dicts with ``id``, ``group``,
            ``text``, ``start``, ``end``, ``score``, ``similarity`` and ``query``.
    """

    evidence: list[dict[str, Any]] = Field(default_factory=list)

    @classmethod
    def class_name(cls) -> str:
        """Return the name that LlamaIndex serialises it under."""
        return "NodeWithEvidence"
