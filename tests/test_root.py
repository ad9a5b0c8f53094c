"""The root package: version, most common names and command."""

import importlib.metadata
import subprocess
import sys

import pytest

import nodekin
from nodekin.nodegraph import NodeGraph


def test_root_has_the_version_and_the_common_names() -> None:
    assert nodekin.__version__ == importlib.metadata.version("nodekin")
    assert nodekin.NodeGraph is NodeGraph
    for name in (*nodekin.__all__, "Document"):
        assert getattr(nodekin, name).__name__.split(".")[-1] == name
        assert name in dir(nodekin)


def test_unknown_name_raises() -> None:
    with pytest.raises(AttributeError, match=r"nodekin has no 'Graph'; see nodekin\.nodegraph"):
        nodekin.Graph  # noqa: B018


def run(*arguments: str) -> str:
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=True
    ).stdout


def test_import_loads_no_other_modules() -> None:
    code = (
        "import sys, nodekin; print([m for m in sys.modules if 'nodekin' in m and 'edit' not in m])"
    )
    assert run("-c", code) == "['nodekin']\n"


def test_module_runs_the_command() -> None:
    code = "from nodekin.adapters.cli import main; main()"
    said = run("-m", "nodekin", "--help")
    assert said.startswith("Usage: nodekin [OPTIONS] ")
    assert said == run("-c", code, "--help")
