"""The metadata fields by which a question can be filtered, read from the documents of graphs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from functools import partial
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import ROOT, Node
from ...nodegraph.search_text import SearchText
from ..base_retriever import inner_retrievers
from ..conditions import SEVERAL, CalendarTime, plain, read_date
from ..filters import Filter, Filters, all_of, parse_filters
from ..indexes.filter_index import FilterIndex
from ..restricted_retriever import RestrictedRetriever
from ..restriction import RESTRICTION, check_restriction
from ..retriever import Retriever
from ..validation import choice

MAX_FIELDS = 30
"""The maximum number of fields that a model sees."""

MAX_VALUES = 20
"""The maximum number of values of a field that a model sees."""

MAX_VALUE_LENGTH = 60
"""The length in characters after which a value is cut."""

_MAX_CACHED = 64  # conditions whose fields an index remembers

FieldType = Literal["any", "text", "number", "date", "bool"]


@dataclass(frozen=True, slots=True)
class FilterField:
    """A metadata field by which a question can be filtered.

    Args:
        type: The type of the values, or of the items of a list. Dates are dates, datetimes or texts
            with ISO dates. With ``"any"``, values are not checked.
        description: What the field means, for the model.
        values: Values of the field, such as the names of categories.
        is_complete: Whether the field has no other values. A condition on another value is then
            dropped.
        minimum: The lowest number or date. If None, it is unknown.
        maximum: The highest number or date. If None, it is unknown.

    Raises:
        ValueError: If the type is unknown.

    Example:
        >>> FilterField("text", values=("tea", "coffee"), is_complete=True).type
        'text'
    """

    type: FieldType = "any"
    description: str = ""
    values: tuple[Any, ...] = ()
    is_complete: bool = False
    minimum: Any = None
    maximum: Any = None

    def __post_init__(self) -> None:
        choice(self.type, "type", get_args(FieldType))


Fields = Mapping[str, FilterField]
"""Fields by name."""


def checked_fields(fields: Any) -> Fields | tuple[str, ...] | None:
    """Check the argument ``fields`` of a retriever. Return fields, the names to read, or None.

    Raises:
        TypeError: If the fields are neither a mapping of fields or descriptions nor names.
        ValueError: If there are no fields.
    """
    if fields is None:
        return None
    is_list = isinstance(fields, Sequence) and not isinstance(fields, str | bytes)
    if not (is_list or isinstance(fields, Mapping)):
        raise TypeError(
            f"fields must be a list of names, or a mapping from names to FilterField(...) or a "
            f"description, got {fields!r:.80}"
        )
    if not fields:
        raise ValueError(f"fields must not be empty, got {fields!r}; None reads all fields")
    for name in fields:
        if not isinstance(name, str) or not name.strip():
            raise TypeError(f"the name of a field must be a text with letters, got {name!r:.80}")
    if not isinstance(fields, Mapping):
        return tuple(dict.fromkeys(fields))
    given: dict[str, FilterField] = {}
    for name, value in fields.items():
        field = FilterField(description=value) if isinstance(value, str) else value
        if not isinstance(field, FilterField):
            raise TypeError(
                f"the field {name!r} must be a FilterField or a description, got {value!r:.80}"
            )
        given[name] = field
    return given


# Sources


class FieldSource(NamedTuple):
    """The documents of a graph that a retriever may return.

    Attributes:
        graph: The graph.
        filters: The conditions that the documents meet. None: no conditions.
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
    """Return the metadata fields of documents, most frequent first, at most ``MAX_FIELDS``.

    The fields are read once per revision of a graph and per conditions. Only documents that meet
    the conditions are read.

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
        """Return the summary of this field in two graphs."""
        mine = self.field
        others = other.field
        documents = self.documents + other.documents
        if mine.type != others.type:
            return _Summary(FilterField("any"), documents)
        values = tuple(dict.fromkeys((*others.values, *mine.values)))
        is_complete = mine.is_complete and others.is_complete and len(values) <= MAX_VALUES
        ends = (mine.minimum, mine.maximum, others.minimum, others.maximum)
        bounds = sorted([end for end in ends if end is not None], key=_order)
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
        """Remove everything."""
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
        """Return the fields of the documents that meet a filter. The graph must be held.

        Args:
            filter: The filter.
            names: The fields. If None, all fields that are not excluded.
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


def field_of(values: Iterable[Any]) -> FilterField | None:
    """Return the type, the range and the frequent values of a field. None: nothing to compare.

    Args:
        values: The value of each document. Lists count by their items.

    Example:
        >>> field_of([2001, 1999, 2001])
        FilterField(type='number', description='', values=(), is_complete=False, minimum=1999, \
maximum=2001)
        >>> field_of(["tea", ["tea", "rice"]]).values
        ('tea', 'rice')
    """
    items: list[Any] = []
    for value in values:
        if isinstance(value, SEVERAL):
            items += [plain(item) for item in value]
        else:
            items.append(value)
    items = [item for item in items if not _is_absent(item)]
    kind = _common_kind(items)
    if kind is None:
        return None
    field = FilterField(kind)
    if kind in ("number", "date"):
        ordered = sorted(items, key=_order)
        return replace(field, minimum=ordered[0], maximum=ordered[-1])
    if kind != "text":
        return field
    counts = Counter(str(item) for item in items)
    frequent = sorted(counts, key=lambda text: (-counts[text], text))
    return replace(
        field, values=tuple(frequent[:MAX_VALUES]), is_complete=len(frequent) <= MAX_VALUES
    )


def _common_kind(values: Sequence[Any]) -> FieldType | None:
    """Return the type of all values. None: no values, or values that cannot be compared."""
    kinds = {_kind(value) for value in values}
    if not kinds or None in kinds:
        return None
    if len(kinds) == 1:
        return kinds.pop()
    # Dates among other texts are texts.
    if kinds == {"text", "date"} and all(isinstance(value, str) for value in values):
        return "text"
    return "any"


def _is_absent(value: Any) -> bool:
    if isinstance(value, float):
        return math.isnan(value)
    return value is None or value == ""


def _kind(value: Any) -> FieldType | None:
    """Return the type of a value. None: values of this type cannot be compared."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float | Decimal):
        return "number"
    if isinstance(value, date):
        return "date"
    if not isinstance(value, str):
        return None
    when = read_date(value)
    # A text of four digits may be a number or a code.
    if when is None or len(when.calendar) < 2:
        return "text"
    return "date"


def _order(value: Any) -> Any:
    """Return a key that orders numbers, or dates of different precisions."""
    when = read_date(value)
    if not isinstance(when, CalendarTime):
        return value
    days = (*when.calendar, 1, 1)[:3]
    if when.instant is None:
        return days, 0
    return days, when.instant.total_seconds()
