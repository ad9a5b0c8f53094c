"""The house keeps its own rules: rooms, package list, public names, light imports."""

from __future__ import annotations

import ast
import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

REPO = Path(__file__).parents[1]
ROOMS = ("nodegraph", "retrievers", "adapters")
FRAMEWORKS = {
    *("langchain", "langchain_core", "langchain_text_splitters", "langchain_community"),
    *("llama_index", "openai", "sentence_transformers", "torch", "transformers"),
    *("chromadb", "pymilvus", "pandas", "jieba", "pydantic"),
}


def _imports(path: Path) -> set[tuple[int, str]]:
    """Return the level and the dotted name of everything a file imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {(0, alias.name) for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            if node.module:
                found.add((node.level, node.module))
            else:
                found |= {(node.level, alias.name) for alias in node.names}
    return found


def _rooms_used(path: Path) -> set[str]:
    """Return the rooms that a file imports from, besides its own."""
    depth = len(path.relative_to(REPO).parts)
    used = set()
    for level, module in _imports(path):
        first = module.split(".")[0]
        if level == depth and first in ROOMS:
            used.add(first)
        if level == 0 and first == "nodekin":
            pytest.fail(f"{path} imports {module} by its full name; inside, import relatively")
    return used


@pytest.mark.slow
@pytest.mark.parametrize("room", ROOMS)
def test_imports_point_one_way(room: str) -> None:
    allowed = set(ROOMS[: ROOMS.index(room)])
    for path in (REPO / room).rglob("*.py"):
        exception = {"retrievers"} if path == REPO / "nodegraph" / "graph.py" else set()
        assert _rooms_used(path) - exception <= allowed, path


def test_import_check_detects_import_of_higher_package() -> None:
    assert _rooms_used(REPO / "retrievers" / "retriever.py") == {"nodegraph"}


def test_only_adapters_import_frameworks() -> None:
    for room in ("nodegraph", "retrievers"):
        for path in (REPO / room).rglob("*.py"):
            named = {module.split(".")[0] for level, module in _imports(path) if level == 0}
            assert not named & FRAMEWORKS, path


def test_package_list_matches_folders_on_disk() -> None:
    config = tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))
    listed = config["tool"]["setuptools"]["packages"]
    on_disk = {
        "nodekin." + ".".join(path.parent.relative_to(REPO).parts)
        for room in ROOMS
        for path in (REPO / room).rglob("__init__.py")
    }
    assert sorted(listed) == sorted(on_disk | {"nodekin"})


def test_data_files_are_in_package_data() -> None:
    config = tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))
    listed = config["tool"]["setuptools"]["package-data"]
    on_disk: dict[str, list[str]] = {}
    for room in ROOMS:
        for path in (REPO / room).rglob("*.*"):
            if "__pycache__" in path.parts:
                continue
            if path.suffix not in (".py", ".pyi") and path.name != "py.typed":
                package = ".".join(("nodekin", *path.parent.relative_to(REPO).parts))
                on_disk.setdefault(package, []).append(path.name)
    assert {name: sorted(files) for name, files in on_disk.items()} == {
        name: sorted(files) for name, files in listed.items() if name != "*"
    }


def test_no_folder_shadows_the_namespace() -> None:
    assert not (REPO / "nodekin").exists()
    assert not (REPO / "__init__.py").exists()


@pytest.mark.parametrize("room", ROOMS)
def test_type_checkers_find_each_package(room: str) -> None:
    link = REPO / ".typing" / "nodekin" / room
    assert link.is_symlink()
    assert link.resolve() == (REPO / room).resolve()
    assert (REPO / room / "py.typed").exists()


def _faces() -> list[str]:
    """Return the packages that hand out names, from their stubs."""
    stubs = [path for room in ROOMS for path in (REPO / room).rglob("__init__.pyi")]
    return sorted(".".join(("nodekin", *path.parent.relative_to(REPO).parts)) for path in stubs)


@pytest.mark.parametrize("module", _faces())
def test_public_names_can_be_imported(module: str) -> None:
    imported = importlib.import_module(module)
    assert imported.__all__
    for name in imported.__all__:
        assert hasattr(imported, name)


def test_no_two_public_names_differ_in_case_only() -> None:
    for module in _faces():
        names = importlib.import_module(module).__all__
        assert len({name.casefold() for name in names}) == len(names)


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
    *("nodekin.retrievers.answers", "nodekin.retrievers.evaluation", "nodekin.retrievers.indexes"),
    *("nodekin.retrievers.strategies", "nodekin.retrievers.tuning"),
}


@pytest.mark.parametrize(
    ("statement", "most", "early"),
    [
        ("from nodekin.nodegraph import NodeGraph", 55, set()),
        ("from nodekin import NodeGraph, Retriever", 85, {"numpy"}),
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
