"""What a package's face promises to type checkers is what it has, and nothing is loaded before."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import nodekin.nodegraph
from nodekin.nodegraph import Node

REPO = Path(__file__).parents[2]


def table(face: ast.Module) -> dict[str, list[str]]:
    """Return what a face hands to ``lazy_names``: names by module."""
    for node in ast.walk(face):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "lazy_names":
            places: dict[str, str] = ast.literal_eval(node.args[1])
            return {module: names.split() for module, names in places.items()}
    return {}


FACES = {
    ".".join(("nodekin", *path.parent.relative_to(REPO).parts)): tree
    for room in ("nodegraph", "retrievers")
    for path in sorted((REPO / room).rglob("__init__.py"))
    if table(tree := ast.parse(path.read_text(encoding="utf-8")))
}


def test_the_packages_that_most_programs_import_are_lazy() -> None:
    assert {"nodekin.nodegraph", "nodekin.retrievers"} <= set(FACES)


@pytest.mark.parametrize("package", FACES)
def test_type_checkers_see_what_is_there(package: str) -> None:
    typed = {
        "." * node.level + (node.module or ""): [alias.name for alias in node.names]
        for block in FACES[package].body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
    }
    assert {module: sorted(names) for module, names in table(FACES[package]).items()} == {
        module: sorted(names) for module, names in typed.items()
    }


@pytest.mark.parametrize("package", FACES)
def test_every_name_is_that_of_its_module(package: str) -> None:
    face = importlib.import_module(package)
    for module, names in table(FACES[package]).items():
        for name in names:
            # A file of the package with a name's own name would be found in its place.
            assert not (Path(*face.__path__) / f"{name}.py").exists()
            assert getattr(face, name) is getattr(importlib.import_module(module, package), name)
            assert name in dir(face)


@pytest.mark.parametrize("package", ["nodekin.nodegraph", "nodekin.retrievers"])
def test_importing_a_package_imports_none_of_its_modules(package: str) -> None:
    code = f"import sys, {package}; print(*(m for m in sys.modules if m.startswith('nodekin.')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) <= {
        package,
        "nodekin.nodegraph",
        "nodekin.nodegraph.lazy_names",
    }


def test_an_unknown_name() -> None:
    with pytest.raises(AttributeError, match=r"module 'nodekin.nodegraph' has no attribute 'Knot'"):
        nodekin.nodegraph.Knot  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(ImportError, match=r"cannot import name 'Knot' from 'nodekin.nodegraph'"):
        from nodekin.nodegraph import Knot  # type: ignore[attr-defined]  # noqa: F401


def test_a_name_is_looked_up_once() -> None:
    assert vars(nodekin.nodegraph)["Node"] is Node
