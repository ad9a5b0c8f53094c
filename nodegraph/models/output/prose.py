"""Read a passage, or a short answer, out of what a model answers."""

from __future__ import annotations

import re

from .cleaning import check_answer, is_opening, says_none, unopened
from .items import normal, strings, unwrap
from .lines import KEYS, json_in, shortened, unlabelled_text

LONGEST_PASSAGE = 2000
"""Characters of a passage that a model made, at most; what is more is cut off."""

_MATERIAL = (
    r"(?:passages?|contexts?|texts?|documents?|sources?|excerpts?|materials?|information|data|records?"
    r"|articles?|snippets?|results?)"
)

_THERE = (
    r"(?:in|from|by|within)\ (?:(?:the|these|this|any|given|provided|above|of|all)\ ){0,3}"
    rf"{_MATERIAL}\b"
)

_STOP = r"\s*(?:\Z|[\n.,;:!()（—–。，；：！]|-\s)"

_SAID = (
    r"(?:mention(?:ed|s)?|contain(?:ed|s)?|sa(?:y|id)|stated?|provided?|specif(?:y|ied)|given?"
    r"|includ(?:e|ed)|inform(?:ed|ation)|answer(?:ed|s)?|tell|told|found|known|indicated?|available"
    r"|determined?|clear|possible|enough|sufficient)"
)

# "Unknown" is none, "Unknown Pleasures" an answer: what follows tells.
_UNKNOWN = re.compile(
    rf"""(?:i\ )?(?:do\ not|don(?:'|’)t)\ know
      (?:{_STOP}|\ (?:the|that|this|it|from|based|because)\b|\ (?-i:what|who|whom|whose|which|where
      |when|how|why|if|whether|about)\b)
    |(?:unknown|no\ answer(?:\ found)?|cannot\ be\ (?:answered|determined)
      |not\ (?:found|known|given|stated|specified|mentioned|available|provided|answered|in))
      (?:{_STOP}|\ {_THERE}|\ (?:based\ on|because|since|here)\b|\ the\ {_MATERIAL}\b)
    |(?:the|these|this|none|no|it)\b[^\n.]{{0,40}}\b{_MATERIAL}\b[^\n.]{{0,50}}
      (?:\b(?:no|not|never|nothing|neither)\b|n(?:'|’)t\b)[^\n.]{{0,30}}\b{_SAID}\b
    |(?:none\ of|no|neither\ of|nothing\ in)\b[^\n.]{{0,30}}\b{_MATERIAL}\b[^\n.]{{0,50}}\b{_SAID}\b
    |(?:it|this|that)\ (?:is|was)(?:\ not|n(?:'|’)t)\ {_SAID}\b(?:{_STOP}|\ {_THERE})
    |there\ (?:is|are|was|were)(?:n(?:'|’)t|\ not)?\ (?:no|not|any|enough|insufficient|nothing)\b
      [^\n.]{{0,40}}\b(?:{_MATERIAL}|answers?|mention|indication|details?)\b
    |(?:不知道|不清楚|不确定)(?:\s*(?:\Z|[\n。，,.；;：:！!（(])|答案|具体|这|该|他|她|它|是|谁|什么|哪)
    |(?:未知|不详|无从得知|无法(?:确定|得知|判断|回答))(?:\s*(?:\Z|[\n。，,.；;：:！!（(]))
    |[^\n。]{{0,14}}(?:资料|文中|文本|原文|文章|文档|段落|材料|信息|上下文|内容|来源|根据|其中|这里|以上|上述|提供)
      [^\n。]{{0,16}}(?:没有|未|并未|无法|不能|不)(?:直接|明确|找到|足够|具体)*的?(?:提到|提及|包含|说明|给出|提供|回答
      |确定|答案|知道|涉及|相关|信息|得知|得出|找到)
    |(?:我|暂时?|目前)?(?:没有|未|并未|无法|不能)(?:直接|明确|找到|足够|具体)*的?(?:提到|提及|说明|给出|提供|回答|确定
      |答案|涉及|相关|信息|得知|得出)""",
    re.I | re.X,
)


def read_passage(answer: str, query: str) -> str:
    """Return the passage that a model wrote for a query.

    Raises:
        ValueError: If it wrote none, or asks a question instead.

    Example:
        >>> read_passage("Passage: The Nile is 6,650 km long.", "How long is the Nile?")
        'The Nile is 6,650 km long.'
    """
    text = _prose(answer)
    if says_none(text) or is_opening(text):
        raise ValueError("the model says that there is nothing to write")
    if normal(text).strip("?？") == normal(query).strip("?？"):
        raise ValueError("the answer repeats the query")
    if "\n" not in text and text.endswith(("?", "？")):
        raise ValueError("the answer is a question and no passage")
    return text[:LONGEST_PASSAGE].rstrip()


def read_partial(answer: str) -> str | None:
    """Return what a model answers to a question from passages, None where it doesn't know.

    Raises:
        ValueError: If the answer is empty.

    Example:
        >>> read_partial("Answer: Cao Xueqin"), read_partial("资料中没有提到。")
        ('Cao Xueqin', None)
    """
    text = shortened(answer)
    if not re.search(r"\w", text):
        raise ValueError("the answer is empty")
    try:
        text = _prose(answer)
    except ValueError:  # it refuses: there is nothing to know
        return None
    return None if says_none(text) or _UNKNOWN.match(text) else text[:LONGEST_PASSAGE].rstrip()


def _prose(answer: str) -> str:
    """Return an answer's text without label and quotes; of JSON its texts.

    Raises:
        ValueError: If the answer is empty, or a refusal.
    """
    text = shortened(answer)
    check_answer(text)
    value = json_in(text) if text[:1] in "[{" else None
    if value is not None:
        text = "\n".join(strings(value, KEYS))
    text = unwrap(unlabelled_text(unopened(text) or text).strip().strip("*`"))
    if not re.search(r"\w", text):
        raise ValueError("the answer is empty")
    return text
