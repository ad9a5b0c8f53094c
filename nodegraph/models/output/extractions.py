"""Read summaries, keywords, questions and question-answer pairs out of a model's answer.

Models number, quote, explain and format as they like, in Chinese and English. What they meant is
taken; what is none of it is an error, and an empty list only where the model says there is nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ...splitters import UNSPACED
from .items import (
    ANSWER,
    BULLET,
    HEADING,
    QUESTION,
    QUESTION_KEYS,
    SEPARATOR,
    bare,
    each_once,
    item_of,
    normal,
    read,
    strings,
    unlabelled,
    unwrap,
)

Pair = tuple[str, str]

_INLINE_ANSWER = re.compile(
    r"(?:(?<=[?？])|(?<=[?？][*\"”])|(?<=[?？]\*\*)|(?<=\s))"
    r"(?=[*_【\[]{0,3}(?:Answer|ANSWER|A|答案|回答|答)\s*\d{0,3}[*_】\]]{0,3}[:：])"
)

_INLINE_QUESTION = re.compile(
    r"(?<=[。.!！；;\s])"
    r"(?=[*_【\[]{0,3}(?:Question|QUESTION|Q|问题|问)\s*\d{0,3}[*_】\]]{0,3}[:：])"
)

_ANSWER_KEYS = ("answer", "a", "response", "reply", "答案", "答", "回答")


def parse_pairs(answer: str) -> list[Pair]:
    """Return pairs of a question and its answer, which may have several lines.

    A last question that the model did not come to answer is left out.

    Raises:
        ValueError: If there is no pair in the answer.

    Example:
        >>> parse_pairs("问：茶是什么？\\n答：一种饮品。\\n用叶子制成。")
        [('茶是什么？', '一种饮品。\\n用叶子制成。')]
    """
    text, value = read(answer)
    if text is None:
        return []
    if value is not None:
        pairs = list(_pairs_in(value))
    else:
        text = HEADING.sub("", text, count=1) if HEADING.match(text) else text
        lines = [part for line in text.split("\n") for part in _at_labels(line)]
        labelled = any(map(ANSWER.match, lines))
        pairs = list(_labelled(lines) if labelled else _unlabelled_pairs(lines))
    first: dict[str, Pair] = {}
    for question, told in pairs:
        if re.search(r"\w", question) and re.search(r"\S", told):
            first.setdefault(normal(question), (question, told))
    if not first:
        raise ValueError("there is no question with an answer in the answer")
    return list(first.values())


def _at_labels(line: str) -> list[str]:
    """Break a line before the labels in it that have something before them."""

    words = re.search(r"\w", line)
    if words is None:
        return [line]
    first = words.end()
    for inline in (_INLINE_ANSWER, _INLINE_QUESTION):
        line = inline.sub(lambda found: "\n" if found.start() >= first else "", line)
    return line.split("\n")


def _labelled(lines: Iterable[str]) -> Iterator[Pair]:
    """Read "Q: ... A: ..." with whatever is between two labels belonging to the first."""
    question: list[str] = []
    answer: list[str] | None = None
    for line in lines:
        if label := ANSWER.match(line):
            answer = [*(answer or []), line[label.end() :]]
        elif label := QUESTION.match(line):
            if answer is not None:
                yield _pair(question, answer)
            question, answer = [line[label.end() :]], None
        elif answer is None:
            question.append(line)
        elif _asks_anew(line):  # only the answers have labels
            yield _pair(question, answer)
            question, answer = [line], None
        else:
            answer.append(line)
    if answer is not None:
        yield _pair(question, answer)


def _asks_anew(line: str) -> bool:
    """Tell whether a line is a numbered or bold question without a label."""
    bullet = BULLET.match(line)
    marked = bullet is not None and re.search(r"[\d①-⑳#]|\*\*", bullet[0])
    return bool(marked) and line.rstrip(' *_"”」').endswith(("?", "？"))


def _unlabelled_pairs(lines: list[str]) -> Iterator[Pair]:
    """Read questions that stand out, each followed by its answer."""
    marked = any(_asks_anew(line) or _numbered_with_answer(line) for line in lines)
    question: str | None = None
    answer: list[str] = []
    for line in lines:
        inline = _numbered_with_answer(line)
        plain = not marked and line.rstrip(" *_").endswith(("?", "？"))
        if inline is None and not plain and not _asks_anew(line):
            answer.append(line)
            continue
        if question is not None:
            yield _pair([question], answer)
        question, answer = (line, []) if inline is None else (inline[0], [inline[1]])
    if question is not None:
        yield _pair([question], answer)


def _numbered_with_answer(line: str) -> Pair | None:
    """Take a line like ``1. What is tea? A drink`` apart, None if it is another."""
    found = re.fullmatch(
        r"(\s*(?:[-*•]\s*)?\(?\d{1,3}[.)、）].+?[?？][*_\"”]*)[ \t]*[-–—:：]*[ \t]*(\S.*)",
        line.rstrip(),
    )
    return (found[1], found[2]) if found and re.search(r"\w", found[2]) else None


def _pair(question: Iterable[str], answer: Iterable[str]) -> Pair:
    asked = " ".join(line.strip() for line in question if not SEPARATOR.fullmatch(line))
    told = list(answer)
    while told and (not told[-1].strip() or SEPARATOR.fullmatch(told[-1])):
        if len(told) == 1 and re.search(r"\w", told[0]):
            break  # a number may be the answer
        told.pop()
    text = "\n".join(told).strip()
    # What is left of bold labels.
    text = text[2:].lstrip() if text.startswith("**") and text.count("**") % 2 else text
    text = re.sub(r"^[-*•]\s+", "", text) if "\n" not in text else text
    return bare(unlabelled(asked)), unwrap(text)


def _pairs_in(value: Any) -> Iterator[Pair]:
    if isinstance(value, Mapping):
        keys = {str(key).strip().casefold().rstrip("0123456789"): key for key in value}
        asked = next((keys[key] for key in QUESTION_KEYS if key in keys), None)
        told = next((keys[key] for key in _ANSWER_KEYS if key in keys), None)
        if asked is not None and told is not None and not isinstance(value[asked], list):
            yield _plain(value[asked]), _plain(value[told])
            return
        for key, each in value.items():
            if isinstance(each, str) and str(key).rstrip().endswith(("?", "？")):
                yield str(key), each
            elif not isinstance(each, str):
                yield from _pairs_in(each)
    elif isinstance(value, list):
        if len(value) == 2 and all(isinstance(each, str) for each in value):
            yield value[0], value[1]
            return
        for each in value:
            yield from _pairs_in(each)


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return "\n".join(map(_plain, value))
    return "" if value is None else str(value).strip()


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
