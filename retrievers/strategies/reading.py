"""Read queries and questions out of what a model answers, as it likes to write them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ...nodegraph.llm.answers import says_none
from ...nodegraph.llm.lines import bare, each_once, normal, strings
from .answer_lines import KEYS, Line, json_in, lines_of, read_answer
from .questions import LONGEST_QUERY, answers, asked_once, asks, is_phrase, is_query, questions_in

_SIMPLE = re.compile(
    r"""[^\n]{0,80}?(?:\balready\b[^\n]{0,20}\b(?:simple|atomic|clear|single)
      |\b(?:no|not|n't|without)\b[^\n]{0,40}\b(?:decompos|break|split|sub-?questions?|sub-?quer)
      |\b(?:cannot|can't|can\ not)\ be\ (?:further\ )?(?:decomposed|broken|split|divided)
      |(?:is|single|a)\s+(?:simple|atomic)(?:\ question|\ query|,|\.|$)
      |(?:无需|不需要?|不必|不用|无须|没有必要|不能|无法)[^\n]{0,6}(?:再|继续|进一步)?(?:分解|拆分|拆解|细分)
      |(?:没有|无)子问题|(?:已经|已|本身)(?:很|足够|够|就|是)*(?:简单|单一|明确|一个简单))""",
    re.I | re.X,
)


def read_query(answer: str, query: str = "") -> str:
    """Return the one query in a model's answer, in place of another.

    Raises:
        ValueError: If there is none, or it answers the other one.

    Example:
        >>> read_query("Sure! Rewritten question: **How long is the Nile?**")
        'How long is the Nile?'
    """
    lines = [line for line in lines_of(read_answer(answer)) if not line.is_original]
    # What is labelled as the rewriting goes before the rest.
    for line in sorted(lines, key=lambda line: line.kind is None):
        text = asked_once(bare(line.text))
        if not is_query(text):
            continue
        if answers(line.text, query):
            raise ValueError("the answer is a statement, and not the question in other words")
        return text
    raise ValueError(f"there is no query of at most {LONGEST_QUERY} characters in the answer")


def read_phrasings(answer: str, query: str, limit: int) -> list[str]:
    """Return other phrasings of a query, not the query itself.

    Raises:
        ValueError: If there is none.

    Example:
        >>> read_phrasings("1. Nile length\\n2. How many km is the Nile?", "How long is it?", 3)
        ['Nile length', 'How many km is the Nile?']
    """
    lines = [line for line in lines_of(read_answer(answer)) if not line.is_original]
    listed = [line for line in lines if line.listed]
    found = []
    for line in listed or lines:
        if "?" in line.text or "？" in line.text:
            found += questions_in(line.text)
        elif not answers(line.text, query):
            found.append(bare(line.text))
    return _some(found, query, limit, "other phrasing")


def read_sub_questions(answer: str, query: str, limit: int) -> list[str]:
    """Return the questions that a question was taken apart into; none where it is simple.

    Raises:
        ValueError: If there is no question in the answer, and it doesn't say that it needs none.

    Example:
        >>> read_sub_questions("一、谁写了《红楼梦》？\\n二、他生于哪一年？", "作者生于哪年？", 5)
        ['谁写了《红楼梦》？', '他生于哪一年？']
        >>> read_sub_questions("The question is already simple.", "Who wrote it?", 5)
        []
    """
    text = read_answer(answer)
    value = json_in(text)
    if says_none(text) or (value is not None and not any(map(str.strip, strings(value, KEYS)))):
        return []
    lines = [line for line in lines_of(text) if not line.is_original]
    asked = _asked(lines, value)
    listed = [question for question, is_listed in asked if is_listed]
    found = listed or [question for question, _ in asked]
    if not listed and _SIMPLE.match(text):
        return []
    if found and all(normal(each) == normal(query) for each in found):
        return []
    return _some(found, query, limit, "question")


def _asked(lines: Sequence[Line], value: Any) -> list[tuple[str, bool]]:
    """Return what lines ask, and whether in a list: questions, or phrases that serve as well."""
    asked = [(each, line.listed) for line in lines for each in questions_in(line.text)]
    if not asked:  # some leave out the question marks
        unmarked = [line for line in lines if "?" not in line.text and "？" not in line.text]
        bared = [(bare(line.text), line.listed) for line in unmarked]
        asked = [(each, listed) for each, listed in bared if asks(each)]
    in_list = _has_list(value)
    if (asked and not in_list) or (value is not None and not in_list):  # {"error": "..."}
        return asked
    phrases = [line.text for line in lines if line.listed and is_phrase(line.text)]
    return [(bare(each), True) for each in phrases] or asked


def _has_list(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_list, value.values()))
    return isinstance(value, list)


def _some(found: Sequence[str], query: str, limit: int, what: str) -> list[str]:
    """Return what can be used, each once, ``limit`` at most."""
    good = [each for each in found if is_query(each) and normal(each) != normal(query)]
    if not good:
        raise ValueError(f"there is no {what} in the answer")
    return each_once(good)[:limit]
