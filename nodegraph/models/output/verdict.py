"""Tell a real yes from everything else that models say."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from .cleaning import clean, json_at

_KEYS = (
    "answered is_answered verdict judgement judgment sufficient enough complete result yes answer "
    "已回答 是否已回答 是否回答 判断 结论 结果 回答 答案"
).split()

_LABEL = re.compile(
    r"""[\s>*_\#-]*(?:(?:final|my|the)\ )?
    (?:verdict|judge?ment|conclusion|decision|answer(?:ed)?|result|output
    |(?:最终|我的)?(?:判断|结论|结果|答案|回答)|是否(?:已经?|可以|能够?|完整)*回答)
    (?:\s*[*_]{1,3})?\s*[:：是为](?:\s*[*_]{1,3})?\s*""",
    re.I | re.X,
)

_MARKS = " \t\"'“”‘’「」『』`*_#>()（）[]【】{}-–—"

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


def says_yes(answer: object) -> bool:
    """Tell whether a judge's answer is a real yes, in Chinese or English, in words or JSON.

    Everything else is not one: a no, "not yet", "nonetheless", a yes with a but, yes and no,
    nothing, and what is no answer to the question. Where it is wrong, it is wrong in taking a yes
    for none, which costs a step; the other way round a search would end that had found nothing.

    Args:
        answer: A text, or a value: True is a yes, 1 is not.

    Example:
        >>> [says_yes(each) for each in ("Yes.", "是的，已经回答。", '{"answered": true}', True)]
        [True, True, True, True]
        >>> [says_yes(each) for each in ("False", "否", "不能", "not yet", "Yes, but only half")]
        [False, False, False, False, False]
    """
    return _verdict(answer) is True


def read_verdict(answer: str) -> bool:
    """Return what a judge's answer says: yes or no.

    Raises:
        ValueError: If it says neither, so that the judge is worth asking again.

    Example:
        >>> read_verdict("Verdict: yes"), read_verdict("尚未回答")
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
        return _verdict(_told(answer))
    if not isinstance(answer, str):
        return None
    # What leads over to an answer ("可以", "Sure") can be all there is of it.
    text = unicodedata.normalize("NFKC", clean(answer).strip() or answer.strip())
    if text.startswith("{"):
        value = json_at(text)
        return _verdict(value) if isinstance(value, Mapping) else None
    lines = [line for line in text.split("\n") if line.strip(_MARKS)]
    if not lines:
        return None
    # A model that gives reasons gives its verdict before or after them.
    labelled = [line for line in lines if _LABEL.match(line)]
    told = {_of_line(line) for line in (lines[0], lines[-1], *labelled)}
    if told >= {True, False}:
        return None
    return True if True in told else False if False in told else None


def _of_line(line: str) -> bool | None:
    label = _LABEL.match(line)
    text = (line[label.end() :] if label else line).strip(_MARKS)
    yes = _YES.match(text)
    if yes is not None:
        return None if _HEDGE.search(text[yes.end() :]) else True
    return False if _NO.match(text) else None


def _told(value: Mapping[Any, Any]) -> object:
    known = {str(key).strip().casefold().replace(" ", "_"): each for key, each in value.items()}
    told = [known[key] for key in _KEYS if key in known]
    return told[0] if told else next(iter(known.values())) if len(known) == 1 else None
