"""Filters: conditions on metadata, applied before ranking."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ..nodegraph.node import Node
from ..nodegraph.text_forms import in_stored_form
from .conditions import MISSING, Condition, parse_conditions

Filters = Mapping[str, Any]
"""A mapping from fields to conditions, or ``"and"``, ``"or"``, ``"not"``: see ``parse_filters``."""

DOCUMENT_ID = "document.id"
"""The name of the document's id in filters."""

_METADATA = "metadata."  # the prefix of a field whose name is reserved

_JOINS = ("and", "or", "not")

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Filter:
    """Parsed filters: a condition, or a combination of filters.

    A custom index receives them in its method ``search``, which calls ``matches``.

    Attributes:
        join: How ``parts`` are combined: ``"and"``, ``"or"``, or ``"not"`` with one part. A
            condition has ``"field"``, or ``"document"`` for the document's id.
        parts: The combined filters. Empty for a condition.
        field: The metadata field of a condition.
        condition: The condition on the field's value.

    Example:
        >>> from nodekin.nodegraph import Node
        >>> from nodekin.retrievers.filters import parse_filters
        >>> recent = parse_filters({"year": {"gte": 2000}})
        >>> [recent.matches(Node("Tea.", {"year": year})) for year in (2020, 1999)]
        [True, False]
    """

    join: Literal["and", "or", "not", "field", "document"] = "and"
    parts: tuple[Filter, ...] = ()
    field: str = ""
    condition: Condition | None = None

    def __bool__(self) -> bool:
        """Return whether the filter has a condition."""
        return bool(self.parts) or self.condition is not None

    @property
    def key(self) -> Hashable:
        """A key for caches: filters with equal keys accept the same nodes."""
        condition = None if self.condition is None else self.condition.key
        return self.join, self.field, condition, tuple(part.key for part in self.parts)

    def matches(self, node: Node) -> bool:
        """Return whether a node meets the filter."""
        return self.holds(node.metadata, node.document_id)

    def mask(self, meets: Callable[[str | None, Condition], Mask]) -> Mask | None:
        """Return a mask of the rows that meet the filter, or None if it has no condition.

        Args:
            meets: Returns a mask of the rows that meet a condition on a field, or on the document's
                id if the field is None.
        """
        if self.condition is not None:
            return meets(self.field if self.join == "field" else None, self.condition)
        of_parts = [part.mask(meets) for part in self.parts]
        masks = [mask for mask in of_parts if mask is not None]
        if not masks:
            return None
        if self.join == "not":
            return ~masks[0]
        if self.join == "and":
            return reduce(np.logical_and, masks)
        return reduce(np.logical_or, masks)

    def holds(self, metadata: Mapping[str, Any], document_id: str) -> bool:
        """Return whether metadata and a document id meet the filter."""
        if self.condition is not None:
            if self.join == "document":
                return self.condition(document_id)
            return self.condition(field_value(metadata, self.field))
        holds = (part.holds(metadata, document_id) for part in self.parts)
        if self.join == "or":
            return any(holds)
        return all(holds) != (self.join == "not")


def field_value(metadata: Mapping[str, Any], field: str) -> Any:
    """Return a field's value, or ``MISSING``. The Unicode form of names does not matter."""
    value = metadata.get(field, MISSING)
    if value is not MISSING or field.isascii():
        return value
    name = in_stored_form(field, [name for name in metadata if isinstance(name, str)])
    return MISSING if name is None else metadata[name]


def all_of(*filters: Filters | None) -> Filters | None:
    """Join filters by "and". Return None if no filter has a condition.

    Use it to add conditions to filters from a different source. No condition replaces another, even
    on the same field.

    Args:
        *filters: The filters. None means no conditions.

    Example:
        >>> all_of({"tenant": "a"}, None, {"tenant": ["a", "b"], "year": 2020})
        {'and': [{'tenant': 'a'}, {'tenant': ['a', 'b'], 'year': 2020}]}
        >>> all_of(None, {"year": 2020})
        {'year': 2020}
    """
    batch = [part for part in filters if part is not None and part != {}]
    if len(batch) > 1:
        return {"and": batch}
    return batch[0] if batch else None


def metadata_key(field: str) -> str:
    """Return the name of a metadata field in filters, with a prefix for reserved names.

    Example:
        >>> metadata_key("year"), metadata_key("or")
        ('year', 'metadata.or')
    """
    special = field in (*_JOINS, DOCUMENT_ID) or field.startswith(("$", _METADATA))
    if special:
        return _METADATA + field
    return field


def pattern_within(text: str) -> str:
    """Return the ``like`` pattern that matches texts containing a text.

    Example:
        >>> pattern_within("100%")
        '%100\\\\%%'
    """
    return "%" + re.sub(r"([%_\\])", r"\\\1", text) + "%"


