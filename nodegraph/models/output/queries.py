"""Parse queries, sub-questions and routes from a model's answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from .cleaning import is_no_answer, usable_text
from .json_values import find_json, texts_in
from .lines import TEXT_KEYS, Line, normalize, parse_lines, strip_markup
from .questions import (
    MAX_QUERY_LENGTH,
    is_phrase,
    is_query,
    is_question,
    is_statement,
    single_mark,
    split_questions,
)

_SIMPLE = re.compile(
    r"""[^\n]{0,80}?(?:\balready\b[^\n]{0,20}\b(?:simple|atomic|clear|single)
      |\b(?:no|not|n't|without)\b[^\n]{0,40}\b(?:decompos|break|split|sub-?questions?|sub-?quer)
      |\b(?:cannot|can't|can\ not)\ be\ (?:further\ )?(?:decomposed|broken|split|divided)
      |(?:is|single|a)\s+(?:simple|atomic)(?:\ question|\ query|,|\.|$)
      |(?:无需|不需要?|不必|不用|无须|没有必要|不能|无法)[^\n]{0,6}(?:再|继续|进一步)?(?:分解|拆分|拆解|细分)
      |(?:没有|无)子问题|(?:已经|已|本身)(?:很|足够|够|就|是)*(?:简单|单一|明确|一个简单))""",
    re.I | re.X,
)

_ROUTE_KEYS = ("names", "name", "routes", "route", "choices", "choice", "selections", "selection")


def parse_query(answer: str, query: str = "") -> str:
    """Return the one query in a model's answer, in place of another.

    Raises:
        ValueError: If there is none, or it answers the other one.

    Example:
        >>> parse_query("Sure! Rewritten question: **How long is the Nile?**")
        'How long is the Nile?'
    """
    lines = _candidates(usable_text(answer))
    asks = is_question(query)
    for line in sorted(lines, key=lambda line: line.kind is None):  # labelled lines first
        text = single_mark(strip_markup(line.text))
        if not is_query(text):
            continue
        if asks and is_statement(line.text):
            raise ValueError("the answer is a statement, and not the question in other words")
        return text
    raise ValueError(f"there is no query of at most {MAX_QUERY_LENGTH} characters in the answer")


def parse_phrasings(answer: str, query: str, limit: int) -> list[str]:
    """Return other phrasings of a query, not the query itself.

    Raises:
        ValueError: If there is none.

    Example:
        >>> parse_phrasings("1. Nile length\\n2. How many km is the Nile?", "How long is it?", 3)
        ['Nile length', 'How many km is the Nile?']
    """
    lines = _candidates(usable_text(answer))
    asks = is_question(query)
    phrasings = []
    for line in [line for line in lines if line.listed] or lines:
        if _has_mark(line):
            phrasings += split_questions(line.text)
        elif not (asks and is_statement(line.text)):
            phrasings.append(strip_markup(line.text))
    return _usable(phrasings, query, limit, "other phrasing")


def parse_sub_questions(answer: str, query: str, limit: int) -> list[str]:
    """Return the questions that a question was decomposed into; none where it is simple.

    Raises:
        ValueError: If there is no question in the answer, and it doesn't say that it needs none.

    Example:
        >>> answer = "一、谁写了《红楼梦》？\\n二、他生于哪一年？"
        >>> parse_sub_questions(answer, "作者生于哪年？", 5)
        ['谁写了《红楼梦》？', '他生于哪一年？']
        >>> parse_sub_questions("The question is already simple.", "Who wrote it?", 5)
        []
    """
    text = usable_text(answer)
    value = find_json(text)
    if is_no_answer(text) or (value is not None and not any(texts_in(value, TEXT_KEYS))):
        return []
    candidates = _sub_questions(_candidates(text), value)
    listed = [question for question, is_listed in candidates if is_listed]
    if not listed and _SIMPLE.match(text):
        return []
    questions = listed or [question for question, _ in candidates]
    if questions and {*map(_same, questions)} == {_same(query)}:
        return []
    return _usable(questions, query, limit, "question")


def parse_routes(answer: str, names: Sequence[str], multiple: bool = False) -> list[str]:
    """Return which of some names a model chose, by name or number, in the answer's order.

    Raises:
        ValueError: If it chose none of them.

    Example:
        >>> parse_routes('{"names": ["web"]}', ["docs", "web"]), parse_routes("2", ["docs", "web"])
        (['web'], ['web'])
    """
    text = usable_text(answer)
    value = find_json(text)
    if value is not None:
        text = "\n".join(texts_in(value, (*_ROUTE_KEYS, *TEXT_KEYS)))
    everywhere = _named(text, names) or _numbered(text, names)
    first_line = text.split("\n")[0]
    chosen = _named(first_line, names) or _numbered(first_line, names) or everywhere
    if not chosen:
        raise ValueError(f"the answer names none of {', '.join(map(repr, names))}")
    return (everywhere or chosen) if multiple else chosen[:1]


def _candidates(text: str) -> list[Line]:
    return [line for line in parse_lines(text) if not line.is_original]


def _has_mark(line: Line) -> bool:
    return "?" in line.text or "？" in line.text


def _sub_questions(lines: Sequence[Line], value: Any) -> list[tuple[str, bool]]:
    """Return the questions of lines, or phrases in their place, and whether each is listed."""
    questions = [(text, line.listed) for line in lines for text in split_questions(line.text)]
    if not questions:  # some leave out the question marks
        plain = [(strip_markup(line.text), line.listed) for line in lines if not _has_mark(line)]
        questions = [(text, listed) for text, listed in plain if is_question(text)]
    in_list = _has_list(value)
    if (questions and not in_list) or (value is not None and not in_list):  # {"error": "..."}
        return questions
    phrases = [line.text for line in lines if line.listed and is_phrase(line.text)]
    return [(strip_markup(text), True) for text in phrases] or questions


def _has_list(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_has_list, value.values()))
    return isinstance(value, list)


def _usable(texts: Sequence[str], query: str, limit: int, what: str) -> list[str]:
    """Return the different queries among texts, except the query itself; at most ``limit``."""
    queries: dict[str, str] = {}
    for text in texts:
        if is_query(text):
            queries.setdefault(_same(text), text)
    queries.pop(_same(query), None)
    if not queries:
        raise ValueError(f"there is no {what} in the answer")
    return list(queries.values())[:limit]


_MARKS = re.compile(r"[\s?.!。,、;:…\"'“”‘’`*_-]+")


def _same(text: str) -> str:
    """Return the form in which near-copies are the same: marks do not count, nor do spaces."""
    return _MARKS.sub(" ", normalize(text)).strip()


def _named(text: str, names: Sequence[str]) -> list[str]:
    """Return the names that occur in a text as words of their own, in its order."""
    positions: dict[str, int] = {}
    text = text.casefold()
    for name in sorted(names, key=len, reverse=True):  # a name may be part of another
        begin = r"(?<![a-z0-9_])" if name[0].isascii() else ""
        end = r"(?![a-z0-9_])" if name[-1].isascii() else ""
        pattern = begin + re.escape(name.casefold()) + end
        if match := re.search(pattern, text):
            positions[name] = match.start()
            text = re.sub(pattern, lambda match: "\0" * len(match[0]), text)
    return sorted(positions, key=positions.__getitem__)


def _numbered(text: str, names: Sequence[str]) -> list[str]:
    """Return the names whose numbers a short text has, in its order."""
    numbers = [int(number) for number in re.findall(r"(?<![\d.-])\d{1,3}(?![\d.]*\d)", text)]
    short = len(re.findall(r"\w+", text)) <= 3 * len(numbers) + 2
    chosen = [names[number - 1] for number in numbers if short and 1 <= number <= len(names)]
    return list(dict.fromkeys(chosen))
