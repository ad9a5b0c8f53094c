"""Read a single yes-or-no decision, such as "yes", "not supported", "属实" or a check mark."""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

from .chinese_script import chinese_pattern

_SURELY = r"(?:(?:fully|directly|clearly|explicitly|completely|entirely|strongly|well)[ -])?"

_YES = rf"""(?:{_SURELY}(?:yes|yep|true|y|t|correct|accurate|entailed|entailment|grounded|verified
    |confirmed|valid|relevant|helpful|supported|supports?)(?![\w'’-])
  |[✓✔✅☑√👍]\ufe0f?
  |(?:是的?|(?:完全|明确)?支持|(?:得到|有)了?(?:\w{{0,6}}的)?支持|(?:完全)?正确|对的?|属实|成立|相关
    |相?符合?(?:上下文|原文|段落|文意)?|(?:上下文|原文|段落|文中|资料|[该此]?陈述)(?:明确)?支持(?:[该此这]?一?[条个]?(?:陈述|说法))?
    |有|能|一致|[与和跟][^\W不未]{{0,8}}(?:一致|相符|符合|吻合)
    |真实?|真实|准确|有帮助|有用|有(?:依据|根据|依据|根据)
    |(?:已经?)?(?:可以|能够)?回答了?|可以)(?!\w))"""

_NO = r"""(?:(?:(?:un|non)-?supported|no|nope|not|false|partial(?:ly)?|partly|irrelevant|incorrect
    |wrong
    |inaccurate|untrue|contradict(?:s|ed|ion|ory)?|refute[sd]?|unverified|unverifiable
    |hallucinat(?:ed|ion)|fabricated|invalid|insufficient|unrelated|ungrounded|unhelpful)\b
  |[nf](?![\w'’/-])
  |[✗✘❌✖×👎❎]\ufe0f?
  |否(?!则)
  |[不没未无](?:\W|\Z|支|是|能|可|符|[对成真足得一]|正|准|相|属|有|提|说|明|包|涉|存|关|依|根|据
    |证|法|从|帮|回|被|完|含|见|言|尽|尚|找|记)
  |[与和跟]\w{0,8}(?:矛盾|不符|不一致|相反|相悖)|(?:上下文|原文|段落|文中|资料|文段)中?(?:并)?(?:不支持|[未没]有?(?:明确)?(?:提|说|支持|给出|涉及))
  |尚未|并[不未没无非]|得不到|错(?:误|的)?(?!\w)|矛盾|部分|虚假|假(?!\w)|失实|缺乏)"""

_BARE_NO = r"""(?:(?:un|non)-?supported|no|nope|n|f|false|irrelevant|incorrect|wrong|untrue
  |inaccurate|partial(?:ly)?(?:\ supported)?|partly(?:\ supported)?|contradict(?:s|ed|ion|ory)
  |refute[sd]|unverified|unverifiable|hallucinat(?:ed|ion)|invalid|unrelated|ungrounded|unhelpful
  |not[ -](?:\w{2,12}ly\ )?(?:supported|true|correct|relevant|mentioned|stated|accurate|entailed
    |grounded|found|verified|helpful|in\ the\ passages?|given|present)
  |[✗✘❌✖×👎❎]\ufe0f?
  |否|[不没未无](?:支持|是|对|正确|相关|成立|属实|准确|符合?|一致|提及|提到|关|得到支持
    |能|可以|存在|有|帮助|有帮助)?
  |错(?:误|的)?|矛盾|[与和跟]\w{0,8}(?:矛盾|不符|不一致|相反|相悖)|部分(?:支持|正确|相关)?|虚?假的?|失实)"""

_UNCLEAR = r"""(?:(?:not|un)\s?-?(?:sure|certain|clear|known|decided|determined|applicable)\b|n/a\b
  |not\sonly\b|not?\s(?:possible|enough\scontext)\b|no\s(?:idea|answer|verdict|decision|opinion|problem)\b
  |(?:可以|能)?(?:不确定|不一定|未必|不尽然|不清楚|不好说|不知道|未知|无法(?:判断|确定|判定|得知)
    |无法(?:判断|确定|判定|得知)|不能(?:判断|确定|判断|确定)|是否|是不是))"""

_SIGNS = "✓✔✅☑√👍✗✘❌✖×👎❎"

_POSITIVE_SIGNS = "✓✔✅☑√👍"

# The number of a statement before its decision.
_FIRST = rf"[^\w{_SIGNS}]{{0,9}}(?:\d{{1,4}}[^\w{_SIGNS}]{{1,9}}|\d{{1,4}}(?=[{_SIGNS}]))?"

_VERDICT = chinese_pattern(
    rf"{_FIRST}(?!{_UNCLEAR})(?:(?P<yes>{_YES})|(?P<no>{_NO}))(?P<rest>.*)", re.I | re.X | re.S
)

# A yes ends with punctuation, or goes on with a reason.
_AFTER_YES = re.compile(
    r"\s{0,9}(?:\Z|[^\w\s?/])|\s{1,9}(?P<on>(?:by|in|as|because|since|per|according|based|the|it"
    r"|this|that|from)\b)",
    re.I,
)

