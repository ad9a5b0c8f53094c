"""Clean up the answer of a model, and parse the JSON, tags, tables or lines in it."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .chinese_script import chinese_pattern
from .failures import failure_in, is_blank_value, is_error_value, repeats
from .json_values import TEXT_KEYS, find_json, texts_in, value_of
from .refusals import is_refusal
from .tags import tagged_value
from .thoughts import CONTROL_TOKEN, without_thoughts

MAX_ANSWER_LENGTH = 100_000
"""The maximum length of an answer in characters, without the reasoning.

Longer answers are truncated.
"""

# A byte order mark, and spaces without a width.
_INVISIBLE = re.compile("[\ufeff\u200b\u2060]")

_FENCE = re.compile(r"^[ \t]*(?:```|~~~|\"{3})[ \t]*[\w+-]*[ \t]*$\n?", re.M)

_ONE_LINE_FENCE = re.compile(r"\A\s*```(?:\w{1,12} )?([^`\n]+)```\s*\Z")

# The start of a further example, which repeats the form of the prompt.
_NEXT_EXAMPLE = chinese_pattern(
    r"""(?<=\S)\s{0,9}\n[\s#*]{0,9}(?:example\s?\d{1,2}|例[一二三四五六七八九十\d]{0,2})
      [*:：]{0,3}\s{0,4}\n\s{0,9}(?:\w{0,20}\s)?(?:question|conversation|passages|tools|sources|fields
      |(?:原|接着的)?问题|对话|资料|工具|字段|途径)\s?[:：].*\Z
    |(?<=\S)\s{0,9}\n\s{0,9}\n(?:(?:next|original|follow-up)\ )?
      (?:question|原问题|接着的问题|问题)\s?[:：](?P<question>[^\n]{1,400})\n\s{0,9}
      (?:rewritten\ question|(?:simpler|sub-?)\ ?questions|(?:other\ )?phrasings|passage|json
      |改写后的问题|子问题|其他问法|段落)[^\n:：]{0,40}[:：].*\Z""",
    re.I | re.S | re.X,
)

# Tokens for calls and roles that some servers do not remove.
_ROLE_MARK = re.compile(
    r"\[INST\][^\[\]]{0,5000}\[/INST\]|\[/?(?:TOOL_CALLS|INST)\]"
    r"|^data:\s(?=[{\[])|^data:\s\[DONE\]\s{0,9}$|\s#{3,9}\s{0,9}\Z"
    r"|(?<=[.?!。？！])#{3,9}\s{0,9}\Z|\A\s{0,9}(?:assistant|model)[ \t]{0,9}\n",
    re.M,
)

_ROLE_TOKEN = re.compile(r"<\|(?:im_start|start_header_id)\|>\s?(?:assistant|system|user)\b")

# A further turn of the conversation that the model made up.
_NEXT_TURN = re.compile(r"(?<=\S)\s{0,9}\n#{3}\s{0,9}(?:User|Human|Instruction)\b.*\Z", re.S)

# Matches "functions.search({...})" and "to=functions.search {...}".
_CALL = re.compile(
    r"^(?:\w{1,20}:\s)?(?:to=)?(?:functions?\.(?P<name>[\w.-]{1,60})\s?\(?|(?P<other>\w{1,60})\()"
    r"\s?(?P<arguments>\{[^\n]{1,5000}\})\s?\)?;?$",
    re.M,
)

# Matches 'print(["…", "…"])'.
_LIST_CALL = re.compile(
    r"\A\s{0,9}(?:\w{1,20}\s?=\s?)?[\w.]{1,40}\(\s{0,9}(\[.{1,20000}\])\s{0,9}\);?\s{0,9}\Z", re.S
)

# Text that the model has crossed out, as in "~~Who wrote it?~~ Who painted it?".
_STRUCK = re.compile(r"~~[^~\n]{1,300}~~\s?")

# HTML entities that are not part of a tag.
_ENTITY = re.compile(r"&(?:quot|apos|#39|#x27|#34|ldquo|rdquo|lsquo|rsquo);|&nbsp;\s{0,9}\Z")

# A line break that was written as a backslash and "n", after the end of a sentence.
_WRITTEN_BREAK = re.compile(r"(?<=[.?!。？！])(?:\\r)?\\n")

_KIMI_CALL = re.compile(
    r"<\|tool_call_begin\|>\s?(?:functions\.)?([\w.-]{1,60}?)(?::\d{1,3})?\s?"
    r"<\|tool_call_argument_begin\|>(.{0,5000}?)<\|tool_call_end\|>",
    re.S,
)

_DEEPSEEK_CALL = re.compile(
    r"<｜tool▁call▁begin｜>\s?(?:function<｜tool▁sep｜>)?([\w.-]{1,60})(?:<｜tool▁sep｜>|\s)\s{0,9}"
    r"(?:```json\s)?(\{.{0,5000}?\})\s{0,9}(?:```)?\s{0,9}<｜tool▁call▁end｜>",
    re.S,
)

_HARMONY_CALL = re.compile(
    r"<\|channel\|>commentary to=(?:functions\.)?([\w.-]{1,60})\s?(?:<\|constrain\|>\w{1,20})?"
    r"<\|message\|>(\{.{0,5000}?\})\s{0,9}(?:<\|call\|>|\Z)",
    re.S,
)

_BREAK = re.compile(
    r"\A(?:\s{0,9}<br\s?/?>)+\s{0,9}|(?<=[.?!。？！])\s{0,9}<br\s?/?>\s{0,9}"
    r"|<br\s?/?>\s{0,9}$",
    re.M | re.I,
)

_ROW_TAG = re.compile(r"\s*<tr(?:\s[^<>]{0,200})?>(.{0,5000}?)</tr>\s*", re.S | re.I)

_TABLE_TAG = re.compile(r"\s*</?(?:table|thead|tbody)(?:\s[^<>]{0,200})?>\s*", re.I)

_CELL_TAG = re.compile(r"\s*<t[dh](?:\s[^<>]{0,200})?>(.{0,2000}?)</t[dh]>\s*", re.S | re.I)

# The start of a collapsed section, whose summary is a heading.
_DETAILS = re.compile(
    r"^[ \t]{0,9}<details(?:\s[^<>]{0,200})?>"
    r"(?:\s{0,9}<summary>\s{0,9}(?P<summary>[^<>\n]{0,200}?)\s{0,9}</summary>|[ \t]{0,9}$)",
    re.M | re.I,
)

_END_OF_DETAILS = re.compile(r"\s{0,9}</details>\s{0,9}", re.I)

_ANSWER_TAG = re.compile(r"</?answer>", re.I)

# The end of another field besides the answer.
_OTHER_TAG = re.compile(r"</(?!answer>)[a-z_]{3,20}>\s{0,9}\n", re.I)

# Matches "Sure! Here are the keywords:" and "好的，以下是摘要：".
_OPENING = chinese_pattern(
    r"(?:(?:sure|certainly|of course|ok(?:ay)?|好的|当然(?:可以)?)(?:\s?[,.!，。！]\s{0,9}|\Z))?"
    r"(?:(?:here(?:['’]s| is| are)|以下是?|下面是?|这是)[^\n:：?？]{0,60}[:：]\s{0,9})?",
    re.I,
)

_CLOSING = chinese_pattern(
    r"\n\s{0,9}(?:let me know|i hope|feel free|would you|is there anything else"
    r"|希望|如果|还有(?:其他|什么)|需要我)[^\n]*\Z",
    re.I,
)

_NONE = chinese_pattern(
    r"none|no|no[ _]answer|nil|n/?a|null|nothing|empty|无|无答案|没有|暂无|空", re.I
)

_PUNCTUATION = " \t\r\n.。!！*_`\"'“”‘’「」()（）[]{}<>#-:："


# The final result, as models for mathematics and GLM mark it. Braces may be nested once. A box
# before further words is part of the answer.
_BOX = re.compile(
    r"\\boxed\s?\{(?P<formula>(?:[^{}]|\{[^{}]*\}){1,2000})\}(?=[\s$*.。\])\\]{0,9}\Z)"
    r"|<\|begin_of_box\|>(?P<text>.{1,2000}?)<\|end_of_box\|>",
    re.S,
)


# The label of a field. The last field of a reply with several fields may be a box.
_FIELD = re.compile(r"^\W{0,9}(?:answered|已回答|Q\d{0,2}|问\d{0,2})\W{0,4}[:：]", re.I | re.M)


def _boxed(text: str, query: str) -> str:
    """Return the text in a box if the text has one box, otherwise the whole text.

    The whole text is also returned if the user asks about boxes, or if the box is one of several
    fields.
    """
    boxes = [*_BOX.finditer(text)]
    if len(boxes) != 1 or "box" in query or _FIELD.search(text[: boxes[0].start()]):
        return text
    return boxes[0]["formula"] or boxes[0]["text"]


def clean(answer: str, query: str = "") -> str:
    """Remove the reasoning, code fences and polite phrases from an answer.

    Example:
        >>> clean("<think>Hm.</think>Sure! Here is the summary:\\n\\nTea is a drink.")
        'Tea is a drink.'
    """
    text = answer.replace("\r\n", "\n").replace("\r", "\n")
    text = _INVISIBLE.sub("", text)
    call = r'{"name": "\1", "arguments": \2}\n'
    text = _HARMONY_CALL.sub(rf"<|channel|>final<|message|>{call}", text)
    text = _boxed(without_thoughts(text), query)
    for tool_call in (_KIMI_CALL, _DEEPSEEK_CALL):
        text = tool_call.sub(call, text)
    for mark in (_ROLE_TOKEN, CONTROL_TOKEN, _NEXT_TURN, _ROLE_MARK):
        text = mark.sub(lambda found: found[0] if found[0].strip() in query else "", text)
    text = _without_next_example(text, query)
    text = _ONE_LINE_FENCE.sub(r"\1", _FENCE.sub("", text))
    text = _LIST_CALL.sub(r"\1", _CALL.sub(_call_value, text))
    if "~~" not in query:
        text = _STRUCK.sub("", text)
    if "&" not in query:
        text = _ENTITY.sub(lambda found: html.unescape(found[0]).replace("\xa0", " "), text)
    is_line = "\n" not in text.strip()
    if is_line and not re.search(r"[{\[]", text):
        text = _WRITTEN_BREAK.sub("\n", text)
    if "<details" not in query and _DETAILS.search(text):
        text = _END_OF_DETAILS.sub("\n", _DETAILS.sub(_details_heading, text))
    if "<answer" not in query and not _OTHER_TAG.search(text):
        text = _ANSWER_TAG.sub("", text)
    text = _BREAK.sub("\n", text).strip()
    if text[:6].casefold() == "<table":
        text = _TABLE_TAG.sub("", _ROW_TAG.sub(_row, text)).strip()
    return _CLOSING.sub("", _OPENING.sub("", text, count=1))


def _without_next_example(text: str, query: str) -> str:
    """Remove a further example that the model made up after its answer."""
    found = _NEXT_EXAMPLE.search(text)
    if found is None:
        return text
    if normalize(found["question"] or "") == normalize(query) and query:
        return text  # The model repeated the user's question before its answer.
    return text[: found.start()]


def _details_heading(found: re.Match[str]) -> str:
    """Convert the start of a collapsed section to a heading."""
    if not found["summary"]:
        return ""
    return f"**{found['summary']}**\n"


def _call_value(found: re.Match[str]) -> str:
    """Convert a function call to a JSON object."""
    name = found["name"] or found["other"]
    return f'{{"name": "{name}", "arguments": {found["arguments"]}}}'


def _row(found: re.Match[str]) -> str:
    """Convert a row of an HTML table to a row of a Markdown table."""
    return f"| {_CELL_TAG.sub(_cell, found[1])}\n"


def _cell(found: re.Match[str]) -> str:
    return f"{found[1].strip()} | "


# A request for details instead of the requested text.
_ASKS_BACK = chinese_pattern(
    r"""\A(?:it\ (?:looks|seems)\ like\ )?(?:your|the)\ (?:question|query|request|message)
      \ (?:is|seems?|appears?)\ (?:to\ be\ )?(?:\w+\ ){0,2}
      (?:unclear|vague|ambiguous|incomplete|empty|blank|cut\ off)(?=[.,;!]|\W{0,3}\Z)
    |\A(?:could|can|would)\ you\ (?:please\ )?(?:clarify|specify|explain)\ (?:what|which|who)\b
      [^.\n]{0,60}\byou\ (?:mean|want|are\ (?:asking|referring))\b
    |\b(?:could|can|would)\ you\ (?:please\ )?(?:tell\ me|clarify|provide|specify|share)
      [^\n?]{0,80}:\s{0,9}\n
    |\A(?:您|你)的?(?:问题|提问|描述|输入|表述)(?:还|有点|似乎|可能|比较|好像|看起来|有些)?
      (?:不够|不太|不|过于|太)(?:明确|清楚|清晰|具体|完整|笼统|模糊|简短|简略)(?=[，,。！；]|\W{0,3}\Z)
    |\A请问(?:您|你)(?:说|问|指|想问|提到|想了解)的[^。\n]{0,16}(?:是|指)[^。\n]{0,4}(?:哪|什么|谁)
    |(?:能否|请|可以|麻烦)[^。？?\n]{0,6}(?:告诉我|提供|说明|补充|确认)[^。？?\n]{0,30}[:：]\s{0,9}\n""",
    re.I | re.X,
)


def usable_text(answer: str, query: str = "") -> str:
    """Clean up an answer, truncate it to ``MAX_ANSWER_LENGTH``, and check that it is usable.

    Args:
        answer: The answer of the model.
        query: The user's question. Text that occurs in it is not treated as a failure.

    Raises:
        ValueError: If the answer is empty, a refusal, a server error, a traceback, a web page or a
            URL.
    """
    asked = normalize(query)
    if asked and normalize(answer) == asked:
        return answer.strip()
    text = clean(answer, query)[:MAX_ANSWER_LENGTH].strip()
    if not text.strip(_PUNCTUATION) and text not in ("[]", "{}"):
        raise ValueError("the answer is empty")
    if is_blank_value(text) and text not in ("[]", "{}"):
        raise ValueError("the answer is an empty value")
    if is_refusal(text, is_answer=False) and normalize(text) != asked:
        raise ValueError("the model refused")
    if _ASKS_BACK.search(text) and not repeats(text, query):
        raise ValueError("the answer asks for details")
    failure = failure_in(text, query)
    if failure is not None:
        raise ValueError(f"the answer is {failure}")
    return text


def is_no_answer(text: str) -> bool:
    """Return whether a cleaned answer means that the model has nothing to list.

    Example:
        >>> [is_no_answer(text) for text in ("None.", "无", "[]", "No trains run.")]
        [True, True, True, False]
    """
    words = unicodedata.normalize("NFKC", text).strip(_PUNCTUATION)
    return text in ("[]", "{}") or _NONE.fullmatch(words) is not None


def read_json(answer: str, keys: Sequence[str], query: str = "") -> tuple[str, Any]:
    """Clean up an answer and parse the JSON or the tags in it.

    The text is empty if the answer is NONE, [] or an object with an empty list under one of the
    keys. Tags around a single text are removed.

    Args:
        answer: The answer of the model.
        keys: The keys of JSON objects under which texts are expected.
        query: The user's question.

    Raises:
        ValueError: If the answer is empty, is a failure message, or contains JSON that cannot be
            parsed.

    Example:
        >>> read_json('{"questions": ["Why?"]}', ("questions",))[1], read_json("NONE", ())
        ({'questions': ['Why?']}, ('', None))
        >>> read_json("<query>Why?</query>", ())
        ('Why?', None)
    """
    text = usable_text(answer, query)
    value = tagged_value(text, query)
    if isinstance(value, str):
        text = usable_text(value, query)
        value = None
    if value is None:
        value = find_json(text)
    if is_error_value(value):
        raise ValueError("the answer is the error of a server")
    is_empty_list = isinstance(value, Mapping) and _has_nothing(value, keys)
    if is_empty_list or is_no_answer(text):
        return "", None
    return text, value


def _has_nothing(record: Mapping[Any, Any], keys: Sequence[str]) -> bool:
    """Return whether an object has an empty list or null instead of texts."""
    if value_of(record, keys) == []:
        return True
    has_text = any(value not in (None, False) for value in record.values())
    return not has_text and value_of(dict.fromkeys(record, 1), keys) == 1


def read_text(answer: str, keys: Sequence[str] = TEXT_KEYS, query: str = "") -> str:
    """Clean up an answer and return it as a text. If it contains JSON, return the texts in it.

    Errors are raised as in ``read_json``.
    """
    text, value = read_json(answer, keys, query)
    if value is None:
        return text
    return "\n".join(texts_in(value, keys))


def unique(texts: Iterable[str]) -> list[str]:
    """Remove duplicates from a list of texts. Differences in case and spaces are ignored."""
    first: dict[str, str] = {}
    for text in texts:
        first.setdefault(normalize(text), text)
    return list(first.values())


def normalize(text: str) -> str:
    """Normalize a text for comparison, so that character width, case and spaces are ignored."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
