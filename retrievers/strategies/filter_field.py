"""Descriptions of the metadata fields of documents: types, ranges and frequent values."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from typing import Any, Literal, get_args

from ..conditions import SEVERAL, CalendarTime, plain, read_date
from ..validation import choice

MAX_VALUES = 20
"""The maximum number of values of a field that are included in a prompt."""


MAX_VALUE_LENGTH = 60
"""The maximum length of a value in a prompt, in characters. Longer values are truncated."""


FieldType = Literal["any", "text", "number", "date", "bool"]


@dataclass(frozen=True, slots=True)
class FilterField:
    """A metadata field by which a question can be filtered.

    Args:
        type: The type of the values. For lists, this is the type of the items. The type ``"date"``
            includes dates, datetimes and strings in ISO format. If the type is ``"any"``, values
            are not checked.
        description: An explanation of the field, which is included in the prompt.
        values: Some or all values of the field, such as the names of categories.
        is_complete: Whether ``values`` lists all values of the field. If True, a condition that
            requires any other value is dropped.
        minimum: The lowest number or date, or None if it is unknown.
        maximum: The highest number or date, or None if it is unknown.

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
"""A mapping from names of fields to their descriptions."""


def checked_fields(fields: Any) -> Fields | tuple[str, ...] | None:
    """Validate the argument ``fields`` of a retriever.

    The result is a mapping if fields are described, a tuple if they are only named, and None if the
    argument is None.

    Raises:
        TypeError: If the argument is neither a list of names nor a mapping from names to fields or
            descriptions.
        ValueError: If the argument is empty.
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


def field_of(values: Iterable[Any]) -> FilterField | None:
    """Derive the type, range and frequent values of a field from its values in documents.

    If no type fits all values, None is returned.

    Args:
        values: The value of the field in each document. The items of a list count separately.
    """
    items: list[Any] = []
    for value in values:
        if isinstance(value, SEVERAL):
            items += [plain(item) for item in value]
        else:
            items.append(value)
    items = [item for item in items if not is_absent(item)]
    kind = _common_kind(items)
    if kind is None:
        return None
    field = FilterField(kind)
    if kind in ("number", "date"):
        ordered = sorted(items, key=order)
        return replace(field, minimum=ordered[0], maximum=ordered[-1])
    if kind != "text":
        return field
    counts = Counter(str(item) for item in items)
    frequent = sorted(counts, key=lambda text: (-counts[text], text))
    return replace(
        field, values=tuple(frequent[:MAX_VALUES]), is_complete=len(frequent) <= MAX_VALUES
    )


def _common_kind(values: Sequence[Any]) -> FieldType | None:
    """Return the type that all values have in common, or None if they cannot be compared."""
    kinds = {_kind(value) for value in values}
    if not kinds or None in kinds:
        return None
    if len(kinds) == 1:
        return kinds.pop()
    # If dates are mixed with other strings, all of them are treated as text.
    if kinds == {"text", "date"} and all(isinstance(value, str) for value in values):
        return "text"
    return "any"


def is_absent(value: Any) -> bool:
    """Return whether a value counts as missing: None, an empty string or NaN."""
    if isinstance(value, float):
        return math.isnan(value)
    return value is None or value == ""


def _kind(value: Any) -> FieldType | None:
    """Return the type of a value, or None if values of its type cannot be compared."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float | Decimal):
        return "number"
    if isinstance(value, date):
        return "date"
    if not isinstance(value, str):
        return None
    when = read_date(value)
    # Four digits may be a year, but also a number or a code.
    if when is None or len(when.calendar) < 2:
        return "text"
    return "date"


def order(value: Any) -> Any:
    """Return a sort key for numbers, or for dates of different precisions."""
    when = read_date(value)
    if not isinstance(when, CalendarTime):
        return value
    days = (*when.calendar, 1, 1)[:3]
    if when.instant is None:
        return days, 0
    return days, when.instant.total_seconds()
