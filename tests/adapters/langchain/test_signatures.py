"""Signatures that an IDE shows: every parameter has a name and a type."""

import inspect
import typing
from collections.abc import Callable

import pytest

from nodekin.adapters import langchain

VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def public_functions():
    """The public functions of the package, and the public methods that its classes define."""
    for name in langchain.__all__:
        item = getattr(langchain, name)
        if not inspect.isclass(item):
            yield name, item, None
            continue
        for method, value in vars(item).items():
            function = inspect.unwrap(getattr(value, "__func__", value))
            is_ours = inspect.isfunction(function) and function.__module__.startswith("nodekin")
            if is_ours and (method == "__init__" or method[0] != "_"):
                yield f"{name}.{method}", function, getattr(item.__mro__[1], method, None)


FUNCTIONS = {name: (function, base) for name, function, base in public_functions()}


def parts(hint):
    """A type and the members of its union."""
    if typing.get_origin(hint) is typing.Annotated:
        hint = typing.get_args(hint)[0]
    is_union = typing.get_origin(hint) in (typing.Union, type(int | str))
    return [hint, *(typing.get_args(hint) if is_union else ())]


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_every_parameter_has_a_precise_type(name):
    function, base = FUNCTIONS[name]
    known = inspect.signature(base).parameters if isinstance(base, Callable) else {}
    hints = typing.get_type_hints(function)
    for parameter in inspect.signature(function).parameters.values():
        is_own = parameter.name not in known and parameter.name not in ("self", "cls")
        if is_own:
            assert parameter.kind not in VARIABLE, f"{name} has {parameter}"
            vague = {object, typing.Any}.intersection(parts(hints[parameter.name]))
            assert not vague, f"{name}({parameter})"


@pytest.mark.parametrize(
    "name",
    [
        "NodeGraphRetriever.from_documents",
        "NodeGraphRetriever.from_texts",
        "NodeGraphRetriever.from_graph",
        "NodeGraphVectorStore.from_documents",
        "NodeGraphVectorStore.from_texts",
        "NodeGraphVectorStore.from_graph",
        "NodeGraphVectorStore.as_retriever",
    ],
)
def test_constructor_lists_every_option(name):
    parameters = inspect.signature(FUNCTIONS[name][0]).parameters.values()
    assert not [p for p in parameters if p.kind in VARIABLE]
    assert {"search_kwargs", "group"} & {p.name for p in parameters}
