"""Parse a yes or no from a judge's answer."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from .cleaning import clean
from .json_values import json_at, value_of
from .lines import label_pattern

_KEYS = (
    "answered is_answered verdict judgement judgment sufficient enough complete result yes answer "
    "已回答 是否已回答 是否回答 判断 结论 结果 回答 答案"
).split()

_LABEL = label_pattern(
    r"""(?:(?:final|my|the)\ )?
    (?:verdict|judge?ment|conclusion|decision|answer(?:ed)?|result|output
    |(?:最终|我的)?(?:判断|结论|结果|答案|回答)|是否(?:已经?|可以|能够?|完整)*回答)""",
    "[:：是为]",
)

_PUNCTUATION = " \t\"'“”‘’「」『』`*_#>()（）[]【】{}-–—"

_END = r"(?=\s*(?:$|[,.;:!，。；：！、)）\]】\"'”’\n]|[-–—]))"

_YES = re.compile(
    rf"""(?:
      (?:yes|yep|yeah|true|y){_END}
    | yes\ (?=(?:it|that|this|there|the|all|we|i|you)\b)
    | (?:是|对|正确)(?:的)?{_END}
    | (?:是的?[，,]?\s*)?(?:问题)?(?:已经|已|可以|能够|能|足够|足以)
      (?:完整|完全|充分|直接|被|得到|得出|回答|解答|答复|出来|到|问题|这个|该|了)*{_END}
    )""",
    re.I | re.X,
)

_NO = re.compile(
    rf"""(?:no|nope|not|false|n|cannot|can't|can’t|isn't|unknown|insufficient|incomplete
    |partial(?:ly)?|never|none){_END}
    | (?:no|not|cannot|can't|can’t|isn't|isn’t|don't|doesn't|insufficient|partially)\b
    | 否(?!则) | [不没未无非]|尚|还(?!可以) | 部分""",
    re.I | re.X,
)

_HEDGE = re.compile(
    r"""\b(?:but|however|although|though|except|unless|if|or|no|not|never|only|partly|partial
    |partially|maybe|perhaps|possibly|might|yet|false|cannot)\b | n['’]t\b | [?？]
    | 但|不过|然而|除非|部分|也许|可能|大概|尚|还需|仍|否|不|没|未|无法|缺""",
    re.I | re.X,
)


def is_yes(answer: object) -> bool:
    """Check whether a judge's answer is a clear yes, in Chinese or English, in words or JSON.

    Everything else is not: a no, "not yet", "nonetheless", a yes with a "but", yes and no together,
    an empty or unrelated answer. In doubt it is no yes, which costs one more step; the opposite
    mistake would end a search without results.

    Args:
        answer: A text, or a value: True is a yes, 1 is not.

    Example:
        >>> [is_yes(answer) for answer in ("Yes.", "是的，已经回答。", '{"answered": true}', True)]
        [True, True, True, True]
        >>> [is_yes(answer) for answer in ("False", "否", "不能", "not yet", "Yes, but only half")]
        [False, False, False, False, False]
    """
    return _verdict(answer) is True


def parse_verdict(answer: str) -> bool:
    """Return whether a judge's answer is a yes or a no.

    Raises:
        ValueError: If it is neither, so that the judge should be asked again.

    Example:
        >>> parse_verdict("Verdict: yes"), parse_verdict("尚未回答")
        (True, False)
    """
    verdict = _verdict(answer)
    if verdict is None:
        raise ValueError("the answer is neither a clear yes nor a no")
    return verdict


def _verdict(answer: object) -> bool | None:
    """Return True for a yes, False for a no, None for neither."""
    if isinstance(answer, bool):
        return answer
    if isinstance(answer, Mapping):
        return _verdict(_value_in(answer))
    if not isinstance(answer, str):
        return None
    # A polite opening ("可以", "Sure") may be the whole answer.
    text = unicodedata.normalize("NFKC", clean(answer).strip() or answer.strip())
    if text.startswith("{"):
        value = json_at(text)
        return _verdict(value) if isinstance(value, Mapping) else None
    lines = [line for line in text.split("\n") if line.strip(_PUNCTUATION)]
    if not lines:
        return None
    # A model that gives reasons gives its verdict before or after them.
    labelled = [line for line in lines if _LABEL.match(line)]
    verdicts = {_of_line(line) for line in (lines[0], lines[-1], *labelled)} - {None}
    return verdicts.pop() if len(verdicts) == 1 else None


def _of_line(line: str) -> bool | None:
    label = _LABEL.match(line)
    text = (line[label.end() :] if label else line).strip(_PUNCTUATION)
    yes = _YES.match(text)
    if yes is not None:
        return None if _HEDGE.search(text[yes.end() :]) else True
    return False if _NO.match(text) else None


def _value_in(value: Mapping[Any, Any]) -> object:
    verdict = value_of(value, _KEYS)
    return next(iter(value.values())) if verdict is None and len(value) == 1 else verdict
