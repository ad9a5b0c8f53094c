"""Print the help of commands in the language of the locale."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable
from pathlib import Path

import click
from rich.cells import cell_len

from ..chinese_messages import in_chinese
from .messages import language

_METAVARS = {
    "ARGS": "参数",
    "COLUMN": "列名",
    "COMMAND": "命令",
    "DIRECTORY": "文件夹",
    "DOCUMENT": "文档",
    "FIELD": "字段",
    "FILE": "文件",
    "FLOAT RANGE": "小数",
    "FOLDER": "文件夹",
    "INTEGER RANGE": "整数",
    "LINE": "行号",
    "MODEL": "模型",
    "NAME": "名称",
    "NUMBER": "数值",
    "OPTIONS": "选项",
    "PATH": "路径",
    "QUERY": "查询",
    "QUESTION": "问题",
    "RETRIEVER": "检索器",
    "TEXT": "文字",
    "VALUE": "值",
}
_METAVAR = re.compile("|".join(rf"\b{name}\b" for name in _METAVARS))


class HelpFormatter(click.HelpFormatter):
    """A help formatter that translates the help of commands if the locale is Chinese.

    Texts that have no translation, such as the help of commands from other packages, are printed in
    English.
    """

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        """Write the usage line of a command."""
        if language() != "zh":
            super().write_usage(prog, args, prefix)
            return
        self.write(f"{_chinese('Usage')}：{prog} {_with_chinese_metavars(args)}\n")

    def write_heading(self, heading: str) -> None:
        """Write a heading."""
        if language() != "zh":
            super().write_heading(heading)
            return
        self.write(f"{_chinese(heading)}：\n")

    def write_text(self, text: str) -> None:
        """Write the description of a command. Chinese lines are not wrapped again."""
        translated = _chinese(text)
        if language() != "zh" or translated == text:
            super().write_text(text)
            return
        for line in translated.splitlines():
            self.write(f"{'':{self.current_indent}}{line}".rstrip() + "\n")

    def write_dl(
        self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2
    ) -> None:
        """Write options and their descriptions in two columns."""
        if language() != "zh":
            super().write_dl(rows, col_max, col_spacing)
            return
        from rich.text import Text

        from .line_breaks import wrapped  # loads the splitters

        pairs = list(rows)
        names = [_with_chinese_metavars(name) for name, _ in pairs]
        width = min(max(map(cell_len, names)), col_max)
        indent = " " * self.current_indent
        for name, (_, text) in zip(names, pairs, strict=True):
            start = indent + " " * (width + col_spacing)
            if cell_len(name) > width:
                self.write(f"{indent}{name}\n{start}")
            else:
                self.write(f"{indent}{name}{' ' * (width - cell_len(name) + col_spacing)}")
            lines = wrapped(Text(_chinese_description(text)), self.width - cell_len(start))
            self.write(f"\n{start}".join(line.plain for line in lines) + "\n")


class HelpContext(click.Context):
    """A click context that prints help in the language of the locale."""

    formatter_class = HelpFormatter


@functools.cache
def _translations() -> dict[str, str]:
    """Return the Chinese help texts, by the English text or its first paragraph."""
    path = Path(__file__).with_name("chinese_help.json")
    texts: dict[str, str | list[str]] = json.loads(path.read_text(encoding="utf-8"))
    return {
        english: chinese if isinstance(chinese, str) else "\n".join(chinese)
        for english, chinese in texts.items()
    }


def _chinese(text: str) -> str:
    """Return the Chinese translation of a text, or the text itself if it has no translation."""
    first = " ".join(text.partition("\n\n")[0].split())
    return _translations().get(first) or in_chinese(text, "help")


def _chinese_description(text: str) -> str:
    """Return the Chinese description of an option, including its default value or range."""
    description, _, more = text.partition("  [")
    parts = [_chinese(description)]
    if more:
        more = more.replace("default: ", "默认：").replace("required", "必填")
        parts.append(f"[{more}")
    return "  ".join(part for part in parts if part)


def _with_chinese_metavars(text: str) -> str:
    """Translate the placeholders in the names of options and arguments to Chinese."""
    return _METAVAR.sub(lambda found: _METAVARS[found[0]], text)
