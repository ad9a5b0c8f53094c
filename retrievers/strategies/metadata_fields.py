"""Read the metadata fields of documents, so that questions can be filtered by them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import ROOT, Node
from ...nodegraph.search_text import SearchText
from ..base_retriever import inner_retrievers
from ..call import Call, check_restriction
from ..conditions import plain
from ..filters import Filter, Filters, all_of, parse_filters
from ..indexes.filter_index import FilterIndex
from ..restricted_retriever import RestrictedRetriever
from ..retriever import Retriever
from .filter_field import (
    MAX_VALUE_LENGTH,
    MAX_VALUES,
    FilterField,
    field_of,
    order,
)

MAX_FIELDS = 30
"""The maximum number of fields that are included in a prompt."""


_MAX_CACHED = 64  # the maximum number of sets of conditions in the cache of an index


# Sources


class FieldSource(NamedTuple):
    """A graph, and the conditions that select the documents a retriever may return from it.

    Attributes:
        graph: The graph.
        filters: The conditions, or None if all documents may be returned.
    """

    graph: NodeGraph
    filters: Filters | None


def sources_of(retriever: object, filters: Filters | None) -> list[FieldSource]:
    """Return the graphs that a retriever searches, each with all conditions that apply to it.

    Args:
        retriever: Any retriever. Nested retrievers are included.
        filters: The filters of the call. The active restriction is added to them.

    Raises:
        Exception: If a function that computes a restriction raises an error.
    """
    found = _sources(retriever, Call.begin(filters).conditions, frozenset())
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
    """Return the restriction and the filters of a retriever, without those of inner retrievers."""
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
    """Return whether a retriever, or a retriever nested in it, searches a graph."""
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

    Only documents that meet the conditions are read. The result is cached for each revision of a
    graph and each set of conditions.

    Args:
        sources: The graphs with their conditions.
        names: The names of the fields to read. If None, all fields are read, except fields that a
            document or the graph excludes from its search text or from prompts.
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
    """The description of a field, and the number of documents that contain the field."""

    field: FilterField
    documents: int

    def joined(self, other: _Summary) -> _Summary:
        """Combine the summaries of the same field in two graphs."""
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
    """An index of the metadata fields of the documents in a graph.

    Args:
        graph: The graph to index.
    """

    def __init__(self, graph: NodeGraph) -> None:
        self._summaries: dict[Hashable, dict[str, _Summary]] = {}
        super().__init__(graph, ROOT)

    def clear(self) -> None:
        """Remove all documents from the index."""
        super().clear()
        self._hidden: dict[str, frozenset[str]] = {}
        self._summaries.clear()

    def remove(self, ids: Sequence[str]) -> None:
        """Remove documents from the index."""
        super().remove(ids)
        for document_id in ids:
            self._hidden.pop(document_id, None)
        self._summaries.clear()

    def add(self, nodes: Sequence[Node]) -> None:
        """Add documents to the index."""
        super().add(nodes)
        for node in nodes:
            if hidden := _excluded(node.search_text):
                self._hidden[node.id] = hidden
        self._summaries.clear()

    def summaries(self, filter: Filter, names: Sequence[str] | None) -> dict[str, _Summary]:
        """Return the fields of the documents that match a filter.

        The caller must hold the lock of the graph.

        Args:
            filter: The filter that selects the documents.
            names: The names of the fields to return. If None, all fields are returned that are not
                excluded from search texts or prompts.
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
    """Return the fields that are excluded from a search text or hidden from language models."""
    if not isinstance(search_text, SearchText):
        return frozenset()
    return frozenset((*search_text.excluded, *search_text.excluded_llm))
