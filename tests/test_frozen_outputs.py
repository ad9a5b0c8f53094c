"""Splitters, readers, commands, tools and figures give the outputs in ``support/frozen``."""

import json

import pytest
from support.frozen_outputs import KINDS, differences, frozen

NEEDED = {"files": "pypdfium2", "commands": "openai", "tools": "mcp"}


def check(kind, request):
    if kind in NEEDED:
        pytest.importorskip(NEEDED[kind])
    try:
        outputs = KINDS[kind](request.config.getoption("--data"))
    except FileNotFoundError as error:
        pytest.skip(f"no data: {error}")
    changed = [*differences(frozen(kind), json.loads(json.dumps(outputs)), kind)]
    assert not changed, "\n".join(changed[:20])


@pytest.mark.parametrize("kind", ["splitters", "files"])
def test_texts_and_nodes_are_unchanged(kind, request):
    check(kind, request)


@pytest.mark.allow_hosts(["127.0.0.1"])
@pytest.mark.usefixtures("socket_enabled")
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("kind", ["commands", "tools"])
def test_json_of_commands_and_tools_is_unchanged(kind, request):
    check(kind, request)


@pytest.mark.data
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # an open file
@pytest.mark.parametrize("kind", ["figures", pytest.param("abstain", marks=pytest.mark.slow)])
def test_figures_are_unchanged(kind, request):
    check(kind, request)


def test_differences_name_paths_and_ignore_rounding():
    old = {"a": [1, {"b": 0.5}], "c": 1}
    assert [*differences(old, {"a": [1, {"b": 0.5001}], "c": 1})] == []
    assert [*differences(old, {"a": [1, {"b": 0.6}], "d": 2})] == [
        "/a/1/b: 0.5 -> 0.6",
        "/c: gone: 1",
        "/d: new: 2",
    ]
