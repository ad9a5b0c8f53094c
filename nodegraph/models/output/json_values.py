"""Clean a model's answer, and parse the JSON in it: in prose, cut off, or written like Python."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any

MAX_ANSWER_LENGTH = 100_000
"""Characters of an answer that are parsed, thoughts left out: several times what models write."""

THOUGHT_TAG = r"(?:think(?:ing)?|thoughts?|reasoning|reflection)"

_MAX_OPENINGS = 5

_THOUGHTS = re.compile(rf"<({THOUGHT_TAG})>.*?(?:</\1>|\Z)", re.S | re.I)

_THOUGHTS_END = re.compile(rf"\A.*</{THOUGHT_TAG}>", re.S | re.I)

_SPECIAL = re.compile(r"<\|[a-z_]{2,20}\|>|</?(?:answer|output|response|result)>|</s>", re.I)

_FENCE = re.compile(r"^[ \t]*(?:```|~~~)(?:[ \t]*[\w+-]+)?[ \t]*$\n?", re.M)

# Patterns here are tried at few positions and have no two repetitions of the same characters side
# by side: an answer may be a million spaces.
_YES_EN = r"(?:sure(?:\ thing)?|certainly|of\ course|okay|ok|absolutely|great)"

_YES_ZH = r"(?:好的?|当然(?:可以)?|没问题|可以的?)"

# A polite word at the start: "Sure!", "好的，"
_POLITE = re.compile(
    rf"""\s*(?:{_YES_EN}(?:\s*[,.!]+\s*|\s+(?=here\b|below\b|i\b))|{_YES_ZH}[，,。！!]+\s*)+""",
    re.I | re.X,
)

# An announcement on the same line as the answer: "Here is the question: ...", "可以改写为：..."
_LEADS = re.compile(
    r"""\s*(?:here(?:'s|’s|\s+is|\s+are)|below\ (?:is|are)|(?:i|you)\ (?:would|could|can)
    |以下|下面|这是|您可以|你可以|(?:原|该|这个)?问题可以|可以)[^\n:：?？]{0,60}[:：]\s*""",
    re.I | re.X,
)

# A first line that is only an announcement: "Sure! Here are the keywords:", "以下是摘要："
_OPENING = re.compile(
    rf"""(?:{_YES_EN}[,.!]*
    | (?:here(?:'s|’s|\ is|\ are|\ you\ (?:are|go))
      |below|the\ following|(?:these|this)\ (?:are|is)|based\ on
      |i(?:'ve|’ve|\ have)\ |{_YES_EN}\b)
      [^\n]{{0,200}}?[:：]
    | {_YES_ZH}[，,。！!]?
    | (?:{_YES_ZH}[，,。！!]?\s{{0,3}})?
      (?:以下|下面|根据|这是|这里|基于|从)[^\n。]{{0,80}}?[:：]
    )[*_]*[ \t]*(?:\n|\Z)""",
    re.I | re.X,
)

_TASK = (
    r"\b(?:key\ ?(?:words?|phrases?)|questions?|q(?:\ ?&\ ?)?a|pairs?|summar(?:y|ies)|quer(?:y|ies)"
    r"|passages?|versions?)\b|摘要|总结|概要|关键词|关键字|问题|问答|问句|段落"
)

_NAMES_TASK = re.compile(rf"[^\n:：]*(?:{_TASK})[^\n:：]*[:：]", re.I | re.X)

_CLOSING = re.compile(
    r"""[ \t]*(?:let\ me\ know\b|i\ hope\b|hope\ this\b|feel\ free\b|please\ let\ me\b
    |if\ you\ (?:have|need|want|would|'d)\b|希望(?:这|以上|对您|对你|能)|请告诉我
    |如果?有(?:其他|任何|更多)|如果?(?:您|你)(?:有|需要|还|想))""",
    re.I | re.X,
)

_REFUSAL = re.compile(
    r"""(?:i(?:'|’)?m|i\ am)\ (?:(?:very\ |so\ )?sorry|unable)\b
    | sorry,?\ (?:but\ )?i\b | i\ apologi[sz]e\b | unfortunately,?\ i\b
    | as\ an\ (?:ai|artificial)\b
    | i\ (?:can(?:'|’)t|cannot|can\ not|won(?:'|’)t)\ (?:help|assist|provide|generate|answer|fulfil
      |comply|create|summari|extract|do)
    | (?:非常|很)?(?:抱歉|对不起|遗憾)[，,。！!\s]
    | 作为(?:一个|一名|一款)?(?:ai|人工智能|大?语言模型)
    | 我(?:无法|不能|没法)(?:提供|回答|生成|总结|完成|提取|满足|为您|为你|处理)""",
    re.I | re.X,
)

_CONTENT = (
    "key ?words?|key ?phrases?|questions?|q ?& ?a|qa|pairs?|question-answer pairs?|summary|content"
)

_NONE = re.compile(
    rf"""(?:none|no|no_answer|nil|n/?a|null|nothing|empty|无|无答案|没有|暂无|空
    | (?:there\ (?:is|are)\ )?(?:no|not\ any|nothing)\b[^\n]{{0,30}}\b(?:{_CONTENT})\b[^\n]{{0,60}}
    | (?:[^\n，。]{{0,12}}(?:没有|不存在|未包含|未提供|未找到)|无)
      (?:可|任何|可以|能够|明显|有效|相关|的|提取|出|供|用于|提问|生成|回答)*
      (?:关键词|关键字|问题|问答对?|摘要|内容|信息)[^\n]{{0,20}})""",
    re.I | re.X,
)

_PUNCTUATION = " \t\r\n.。!！*_`\"'“”‘’「」()（）[]{}<>#-:："


def clean(answer: str) -> str:
    """Return an answer without thoughts, code fences, opening and closing phrases.

    An opening phrase with nothing after it stays where it may be the answer: "可以", "Sure".

    Example:
        >>> clean("<think>Hm.</think>Sure! Here is the summary:\\n\\nTea is a drink.")
        'Tea is a drink.'
        >>> clean("Sure! Here is the summary: Tea is a drink."), clean("可以")
        ('Tea is a drink.', '可以')
    """
    text = answer.replace("\r\n", "\n").replace("\r", "\n").replace("\ufeff", "")
    text = _THOUGHTS_END.sub("", _THOUGHTS.sub("", text))  # some have no opening tag
    text = _FENCE.sub("", _SPECIAL.sub("", text)).strip()
    for _ in range(_MAX_OPENINGS):
        opening = _OPENING.match(text)
        if opening is None:
            break
        remaining = text[opening.end() :].lstrip()
        if not remaining and not opening[0].rstrip(" \t\n*_").endswith((":", "：")):
            break
        text = remaining
    text = _strip_opening(text)
    before, line_end, last = text.rpartition("\n")
    return before.rstrip() if line_end and _CLOSING.match(last) else text


def strip_lead(line: str) -> str:
    """Return a line without the polite phrase before its content.

    ``clean`` is more careful, for verdicts: of "可以，因为..." this one leaves only the reason.

    Example:
        >>> strip_lead("Sure! Here is a clearer one: How long is it?")
        'How long is it?'
    """
    polite = _POLITE.match(line)
    line = line[polite.end() :] if polite else line
    leads = _LEADS.match(line)
    return line[leads.end() :] if leads else line


def is_opening(text: str) -> bool:
    """Check whether a cleaned answer is only a polite opening.

    Example:
        >>> is_opening("Certainly!"), is_opening("Certainly not.")
        (True, False)
    """
    return _OPENING.fullmatch(text) is not None


def _strip_opening(text: str) -> str:
    """Return a text without an opening in front of its first line.

    Only a polite one, or one that names the task: "Here is a river: ..." may be content.
    """
    polite = _POLITE.match(text)
    start = polite.end() if polite else 0
    leads = _LEADS.match(text, start)
    if leads is None or not (polite or _NAMES_TASK.match(leads[0])):
        return text
    return text[leads.end() :] or text


def usable_text(answer: str) -> str:
    """Return a cleaned answer, cut where it is too long.

    Raises:
        ValueError: If it is empty, or a refusal.
    """
    text = clean(answer)[:MAX_ANSWER_LENGTH]
    check_answer("" if is_opening(text) else text)
    return text


def check_answer(text: str) -> None:
    """Check that a cleaned answer is not empty.

    Raises:
        ValueError: If it is, or the model refused.
    """
    if not text.strip(_PUNCTUATION) and text not in ("[]", "{}"):
        raise ValueError("the answer is empty")
    if _REFUSAL.match(text):
        raise ValueError("the model refused")


def is_no_answer(text: str) -> bool:
    """Check whether a cleaned answer means that there is nothing to write.

    Example:
        >>> [is_no_answer(text) for text in ("None.", "没有可提取的关键词。", "No trains run.")]
        [True, True, False]
    """
    if text in ("[]", "{}"):
        return True
    text = unicodedata.normalize("NFKC", text).strip(_PUNCTUATION)
    return not text.endswith("?") and _NONE.fullmatch(text) is not None


_MAX_STARTS = 64  # brackets at which JSON may begin

_MAX_DEPTH = 40

_FOLLOWING = re.compile(r"[ \t\r\n,]*(?=[{\[\"])")

_UNQUOTED_KEY = r"\w[\w -]{0,40}[\"'”]?[ \t]{0,8}[:=：]"

_START = re.compile(rf"\[\s*[\"'“\[{{]|\{{\s*(?:[\"'“\[{{/#]|{_UNQUOTED_KEY}|\Z)")

_UNQUOTED_OBJECT = re.compile(r"[\"“]\w[\w -]{0,40}[\"”]\s{0,9}[:：]\s{0,9}[\[{\"“]")

# After some words in the first line, as in "Here they are: {...}", or at the beginning of any line.
_LINE_START = re.compile(
    r"(?:\A[\w ,'’]{1,60}[:：]|^)[ \t]*"
    rf"(?P<json>\[\s*[\"'“{{]|\{{\s*(?:[\"'“]|{_UNQUOTED_KEY}))",
    re.M,
)

_MAX_REPAIR = 10_000  # characters

_BRACKET = re.compile(r"[\[{]")

_MAX_BRACKETS = 300

_MAX_REPAIRS = 3  # brackets at which broken JSON may begin

_STRUCTURE = re.compile(
    r"[\"'”]\s*[:\]}]|[{\[]\s*[\"'“]|[\]}]\s*[,\]}]|\A\s*[{\[]|[?？][\"'”]\s*[,;]"
)


def parse_json(answer: str) -> Any:
    """Return the JSON value in an answer, with or without prose around it.

    Of a list that was cut off, the complete items. For several values in a row, a list.

    Raises:
        ValueError: If there is none.

    Example:
        >>> parse_json('Here you are:\\n```json\\n["tea", "wat')
        ['tea']
    """
    text = clean(answer)
    starts = [bracket.start() for bracket in islice(re.finditer(r"[\[{]", text), _MAX_STARTS)]
    for start in starts:
        value = json_at(text, start, repair=False)
        if value is not None:
            return value
    for start in [start for start in starts if looks_like_json(text, start)][:_MAX_REPAIRS]:
        value = _repaired(text, start)
        if value is not None:
            return value
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError(f"there is no JSON in the answer {answer!r:.200}") from None
    if _is_deep(value):
        raise ValueError(f"the JSON in the answer {answer!r:.200} is nested too deeply")
    return value


def parse_answer(answer: str) -> tuple[str | None, Any]:
    """Return the cleaned text, None where it says there is nothing, and its JSON, if it is JSON.

    Raises:
        ValueError: If it is empty, a refusal, or broken JSON.
    """
    text = usable_text(answer)
    if is_no_answer(text):
        return None, None
    value = json_or_words(text) if looks_like_json(text) else None
    return (None, None) if value is not None and _is_empty(value) else (text, value)


def looks_like_json(text: str, start: int = 0) -> bool:
    """Check whether a text has what begins like a JSON list or object at a position."""
    return _START.match(text, start) is not None or _UNQUOTED_OBJECT.match(text, start) is not None


def find_json(text: str) -> Any:
    """Return the JSON that is a cleaned answer, or begins on a line of it. None without one."""
    if _UNQUOTED_OBJECT.match(text):
        text = f"{{{text}"
    if looks_like_json(text):
        return json_at(text)
    start = _LINE_START.search(text)
    return None if start is None else json_at(text, start.start("json"))


def json_or_words(text: str) -> Any:
    """Return the JSON of a cleaned answer, None of one in words.

    Raises:
        ValueError: If it begins like JSON and cannot be read.
    """
    value = find_json(text)
    if value is None and looks_like_json(text):
        raise ValueError("the answer begins like JSON and cannot be read")
    return value


def json_at(text: str, start: int = 0, *, repair: bool = True) -> Any:
    """Return the JSON value that begins at a position. None where there is no usable one.

    Unless ``repair`` is False, broken JSON is repaired by ``json-repair``: lost braces and commas,
    bare keys, comments, literals of Python.

    Example:
        >>> json_at('{questions: ["Why?" "When?"], // two')
        {'questions': ['Why?', 'When?']}
    """
    decoder = json.JSONDecoder(strict=False)
    try:
        value, end = decoder.raw_decode(text, start)
    except (ValueError, RecursionError):
        value = _repaired(text, start) if repair and looks_like_json(text, start) else None
        if value is None and text.startswith("[", start):
            value = _values(decoder, text, start + 1) or None
    else:
        if isinstance(value, dict) and (more := _values(decoder, text, end)):  # one a line
            value = [value, *more]
    return None if _is_deep(value) else value


def texts_in(value: Any, keys: Iterable[str]) -> Iterator[str]:
    """Yield the texts of a JSON value. For an object only that under the first key it has."""
    if isinstance(value, str):
        yield value.strip()
    elif isinstance(value, list):
        for item in value:
            yield from texts_in(item, keys)
    elif isinstance(value, Mapping):
        selected = value_of(value, keys)
        for item in value.values() if selected is None else [selected]:
            yield from texts_in(item, keys)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)


def value_of(record: Mapping[Any, Any], keys: Iterable[str]) -> Any:
    """Return an object's value under the first of some keys, None where it has none of them.

    Case does not count, and neither does the difference between spaces, hyphens and underscores.

    Example:
        >>> value_of({"Next question": "Why?"}, ("question", "next_question"))
        'Why?'
    """
    by_key = {re.sub(r"[\s-]", "_", str(key).strip().casefold()): record[key] for key in record}
    return next((by_key[key] for key in keys if key in by_key), None)


def _is_empty(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(map(_is_empty, value.values()))
    return isinstance(value, list) and not value


def _is_deep(value: Any, depth: int = _MAX_DEPTH) -> bool:
    """Check whether a value is nested too deeply for recursive functions."""
    if not isinstance(value, list | dict):
        return depth == 0
    children = value.values() if isinstance(value, dict) else value
    return depth == 0 or any(_is_deep(child, depth - 1) for child in children)


def _repaired(text: str, start: int) -> Any:
    """Return a list or object that json-repair makes of broken JSON. None of what is in doubt.

    In doubt is what has the marks of JSON in its texts: it was cut at the wrong place.
    """
    from json_repair import repair_json  # takes long to import, and is seldom needed

    try:
        broken = text[start : start + _MAX_REPAIR].rstrip()
        if len(_BRACKET.findall(broken)) > _MAX_BRACKETS:
            return None  # its time grows with the square of them
        if not _is_closed(broken):  # cut off in a text or a key, which is left out
            broken = broken[: max(map(broken.rfind, "]}")) + 1]
            if not broken:
                return None
        value: Any = repair_json(broken, return_objects=True, skip_json_loads=True)
    except Exception:  # of its own, whatever it stumbles over
        return None
    if not isinstance(value, list | dict) or not value or _is_deep(value):
        return None
    return None if any(map(_STRUCTURE.search, _all_texts(value))) else value


def _is_closed(broken: str) -> bool:
    """Return whether broken JSON ends with a text that has its quotation mark, or a bracket."""
    last_quote = max(map(broken.rfind, "\"'”"))
    return broken.endswith(tuple("\"'”")) or max(map(broken.rfind, "]}")) > last_quote


def _all_texts(value: Any) -> Iterator[str]:
    """Yield the texts and keys of a value."""
    if isinstance(value, dict):
        yield from map(str, value)
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _all_texts(item)
    elif isinstance(value, str):
        yield value


def _values(decoder: json.JSONDecoder, text: str, start: int) -> list[Any]:
    """Return the values from a position on, up to the first incomplete one."""
    values: list[Any] = []
    with suppress(ValueError, RecursionError):
        while following := _FOLLOWING.match(text, start):
            value, start = decoder.raw_decode(text, following.end())
            values.append(value)
    return values
