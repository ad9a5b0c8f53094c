"""Optional components can be deleted: without one of them the rest imports, and its tests pass."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import distribution
from pathlib import Path

import pytest
from support import source_tree
from support.source_tree import PACKAGES, REPO
from support.stress import LONG

COMPONENTS = {
    "evaluation": ("adapters/evaluation", "retrievers/evaluation"),
    "serve": ("adapters/serve",),
    "mcp": ("adapters/mcp",),
    "postgres": ("adapters/engines/postgres",),
    "engines": ("adapters/engines",),
    "files": ("adapters/files",),
}
"""The folders of each component. Their tests are in the same folders of ``tests/``."""

QUICK = (
    "tests/adapters/cli/test_app.py",
    "tests/adapters/cli/test_index_command.py",
    "tests/adapters/cli/test_search_command.py",
    "tests/adapters/cli/test_workspace.py",
    "tests/nodegraph/test_corpus.py",
    "tests/retrievers/composite/test_link_retriever.py",
    "tests/retrievers/test_retriever.py",
)
"""Quick tests of the other components."""

IMPORT_ALL = """
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


def without(components: Iterable[str], folder: Path) -> tuple[Path, Path]:
    """Install a copy without components. Return the site and the folder of the tests."""
    tree, site = folder / "tree", folder / "site"
    for name in ("tests", "docs", "examples"):
        shutil.copytree(REPO / name, tree / name)
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(REPO / name, tree / name)
    shutil.copytree(REPO / "root", site / "nodekin")
    for name in PACKAGES:
        shutil.copytree(REPO / name, site / "nodekin" / name)
    for path in (path for name in components for path in COMPONENTS[name]):
        shutil.rmtree(site / "nodekin" / path, ignore_errors=True)
        shutil.rmtree(tree / "tests" / path, ignore_errors=True)
    info = site / "nodekin-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: nodekin\nVersion: 0.1.0\n")
    lines = [
        f"[{entry.group}]\n{entry.name} = {entry.value}"
        for entry in distribution("nodekin").entry_points
        if [*site.glob(f"{entry.module.replace('.', '/')}*")]
    ]
    (info / "entry_points.txt").write_text("\n".join(lines), encoding="utf-8")
    return site, tree


def run(site: Path, tree: Path, *arguments: str) -> None:
    env = {**os.environ, "PYTHONPATH": str(site)}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, env=env, cwd=tree, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]


@pytest.mark.slow
def test_core_is_importable_without_optional_components(tmp_path: Path) -> None:
    copies = [without([name], tmp_path / name) for name in COMPONENTS]
    run(*copies[0], "-c", IMPORT_ALL, *(str(site) for site, _ in copies))


@pytest.mark.slow
@pytest.mark.parametrize(
    "names", [[*COMPONENTS], *([name] for name in COMPONENTS if LONG)], ids=str
)
def test_core_tests_pass_without_optional_components(names: list[str], tmp_path: Path) -> None:
    """All components are deleted together; ``make stress`` deletes each one separately as well."""
    site, tree = without(names, tmp_path)
    run(site, tree, "-m", "pytest", "-n", "0", "-q", "-x", "-m", "not slow and not models", *QUICK)


def test_core_has_no_top_level_optional_imports() -> None:
    for path in source_tree.files():
        place = source_tree.short(path)
        for node in source_tree.tree(path).body:
            if isinstance(node, ast.ImportFrom) and node.level:
                folder = place.split("/")[: -node.level]
                imported = "/".join([*folder, *(node.module or "").split(".")])
                for folders in COMPONENTS.values():
                    if any(f"{imported}/".startswith(f"{name}/") for name in folders):
                        assert place.startswith(folders), f"{place} imports {imported}"
