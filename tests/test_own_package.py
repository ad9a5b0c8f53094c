"""An installed package registers a store, a reader and a command by entry points."""

import json
import os
import subprocess
import sys
from pathlib import Path

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


PROGRAM = """
import json, logging, os
from click.testing import CliRunner
from nodekin.adapters.cli.app import app
from nodekin.nodegraph import NodeGraph, ReadError, register_reader
from nodekin.retrievers import Retriever

logging.basicConfig()
graph = NodeGraph("docs", progress=False)
nodes = graph.nodes("ROOT")
processes = {node.metadata["process"] for node in nodes if "process" in node.metadata}
stored = NodeGraph("docs/tea.rows", store="own://tea", progress=False)
found = Retriever(stored, "ROOT", top_k=1)("black")[0].node.text
register_reader(".rows", lambda path: "the program's own")
own = NodeGraph("docs/tea.rows", progress=False).nodes("ROOT")
try:
    NodeGraph("docs/a.broken", progress=False)
except ReadError as unknown:
    error = str(unknown)
help = CliRunner().invoke(app, ["--help"]).stdout
ran = CliRunner().invoke(app, ["shout", "tea", "--times", "2"]).stdout
wrong = CliRunner().invoke(app, ["shout"]).exit_code
print(json.dumps({
    "texts": {node.id: node.text for node in nodes}, "in_program": os.getpid() in processes,
    "found": found, "own": own[0].text, "error": error, "help": help, "ran": ran, "wrong": wrong,
}))
"""


def test_installed_package_adds_reader_store_and_command(tmp_path: Path) -> None:
    docs, info = tmp_path / "docs", tmp_path / "site" / "own_package-1.0.dist-info"
    docs.mkdir()
    (docs / "tea.rows").write_text("green\nblack\n")
    (docs / "a.txt").write_text("plain")
    (docs / "a.broken").write_text("broken")
    info.mkdir(parents=True)
    (info.parent / "own_package.py").write_text(PACKAGE, encoding="utf-8")
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: own-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS, encoding="utf-8")
    path = os.pathsep.join([str(info.parent), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "PYTHONPATH": path, "NODEKIN_SHOUT_MARK": "!"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    made = json.loads(done.stdout)
    assert made["texts"] == {
        "docs/a.txt": "plain",
        "docs/tea.rows#1": "green",
        "docs/tea.rows#2": "black",
    }
    assert not made["in_program"]  # files are read in other processes
    assert made["own"] == "the program's own"
    assert "no reader for '.broken' files" in made["error"]
    assert "can't load the reader 'broken' (own_package:no_such_reader)" in done.stderr
    assert made["found"] == "black"
    assert (tmp_path / "tea.db").exists()
    assert "Commands of other packages: shout." in made["help"]
    assert (made["ran"], made["wrong"]) == ("TEA!TEA!\n", 2)
