"""What a retrieval returns: a node, its score, and how it was found."""

from __future__ import annotations

from dataclasses import dataclass

from ..nodegraph import Node


@dataclass(frozen=True, slots=True)
class Evidence:
    """Tell one way a node was found.

    Attributes:
        node: The node that matched: the result itself, or one of its kin in a smaller group.
        score: The score of that match.
        similarity: The name of the similarity that gave it.
        query: The form of the query that was searched for.
        embed_key: Which of the graph's embeddings was compared; None for a match of texts.
    """

    node: Node
    score: float
    similarity: str
    query: str
    embed_key: str | None = None

    @property
    def group(self) -> str:
        """The group in which the match was found."""
        return self.node.group


@dataclass(frozen=True, slots=True)
class ScoredNode:
    """Hold a node, its score (higher is better) and its evidence, the best match first."""

    node: Node
    score: float
    evidence: tuple[Evidence, ...] = ()
