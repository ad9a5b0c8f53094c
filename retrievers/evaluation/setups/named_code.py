"""Objects of one's own modules, by their names: ``module:name``."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from ....nodegraph.errors import nearest_names


def names_code(value: object) -> bool:
    """Return whether a value has the form of a name in a module.

    Example:
        >>> names_code("my_module:split"), names_code("split_sentences")
        (True, False)
    """
    if not isinstance(value, str):
        return False
    module, colon, name = value.partition(":")
    parts = [*module.split("."), *name.split(".")]
    return bool(colon) and all(part.isidentifier() for part in parts)


def load_object(name: str) -> Any:
    """Return what ``module:name`` names. Modules of the current folder are found, too.

    Raises:
        ValueError: If there is no such module or name, or the module raises.
    """
    if not names_code(name):
        raise ValueError(f"{name!r} is not of the form module:name, such as search:make_retriever")
    module_name, _, attribute = name.partition(":")
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        found: Any = importlib.import_module(module_name)
    except Exception as error:  # what any module raises
        raise ValueError(
            f"can't import {module_name!r}: {type(error).__name__}: {error}"
        ) from error
    for part in attribute.split("."):
        if not hasattr(found, part):
            names = nearest_names(part, [n for n in dir(found) if not n.startswith("_")])
            raise ValueError(f"{module_name} has no {attribute!r}; there is {names}")
        found = getattr(found, part)
    return found
