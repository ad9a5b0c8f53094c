"""Clean a model's answer, and read the JSON, tags, tables or lines in it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from .failures import failure_in, is_error_value, is_refusal
from .json_values import TEXT_KEYS, find_json, texts_in, value_of
from .lines import (
    LABEL,
    REMARK,
    indent_of,
    read_table,
    split_bullet,
    text_column,
    unwrap,
    with_bullets,
)
from .tags import tagged_value
from .thoughts import CONTROL_TOKEN, without_thoughts

MAX_ANSWER_LENGTH = 100_000
"""The length in characters after which an answer is cut, without thoughts."""

_FENCE = re.compile(r"^[ \t]*(?:```|~~~)[ \t]*[\w+-]*[ \t]*$\n?", re.M)

_ONE_LINE_FENCE = re.compile(r"\A\s*```(?:\w{1,12} )?([^`\n]+)```\s*\Z")

_ANSWER_TAG = re.compile(r"</?answer>", re.I)

# "Sure! Here are the keywords:", "好的，以下是摘要："
_OPENING = re.compile(
    r"(?:(?:sure|certainly|of course|ok(?:ay)?|好的|当然(?:可以)?)(?:\s?[,.!，。！]\s{0,9}|\Z))?"
    r"(?:(?:here(?:['’]s| is| are)|以下是?|下面是?|这是)[^\n:：?？]{0,60}[:：]\s{0,9})?",
    re.I,
)

_CLOSING = re.compile(
    r"\n\s{0,9}(?:let me know|i hope|feel free|would you|希望|如果)[^\n]*\Z", re.I
)

_NONE = re.compile(r"none|no|no[ _]answer|nil|n/?a|null|nothing|empty|无|无答案|没有|暂无|空", re.I)

_PUNCTUATION = " \t\r\n.。!！*_`\"'“”‘’「」()（）[]{}<>#-:："


def clean(answer: str) -> str:
    """Return an answer without thoughts, code fences and the usual opening and closing phrases.

    Example:
        >>> clean("<think>Hm.</think>Sure! Here is the summary:\\n\\nTea is a drink.")
        'Tea is a drink.'
    """
    text = answer.replace("\r\n", "\n").replace("\r", "\n").replace("\ufeff", "")
    text = CONTROL_TOKEN.sub("", without_thoughts(text))
    text = _ONE_LINE_FENCE.sub(r"\1", _FENCE.sub("", text))
    text = _ANSWER_TAG.sub("", text).strip()
    opening = _OPENING.match(text)
    return _CLOSING.sub("", text[opening.end() if opening else 0 :])


def usable_text(answer: str, query: str = "") -> str:
    """Return a cleaned answer, cut to ``MAX_ANSWER_LENGTH``.

    Args:
        answer: The answer.
        query: The user's question. What it contains is no failure.

    Raises:
        ValueError: If the answer is empty, a refusal, the error of a server, a traceback, a web
            page or a URL.
    """
    text = clean(answer)[:MAX_ANSWER_LENGTH].strip()
    if not text.strip(_PUNCTUATION) and text not in ("[]", "{}"):
        raise ValueError("the answer is empty")
    if is_refusal(text) and normalize(text) != normalize(query):
        raise ValueError("the model refused")
    failure = failure_in(text, query)
    if failure is not None:
        raise ValueError(f"the answer is {failure}")
    return text


def is_no_answer(text: str) -> bool:
    """Return whether a cleaned answer means "nothing to write".

    Example:
        >>> [is_no_answer(text) for text in ("None.", "无", "[]", "No trains run.")]
        [True, True, True, False]
    """
    words = unicodedata.normalize("NFKC", text).strip(_PUNCTUATION)
    return text in ("[]", "{}") or _NONE.fullmatch(words) is not None


def read_json(answer: str, keys: Sequence[str], query: str = "") -> tuple[str, Any]:
    """Return a cleaned answer and the value of its JSON or tags, None for an answer in words.

    The text is empty for an answer such as NONE, [] or an empty list under one of the keys. Tags
    around one text are left out.

    Args:
        answer: The answer.
        keys: The keys of texts.
        query: The user's question.

    Raises:
        ValueError: If the answer is empty, a failure, or has JSON that cannot be read.

    Example:
        >>> read_json('{"questions": ["Why?"]}', ("questions",))[1], read_json("NONE", ())
        ({'questions': ['Why?']}, ('', None))
        >>> read_json("<query>Why?</query>", ())
        ('Why?', None)
    """
    text = usable_text(answer, query)
    value = tagged_value(text, query)
    if isinstance(value, str):
        text = usable_text(value, query)
        value = None
    if value is None:
        value = find_json(text)
    if is_error_value(value):
        raise ValueError("the answer is the error of a server")
    is_empty_list = isinstance(value, Mapping) and value_of(value, keys) == []
    return ("", None) if is_no_answer(text) or is_empty_list else (text, value)


def read_text(answer: str, keys: Sequence[str] = TEXT_KEYS, query: str = "") -> str:
    """Return a cleaned answer or the texts of its JSON. Raises the errors of ``read_json``."""
    text, value = read_json(answer, keys, query)
    return text if value is None else "\n".join(texts_in(value, keys))


class Item(NamedTuple):
    """A line of an answer, or a line in the texts of its JSON.

    Attributes:
        text: The text behind bullet, number and label.
        listed: Whether the line is an item of a list, or has a numbered label.
        labeled: Whether the line has a label, or is a text of JSON.
    """

    text: str
    listed: bool
    labeled: bool


def read_items(answer: str, keys: Sequence[str] = TEXT_KEYS, query: str = "") -> list[Item] | None:
    """Return the lines of an answer that have content. None: an answer such as NONE or [].

    Headings, remarks and announcements are left out. Raises the errors of ``read_json``.

    Example:
        >>> [tuple(item) for item in read_items("Two:\\n1. **Query**: How long is it?")]
        [('How long is it?', True, True)]
    """
    text, value = read_json(answer, keys, query)
    if not text:
        return None
    if value is not None:
        lines = "\n".join(texts_in(value, keys)).split("\n")
        return [Item(line, True, True) for line in lines if re.search(r"\w", line)]
    rows = read_table(text.split("\n"))
    if rows is not None:
        return [Item(unwrap(cell), True, True) for cell in text_column(rows)]
    items: list[Item] = []
    outer = 0  # spaces before the last item that was kept
    for line in with_bullets(text.split("\n")):
        item = _item(line)
        if item is None:
            continue
        is_below = bool(items) and item.listed and indent_of(line) > outer + 1
        if is_below and _is_asked(items[-1].text) and not _is_asked(item.text):
            continue  # a remark on the question above
        if not is_below:
            outer = indent_of(line)
        items.append(item)
    return items


def _is_asked(text: str) -> bool:
    return text.rstrip("\"'”’」*_ ").endswith(("?", "？"))


def _item(line: str) -> Item | None:
    """Return the item of a line. None: a heading, a remark, an announcement or a blank line."""
    text, is_listed = split_bullet(line)
    label = LABEL.match(text)
    content = text[label.end() if label else 0 :].strip().removesuffix("**").strip()
    if not re.search(r"\w", content):
        return None
    if line.startswith("#") and not content.endswith(("?", "？")):
        return None
    if content.endswith((":", "：")) or is_no_answer(content) or REMARK.match(line):
        return None
    is_numbered = label is not None and re.search(r"[\d一二三四五]", label[0]) is not None
    return Item(unwrap(content), is_listed or is_numbered, label is not None)


def unique(texts: Iterable[str]) -> list[str]:
    """Return texts without duplicates. Case and spaces are ignored."""
    first: dict[str, str] = {}
    for text in texts:
        first.setdefault(normalize(text), text)
    return list(first.values())


def normalize(text: str) -> str:
    """Return a key for comparison: width, case and spaces are ignored."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
