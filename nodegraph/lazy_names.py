"""Load modules (PEP 562), regular expressions and plugins lazily.

Plugins are entry points through which other packages add stores, file readers, models and commands
to nodekin. Each group of entry points has its own interface. The name of an entry point is the name
that users write, such as the scheme of a URL, a file suffix or a command.
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
    """Create ``__getattr__``, ``__dir__`` and ``__all__`` for a package from its stub file.

    A module is imported when one of its names is first used. A module that has the same name as an
    object in it is imported immediately. Type checkers read the stub file. The existing package
    lazy_loader is not used, since it supports only stub files that import from the package itself.

    Args:
        package: The attribute ``__name__`` of the package.
        path: The attribute ``__file__`` of the package.
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
        # Importing the module later would hide the object with the same name.
        if module == f".{name}":
            get(name)
    return get, names, sorted(modules)


def lazy_pattern(pattern: str) -> re.Pattern[str]:
    """Return a regular expression that is compiled on first use.

    This is useful for module constants with large character classes, which take milliseconds to
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
"""The entry point group for stores.

The name of an entry is a URL scheme, and its value is a ``GraphStore`` class or a function that is
called with the URL.
"""

READERS = "nodekin.readers"
"""The entry point group for file readers. The name of an entry is a file suffix without the dot.

If the value is a tuple of ``FileFormat`` objects, the name can be chosen freely.
"""

MODELS = "nodekin.models"
"""The entry point group for models.

The entries ``embed`` and ``chat`` are functions that return the model with a given name. The
entries ``pairs`` and ``vectors`` are functions that convert a sentence-transformers model to an
object that runs the model on tokens.
"""

COMMANDS = "nodekin.commands"
"""The entry point group for subcommands, which are ``click.Command`` objects."""


@cache
def plugins(group: str) -> Mapping[str, EntryPoint]:
    """Return the entry points of a group in all installed packages, keyed by name.

    The entry points are not imported. Packages that are installed later are found only by new
    processes. If two entry points have the same name, the first on ``sys.path`` is used.
    """
    # This module takes longer to import than the whole core.
    from importlib.metadata import entry_points

    registered: dict[str, EntryPoint] = {}
    for entry in entry_points(group=group):
        registered.setdefault(entry.name, entry)
    return MappingProxyType(registered)
