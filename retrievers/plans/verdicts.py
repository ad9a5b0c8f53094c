"""Parse verdicts of a judge: a yes or no, for one or several items."""

from __future__ import annotations

import re
import unicodedata
from typing import Any, NamedTuple

from ...nodegraph.models.output.answer_text import (
    clean,
    find_json,
    label_pattern,
    objects_in,
    usable_text,
    value_of,
)

_VERDICT_KEYS = ("verdict", "answered", "supported", "relevant", "answer", "已回答", "判断")

_REASON_KEYS = ("quote", "reason", "evidence", "explanation")

_END = r"(?=\s{0,9}(?:$|[,.;:!()，。；：！（）`\"'”」*_|–—-]))"

_YES = re.compile(
    rf"(?:yes|true|y|supported|relevant|是的?|支持|相关|(?:已|已经)?(?:可以|能够|足以)?回答了?|可以){_END}",
    re.I,
)

_NO = re.compile(
    r"(?:no|not|false|cannot|can['’]t|partial(?:ly)?|unsupported|irrelevant|insufficient)\b"
    r"|否(?!则)|[不没未无尚部非]",
    re.I,
)

# Words after a yes that take it back.
_HEDGE = re.compile(
    r"\b(?:but|however|though|although|except|unless|if|or|not?|never|only|part\w*|maybe|perhaps|yet)\b"
    r"|n['’]t\b|[?？]|但|不过|然而|除非|部分|也许|可能|尚|还|仍|否|不|没|未|无|缺",
    re.I,
)

_NUMBERED = re.compile(
    r"[ \t>#*_-]{0,9}[(\[]?(\d{1,4})[)\]]?[*_]{0,2}\s?[.):：、）]?[*_]{0,2}\s{0,9}([^\n]*)"
)

_LABEL = label_pattern(
    r"(?:(?:final|my|the)\ )?(?:verdict|conclusion|decision|answer(?:ed)?|判断|结论|答案|已回答)"
)

_EDGE = " \t\"'“”‘’「」`*_#>()（）-–—:：,，.。;；"

MAX_WORDS = 300
"""The maximum length of a judge's words that are kept for a verdict, in characters."""


class Verdict(NamedTuple):
    """The verdict of a judge on one item.

    Attributes:
        yes: Whether the verdict is yes.
        words: The judge's quotation or reason. May be empty.
    """

    yes: bool
    words: str


def is_yes(answer: object) -> bool:
    """Return whether an answer is a clear yes, in Chinese or English.

    Everything else is not a yes: a no, "not yet", a yes with a "but", an empty or unrelated answer.
    In doubt the search takes one more step. The opposite mistake would end it without results.

    Args:
        answer: A text, or a value: True is a yes, 1 is not.

    Example:
        >>> [is_yes(answer) for answer in ("Yes.", "是的，已经回答。", True)]
        [True, True, True]
        >>> [is_yes(answer) for answer in ("False", "否", "不能", "not yet", "Yes, but only half")]
        [False, False, False, False, False]
    """
    if not isinstance(answer, str):
        return answer is True
    verdict = _of_line(unicodedata.normalize("NFKC", clean(answer)), _HEDGE.search)
    return verdict is not None and verdict.yes


def parse_verdicts(answer: str, count: int) -> list[Verdict]:
    """Return a verdict for each of ``count`` numbered items, in their order.

    The answer is JSON (a list of objects with number and verdict) or lines ("2. no: not
    mentioned"). "Partly" is a no. For one item the number is optional.

    Raises:
        ValueError: If an item has no clear verdict, or several verdicts.

    Example:
        >>> parse_verdicts('{"verdicts": [{"number": 1, "quote": "Tea.", "verdict": "yes"}]}', 1)
        [Verdict(yes=True, words='Tea.')]
        >>> [verdict.yes for verdict in parse_verdicts("1. yes\\n2. No, it is not there.", 2)]
        [True, False]
    """
    text = usable_text(answer)
    value = find_json(text)
    if value is not None:
        found = _of_json(value)
    else:
        lines = text.split("\n")
        found = [(int(m[1]), _of_line(m[2])) for m in map(_NUMBERED.fullmatch, lines) if m]
        if count == 1 and not found:
            verdicts = filter(None, map(_of_line, dict.fromkeys((lines[0], lines[-1]))))
            found = [(1, Verdict(v.yes, " ".join(text.split())[:MAX_WORDS])) for v in verdicts]
    numbers = [number for number, _ in found]
    by_number = {n: v for n, v in found if v is not None and numbers.count(n) == 1}
    missing = [str(number) for number in range(1, count + 1) if number not in by_number]
    if missing:
        raise ValueError(f"the answer has no clear yes or no for number {', '.join(missing[:9])}")
    return [by_number[number] for number in range(1, count + 1)]


def _of_json(value: Any) -> list[tuple[int, Verdict | None]]:
    found = []
    records = [item for item in objects_in(value) if value_of(item, _VERDICT_KEYS) is not None]
    for position, record in enumerate(records, 1):
        number, answer = value_of(record, ("number", "id", "n")), value_of(record, _VERDICT_KEYS)
        verdict = Verdict(answer, "") if isinstance(answer, bool) else _of_line(str(answer))
        if verdict is not None and (words := value_of(record, _REASON_KEYS)):
            verdict = Verdict(verdict.yes, str(words)[:MAX_WORDS])
        found.append((int(number) if re.fullmatch(r"\d{1,4}", str(number)) else position, verdict))
    return found


def _of_line(line: str, hedge: Any = _HEDGE.match) -> Verdict | None:
    """Return the verdict at the beginning of a line, with the rest of the line as its words.

    Args:
        line: The line.
        hedge: Whether a hedge counts only next to a yes (``match``), or anywhere (``search``).
    """
    label = _LABEL.match(line)
    text = line[label.end() if label else 0 :].lstrip(_EDGE)
    yes = _YES.match(text)
    match = yes or _NO.match(text)
    reason = text[match.end() :].lstrip(_EDGE) if match else ""
    if match is None or (yes and hedge(reason)):
        return None
    return Verdict(yes is not None, reason.rstrip(" \t*_|")[:MAX_WORDS])
