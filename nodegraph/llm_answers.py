"""Read what a language model answers: its text without thoughts and phrases, or JSON in it."""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Any

_THOUGHT = re.compile(
    r"<(think(?:ing)?|thoughts?|reasoning|reflection)>.*?(?:</\1>|\Z)", re.S | re.I
)
_THOUGHT_END = re.compile(r"\A.*</(?:think(?:ing)?|thoughts?|reasoning|reflection)>", re.S | re.I)
_SPECIAL = re.compile(r"<\|[a-z_]{2,20}\|>|</?(?:answer|output|response|result)>|</s>", re.I)
_SINGLE = re.compile(r"(?<=[\[{,:\s])'((?:[^'\\]|\\.|'(?!\s*[,\]}:]))*)'(?=\s*[,\]}:])")
_COMMA = re.compile(r",(\s*[\]}])")
_FENCE = re.compile(r"^[ \t]*(?:```|~~~)[ \t]*[\w+-]*[ \t]*$\n?", re.M)

# A first line that only leads over to the answer: "Sure! Here are the keywords:", "以下是摘要："
_OPENING = re.compile(
    r"""(?:(?:sure(?:\ thing)?|certainly|of\ course|okay|ok|absolutely|great)[,.!]*
    | (?:here(?:'s|’s|\ is|\ are|\ you\ (?:are|go))
      |below|the\ following|(?:these|this)\ (?:are|is)|based\ on
      |i(?:'ve|’ve|\ have)\ |(?:sure|certainly|of\ course|okay|ok|absolutely|great)\b)
      [^\n]{0,200}?[:：]
    | (?:好的|好|当然(?:可以)?|没问题|可以)[，,。！!]?
    | (?:(?:好的|好|当然(?:可以)?|没问题|可以)[，,。！!]?\s*)?
      (?:以下|下面|根据|这是|这里|基于|从)[^\n。]{0,80}?[:：]
    )[*_]*[ \t]*(?:\n|\Z)""",
    re.I | re.X,
)
_CLOSING = re.compile(
    r"""\n[ \t]*(?:let\ me\ know\b|i\ hope\b|hope\ this\b|feel\ free\b|please\ let\ me\b
    |if\ you\ (?:have|need|want|would|'d)\b|希望(?:这|以上|对您|对你|能)|请告诉我
    |如果?有(?:其他|任何|更多)|如果?(?:您|你)(?:有|需要|还|想))[^\n]*\s*\Z""",
    re.I | re.X,
)
_REFUSAL = re.compile(
    r"""(?:i(?:'|’)?m|i\ am)\ (?:(?:very\ |so\ )?sorry|unable)\b
    | sorry,?\ (?:but\ )?i\b | i\ apologi[sz]e\b | unfortunately,?\ i\b
    | as\ an\ (?:ai|artificial)\b
    | i\ (?:can(?:'|’)t|cannot|can\ not|won(?:'|’)t)\ (?:help|assist|provide|generate|answer|fulfil
      |comply|create|summari|extract|do)
    | (?:非常|很)?(?:抱歉|对不起|遗憾)[，,。！!\s]
    | 作为(?:一个|一名|一款)?(?:ai|人工智能|大?语言模型)
    | 我(?:无法|不能|没法)(?:提供|回答|生成|总结|完成|提取|满足|为您|为你|处理)""",
    re.I | re.X,
)
_WHAT = (
    "key ?words?|key ?phrases?|questions?|q ?& ?a|qa|pairs?|question-answer pairs?|summary|content"
)
_NONE = re.compile(
    rf"""(?:none|no|nil|n/?a|null|nothing|empty|无|没有|暂无|空
    | (?:there\ (?:is|are)\ )?(?:no|not\ any|nothing)\b[^\n]{{0,30}}\b(?:{_WHAT})\b[^\n]{{0,60}}
    | (?:[^\n，。]{{0,12}}(?:没有|不存在|未包含|未提供|未找到)|无)
      (?:可|任何|可以|能够|明显|有效|相关|的|提取|出|供|用于|提问|生成|回答)*
      (?:关键词|关键字|问题|问答对?|摘要|内容|信息)[^\n]{{0,20}})""",
    re.I | re.X,
)
_MARKS = " \t\r\n.。!！*_`\"'“”‘’「」()（）[]{}<>#-:："


