"""Parse what a judge says of numbered items: a verdict for each, or the numbers of some."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from .cleaning import LONGEST_ANSWER, check_answer, clean, is_no_answer
from .json_values import begins_like_json, find_json, value_of

_NUMBER_KEYS = ("number", "id", "index", "n", "statement", "sentence", "item", "编号", "序号")

_VERDICT_KEYS = (
    *("verdict", "supported", "attributed", "relevant", "answered", "judgement", "judgment"),
    *("answer", "result", "label", "判断", "结论", "支持", "相关", "结果"),
)

_REASON_KEYS = ("quote", "reason", "evidence", "explanation", "引文", "原文", "理由", "依据")

_LIST_KEYS = ("verdicts", "results", "statements", "judgements", "items", "numbers", "sentences")

_SEPARATOR = r"(?=\s{0,9}(?:$|[,.;:!?()，。；：！（）、\"'”’」*_|\]}]|[-–—]|\n))"

_YES = re.compile(
    rf"""(?:yes|y|true|(?:fully\ |directly\ )?supported|relevant|correct
    |是的?|对|支持|相关|有关|有帮助){_SEPARATOR}""",
    re.I | re.X,
)

_NO = re.compile(
    rf"""(?:no|n|false|(?:not|un|ir|only\ part(?:ly|ially))\b.{{0,30}}|unsupported|irrelevant
    |partial(?:ly)?(?:\ supported)?|incorrect
    |不是?|否|不支持|不相关|无关|没有帮助?|部分(?:支持|相关)?){_SEPARATOR}""",
    re.I | re.X,
)

_HEDGE = re.compile(
    r"[\s,.;:，。；：—–-]{0,9}(?:but|however|although|partly|partially|maybe|perhaps|and\ no\b"
    r"|但|不过|然而|部分|也许|可能)",
    re.I,
)

_NUMBERED = re.compile(
    r"""[ \t>#*_|-]{0,9}(?:(?:statement|sentence|item|passage|陈述|句子?|第)\s{0,3})?
    [(（\[【]?(?P<number>\d{1,4})[)）\]】]?\s{0,3}(?:[条句个])?[*_]{0,3}
    (?:\s{0,9}(?:[.):：、）|]|[-–—])[*_]{0,3}|(?=\s))(?P<rest>[^\n]*)""",
    re.I | re.X,
)

_LABEL = re.compile(
    r"""[\s*_|]{0,9}(?:(?:final\ |my\ |the\ )?(?:verdict|judge?ment|answer|result|conclusion
    |supported|relevant)|判断|结论|答案|回答|结果|是否(?:支持|相关))[*_]{0,3}\s{0,9}[:：=][*_]{0,3}""",
    re.I | re.X,
)

_NONE_OF_THEM = re.compile(
    r"(?:there (?:is|are) )?(?:no|none of the)\b[^\n\d]{0,40}\bsentences?\b"
    r"|没有[^\n\d]{0,12}句|均无关|都不",
    re.I,
)

_EDGE = " \t\"'“”‘’「」`*_|()（）[]【】-–—:：,，.。;；"

MAX_WORDS = 300
"""Characters of a judge's words that are kept for a verdict."""


class Verdict(NamedTuple):
    """Hold what a judge says of one item.

    Attributes:
        yes: Whether it is a yes.
        words: What the judge says for it: a quotation or a reason; empty where it says nothing.
    """

    yes: bool
    words: str


def parse_verdicts(answer: str, count: int) -> list[Verdict]:
    """Return a verdict for each of ``count`` numbered items, in their order.

    In JSON (a list of objects, of values, or an object by number) or in lines ("2. no: it says
    nothing of it"). "Partly" is a no. Of one item the number may be left out.

    Raises:
        ValueError: If there is not one clear verdict for each.

    Example:
        >>> parse_verdicts('{"verdicts": [{"number": 1, "quote": "Tea.", "verdict": "yes"}]}', 1)
        [Verdict(yes=True, words='Tea.')]
        >>> [verdict.yes for verdict in parse_verdicts("1. yes\\n2. No, it is not there.", 2)]
        [True, False]
    """
    text = _usable(answer)
    value = _json_in(text)
    verdicts = _of_json(value, count) if value is not None else _of_lines(text, count)
    missing = [str(number) for number in range(1, count + 1) if number not in verdicts]
    if missing:
        raise ValueError(f"there is no clear yes or no for number {', '.join(missing[:9])}")
    return [verdicts[number] for number in range(1, count + 1)]


def parse_numbers(answer: str, count: int) -> list[int]:
    """Return which numbers, from 1 to ``count``, a judge lists, in order; none where it says so.

    Raises:
        ValueError: If there are none and the answer does not say so, or one is out of range.

    Example:
        >>> [parse_numbers(answer, 3) for answer in ('{"numbers": [3, 1]}', "1, 3", "无")]
        [[1, 3], [1, 3], []]
    """
    text = _usable(answer)
    value = _json_in(text)
    first = text.split("\n")[0]
    if value is not None:
        numbers = _numbers_in(value)
    elif is_no_answer(first) or _NONE_OF_THEM.match(first):
        return []
    else:
        line = next((line for line in text.split("\n") if re.search(r"\d", line)), "")
        numbers = [int(number) for number in re.findall(r"\d{1,4}", line)]
        words = len(re.findall(r"[^\W\d_]+", line))
        if not numbers or words > 2 * len(numbers) + 2:
            raise ValueError("there are no numbers in the answer")
    if wrong := [number for number in numbers if not 1 <= number <= count]:
        raise ValueError(f"{wrong[0]} is not among the numbers 1 to {count}")
    return sorted(set(numbers))


