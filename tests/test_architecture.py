"""The structure of the source: layers, no import cycles, few public names, tests next to code."""

from __future__ import annotations

import re
from graphlib import TopologicalSorter

import pytest
from support import house

# Equal names in both frameworks' adapters. All other names are unique.
_IN_BOTH_FRAMEWORKS = re.compile(r"NodeGraph\w+")

# Dataclasses that collect, count or remember. All other public dataclasses are values.
_MUTABLE = {
    *("AnswerContext", "FolderScan", "GraphStruct", "ReadReport", "RecordFile"),
    *("RegisteredReader", "TakenIndex", "Snapshot", "Span", "ToolSession"),
}


def test_files_have_no_import_cycles() -> None:
    TopologicalSorter({path: house.imports(path) for path in house.files()}).prepare()


@pytest.mark.parametrize("package", house.PACKAGES)
def test_imports_point_to_lower_packages(package: str) -> None:
    lower = house.PACKAGES[: house.PACKAGES.index(package) + 1]
    exception = ("nodegraph/graph.py", "retrievers")  # NodeGraph.search
    for path in (house.REPO / package).rglob("*.py"):
        imported = {house.short(target).split("/")[0] for target in house.imports(path)}
        wrong = {(house.short(path), name) for name in imported - {*lower}} - {exception}
        assert not wrong
        external = {name.split(".")[0] for name in house.external_imports(path)}
        assert "nodekin" not in external, f"{path}: import relatively"
        assert package == "adapters" or not external & house.FRAMEWORKS, path


def test_import_check_detects_import_of_lower_package() -> None:
    imported = house.imports(house.REPO / "retrievers" / "retriever.py")
    assert {path.relative_to(house.REPO).parts[0] for path in imported} == {
        "nodegraph",
        "retrievers",
    }


def test_neighbours_import_from_modules() -> None:
    found = {
        (house.short(path), house.short(target))
        for path in house.files()
        for target in house.imports(path)
        if target.name == "__init__.py"
    }
    assert len(found) <= 2, f"import from the module, not from its package: {found}"


def test_file_names_are_rarely_repeated() -> None:
    repeated = house.repeated((path.name, path) for path in house.files())
    assert len(repeated) <= 6, f"rename files: names occur in several packages: {repeated}"


def test_class_names_are_unique() -> None:
    repeated = house.repeated((node.name, path) for path, node in house.classes())
    assert not {name for name in repeated if not _IN_BOTH_FRAMEWORKS.match(name)}


def test_values_can_not_be_changed() -> None:
    mutable = {name for name in house.mutable_dataclasses() if not name.startswith("_")}
    assert not mutable - _MUTABLE, "freeze them: other threads may use them"


def test_public_names_stay_within_budget() -> None:
    names = {name for names in house.public_names().values() for name in names}
    remedy = "make a name private, or delete one that no page needs"
    assert len(names) <= 150, f"{len(names)} public names, at most 150: {remedy}"
    methods = house.methods("NodeGraph")
    assert len(methods) <= 24, f"{len(methods)} methods of NodeGraph, at most 24: {remedy}"


def test_test_files_mirror_source_files() -> None:
    tests = house.REPO / "tests"
    without = [
        name
        for name in map(house.short, house.files())
        if not (tests / name).with_name(f"test_{name.rpartition('/')[2]}").exists()
    ]
    remedy = "rename test files to test_<source file>.py in the same folder of tests/"
    limit = 0.15 * len(house.files())
    assert len(without) <= limit, f"{len(without)} files without tests: {remedy}: {without}"


def test_files_named_in_architecture_page_exist() -> None:
    page = (house.REPO / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:nodegraph|retrievers|adapters)/[\w/]*(?:\.py)?)`", page)
    assert named
    assert [name for name in named if not (house.REPO / name).exists()] == []
