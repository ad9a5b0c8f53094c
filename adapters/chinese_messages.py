"""Translate the English messages of this package for Chinese user interfaces."""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path
from typing import NamedTuple


class _Pattern(NamedTuple):
    english: re.Pattern[str]
    chinese: str


def in_chinese(message: str, kind: str = "message") -> str:
    """Translate a message into Chinese. Messages without a translation are returned unchanged.

    Names, paths and errors from other packages are not translated.

    Args:
        message: The English message.
        kind: What the text is: ``"message"`` for messages and errors, ``"note"`` for a note about a
            file that was read, ``"kind"`` for the heading of a group of notes, ``"cell"`` for a
            heading or value in a table, ``"evaluation"`` for a note on an evaluation, or ``"gate"``
            for a sentence on the comparison with a baseline.

    Returns:
        The translated message.

    Example:
        >>> in_chinese('mcp is not installed; get it with: pip install "nodekin[mcp]"')
        '没有安装 mcp，请运行：pip install "nodekin[mcp]"'
        >>> in_chinese("3 files were skipped: 1 damaged (a.pdf); 2 empty (b.txt, c.txt)")
        '跳过了 3 个文件：损坏 1 个（a.pdf）；空文件 2 个（b.txt, c.txt）'
    """
    return _translated(message, kind)


def _translated(text: str, name: str) -> str:
    """Translate a message, or the part of a message that fills a placeholder."""
    if name == "clauses" and "; " in text:
        return "；".join([_translated(clause, name) for clause in text.split("; ")])
    for pattern in _patterns().get(name, ()):
        if found := pattern.english.fullmatch(text):
            parts = {key: _translated(value, key) for key, value in found.groupdict().items()}
            return pattern.chinese.format(**parts)
    return text


@functools.cache
def _patterns() -> dict[str, list[_Pattern]]:
    """Return the patterns of messages, and the patterns of values for each placeholder."""
    path = Path(__file__).with_name("chinese_messages.json")
    forms: dict[str, dict[str, str]] = json.loads(path.read_text(encoding="utf-8"))
    return {
        name: [_Pattern(_expression(english), chinese) for english, chinese in texts.items()]
        for name, texts in forms.items()
    }


def _expression(english: str) -> re.Pattern[str]:
    """Convert a message template to a regular expression. Each ``{name}`` matches any text."""
    pattern = re.sub(r"\\{(\w+)\\}", r"(?P<\1>.+?)", re.escape(english))
    return re.compile(pattern, re.DOTALL)
