"""Splitters, readers, commands, tools and figures give the outputs in ``support/frozen``."""

import pytest
from support.frozen_outputs import changes, differences

NEEDED = {"files": "pypdfium2", "commands": "openai", "tools": "mcp"}


@pytest.mark.allow_hosts(["127.0.0.1"])
@pytest.mark.usefixtures("socket_enabled")
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # an open file
@pytest.mark.parametrize(
    "kind",
    [
        *("splitters", "files", "commands", "tools"),
        pytest.param("figures", marks=pytest.mark.data),
        pytest.param("abstain", marks=[pytest.mark.data, pytest.mark.slow]),
    ],
)
def test_outputs_are_unchanged(kind, request):
    if kind in NEEDED:
        pytest.importorskip(NEEDED[kind])
    try:
        changed = changes(kind, request.config.getoption("--data"))
    except FileNotFoundError as error:
        pytest.skip(f"no data: {error}")
    assert not changed, "\n".join(changed[:20])


def test_differences_name_paths_and_ignore_rounding():
    old = {"a": [1, {"b": 0.5}], "c": 1}
    assert differences(old, {"a": [1, {"b": 0.5001}], "c": 1}) == []
    assert differences(old, {"a": [1, {"b": 0.6}], "d": 2}) == [
        "/a/1/b: 0.5 -> 0.6",
        "/c: 1 -> 'missing'",
        "/d: 'missing' -> 2",
    ]
