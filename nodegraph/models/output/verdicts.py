"""Parse what a judge says: a yes or no, or one for each of several items."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from .json_values import MAX_ANSWER_LENGTH, check_answer, clean, json_at, json_or_words, value_of
from .lines import label_pattern

_NUMBER_KEYS = ("number", "id", "index", "n", "statement", "sentence", "item", "编号", "序号")

_VERDICT_KEYS = (
    *("answered", "is_answered", "verdict", "supported", "attributed", "relevant", "judgement"),
    *("judgment", "sufficient", "enough", "complete", "answer", "result", "label", "yes"),
    *("已回答", "是否已回答", "是否回答", "判断", "结论", "支持", "相关", "结果", "回答", "答案"),
)

_REASON_KEYS = ("quote", "reason", "evidence", "explanation", "引文", "原文", "理由", "依据")

_LIST_KEYS = ("verdicts", "results", "statements", "judgements", "items", "numbers", "sentences")

_END = r"(?=\s{0,9}(?:$|[,.;:!?()，。；：！？（）、\"'`”’」】*_|\]}]|[-–—]|\n))"

_YES = re.compile(
    rf"""(?:
      (?:yes|yep|yeah|true|y|(?:fully\ |directly\ )?supported|relevant|correct){_END}
    | yes\ (?=(?:it|that|this|there|the|all|we|i|you)\b)
    | (?:(?:是|对|正确)的?|支持|相关|有关|有帮助){_END}
    | (?:是的?[，,]?\s{{0,9}})?(?:问题)?(?:已经|已|可以|能够|能|足够|足以)
      (?:完整|完全|充分|直接|被|得到|得出|回答|解答|答复|出来|到|问题|这个|该|了){{0,9}}{_END}
    )""",
    re.I | re.X,
)

_NO = re.compile(
    rf"""(?:no|nope|not|false|n|cannot|can['’]t|isn['’]t|unknown|insufficient|incomplete|incorrect
    |partial(?:ly)?(?:\ supported)?|never|none|unsupported|irrelevant
    |(?:not|un|ir|only\ part(?:ly|ially))\b.{{0,30}}){_END}
    | (?:no|not|cannot|can['’]t|isn['’]t|don['’]t|doesn['’]t|insufficient|partially)\b
    | (?:不是?|否|不支持|不相关|无关|没有帮助?|部分(?:支持|相关)?){_END}
    | 否(?!则) | [不没未无非] | 尚 | 还(?!可以) | 部分""",
    re.I | re.X,
)

# After a yes: words that take it back.
_HEDGE = re.compile(
    r"""\b(?:but|however|although|though|except|unless|if|or|no|not|never|only|partly|partial
    |partially|maybe|perhaps|possibly|might|yet|false|cannot)\b | n['’]t\b | [?？]
    | 但|不过|然而|除非|部分|也许|可能|大概|尚|还需|仍|否|不|没|未|无法|缺""",
    re.I | re.X,
)

_HEDGE_NEXT = re.compile(
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

_LABEL = label_pattern(
    r"""(?:(?:final|my|the)\ )?
    (?:verdict|judge?ment|conclusion|decision|answer(?:ed)?|result|output|supported|relevant
    |(?:最终|我的)?(?:判断|结论|结果|答案|回答)|是否(?:已经?|可以|能够?|完整)*(?:回答|支持|相关))""",
    "[:：=是为]",
)

_EDGE = " \t\"'“”‘’「」『』`*_#>|{}()（）[]【】-–—:：,，.。;；"

MAX_WORDS = 300
"""Characters of a judge's words that are kept for a verdict."""


class Verdict(NamedTuple):
    """Hold what a judge says of one item.

    Attributes:
        yes: Whether it is a yes.
        words: What the judge says for it: a quotation or a reason. Empty where it says nothing.
    """

    yes: bool
    words: str


def is_yes(answer: object) -> bool:
    """Check whether a judge's answer is a clear yes, in Chinese or English, in words or JSON.

    Everything else is not: a no, "not yet", "nonetheless", a yes with a "but", yes and no together,
    an empty or unrelated answer. In doubt it is no yes, which costs one more step. The opposite
    mistake would end a search without results.

    Args:
        answer: A text, or a value: True is a yes, 1 is not.

    Example:
        >>> [is_yes(answer) for answer in ("Yes.", "是的，已经回答。", '{"answered": true}', True)]
        [True, True, True, True]
        >>> [is_yes(answer) for answer in ("False", "否", "不能", "not yet", "Yes, but only half")]
        [False, False, False, False, False]
    """
    return _yes_or_no(answer) is True


def _yes_or_no(answer: object) -> bool | None:
    """Return True for a yes, False for a no, None for neither."""
    if isinstance(answer, bool):
        return answer
    if isinstance(answer, Mapping):
        value = value_of(answer, _VERDICT_KEYS)
        only = next(iter(answer.values())) if value is None and len(answer) == 1 else value
        return _yes_or_no(only)
    if not isinstance(answer, str):
        return None
    # A polite opening ("可以", "Sure") may be the whole answer.
    text = unicodedata.normalize("NFKC", clean(answer).strip() or answer.strip())
    if text.startswith("{"):
        value = json_at(text)
        return _yes_or_no(value) if isinstance(value, Mapping) else None
    return _of_text(text.split("\n"), _HEDGE.search)


def _of_text(lines: Iterable[str], hedges: Any) -> bool | None:
    """Return the verdict of several lines, None if there is no verdict or they disagree.

    A model that gives reasons gives its verdict before or after them.
    """
    lines = [line for line in lines if line.strip(_EDGE)]
    labelled = [line for line in lines if _LABEL.match(line)]
    verdicts = [_of_line(line, hedges) for line in (*lines[:1], *lines[-1:], *labelled)]
    clear = {verdict.yes for verdict in verdicts if verdict is not None}
    return clear.pop() if len(clear) == 1 else None


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


def _usable(answer: str) -> str:
    """Return a cleaned answer. One that means "nothing" stays."""
    text = clean(answer)[:MAX_ANSWER_LENGTH].strip()
    check_answer(text)
    return text


def _json_in(text: str) -> Any:
    """Return the JSON of a cleaned answer, None of one in words.

    Raises:
        ValueError: If it is broken.
    """
    if text.startswith("["):  # of numbers or truth values
        with suppress(ValueError, RecursionError):
            return json.loads(text)
    return json_or_words(text)


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
        return _valid({position: verdict for position, (_, verdict) in enumerate(items, 1)})
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
        verdict = _of_line(str(item))
        return (
            None if verdict is None else Verdict(verdict.yes, (words or verdict.words)[:MAX_WORDS])
        )
    return None


def _of_lines(text: str, count: int) -> dict[int, Verdict]:
    """Return the verdicts of lines with numbers. For one item also without."""
    verdicts: dict[int, Verdict | None] = {}
    for line in text.split("\n"):
        match = _NUMBERED.fullmatch(line)
        if match is not None and 1 <= (number := int(match["number"])) <= count:
            verdict = _of_line(match["rest"])
            if number in verdicts and verdict != verdicts[number]:
                verdict = None  # twice, and not the same
            verdicts[number] = verdict
    if count == 1 and 1 not in verdicts:
        yes = _of_text(text.split("\n"), _HEDGE_NEXT.match)
        verdicts[1] = None if yes is None else Verdict(yes, " ".join(text.split())[:MAX_WORDS])
    return _valid(verdicts)


def _of_line(line: str, hedges: Any = _HEDGE_NEXT.match) -> Verdict | None:
    """Return the verdict with which a line begins, and what follows as its words.

    Args:
        line: The line.
        hedges: Searches what follows a yes for words that take it back.
    """
    label = _LABEL.match(line)
    text = (line[label.end() :] if label else line).lstrip(_EDGE)
    yes = _YES.match(text)
    if yes is not None:
        return None if hedges(text, yes.end()) else Verdict(True, _reason(text, yes.end()))
    no = _NO.match(text)
    return None if no is None else Verdict(False, _reason(text, no.end()))


def _reason(text: str, start: int) -> str:
    return text[start:].lstrip(_EDGE).rstrip(" \t*_|")[:MAX_WORDS]
