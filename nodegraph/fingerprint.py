"""Tell whether two transforms are the same rule, across runs where that is possible."""

from __future__ import annotations

import copyreg
import types
from collections.abc import Mapping
from typing import Any

from .document import digest


def fingerprint(value: object) -> str:
    """Hash a transform by what it does: its code and settings, not its address or its line.

    Functions count by their bytecode, constants, defaults and captured values; objects by their
    class and attributes, or what they are pickled as. Code that a function calls is not followed:
    give the group a ``version`` when that changes.
    """
    return digest(_describe(value, {}))


def _describe(value: Any, known: dict[int, tuple[object, str]]) -> str:
    if value is None or isinstance(value, str | bytes | int | float | complex):
        return repr(value)
    if id(value) not in known:
        known[id(value)] = value, "..."  # where it is met again inside itself
        known[id(value)] = value, digest(type(value).__qualname__, *_parts(value, known))
    return known[id(value)][1]


def _parts(value: Any, known: dict[int, tuple[object, str]]) -> list[str]:
    def each(*parts: Any) -> list[str]:
        return [_describe(part, known) for part in parts]

    if isinstance(value, types.FunctionType):
        cells = [_cell(cell) for cell in value.__closure__ or ()]
        return each(value.__code__, value.__defaults__, value.__kwdefaults__, cells)
    if isinstance(value, types.CodeType):
        # A docstring is the first constant: taken along, it only makes the rule stricter.
        return each(value.co_code, value.co_consts, value.co_names, value.co_varnames)
    if isinstance(value, types.MethodType):
        return each(value.__func__, value.__self__)
    if isinstance(value, type | types.ModuleType):
        return [
            f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', value.__name__)}"
        ]
    if isinstance(value, Mapping):
        return sorted(digest(*each(k, v)) for k, v in value.items())
    if isinstance(value, set | frozenset):
        return sorted(each(*value))
    if isinstance(value, list | tuple):
        return each(*value)
    return each(type(value), _state(value))


def _state(value: Any) -> Any:
    """Return what pickling would take of an object whose class says so; else its attributes.

    ``__getstate__`` is not asked: LlamaIndex's drops from the object what can't be pickled.
    """
    cls = type(value)
    slots = [s for c in cls.__mro__ for s in _names(getattr(c, "__slots__", ()))]
    state = {s: getattr(value, s) for s in slots if hasattr(value, s)}
    state.update(getattr(value, "__dict__", {}))
    reduce = copyreg.dispatch_table.get(cls)
    own: object = cls.__reduce__
    if reduce is None and own is object.__reduce__:
        return state
    try:
        reduced = reduce(value) if reduce else value.__reduce__()
    except Exception:  # it can't be pickled
        return state
    return (reduced, state) if isinstance(reduced, str) else reduced


def _names(slots: str | tuple[str, ...]) -> tuple[str, ...]:
    names = (slots,) if isinstance(slots, str) else tuple(slots)
    return tuple(n for n in names if n not in ("__dict__", "__weakref__"))


def _cell(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None
