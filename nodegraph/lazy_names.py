"""Lazy loading of the names of a package (PEP 562) and of regular expressions."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, cast

SHARED = frozenset(
    {
        *("BaseRetriever", "MultiQueryRetriever", "RecursiveRetriever", "RouterRetriever"),
        *("Document", "Node", "Prompt", "PromptTemplate", "SentenceSplitter"),
        "TransformRetriever",
    }
)
"""Names that LangChain or LlamaIndex also defines. ``import *`` leaves them out, so that the names
of these libraries are not replaced."""


def attach_stub(
    package: str, path: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package, from its stub file.

    A module is loaded when one of its names is first used. A module that has the name of its object
    is loaded immediately. Type checkers read the stub file. The package lazy_loader supports only
    stub files with imports from inside the package.

    Args:
        package: The ``__name__`` of the package.
        path: The ``__file__`` of the package.
    """
    stub = ast.parse(Path(path).with_suffix(".pyi").read_text(encoding="utf-8"))
    modules = {
        alias.name: "." * node.level + (node.module or "")
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }

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
    return get, names, sorted(modules.keys() - SHARED)


def lazy_pattern(pattern: str) -> re.Pattern[str]:
    """Return a regular expression that is compiled on first use.

    Use it for module constants with large character classes, which take milliseconds to compile.

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
