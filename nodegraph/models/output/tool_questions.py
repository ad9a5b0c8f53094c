"""Read sub-questions that name the tool which can answer them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from .cleaning import check_answer, clean, is_no_answer
from .json_values import parse_json, value_of
from .lines import QUESTION_KEYS, normalize, split_bullet, strip_markup

ToolQuestions = list[tuple[str, str]]
"""Pairs of a tool's name and a question for it."""

_QUESTIONS = ("sub_question", "subquestion", "子问题", *QUESTION_KEYS)

_TOOLS = ("tool_name", "tool", "toolname", "name", "source", "工具名", "工具名称", "工具")

_MAX_TOOL_LENGTH = 60

_SEPARATOR = re.compile("[:：|]")


def parse_tool_questions(answer: str, tools: Sequence[str]) -> tuple[ToolQuestions, ToolQuestions]:
    """Return the (tool, question) pairs in an answer, and those with an unknown tool.

    JSON of any shape that names both, also between other text; or lines, each with a tool before
    or after its question.

    Raises:
        ValueError: If there are no pairs at all.

    Example:
        >>> parse_tool_questions("1. Rivers: How long is the Nile?", ["rivers", "tea"])
        ([('rivers', 'How long is the Nile?')], [])
    """
    text = clean(answer)
    check_answer(text)
    if is_no_answer(text):
        return [], []
    names = {normalize(tool): tool for tool in tools}
    pairs: dict[tuple[str, str], None] = {}
    unknown: dict[tuple[str, str], None] = {}
    for tool, text_of_question in _pairs(text, names):
        question = strip_markup(text_of_question)
        if re.search(r"\w", question):
            name = names.get(normalize(tool.strip(" \t\"'`*_[]【】()（）")))
            (unknown if name is None else pairs)[name or tool.strip(), question] = None
    if not pairs and not unknown:
        raise ValueError("there is no question for a tool in the answer")
    return list(pairs), list(unknown)


def _pairs(text: str, names: Mapping[str, str]) -> ToolQuestions:
    if "{" in text or "[" in text:
        with suppress(ValueError):
            if pairs := list(_in_json(parse_json(text), names)):
                return pairs
    return [pair for line in text.splitlines() if (pair := _in_line(line, names))]


def _in_json(value: Any, names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    if isinstance(value, list):
        for item in value:
            yield from _in_json(item, names)
    if not isinstance(value, Mapping):
        return
    question, tool = value_of(value, _QUESTIONS), value_of(value, _TOOLS)
    if isinstance(question, str) and isinstance(tool, str):
        yield tool, question
        return
    for key, item in value.items():
        if normalize(str(key)) in names:  # {"rivers": ["How long is the Nile?"]}
            questions = item if isinstance(item, list) else [item]
            yield from ((str(key), question) for question in questions if isinstance(question, str))
        elif isinstance(item, list | Mapping):
            yield from _in_json(item, names)


def _in_line(line: str, names: Mapping[str, str]) -> tuple[str, str] | None:
    text = split_bullet(line.strip().strip("|"))[0].strip()
    for name in sorted(names.values(), key=len, reverse=True):
        tool = re.escape(name)
        before = re.match(
            rf"(?:[\W_]*{tool}[*_`\"'\])】）]*\s*(?:[:：|,，>→]|-+>?|—)"
            rf"|[\[【(（]\s*{tool}\s*[\])】）])\s*(?=\S)",
            *(text, re.IGNORECASE),
        )
        if before:
            return name, text[before.end() :]
        after = rf"[|>→\[【(（]\s*[`*\"']*{tool}[`*\"'\])】）]*\s*$"
        if match := re.search(after, text, re.IGNORECASE):
            return name, text[: match.start()].rstrip().rstrip("-").rstrip()
    label, separator, question = _split_label(text)
    if separator and text.rstrip("\"'*_` ").endswith(("?", "？")):
        return label, question
    return None


def _split_label(text: str) -> tuple[str, str, str]:
    """Return what stands before the first colon or bar, that, and what stands behind it.

    Empty where what stands before it is too long for a tool's name, or part of a sentence.
    """
    separator = _SEPARATOR.search(text, 0, _MAX_TOOL_LENGTH + 10)
    if separator is None:
        return "", "", ""
    label = text[: separator.start()].strip(" \t[]【】*_`\"'")
    question = text[separator.end() :].strip()
    if not 0 < len(label) <= _MAX_TOOL_LENGTH or re.search(r"[\[\]【】?？]", label) or not question:
        return "", "", ""
    return label, separator.group(), question
