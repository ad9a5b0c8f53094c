"""What a model may filter by when it calls a tool: declared fields, and values of their kinds."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from ..nodegraph.errors import nearest_names
from ..retrievers.filters import Filters, all_of, metadata_key

Scalar = str | int | float | bool

_TRUTH = {"true": True, "yes": True, "false": False, "no": False}

_MIN, _MAX = "_min", "_max"


class FilterError(ValueError):
    """A value that a model gave is not allowed. The message is for the model."""


@dataclass(frozen=True, slots=True)
class FilterField:
    """Declare a metadata field that a model may filter by in a tool.

    Args:
        description: What the field is, for the model.
        type: The kind of its values: ``str``, ``int``, ``float``, ``bool`` or ``date``. A model's
            ``"1999"`` is then the number 1999, and ``"many"`` an error. None for that of
            ``values``, or whatever a value reads as.
        values: The only values that are allowed.
        bounds: Whether the model may also give the least and the greatest value, as two arguments
            that end with ``_min`` and ``_max``.

    Raises:
        TypeError: If the description is no text, or there is no such type.

    Example:
        >>> FilterField("year of publication", type=int, bounds=True).read("1999")
        1999
    """

    description: str
    type: type[Any] | None = None
    values: Sequence[Any] = ()
    bounds: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.description, str):
            raise TypeError(f"a field's description is a text, not {self.description!r:.80}")
        if self.type not in (None, *_READ):
            raise TypeError(
                f"a field's type is one of {', '.join(kind.__name__ for kind in _READ)}, not "
                f"{self.type!r}"
            )

    def read(self, value: Scalar) -> Any:
        """Return a model's value as one of the field's.

        Raises:
            FilterError: If it is none.
        """
        if self.values:
            allowed = {_folded(item): item for item in self.values}
            if _folded(value) not in allowed:
                names = [str(item) for item in self.values]
                raise FilterError(
                    f"{value!r} is not allowed; it is {nearest_names(str(value), names)}"
                )
            return allowed[_folded(value)]
        if self.type is None:
            return value
        try:
            return _READ[self.type](value)
        except (TypeError, ValueError, OverflowError):
            raise FilterError(f"{value!r} is no {self.type.__name__}") from None


def _folded(value: Any) -> str:
    return str(value).strip().casefold()


def _read_int(value: Scalar) -> int:
    number = _read_float(value)
    if number != int(number):
        raise ValueError
    return int(value) if isinstance(value, int | str) and "." not in str(value) else int(number)


def _read_float(value: Scalar) -> float:
    if isinstance(value, bool):
        raise TypeError
    number = float(value)
    if number != number:
        raise ValueError
    return number


def _read_bool(value: Scalar) -> bool:
    if isinstance(value, bool):
        return value
    if (truth := _TRUTH.get(_folded(value))) is None:
        raise ValueError
    return truth


def _read_date(value: Scalar) -> str:
    datetime.strptime(str(value).strip()[:10], "%Y-%m-%d")
    return str(value).strip()


_READ: Mapping[type[Any], Callable[[Scalar], Any]] = {
    str: str,
    int: _read_int,
    float: _read_float,
    bool: _read_bool,
    date: _read_date,
}


@dataclass(frozen=True, slots=True)
class ToolArgument:
    """One argument of a tool by which a model filters.

    Attributes:
        name: What the model calls it.
        key: The metadata field.
        field: Its declaration.
        bound: ``"gte"`` or ``"lte"``, for a bound. None for values.
    """

    name: str
    key: str
    field: FilterField
    bound: str | None = None

    @property
    def description(self) -> str:
        """The description for the model."""
        text = self.field.description
        if self.bound is not None:
            return f"{text}: the {'least' if self.bound == 'gte' else 'greatest'} value"
        if self.field.values:
            return f"{text} ({', '.join(map(str, self.field.values))})"
        return text

    def condition(self, value: Any) -> Filters:
        """Return the condition that a model's value stands for.

        Raises:
            FilterError: If it is no value of the field.
        """
        several = value if isinstance(value, list | tuple) else [value]
        if self.bound is not None and len(several) > 1:
            raise FilterError(f"{self.name}: a bound is one value, not {value!r:.80}")
        conditions = []
        for item in several:
            if not isinstance(item, str | int | float | bool) or item == "":
                raise FilterError(f"{self.name}: {item!r:.80} is no text, number or truth value")
            try:
                conditions.append(self._condition(self.field.read(item)))
            except FilterError as error:
                raise FilterError(f"{self.name}: {error}") from None
        return conditions[0] if len(conditions) == 1 else {"or": conditions}

    def _condition(self, value: Any) -> Filters:
        key = metadata_key(self.key)
        if self.bound is not None:
            return {key: {self.bound: value}}
        if self.field.values or self.field.type not in (None, str):
            return {key: {"in": [value]}}
        same_text = {key: {"like": _literal(str(value).strip())}}
        return (
            same_text
            if self.field.type is str
            else {"or": [same_text, {key: {"in": _readings(value)}}]}
        )


def pattern_within(text: str) -> str:
    """Return the pattern of ``like`` for texts that have this text anywhere in them.

    Example:
        >>> pattern_within("100%")
        '%100\\\\%%'
    """
    return f"%{_literal(text)}%"


def _literal(text: str) -> str:
    return re.sub(r"([%_\\])", r"\\\1", text)


def _readings(value: Scalar) -> list[Scalar]:
    """Return what a value of unknown kind may mean."""
    readings: list[Scalar] = [value]
    for read in (_read_int, _read_float):
        try:
            readings.append(read(value))
            break
        except (TypeError, ValueError, OverflowError):
            continue
    truth = _TRUTH.get(_folded(value)) if isinstance(value, str) else None
    return readings if truth is None else [*readings, truth]


class ToolFilters:
    """The arguments by which a model may filter, and the conditions that its values stand for.

    A model can only add conditions on the declared fields: it gives values, never conditions.

    Args:
        fields: Metadata fields, each with a description or a ``FilterField``.
        reserved: Names of other arguments of the tool.
        unavailable: Further names that an argument can't have. It gets another one then.

    Raises:
        TypeError: If a field is neither.
        ValueError: If a field has the name of another argument.

    Example:
        >>> filters = ToolFilters({"year": FilterField("year", type=int, bounds=True)}, ["query"])
        >>> [argument.name for argument in filters.arguments]
        ['year', 'year_min', 'year_max']
        >>> filters.conditions({"year_min": "1999", "year": None})
        {'year': {'gte': 1999}}
    """

    def __init__(
        self,
        fields: Mapping[str, str | FilterField],
        reserved: Collection[str],
        unavailable: Collection[str] = (),
    ) -> None:
        self.arguments: list[ToolArgument] = []
        names = {*reserved, *unavailable}
        for key, declared in fields.items():
            field = declared if isinstance(declared, FilterField) else FilterField(declared)
            if key in reserved:
                raise ValueError(f"filter_by={key!r} is the name of another argument of the tool")
            endings: list[tuple[str, str | None]] = [("", None)]
            if field.bounds:
                endings += [(_MIN, "gte"), (_MAX, "lte")]
            name = _argument_name(key)
            while any(name + ending in names for ending, _ in endings):
                name += "_"
            names.update(name + ending for ending, _ in endings)
            self.arguments += [ToolArgument(name + e, key, field, bound) for e, bound in endings]

    def conditions(self, values: Mapping[str, Any]) -> Filters | None:
        """Return the conditions of a model's values. None and empty ones are left out.

        Raises:
            FilterError: If a value is not allowed.
        """
        conditions = [
            argument.condition(value)
            for argument in self.arguments
            if (value := values.get(argument.name)) is not None and value not in ("", [])
        ]
        return all_of(*conditions)


def _argument_name(key: str) -> str:
    """Return a name that every model's interface takes for an argument."""
    name = re.sub(r"[^A-Za-z0-9_]", "_", key).strip("_")[:50]
    return name if name[:1].isalpha() else f"field_{name}".rstrip("_")
