"""Parts that can be deleted: a copy of the tree without one of them imports, and its tests pass."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pytest
from support.stress import LONG

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

REPO = Path(__file__).parents[1]


class Island(NamedTuple):
    """Paths deleted together with an optional component.

    Attributes:
        code: Folders and files of the component.
        tests: Tests that import the component.
        needs: Other components that the component depends on.
    """

    code: tuple[str, ...]
    tests: tuple[str, ...]
    needs: tuple[str, ...] = ()


ISLANDS = {
    "evaluation": Island(
        ("adapters/evaluation", "retrievers/evaluation"),
        ("tests/adapters/evaluation", "tests/retrievers/evaluation"),
    ),
    "serve": Island(("adapters/serve",), ("tests/adapters/serve",)),
    "mcp": Island(("adapters/mcp",), ("tests/adapters/mcp",)),
    "postgres": Island(("adapters/engines/postgres",), ("tests/adapters/engines/postgres",)),
    "engines": Island(("adapters/engines",), ("tests/adapters/engines",)),
    "files": Island(("adapters/files",), ("tests/adapters/files",)),
}

QUICK = (
    "tests/adapters/cli/test_app.py",
    "tests/adapters/cli/test_index_command.py",
    "tests/adapters/cli/test_search_command.py",
    "tests/adapters/cli/test_foreign_index.py",
    "tests/nodegraph/test_corpus.py",
    "tests/retrievers/composite/test_link_retriever.py",
    "tests/retrievers/test_retriever.py",
)
"""Tests of what stays, which take seconds."""

IMPORT = """
import importlib, pkgutil, sys
for site in sys.argv[1:]:
    sys.path.insert(0, site)
    import nodekin
    assert nodekin.__file__.startswith(site), nodekin.__file__
    names = [m.name for m in pkgutil.walk_packages(nodekin.__path__, "nodekin.")]
    assert len(names) > 150, names
    for name in names:
        if name.endswith("__main__"):
            continue
        try:
            importlib.import_module(name)
        except ImportError as error:
            if "pip install" not in str(error):
                raise
    sys.path.remove(site)
    for name in [name for name in sys.modules if name.partition(".")[0] == "nodekin"]:
        del sys.modules[name]
"""
"""Imports all modules of several copies, each anew; what others made is imported once."""


def without(islands: Iterable[str], folder: Path) -> tuple[Path, Path]:
    """Install a copy without components and their dependents. Return the site and test paths."""
    deleted = [one for name, one in ISLANDS.items() if {*islands} & {name, *one.needs}]
    tree, site = folder / "tree", folder / "site"
    for name in ("nodegraph", "retrievers", "adapters", "root", "tests", "docs", "examples"):
        shutil.copytree(REPO / name, tree / name)  # with the bytecode
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(REPO / name, tree / name)
    for path in (p for one in deleted for p in (*one.code, *one.tests)):
        target = tree / path
        if target.is_dir():
            shutil.rmtree(target)
        else:
            target.unlink(missing_ok=True)
    site.mkdir()
    (tree / "root").rename(site / "nodekin")
    for name in ("nodegraph", "retrievers", "adapters"):
        (tree / name).rename(site / "nodekin" / name)
    info = site / "nodekin-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: nodekin\nVersion: 0.1.0\n")
    (info / "entry_points.txt").write_text(entry_points(site), encoding="utf-8")
    return site, tree


def entry_points(site: Path) -> str:
    """Return the project's entry points whose modules exist."""
    project = tomllib.loads((REPO / "pyproject.toml").read_text("utf-8"))["project"]
    lines = ["[console_scripts]", *(f"{n} = {v}" for n, v in project["scripts"].items())]
    for group, entries in project["entry-points"].items():
        lines.append(f"[{group}]")
        for name, value in entries.items():
            module = site / value.partition(":")[0].replace(".", "/")
            if module.is_dir() or module.with_suffix(".py").exists():
                lines.append(f"{name} = {value}")
    return "\n".join(lines) + "\n"


def run(site: Path, tree: Path, *arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": str(site)},
        cwd=tree,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]


@pytest.mark.slow
def test_core_is_importable_without_optional_components(tmp_path: Path) -> None:
    copies = [without([name], tmp_path / name) for name in ISLANDS]
    run(*copies[0], "-c", IMPORT, *(str(site) for site, _ in copies))


@pytest.mark.slow
@pytest.mark.parametrize("islands", [[*ISLANDS], *([name] for name in ISLANDS if LONG)], ids=str)
def test_core_tests_pass_without_optional_components(islands: list[str], tmp_path: Path) -> None:
    """All components are deleted together; ``make stress`` deletes each one separately as well."""
    site, tree = without(islands, tmp_path)
    run(site, tree, "-m", "pytest", "-n", "0", "-q", "-x", "-m", "not slow and not models", *QUICK)


def test_core_has_no_top_level_optional_imports() -> None:
    """A fast version of the slow test: no module imports a removable component on import."""
    wrong = []
    for room in ("nodegraph", "retrievers", "adapters"):
        for path in sorted((REPO / room).rglob("*.py")):
            place = path.relative_to(REPO).as_posix()
            imported = imports_at_the_beginning(path, place)
            for name, island in ISLANDS.items():
                inside = [n for n, one in ISLANDS.items() if name in (n, *one.needs)]
                if any(is_in(place, ISLANDS[n].code) for n in inside):
                    continue
                wrong += [(place, module) for module in imported if is_in(module, island.code)]
    assert wrong == []


def is_in(path: str, folders: tuple[str, ...]) -> bool:
    return any(f"{path}/".startswith(f"{folder}/") for folder in folders)


def imports_at_the_beginning(path: Path, place: str) -> list[str]:
    """Return the paths of nodekin modules imported at a module's top level."""
    found = []
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.level:
            folder = place.split("/")[: -node.level]
            found.append("/".join([*folder, *(node.module or "").split(".")]))
    return found
