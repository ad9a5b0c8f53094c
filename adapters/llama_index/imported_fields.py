"""The fields of a graph's nodes that hold what imported LlamaIndex nodes were."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from ...nodegraph.node import ROOT, Node

IMPORT_FIELDS = LLAMA_INDEX_ID, LLAMA_INDEX_PROPERTIES = "llama_index_id", "llama_index_properties"
"""Fields of an imported node: its id in LlamaIndex, and what makes it differ from an exported one.

``import_nodes`` writes them. ``to_text_node`` restores the original node from them, without them.
"""

TEMPLATES = ("metadata_template", "metadata_separator", "text_template", "mimetype")
"""The properties of an imported node, besides ``embed``, ``llm`` and ``fields``.

``embed`` and ``llm`` are the names of the excluded fields, ``fields`` the names of all fields in
their order, where those differ from what an exported node has.
"""


def original_id(node: Node) -> str | None:
    """Return the id that a node had in LlamaIndex, None if it was not imported."""
    value = node.own_metadata.get(LLAMA_INDEX_ID) if node.group != ROOT else None
    return value if isinstance(value, str) and value else None


def id_in_llama_index(node: Node) -> str:
    """Return the id of the LlamaIndex node that ``to_text_node`` makes of a node."""
    return original_id(node) or node.id


def parent_id_in_llama_index(node: Node) -> str | None:
    """Return the id that a node's parent has in LlamaIndex; None below documents."""
    if node.parent_id in (None, node.document_id):
        return None
    inherited_id = node.inherited.get(LLAMA_INDEX_ID)
    if isinstance(inherited_id, str) and inherited_id:
        if original_id(node) is not None:  # the parent of an imported node was imported too
            return inherited_id
        with suppress(LookupError):  # it was removed a moment ago
            if node.graph is not None and (parent := node.parent) is not None:
                return id_in_llama_index(parent)
    return node.parent_id


def original_properties(node: Node) -> dict[str, Any]:
    """Return the properties of an imported node."""
    written = node.own_metadata.get(LLAMA_INDEX_PROPERTIES)
    if written is None:
        return {}
    with suppress(TypeError, ValueError):  # a user's field that has the same name by chance
        properties = json.loads(written)
        return properties if isinstance(properties, dict) else {}
    return {}


def original_metadata(node: Node) -> Mapping[str, Any]:
    """Return a node's metadata as it is in LlamaIndex: the same fields in the same order."""
    metadata = node.metadata
    for field in IMPORT_FIELDS:
        metadata.pop(field, None)
    fields = original_properties(node).get("fields")
    if not isinstance(fields, list):
        return metadata
    return {field: metadata[field] for field in fields if field in metadata}
