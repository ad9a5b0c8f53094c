"""Read question-answer pairs out of a model's answer, however it sets them apart."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .lines import (
    ANSWER,
    BULLET,
    HEADING,
    QUESTION,
    QUESTION_KEYS,
    SEPARATOR,
    bare,
    normal,
    read,
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
