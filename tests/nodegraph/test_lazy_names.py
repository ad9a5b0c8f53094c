"""Lazy names of packages, and plugins of installed packages."""

import ast
import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import nodekin.nodegraph
from nodekin.nodegraph.lazy_names import plugins

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
    assert imported.__all__ == sorted(EXPORTS[package])
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
    }


def test_unknown_name_raises() -> None:
    with pytest.raises(AttributeError, match=r"module 'nodekin.nodegraph' has no attribute 'Knot'"):
        nodekin.nodegraph.Knot  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(ImportError, match=r"cannot import name 'Knot' from 'nodekin.nodegraph'"):
        from nodekin.nodegraph import Knot  # type: ignore[attr-defined]  # noqa: F401


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    plugins.cache_clear()
    yield
    plugins.cache_clear()


def _install(folder: Path, package: str, entries: str) -> None:
    info = folder / f"{package}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[nodekin.test]\n{entries}\n")


def test_entry_point_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _install(tmp_path, "one", "path = pathlib:Path\nmissing = no_such_module:Thing")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert [*plugins("nodekin.test")] == ["path", "missing"]
    assert plugins("nodekin.test")["path"].load() is Path
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        plugins("nodekin.test")["missing"].load()
    with pytest.raises(KeyError):
        plugins("nodekin.test")["other"].load()


def test_first_package_of_a_plugin_name_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, module in (("one", "Path"), ("two", "PurePath")):
        _install(tmp_path / name, name, f"path = pathlib:{module}")
    monkeypatch.setattr(sys, "path", [*(str(tmp_path / n) for n in ("one", "two")), *sys.path])
    assert plugins("nodekin.test")["path"].load() is Path
