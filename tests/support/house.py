"""Measures of the source: imports, names, classes and tests."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

REPO = Path(__file__).parents[2]
ROOMS = ("nodegraph", "retrievers", "adapters")


@cache
def tree(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


def files(*, faces: bool = True) -> list[Path]:
    """Return the source files, with or without the packages' ``__init__.py``."""
    found = sorted(path for room in ROOMS for path in (REPO / room).rglob("*.py"))
    return [path for path in found if faces or path.name != "__init__.py"]


def short(path: Path) -> str:
    """Return a path below the repository, with slashes."""
    return path.relative_to(REPO).as_posix()


def _module(base: Path, name: str) -> Path | None:
    place = base / name.replace(".", "/") if name else base
    for path in (place.with_suffix(".py") if name else None, place / "__init__.py"):
        if path is not None and path.exists():
            return path
    return None


@cache
def imports(path: Path, *, types: bool = True) -> frozenset[Path]:
    """Return the files that a file imports from, with or without imports for type checkers."""
    return frozenset(_imports(path, types))


def _imports(path: Path, types: bool) -> Iterator[Path]:
    for_types = {
        inner
        for node in ast.walk(tree(path))
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in node.body
    }
    for node in ast.walk(tree(path)):
        if node in for_types and not types:
            continue
        if isinstance(node, ast.ImportFrom) and node.level:
            base = path.parents[node.level - 1]
            package = base / node.module.replace(".", "/") if node.module else base
            for alias in node.names:  # a module of that name, or a name in the module
                target = _module(package, alias.name) or _module(base, node.module or "")
                if target is not None and target != path:
                    yield target

        elif isinstance(node, ast.Call) and "import_module" in ast.unparse(node.func):
            for constant in node.args:  # importing by a string is importing
                if isinstance(constant, ast.Constant) and str(constant.value).startswith("."):
                    name = str(constant.value)
                    dots = len(name) - len(name.lstrip("."))
                    target = _module(path.parents[dots - 1], name[dots:])
                    if target is not None and target != path:
                        yield target


def through_a_face() -> list[tuple[str, str]]:
    """List imports of a neighbour's names through its ``__init__.py``, which is for users."""
    return sorted(
        {
            (short(path), short(target))
            for path in files(faces=False)
            for target in imports(path)
            if target.name == "__init__.py"
        }
    )


def rings() -> list[list[str]]:
    """Return the files that import each other in a ring, by Tarjan's algorithm.

    Imports for type checkers are not counted, since they are not executed.
    """
    arrows = {path: imports(path, types=False) for path in files()}
    index: dict[Path, int] = {}
    low: dict[Path, int] = {}
    stack: list[Path] = []
    result: list[list[str]] = []

    def visit(path: Path) -> None:
        index[path] = low[path] = len(index)
        stack.append(path)
        for target in arrows[path]:
            if target not in index:
                visit(target)
                low[path] = min(low[path], low[target])
            elif target in stack:
                low[path] = min(low[path], index[target])
        if low[path] == index[path]:
            ring = [stack.pop()]
            while ring[-1] != path:
                ring.append(stack.pop())
            if len(ring) > 1:
                result.append(sorted(map(short, ring)))

    for path in arrows:
        if path not in index:
            visit(path)
    return result


def twice(names: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Keep what stands in several places."""
    return {name: places for name, places in names.items() if len(places) > 1}


def file_names() -> dict[str, list[str]]:
    """Map the name of each file to where it is."""
    names: dict[str, list[str]] = defaultdict(list)
    for path in files(faces=False):
        names[path.name].append(short(path))
    return names


def classes() -> Iterator[tuple[Path, ast.ClassDef]]:
    """Yield all classes with their files."""
    for path in files(faces=False):
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ClassDef):
                yield path, node


def class_names() -> dict[str, list[str]]:
    """Map the name of each class to where it is."""
    names: dict[str, list[str]] = defaultdict(list)
    for path, node in classes():
        names[node.name].append(short(path))
    return names


def changeable_dataclasses() -> set[str]:
    """Return the names of the dataclasses that are not frozen."""
    decorators = {
        node.name: ast.unparse(decorator)
        for _, node in classes()
        for decorator in node.decorator_list
    }
    return {
        name
        for name, decorator in decorators.items()
        if decorator.startswith("dataclass") and "frozen=True" not in decorator
    }


def public_names() -> dict[str, list[str]]:
    """Map each package that users import from to the names in its stub."""
    return {
        short(stub.parent): [
            alias.asname or alias.name
            for node in tree(stub).body
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        ]
        for room in ROOMS
        for stub in sorted((REPO / room).rglob("*.pyi"))
    }


def methods(name: str) -> list[str]:
    """Return the public methods and properties of a class."""
    (node,) = (node for _, node in classes() if node.name == name)
    functions = (n for n in node.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))
    return [function.name for function in functions if not function.name.startswith("_")]


def without_tests() -> list[str]:
    """List the source files that have no test at the mirrored path."""
    return [
        short(path)
        for path in files(faces=False)
        if not (REPO / "tests" / path.relative_to(REPO).parent / f"test_{path.name}").exists()
    ]
