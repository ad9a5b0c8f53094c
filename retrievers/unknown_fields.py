"""Find metadata fields that a search compares, but that no searched node has."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence

from ..nodegraph.errors import nearest_names
from ..nodegraph.graph import NodeGraph
from .branch import SearchedIndex
from .filters import Filter
from .indexes.node_table import NodeTable
from .ranking import logged_messages

logger = logging.getLogger(__name__)


def unknown_fields(graphs: Sequence[NodeGraph], sources: Iterable[SearchedIndex]) -> dict[str, str]:
    """Return the compared fields that no searched node has, and the most similar existing fields.

    Each field is returned only once per graph. The locks of the graphs must be held.

    Args:
        graphs: The searched graphs.
        sources: The searched indexes. Empty indexes and indexes without a table are ignored.
    """
    searched: list[tuple[NodeTable, Filter]] = []
    for source in sources:
        conditions = source.branch.conditions
        if not conditions:  # as in most searches
            continue
        table = getattr(source.opened.index, "table", None)
        if conditions.filter and isinstance(table, NodeTable) and table.size:
            searched.append((table, conditions.filter))
    if not searched:
        return {}
    unknown = set.intersection(*[table.unknown_fields(filter) for table, filter in searched])
    new = [field for field in sorted(unknown) if _is_new(field, graphs)]
    if not new:
        return {}
    known: set[str] = set()
    for table, _ in searched:
        known |= table.known_fields()
    return {field: nearest_names(field, sorted(known)) for field in new}


def log_unknown_fields(fields: Mapping[str, str]) -> None:
    """Log the fields that ``unknown_fields`` has returned, whose names may be misspelled."""
    for field, known in fields.items():
        logger.warning(
            "a filter compares the metadata field %r, which no searched node has; known fields: %s",
            field,
            known,
        )


def _is_new(field: str, graphs: Sequence[NodeGraph]) -> bool:
    """Record a field for all graphs, and return whether it was missing for one of them."""
    message = ("unknown field", field)
    is_new = False
    for graph in graphs:
        logged = logged_messages(graph)
        is_new = is_new or message not in logged
        logged.add(message)
    return is_new
