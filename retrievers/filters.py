"""Filters, which are conditions on metadata that are applied before ranking."""

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
"""A mapping from fields (or ``"and"``, ``"or"``, ``"not"``) to conditions.

See ``parse_filters``.
"""

DOCUMENT_ID = "document.id"
"""The name that refers to the id of a document in filters."""

_METADATA = "metadata."  # the prefix for fields whose name is reserved

_JOINS = ("and", "or", "not")

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Filter:
    """A parsed filter, which is a condition or a combination of other filters.

    A custom index receives a filter in its method ``search`` and calls ``matches``.

    Attributes:
        join: The kind of the filter. ``"and"``, ``"or"`` and ``"not"`` (with a single part) combine
            ``parts``. ``"field"`` is a condition on a metadata field, and ``"document"`` is a
            condition on the id of the document.
        parts: The filters that are combined. It is empty for a condition.
        field: The metadata field of a condition.
        condition: The condition on the value of the field.

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
        """Return whether the filter contains any condition."""
        return bool(self.parts) or self.condition is not None

    @property
    def key(self) -> Hashable:
        """A key for caches. Filters with equal keys accept the same nodes."""
        condition = None if self.condition is None else self.condition.key
        return self.join, self.field, condition, tuple(part.key for part in self.parts)

    @property
    def compared_fields(self) -> set[str]:
        """The metadata fields whose values are compared, not only checked for existence."""
        fields: set[str] = set()
        for part in self.parts:
            fields |= part.compared_fields
        if self.join == "field" and self.condition is not None and self.condition.compares:
            fields.add(self.field)
        return fields

    def matches(self, node: Node) -> bool:
        """Return whether a node matches the filter."""
        return self.holds(node.metadata, node.document_id)

    def mask(self, meets: Callable[[str | None, Condition], Mask]) -> Mask | None:
        """Return a boolean array that is True for rows that match the filter.

        If the filter contains no condition, None is returned.

        Args:
            meets: A function that returns a boolean array of the rows that meet a condition. Its
                arguments are a metadata field, or None for the id of the document, and the
                condition.
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
        """Return whether metadata and a document id match the filter."""
        if self.condition is not None:
            if self.join == "document":
                return self.condition(document_id)
            return self.condition(field_value(metadata, self.field))
        holds = (part.holds(metadata, document_id) for part in self.parts)
        if self.join == "or":
            return any(holds)
        return all(holds) != (self.join == "not")


def field_value(metadata: Mapping[str, Any], field: str) -> Any:
    """Return the value of a field, or ``MISSING``, regardless of the Unicode form of its name."""
    value = metadata.get(field, MISSING)
    if value is not MISSING or field.isascii():
        return value
    name = in_stored_form(field, [name for name in metadata if isinstance(name, str)])
    return MISSING if name is None else metadata[name]


def all_of(*filters: Filters | None) -> Filters | None:
    """Combine filters with "and". If none of them contains a condition, None is returned.

    Use this function to add conditions to filters from a different source. No condition replaces
    another condition, even if both apply to the same field.

    Args:
        *filters: The filters, each of which can be None.

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
    """Return the name of a metadata field as used in filters, with a prefix if it is reserved.

    Example:
        >>> metadata_key("year"), metadata_key("or")
        ('year', 'metadata.or')
    """
    special = field in (*_JOINS, DOCUMENT_ID) or field.startswith(("$", _METADATA))
    if special:
        return _METADATA + field
    return field


def pattern_within(text: str) -> str:
    """Return a pattern for ``like`` that matches every text containing the given text.

    Example:
        >>> pattern_within("100%")
        '%100\\\\%%'
    """
    return "%" + re.sub(r"([%_\\])", r"\\\1", text) + "%"


def parse_filters(filters: Filters | None) -> Filter:
    """Validate and parse filters.

    A filter is a mapping from field names to requirements, all of which must be met. A requirement
    is a value (the field must be equal to it), a list of values (the field must be equal to any of
    them), or a mapping from operators to operands, all of which must be met:

    - ``eq``, ``in``: The field is equal to a value, or to any value of a list. ``ne`` and ``nin``
      are the negations.
    - ``gt``, ``gte``, ``lt``, ``lte``: The field is greater or less than a value. Two of these
      operators form a range.
    - ``contains``: The field is a text that contains a text, or a list that contains an item.
    - ``any``, ``all``: The field contains any item, or all items, of a list.
    - ``like``, ``like_case``: The field is a text that matches a pattern, in which ``%`` stands for
      any text and ``_`` for any character. A backslash escapes a character. ``like`` ignores case.
    - ``exists``: If True, the field must exist. If False, it must not exist.
    - ``empty``: If True, the field must be missing, None or empty. If False, it must have a value.

    ``"and"`` and ``"or"`` combine a list of filters, and ``"not"`` negates a filter. Filters can be
    nested. ``"document.id"`` refers to the id of the node's document. If a metadata field has one
    of these names, or a name that starts with ``$``, the prefix ``metadata.`` is required, as in
    ``"metadata.or"``. The prefix is allowed for any field.

    If a field contains a list, a condition is met if any item or the whole list meets it. A missing
    field does not meet any condition except negations (``ne``, ``nin`` and ``not``). Values are
    compared as in Python, with the following exceptions: bools are not numbers, NaN is not equal to
    any value, and values that cannot be ordered are outside of any range. The Unicode form (NFC,
    NFD) of texts and names is ignored. Dates, datetimes and texts in ISO format are compared as
    dates, with the lower of the two precisions, so that a datetime is equal to its day. In a range,
    a number can be compared with a text that represents a number.

    Raises:
        TypeError: If the filters are not a mapping with field names as keys.
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
