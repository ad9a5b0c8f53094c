"""Remove the thoughts of reasoning models from an answer.

Each family of models marks its thoughts in another way: with tags, brackets, channels, control
tokens or headings. A mark may be open at the end (the answer was cut off, or is still streamed),
and the opening mark may be missing (it belongs to the prompt of some models).
"""

from __future__ import annotations

import re

# "<seed:think>", "<longcat_think>" and "<thinking>" are names of one kind.
_NAME = (
    r"(?:[a-z]{1,12}[:_])?(?:think(?:ing)?|thoughts?|reasoning|reflection|scratch_?pad"
    r"|(?:inner_|internal_)?monologue|chain_?of_?thought|cot|思考|思考过程|推理|推理过程)"
)

THOUGHT_TAG = _NAME
"""A regular expression of the names of tags with thoughts, for case-insensitive search."""

# Vendors' guides recommend these names for notes before an answer. A text in them may also be the
# answer itself.
_NOTES = r"(?:analysis|planning|plan|notes?|分析)"

_ATTRIBUTES = r"(?:\s[^<>]{0,200})?"

_TOKENS = (
    (
        r"<[|｜]begin[_▁]of[_▁]th(?:ought|inking)[|｜]>",
        r"<[|｜]end[_▁]of[_▁]th(?:ought|inking)[|｜]>",
    ),
    (r"<\|channel>thought", r"<channel\|>"),
    (r"<\|START_THINKING\|>", r"<\|END_THINKING\|>"),
    (r"<\|think(?:ing)?\|>", r"<\|/think(?:ing)?\|>"),
    (r"<\|think_start\|>", r"<\|think_end\|>"),
    (r"<unused94>", r"<unused95>"),
)

_PAIRS = (
    (rf"<{_NAME}{_ATTRIBUTES}>", rf"</{_NAME}\s?>"),
    (rf"\[{_NAME}\]", rf"\[/{_NAME}\]"),
    (rf"【{_NAME}】", rf"【/{_NAME}】"),
    (rf"◁{_NAME}▷", rf"◁/{_NAME}▷"),
    (r"<details\s+type=[\"']reasoning[\"'][^<>]{0,200}>", r"</details>"),
    (
        r"<details[^<>]{0,200}>\s{0,9}<summary>[^<>\n]{0,40}"
        r"(?:thinking|thoughts?|reasoning|思考)[^<>\n]{0,40}</summary>",
        r"</details>",
    ),
    *_TOKENS,
)

_BLOCKS = [re.compile(rf"{start}.*?(?:{end}|\Z)", re.S | re.I) for start, end in _PAIRS]

_LEADING_BLOCKS = [re.compile(rf"\s*{start}.*?(?:{end}|\Z)", re.S | re.I) for start, end in _PAIRS]

_ENDS = "|".join(end for _, end in _PAIRS if "details" not in end)

# Some models omit the opening mark. All text up to the last closing mark is thought.
_UNOPENED = re.compile(rf"\A.*(?:{_ENDS})", re.S | re.I)

_UNOPENED_LINE = re.compile(rf"\n[ \t]{{0,9}}(?:{_ENDS})", re.I)

_LEADING_NOTES = re.compile(
    rf"\A\s*<(?P<name>{_NOTES}){_ATTRIBUTES}>.*?</(?P=name)\s?>\s*(?=\S)", re.S | re.I
)

# The channels of gpt-oss: thoughts are in "analysis" and "commentary", the answer is in "final".
_CHANNEL = re.compile(
    r"<\|channel\|>\s*(?P<name>\w+)[^<\n]{0,200}(?:<\|constrain\|>[^<\n]{0,40})?<\|message\|>"
    r"(?P<text>.*?)(?=<\|(?:end|return|call|start|channel)\|>|\Z)",
    re.S,
)

# The same channels after a server has removed the control tokens.
_BARE_CHANNELS = re.compile(
    r"\A\s*analysis(?=[A-Z\u4e00-\u9fff]).*?assistant\s{0,9}final(?=\S)", re.S
)

_THOUGHT_HEADING = (
    r"(?:#{1,4} |\*\*)(?:Thinking|Thoughts?|Thought process|Reasoning|思考过程?)"
    r"[:：]?(?:\*\*)?[:：]?[ \t]*\n"
)

_QUOTED_THOUGHT = (
    r">\s?(?:💭|[*_]{0,2}(?:Thinking|Thoughts?|Thought process|思考过程?)[*_]{0,2}(?:[.:：…]|\n))"
)

