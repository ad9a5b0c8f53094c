"""The package: lists in pyproject.toml, public names, light imports, missing extras."""

from __future__ import annotations

import importlib
import json
import runpy
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from support import release_check, source_tree
from support.source_tree import FRAMEWORKS, PACKAGES, REPO

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def test_package_lists_match_files_on_disk() -> None:
    config = tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))
    packages, data = {"nodekin"}, defaultdict[str, list[str]](list)
    for path in (path for name in PACKAGES for path in (REPO / name).rglob("*.*")):
        package = ".".join(("nodekin", *path.parent.relative_to(REPO).parts))
        if path.name == "__init__.py":
            packages.add(package)
        elif path.suffix not in (".py", ".pyi", ".pyc") and path.name != "py.typed":
            data[package].append(path.name)
    listed = config["tool"]["setuptools"]
    assert sorted(listed["packages"]) == sorted(packages)
    assert {name: sorted(files) for name, files in listed["package-data"].items()} == {
        name: sorted(files) for name, files in [*data.items(), ("*", listed["package-data"]["*"])]
    }


def test_no_folder_shadows_the_namespace() -> None:
    assert not (REPO / "nodekin").exists()
    assert not (REPO / "__init__.py").exists()


@pytest.mark.parametrize("package", PACKAGES)
def test_type_checkers_find_each_package(package: str) -> None:
    link = REPO / ".typing" / "nodekin" / package
    assert link.is_symlink()
    assert link.resolve() == (REPO / package).resolve()
    assert (REPO / package / "py.typed").exists()


@pytest.mark.parametrize("package", source_tree.public_names())
def test_public_names_can_be_imported(package: str) -> None:
    module = importlib.import_module(f"nodekin.{package.replace('/', '.')}")
    assert all(hasattr(module, name) for name in module.__all__)
    assert len({name.casefold() for name in module.__all__}) == len(module.__all__) > 0


def _modules_of(statement: str) -> list[str]:
    """Return the modules that a statement loads in a fresh interpreter."""
    code = f"import sys, json; old = set(sys.modules); {statement}; "
    code += "print(json.dumps(sorted(set(sys.modules) - old)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded: list[str] = json.loads(done.stdout)
    return loaded


# Imported at the first use: servers, parsers of files, parsers of model answers.
_LATE = FRAMEWORKS | {
    *("asyncio", "http", "httpx", "jieba", "json_repair", "multiprocessing", "numba", "numpy"),
    *("pydantic", "scipy", "socket", "ssl", "subprocess", "tqdm", "urllib.request"),
    *("nodekin.adapters", "nodekin.nodegraph.models.output", "nodekin.nodegraph.readers.formats"),
    *("nodekin.retrievers.answers", "nodekin.retrievers.evaluation"),
    "nodekin.retrievers.indexes.nearest_vectors",
    *("nodekin.retrievers.strategies", "nodekin.retrievers.tuning"),
}


@pytest.mark.parametrize(
    ("statement", "most", "early"),
    [
        ("from nodekin.nodegraph import NodeGraph", 59, set()),
        ("from nodekin import NodeGraph, Retriever", 103, {"numpy"}),
        # Plans of several steps also run in event loops.
        (
            "from nodekin import NodeGraph, Retriever, as_retriever",
            115,
            {"numpy", "asyncio", "socket", "ssl", "subprocess"},
        ),
    ],
)
def test_common_imports_load_few_modules(statement: str, most: int, early: set[str]) -> None:
    loaded = _modules_of(statement)
    if sys.version_info < (3, 11):  # whose uuid imports it
        early = {*early, "subprocess"}
    assert {name for name in loaded if {name, name.split(".")[0]} & _LATE} <= {
        name for name in loaded if name.split(".")[0] in early
    }
    assert len([name for name in loaded if name.startswith("nodekin.")]) <= most


def test_retrievers_need_no_framework() -> None:
    loaded = _modules_of("from nodekin.retrievers import *")
    assert not {name.split(".")[0] for name in loaded} & FRAMEWORKS
    assert not [name for name in loaded if name.startswith("nodekin.retrievers.evaluation")]


def test_langchain_adapter_loads_only_langchain_core() -> None:
    loaded = {name.split(".")[0] for name in _modules_of("import nodekin.adapters.langchain")}
    assert loaded & FRAMEWORKS <= {"langchain_core", "pydantic"}
    assert "langchain_classic" not in loaded


