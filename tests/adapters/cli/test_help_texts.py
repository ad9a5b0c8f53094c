import re
from importlib.metadata import EntryPoint

import click
import pytest
from rich.cells import cell_len

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


SHOUT = click.Command("shout", help="Print loudly.")


def test_help_of_other_packages_stays_english(nodekin, monkeypatch):
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    commands = {"shout": EntryPoint("shout", f"{__name__}:SHOUT", "nodekin.commands")}
    monkeypatch.setattr("nodekin.adapters.cli.app.plugins", lambda group: commands)
    assert "其他包的命令：shout。" in nodekin("--help").out
    assert "  Print loudly.\n" in nodekin("shout", "--help").out
