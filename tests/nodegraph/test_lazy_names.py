"""A package hands out the names of its stub, and loads nothing before they are used."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import nodekin.nodegraph
from nodekin.nodegraph import Node
from nodekin.nodegraph.lazy_names import SHARED

REPO = Path(__file__).parents[2]


FACES = {
    ".".join(("nodekin", *stub.parent.relative_to(REPO).parts)): {
        alias.name: "." * node.level + (node.module or "")
        for node in ast.parse(stub.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    for room in ("nodegraph", "retrievers", "adapters")
    for stub in sorted((REPO / room).rglob("__init__.pyi"))
}


@pytest.mark.parametrize("package", FACES)
def test_every_name_is_that_of_its_module(package: str) -> None:
    face = importlib.import_module(package)
    assert face.__all__ == sorted(FACES[package].keys() - SHARED)
    for name, module in FACES[package].items():
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
        "nodekin.retrievers.default_search",
    }


def test_an_unknown_name() -> None:
    with pytest.raises(AttributeError, match=r"module 'nodekin.nodegraph' has no attribute 'Knot'"):
        nodekin.nodegraph.Knot  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(ImportError, match=r"cannot import name 'Knot' from 'nodekin.nodegraph'"):
        from nodekin.nodegraph import Knot  # type: ignore[attr-defined]  # noqa: F401


def test_a_name_is_looked_up_once() -> None:
    assert vars(nodekin.nodegraph)["Node"] is Node


@pytest.mark.parametrize("collects", [True, False])
def test_an_import_waits_for_no_collection_of_garbage(collects: bool) -> None:
    program = f"""
import gc
import nodekin.retrievers
seen = []
gc.callbacks.append(lambda phase, info: seen.append(info["generation"]))
gc.set_threshold(20, 2, 2)
gc.{"enable" if collects else "disable"}()
nodekin.retrievers.Retriever
gc.callbacks.clear()
assert 2 not in seen, seen
assert gc.isenabled() is {collects}
"""
    subprocess.run([sys.executable, "-c", program], check=True)
