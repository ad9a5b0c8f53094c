"""An installed package registers a store, a reader and a command by entry points."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ENTRY_POINTS = """
[nodekin.stores]
own = own_package:open_store

[nodekin.readers]
rows = own_package:read_rows
broken = own_package:no_such_reader

[nodekin.commands]
shout = own_package:shout
"""

PACKAGE = '''
"""A store, a reader and a command of one's own."""

import os

import click
from nodekin.nodegraph import Document
from nodekin.nodegraph.storage.graph_store import as_store


def open_store(address):
    return as_store(address.partition("://")[2] + ".db")


@click.command()
@click.argument("word")
@click.option("--times", default=1)
@click.option("--mark", default="")
def shout(word, times, mark):
    """Say a word."""
    click.echo((word.upper() + mark) * times)


def read_rows(path):
    for number, row in enumerate(path.read_text("utf-8").splitlines(), start=1):
        yield Document(row, {"process": os.getpid()}, id=str(number))
'''


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Return a folder with the installed package, next to a folder of documents."""
    docs, info = tmp_path / "docs", tmp_path / "site" / "own_package-1.0.dist-info"
    docs.mkdir()
    (docs / "tea.rows").write_text("green\nblack\n")
    (docs / "a.txt").write_text("plain")
    (docs / "a.broken").write_text("broken")
    info.mkdir(parents=True)
    (info.parent / "own_package.py").write_text(PACKAGE, encoding="utf-8")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: own-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS, encoding="utf-8")
    return info.parent


def run(site: Path, program: str) -> tuple[list[object], str]:
    """Run a program with the package installed. Return its parsed JSON output and stderr."""
    path = os.pathsep.join([str(site), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": path},
        cwd=site.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


READ = """
import json, logging, os
from nodekin.nodegraph import NodeGraph, ReadError, register_reader

logging.basicConfig()
graph = NodeGraph("docs", progress=False)
nodes = graph.nodes("ROOT")
processes = {node.metadata["process"] for node in nodes if "process" in node.metadata}
register_reader(".rows", lambda path: "the program's own")
own = NodeGraph("docs/tea.rows", progress=False).nodes("ROOT")
try:
    NodeGraph("docs/a.broken", progress=False)
    error = ""
except ReadError as unknown:
    error = str(unknown)
texts = {node.id: node.text for node in nodes}
print(json.dumps([texts, os.getpid() in processes, own[0].text, error]))
"""


def test_reader_of_another_package_reads_files(site: Path) -> None:
    (texts, in_program, own, error), log = run(site, READ)
    assert texts == {"docs/a.txt": "plain", "docs/tea.rows#1": "green", "docs/tea.rows#2": "black"}
    assert in_program is False
    assert own == "the program's own"
    assert "no reader for '.broken' files" in error
    assert "can't load the reader 'broken' (own_package:no_such_reader)" in log


SEARCH = """
import json
from nodekin.nodegraph import NodeGraph
from nodekin.retrievers import Retriever

graph = NodeGraph("docs/tea.rows", store="own://tea", progress=False)
results = Retriever(graph, "ROOT", top_k=1)("black")
print(json.dumps([result.node.text for result in results]))
"""


def test_address_of_another_package_opens_its_store(site: Path, tmp_path: Path) -> None:
    texts, _ = run(site, SEARCH)
    assert texts == ["black"]
    assert (tmp_path / "tea.db").exists()


COMMAND = """
import json
from click.testing import CliRunner
from nodekin.adapters.cli.app import app

help = CliRunner().invoke(app, ["--help"]).stdout
ran = CliRunner().invoke(app, ["shout", "tea", "--times", "2"])
wrong = CliRunner().invoke(app, ["shout"])
print(json.dumps([help, ran.stdout, wrong.exit_code]))
"""


def test_command_of_another_package_reads_environment_options(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NODEKIN_SHOUT_MARK", "!")
    (help, out, wrong), _ = run(site, COMMAND)
    (line,) = (line for line in help.splitlines() if line.startswith("  shout"))
    assert line.split(maxsplit=1)[1] == "Say a word."
    assert out == "TEA!TEA!\n"
    assert wrong == 2
