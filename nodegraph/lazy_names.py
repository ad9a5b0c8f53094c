"""What is loaded at its first use: the names of a package (PEP 562), regular expressions."""

from __future__ import annotations

import ast
import gc
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
"""Names that LangChain or LlamaIndex has, too. ``import *`` leaves them out, so that programs that
have these keep them."""


def attach_stub(
    package: str, path: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Make ``__getattr__``, ``__dir__`` and ``__all__`` of a package from the stub beside it.

    Type checkers read the stub as it is. So importing the package costs nothing, and a module is
    loaded when one of its names is used. The package lazy_loader does the same for stubs that
    import from below the package only.

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
        # What an import makes stays: a collection would look at all objects of the program in vain.
        collects = gc.isenabled()
        try:  # also before the first statement: an interrupt leaves it as it was
            gc.disable()
            value = getattr(import_module(modules[name], package), name)
        finally:
            if collects:
                gc.enable()
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *modules})

    for name, module in modules.items():
        if module == f".{name}":  # importing the module later would hide the name
            get(name)
    return get, names, sorted(modules.keys() - SHARED)


def lazy_pattern(pattern: str) -> re.Pattern[str]:
    """Return a regular expression that is compiled when it is first used.

    Choose it at the top of a module for one that has all letters of several alphabets: it takes
    milliseconds.

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
