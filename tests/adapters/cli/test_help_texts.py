import json
import re
from importlib.metadata import EntryPoint
from pathlib import Path

import click
import pytest
from rich.cells import cell_len

from nodekin.adapters.cli import help_texts
from nodekin.nodegraph.lazy_names import plugins

COMMANDS = "index search ask list show remove status".split()
COMMANDS += sorted(plugins("nodekin.commands"))


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_is_chinese_in_chinese_locale(nodekin, monkeypatch, command):
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    monkeypatch.setenv("COLUMNS", "80")
    lines = nodekin(*command.split(), "--help").out.splitlines()
    assert lines[0].startswith("用法：nodekin")
    assert "选项：" in lines
    for line in lines:
        assert cell_len(line) <= 80 or line.startswith("  nodekin"), line
        assert not re.search(r"\b(the|is|are|of|Print|Usage|Options)\b", line), line


def cells(text: str) -> set[str]:
    """Return the columns of all lines of a help text."""
    return set(re.split(r" {2,}|\n", text))


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_every_help_text_has_translation(nodekin, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "1000")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    english = cells(nodekin(*command.split(), "--help").out)
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    unchanged = english.intersection(cells(nodekin(*command.split(), "--help").out))
    # Names of options and commands, programs and ranges stay the same.
    assert not [text for text in unchanged if not re.match(r"-|\[|nodekin |\w*$", text)]


def test_every_translated_help_text_is_used(nodekin, monkeypatch):
    monkeypatch.setenv("COLUMNS", "1000")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    printed = [nodekin(*command.split(), "--help").out for command in ("", *COMMANDS)]
    words = " ".join(" ".join(printed).split())
    path = Path(help_texts.__file__).with_name("chinese_help.json")
    assert not [text for text in json.loads(path.read_text("utf-8")) if text not in words]


SHOUT = click.Command("shout", help="Print loudly.")


def test_help_of_other_packages_stays_english(nodekin, monkeypatch):
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    commands = {"shout": EntryPoint("shout", f"{__name__}:SHOUT", "nodekin.commands")}
    monkeypatch.setattr("nodekin.adapters.cli.app.plugins", lambda group: commands)
    assert "其他包的命令：shout。" in nodekin("--help").out
    assert "  Print loudly.\n" in nodekin("shout", "--help").out
