"""Parse a passage, or a short answer, from what a model writes."""

from __future__ import annotations

import re

from .cleaning import MAX_ANSWER_LENGTH, check_answer, clean, is_no_answer, is_opening, strip_lead
from .json_values import find_json, looks_like_json, texts_in, value_of
from .lines import TEXT_KEYS, normalize, strip_label, unwrap

MAX_PASSAGE_LENGTH = 2000
"""Characters of a passage from a model, at most. The rest is cut off."""

_MATERIAL = (
    r"(?:passages?|contexts?|texts?|documents?|sources?|excerpts?|materials?|information|data|records?"
    r"|articles?|snippets?|results?)"
)

_SOURCE = (
    r"(?:in|from|by|within)\ (?:(?:the|these|this|any|given|provided|above|of|all)\ ){0,3}"
    rf"{_MATERIAL}\b"
)

_END = r"\s*(?:\Z|[\n.,;:!()（—–。，；：！]|-\s)"

_STATED = (
    r"(?:mention(?:ed|s)?|contain(?:ed|s)?|sa(?:y|id)|stated?|provided?|specif(?:y|ied)|given?"
    r"|includ(?:e|ed)|inform(?:ed|ation)|answer(?:ed|s)?|tell|told|found|known|indicated?|available"
    r"|determined?|helps?|clear|possible|enough|sufficient)"
)

# "Unknown." is no answer, "Unknown Pleasures" is one: the next words decide.
_UNKNOWN = re.compile(
    rf"""(?:i\ )?(?:do\ not|don(?:'|’)t)\ know
      (?:{_END}|\ (?:the|that|this|it|from|based|because)\b|\ (?-i:what|who|whom|whose|which|where
      |when|how|why|if|whether|about)\b)
    |(?:(?:it(?:'s|\ is)\ )?(?:unknown|unclear)|no\ (?:answer|information)(?:\ found)?
      |cannot\ be\ (?:answered|determined|found)
      |not\ (?:found|known|sure|given|stated|specified|mentioned|available|provided|answered|in))
      (?:{_END}|\ {_SOURCE}|\ (?:based\ on|because|since|anywhere|here)\b|\ the\ {_MATERIAL}\b)
    |(?:the|these|this|none|no|it)\b[^\n.]{{0,40}}\b{_MATERIAL}\b[^\n.]{{0,50}}
      (?:\b(?:no|not|never|nothing|neither)\b|n(?:'|’)t\b)[^\n.]{{0,30}}\b{_STATED}\b
    |(?:none\ of|no|neither\ of|nothing\ in)\b[^\n.]{{0,30}}\b{_MATERIAL}\b[^\n.]{{0,50}}
      \b{_STATED}\b
    |(?:it|this|that)\ (?:is|was)(?:\ not|n(?:'|’)t)\ {_STATED}\b(?:{_END}|\ {_SOURCE})
    |there\ (?:is|are|was|were)(?:n(?:'|’)t|\ not)?\ (?:no|not|any|enough|insufficient|nothing)\b
      [^\n.]{{0,40}}\b(?:{_MATERIAL}|answers?|mention|indication|details?)\b
    |(?:不知道|不清楚|不确定)(?:\s*(?:\Z|[\n。，,.；;：:！!（(])|答案|具体|这|该|他|她|它|是|谁|什么|哪)
    |(?:未知|不详|无从得知|无法(?:确定|得知|判断|回答))(?:\s*(?:\Z|[\n。，,.；;：:！!（(]))
    |[^\n。]{{0,14}}(?:资料|文中|文本|原文|文章|文档|段落|材料|信息|上下文|内容|来源|根据|其中|这里|以上|上述|提供)
      [^\n。]{{0,16}}(?:没有|未|并未|无法|不能|不)(?:直接|明确|找到|足够|具体)*的?(?:提到|提及|包含|说明|给出|提供|回答
      |确定|答案|知道|涉及|相关|信息|得知|得出|找到)
    |[^\n。]{{0,12}}(?:未|没有|无法|不能)(?:找到|提到|提及|说明|给出){_END}
    |(?:我|暂时?|目前)?(?:没有|未|并未|无法|不能)(?:直接|明确|找到|足够|具体)*的?(?:提到|提及|说明|给出|提供|回答|确定
      |答案|涉及|相关|信息|得知|得出)""",
    re.I | re.X,
)


