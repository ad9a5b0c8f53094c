"""Read summaries, keywords, questions and question-answer pairs out of a model's answer.

Models number, quote, explain and format as they like, in Chinese and English. What they meant is
taken; what is none of it is an error, and an empty list only where the model says there is nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ..splitters.characters import UNSPACED
from .lines import (
    ANSWER,
    HEADING,
    QUESTION_KEYS,
    SEPARATOR,
    bare,
    each_once,
    item_of,
    read,
    strings,
    unlabelled,
    unwrap,
)
from .pairs import parse_pairs

_NUMBERED_INLINE = re.compile(r"(?<=\S)\s+(?=\(?\d{1,2}[.)、）]\s*\D)")
_COMMAS = re.compile(r"[，、;；\n]|,(?!\d)|(?<!\d),|\s[•·|]\s")
_DESCRIBED = re.compile(r"(.{1,60}?)\s*(?:[:：]\s*(?!\d)|\s[-–—]+\s|——)(\S.*)", re.S)
_BOLD_TERM = re.compile(r"\*\*([^*]{1,60}?)[:：]?\*\*\s*(?:[:：–—-]+|[(（])\s*\S")
_ENDS = re.compile(r"[?？]+[\"'”’」』)）*_`]*")
_ASKS = re.compile(
    r"(?:who|whom|whose|what|when|where|which|why|how|is|are|was|were|do|does|did|can|could|should"
    r"|would|will|has|have)\b|.*(?:什么|什麼|为何|为什么|如何|怎[么样]|哪|谁|几|多少|多[久长大高远重]|是否|吗|何[时地])",
    re.I,
)
_LONGEST_KEYWORD = 60  # characters
_MOST_WORDS = 9
_MOST_HEADINGS = 3  # at the beginning of a line


def parse_summary(answer: str) -> list[str]:
    """Return the one summary, or nothing where the model says there is none.

    Raises:
        ValueError: If the answer is empty, or a refusal.

    Example:
        >>> parse_summary("**Summary:** Tea is a drink.")
        ['Tea is a drink.']
    """
    text, value = read(answer)
    if text is None:
        return []
    if value is not None:
        texts = list(strings(value, ("summary", "摘要", "总结", "text", "content")))
        if not texts:
            raise ValueError("the answer is JSON without a text")
        return ["\n".join(texts)]
    summary = unwrap(HEADING.sub("", text, count=1) if HEADING.match(text) else text)
    if not re.search(r"\w", summary):
        raise ValueError("the answer is empty")
    return [summary]


def parse_keywords(answer: str) -> list[str]:
    """Return keywords, each once: from a line, a list or JSON; explanations are left out.

    Raises:
        ValueError: If the answer is empty, a refusal, or mostly sentences.

    Example:
        >>> parse_keywords("关键词：长江、黄河，Yangtze; 黄河")
        ['长江', '黄河', 'Yangtze']
    """
    text, value = read(answer)
    if text is None:
        return []
    if value is not None:
        keys = ("keyword", "name", "term", "word", "text", "关键词")
        found = [k for each in strings(value, keys) for k in _COMMAS.split(each)]
    else:
        lines = list(_lines(text))
        by_kind = _are_by_kind(lines)
        found = [k for line in lines for k in _keywords_of(line, by_kind)]
    found = [word for word in map(bare, found) if re.search(r"\w", word)]
    short = [word for word in found if _is_short(word)]
    if not short or 2 * len(short) < len(found):
        raise ValueError("the answer is no list of keywords")
    return each_once(short)


def parse_questions(answer: str) -> list[str]:
    """Return questions, each once; answers and remarks between them are left out.

    Raises:
        ValueError: If there is no question in the answer.

    Example:
        >>> parse_questions("1. What is tea?\\n2. **Who drinks it?**")
        ['What is tea?', 'Who drinks it?']
    """
    text, value = read(answer)
    if text is None:
        return []
    if value is not None:
        found = [bare(q) for q in strings(value, QUESTION_KEYS)]
    else:
        lines = list(_lines(text))
        found = [question for line in lines for question in _questions_of(line)]
        if not found:  # some leave out the question marks
            asked = [unlabelled(line) for line in lines if not ANSWER.match(line)]
            found = [line for line in asked if _ASKS.match(line) and len(line) <= 300]
    found = [question for question in found if re.search(r"\w", question)]
    if not found:
        raise ValueError("there is no question in the answer")
    return each_once(found)


PARSERS: Mapping[str, Callable[[str], list[Any]]] = {
    "summary": parse_summary,
    "keywords": parse_keywords,
    "questions": parse_questions,
    "qa": parse_pairs,
}


def _lines(text: str) -> Iterator[str]:
    """Yield the lines that say something, a list in one line taken apart."""
    for line in text.split("\n"):
        for _ in range(_MOST_HEADINGS):
            if heading := HEADING.match(line + "\n"):
                line = line[heading.end() :]
        parts = _NUMBERED_INLINE.split(line) if re.match(r"\s*\(?\d", line) else [line]
        yield from (part for part in parts if part.strip() and not SEPARATOR.fullmatch(part))


def _are_by_kind(lines: Iterable[str]) -> bool:
    """Tell whether all lines are like "People: Ada, Charles": a kind of keywords, then those."""
    items = [item_of(line)[0].strip() for line in lines]
    described = [_DESCRIBED.fullmatch(item) for item in items]
    signs = [found[0][found.end(1) :].lstrip()[0] if found else "" for found in described]
    if any(map(_BOLD_TERM.match, items)) or not {*signs} <= {":", "："}:
        return False
    after = [[bare(word) for word in _COMMAS.split(found[2])] for found in described if found]
    fit = all(len(word) <= 24 and len(word.split()) <= 3 for words in after for word in words)
    return fit and any(len(words) > 1 for words in after)


def _keywords_of(line: str, by_kind: bool) -> list[str]:
    item, listed = item_of(line)
    described = _DESCRIBED.fullmatch(item)
    if described is not None and by_kind:
        return _COMMAS.split(described[2])
    if bold := _BOLD_TERM.match(item.strip()):
        return [bold[1]]
    if described is not None and listed:
        return [described[1]]
    return _COMMAS.split(item)


def _is_short(word: str) -> bool:
    limit = _LONGEST_KEYWORD if not re.search(f"[{UNSPACED}]", word) else _LONGEST_KEYWORD // 2
    return len(word) <= limit and len(word.split()) <= _MOST_WORDS


def _questions_of(line: str) -> Iterator[str]:
    """Yield the questions of a line: up to each question mark that is not inside quotes."""
    if ANSWER.match(line):
        return
    rest = unlabelled(line)
    begin, end = 0, len(rest.rstrip("。. *_`"))
    for mark in _ENDS.finditer(rest):
        closes = mark[0].rstrip("*_`")[-1:] not in "?？"
        if closes and mark.end() < end:
            continue  # quoted, in the middle of the sentence
        yield bare(unlabelled(rest[begin : mark.end()]))
        begin = mark.end()
