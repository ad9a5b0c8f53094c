"""The structure of the source: no import cycles, few public names, tests next to code."""

from __future__ import annotations

import re

from support import house

# The same class in each of the two frameworks has the same name; everything else has its own.
_IN_BOTH_FRAMEWORKS = re.compile(r"NodeGraph\w+")

# What collects, counts or remembers; all other dataclasses with a public name are values.
_CHANGEABLE = {
    *("AnswerContext", "FolderScan", "GraphStruct", "LinkGraph", "OutputBuilder", "ReadReport"),
    *("RegisteredReader", "Span", "ToolSession"),
}


def test_files_have_no_import_cycles() -> None:
    assert house.rings() == []


def test_neighbours_import_from_modules() -> None:
    found = house.through_a_face()
    assert len(found) <= 2, f"import from the module, not from its package: {found}"


def test_file_names_are_rarely_repeated() -> None:
    twice = house.twice(house.file_names())
    assert len(twice) <= 6, f"rename files: names occur in several packages: {twice}"


def test_class_names_are_unique() -> None:
    twice = house.twice(house.class_names())
    assert not {name: where for name, where in twice.items() if not _IN_BOTH_FRAMEWORKS.match(name)}


def test_values_can_not_be_changed() -> None:
    changeable = house.changeable_dataclasses()
    others = {name for name in changeable - _CHANGEABLE if not name.startswith("_")}
    assert not others, f"freeze {others}: other threads may have them"


def test_public_names_stay_within_budget() -> None:
    names = {name for names in house.public_names().values() for name in names}
    remedy = "make a name private, or delete one that no page needs"
    assert len(names) <= 150, f"{len(names)} public names, at most 150: {remedy}"
    methods = house.methods("NodeGraph")
    assert len(methods) <= 24, f"{len(methods)} methods of NodeGraph, at most 24: {remedy}"


def test_test_files_mirror_source_files() -> None:
    without, limit = house.without_tests(), 0.15 * len(house.files(faces=False))
    remedy = "rename test files to test_<source file>.py in the same folder of tests/"
    assert len(without) <= limit, f"{len(without)} files without tests: {remedy}: {without}"


def test_files_named_in_architecture_page_exist() -> None:
    page = (house.REPO / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:nodegraph|retrievers|adapters)/[\w/]*(?:\.py)?)`", page)
    assert named
    assert [name for name in named if not (house.REPO / name).exists()] == []
