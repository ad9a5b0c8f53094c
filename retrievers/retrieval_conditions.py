"""The conditions of a retrieval, and the nodes that meet these conditions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..nodegraph.navigation import kin, path_to
from ..nodegraph.node import Node
from .filters import Filter, Filters, all_of, parse_filters
from .restriction import RESTRICTION
from .results import ScoredNode


@dataclass(frozen=True, slots=True)
class Conditions:
    """The conditions of a retrieval, which apply to hits and returned nodes.

    - A hit meets all conditions.
    - A node that replaces a hit (``target=``) must meet the conditions. Missing fields are taken
      from the hit. Thus a document is returned for a sentence under a matching heading. A node
      derived from several documents is returned only if all its sources meet the conditions.
    - An expansion of a hit (windows, merged parents, completed documents) contains no node that
      violates the conditions.
    - A restriction is stricter: every returned node must meet it with its own fields.

    Attributes:
        filters: All given conditions. None means no conditions.
        filter: The parsed ``filters``.
        restriction: The parsed restrictions among the conditions.
    """

    filters: Filters | None
    filter: Filter
    restriction: Filter

    @classmethod
    def of(cls, *filters: Filters | None, restriction: Filters | None = None) -> Conditions:
        """Join the conditions of all owners. No condition replaces another.

        The restriction of the current call is not read, so that a retriever may keep the result.

        Args:
            *filters: The conditions of the retriever and of the call.
            restriction: The retriever's restriction.

        Raises:
            TypeError: If the filters are invalid.
            ValueError: If a condition is invalid.
        """
        joined = all_of(restriction, *filters)
        return cls(joined, parse_filters(joined), parse_filters(restriction))

    @classmethod
    def of_call(cls, *filters: Filters | None, restriction: Filters | None = None) -> Conditions:
        """Join the conditions like ``of``, and add the restriction of the current call."""
        return cls.of(*filters, restriction=all_of(RESTRICTION.get(), restriction))

    def __bool__(self) -> bool:
        """Return whether any condition is given."""
        return self.filters is not None

    def met_by(self, node: Node) -> bool:
        """Return whether a node's own fields meet all conditions."""
        return self.filter.matches(node)

    def allow(self, node: Node, hit: Node) -> bool:
        """Return whether a node may replace a hit."""
        if not self or node is hit:
            return True
        if not self.restriction.matches(node):
            return False
        fields = {**hit.metadata, **node.metadata}
        if not self.filter.holds(fields, node.document_id):
            return False
        if node.document_id or node.graph is None:
            return True
        return all(self.met_by(member) for member in node.graph.linked(node))

    def allow_whole(self, node: Node, hits: Sequence[Node]) -> bool:
        """Return whether a node may replace all of several hits below it.

        Args:
            node: The node. The caller must hold the lock of its graph, in which the hits' groups
                are built.
            hits: The hits below the node.
        """
        graph = node.graph
        if not self or graph is None:
            return True
        if not all(self.allow(node, hit) for hit in hits):
            return False
        for group in {hit.group for hit in hits}:
            below = kin(graph, path_to(graph, group), node)
            if not all(self.met_by(item) for item in below):
                return False
        return True


class HitConditions:
    """The conditions for nodes that replace a hit.

    They consist of the conditions of the call and the conditions that the hit met. The conditions
    of a retriever are in the evidence of its results.

    Args:
        filters: The conditions of the call and of the outer retriever.
    """

    def __init__(self, *filters: Filters | None) -> None:
        self._filters = filters
        self._conditions: dict[tuple[int, ...], Conditions] = {}  # by the ids of filters
        self._kept: list[Filters] = []  # keeps filters alive, so that their ids stay unique

    def __call__(self, hits: Iterable[ScoredNode]) -> Conditions:
        """Return the conditions for one or several hits."""
        met: dict[int, Filters] = {}
        for hit in hits:
            for match in hit.evidence:
                if match.filters is not None:
                    met[id(match.filters)] = match.filters
        key = tuple(sorted(met))
        if key not in self._conditions:
            self._kept += met.values()
            self._conditions[key] = Conditions.of_call(*self._filters, *met.values())
        return self._conditions[key]