def clean(answer: str) -> str:
    """Return an answer without thoughts, code fences, opening and closing phrases.

    Example:
        >>> clean("<think>Hm.</think>Sure! Here is the summary:\\n\\nTea is a drink.")
        'Tea is a drink.'
    """
    text = answer.replace("\r\n", "\n").replace("\r", "\n").replace("\ufeff", "")
    text = _THOUGHT_END.sub("", _THOUGHT.sub("", text))  # some begin without saying so
    text = _FENCE.sub("", _SPECIAL.sub("", text)).strip()
    while (opening := _OPENING.match(text)) and opening.end():
        text = text[opening.end() :].lstrip()
    closing = _CLOSING.search(text)
    return text if closing is None else text[: closing.start()].rstrip()


def check_answer(text: str) -> None:
    """Check that a cleaned answer is one.

    Raises:
        ValueError: If nothing is left of it, or the model refused.
    """
    if not text.strip(_MARKS) and text not in ("[]", "{}"):
        raise ValueError("the answer is empty")
    if _REFUSAL.match(text):
        raise ValueError("the model refused")


def says_none(text: str) -> bool:
    """Tell whether a cleaned answer says that there is nothing to answer with.

    Example:
        >>> says_none("None."), says_none("没有可提取的关键词。"), says_none("No trains run.")
        (True, True, False)
    """
    if text in ("[]", "{}"):
        return True
    bare = unicodedata.normalize("NFKC", text).strip(_MARKS)
    return not bare.endswith("?") and _NONE.fullmatch(bare) is not None


def read_json(answer: str) -> Any:
    """Return the JSON value in an answer, with or without prose around it.

    Of a list that was cut off, what is whole; of values one after the other, a list.

    Raises:
        ValueError: If there is none.

    Example:
        >>> read_json('Here you are:\\n```json\\n["tea", "wat')
        ['tea']
    """
    text = clean(answer)
    for begin in (found.start() for found in re.finditer(r"[\[{]", text)):
        found = json_at(text, begin)
        if found is not None:
            return found
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError(f"there is no JSON in the answer {answer!r:.200}") from None


def json_at(text: str, begin: int = 0) -> Any:
    """Return the JSON value that begins at a place; None where there is none."""
    decoder = json.JSONDecoder(strict=False)
    try:
        value, end = decoder.raw_decode(text, begin)
    except (ValueError, RecursionError):
        value = _literal(text[begin:])
        if value is None and text.startswith("[", begin):
            value = _items(decoder, text, begin + 1) or None
        return value
    if isinstance(value, dict):  # one object a line
        more = _items(decoder, text, end)
        return [value, *more] if more else value
    return value


def _items(decoder: json.JSONDecoder, text: str, begin: int) -> list[Any]:
    """Read values up to where one is not whole."""
    values: list[Any] = []
    while True:
        while begin < len(text) and text[begin] in " \t\r\n,":
            begin += 1
        if begin >= len(text) or text[begin] not in '{["':
            return values
        try:
            value, begin = decoder.raw_decode(text, begin)
        except (ValueError, RecursionError):
            return values
        values.append(value)


def _literal(text: str) -> Any:
    """Read what is Python rather than JSON: single quotes, a comma too many."""
    end = max(text.rfind("]"), text.rfind("}")) + 1
    quoted = _SINGLE.sub(lambda found: json.dumps(found[1].replace("\\'", "'")), text[:end])
    try:
        return json.loads(_COMMA.sub(r"\1", quoted), strict=False)
    except (ValueError, RecursionError):
        return None
