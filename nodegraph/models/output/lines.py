"""Split a model's answer into lines without bullets, numbers, labels, bold and quotes."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from .json_values import find_json, is_no_answer, texts_in

TEXT_KEYS = (
    *("questions", "sub_questions", "queries", "names", "rewritten_question", "question", "query"),
    *("sub_question", "passage", "text", "answer", "子问题", "改写后的问题", "问题", "答案"),
)
"""The keys of texts in JSON."""

# Spaces are limited in patterns: an answer may be a million spaces.
_NUMBER = r"(?:\(?\d{1,3}[.)](?!\d)|[（(]?\d{1,3}[、）]|[一二三四五六七八九十]{1,3}、|[①-⑳])"

BULLET = re.compile(
    rf"\s{{0,9}}(?:>\s{{0,9}})?(?:#{{1,6}}\s{{1,9}})?(?:[-*+•·●]\s{{1,9}}|•)?[*_]{{0,2}}{_NUMBER}?\s{{0,9}}"
)


def label_pattern(words: str) -> re.Pattern[str]:
    """Compile the pattern of a label at the start of a line: "**Answer 2:** ", "- 1. 问题：".

    Args:
        words: The words of the label, as a verbose regular expression.

    Example:
        >>> label_pattern("answer").match("**Answer:** Tea").end()
        12
    """
    return re.compile(
        rf"""^\s{{0,9}}(?:[-*+•>#]{{1,6}}\s{{1,9}})?(?:{_NUMBER}\s{{0,9}})?[*_【\[]{{0,3}}(?:{words})
        \s?(?:\d{{1,3}}|[一二三四五六七八九十]{{1,3}})?[*_]{{0,3}}(?:\s?[:：]|】)[*_]{{0,3}}\s{{0,9}}""",
        re.I | re.M | re.X,
    )


LABEL = label_pattern(
    r"""(?:[\w'-]{1,15}\s){0,3}(?:(?:sub-?)?questions?|quer(?:y|ies)|phrasings?|alternatives?
        |versions?|passages?|summary|key\ ?words?|answers?|steps?|results?)(?:\ is|\ are)?
    |[\u4e00-\u9fff]{0,5}(?:问题|问法|查询|改写|关键词|摘要|段落|答案|回答)(?:是|为|如下)?|[QA问答]"""
)

QUESTION_LABEL = label_pattern(r"questions?|Q|问题?|提问")

ANSWER_LABEL = label_pattern(r"answers?|A|答案?|回答")

_REMARK = label_pattern(
    r"""[(（]?(?:explanations?|reason(?:ing)?|notes?|rationale|original(?:\ question|\ query)?
    |answers?|A|说明|解释|理由|备注|注|原因|原问题|原查询|答案?|回答)"""
)

_CLOSING_QUOTE = {'"': '"', "'": "'", "“": "”", "‘": "’", "「": "」", "『": "』", "`": "`"}


class Line(NamedTuple):
    """A line of an answer.

    Attributes:
        text: The text behind bullet, number and label.
        listed: Whether the line is an item of a list.
        labelled: Whether the line had a label.
    """

    text: str
    listed: bool
    labelled: bool


def parse_lines(text: str) -> Iterator[Line]:
    """Yield the lines of a cleaned answer that have content, or the texts of its JSON.

    Headings, remarks and lines that only announce something are left out.

    Raises:
        ValueError: If the answer has JSON that cannot be read.

    Example:
        >>> answer = "Note: two of them.\\n1. **Query**: How long is it?"
        >>> [tuple(line) for line in parse_lines(answer)]
        [('How long is it?', True, True)]
    """
    if (value := find_json(text)) is not None:
        texts = "\n".join(texts_in(value, TEXT_KEYS)).split("\n")
        yield from (Line(item, True, False) for item in texts if re.search(r"\w", item))
        return
    for line in text.split("\n"):
        item, listed = split_bullet(line)
        label = LABEL.match(item)
        content = item[label.end() if label else 0 :].strip().removesuffix("**").strip()
        is_heading = line.startswith("#") and not content.endswith(("?", "？"))
        is_empty = content.endswith((":", "：")) or is_no_answer(content) or _REMARK.match(line)
        if re.search(r"\w", content) and not is_heading and not is_empty:
            numbered = label is not None and re.search(r"[\d一二三四五]", label[0]) is not None
            yield Line(unwrap(content), listed or numbered, label is not None)


def split_bullet(line: str) -> tuple[str, bool]:
    """Return a line without its bullet or number, and whether it had one."""
    bullet = BULLET.match(line)
    sign = bullet[0].strip(" \t*_#>") or re.match(r"\s*\*\s", line) if bullet else None
    return line[bullet.end() if bullet else 0 :].strip(), bool(sign)


def strip_markup(text: str) -> str:
    """Return an item without its number, bold, quotes and full stop."""
    text = split_bullet(text)[0].strip(" \t*_`")
    text = unwrap(text if text.endswith(("...", "…")) else text.rstrip("。,，;；:：*_`"))
    return text[:-1] if re.search(r"[^.\s]{2}\.$", text[-3:]) else text


def unwrap(text: str) -> str:
    """Return a text without the quotes or bold around all of it."""
    text = text.strip()
    if text.startswith("**") and text.endswith("**") and "**" not in text[2:-2]:
        text = text[2:-2].strip()
    inner, close = text[1:-1].strip(), _CLOSING_QUOTE.get(text[:1], "\n")
    is_quoted = inner and text.endswith(close) and not {text[0], close} & set(inner)
    return inner if is_quoted else text


def unique(texts: Iterable[str]) -> list[str]:
    """Return texts without duplicates. Case and spaces are ignored."""
    first: dict[str, str] = {}
    for text in texts:
        first.setdefault(normalize(text), text)
    return list(first.values())


def normalize(text: str) -> str:
    """Return a key for comparison: width, case and spaces are ignored."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
