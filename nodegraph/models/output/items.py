"""Read the lines of a model's answer: bullets, numbers, labels, and what stands behind them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .cleaning import check_answer, clean, is_opening, json_at, says_none

BULLET = re.compile(
    r"""\s*(?:>\s*)?(?:\#{1,6}\s+)?(?:[-*+•·●○◦▪–—]\s+|[•·●○◦▪]\s*)?
    (?:[*_]{2})?
    (?:(?:\(?\d{1,3}\s*(?:[.)]\s*(?!\d)|[、）]\s*|[:：]\s*(?!\d))|（\d{1,3}）\s*|[①-⑳]\s*
      |[一二三四五六七八九十]{1,3}[、.]\s*|第[一二三四五六七八九十\d]{1,3}[个题]?[、:：]\s*))?""",
    re.X,
)

HEADING = re.compile(
    r"""\s*(?:\#{1,6}\s*)?[*_]{0,2}[【\[]?(?:(?:main|key|important|short|brief|extracted|the)\ )?
    (?:summary|abstract|key\ ?words?|key\ ?phrases?|questions?|q\ ?&\ ?a(?:\ pairs?)?
      |question[-\ ]and[-\ ]answer\ pairs?|question-answer\ pairs?
      |(?:内容|本文|全文|文本)?(?:摘要|总结|概要|概括)(?:如下)?|关键词|关键字|关键词列表|问题|问题列表|问答对?)
    (?:\ ?[(（][^)）\n]{0,20}[)）])?[】\]]?[*_]{0,2}\s*(?:[:：][*_]{0,2}|(?=\n))\s*""",
    re.I | re.X,
)

_WRAPPED = {'"': '"', "'": "'", "“": "”", "‘": "’", "「": "」", "『": "』", "`": "`", "《": ""}

_LABEL = r"\s*(?:[-*+•>]\s+)?(?:\#{1,6}\s*)?(?:\d{1,3}\s*[.)、）]\s*)?[*_【\[]{0,3}"

_LABEL_END = (
    r"(?:\s*[-#])?(?:\s*(?:\d{1,3}|[一二三四五六七八九十]{1,3}))?(?:\s*[*_】\]]{1,3})?"
    r"(?:\s*[:：]\s*[*_】\]]{0,3}|\s*%s)\s*"
)

_WORDS_Q = r"(?:questions?|问题|提问|问句|问)"

_WORDS_A = r"(?:answers?|答案|回答|解答|答)"

QUESTION = re.compile(
    rf"{_LABEL}(?:{_WORDS_Q}{_LABEL_END % '$'}|[QＱ问]{_LABEL_END % '(?!)'})", re.I
)

ANSWER = re.compile(rf"{_LABEL}(?:{_WORDS_A}{_LABEL_END % '$'}|[AＡ答]{_LABEL_END % '(?!)'})", re.I)

SEPARATOR = re.compile(
    r"""\s*(?:[-=*_~]{3,}
    |(?:\#{1,6}\s*)?[*_]{0,2}[(（]?(?:(?:q\ ?&\ ?a|qa|pair|问答对?|第)\s*(?:pair\s*)?)?
      \#?(?:\d{1,3}|[一二三四五六七八九十]{1,3})(?:\s*(?:[组个对条]|题))?(?:\s*问答对?)?
      [*_]{0,2}[.)、）:：]?[*_]{0,2})\s*""",
    re.I | re.X,
)

_MOST_LAYERS = 12  # of what stands around an item

LONGEST_ANSWER = 100_000
"""Characters of an answer that are read, thoughts left out: several times what models write."""

QUESTION_KEYS = ("question", "q", "query", "问题", "问", "提问")


def read(answer: str) -> tuple[str | None, Any]:
    """Return the cleaned text, None where it says there is nothing; and its JSON, if it is."""
    text = clean(answer)[:LONGEST_ANSWER]
    check_answer("" if is_opening(text) else text)
    if says_none(text):
        return None, None
    if re.match(r"\[\s*[\"'\[{]|\{\s*[\"']", text) is None:
        return text, None
    value = json_at(text)
    if value is None:
        raise ValueError("the answer begins like JSON and is none")
    return (None, None) if _empty(value) else (text, value)


def _empty(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(_empty(each) for each in value.values())
    return isinstance(value, list) and not value


def item_of(line: str) -> tuple[str, bool]:
    """Return a line without its bullet or number, and whether it had one."""
    bullet = BULLET.match(line)
    sign = bullet[0].strip(" \t*_") if bullet else ""
    return (line[len(bullet[0].rstrip("*_")) :], True) if bullet and sign else (line, False)


def unlabelled(line: str) -> str:
    """Return a question without its label ("Question 1:"), bullet or number."""
    label = QUESTION.match(line)
    bullet = BULLET.match(line)
    end = label.end() if label else bullet.end() if bullet else 0
    return line[end:].strip().strip("*_").strip()


def strings(value: Any, keys: tuple[str, ...]) -> Iterator[str]:
    """Yield the texts of a JSON value, of an object only that of the key where it has it."""
    if isinstance(value, str):
        yield value.strip()
    elif isinstance(value, list):
        for each in value:
            yield from strings(each, keys)
    elif isinstance(value, Mapping):
        known = {str(key).strip().casefold(): each for key, each in value.items()}
        told = next((known[key] for key in keys if key in known), None)
        for each in value.values() if told is None else [told]:
            yield from strings(each, keys)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)


def bare(text: str) -> str:
    """Strip what stands around an item: a number, bold, quotes, a full stop."""
    bullet = BULLET.match(text)
    text = text[bullet.end() :] if bullet else text
    for _ in range(_MOST_LAYERS):
        before = text
        text = unwrap(text.strip().strip("*_`").strip())
        text = text.rstrip("。,，;；:：").rstrip() if not text.endswith(("...", "…")) else text
        text = text[:-1].rstrip() if re.search(r"[^.\s]{2}\.$", text[-3:]) else text
        if text == before:
            break
    return text


def unwrap(text: str) -> str:
    """Take away quotes or bold that stand around all of a text."""
    text = text.strip()
    if len(text) > 4 and text.startswith("**") and text.endswith("**") and "**" not in text[2:-2]:
        text = text[2:-2].strip()
    close = _WRAPPED.get(text[:1])
    inner = text[1:-1]
    if close and len(text) > 2 and text.endswith(close) and not {text[0], close} & set(inner):
        return inner.strip()
    return text


def each_once(texts: Iterable[str]) -> list[str]:
    """Return texts in order, of those that are the same but for case and spaces the first."""
    first: dict[str, str] = {}
    for text in texts:
        first.setdefault(normal(text), text)
    return list(first.values())


def normal(text: str) -> str:
    """Return a text as it is compared: width, case and spaces don't count."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
