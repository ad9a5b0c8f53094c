"""What arguments of this room have to be, and the errors that say so."""

from __future__ import annotations

import math

from .protocols import Retrieves


def check_retriever(inner: Retrieves, name: str = "a retriever") -> Retrieves:
    """Return what is a retriever.

    Raises:
        TypeError: If it is none.
    """
    if not all(callable(getattr(inner, method, None)) for method in ("retrieve", "aretrieve")):
        raise TypeError(f"{name} is an object with retrieve() and aretrieve(), not {inner!r:.80}")
    return inner


def number(value: float, name: str) -> float:
    """Return a number that is 0 or more, and finite.

    Raises:
        TypeError: If it is none.
        ValueError: If it is out of range.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} is a number, not {value!r:.80}")
    if not 0 <= value < math.inf:
        raise ValueError(f"{name} must be 0 or more, and finite, not {value!r}")
    return float(value)


def whole(number: int, name: str, least: int) -> int:
    """Return a whole number that is at least so large.

    Raises:
        TypeError: If it is none.
        ValueError: If it is smaller.
    """
    if isinstance(number, bool) or not isinstance(number, int):
        raise TypeError(f"{name} is a whole number, not {number!r:.80}")
    if number < least:
        raise ValueError(f"{name} must be {least} or more, not {number!r}")
    return number


def seconds(number: float | None, name: str) -> float | None:
    """Return a number of seconds, or None for no limit.

    Raises:
        TypeError: If it is neither.
        ValueError: If it is not above 0.
    """
    if number is None:
        return None
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise TypeError(f"{name} is a number of seconds or None, not {number!r:.80}")
    if not number > 0:
        raise ValueError(f"{name} must be above 0 seconds, not {number!r}")
    return float(number)
