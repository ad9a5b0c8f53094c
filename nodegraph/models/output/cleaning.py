"""Read what a language model answers: its text without thoughts and phrases, or JSON in it."""

from __future__ import annotations

import json
import re
import unicodedata
from itertools import islice
from typing import Any

_MOST_OPENINGS = 5

_MOST_BEGINNINGS = 64  # brackets at which JSON may begin

_LONGEST_LITERAL = 50_000  # characters

_DEEPEST = 40

_THOUGHT = re.compile(
    r"<(think(?:ing)?|thoughts?|reasoning|reflection)>.*?(?:</\1>|\Z)", re.S | re.I
)

_THOUGHT_END = re.compile(r"\A.*</(?:think(?:ing)?|thoughts?|reasoning|reflection)>", re.S | re.I)

_SPECIAL = re.compile(r"<\|[a-z_]{2,20}\|>|</?(?:answer|output|response|result)>|</s>", re.I)

_OPEN_QUOTE = re.compile(r"(?<=[\[{,:\s])'")

_QUOTE = re.compile(r"\\.|'", re.S)

_AFTER_QUOTE = re.compile(r"\s*[,\]}:]")

_COMMA = re.compile(r",(\s*[\]}])")

_FENCE = re.compile(r"^[ \t]*(?:```|~~~)(?:[ \t]*[\w+-]+)?[ \t]*$\n?", re.M)

# Patterns here are tried at few places and have no two repetitions of the same side by side: an
# answer may be a million spaces.
_YES_EN = r"(?:sure(?:\ thing)?|certainly|of\ course|okay|ok|absolutely|great)"

_YES_ZH = r"(?:好的?|当然(?:可以)?|没问题|可以的?)"

# What polite models say first: "Sure!", "好的，"
_POLITE = re.compile(
    rf"""\s*(?:{_YES_EN}(?:\s*[,.!]+\s*|\s+(?=here\b|below\b|i\b))|{_YES_ZH}[，,。！!]+\s*)+""",
    re.I | re.X,
)

# What leads over to an answer on the same line: "Here is the question: ...", "可以改写为：..."
_LEADS = re.compile(
    r"""\s*(?:here(?:'s|’s|\s+is|\s+are)|below\ (?:is|are)|(?:i|you)\ (?:would|could|can)
    |以下|下面|这是|您可以|你可以|(?:原|该|这个)?问题可以|可以)[^\n:：?？]{0,60}[:：]\s*""",
    re.I | re.X,
)

# A first line that does nothing else: "Sure! Here are the keywords:", "以下是摘要："
_OPENING = re.compile(
    rf"""(?:{_YES_EN}[,.!]*
    | (?:here(?:'s|’s|\ is|\ are|\ you\ (?:are|go))
      |below|the\ following|(?:these|this)\ (?:are|is)|based\ on
      |i(?:'ve|’ve|\ have)\ |{_YES_EN}\b)
      [^\n]{{0,200}}?[:：]
    | {_YES_ZH}[，,。！!]?
    | (?:{_YES_ZH}[，,。！!]?\s{{0,3}})?
      (?:以下|下面|根据|这是|这里|基于|从)[^\n。]{{0,80}}?[:：]
    )[*_]*[ \t]*(?:\n|\Z)""",
    re.I | re.X,
)

_TASK = (
    r"\b(?:key\ ?(?:words?|phrases?)|questions?|q(?:\ ?&\ ?)?a|pairs?|summar(?:y|ies)|quer(?:y|ies)"
    r"|passages?|versions?)\b|摘要|总结|概要|关键词|关键字|问题|问答|问句|段落"
)

_LED = re.compile(rf"[^\n:：]*(?:{_TASK})[^\n:：]*[:：]", re.I | re.X)

