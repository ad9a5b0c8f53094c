"""Typed links between nodes, beside parenthood."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .node import NO_METADATA, Node

MEMBER = "member"
"""The type of the links from a node made of several to those it was made of."""


@dataclass(frozen=True, slots=True)
class Link:
    """Join two nodes, from one to the other: a reference, a mention, a membership.

    Attributes:
        source: Id of the node it starts from.
        target: Id of the node it leads to.
        type: What it means; between two nodes there is one link of a type.
        weight: How much it counts for those who follow it.
        metadata: Anything else.
    """

    source: str
    target: str
    type: str = "related"
    weight: float = 1.0
    metadata: Mapping[str, Any] = field(default_factory=lambda: NO_METADATA, compare=False)


@dataclass(frozen=True, slots=True)
class Linked:
    """A piece that a transform returns, with links to nodes that are there already.

    A transform that sees a whole group says by it what each piece was made from.

    Args:
        piece: A text, a ``Node``, or whatever else a transform may return as one piece.
        to: The nodes to link it to.
        type: The type of the links.

    Example:
        >>> Linked("About tea", [Node("Green tea.", id="a"), Node("Black tea.", id="b")]).type
        'member'
    """

    piece: Any
    to: Sequence[Node]
    type: str = MEMBER
