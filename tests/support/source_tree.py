"""Inspect the source code: its imports, names, classes and tests."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

REPO = Path(__file__).parents[2]
PACKAGES = ("nodegraph", "retrievers", "adapters")
FRAMEWORKS = {
    *("langchain", "langchain_core", "langchain_text_splitters", "langchain_community"),
    *("llama_index", "openai", "sentence_transformers", "torch", "transformers"),
    *("chromadb", "pymilvus", "pandas", "jieba", "pydantic"),
}


@cache
def tree(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


def files() -> list[Path]:
    """Return all source files except ``__init__.py`` files."""
    found = sorted(path for name in PACKAGES for path in (REPO / name).rglob("*.py"))
    return [path for path in found if path.name != "__init__.py"]


def short(path: Path) -> str:
    """Return a path relative to the repository, with forward slashes."""
    return path.relative_to(REPO).as_posix()


def external_imports(path: Path) -> set[str]:
    """Return the dotted names of all modules that a file imports with absolute imports."""
    found = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add(node.module or "")
    return found


@cache
def imports(path: Path) -> frozenset[Path]:
    """Return the files that a file imports with relative imports, also inside functions.

    Imports for type checkers are ignored, because they are not executed.
    """
    for_types = {
        inner
        for node in ast.walk(tree(path))
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in node.body
    }
    found = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ImportFrom) and node.level and node not in for_types:
            base = path.parents[node.level - 1]
            package = base / node.module.replace(".", "/") if node.module else base
            for alias in node.names:  # this is either a submodule or a name in the module
                found.add(_module(package / alias.name) or _module(package))
    return frozenset(found - {None, path})  # type: ignore[arg-type]


def _module(place: Path) -> Path | None:
    for path in (place.with_suffix(".py"), place / "__init__.py"):
        if path.exists():
            return path
    return None


def repeated(pairs: Iterator[tuple[str, Path]]) -> dict[str, list[str]]:
    """Return the names that occur in more than one file, together with these files."""
    places = defaultdict[str, list[str]](list)
    for name, path in pairs:
        places[name].append(short(path))
    return {name: paths for name, paths in places.items() if len(paths) > 1}


def classes() -> Iterator[tuple[Path, ast.ClassDef]]:
    """Yield all classes, together with the files that define them."""
    for path in files():
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ClassDef):
                yield path, node


def mutable_dataclasses() -> set[str]:
    """Return the names of all dataclasses that are not frozen."""
    return {
        node.name
        for _, node in classes()
        for decorator in map(ast.unparse, node.decorator_list)
        if decorator.startswith("dataclass") and "frozen=True" not in decorator
    }


def public_names() -> dict[str, list[str]]:
    """Return the names in the stub of each package from which users import."""
    return {
        short(stub.parent): [
            alias.asname or alias.name
            for node in tree(stub).body
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        ]
        for name in PACKAGES
        for stub in sorted((REPO / name).rglob("*.pyi"))
    }


def public_docstrings() -> Iterator[str]:
    """Yield the docstrings of all public functions, public classes and their public methods."""
    public = {name for names in public_names().values() for name in names}
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for path in files():
        for node in tree(path).body:
            if not isinstance(node, kinds) or node.name not in public:
                continue
            yield ast.get_docstring(node) or ""
            for member in node.body:
                if isinstance(member, kinds) and not member.name.startswith("_"):
                    yield ast.get_docstring(member) or ""


def importable_classes() -> set[str]:
    """Return the classes that can be imported from packages and from single-file adapters."""
    exported = {name for names in public_names().values() for name in names}
    adapters = REPO / "adapters"
    return exported | {node.name for path, node in classes() if path.parent == adapters}


def methods(name: str) -> list[str]:
    """Return the names of the public methods and properties of a class."""
    (node,) = (node for _, node in classes() if node.name == name)
    functions = (n for n in node.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))
    return [function.name for function in functions if not function.name.startswith("_")]
