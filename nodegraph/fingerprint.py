"""Tell whether two transforms are the same rule, across runs where that is possible."""

from __future__ import annotations

import functools
import types
from collections.abc import Mapping
from typing import Any

from .document import digest


def fingerprint(value: object) -> str:
    """Hash a transform by what it does: its code and settings, not its address or its line.

    Functions count by their bytecode, constants, defaults and captured values; objects by their
    class and attributes. Code that a function calls is not followed: give the group a
    ``version`` when that changes.
    """
    return digest(_describe(value, frozenset()))


def _describe(value: Any, seen: frozenset[int]) -> str:
    if value is None or isinstance(value, str | bytes | int | float | complex):
        return repr(value)
    if id(value) in seen:
        return "..."
    seen |= {id(value)}

    def inner(*parts: Any) -> str:
        return f"{type(value).__qualname__}({','.join(_describe(p, seen) for p in parts)})"

    if isinstance(value, types.FunctionType):
        cells = [_cell(cell) for cell in value.__closure__ or ()]
        return inner(value.__code__, value.__defaults__, value.__kwdefaults__, cells)
    if isinstance(value, types.CodeType):
        # A docstring is the first constant: taken along, it only makes the rule stricter.
        return inner(value.co_code, value.co_consts, value.co_names, value.co_varnames)
    if isinstance(value, functools.partial):
        return inner(value.func, value.args, value.keywords)
    if isinstance(value, types.MethodType):
        return inner(value.__func__, value.__self__)
    if isinstance(value, type | types.BuiltinFunctionType | types.ModuleType):
        return (
            f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', value.__name__)}"
        )
    if isinstance(value, Mapping):
        return inner(*sorted((_describe(k, seen), _describe(v, seen)) for k, v in value.items()))
    if isinstance(value, set | frozenset):
        return inner(*sorted(_describe(v, seen) for v in value))
    if isinstance(value, list | tuple):
        return inner(*value)
    cls = type(value)
    if callable(dump := getattr(value, "model_dump", None)) and not isinstance(value, type):
        # Of a pydantic model (a LlamaIndex parser) its settings, not its callbacks and caches.
        return f"{cls.__module__}.{cls.__qualname__}{_describe(dump(), seen)}"
    slots = [s for c in cls.__mro__ for s in _names(getattr(c, "__slots__", ()))]
    state = {**{s: getattr(value, s) for s in slots if hasattr(value, s)}}
    state.update(getattr(value, "__dict__", {}))
    return f"{cls.__module__}.{cls.__qualname__}{_describe(state, seen)}"


def _names(slots: str | tuple[str, ...]) -> tuple[str, ...]:
    names = (slots,) if isinstance(slots, str) else tuple(slots)
    return tuple(n for n in names if n not in ("__dict__", "__weakref__"))


def _cell(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None
