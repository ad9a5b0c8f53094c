"""Whose conditions hold in a retrieval, and which nodes meet them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

from ..nodegraph.node import ROOT, Node
from .base_retriever import current_restriction
from .filters import Filter, Filters, all_of, metadata_key, parse_filters
from .results import ScoredNode


def check_restriction(filters: Filters) -> Filters:
    """Return a copy of the conditions of a restriction, which no one else can change.

    Raises:
        TypeError: If filters are none.
        ValueError: If there is no condition.
    """
    if not parse_filters(filters):
        raise ValueError(
            f"a restriction to {filters!r:.80} has no condition; give one, like {{'tenant': 'a'}}"
        )
    return deepcopy(filters)


_MISSING = {"exists": False}


@dataclass(frozen=True, slots=True)
class Conditions:
    """Decide which nodes a retrieval may return.

    - A hit meets all conditions.
    - A node that is returned in place of a hit (by ``target=``) meets them, too. Of a field that
      it does not have the hit's value counts: a document is returned for a sentence under the
      heading that was asked for. What was made from several documents is returned only if all
      that it was made from meets the conditions.
    - What widens a hit (windows, merged parents, completed documents) takes in nothing that the
      conditions keep out.
    - A restriction is stricter: every node that is returned has its fields itself.

    Attributes:
        filters: All conditions as they were given, None where there are none.
        filter: The same, parsed.
        strict: Those of them that are restrictions.
        restriction: The same, parsed.
    """

    filters: Filters | None
    filter: Filter
    strict: Filters | None
    restriction: Filter

    @classmethod
    def of(cls, *filters: Filters | None, restriction: Filters | None = None) -> Conditions:
        """Join the conditions of all owners; none replaces another.

        Args:
            *filters: The conditions of the retriever, of the call.
            restriction: What the retriever is restricted to, besides the restriction around it.

        Raises:
            TypeError: If filters are none.
            ValueError: If a condition is none.
        """
        strict = all_of(current_restriction(), restriction)
        return cls._parsed(all_of(strict, *filters), strict)

    @classmethod
    def _parsed(cls, filters: Filters | None, strict: Filters | None) -> Conditions:
        return cls(filters, parse_filters(filters), strict, parse_filters(strict))

    def __reduce__(self) -> tuple[Callable[..., Conditions], tuple[Any, ...]]:
        return Conditions._parsed, (self.filters, self.strict)

    def __bool__(self) -> bool:
        """Return whether there is any condition."""
        return self.filters is not None

    def met_by(self, node: Node) -> bool:
        """Return whether a node meets all conditions itself."""
        return self.filter.matches(node)

    def with_leads(self, filters: Filters | None) -> Conditions:
        """Add conditions for nodes that refer to others, and are followed to them.

        Such a node is no result, and need not have the fields of these conditions; those that it
        has must meet them.
        """
        relaxed = _relaxed(parse_filters(filters))
        if relaxed is None:
            return self
        return replace(self, filter=Filter("and", (self.filter, relaxed)) if self else relaxed)

    def allow(self, node: Node, hit: Node) -> bool:
        """Return whether a node may be returned in place of a hit."""
        if not self or node is hit:
            return True
        if not self.restriction.matches(node):
            return False
        fields = {**hit.metadata, **node.metadata}
        if not self.filter.matches(replace(node, inherited=fields, own_metadata={})):
            return False
        if node.document_id or node.graph is None:
            return True
        return all(self.met_by(member) for member in node.graph.linked(node))

    def allow_whole(self, node: Node, hits: Iterable[Node], span: range | None = None) -> bool:
        """Return whether a node, or a span of it, may be returned for several hits below it.

        Args:
            node: The node; its graph is held, with the groups of the hits built.
            hits: Nodes below it that are hits.
            span: The part of the document that is returned, in characters; None for all of it.
        """
        if not self:
            return True
        groups: dict[str, Node] = {}
        for hit in hits:
            if not self.allow(node, hit):
                return False
            groups.setdefault(hit.group, hit)
        below = (item for group in groups for item in _below(node, group))
        return all(self.met_by(item) for item in below if span is None or _overlaps(item, span))


def _relaxed(filter: Filter, positive: bool = True) -> Filter | None:
    """Return a filter that nodes without its fields meet, too; None for what all nodes meet.

    Args:
        filter: The filter.
        positive: Whether it must hold, or must not.
    """
    if filter.condition is not None:
        if filter.join != "field":
            return None  # the document of a node that refers to others is another one
        literal = filter if positive else Filter("not", (filter,))
        return Filter("or", (literal, parse_filters({metadata_key(filter.field): _MISSING})))
    if filter.join == "not":
        return _relaxed(filter.parts[0], not positive)
    parts = [_relaxed(part, positive) for part in filter.parts]
    batch = tuple(part for part in parts if part is not None)
    if (filter.join == "and") == positive:
        return Filter("and", batch) if batch else None
    return Filter("or", batch) if batch and len(batch) == len(parts) else None


def _below(node: Node, group: str) -> list[Node]:
    """Return the nodes of a group that were made from a node."""
    if (graph := node.graph) is None:
        return []
    path = [ROOT, *(ancestor.name for ancestor in graph.reader.lineage(group))]
    nodes = [node]
    for name in path[path.index(node.group) + 1 :] if node.group in path else ():
        nodes = [child for parent in nodes for child in graph.reader.children_in(name, parent)]
    return nodes


def _overlaps(node: Node, span: range) -> bool:
    if node.start is None or node.end is None:
        return True  # who knows where it is
    return node.start < span.stop and span.start < node.end


class HitConditions:
    """Return the conditions that hold for what is returned in place of a hit.

    They are those of the call, and those that the hit met: a retriever's own are in the evidence
    of what it retrieves.

    Args:
        filters: The conditions of the call, and of the retriever around.
    """

    def __init__(self, *filters: Filters | None) -> None:
        self._filters = filters
        # With the filters themselves, so that their ids stay theirs.
        self._conditions: dict[tuple[int, ...], tuple[Conditions, list[Filters]]] = {}

    def __call__(self, hits: Iterable[ScoredNode]) -> Conditions:
        """Return the conditions of one or several hits."""
        met = {
            id(match.filters): match.filters
            for hit in hits
            for match in hit.evidence
            if match.filters is not None
        }
        key = tuple(sorted(met))
        if key not in self._conditions:
            own = list(met.values())
            self._conditions[key] = Conditions.of(*self._filters, *own), own
        return self._conditions[key][0]
