"""Conditions on metadata, checked before ranking."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ..nodegraph.node import Node
from .conditions import MISSING, Condition, parse_conditions

Filters = Mapping[str, Any]
"""Field to condition, and ``"and"``, ``"or"``, ``"not"`` around such; see ``parse_filters``."""

DOCUMENT_ID = "document.id"
"""What filters call the id of a node's document."""

_METADATA = "metadata."  # before a field's name, whatever that is

_JOINS = ("and", "or", "not")

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Filter:
    """Filters that were checked: conditions on fields, joined.

    Attributes:
        join: Whether all parts must hold, one of them, or the only one must not; or this is a
            condition on a field, or on the document's id.
        parts: The filters that are joined; none, of a condition.
        field: The metadata field of a condition.
        condition: What its value must meet.
    """

    join: Literal["and", "or", "not", "field", "document"] = "and"
    parts: tuple[Filter, ...] = ()
    field: str = ""
    condition: Condition | None = None

    def __bool__(self) -> bool:
        """Return whether there is any condition."""
        return bool(self.parts) or self.condition is not None

    @property
    def key(self) -> Hashable:
        """What names the filter: equal keys, equal decisions."""
        condition = None if self.condition is None else self.condition.key
        return self.join, self.field, condition, tuple(part.key for part in self.parts)

    def matches(self, node: Node) -> bool:
        """Return whether a node meets the filter."""
        return self._holds(node.metadata, node.document_id)

    def mask(self, meets: Callable[[str | None, Condition], Mask]) -> Mask | None:
        """Return which rows of a table meet the filter, None where there is no condition.

        Args:
            meets: Returns which rows meet the condition on a field; on the document's id, where
                the field is None.
        """
        if self.condition is not None:
            return meets(self.field if self.join == "field" else None, self.condition)
        masks = [mask for part in self.parts if (mask := part.mask(meets)) is not None]
        if not masks:
            return None
        if self.join == "not":
            return ~masks[0]
        return reduce(np.logical_and if self.join == "and" else np.logical_or, masks)

    def _holds(self, metadata: Mapping[str, Any], document_id: str) -> bool:
        if self.condition is not None:
            is_field = self.join == "field"
            return self.condition(metadata.get(self.field, MISSING) if is_field else document_id)
        holds = (part._holds(metadata, document_id) for part in self.parts)
        return any(holds) if self.join == "or" else all(holds) != (self.join == "not")


def all_of(*filters: Filters | None) -> Filters | None:
    """Return filters that hold where all of these hold; None where none has a condition.

    Choose it to add conditions to those of somebody else: none replaces another, not even on the
    same field.

    Example:
        >>> all_of({"tenant": "a"}, None, {"tenant": ["a", "b"], "year": 2020})
        {'and': [{'tenant': 'a'}, {'tenant': ['a', 'b'], 'year': 2020}]}
        >>> all_of(None, {"year": 2020})
        {'year': 2020}
    """
    batch = [part for part in filters if part is not None and part != {}]
    return None if not batch else batch[0] if len(batch) == 1 else {"and": batch}


def metadata_key(field: str) -> str:
    """Return the name by which filters have a metadata field, whatever it is called.

    Example:
        >>> metadata_key("year"), metadata_key("or")
        ('year', 'metadata.or')
    """
    special = field in (*_JOINS, DOCUMENT_ID) or field.startswith(("$", _METADATA))
    return _METADATA + field if special else field


def pattern_within(text: str) -> str:
    """Return the pattern of ``like`` for texts that contain this text.

    Example:
        >>> pattern_within("100%")
        '%100\\\\%%'
    """
    return "%" + re.sub(r"([%_\\])", r"\\\1", text) + "%"


def parse_filters(filters: Filters | None) -> Filter:
    """Check filters, and make of them what indexes evaluate.

    All entries of a mapping must hold. A field has a value, which it must be equal to; a list of
    values, one of which it must be; or operators, all of which must hold:

    - ``eq``, ``ne``, ``in``, ``nin``: equal to a value, or one of a list; or not
    - ``gt``, ``gte``, ``lt``, ``lte``: greater, less; together they are a range
    - ``contains``: a text has this text in it, a list has this item; ``any``, ``all``: that of
      any, or of all, of a list
    - ``like``: a text of this form, in which ``%`` is any characters and ``_`` is one; upper and
      lower case are the same, but not for ``like_case``; a backslash takes a sign as it is
    - ``exists``: whether the field is there; ``empty``: whether it is not, or None, or nothing
      is in it

    ``"and"`` and ``"or"`` have a list of filters, ``"not"`` has filters that must not all hold;
    nested as you like. ``"document.id"`` is the id of the node's document. A field that has one
    of these names, or begins with ``$``, is written ``"metadata.or"``; so may any other be.

    A field that holds a list meets a condition with any of its items, or as a whole. One that is
    missing meets none, but ``ne``, ``nin`` and ``not``, which are the opposite of others. Values
    compare as in Python, besides: truth values are no numbers, NaN equals nothing, values that
    have no order are in no range. Dates are compared as dates, whether they are dates, datetimes
    or texts (``read_date``), as exactly as both of them are given: a datetime is equal to its
    day. A range also compares a number with a text that is a number.

    Raises:
        TypeError: If filters are no mapping from field names.
        ValueError: If there is no such operator, or it can't compare with that.

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
    if filters is None:
        return Filter()
    if not isinstance(filters, Mapping) or not all(isinstance(f, str) for f in filters):
        raise TypeError(
            f"filters map metadata fields to values, like {{'author': ['A', 'B']}}, "
            f"not {filters!r:.80}"
        )
    return _all([part for name, value in filters.items() if (part := _part(name, value))])


def _all(parts: Sequence[Filter]) -> Filter:
    return parts[0] if len(parts) == 1 else Filter("and", tuple(parts))


def _part(name: str, value: Any) -> Filter:
    """Return one entry of a mapping as a filter."""
    if name in _JOINS:
        return _joined(name, value)
    if name.startswith("$"):
        raise ValueError(
            f"a filter has the name {name!r}; filters are joined by 'and', 'or', 'not', and a "
            f"field that is called so is written {_METADATA + name!r}"
        )
    field = name.removeprefix(_METADATA)
    join: Literal["field", "document"] = "document" if name == DOCUMENT_ID else "field"
    leaves = [
        (Filter(join, (), field, condition), holds)
        for condition, holds in parse_conditions(field, value)
    ]
    return _all([leaf if holds else Filter("not", (leaf,)) for leaf, holds in leaves])


def _joined(name: str, value: Any) -> Filter:
    several = name != "not"
    is_list = isinstance(value, Sequence) and not isinstance(value, str | bytes)
    if not (is_list if several else isinstance(value, Mapping)) or (several and not value):
        allowed = "a list of filters" if several else "filters, like {'author': 'A'}"
        raise ValueError(
            f"the filter {name!r} has {value!r:.80}; it takes {allowed}. A field that is called "
            f"so is written {_METADATA + name!r}"
        )
    parts = tuple(map(parse_filters, value if several else [value]))
    if name == "and":
        return _all(tuple(filter(None, parts)))
    if not all(parts):
        raise ValueError(
            f"the filter {name!r} has {value!r:.80}, in which one has no condition; leave it out"
        )
    return Filter("or" if several else "not", parts)
