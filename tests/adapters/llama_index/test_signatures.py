"""Signatures that an IDE shows: every parameter has a name and a type."""

import inspect
import typing

import pytest

from nodekin.adapters import llama_index

VARIABLE = inspect.Parameter.VAR_KEYWORD


def own_name(item):
    return getattr(item, "__module__", "").startswith("nodekin")


def public_functions():
    """The public functions of the package, and the public methods that its classes define.

    Each has the methods of that name in LlamaIndex's base classes.
    """
    for name in llama_index.__all__:
        item = getattr(llama_index, name)
        if not inspect.isclass(item):
            yield name, item, []
            continue
        bases = [base for base in item.__mro__ if not own_name(base) and base is not object]
        for method, value in vars(item).items():
            function = inspect.unwrap(getattr(value, "__func__", value))
            is_ours = inspect.isfunction(function) and own_name(function)
            if is_ours and (method == "__init__" or method[0] != "_"):
                inherited = [vars(base)[method] for base in bases if method in vars(base)]
                yield f"{name}.{method}", function, inherited


FUNCTIONS = {name: (function, bases) for name, function, bases in public_functions()}


def parts(hint):
    """A type and the members of its union."""
    if typing.get_origin(hint) is typing.Annotated:
        hint = typing.get_args(hint)[0]
    is_union = typing.get_origin(hint) in (typing.Union, type(int | str))
    return [hint, *(typing.get_args(hint) if is_union else ())]


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_every_parameter_has_a_precise_type(name):
    function, bases = FUNCTIONS[name]
    known = {}
    for base in bases:
        known |= inspect.signature(getattr(base, "__func__", base)).parameters
    kinds = {parameter.kind for parameter in known.values()}
    hints = typing.get_type_hints(function)
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind == VARIABLE:
            assert VARIABLE in kinds, f"{name} has {parameter}"
        elif parameter.name not in known and parameter.name not in ("self", "cls"):
            vague = {object, typing.Any}.intersection(parts(hints[parameter.name]))
            assert not vague, f"{name}({parameter})"


def test_retriever_and_documents_list_every_option():
    for name in ("as_retriever", "from_documents", "__init__"):
        parameters = inspect.signature(FUNCTIONS[f"NodeGraphIndex.{name}"][0]).parameters
        assert VARIABLE not in {parameter.kind for parameter in parameters.values()}
        assert {"similarity", "group"} <= {*parameters}