_CLOSING = re.compile(
    r"""[ \t]*(?:let\ me\ know\b|i\ hope\b|hope\ this\b|feel\ free\b|please\ let\ me\b
    |if\ you\ (?:have|need|want|would|'d)\b|希望(?:这|以上|对您|对你|能)|请告诉我
    |如果?有(?:其他|任何|更多)|如果?(?:您|你)(?:有|需要|还|想))""",
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

    What is nothing but an opening phrase stays where it may be the answer: "可以", "Sure".

    Example:
        >>> clean("<think>Hm.</think>Sure! Here is the summary:\\n\\nTea is a drink.")
        'Tea is a drink.'
        >>> clean("Sure! Here is the summary: Tea is a drink."), clean("可以")
        ('Tea is a drink.', '可以')
    """
    text = answer.replace("\r\n", "\n").replace("\r", "\n").replace("\ufeff", "")
    text = _THOUGHT_END.sub("", _THOUGHT.sub("", text))  # some begin without saying so
    text = _FENCE.sub("", _SPECIAL.sub("", text)).strip()
    for _ in range(_MOST_OPENINGS):
        opening = _OPENING.match(text)
        if opening is None:
            break
        rest = text[opening.end() :].lstrip()
        if not rest and not _leads(opening[0]):
            break
        text = rest
    text = _without_lead(text)
    before, line_end, last = text.rpartition("\n")
    return before.rstrip() if line_end and _CLOSING.match(last) else text


def unopened(line: str) -> str:
    """Return a line without what leads over to what it says.

    Choose it over ``clean`` where no verdict is read: of "可以，因为..." it leaves the reason.

    Example:
        >>> unopened("Sure! Here is a clearer one: How long is it?"), unopened("好的，它有多长？")
        ('How long is it?', '它有多长？')
    """
    polite = _POLITE.match(line)
    line = line[polite.end() :] if polite else line
    leads = _LEADS.match(line)
    return line[leads.end() :] if leads else line


def is_opening(text: str) -> bool:
    """Tell whether a cleaned answer is nothing but a polite opening.

    Example:
        >>> is_opening("Certainly!"), is_opening("Certainly not.")
        (True, False)
    """
    return _OPENING.fullmatch(text) is not None


def _leads(opening: str) -> bool:
    """Tell whether an opening announces something."""
    return opening.rstrip(" \t\n*_").endswith((":", "："))


def _without_lead(text: str) -> str:
    """Return a text without an opening that its first line goes on behind.

    Only where it is polite, or names what was asked for: "Here is a river: ..." may be content.
    """
    polite = _POLITE.match(text)
    begin = polite.end() if polite else 0
    leads = _LEADS.match(text, begin)
    if leads is None or not (polite or _LED.match(leads[0])):
        return text
    return text[leads.end() :] or text


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
    begins = (found.start() for found in re.finditer(r"[\[{]", text))
    for begin in islice(begins, _MOST_BEGINNINGS):
        found = json_at(text, begin)
        if found is not None:
            return found
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise ValueError(f"there is no JSON in the answer {answer!r:.200}") from None
    if _is_deep(value):
        raise ValueError(f"the JSON in the answer {answer!r:.200} is nested too deeply")
    return value


def json_at(text: str, begin: int = 0) -> Any:
    """Return the JSON value that begins at a place; None where there is none to be used."""
    value = _json_at(text, begin)
    return None if _is_deep(value) else value


def _json_at(text: str, begin: int) -> Any:
    decoder = json.JSONDecoder(strict=False)
    try:
        value, end = decoder.raw_decode(text, begin)
    except (ValueError, RecursionError):
        value = _literal(text[begin : begin + _LONGEST_LITERAL])
        if value is None and text.startswith("[", begin):
            value = _items(decoder, text, begin + 1) or None
        return value
    if isinstance(value, dict):  # one object a line
        more = _items(decoder, text, end)
        return [value, *more] if more else value
    return value


def _is_deep(value: Any) -> bool:
    """Tell whether a value is nested so deeply that to walk through it takes too many calls."""
    level = [value]
    for _ in range(_DEEPEST):
        level = [
            inner
            for each in level
            if isinstance(each, list | dict)
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return False
    return True


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
    try:
        return json.loads(_COMMA.sub(r"\1", _requoted(text[:end])), strict=False)
    except (ValueError, RecursionError):
        return None


def _requoted(text: str) -> str:
    """Return a text whose strings in single quotes are in double ones.

    An apostrophe ends no string: behind the quote that does stands a comma, colon or bracket.
    """
    parts = []
    at = 0
    while opened := _OPEN_QUOTE.search(text, at):
        closed = next(
            (
                quote
                for quote in _QUOTE.finditer(text, opened.end())
                if quote[0] == "'" and _AFTER_QUOTE.match(text, quote.end())
            ),
            None,
        )
        if closed is None:
            break
        inner = text[opened.end() : closed.start()]
        parts += [text[at : opened.start()], json.dumps(inner.replace("\\'", "'"))]
        at = closed.end()
    return "".join(parts) + text[at:]
