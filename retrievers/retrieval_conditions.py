"""The conditions of a retrieval, and the nodes that meet them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..nodegraph.navigation import kin, path_to
from ..nodegraph.node import Node
from .call import Call
from .filters import Filter, Filters, all_of, parse_filters
from .results import ScoredNode


@dataclass(frozen=True, slots=True)
class Conditions:
    """The conditions of a retrieval, which apply to matching nodes and to returned nodes.

    - A matching node must meet all conditions.
    - If a node replaces a matching node (because of ``target=``), it must meet the conditions as
      well, but fields that it lacks are taken from the matching node. For example, a document can
      be returned for a sentence whose heading matches. A node derived from several documents is
      returned only if all of its sources meet the conditions.
    - If a matching node is extended (by windows or merged parents), no node that violates the
      conditions is added.
    - A restriction is stricter: every returned node must meet it with its own fields.

    Attributes:
        filters: All filters combined, or None if there are none.
        filter: The parsed ``filters``.
        restriction: The parsed filters that are restrictions.
    """

    filters: Filters | None
    filter: Filter
    restriction: Filter

    @classmethod
    def of(cls, *filters: Filters | None, restriction: Filters | None = None) -> Conditions:
        """Combine filters with a restriction. No condition replaces another one.

        Args:
            *filters: The filters of the retriever and of the call.
            restriction: The restriction of the retriever and of the call.

        Raises:
            TypeError: If the filters are invalid.
            ValueError: If a condition is invalid.
        """
        joined = all_of(restriction, *filters)
        return cls(joined, parse_filters(joined), parse_filters(restriction))

    def __bool__(self) -> bool:
        """Return True if any condition is set."""
        return self.filters is not None

    def met_by(self, node: Node) -> bool:
        """Return whether a node meets all conditions with its own fields."""
        return self.filter.matches(node)

    def allow(self, node: Node, hit: Node) -> bool:
        """Return whether a node may replace a matching node."""
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
        """Return whether a node may replace several matching nodes below it.

        Args:
            node: The node. The lock of its graph must be held, and the groups of the matching nodes
                must be built.
            hits: The matching nodes below the node.
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
    """The conditions for nodes that replace matching nodes.

    They consist of the conditions of the call and the filters that were applied when the matching
    node was found. The latter are stored in the evidence of a result.

    Args:
        call: The call of the outer retriever.
        filters: The filters of the outer retriever.
    """

    def __init__(self, call: Call, filters: Filters | None = None) -> None:
        self._filters = all_of(filters, call.filters)
        self._restriction = call.restriction
        # The conditions, by the ids of filters.
        self._conditions: dict[tuple[int, ...], Conditions] = {}
        self._kept: list[Filters] = []  # references to the filters, so that their ids remain unique

    def __call__(self, hits: Iterable[ScoredNode]) -> Conditions:
        """Return the conditions for nodes that replace one or several results."""
        met: dict[int, Filters] = {}
        for hit in hits:
            for match in hit.evidence:
                if match.filters is not None:
                    met[id(match.filters)] = match.filters
        key = tuple(sorted(met))
        if key not in self._conditions:
            self._kept += met.values()
            self._conditions[key] = Conditions.of(
                self._filters, *met.values(), restriction=self._restriction
            )
        return self._conditions[key]
