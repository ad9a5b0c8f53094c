"""Carry LlamaIndex results through nodekin and back, none of them changed."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from llama_index.core.schema import NodeWithScore, TextNode

from ...nodegraph import Node
from ...retrievers import ScoredNode
from ..evidence import evidence_dicts
from .node_with_evidence import NodeWithEvidence
from .nodes import from_text_node, to_node_with_score


def scored(result: NodeWithScore) -> ScoredNode:
    """Make a nodekin result of a LlamaIndex one; a score that is missing counts as 0.

    Any node will do: one that no graph knows is a node with its text, metadata and id.
    """
    made = from_text_node(result.node) if isinstance(result.node, TextNode) else None
    if not isinstance(made, Node):
        text = result.node.get_content()
        made = Node(text, deepcopy(result.node.metadata), id=result.node.node_id)
    return ScoredNode(made, 0.0 if result.score is None else float(result.score))


def evidence_of(result: NodeWithScore) -> list[dict[str, Any]]:
    """Return a copy of a result's evidence; nothing where it has none."""
    return deepcopy(result.evidence) if isinstance(result, NodeWithEvidence) else []


def copied(result: NodeWithScore) -> NodeWithEvidence:
    """Return a copy that shares nothing with the result."""
    return NodeWithEvidence(
        node=result.node.model_copy(deep=True), score=result.score, evidence=evidence_of(result)
    )


def back(
    made: Sequence[ScoredNode], given: Sequence[ScoredNode], results: Sequence[NodeWithScore]
) -> list[NodeWithScore]:
    """Return LlamaIndex results with their new scores, what was known of them before kept.

    Args:
        made: What a reranker made of what it was given.
        given: What it was given: for each result what ``scored`` made of it.
        results: The results.
    """
    known = {id(each.node): result for each, result in zip(given, results, strict=True)}
    returned: list[NodeWithScore] = []
    for each in made:
        before = known.get(id(each.node))
        if before is None:
            returned.append(to_node_with_score(each))
            continue
        result = copied(before)
        result.score = float(each.score)
        result.evidence = evidence_dicts(each) + result.evidence
        returned.append(result)
    return returned
