"""Parse the JSON in a model's answer: in prose, cut off, or written like Python."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any

from .cleaning import clean, is_no_answer, usable_text

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

_OPENING = re.compile(r"[\[{]")

_MAX_OPENINGS = 300

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
        if len(_OPENING.findall(broken)) > _MAX_OPENINGS:
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
