"""Lazy loading of packages' names (PEP 562), regular expressions and plugins.

Plugins are entry points with which packages extend nodekin: stores, readers, models and commands.
Each group of entry points has one contract. The name of an entry is what users write, such as the
scheme of an address, a file suffix or a command.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


def attach_stub(
    package: str, path: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package, from its stub file.

    A module is loaded when one of its names is first used. A module with the same name as its
    object is loaded immediately. Type checkers read the stub file. The package lazy_loader supports
    only stub files that import from the package itself.

    Args:
        package: The ``__name__`` of the package.
        path: The ``__file__`` of the package.
    """
    stub = ast.parse(Path(path).with_suffix(".pyi").read_text(encoding="utf-8"))
    modules: dict[str, str] = {}
    for node in stub.body:
        if isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            modules |= dict.fromkeys([alias.name for alias in node.names], module)

    def get(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(modules[name], package), name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *modules})

    for name, module in modules.items():
        if module == f".{name}":  # importing the module later would hide the name
            get(name)
    return get, names, sorted(modules)


def lazy_pattern(pattern: str) -> re.Pattern[str]:
    """Return a regular expression that is compiled on first use.

    Use it for module constants with large character classes, since these take milliseconds to
    compile.

    Example:
        >>> lazy_pattern(r"[a-z]+").findall("2 cups of tea")
        ['cups', 'of', 'tea']
    """
    return cast("re.Pattern[str]", _LazyPattern(pattern))


class _LazyPattern:
    def __init__(self, pattern: str) -> None:
        self.pattern = pattern

    def __getattr__(self, name: str) -> Any:
        value = getattr(re.compile(self.pattern), name)
        setattr(self, name, value)
        return value


STORES = "nodekin.stores"
"""``GraphStore`` classes or functions by the scheme of an address, called with the address."""

READERS = "nodekin.readers"
"""Readers by file suffix without the dot, or tuples of ``FileFormat`` by any name."""

MODELS = "nodekin.models"
"""Functions by kind. ``embed`` and ``chat``: from the name of a model to the model. ``pairs`` and
``vectors``: from a sentence-transformers model to an object that computes the model from tokens."""

COMMANDS = "nodekin.commands"
"""Commands of the command line, ``click.Command``, by name."""


@cache
def plugins(group: str) -> Mapping[str, EntryPoint]:
    """Return the entry points of a group by name, from all installed packages.

    Nothing is imported. Packages that are installed later are found by the next process. If two
    entries have the same name, the first in ``sys.path`` counts.
    """
    from importlib.metadata import entry_points  # takes longer to import than all of the core

    registered: dict[str, EntryPoint] = {}
    for entry in entry_points(group=group):
        registered.setdefault(entry.name, entry)
    return MappingProxyType(registered)
