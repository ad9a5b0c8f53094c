"""The lazy names of the packages."""

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


EXPORTS = {
    ".".join(("nodekin", *stub.parent.relative_to(REPO).parts)): {
        alias.name: "." * node.level + (node.module or "")
        for node in ast.parse(stub.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    for top in ("nodegraph", "retrievers", "adapters")
    for stub in sorted((REPO / top).rglob("__init__.pyi"))
}


@pytest.mark.parametrize("package", EXPORTS)
def test_each_exported_name_comes_from_its_module(package: str) -> None:
    imported = importlib.import_module(package)
    assert imported.__all__ == sorted(EXPORTS[package].keys() - SHARED)
    for name, module in EXPORTS[package].items():
        assert getattr(imported, name) is getattr(importlib.import_module(module, package), name)
        assert name in dir(imported)


@pytest.mark.parametrize("package", ["nodekin.nodegraph", "nodekin.retrievers"])
def test_package_import_loads_no_modules(package: str) -> None:
    code = f"import sys, {package}; print(*(m for m in sys.modules if m.startswith('nodekin.')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) <= {
        package,
        "nodekin.nodegraph",
        "nodekin.nodegraph.lazy_names",
        "nodekin.retrievers.default_search",
    }


def test_unknown_name_raises() -> None:
    with pytest.raises(AttributeError, match=r"module 'nodekin.nodegraph' has no attribute 'Knot'"):
        nodekin.nodegraph.Knot  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(ImportError, match=r"cannot import name 'Knot' from 'nodekin.nodegraph'"):
        from nodekin.nodegraph import Knot  # type: ignore[attr-defined]  # noqa: F401


def test_imported_name_is_cached_in_the_package() -> None:
    assert vars(nodekin.nodegraph)["Node"] is Node
