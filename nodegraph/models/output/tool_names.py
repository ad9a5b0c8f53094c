"""Recognize the names of tools in the lines and values of an answer."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from .answer_text import normalize
from .chinese_script import chinese_pattern

_OPEN = r"[\[【（(<{@#*_`\"'“「『]{0,4}"

_SHUT = r"[\]】）)>}*_`\"'”」』]{0,4}"

_SEPARATOR = (
    r"\s?(?:[:：|｜,，;；/=\t]|[-–—=>]?>|→|⇒|➡|\s[-–—]\s|——|(?<=[\u4e00-\u9fff])[-–—](?=[\u4e00-\u9fff])|(?=[(（\[][^()（）\[\]]{1,400}[)）\]]\s?\Z)"
    r"|(?=\s[\"“「])|(?<=\sfor)\s|(?<=\sanswer)\s|(?<=\sfind)\s)\s?"
)

# Words before a tool's name: "Use the plays tool to answer: ", "向 plays 提问："
_BEFORE_NAME = (
    r"(?:(?:i\s(?:will|would|can)\s)?(?:(?:use|using|ask|query|search|call|for|from|with|via|in|to|the|tool|action"
    r"|(?:tool|function)[_ ]call|(?:sub-?)?questions?"
    r"(?:\s?\d{1,2})?|子?问题\s?\d{0,2}|functions?[.:]?|用|使用|询问|问|在|向|对于|对|针对|调用|工具"
    r"|first|then|next|finally|首先|先|其次|然后|接着|再|最后|我会|我将)"
    r"\s?[:：]?\s?){1,4}(?:[(（\[]\s?)?)?"
)

_AFTER_NAME = (
    r"(?:[\s_](?:tool|engine|retriever|source|index)|\s?工具)?"
    r"(?:\sto\s(?:answer|find|ask|search)|\sfor|\s?(?:提问|查询|回答|检索|搜索)"
    r"|\.(?:search|query|run|invoke|ask|retrieve|call)(?=\())?"
)


# A sign between the words of a name, as ``re.escape`` writes it.
_NAME_SIGN = re.compile(r"\\?[-_ ]")

# A remark in parentheses after the name of a tool.
_REMARK = re.compile(r"[\s_]?[(（][^()（）]{1,60}[)）]?\Z")

_SIGNS = r"[-_ \\\\]{1,2}"


def _key(name: str) -> str:
    """Return the form of a name in which spaces, hyphens and underscores are equal."""
    return re.sub(r"[\s-]", "_", normalize(name))


def pattern_of(names: Sequence[str]) -> str:
    """Return a pattern for any of the names, in which spaces, hyphens and underscores are equal."""
    longest_first = sorted(names, key=len, reverse=True)
    return "|".join(_NAME_SIGN.sub(_SIGNS, re.escape(name)) for name in longest_first)


class ToolNames(NamedTuple):
    """The names of tools, with patterns for lines that begin or end with one of the names."""

    by_key: Mapping[str, str]
    start: re.Pattern[str]
    end: re.Pattern[str]
    within: re.Pattern[str]

    @classmethod
    def of(cls, tools: Sequence[str]) -> ToolNames:
        """Create the patterns for the names of the given tools."""
        by_key = {_key(tool): tool for tool in tools}
        names = pattern_of(tools)
        start = rf"{_BEFORE_NAME}(?P<at>[@#/])?{_OPEN}(?P<tool>{names}){_SHUT}{_AFTER_NAME}"
        end = (
            r"(?:(?<=[?？\"'”])\s?|\s?(?:[-–—=]?>|→|⇒|➡|[-–—|｜:：,，;；]|[\[【（(@])\s?)"
            r"[-–—|｜@:：,，\[【（(]?\s?"
            r"(?:(?:tool|using|via|with|use|from|the|工具|使用|用)\s?){0,3}[:：=]?\s?"
        )
        return cls(
            by_key,
            chinese_pattern(
                rf"{start}(?:{_SEPARATOR}|(?(at)\s|(?!))|(?<=[\]】）)>}}*`\"'”」』])\s?"
                r"|\s?[:：]?[*_]{0,2}\s?\Z)",
                re.I,
            ),
            chinese_pattern(
                rf"(?P<question>.*?\S){end}{_OPEN}(?P<tool>{names}){_SHUT}"
                rf"(?:\s?(?:tool|工具))?{_SHUT}[.。]?",
                re.I,
            ),
            chinese_pattern(
                rf"(?<=[;；.。?？])\s{{0,4}}[,，、|｜/]?\s{{0,4}}(?={_OPEN}(?:{names}){_SHUT}\s?[:：])",
                re.I,
            ),
        )

    def known(self, name: object) -> str | None:
        """Return the name of the tool that a value refers to, or None if no such tool exists."""
        if not isinstance(name, str):
            return None
        key = _key(name.strip("[]【】()（）<>{}@#*`\"'“”「」『』 ").replace("\\_", "_"))
        key = key.removeprefix("functions.").removesuffix("_tool")
        return self.by_key.get(key) or self.by_key.get(_REMARK.sub("", key))
