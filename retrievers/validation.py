"""Functions that validate arguments, with their error messages."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from ..nodegraph.errors import check_integer, nearest_names
from ..nodegraph.foreign_names import advice

ChoiceT = TypeVar("ChoiceT")

whole = check_integer
"""Validate an integer."""


def optional_whole(number: int | None, name: str, least: int = 1) -> int | None:
    """Validate an optional integer, which must be at least ``least``."""
    return None if number is None else check_integer(number, name, least)


def check_number(value: object, name: str, what: str = "a number") -> None:
    """Check that a value is a number.

    Raises:
        TypeError: If the value is not a number. Bools are not accepted as numbers.
        ValueError: If the value is NaN.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} must be {what}, got {value!r:.80}")
    if math.isnan(value):
        raise ValueError(f"{name} must be a number, got nan")


def number(value: float, name: str) -> float:
    """Validate a finite number that must be at least 0, and return it as a float.

    Raises:
        TypeError: If the value is not a number.
        ValueError: If the value is out of range.
    """
    check_number(value, name)
    if not 0 <= value < math.inf:
        raise ValueError(f"{name} must be 0 or more, and finite, got {value!r}")
    return float(value)


UNBOUNDED = (-math.inf, math.inf)
"""The range of scores that have no limits."""


def check_min_score(
    score: float | None, retriever: object, name: str = "min_score"
) -> float | None:
    """Validate a minimum score, which can be None.

    Args:
        score: The minimum score.
        retriever: The retriever. If it has a ``score_range``, the score must be in this range.
        name: The name of the argument in error messages.

    Raises:
        TypeError: If the score is not a number.
        ValueError: If the score is outside the retriever's range.
    """
    if score is None:
        return None
    check_number(score, name, "a number or None")
    lowest, highest = getattr(retriever, "score_range", UNBOUNDED)
    if not lowest <= score <= highest:
        of = f" from {lowest:g} to {highest:g}, as scores of {type(retriever).__name__} are"
        raise ValueError(
            f"{name} must be a number{of if highest < math.inf else ''}, got {score!r}; use "
            "Retriever(graph, group, 'bm25') for unbounded scores"
        )
    return float(score)


def seconds(number: float | None, name: str) -> float | None:
    """Validate a number of seconds, which can be None for no limit.

    Raises:
        TypeError: If the value is neither a number nor None.
        ValueError: If the number is not above 0.
    """
    if number is None:
        return None
    check_number(number, name, "a number of seconds or None")
    if not number > 0:
        raise ValueError(f"{name} must be above 0 seconds, got {number!r}")
    return float(number)


def choice(value: ChoiceT, name: str, allowed: Iterable[object]) -> ChoiceT:
    """Check that a value is one of several allowed values, and return it.

    Raises:
        ValueError: If the value is not allowed.
    """
    options = [*allowed]
    if value not in options:
        *names, last = [repr(option) for option in options]
        raise ValueError(f"{name} must be {', '.join(names)} or {last}, got {value!r:.80}")
    return value


def check_settings(
    settings: Iterable[str], function: Callable[..., Any], owner: str, *not_settings: str
) -> None:
    """Check that all settings are parameters of a function.

    Raises:
        TypeError: If a setting is unknown.
    """
    allowed = [n for n in inspect.signature(function).parameters if n not in not_settings]
    unknown = [name for name in settings if name not in allowed]
    if unknown and not takes_any_keyword(function):
        name = unknown[0]
        hint = advice(name, allowed) or f"it has {nearest_names(name, allowed)}"
        raise TypeError(f"{owner} has no setting {name!r}; {hint}")


def refuse_settings(settings: Iterable[str], owner: object, kind: str) -> None:
    """Raise TypeError if settings are passed together with an object."""
    if names := sorted(settings):
        raise TypeError(
            f"settings {names} go with a {kind}'s name; give them to {type(owner).__name__}(...) "
            "itself"
        )


def parameters_of(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """Return the parameters of a function.

    The result is empty if the signature is not available, for example because the function is
    written in C.
    """
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {}


def takes_any_keyword(function: Callable[..., Any]) -> bool:
    """Return whether a function accepts arbitrary keyword arguments, such as ``**settings``."""
    return any(p.kind is p.VAR_KEYWORD for p in parameters_of(function).values())


def check_output(output_format: str | None, join: bool | str) -> None:
    """Validate the output format.

    Raises:
        ValueError: If the format is unknown, or ``join`` is used with a format other than
            ``"content"``.
    """
    if output_format not in (None, "content", "dict"):
        raise ValueError(
            f"output_format must be 'content', 'dict' or None (scored nodes), got {output_format!r}"
        )
    if join is not False and output_format != "content":
        raise ValueError(
            f"join={join!r} joins contents; it needs output_format='content', not {output_format!r}"
        )


def check_top_k(top_k: int) -> int:
    """Validate the number of results, which must be at least 1.

    Raises:
        TypeError: If the number is not an integer.
        ValueError: If the number is below 1.
    """
    return whole(top_k, "top_k", 1)