_HEADINGS = (
    re.compile(r"\A\s*Thinking\.\.\.\n.*?\.\.\.done thinking\.", re.S),
    re.compile(
        r"\A\s*Here(?:'s| is) my thought process:.*?Here(?:'s| is) my response:", re.S | re.I
    ),
    re.compile(
        rf"\A\s*{_THOUGHT_HEADING}.*?"
        r"^(?:#{1,4} |\*\*)(?:(?:final|rewritten|improved|next) )?(?:response|answer|output|result"
        r"|(?:sub-?)?questions?|quer(?:y|ies)|最终回答|最终答案|回答|答案|改写后的(?:问题|查询)|子?问题)"
        r"[ \t]*[:：]?(?:\*\*)?[ \t]*[:：]?[ \t]*\n",
        re.S | re.I | re.M,
    ),
    # A block quotation of thoughts.
    re.compile(rf"\A\s*{_QUOTED_THOUGHT}[^\n]*\n(?:[ \t]*>[^\n]*\n)*\s*(?=[^\s>])", re.I),
)

CONTROL_TOKEN = re.compile(
    r"<\|start_header_id\|>\w{1,20}<\|end_header_id\|>|<\|/?\w{2,40}\|>|<[｜|][^<>\n]{2,40}[｜|]>|</s>|<(?:start|end)_of_turn>"
)
"""A control token of a model's template that reached the text."""

# The start of a mark that later chunks of a stream may complete.
_MAYBE_OPENING = re.compile(
    r"(?:<[^<>\n]{0,60}|\[/?[a-z:_]{0,30}|【/?\w{0,6}|◁[^▷\n]{0,20}"
    r"|#{1,4}(?: [a-z思考过程 ]{0,16}:?)?|<\|channel>[a-z]{0,7}"
    r"|<details[^<>\n]{0,200}>\s{0,9}(?:<[a-z]{0,7}>?[^<>\n]{0,40}(?:</?[a-z]{0,7})?)?"
    r"|\*\*?[a-z思考过程 ]{0,16}[:：]?\*{0,2}[:：]?"
    r"|>\s?(?:💭?|[*_]{0,2}[a-z思考过程 ]{0,16}[*_]{0,2})"
    r"|a(?:n(?:a(?:l(?:y(?:s(?:i(?:s)?)?)?)?)?)?)?|t(?:h(?:i(?:n(?:k(?:i(?:n(?:g\.{0,3}\n?)?)?)?)?)?)?)?"
    r"|here(?:'s| is)?(?: my?(?: thought)?(?: process:?)?)?)?\Z",
    re.I,
)


def _channels_text(text: str) -> str:
    """Return the text of the final channel; an empty text if only thoughts were written."""
    channels = [*_CHANNEL.finditer(text)]
    if not channels:
        return text
    final = [channel["text"] for channel in channels if channel["name"] == "final"]
    return "\n".join(final)


def without_thoughts(answer: str) -> str:
    """Return an answer without thoughts, wherever they are.

    Example:
        >>> without_thoughts("[THINK]Which town?[/THINK]He lived in Skien.")
        'He lived in Skien.'
    """
    text = _channels_text(answer)
    text = _BARE_CHANNELS.sub("", text)
    for heading in _HEADINGS:
        text = heading.sub("", text)
    for block in _BLOCKS:
        text = block.sub(_keep_open_line, text)
    text = _UNOPENED.sub("", text)
    return _LEADING_NOTES.sub("", text)


def _keep_open_line(found: re.Match[str]) -> str:
    """Return the replacement of thoughts: a line break if they spanned lines."""
    return "\n" if "\n" in found[0] else ""


def without_leading_thoughts(answer: str) -> str:
    """Return an answer without the thoughts before it.

    Later marks stay: an answer may be about them.

    Example:
        >>> without_leading_thoughts("<think>Hm.</think>Write <think> to begin.")
        'Write <think> to begin.'
    """
    text = _channels_text(answer)
    text = _BARE_CHANNELS.sub("", text)
    for heading in _HEADINGS:
        text = heading.sub("", text)
    for block in _LEADING_BLOCKS:
        found = block.match(text)
        if found is not None:
            return _LEADING_NOTES.sub("", text[found.end() :])
    unopened = _UNOPENED_LINE.search(f"\n{text}")
    if unopened is not None:
        text = text[unopened.end() - 1 :]
    return _LEADING_NOTES.sub("", text)


def may_begin_with_thoughts(text: str) -> bool:
    """Return whether later chunks of a stream may turn all of a text into thoughts."""
    start = text.lstrip()
    if "<|channel|>" in start:
        return "<|channel|>final<|message|>" not in start
    if _MAYBE_OPENING.match(start):
        return True
    return _is_unfinished_heading(start)


def _is_unfinished_heading(start: str) -> bool:
    is_bare = re.match(r"analysis(?=[A-Z\u4e00-\u9fff])", start) is not None
    is_note = re.match(rf"<{_NOTES}{_ATTRIBUTES}>", start, re.I) is not None
    is_heading = re.match(
        r"Thinking\.\.\.\n|Here(?:'s| is) my thought process:"
        rf"|{_THOUGHT_HEADING}|{_QUOTED_THOUGHT}",
        start,
        re.I,
    )
    return is_bare or is_note or is_heading is not None
