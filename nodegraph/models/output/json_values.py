"""Find and parse the JSON in a model's answer, and extract the texts from it."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from .chinese_script import chinese_pattern, simplified

# JSON may begin at the start of a line, or after a few words. "[1] Tea" and "{name}" are not JSON.
_JSON_START = re.compile(
    r"^(?:[\w ,'’!\"]{1,60}[:：=])?[ \t]*"
    r"(\{(?!\w+\})|\[(?!\s{0,9}[\w -]{1,60}\s{0,9}\]\s{0,9}[:：]?\s?[^\s,\]}])"
    r"(?!\s{0,9}[^\W\d]{1,20}[:：]\s?[^\s{\[]))",
    re.M,
)

# An object of questions or queries after any words.
_OBJECT_IN_WORDS = re.compile(
    r"^[\w ,'’!.]{1,80} "
    r"(\{\s{0,9}\"\w{0,20}(?:quer|question|step|phras|rewrit)\w{0,20}\"\s?:\s?\[)",
    re.M | re.I,
)

_MAX_BRACKETS = 300
"""The maximum number of brackets in JSON.

The running time of json-repair is quadratic in this number.
"""

_MAX_REPAIR = 10_000  # maximum number of characters of broken JSON that are repaired

_QUOTED = r"(?:\"[^\"\n]{1,400}\"|'[^'\n]{1,400}'|“[^“”\n]{1,400}”)"

# A Python tuple, or quoted texts that are separated by commas.
_QUOTED_LIST = re.compile(rf"[(\[{{]?\s*{_QUOTED}(?:\s*[,;，、；]\s*{_QUOTED})+\s*[,;]?\s*[)\]}}]?")

# A call with a single text, such as search("...") in a list.
_CALL = re.compile(
    r"(?:\w{1,20}\.)?[a-z_]{1,30}\((?:\w{1,20}\s?=\s?)?(\"[^\"\n]{1,400}\"|'[^'\n]{1,400}')\)", re.I
)

# A Python object whose arguments contain questions: 'Plan(items=[Part(question="...")])'.
_TEXT_ARGUMENT = re.compile(rf"\b(?:sub_?)?(?:question|query|text)\s?=\s?({_QUOTED})", re.I)

_PYTHON_OBJECTS = re.compile(
    r"\[?\s{0,9}[A-Z]\w{1,40}\((?=[^\n]{0,300}?(?:question|query|text)\s?=\s?[\"'])[^\n]{1,5000}\)\s{0,9}\]?"
)

# Matches '"tool": "plays", "question": "..."' without braces.
_MEMBERS = re.compile(r"\s{0,9}\"[\w -]{1,40}\"\s?:\s?\"[^\n]{1,2000}\"\s?,?\s{0,9}")

_STRING = re.compile(r"\"(?:[^\"\\]|\\.)*\"", re.S)

TEXT_KEYS = (
    "questions",
    "sub_questions",
    "queries",
    "names",
    "rewritten_question",
    "question",
    "query",
    "sub_question",
    "passage",
    "text",
    "answer",
    "子问题",
    "改写后的问题",
    "问题",
    "答案",
)
"""The keys of JSON objects under which texts are expected."""

# Matches "q1", "question_2", "sub-question 3", "4" and "子问题一".
_NUMBERED_KEY = chinese_pattern(
    r"(?:(?:sub_?)?(?:questions?|quer(?:y|ies)|q|phrasings?|alternatives?|variants?|versions?"
    r"|options?|items?|steps?|rewrites?)_?|(?:子)?(?:问题|查询|问法|改写))?_?"
    r"(?:\d{1,3}|[a-h]|[一二三四五六七八九十]{1,2})"
)

_QUERY_KEY = chinese_pattern(
    r".*(?:quer(?:y|ies)|question|search|correct(?:ed)?$|revised|improved|refined|clarified"
    r"|(?:phras|rewrit|reformulat)\w{0,6}|alternative|varia(?:nt|tion)|keyword|hypothetical|passage"
    r"|document|问|查询|改写|检索|段落)"
)

_OTHER_KEY = chinese_pattern(
    r"(?:original|initial|user|input|old|first_?seen).*|.*(?:reason|explanation|rationale|thought"
    r"|analysis|confidence|language|score|type|id|note|comment|intent|status|tool|source|change|correction|edit|typo)s?"
    r"|原.*|.*(?:理由|原因|说明|解释|备注|语言|分析|思考|工具)"
)


def find_json(text: str) -> Any:
    """Parse the JSON in a cleaned answer. Return None if the answer does not contain JSON.

    Invalid JSON is repaired with ``json-repair``. A text that was truncated is left out.

    Raises:
        ValueError: If the answer contains JSON that cannot be parsed.

    Example:
        >>> find_json('Here: {questions: ["Why?" "When?"], // two\\n}'), find_json("[1] Tea.")
        ({'questions': ['Why?', 'When?']}, None)
        >>> find_json('["Why?", "When?", "Wh')
        ['Why?', 'When?']
    """
    text = _encoded_json(text)
    if text[:1] == "[":
        text = _CALL.sub(r"\1", text)
    if _PYTHON_OBJECTS.fullmatch(text):
        return [found[1][1:-1] for found in _TEXT_ARGUMENT.finditer(text)]
    if _QUOTED_LIST.fullmatch(text.strip()):
        return _quoted_texts(text)
    lines = [line for line in text.split("\n") if line.strip()]
    if all(_MEMBERS.fullmatch(line) for line in lines):
        text = "\n".join(f"{{{line.strip().rstrip(',')}}}" for line in lines)
    found = _JSON_START.search(text) or _OBJECT_IN_WORDS.search(text)
    if found is None:
        return None
    body = _complete_part(text[found.start(1) :])
    if body and _is_in_words(body, text):
        return None
    if not 1 <= body.count("[") + body.count("{") <= _MAX_BRACKETS:
        raise ValueError("the JSON in the answer is cut off, or too long")
    with suppress(ValueError, RecursionError):
        return json.loads(body, strict=False)
    with suppress(ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        # Python tuples and dictionaries are converted to lists and objects.
        return json.loads(json.dumps(ast.literal_eval(body[:_MAX_REPAIR])))
    from json_repair import repair_json  # This package is slow to import and seldom needed.

    value: Any = None
    with suppress(Exception):  # an error in json-repair itself
        # The text may contain several JSON values.
        value = repair_json(f"[{body[:_MAX_REPAIR]}]", return_objects=True)
    if not value or not isinstance(value[0], list | dict):
        raise ValueError("the answer begins like JSON and cannot be read")
    if len(value) == 1:
        return value[0]
    return value


def _encoded_json(text: str) -> str:
    """Return the JSON in a JSON string. Any other text is returned unchanged."""
    if re.match(r"\"\s?[\[{]", text) is None:
        return text
    with suppress(ValueError, RecursionError):
        value = json.loads(text, strict=False)
        if isinstance(value, str):
            return value
    return text


def _is_in_words(body: str, text: str) -> bool:
    """Return whether brackets are part of a line of prose, as in ``{{ user.name }} in Jinja``."""
    rest = text.partition(body)[2]
    if "\n" in text.strip() or not re.search(r"\w", rest):
        return False
    return re.search("[\"':,]", body) is None


def _quoted_texts(text: str) -> list[str]:
    """Return the texts in quotation marks that are separated by commas."""
    with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
        value = ast.literal_eval(text.strip())
        if isinstance(value, tuple | list) and all(isinstance(item, str) for item in value):
            return [*value]
    return [item[1:-1] for item in re.findall(_QUOTED, text)]


def _complete_part(body: str) -> str:
    """Remove a truncated string from the end of JSON, and any text after the JSON."""
    end = max(body.rfind("]"), body.rfind("}")) + 1
    rest = body[end:]
    strings = [*_STRING.finditer(body[:_MAX_REPAIR])]
    while strings and body[strings[-1].end() :].lstrip().startswith(":"):
        strings.pop()  # The value of this key was truncated.
    is_cut = _is_open(body[:_MAX_REPAIR])
    if not is_cut or not strings or strings[-1].end() <= end:
        return body[:end]
    if "\n\n" in rest:
        return body[:end]
    return body[: strings[-1].end()]


def _is_open(body: str) -> bool:
    """Return whether a bracket outside of strings is not closed."""
    bare = _STRING.sub("", body)
    opened = bare.count("[") + bare.count("{")
    closed = bare.count("]") + bare.count("}")
    return opened > closed


def texts_in(value: Any, keys: Iterable[str]) -> Iterator[str]:
    """Yield the texts in a JSON value.

    For objects, the first of the given keys that exists is used.
    """
    keys = tuple(keys)
    if isinstance(value, list):
        for item in value:
            yield from texts_in(item, keys)
    elif isinstance(value, Mapping):
        selected = value_of(value, keys)
        yield from texts_in(_unnamed_texts(value) if selected is None else selected, keys)
    elif isinstance(value, str) and value.lstrip().startswith(("{", "[")):
        yield from _texts_in_text(value, keys)
    elif isinstance(value, str | int | float) and not isinstance(value, bool):
        yield str(value).strip()


def _texts_in_text(text: str, keys: Sequence[str]) -> Iterator[str]:
    """Yield the texts of JSON that is encoded in a JSON string, such as the arguments of a call."""
    with suppress(ValueError, RecursionError):
        value = json.loads(text, strict=False)
        if isinstance(value, list | Mapping):
            yield from texts_in(value, keys)
            return
    yield text.strip()


def _unnamed_texts(record: Mapping[Any, Any]) -> list[Any]:
    """Return the texts in an object without a known key that are suitable as queries."""
    kept: list[Any] = []
    others: list[Any] = []
    texts: list[str] = []
    for key, value in record.items():
        name = _key(key)
        if isinstance(value, list | Mapping):
            is_other = _OTHER_KEY.fullmatch(name) and not _QUERY_KEY.fullmatch(name)
            (others if is_other else kept).append(value)
        elif not isinstance(value, str):
            continue
        elif value.lstrip().startswith(("{", "[")):
            kept.append(value)  # the value is JSON in a JSON string
        elif _NUMBERED_KEY.fullmatch(name):
            kept.append(value)
        elif not _OTHER_KEY.fullmatch(name):
            named = kept if _QUERY_KEY.fullmatch(name) else texts
            named.append(value)
    keys = [str(key) for key in record]
    asked = [text for text in texts if text.rstrip().endswith(("?", "？"))]
    if len(asked) > 1 and not any(text.rstrip().endswith((".", "。")) for text in texts):
        asked = texts  # the keys are the styles of phrasings
    asked = asked or [key for key in keys if key.rstrip().endswith(("?", "？"))]
    return kept or asked or others


def objects_in(value: Any) -> Iterator[Mapping[Any, Any]]:
    """Yield all objects in a JSON value, outer objects before inner objects."""
    if isinstance(value, Mapping):
        yield value
        value = value.values()
    for item in value:
        if isinstance(item, list | Mapping):
            yield from objects_in(item)


def _key(key: object) -> str:
    name = re.sub(r"(?<=[a-z])(?=[A-Z][a-z])", "_", str(key).strip())
    return re.sub(r"[\s-]", "_", simplified(name.casefold()))


def value_of(record: Mapping[Any, Any], keys: Iterable[str]) -> Any:
    """Return the value of the first key that exists in a JSON object, or None.

    Keys are compared without regard to case and to the difference between spaces, hyphens and
    underscores.

    Example:
        >>> value_of({"Next question": "Why?"}, ("question", "next_question"))
        'Why?'
    """
    by_key = {_key(key): value for key, value in record.items()}
    return next((by_key[key] for key in keys if key in by_key), None)
