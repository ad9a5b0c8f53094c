"""Messages in two languages, without control characters."""

import pytest

from nodekin.adapters.cli.messages import message, printable


def test_printable_replaces_control_characters():
    assert printable("a\x1b[2J\x9b茶\n\tb\x7f") == "a\ufffd[2J\ufffd茶\n\tb\ufffd"
    assert printable("abc\u202egpj.exe") == "abc\ufffdgpj.exe"


@pytest.mark.parametrize(
    ("variables", "chinese"),
    [
        ({"LANG": "zh_CN.UTF-8"}, True),
        ({"LC_ALL": "zh_TW", "LANG": "en_US"}, True),
        ({"LC_ALL": "C", "LANG": "zh_CN"}, False),
        ({}, False),
    ],
)
def test_locale_decides_language(monkeypatch, variables, chinese):
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert ("未引用" in message("more sources", count=5)) is chinese


def test_chinese_locale_has_chinese_lines(nodekin, monkeypatch):
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    assert nodekin("index", "docs").out.startswith(".nodekin 有 3 篇文档：3 新增\n")
    assert "在 3 篇文档中没有找到 'zebra'" in nodekin("search", "zebra").err
    assert "需要语言模型" in nodekin("ask", "tea").err
