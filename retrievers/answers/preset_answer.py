"""A pair's answer: where a node holds it, and when it answers a question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from ...nodegraph import Node
from ..scored_node import ScoredNode


@dataclass(frozen=True, slots=True)
class PresetAnswer:
    """Hold the answer of a pair whose question was asked.

    Attributes:
        question: The pair's question.
        answer: Its answer.
        score: How alike the pair's question and the query are, up to 1.
        exact: Whether they are the same, but for case, spaces and punctuation.
        result: The pair's node, with the evidence.
    """

    question: str
    answer: str
    score: float
    exact: bool
    result: ScoredNode


def overlap(some: Iterable[str], others: Iterable[str]) -> float:
    """Return Dice's coefficient of two bags of terms: twice what both have, by what they have.

    Example:
        >>> overlap(["what", "is", "tea"], ["what", "is", "ice"])
        0.6666666666666666
    """
    first, second = Counter(some), Counter(others)
    total = sum(first.values()) + sum(second.values())
    return 2 * sum((first & second).values()) / total if total else 0.0


def answer_of(node: Node) -> str | None:
    """Return the answer a node holds: its own ``metadata["answer"]``, else its content.

    None where the content is but the text.
    """
    answer = node.own_metadata.get("answer")
    if answer is None and node.content != node.text:
        answer = node.content
    if isinstance(answer, Mapping):
        answer = answer.get("answer", answer)
    return None if answer is None else str(answer)


def with_answer(result: ScoredNode) -> ScoredNode:
    """Return a result whose content holds question and answer, also where the node's does not."""
    node = result.node
    answer = answer_of(node)
    if answer is None or node.content != node.text:
        return result
    return replace(result, node=replace(node, content=f"{node.text}\n{answer}"))
