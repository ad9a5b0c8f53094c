"""Read which question a model would ask of which tool, as it likes to write that."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ...nodegraph.llm.answers import check_answer, clean, read_json, says_none
from ...nodegraph.llm.lines import bare, item_of, normal

_QUESTIONS = (
    *("sub_question", "subquestion", "sub-question", "question", "query", "q"),
    *("子问题", "问题", "提问"),
)
_TOOLS = ("tool_name", "tool", "toolname", "name", "source", "工具名", "工具名称", "工具")
_LONGEST_TOOL = 60


def read_tool_questions(
    answer: str, tools: Sequence[str]
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """Return the (tool, question) pairs in an answer, and those whose tool there is not.

    JSON of any shape that names both, also with prose around it; or lines, of which each has a
    tool before or behind its question.

    Raises:
        ValueError: If there are none of either.

    Example:
        >>> read_tool_questions("1. Rivers: How long is the Nile?", ["rivers", "tea"])
        ([('rivers', 'How long is the Nile?')], [])
    """
    text = clean(answer)
    check_answer(text)
    if says_none(text):
        return [], []
    names = {normal(tool): tool for tool in tools}
    known: dict[tuple[str, str], None] = {}
    unknown: dict[tuple[str, str], None] = {}
    for tool, question in _pairs(text, names):
        question = bare(question)
        if not re.search(r"\w", question):
            continue
        name = names.get(normal(tool.strip(" \t\"'`*_[]【】()（）")))
        if name is None:
            unknown[tool.strip(), question] = None
        else:
            known[name, question] = None
    if not known and not unknown:
        raise ValueError("there is no question for a tool in the answer")
    return list(known), list(unknown)


def _pairs(text: str, names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    if "{" in text or "[" in text:
        try:
            value = read_json(text)
        except ValueError:
            value = None
        found = [] if value is None else list(_in_json(value, names))
        if found:
            yield from found
            return
    for line in text.splitlines():
        if pair := _in_line(line, names):
            yield pair


def _in_json(value: Any, names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    if isinstance(value, list):
        for each in value:
            yield from _in_json(each, names)
    if not isinstance(value, Mapping):
        return
    known = {normal(str(key)): each for key, each in value.items()}
    question = next((known[key] for key in _QUESTIONS if isinstance(known.get(key), str)), None)
    tool = next((known[key] for key in _TOOLS if isinstance(known.get(key), str)), None)
    if question is not None and tool is not None:
        yield tool, question
        return
    for key, each in value.items():
        if normal(str(key)) in names:  # {"rivers": ["How long is the Nile?"]}
            asked = each if isinstance(each, list) else [each]
            yield from ((str(key), one) for one in asked if isinstance(one, str))
        elif isinstance(each, list | Mapping):
            yield from _in_json(each, names)


def _in_line(line: str, names: Mapping[str, str]) -> tuple[str, str] | None:
    text, _ = item_of(line.strip().strip("|"))
    text = text.strip()
    folded = text.casefold()
    for name in sorted(names.values(), key=len, reverse=True):
        own = re.escape(name.casefold())
        before = re.match(rf"[\W_]*{own}[*_`\"'\])】）]*\s*(?:[:：|,，>→]|-+>?|—)\s*(?=\S)", folded)
        before = before or re.match(rf"[\[【(（]\s*{own}\s*[\])】）]\s*(?=\S)", folded)
        if before and len(folded) == len(text):
            return name, text[before.end() :]
        behind = re.search(rf"\s*(?:[|>→\[【(（]|-+>)\s*[`*\"']*{own}[`*\"'\])】）]*\s*$", folded)
        if behind and len(folded) == len(text):
            return name, text[: behind.start()]
    label = re.match(r"[\[【*_`\"']*([^\[\]【】:：?？|]+?)[\]】*_`\"']*\s*[:：|]\s*(\S.*)", text)
    if label and len(label[1]) <= _LONGEST_TOOL and text.rstrip("\"'*_` ").endswith(("?", "？")):
        return label[1], label[2]
    return None
