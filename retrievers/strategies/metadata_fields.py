"""The metadata fields by which a question can be filtered, read from the documents of graphs."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import ROOT, Node
from ...nodegraph.search_text import SearchText
from ..base_retriever import inner_retrievers
from ..conditions import plain
from ..filters import Filter, Filters, all_of, parse_filters
from ..indexes.filter_index import FilterIndex
from ..restricted_retriever import RestrictedRetriever
from ..restriction import RESTRICTION, check_restriction
from ..retriever import Retriever
from .filter_field import (
    MAX_VALUE_LENGTH,
    MAX_VALUES,
    FilterField,
    field_of,
    order,
)

MAX_FIELDS = 30
"""The maximum number of fields that a model sees."""


_MAX_CACHED = 64  # sets of conditions whose fields an index caches


# Sources


class FieldSource(NamedTuple):
    """The documents of a graph that a retriever may return.

    Attributes:
        graph: The graph.
        filters: The conditions that the documents meet. None means no conditions.
    """

    graph: NodeGraph
    filters: Filters | None


def sources_of(retriever: object, filters: Filters | None) -> list[FieldSource]:
    """Return the searched graphs with all conditions of a call.

    Args:
        retriever: Any retriever.
        filters: The conditions of the call. The restriction of the current call is added.

    Raises:
        Exception: If a function of a restriction raises.
    """
    found = _sources(retriever, all_of(RESTRICTION.get(), filters), frozenset())
    by_key = {(id(graph), parse_filters(own).key): FieldSource(graph, own) for graph, own in found}
    return list(by_key.values())


def _sources(
    retriever: object, filters: Filters | None, above: frozenset[int]
) -> Iterator[FieldSource]:
    if id(retriever) in above:  # references may form cycles
        return
    conditions = all_of(_own_conditions(retriever), filters)
    if isinstance(retriever, Retriever):
        for searched in retriever.graphs:
            yield FieldSource(searched, conditions)
        return
    inner = inner_retrievers(retriever)
    graph: object = getattr(retriever, "graph", None)
    if not inner and isinstance(graph, NodeGraph):
        yield FieldSource(graph, conditions)
    for _, item in inner:
        yield from _sources(item, conditions, above | {id(retriever)})


def _own_conditions(retriever: object) -> Filters | None:
    """Return the restriction and the filters of a retriever, without inner retrievers."""
    restriction = getattr(retriever, "_restriction", None)
    if isinstance(retriever, RestrictedRetriever):
        given = retriever.filters
        own = check_restriction(given()) if callable(given) else given
        return all_of(restriction, own)
    filters = getattr(retriever, "filters", None)
    if not isinstance(filters, Mapping):
        return all_of(restriction)
    return all_of(restriction, filters)


def has_graph(retriever: object) -> bool:
    """Return whether a retriever, or a nested one, searches a graph whose fields can be read."""
    pending = [retriever]
    seen = set[int]()
    while pending:
        item = pending.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, Retriever) or isinstance(getattr(item, "graph", None), NodeGraph):
            return True
        pending += [inner for _, inner in inner_retrievers(item)]
    return False


# Reading


def read_fields(
    sources: Iterable[FieldSource], names: Sequence[str] | None = None
) -> dict[str, FilterField]:
    """Return up to ``MAX_FIELDS`` metadata fields of documents, most frequent first.

    The fields are read once for each graph revision and each set of conditions. Only documents that
    meet the conditions are read.

    Args:
        sources: The graphs with the conditions.
        names: The fields to read. If None, all fields are read except the fields that a document
            or the graph excludes from its search text or from the prompts of models.
    """
    joined: dict[str, _Summary] = {}
    for graph, filters in sources:
        index = graph.reader.shared("document fields", partial(DocumentFields, graph))
        with index.current():
            summaries = index.summaries(parse_filters(filters), names)
        for name, summary in summaries.items():
            if name in joined:
                joined[name] = summary.joined(joined[name])
            else:
                joined[name] = summary
    ordered = sorted(joined.items(), key=_by_frequency)
    return {name: summary.field for name, summary in ordered[:MAX_FIELDS]}


def _by_frequency(item: tuple[str, _Summary]) -> tuple[int, str]:
    name, summary = item
    return -summary.documents, name


class _Summary(NamedTuple):
    """A field, and the number of documents that have it."""

    field: FilterField
    documents: int

    def joined(self, other: _Summary) -> _Summary:
        """Return the summary of this field over two graphs."""
        mine = self.field
        others = other.field
        documents = self.documents + other.documents
        if mine.type != others.type:
            return _Summary(FilterField("any"), documents)
        values = tuple(dict.fromkeys((*others.values, *mine.values)))
        is_complete = mine.is_complete and others.is_complete and len(values) <= MAX_VALUES
        ends = (mine.minimum, mine.maximum, others.minimum, others.maximum)
        bounds = sorted([end for end in ends if end is not None], key=order)
        return _Summary(
            FilterField(
                mine.type,
                values=values[:MAX_VALUES],
                is_complete=is_complete,
                minimum=bounds[0] if bounds else None,
                maximum=bounds[-1] if bounds else None,
            ),
            documents,
        )


class DocumentFields(FilterIndex):
    """An index of the metadata of a graph's documents.

    Args:
        graph: The graph.
    """

    def __init__(self, graph: NodeGraph) -> None:
        self._summaries: dict[Hashable, dict[str, _Summary]] = {}
        super().__init__(graph, ROOT)

    def clear(self) -> None:
        """Remove all fields."""
        super().clear()
        self._hidden: dict[str, frozenset[str]] = {}
        self._summaries.clear()

    def remove(self, ids: Sequence[str]) -> None:
        """Remove documents."""
        super().remove(ids)
        for document_id in ids:
            self._hidden.pop(document_id, None)
        self._summaries.clear()

    def add(self, nodes: Sequence[Node]) -> None:
        """Add documents."""
        super().add(nodes)
        for node in nodes:
            if hidden := _excluded(node.search_text):
                self._hidden[node.id] = hidden
        self._summaries.clear()

    def summaries(self, filter: Filter, names: Sequence[str] | None) -> dict[str, _Summary]:
        """Return the fields of the documents that meet a filter. The graph's lock must be held.

        Args:
            filter: The filter.
            names: The fields. If None, all fields are returned that are not excluded.
        """
        key = filter.key, names
        if key not in self._summaries:
            if len(self._summaries) >= _MAX_CACHED:
                self._summaries.clear()
            self._summaries[key] = self._read(filter, names)
        return self._summaries[key]

    def _read(self, filter: Filter, names: Sequence[str] | None) -> dict[str, _Summary]:
        rows = np.flatnonzero(self.table.allowed(filter))
        hidden = set[str]()
        if names is None:
            hidden.update(_excluded(self._graph.reader.search_rule(ROOT)))
            for document_id in self.table.ids_of(rows):
                hidden.update(self._hidden.get(document_id, ()))
        values: dict[str, list[Any]] = {}
        for metadata in self.table.metadata_of(rows):
            for name, value in metadata.items():
                is_named = names is None or name in names
                if is_named and name not in hidden:
                    values.setdefault(name, []).append(plain(value))
        summaries: dict[str, _Summary] = {}
        for name, of_field in values.items():
            if not name.isprintable() or len(name) > MAX_VALUE_LENGTH:
                continue
            field = field_of(of_field)
            if field is not None:
                summaries[name] = _Summary(field, len(of_field))
        return summaries


def _excluded(search_text: object) -> frozenset[str]:
    """Return the fields that a search text leaves out or hides from models."""
    if not isinstance(search_text, SearchText):
        return frozenset()
    return frozenset((*search_text.excluded, *search_text.excluded_llm))
