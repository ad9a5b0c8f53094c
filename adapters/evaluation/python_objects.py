"""Retrievers of one's own, named on the command line as ``module:name``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import click

from ...nodegraph.document import Document
from ...retrievers.evaluation.setups.named_code import load_object
from ...retrievers.foreign.coercion import as_retriever
from ...retrievers.protocols import RetrieverProtocol
from ..cli.exit_status import CommandError, ExitStatus

trust_code_option = click.option(
    "--trust-code",
    is_flag=True,
    help="Run the code that the file of set-ups names as module:name. Read it before.",
)


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
    try:
        source = load_object(name)
    except ValueError as error:
        raise _error(str(error)) from error
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
