"""Load the retrievers that a command line names: ``module:name``, from the current directory."""

from __future__ import annotations

import importlib
import inspect
import sys
from operator import attrgetter
from pathlib import Path
from typing import Any

from ...nodegraph.document import Document
from ...nodegraph.errors import nearest_names
from ...nodegraph.graph import NodeGraph
from ...retrievers.foreign.coercion import as_retriever
from ...retrievers.protocols import RetrieverProtocol
from ..cli.exit_status import CommandError


def load_retriever(name: str, graph: NodeGraph | None) -> RetrieverProtocol:
    """Return the retriever that ``module:name`` names.

    The object is a retriever of nodekin, LangChain or LlamaIndex, a function from a question to
    texts, or a factory: a class or function without required arguments, or with the required
    argument ``documents``.

    Args:
        name: The name of the object.
        graph: The documents that are searched. None: no documents.

    Raises:
        CommandError: If the object is missing, is not a retriever, or raises.
    """
    source = _load(name)
    required = _required(source) if inspect.isclass(source) or inspect.isroutine(source) else None
    try:
        if required == []:
            source = source()
        elif required == ["documents"]:
            if graph is None:
                raise CommandError("there are no documents: name a folder with --docs")
            source = source([Document(n.text, n.metadata, id=n.id) for n in graph.nodes("ROOT")])
        try:
            return as_retriever(source, name)
        except TypeError:
            if inspect.isclass(source) or not callable(source):
                raise
            return as_retriever(source.__call__, name=type(source).__name__)
    except CommandError:
        raise
    except Exception as error:  # any error of the user's code
        raise CommandError(f"{name}: {type(error).__name__}: {error}") from error


def _load(name: str) -> Any:
    module_name, _, attribute = name.partition(":")
    if not module_name or not attribute:
        raise CommandError(f"{name!r} must be MODULE:NAME, such as my_module:make_retriever")
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        module = importlib.import_module(module_name)
    except Exception as error:  # any error of the user's code
        message = f"can't import {module_name!r}: {type(error).__name__}: {error}"
        raise CommandError(message) from error
    try:
        return attrgetter(attribute)(module)
    except AttributeError as error:
        names = nearest_names(attribute, [n for n in dir(module) if not n.startswith("_")])
        raise CommandError(f"{module_name} has no {attribute!r}; there is {names}") from error


def _required(source: Any) -> list[str]:
    """Return the names of the required arguments."""
    parameters = inspect.signature(source).parameters.values()
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [p.name for p in parameters if p.default is p.empty and p.kind not in kinds]
