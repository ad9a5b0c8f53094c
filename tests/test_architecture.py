"""The structure of the source: layers, no import cycles, few public names, tests next to code."""

from __future__ import annotations

import ast
import inspect
import pydoc
import re
import sys
from graphlib import TopologicalSorter
from pathlib import Path
from types import FrameType

import pytest
from support import source_tree

from nodekin import nodegraph, retrievers
from nodekin.nodegraph import NodeGraph
from nodekin.retrievers import DefaultRetriever, QaRetriever, Reranker, RerankRetriever, Retriever

# Equal names in both frameworks' adapters. All other names are unique.
_IN_BOTH_FRAMEWORKS = re.compile(r"NodeGraph\w+")

# Dataclasses that collect, count or remember. All other public dataclasses are values.
_MUTABLE = {
    *("AnswerContext", "FolderScan", "GraphStruct", "ReadReport"),
    *("RegisteredReader", "Span", "WorkerProcess"),
}


def test_files_have_no_import_cycles() -> None:
    TopologicalSorter({path: source_tree.imports(path) for path in source_tree.files()}).prepare()


@pytest.mark.parametrize("package", source_tree.PACKAGES)
def test_imports_point_to_lower_packages(package: str) -> None:
    lower = source_tree.PACKAGES[: source_tree.PACKAGES.index(package) + 1]
    exception = ("nodegraph/graph.py", "retrievers")  # NodeGraph.search
    for path in (source_tree.REPO / package).rglob("*.py"):
        imported = {source_tree.short(target).split("/")[0] for target in source_tree.imports(path)}
        wrong = {(source_tree.short(path), name) for name in imported - {*lower}} - {exception}
        assert not wrong
        external = {name.split(".")[0] for name in source_tree.external_imports(path)}
        assert "nodekin" not in external, f"{path}: import relatively"
        assert package == "adapters" or not external & source_tree.FRAMEWORKS, path


def test_import_check_detects_import_of_lower_package() -> None:
    imported = source_tree.imports(source_tree.REPO / "retrievers" / "retriever.py")
    assert {path.relative_to(source_tree.REPO).parts[0] for path in imported} == {
        "nodegraph",
        "retrievers",
    }


def test_packages_import_from_modules() -> None:
    found = {
        (source_tree.short(path), source_tree.short(target))
        for path in source_tree.files()
        for target in source_tree.imports(path)
        if target.name == "__init__.py"
    }
    assert len(found) <= 2, f"import from the module, not from its package: {found}"


def test_file_names_are_rarely_repeated() -> None:
    repeated = source_tree.repeated((path.name, path) for path in source_tree.files())
    assert len(repeated) <= 6, f"rename files: names occur in several packages: {repeated}"


def test_class_names_are_unique() -> None:
    repeated = source_tree.repeated((node.name, path) for path, node in source_tree.classes())
    assert not {name for name in repeated if not _IN_BOTH_FRAMEWORKS.match(name)}


def test_values_can_not_be_changed() -> None:
    mutable = {name for name in source_tree.mutable_dataclasses() if not name.startswith("_")}
    assert not mutable - _MUTABLE, "freeze them: other threads may use them"


def test_public_names_stay_within_budget() -> None:
    names = {name for names in source_tree.public_names().values() for name in names}
    remedy = "make a name private, or delete one that no page needs"
    assert len(names) <= 155, f"{len(names)} public names, at most 155: {remedy}"
    methods = source_tree.methods("NodeGraph")
    assert len(methods) <= 24, f"{len(methods)} methods of NodeGraph, at most 24: {remedy}"


def public_constructors() -> dict[type, inspect.Signature]:
    named = [getattr(package, name) for package in (nodegraph, retrievers) for name in dir(package)]
    classes = [item for item in named if inspect.isclass(item) and "__init__" in vars(item)]
    return {item: inspect.signature(item.__init__) for item in classes}


def test_public_classes_name_their_options() -> None:
    unnamed = {
        cls
        for cls, signature in public_constructors().items()
        for parameter in signature.parameters.values()
        if parameter.kind is parameter.VAR_KEYWORD and not getattr(cls, "_is_protocol", False)
    }
    assert unnamed == {Reranker, RerankRetriever}, "settings of a registered reranker"


def test_help_of_default_retriever_shows_typed_options() -> None:
    shown = pydoc.render_doc(DefaultRetriever, renderer=pydoc.plaintext)
    assert "weights: 'Mapping[str, float] | None' = None" in shown
    parameters = inspect.signature(DefaultRetriever).parameters.values()
    assert not [item.name for item in parameters if item.annotation is item.empty]


def test_output_format_is_option_of_four_classes() -> None:
    formats = {
        cls
        for cls, signature in public_constructors().items()
        if "output_format" in signature.parameters
    }
    assert formats == {QaRetriever, Reranker, RerankRetriever, Retriever}


def test_public_docstrings_name_importable_classes() -> None:
    private = {node.name for _, node in source_tree.classes()} - source_tree.importable_classes()
    named = {
        name
        for docstring in source_tree.public_docstrings()
        for name in re.findall(r"``(\w+)(?:\([^`]*)?``", docstring)
    }
    assert not named & private


def test_test_files_mirror_source_files() -> None:
    tests = source_tree.REPO / "tests"
    without = [
        name
        for name in map(source_tree.short, source_tree.files())
        if not (tests / name).with_name(f"test_{name.rpartition('/')[2]}").exists()
    ]
    remedy = "rename test files to test_<source file>.py in the same folder of tests/"
    limit = 0.15 * len(source_tree.files())
    assert len(without) <= limit, f"{len(without)} files without tests: {remedy}: {without}"


def test_files_named_in_architecture_page_exist() -> None:
    page = (source_tree.REPO / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:nodegraph|retrievers|adapters)/[\w/]*(?:\.py)?)`", page)
    assert named
    assert [name for name in named if not (source_tree.REPO / name).exists()] == []


def test_one_file_updates_indexes() -> None:
    with_sync = [
        source_tree.short(path)
        for path in source_tree.files()
        if ".sync()" in path.read_text(encoding="utf-8")
    ]
    assert with_sync == ["retrievers/indexes/current.py"]


def test_architecture_page_lists_path_of_one_question() -> None:
    page = (source_tree.REPO / "docs" / "architecture.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\d\. `([\w/]+\.py)`", page, re.MULTILINE)
    assert len(listed) == 8
    graph = NodeGraph(progress=False)
    graph.add(["Green tea is not fermented.", "Black tea is fermented.", "Rivers run."])
    graph.search("black tea")  # builds the groups and indexes
    called: dict[str, None] = {}

    def profile(frame: FrameType, event: str, arg: object) -> None:
        if event == "call":
            called.setdefault(frame.f_code.co_filename)

    sys.setprofile(profile)
    try:
        graph.search("green tea")
    finally:
        sys.setprofile(None)
    path = [name for file in called for name in listed if Path(file).as_posix().endswith(name)]
    assert path == listed


def test_code_has_no_name_mangled_attributes() -> None:
    mangled = [
        f"{source_tree.short(path)}:{node.lineno} {node.attr}"
        for path in source_tree.files()
        for node in ast.walk(source_tree.tree(path))
        if isinstance(node, ast.Attribute) and re.fullmatch(r"__\w*[^_]", node.attr)
    ]
    assert mangled == []