def parse_filters(filters: Filters | None) -> Filter:
    """Check and parse filters.

    All entries of a mapping must hold. The value of a field is compared with a value (equality), a
    list of values (any of them), or a mapping of operators, which must all hold:

    - ``eq``, ``ne``, ``in``, ``nin``: equal to a value or to any value of a list, and the negations
    - ``gt``, ``gte``, ``lt``, ``lte``: greater or less; two of them form a range
    - ``contains``: whether a text contains this text, or a list contains this item
    - ``any``, ``all``: whether the field contains any item, or all items, of a list
    - ``like``: whether a text matches a pattern, in which ``%`` is any text and ``_`` is any
      character. Case is ignored, except by ``like_case``. A backslash escapes a character.
    - ``exists``: whether the field exists
    - ``empty``: whether the field is missing, None or empty

    ``"and"`` and ``"or"`` take a list of filters. ``"not"`` takes filters that must not all hold.
    Filters can be nested. ``"document.id"`` is the id of the node's document. A field with one of
    these names, or with a name that starts with ``$``, needs the prefix ``metadata.``, as in
    ``"metadata.or"``. The prefix is allowed for any field.

    A list in a field meets a condition if any item or the whole list meets it. A missing field
    meets no condition, except for ``ne``, ``nin`` and ``not``, which are negations. Values compare
    as in Python, with exceptions: bools are not numbers, NaN equals nothing, and values that cannot
    be ordered are outside any range. Texts and names are compared regardless of their Unicode form
    (NFC, NFD). Dates, datetimes and texts with ISO dates compare as dates, with the lower of the
    two precisions: a datetime equals its day. A range may compare a number with a numeric text.

    Raises:
        TypeError: If filters are not a mapping from field names.
        ValueError: If an operator is unknown, or its operand is invalid.

    Example:
        >>> from nodekin.nodegraph import Node
        >>> node = Node("", {"year": 1999, "author": "A", "read": "2024-01-31T10:00Z"})
        >>> parse_filters({"year": {"gte": 2000}, "author": ["A", "B"]}).matches(node)
        False
        >>> parse_filters({"or": [{"year": 1999}, {"not": {"author": "A"}}]}).matches(node)
        True
        >>> parse_filters({"read": "2024-01-31", "author": {"like": "a%"}}).matches(node)
        True
    """
    return _parsed(filters, 1)


_MAX_LEVELS = 100


def _parsed(filters: Filters | None, level: int) -> Filter:
    """Parse filters that are nested within other filters."""
    if filters is None:
        return Filter()
    if level > _MAX_LEVELS:
        raise ValueError(f"filters must have at most {_MAX_LEVELS} levels, got more")
    if not isinstance(filters, Mapping) or not all(isinstance(f, str) for f in filters):
        raise TypeError(
            f"filters map metadata fields to values, like {{'author': ['A', 'B']}}, "
            f"not {filters!r:.80}"
        )
    parts = [_part(name, value, level) for name, value in filters.items()]
    return _all([part for part in parts if part])


def _all(parts: Sequence[Filter]) -> Filter:
    return parts[0] if len(parts) == 1 else Filter("and", tuple(parts))


def _part(name: str, value: Any, level: int) -> Filter:
    if name in _JOINS:
        return _joined(name, value, level)
    if name.startswith("$"):
        raise ValueError(
            f"unknown operator {name!r}; filters are joined by 'and', 'or', 'not'; for a "
            f"metadata field of this name, write {_METADATA + name!r}"
        )
    field = name.removeprefix(_METADATA)
    join: Literal["field", "document"] = "document" if name == DOCUMENT_ID else "field"
    leaves = []
    for condition, holds in parse_conditions(field, value):
        leaf = Filter(join, (), field, condition)
        leaves.append(leaf if holds else Filter("not", (leaf,)))
    return _all(leaves)


def _joined(name: str, value: Any, level: int) -> Filter:
    if name == "not":
        allowed = "a filter like {'author': 'A'}"
        is_allowed = isinstance(value, Mapping)
        items = [value]
    else:
        allowed = "a list of filters"
        is_allowed = isinstance(value, Sequence) and not isinstance(value, str | bytes)
        items = value
    if not is_allowed or not items:
        raise ValueError(
            f"the filter {name!r} must be {allowed}, got {value!r:.80}; the metadata field "
            f"{name!r} is written {_METADATA + name!r}"
        )
    parts = [_parsed(item, level + 1) for item in items]
    if name == "and":
        return _all([part for part in parts if part])
    if not all(parts):
        raise ValueError(f"the filter {name!r} has {value!r:.80} with an empty item; omit the item")
    return Filter("not" if name == "not" else "or", tuple(parts))