_AFTER_NO = re.compile(r"\s{0,9}(?:\Z|[^\w\s/])")

# Words after a yes that revoke it.
_HEDGE = chinese_pattern(
    r"\b(?:but|however|though|although|except|unless|if|or|not?|never|only|part\w*|maybe|perhaps|yet"
    r"|mostly|largely|somewhat|nothing|opposite|contrary|reverse)\b"
    r"|\Aand\s(?:not?|false)\b"
    r"|n['’]t\b|[?？]|但|不过|然而|除非|部分|也许|可能|尚|还|仍|否|不|没|未|无|缺",
    re.I,
)


class Decision(NamedTuple):
    """The decision at the start of a text.

    Attributes:
        yes: Whether the decision is positive, or None if it is unclear or missing.
        reason: The words after the decision.
        is_alone: Whether the decision is followed by punctuation or by nothing. A decision such as
            "No trains" may be the start of a statement. If ``yes`` is None, the words after a yes
            revoke it.
    """

    yes: bool | None
    reason: str
    is_alone: bool


def read_decision(text: str) -> Decision:
    """Return the decision with which a text begins.

    Example:
        >>> read_decision("NOT_SUPPORTED: the year is missing")
        Decision(yes=False, reason='SUPPORTED: the year is missing', is_alone=False)
    """
    plain = unicodedata.normalize("NFKC", _checked(text))
    plain = re.sub(r"(?<=[a-z])_(?=[a-z])", " ", plain, flags=re.I)
    sign = _SIGN_BEFORE.match(plain)
    if sign is not None:
        return _after_sign(sign[1], plain[sign.end() :])
    found = _VERDICT.match(plain)
    if found is None:
        return Decision(None, "", False)
    rest = found["rest"]
    reason = re.sub(r"\A\W+", "", rest)
    if found["no"]:
        return Decision(False, reason, _AFTER_NO.match(rest) is not None)
    after = _AFTER_YES.match(rest)
    if after is None:
        return Decision(None, "", False)
    is_alone = after["on"] is None
    if _HEDGE.match(reason) or (not is_alone and _HEDGE.search(reason)):
        return Decision(None, reason, True)
    return Decision(True, reason, is_alone)


# The checked box in a text such as "[ ] yes [x] no".
_CHECKED = re.compile(r"\[[xX]\]\s?(?P<said>[^\[\]]+)")


def _checked(text: str) -> str:
    """Return the words behind the only checked box, or the whole text if it has no empty box."""
    if "[ ]" not in text:
        return text
    checked = [match["said"] for match in _CHECKED.finditer(text)]
    return checked[0] if len(checked) == 1 else ""


# A check mark or a cross before words.
_SIGN_BEFORE = re.compile(rf"{_FIRST}([{_SIGNS}])\ufe0f?\s{{0,4}}(?=[\w*\[(])", re.X)


def _after_sign(sign: str, rest: str) -> Decision:
    """Return the decision of a sign. It is unclear if the words after the sign differ from it."""
    yes = sign in _POSITIVE_SIGNS
    if _SIGN_BEFORE.match(rest):
        return Decision(None, rest, True)  # several signs
    said = read_decision(rest)
    if said.yes is not yes and (said.yes is not None or said.is_alone):
        return Decision(None, rest, True)
    return Decision(yes, said.reason or rest, True)


def read_verdict(value: object) -> tuple[bool | None, str]:
    """Return whether a text begins with yes or no, and the words after it.

    The first value is None if the verdict is unclear, for example if "but" follows "yes". "Partly"
    counts as no.

    Args:
        value: A text in Chinese or English, or a JSON value. True means yes, but 1 is unclear.

    Example:
        >>> [read_verdict(text)[0] for text in ("是的。", "not yet", "Yes, but only half", True)]
        [True, False, None, True]
        >>> read_verdict("2. **No**: nothing is said")
        (False, 'nothing is said')
    """
    if isinstance(value, bool):
        return value, ""
    decision = read_decision(value if isinstance(value, str) else "")
    return decision.yes, decision.reason


def is_yes(value: object) -> bool:
    """Return whether an answer is a clear yes that contains neither "but" nor "not".

    In case of doubt, the result is False, so that the search continues with one more step. The
    opposite mistake would end the search without an answer.

    Example:
        >>> [is_yes(text) for text in ("Yes.", "是的，已经回答。", "not yet", "Yes, only in part")]
        [True, True, False, False]
    """
    yes, reason = read_verdict(value)
    return yes is True and _HEDGE.search(reason) is None


_BARE = chinese_pattern(rf"\W{{0,3}}(?!{_UNCLEAR})(?:{_YES}|{_BARE_NO})\W{{0,3}}", re.I | re.X)


def is_bare_verdict(text: str) -> bool:
    """Return whether a text consists only of a decision.

    Example:
        >>> [is_bare_verdict(text) for text in ("Not supported", "yes.", "no trains")]
        [True, True, False]
    """
    plain = unicodedata.normalize("NFKC", text.strip())
    plain = re.sub(r"(?<=[a-z])_(?=[a-z])", " ", plain, flags=re.I)
    return _BARE.fullmatch(plain) is not None
