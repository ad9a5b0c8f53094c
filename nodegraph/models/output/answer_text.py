"""Clean a model's answer, and read the JSON or the lines in it."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

MAX_ANSWER_LENGTH = 100_000
"""The length in characters after which an answer is cut, without thoughts."""

THOUGHT_TAG = r"(?:think(?:ing)?|thoughts?|reasoning|reflection)"

# Some models omit the opening tag.
_THOUGHTS = re.compile(rf"\A.*</{THOUGHT_TAG}>|<{THOUGHT_TAG}>.*\Z", re.S | re.I)

_MARKUP = re.compile(
    r"^[ \t]*(?:```|~~~)[ \t]*[\w+-]*[ \t]*$\n?|<\|\w{2,20}\|>|</?answer>|</s>", re.M
)

# "Sure! Here are the keywords:", "好的，以下是摘要："
_OPENING = re.compile(
    r"(?:(?:sure|certainly|of course|ok(?:ay)?|好的|当然(?:可以)?)(?:\s?[,.!，。！]\s{0,9}|\Z))?"
    r"(?:(?:here(?:['’]s| is| are)|以下是?|下面是?|这是)[^\n:：?？]{0,60}[:：]\s{0,9})?",
    re.I,
)

_CLOSING = re.compile(
    r"\n\s{0,9}(?:let me know|i hope|feel free|would you|希望|如果)[^\n]*\Z", re.I
)

_REFUSAL = re.compile(
    r"(?:unfortunately,? )?(?:(?:i['’]?m|i am) (?:very |so )?(?:sorry|unable)|sorry,? (?:but )?i\b"
    r"|i (?:can['’]?t|cannot|apologi[sz]e)\b|as an (?:ai|artificial)\b)|(?:非常|很)?(?:抱歉|对不起)"
    r"|作为一?[个名]?(?:ai|人工智能|大?语言模型)|我(?:无法|不能)(?:提供|回答|生成|完成)",
    re.I,
)

_NONE = re.compile(r"none|no|no[ _]answer|nil|n/?a|null|nothing|empty|无|无答案|没有|暂无|空", re.I)

_PUNCTUATION = " \t\r\n.。!！*_`\"'“”‘’「」()（）[]{}<>#-:："

# At the start of a line, also after a few words. "[1] Tea" and "{name}" are not JSON.
_JSON_START = re.compile(
    r"^(?:[\w ,'’!]{1,60}[:：])?[ \t]*(\{(?!\w+\})|\[(?!\s{0,9}[\w-]{1,60}\s{0,9}\]\s{0,9}\S))",
    re.M,
)

_MAX_BRACKETS = 300
"""The number of brackets after which JSON is not read: json-repair's time grows with its square."""

_MAX_REPAIR = 10_000  # characters of broken JSON that are repaired

TEXT_KEYS = (
    *("questions", "sub_questions", "queries", "names", "rewritten_question", "question", "query"),
    *("sub_question", "passage", "text", "answer", "子问题", "改写后的问题", "问题", "答案"),
)
"""The keys of texts in JSON."""


def clean(answer: str) -> str:
    """Return an answer without thoughts, code fences and the usual opening and closing phrases.

    Example:
        >>> clean("<think>Hm.</think>Sure! Here is the summary:\\n\\nTea is a drink.")
        'Tea is a drink.'
    """
    text = answer.replace("\r\n", "\n").replace("\r", "\n").replace("\ufeff", "")
    text = _MARKUP.sub("", _THOUGHTS.sub("", text)).strip()
    opening = _OPENING.match(text)
    return _CLOSING.sub("", text[opening.end() if opening else 0 :])


def usable_text(answer: str) -> str:
    """Return a cleaned answer, cut to ``MAX_ANSWER_LENGTH``.

    Raises:
        ValueError: If the answer is empty, or a refusal.
    """
    text = clean(answer)[:MAX_ANSWER_LENGTH].strip()
    if not text.strip(_PUNCTUATION) and text not in ("[]", "{}"):
        raise ValueError("the answer is empty")
    if _REFUSAL.match(text):
        raise ValueError("the model refused")
    return text


def is_no_answer(text: str) -> bool:
    """Return whether a cleaned answer means "nothing to write".

    Example:
        >>> [is_no_answer(text) for text in ("None.", "无", "[]", "No trains run.")]
        [True, True, True, False]
    """
    words = unicodedata.normalize("NFKC", text).strip(_PUNCTUATION)
    return text in ("[]", "{}") or _NONE.fullmatch(words) is not None


def find_json(text: str) -> Any:
    """Return the JSON in a cleaned answer, None for an answer in words.

    Broken JSON is repaired by ``json-repair``. A text that was cut off is left out.

    Raises:
        ValueError: If the answer has JSON that cannot be read.

    Example:
        >>> find_json('Here: {questions: ["Why?" "When?"], // two\\n}'), find_json("[1] Tea.")
        ({'questions': ['Why?', 'When?']}, None)
    """
    found = _JSON_START.search(text)
    if found is None:
        return None
    body = text[found.start(1) : max(map(text.rfind, "]}")) + 1]
    if not 1 <= body.count("[") + body.count("{") <= _MAX_BRACKETS:
        raise ValueError("the JSON in the answer is cut off, or too long")
    with suppress(ValueError, RecursionError):
        return json.loads(body, strict=False)
    from json_repair import repair_json  # imports slowly, and is seldom needed

    value: Any = None
    with suppress(Exception):  # an error of json-repair itself
        # The body may contain several values.
        value = repair_json(f"[{body[:_MAX_REPAIR]}]", return_objects=True)
    if not value or not isinstance(value[0], list | dict):
        raise ValueError("the answer begins like JSON and cannot be read")
    return value[0] if len(value) == 1 else value


