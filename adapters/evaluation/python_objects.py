"""Retrievers of one's own, named on the command line as ``module:name``."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from ...nodegraph.document import Document
from ...nodegraph.errors import nearest_names
from ...retrievers.foreign.coercion import as_retriever
from ...retrievers.protocols import RetrieverProtocol
from ..cli.exit_status import CommandError, ExitStatus


def load_object(name: str) -> Any:
    """Return what ``module:name`` names. Modules of the current folder are found, too.

    Raises:
        CommandError: If there is no such module or name, or the module raises.
    """
    module_name, _, attribute = name.partition(":")
    if not module_name or not attribute:
        raise _error(f"{name!r} is not of the form module:name, such as search:make_retriever")
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        module = importlib.import_module(module_name)
    except Exception as error:  # what any module raises
        raise _error(f"can't import {module_name!r}: {type(error).__name__}: {error}") from error
    if not hasattr(module, attribute):
        names = nearest_names(attribute, [n for n in vars(module) if not n.startswith("_")])
        raise _error(f"{module_name} has no {attribute!r}; there is {names}")
    return getattr(module, attribute)


def load_retriever(name: str, documents: Callable[[], Sequence[Document]]) -> RetrieverProtocol:
    """Return the retriever that ``module:name`` names.

    It is a retriever, chain, index or query engine of any framework, a function from a question
    to texts or documents, or what makes one: a class, or a function without an argument or with
    the one argument ``documents``.

    Args:
        name: Its name.
        documents: Returns the documents that are searched.

    Raises:
        CommandError: If there is none of that name, or it is no retriever, or can't be made.
    """
    source = load_object(name)
    required = _required(source) if inspect.isclass(source) or inspect.isroutine(source) else None
    try:
        if required == []:
            source = source()
        elif required == ["documents"]:
            source = source(documents())
        return as_retriever(source, f"--retriever {name}")
    except Exception as error:  # what any code raises
        raise _error(f"--retriever {name}: {type(error).__name__}: {error}") from error


def refuse_unless_typed(parameter: str, option: str) -> None:
    """Check that the person has typed an option that runs code, and no file has it.

    Raises:
        CommandError: If a settings file names it.
    """
    source = click.get_current_context().get_parameter_source(parameter)
    if source is click.core.ParameterSource.DEFAULT_MAP:
        raise _error(f"{option} runs code, so it can't be in nodekin.toml; type it in the command")


def _required(source: Any) -> list[str]:
    """Return the names of the arguments that have to be given."""
    parameters = inspect.signature(source).parameters.values()
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [p.name for p in parameters if p.default is p.empty and p.kind not in kinds]


def _error(message: str) -> CommandError:
    return CommandError(message, ExitStatus.USAGE_ERROR)
