"""Messages in two languages, without control characters."""

from pathlib import Path

import pytest

from nodekin.adapters.cli.messages import group_sizes, message, printable, with_short_paths


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
    assert nodekin("index", "docs").out.startswith(
        ".nodekin 有 3 篇文档：新增 3 篇\n3 个段落，11 个句子\n"
    )
    assert nodekin("status").out.splitlines()[2] == "文档        3"
    assert "在 3 篇文档中没有找到 'zebra'" in nodekin("search", "zebra").err
    assert "需要语言模型" in nodekin("ask", "tea").err


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("{here}/docs/tea.md is damaged", "docs/tea.md is damaged"),
        ("can't read '{here}/tea.md'", "can't read 'tea.md'"),
        ("{home}/notes/tea.md", "~/notes/tea.md"),
        ("no index in {here}", "no index in {here}"),
        ("/mnt{here}/tea.md", "/mnt{here}/tea.md"),
        ("{here}more/tea.md", "{here}more/tea.md"),
    ],
)
def test_with_short_paths(monkeypatch, tmp_path, text, short):
    here = tmp_path / "here"
    here.mkdir()
    home = tmp_path / "home"
    monkeypatch.setattr(Path, "home", lambda: home)
    monkeypatch.chdir(here)
    values = {"here": here, "home": home}
    assert with_short_paths(text.format(**values)) == short.format(**values)


def test_group_sizes_have_plurals(monkeypatch):
    monkeypatch.setenv("LC_ALL", "C")
    sizes = {"passage": 1, "sentence": 1200, "line": 3}
    assert group_sizes(sizes) == "1 passage, 1,200 sentences, 3 line"


@pytest.mark.parametrize("count", [0, 1, 2])
def test_message_of_a_number_has_plural(monkeypatch, count):
    monkeypatch.setenv("LC_ALL", "C")
    noun = "file" if count == 1 else "files"
    assert message("unread", count=count) == f"{count} {noun} left out"