@pytest.mark.parametrize("framework", ["langchain", "llama_index", "openai"])
def test_missing_extra_error_names_package_to_install(framework: str) -> None:
    core = {"langchain": "langchain_core", "llama_index": "llama_index.core"}.get(
        framework, framework
    )
    code = f"""
import sys
sys.modules[{core!r}] = None
try:
    import nodekin.adapters.{framework}
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert f'pip install "nodekin[{framework.replace("_", "-")}]"' in done.stdout


def test_install_command_of_errors_uses_an_installed_checkout() -> None:
    """The package index is not asked: pip finds the extras in the metadata of the installation."""
    pytest.importorskip("pip")
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--no-index", "--no-deps"]
    done = subprocess.run([*command, "nodekin[desk]"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Requirement already satisfied: nodekin[desk]" in done.stdout
    assert "does not provide the extra" not in done.stderr


@pytest.fixture(scope="module")
def dependencies() -> dict[str, Any]:
    """Return the names of packaging/dependencies.py."""
    return runpy.run_path(str(REPO / "packaging" / "dependencies.py"))


def test_pins_agree_with_requirements(dependencies: dict[str, Any]) -> None:
    project = dependencies["Project"]()
    assert dependencies["problems"](project) == []
    assert project.pythons == list(release_check.PYTHONS)


def test_quickstart_names_extras_that_all_lacks(dependencies: dict[str, Any]) -> None:
    project = dependencies["Project"]()
    included = dependencies["Requirement"](project.extras["all"][0]).extras
    (line,) = (
        line
        for line in (REPO / "docs" / "quickstart.md").read_text(encoding="utf-8").splitlines()
        if "does not include" in line
    )
    left_out = line.partition("does not include")[2].partition(";")[0]
    named = set(left_out.replace("`", "").replace(" and ", ", ").strip().split(", "))
    assert named == set(project.extras) - included - {"all", "desk"}


def test_desk_is_a_part_of_all(dependencies: dict[str, Any]) -> None:
    project = dependencies["Project"]()
    desk = dependencies["Requirement"](project.extras["desk"][0]).extras
    assert desk == {"files", "mcp", "openai", "serve"}
    assert desk < dependencies["Requirement"](project.extras["all"][0]).extras


PROJECT = """
[project]
name = "example"
classifiers = ["Programming Language :: Python :: 3.10", "Programming Language :: Python :: 3.11"]
dependencies = ["alpha>=2"]
optional-dependencies = { files = ["beta>=1"], all = ["example[files]"] }
[dependency-groups]
dev = ["gamma>=1"]
"""


@pytest.mark.parametrize(
    ("newest", "oldest", "problem"),
    [
        ("alpha==3", "alpha==2\nbeta==1", ""),
        ("alpha==1.9", "alpha==2\nbeta==1", "constraints.txt has alpha==1.9"),
        ("", "alpha==1\nbeta==1", "constraints-oldest.txt has alpha==1"),
        ("", "alpha==2", "constraints-oldest.txt has no beta"),
        ("", "alpha==2\nbeta==1.5", "but the oldest version is 1"),
        ("", "alpha==2\nbeta==1\nbeta==1", "constraints-oldest.txt pins beta 2 times"),
        ("gamma==0.9", "alpha==2\nbeta==1", "but pyproject.toml has gamma>=1"),
        (
            'alpha==1.9; python_version < "3.11"\nalpha==3; python_version >= "3.11"',
            "alpha==2\nbeta==1",
            "Python 3.10: constraints.txt has alpha==1.9",
        ),
        ("", 'alpha==2\nbeta==1.5; python_version >= "3.11"', "Python 3.10: constraints-oldest"),
    ],
)
def test_contradicting_pins_are_found(
    dependencies: dict[str, Any], tmp_path: Path, newest: str, oldest: str, problem: str
) -> None:
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    (tmp_path / "constraints.txt").write_text(newest)
    (tmp_path / "constraints-oldest.txt").write_text(oldest)
    found = dependencies["problems"](dependencies["Project"](tmp_path))
    assert any(problem in line for line in found) if problem else not found


def test_excluded_python_of_oldest_version_is_found(
    dependencies: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "beta-1.dist-info").mkdir()
    metadata = "Metadata-Version: 2.1\nName: beta\nVersion: 1\nRequires-Python: >=3.11\n"
    (tmp_path / "beta-1.dist-info" / "METADATA").write_text(metadata)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    (tmp_path / "constraints.txt").write_text("")
    (tmp_path / "constraints-oldest.txt").write_text("alpha==2\nbeta==1")
    found = dependencies["problems"](dependencies["Project"](tmp_path))
    assert found == ["Python 3.10: beta>=1 needs Python >=3.11"]


def test_release_check_fails_without_a_python(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SystemExit, match=r'excuse it with WITHOUT="3.10 3.11 3.12 3.13 3.14"'):
        release_check.interpreters([])
    assert release_check.interpreters(release_check.PYTHONS) == {}
    with pytest.raises(SystemExit, match=r"WITHOUT must name versions of .*, got 3\.9"):
        release_check.interpreters(["3.9"])
