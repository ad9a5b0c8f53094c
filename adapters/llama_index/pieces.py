"""What a graph is to have of a LlamaIndex node, so that the node can be made of it again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from llama_index.core.schema import BaseNode, TextNode

from ...nodegraph import Document, Node
from .nodes import FORM, ORIGIN, TEMPLATES, from_text_node, hidden_fields


def piece_of(node: BaseNode, parent: Node) -> Node:
    """Make the node that the graph is to have.

    Args:
        node: The LlamaIndex node.
        parent: Its parent's text, start in the document, and all metadata (as ``inherited``).
    """
    made = from_text_node(node)
    if isinstance(made, Node):  # one of ours
        text, own, content = made.text, dict(made.own_metadata), made.content
    else:
        text, content = made.text, None
        own = _own(node, parent.inherited)
    given = getattr(node, "start_char_idx", None)
    offset = None
    if given is not None:
        # Counted in the document or, below the first level, in the parent.
        for start in (given - (parent.start or 0), given):
            if offset is None and start >= 0 and text and parent.text.startswith(text, start):
                offset = start
    return Node(text, own, content, start=offset)


def _own(node: BaseNode, inherited: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that a node does not get from its parent, and those that tell of it."""
    fields = fields_of(node)
    own: dict[str, Any] = {
        name: deepcopy(value)
        for name, value in fields.items()
        if name not in inherited or not same(inherited[name], value)
    }
    form = _form(node)
    without = [name for name in inherited if name not in fields and name not in (ORIGIN, FORM)]
    if without:
        form["without"] = without
    own[ORIGIN] = node.node_id
    if form or FORM in inherited:
        own[FORM] = json.dumps(form, ensure_ascii=False)
    return own


def document_of(node: BaseNode) -> Document:
    """Make the document that a graph is to have of a LlamaIndex node."""
    made = from_text_node(node)
    if isinstance(made, Node):
        return Document(made.text, made.own_metadata, id=made.id)
    form = _form(node)
    fields = fields_of(node)
    more = {FORM: json.dumps(form, ensure_ascii=False)} if form else {}
    return Document(made.text, {**deepcopy(fields), **more}, id=node.node_id)


def fields_of(node: BaseNode) -> dict[str, Any]:
    """Return a node's metadata without what we keep there."""
    return {name: v for name, v in node.metadata.items() if name not in (ORIGIN, FORM)}


def _form(node: BaseNode) -> dict[str, Any]:
    """Return how a node differs from those that are made of a graph's."""
    hidden = hidden_fields(node.metadata)
    form: dict[str, Any] = {}
    if node.excluded_embed_metadata_keys != hidden:
        form["embed"] = list(node.excluded_embed_metadata_keys)
    if node.excluded_llm_metadata_keys != hidden:
        form["llm"] = list(node.excluded_llm_metadata_keys)
    for name in TEMPLATES:
        value = getattr(node, name, None)
        if value is not None and value != getattr(_PLAIN, name):
            form[name] = value
    return form


_PLAIN = TextNode(text="")


def same(one: Any, other: Any) -> bool:
    """Tell whether values are equal and of the same kind: 1 is not True."""
    return bool(one == other) and repr(one) == repr(other)