def _usable(answer: str) -> str:
    """Return a cleaned answer; one that means "nothing" stays."""
    text = clean(answer)[:LONGEST_ANSWER].strip()
    check_answer(text)
    return text


def _json_in(text: str) -> Any:
    """Return the JSON of a cleaned answer, None of one in words.

    Raises:
        ValueError: If it is broken.
    """
    value = find_json(text)
    if value is None and text.startswith("["):  # of numbers or truth values
        with suppress(ValueError, RecursionError):
            value = json.loads(text)
    if value is None and begins_like_json(text):
        raise ValueError("the answer begins like JSON and is none")
    return value


def _of_json(value: Any, count: int) -> dict[int, Verdict]:
    if isinstance(value, Mapping):
        listed = value_of(value, _LIST_KEYS)
        if isinstance(listed, list | Mapping):
            return _of_json(listed, count)
        keys = {_number(key): item for key, item in value.items()}
        if None not in keys:
            return _valid({key: _verdict_of(item) for key, item in keys.items() if key})
        value = [value]
    if not isinstance(value, list):
        return {}
    items = [(_number_of(item), _verdict_of(item)) for item in value]
    if all(number is not None for number, _ in items):
        numbers = [number for number, _ in items if number is not None]
        if len(set(numbers)) == len(numbers):
            return _valid({number: verdict for number, verdict in items if number is not None})
    if len(items) == count and all(number is None for number, _ in items):
        return _valid({place: verdict for place, (_, verdict) in enumerate(items, 1)})
    return {}


def _valid(verdicts: Mapping[int, Verdict | None]) -> dict[int, Verdict]:
    return {number: verdict for number, verdict in verdicts.items() if verdict is not None}


def _number_of(item: Any) -> int | None:
    return _number(value_of(item, _NUMBER_KEYS)) if isinstance(item, Mapping) else None


def _number(value: Any) -> int | None:
    if isinstance(value, bool):
        return None
    match = re.fullmatch(r"\D{0,12}?(\d{1,4})\D{0,2}", str(value))
    return int(match[1]) if match else None


def _verdict_of(item: Any) -> Verdict | None:
    """Return the verdict in a JSON value, None where it is not clear."""
    words = ""
    if isinstance(item, Mapping):
        words = str(value_of(item, _REASON_KEYS) or "")
        item = value_of(item, _VERDICT_KEYS)
    if isinstance(item, bool):
        return Verdict(item, words[:MAX_WORDS])
    if isinstance(item, str | int):
        if item in (0, 1, "0", "1"):  # as judges of Ragas answer
            return Verdict(item in (1, "1"), words[:MAX_WORDS])
        verdict = _of_text(str(item))
        return (
            None if verdict is None else Verdict(verdict.yes, (words or verdict.words)[:MAX_WORDS])
        )
    return None


def _of_lines(text: str, count: int) -> dict[int, Verdict]:
    """Return the verdicts of lines with numbers; of one item also without."""
    verdicts: dict[int, Verdict | None] = {}
    for line in text.split("\n"):
        match = _NUMBERED.fullmatch(line)
        if match is not None and 1 <= (number := int(match["number"])) <= count:
            verdict = _of_text(match["rest"])
            if number in verdicts and verdict != verdicts[number]:
                verdict = None  # twice, and not the same
            verdicts[number] = verdict
    if count == 1 and 1 not in verdicts:
        lines = [line for line in text.split("\n") if line.strip(_EDGE)]
        labelled = [line for line in lines if _LABEL.match(line)]
        ends = [_of_text(line) for line in labelled or [*lines[:1], *lines[-1:]]]
        clear = {verdict.yes for verdict in ends if verdict is not None}
        if len(clear) == 1:
            words = " ".join(text.split())[:MAX_WORDS]
            verdicts[1] = Verdict(clear.pop(), words)
    return _valid(verdicts)


def _of_text(text: str) -> Verdict | None:
    """Return the verdict with which a line begins, and what follows as its words."""
    label = _LABEL.match(text)
    text = (text[label.end() :] if label else text).lstrip(_EDGE)
    if no := _NO.match(text):
        return Verdict(False, _reason(text, no.end()))
    yes = _YES.match(text)
    if yes is None or _HEDGE.match(text, yes.end()):
        return None
    return Verdict(True, _reason(text, yes.end()))


def _reason(text: str, begin: int) -> str:
    return text[begin:].lstrip(_EDGE).rstrip(" \t*_|")[:MAX_WORDS]


def _numbers_in(value: Any) -> list[int]:
    if isinstance(value, Mapping):
        listed = value_of(value, _LIST_KEYS)
        value = next(iter(value.values())) if listed is None and len(value) == 1 else listed
    if isinstance(value, int) and not isinstance(value, bool):
        value = [value]
    if not isinstance(value, list):
        raise ValueError("there is no list of numbers in the answer")
    numbers = [_number_of(item) if isinstance(item, Mapping) else _number(item) for item in value]
    if None in numbers:
        raise ValueError("there is something else than numbers in the answer's list")
    return [number for number in numbers if number is not None]