def texts_in(value: Any, keys: Iterable[str]) -> Iterator[str]:
    """Yield the texts of a JSON value: of an object those under the first key that it has."""
    if isinstance(value, list):
        for item in value:
            yield from texts_in(item, keys)
    elif isinstance(value, Mapping):
        selected = value_of(value, keys)
        nested = [item for item in value.values() if isinstance(item, list | Mapping)]
        yield from texts_in(nested if selected is None else selected, keys)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield str(value).strip()


def objects_in(value: Any) -> Iterator[Mapping[Any, Any]]:
    """Yield the objects in a JSON value, outer objects first."""
    if isinstance(value, Mapping):
        yield value
    for item in value.values() if isinstance(value, Mapping) else value:
        if isinstance(item, list | Mapping):
            yield from objects_in(item)


def value_of(record: Mapping[Any, Any], keys: Iterable[str]) -> Any:
    """Return the value of an object under the first of some keys, None without any.

    Case is ignored, and so is the difference between spaces, hyphens and underscores.

    Example:
        >>> value_of({"Next question": "Why?"}, ("question", "next_question"))
        'Why?'
    """
    by_key = {re.sub(r"[\s-]", "_", str(key).strip().casefold()): record[key] for key in record}
    return next((by_key[key] for key in keys if key in by_key), None)


def read_json(answer: str, keys: Sequence[str]) -> tuple[str, Any]:
    """Return a cleaned answer and its JSON, None for an answer in words.

    The text is empty for an answer such as NONE, [] or an empty list under one of the keys.

    Raises:
        ValueError: If the answer is empty, a refusal, or has JSON that cannot be read.

    Example:
        >>> read_json('{"questions": ["Why?"]}', ("questions",))[1], read_json("NONE", ())
        ({'questions': ['Why?']}, ('', None))
    """
    text = usable_text(answer)
    value = find_json(text)
    is_empty_list = isinstance(value, Mapping) and value_of(value, keys) == []
    return ("", None) if is_no_answer(text) or is_empty_list else (text, value)


def read_text(answer: str, keys: Sequence[str] = TEXT_KEYS) -> str:
    """Return a cleaned answer or the texts of its JSON. Raises the errors of ``read_json``."""
    text, value = read_json(answer, keys)
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


def read_items(answer: str, keys: Sequence[str] = TEXT_KEYS) -> list[Item] | None:
    """Return the lines of an answer that have content. None: an answer such as NONE or [].

    Headings, remarks and announcements are left out. Raises the errors of ``read_json``.

    Example:
        >>> [tuple(item) for item in read_items("Two:\\n1. **Query**: How long is it?")]
        [('How long is it?', True, True)]
    """
    text, value = read_json(answer, keys)
    if not text:
        return None
    if value is not None:
        lines = "\n".join(texts_in(value, keys)).split("\n")
        return [Item(line, True, True) for line in lines if re.search(r"\w", line)]
    items = []
    for line in text.split("\n"):
        item, is_listed = split_bullet(line)
        label = _LABEL.match(item)
        content = item[label.end() if label else 0 :].strip().removesuffix("**").strip()
        is_heading = line.startswith("#") and not content.endswith(("?", "？"))
        is_empty = content.endswith((":", "：")) or is_no_answer(content) or _REMARK.match(line)
        if re.search(r"\w", content) and not is_heading and not is_empty:
            is_numbered = label is not None and re.search(r"[\d一二三四五]", label[0]) is not None
            items.append(Item(unwrap(content), is_listed or is_numbered, label is not None))
    return items


# Spaces are limited in patterns: an answer may be a million spaces.
_NUMBER = r"(?:\(?\d{1,3}[.)](?!\d)|[（(]?\d{1,3}[、）]|[一二三四五六七八九十]{1,3}、|[①-⑳])"

_BULLET = re.compile(
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


_LABEL = label_pattern(
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

_WRAPPED = re.compile(
    r"""\*\*([^*]+)\*\*|"([^"]+)"|'([^']+)'|“([^“”]+)”|‘([^‘’]+)’|「([^「」]+)」|『([^『』]+)』|`([^`]+)`"""
)


def without_label(text: str, label: re.Pattern[str] = _LABEL) -> str:
    """Return a text without the label at its start."""
    found = label.match(text)
    return text[found.end() :] if found else text


def split_bullet(line: str) -> tuple[str, bool]:
    """Return a line without its bullet or number, and whether it had one."""
    bullet = _BULLET.match(line)
    sign = bullet[0].strip(" \t*_#>") or re.match(r"\s*\*\s", line) if bullet else None
    return line[bullet.end() if bullet else 0 :].strip(), bool(sign)


def strip_markup(text: str) -> str:
    """Return an item without its number, bold, quotes and full stop."""
    text = split_bullet(text)[0].strip(" \t*_`")
    text = unwrap(text if text.endswith(("...", "…")) else text.rstrip("。,，;；:：*_`"))
    return text[:-1] if re.search(r"[^.\s]{2}\.$", text[-3:]) else text


def unwrap(text: str) -> str:
    """Return a text without the quotes or bold around all of it."""
    while match := _WRAPPED.fullmatch(text := text.strip()):
        text = "".join(filter(None, match.groups()))
    return text


def unique(texts: Iterable[str]) -> list[str]:
    """Return texts without duplicates. Case and spaces are ignored."""
    first: dict[str, str] = {}
    for text in texts:
        first.setdefault(normalize(text), text)
    return list(first.values())


def normalize(text: str) -> str:
    """Return a key for comparison: width, case and spaces are ignored."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