_NO = re.compile(r"[\s*_\"'“”「」`]*(?:no|没有)[\s*_\"'“”「」`.。!！]*", re.I)


def parse_passage(answer: str, query: str) -> str:
    """Return the passage that a model wrote for a query.

    Raises:
        ValueError: If it wrote none, or asks a question instead.

    Example:
        >>> parse_passage("Passage: The Nile is 6,650 km long.", "How long is the Nile?")
        'The Nile is 6,650 km long.'
    """
    cleaned = clean(answer)[:MAX_ANSWER_LENGTH]
    check_answer(cleaned)
    if _is_data(cleaned):
        raise ValueError("the answer is data and no passage")
    text = _content(cleaned)
    if is_no_answer(text) or is_opening(text):
        raise ValueError("the model says that there is nothing to write")
    if not _WORD.search(_ADDRESS.sub("", text)):
        raise ValueError("there are no words in the answer")
    if normalize(text).strip("?？") == normalize(query).strip("?？"):
        raise ValueError("the answer repeats the query")
    if "\n" not in text and text.endswith(("?", "？")):
        raise ValueError("the answer is a question and no passage")
    return text[:MAX_PASSAGE_LENGTH].rstrip()


_WORD = re.compile(r"[^\W\d_]{2}|[\u3400-\u9fff]")

_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]{1,20}://\S*|\bwww\.\S*|\S{1,100}@\S*", re.I)

_FAILURE_KEYS = ("error", "errors", "detail", "traceback", "exception", "错误")


def _is_data(text: str) -> bool:
    """Check whether a cleaned answer is JSON that is broken, or tells of a failure."""
    if not (looks_like_json(text) or text.startswith("{")):
        return False
    value = find_json(text)
    if value is None:
        return True
    return isinstance(value, dict) and value_of(value, _FAILURE_KEYS) is not None


def parse_partial_answer(answer: str) -> str | None:
    """Return the model's answer to a question from passages, None where it is unknown.

    Raises:
        ValueError: If the answer is empty.

    Example:
        >>> parse_partial_answer("Answer: Cao Xueqin"), parse_partial_answer("资料中没有提到。")
        ('Cao Xueqin', None)
    """
    text = clean(answer)[:MAX_ANSWER_LENGTH]
    if not re.search(r"\w", text):
        raise ValueError("the answer is empty")
    try:
        text = _content(text)
    except ValueError:  # a refusal
        return None
    return None if is_unknown(text) else text[:MAX_PASSAGE_LENGTH].rstrip()


def is_unknown(text: str) -> bool:
    """Check whether a cleaned answer says that the answer is not known, or not in the passages.

    "No" and "没有" are answers here, though the same words mean "nothing to write" elsewhere.

    Example:
        >>> is_unknown("Not mentioned in the passages."), is_unknown("Unknown Pleasures")
        (True, False)
        >>> [is_unknown(text) for text in ("None.", "No.", "没有")]
        [True, False, False]
    """
    if _NO.fullmatch(text):
        return False
    return is_no_answer(text) or _UNKNOWN.match(text) is not None


def _content(text: str) -> str:
    """Return a cleaned answer without label and quotes. For JSON its texts.

    Raises:
        ValueError: If the answer is empty, or a refusal.
    """
    check_answer(text)
    value = find_json(text) if text[:1] in "[{" else None
    if value is not None:
        text = "\n".join(texts_in(value, TEXT_KEYS))
    text = unwrap(strip_label(strip_lead(text) or text).strip().strip("*`"))
    if not re.search(r"\w", text):
        raise ValueError("the answer is empty")
    return text
