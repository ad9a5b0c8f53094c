"""Compute hashes of functions, metadata and texts that are the same in all processes."""

from __future__ import annotations

import copyreg
import hashlib
import json
import re
import types
from collections.abc import Mapping, Sequence
from dataclasses import fields as fields_of
from dataclasses import is_dataclass
from typing import Any


def fingerprint(value: object) -> str:
    """Return a hash that changes if the code or the settings of a transform change.

    The hash does not depend on memory addresses or line numbers. A function is hashed by its
    bytecode, constants, names, defaults and captured values. An object is hashed by its class and
    attributes, or by its pickled form. If a function or class has an attribute ``rules``, this
    number is included in the hash. If an object has a method ``rule_state``, only its class and the
    result of this method are hashed. Functions that the transform calls are not included. If their
    code changes, change the group's ``version``.
    """
    return digest(_describe(value, {}))


def _describe(value: Any, seen: dict[int, tuple[object, str]]) -> str:
    if value is None or isinstance(value, str | bytes | int | float | complex):
        return repr(value)
    if id(value) not in seen:
        seen[id(value)] = value, "..."  # a placeholder for a value that contains itself
        seen[id(value)] = value, digest(type(value).__qualname__, *_parts(value, seen))
    return seen[id(value)][1]


def _parts(value: Any, seen: dict[int, tuple[object, str]]) -> list[str]:
    def describe(*parts: Any) -> list[str]:
        return [_describe(part, seen) for part in parts]

    if isinstance(value, types.FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        parts = describe(value.__code__, value.__defaults__, value.__kwdefaults__, cells)
        rules = getattr(value, "rules", None)
        return [*parts, f"rules {rules}"] if isinstance(rules, int) else parts
    if isinstance(value, types.CodeType):
        # The docstring is the first constant. Hashing it would only cause unnecessary rebuilds.
        return describe(value.co_code, value.co_consts, value.co_names, value.co_varnames)
    if isinstance(value, types.MethodType):
        return describe(value.__func__, value.__self__)
    if isinstance(value, types.ModuleType):
        return [value.__name__]
    # Classes of nodekin are identified without their module, so that they can be moved.
    if isinstance(value, type):
        module = "nodekin" if value.__module__.startswith("nodekin.") else value.__module__
        name = f"{module}.{value.__qualname__}"
        rules = getattr(value, "rules", None)
        return [f"{name} {rules}" if isinstance(rules, int) else name]
    if isinstance(value, Mapping):
        return sorted(digest(*describe(k, v)) for k, v in value.items())
    if isinstance(value, set | frozenset):
        return sorted(describe(*value))
    if isinstance(value, list | tuple):
        return describe(*value)
    return describe(type(value), _state(value))


def _state(value: Any) -> Any:
    """Return the pickled form of an object if its class defines ``__reduce__``, or its attributes.

    Objects whose attributes change during use define a method ``rule_state`` instead. The method
    ``__getstate__`` is not called, because LlamaIndex objects delete attributes that cannot be
    pickled in it.
    """
    cls = type(value)
    rule_state = getattr(cls, "rule_state", None)
    if callable(rule_state):
        return rule_state(value)
    state = attributes(value)
    reduce = copyreg.dispatch_table.get(cls)
    own: object = cls.__reduce__
    if reduce is None and own is object.__reduce__:
        return state
    try:
        reduced = reduce(value) if reduce else value.__reduce__()
    except Exception:  # The object cannot be pickled.
        return state
    return (reduced, state) if isinstance(reduced, str) else reduced


def attributes(value: Any) -> dict[str, Any]:
    """Return the attributes of an object as a dictionary, including attributes in slots."""
    names: list[str] = []
    for cls in type(value).__mro__:
        slots = getattr(cls, "__slots__", ())
        names += [slots] if isinstance(slots, str) else slots
    names = [name for name in names if name not in ("__dict__", "__weakref__")]
    of_slots = {name: getattr(value, name) for name in names if hasattr(value, name)}
    return of_slots | getattr(value, "__dict__", {})


# These fields can change while the content of the file stays the same.
VOLATILE_METADATA = frozenset(
    {"creation_date", "last_modified_date", "last_accessed_date", "file_path"}
)


def digest(*parts: str) -> str:
    """Return a hash of one or several texts as 24 hexadecimal digits.

    The hash is the same on all machines.
    """
    return digest_of(b"".join([framed(part) for part in parts]))


def framed(part: str) -> bytes:
    """Encode one of the texts of ``digest``, together with its length."""
    encoded = part.encode("utf-8", "surrogatepass")
    return len(encoded).to_bytes(8, "little") + encoded


def digest_of(data: bytes) -> str:
    """Return the hash of texts that were encoded with ``framed``."""
    return hashlib.blake2b(data, digest_size=12).hexdigest()


def digests(*parts: str) -> tuple[str, ...]:
    """Return the hash of the first text, the hash of the first two texts, and so on.

    The computation takes linear time.
    """
    hashed = hashlib.blake2b(digest_size=12)
    results = []
    for part in parts:
        hashed.update(framed(part))
        results.append(hashed.hexdigest())
    return tuple(results)


def metadata_digest(metadata: Mapping[str, Any]) -> str:
    """Return a hash of the metadata, ignoring the fields in ``VOLATILE_METADATA``."""
    return full_digest({k: v for k, v in metadata.items() if k not in VOLATILE_METADATA})


def full_digest(metadata: Mapping[str, Any]) -> str:
    """Return a hash of all metadata fields."""
    if not metadata:
        return _OF_NO_METADATA
    own = {key: _typed_keys(value) for key, value in metadata.items()}
    try:
        return digest(_JSON.encode(own))
    except TypeError:  # The keys have different types, or types that JSON does not support.
        return digest(repr(sorted(own.items())))


def _typed_keys(value: object) -> object:
    """Mark dictionary keys that are not strings, so that they differ from strings in JSON."""
    if isinstance(value, list | tuple):
        return [_typed_keys(item) for item in value]
    if not isinstance(value, dict):
        return value
    items = {key: _typed_keys(item) for key, item in value.items()}
    if all(isinstance(key, str) for key in items):
        return items
    return {"\0": sorted([stable_repr(key), _JSON.encode(items[key])] for key in items)}


def _plain(value: object) -> object:
    """Convert a value of a type that JSON does not support.

    Sets are sorted to make hashes stable.
    """
    if isinstance(value, set | frozenset):
        return sorted(_plain_text(item) for item in value)
    return _plain_text(value)


def _plain_text(value: object) -> str:
    text = str(value)
    if isinstance(value, frozenset):
        return stable_repr(value)
    if isinstance(value, str) or not _ADDRESS.search(text):
        return text
    return stable_repr(value)


_JSON = json.JSONEncoder(sort_keys=True, default=_plain, ensure_ascii=False)

_OF_NO_METADATA = digest(_JSON.encode({}))


_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")


def stable_repr(value: object) -> str:
    """Return a ``repr`` of a value that is the same in all processes.

    Sets are sorted. If the ``repr`` of an object contains a memory address, its class and
    attributes are used instead.

    Example:
        >>> stable_repr({"tags": {"green", "black"}})
        "{'tags': {'black', 'green'}}"
    """
    try:
        return _stable_repr(value)
    except RecursionError:  # a value that contains itself
        return _without_address(value)


def _stable_repr(value: Any) -> str:
    kind = type(value)
    if kind is list:
        return f"[{', '.join(_stable_repr(item) for item in value)}]"
    if kind is tuple and len(value) != 1:
        return f"({', '.join(_stable_repr(item) for item in value)})"
    if kind is tuple:
        return f"({_stable_repr(value[0])},)"
    if kind is dict:
        pairs = (f"{_stable_repr(k)}: {_stable_repr(v)}" for k, v in value.items())
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, set | frozenset) and value:
        items = f"{{{', '.join(sorted(_stable_repr(item) for item in value))}}}"
        return items if kind is set else f"{kind.__name__}({items})"
    if is_dataclass(value):
        names = [field.name for field in fields_of(value) if field.repr]
        return _record_repr(value, kind.__qualname__, names)
    if isinstance(value, tuple):
        return _record_repr(value, kind.__name__, getattr(value, "_fields", ()))
    return _without_address(value)


def _record_repr(value: Any, name: str, fields: Sequence[str]) -> str:
    """Return a stable ``repr`` of a dataclass or named tuple."""
    values = {field: getattr(value, field) for field in fields}
    usual = ", ".join([f"{field}={own!r}" for field, own in values.items()])
    if not values or f"{name}({usual})" != repr(value):
        return _without_address(value)
    stable = ", ".join([f"{field}={_stable_repr(own)}" for field, own in values.items()])
    return f"{name}({stable})"


def _without_address(value: object) -> str:
    text = repr(value)
    if isinstance(value, str | bytes) or not _ADDRESS.search(text):
        return text
    return f"<{type(value).__qualname__} {fingerprint(value)}>"
