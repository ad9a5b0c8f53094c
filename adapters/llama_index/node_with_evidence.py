"""A LlamaIndex result that says how it was found."""

from __future__ import annotations

from typing import Any

from llama_index.core.bridge.pydantic import Field
from llama_index.core.schema import NodeWithScore


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
