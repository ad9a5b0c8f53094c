"""Remove the reasoning of a model from its answer.

Each family of models marks its reasoning differently, with tags, brackets, channels, control tokens
or headings. The closing marker may be missing because the answer was truncated or is still being
streamed. The opening marker may be missing because it is part of the prompt of some models.
"""

from __future__ import annotations

import re

from .chinese_script import chinese_pattern

# "<seed:think>", "<longcat_think>", "<thought_process>" and "<antThinking>" are similar names.
_NAME = (
    r"(?:[a-z]{1,12}[:_])?(?:(?:deep_?|ant)?think(?:ing)?|thoughts?|reason(?:ing)?|reflection"
    r"|scratch_?pad|monologue|chain_?of_?thoughts?|cot|internal|思考|推理)"
    r"(?:[_ ]?(?:process|content|trace|steps?|block)|过程)?"
)

# Vendors' guides recommend these names for notes before an answer. The notes may also be the answer
# itself.
_NOTES = r"(?:analysis|planning|plan|notes?|分析)"

_ATTRIBUTES = r"(?:\s[^<>]{0,200})?"

_TOKEN_NAME = r"(?:think(?:ing)?|thoughts?|reasoning)"

_TOKENS = (
    (
        rf"<[|｜]?(?:begin|start)[_▁](?:of[_▁])?{_TOKEN_NAME}[|｜]?>",
        rf"<[|｜]?end[_▁](?:of[_▁])?{_TOKEN_NAME}[|｜]?>",
    ),
    (
        rf"<\|{_TOKEN_NAME}(?:_(?:start|begin))?\|>",
        rf"<\|(?:/{_TOKEN_NAME}|{_TOKEN_NAME}_end)\|>",
    ),
    (r"<\|inner_prefix\|>", r"<\|inner_suffix\|>"),
    (r"<\|channel>thought", r"<channel\|>"),
    (r"<unused94>", r"<unused95>"),
)

_PAIRS = (
    (rf"<{_NAME}{_ATTRIBUTES}>", rf"</{_NAME}\s?>"),
    (rf"\[(?:begin_)?{_NAME}\]", rf"\[(?:/|end_){_NAME}\]"),
    (rf"【{_NAME}】", rf"【/{_NAME}】"),
    (rf"◁{_NAME}▷", rf"◁/{_NAME}▷"),
    (r"```(?:think(?:ing)?|thoughts?|reasoning)\n", r"\n```"),
    (r"<details\s+type=[\"']reasoning[\"'][^<>]{0,200}>", r"</details>"),
    (
        r"<details[^<>]{0,200}>\s{0,9}<summary>[^<>\n]{0,40}"
        r"(?:thinking|thoughts?|reasoning|思考)[^<>\n]{0,40}</summary>",
        r"</details>",
    ),
    *_TOKENS,
)

_BLOCKS = [re.compile(rf"{start}.*?(?:{end}|\Z)", re.S | re.I) for start, end in _PAIRS]

_LEADING_BLOCKS = [re.compile(rf"\s*{block.pattern}", re.S | re.I) for block in _BLOCKS]

_COMMENT = re.compile(r"\s*<!--.*?(?:-->|\Z)", re.S)

_LEADING_BLOCKS.append(_COMMENT)

_ENDS = "|".join(end for _, end in _PAIRS if "details" not in end and "`" not in end)

# Some models omit the opening marker. All text up to the last closing marker is then reasoning.
_UNOPENED = chinese_pattern(rf"\A.*(?:{_ENDS})", re.S | re.I)

# A marker that is surrounded by spaces or in quotation marks is part of the answer.
_UNOPENED_MARK = chinese_pattern(
    rf"(?:(?:\A|\n)[ \t]{{0,9}}|(?<=[^\s`\"'“‘(（]))(?:{_ENDS})(?![ \t`\"'”’)）])", re.I
)

_LEADING_NOTES = re.compile(
    rf"\A\s*<(?P<name>{_NOTES}){_ATTRIBUTES}>.*?</(?P=name)\s?>\s*(?=\S)", re.S | re.I
)

_OPEN_NOTES = re.compile(rf"<{_NOTES}{_ATTRIBUTES}>", re.I)

# The channels of gpt-oss: reasoning is in "analysis" and "commentary", the answer is in "final".
_CHANNEL = re.compile(
    r"<\|channel\|>\s*(?P<name>\w+)[^<\n]{0,200}(?:<\|constrain\|>[^<\n]{0,40})?<\|message\|>"
    r"(?P<text>.*?)(?=<\|(?:end|return|call|start|channel)\|>|\Z)",
    re.S,
)

_WORDS = r"(?:Thinking|Thoughts?|Thought process|Thinking process|Reasoning|思考(?:过程)?|推理过程)"

_ANSWER_WORDS = (
    r"(?:(?:final|rewritten|improved|next) )?(?:response|answer|output|result|(?:sub-?)?questions?"
    r"|quer(?:y|ies)|最终回答|最终答案|回答|答案|改写后的(?:问题|查询)|子?问题)"
)

_HEADING = rf"(?:#{{1,4}} |\*\*){_WORDS}[:：]?(?:\*\*)?[:：]?[ \t]*\n"

_LABEL = rf"[*_]{{0,2}}{_WORDS}[*_]{{0,2}}[:：][*_]{{0,2}}"

_QUOTATION = rf">\s?(?:💭|[*_]{{0,2}}{_WORDS}[*_]{{0,2}}(?:[.:：…]|\n))"

_REMARK = rf"(?:[*_]{{1,2}}|[(（]){_WORDS}[:：]"

# The beginning and end of reasoning without markers.
_UNMARKED = (
    # The channels of gpt-oss after a server removed the control tokens.
    (r"(?:assistant)?analysis(?=[A-Z\u4e00-\u9fff])", r"assistant\s{0,9}final(?=\S)"),
    (r"(?-i:Thinking)(?:\.{3}|…)\n", r"(?:\.{3}|…)\s?done thinking\."),
    (r"Here(?:'s| is) my thought process:", r"Here(?:'s| is) my response:"),
    (
        _HEADING,
        rf"^(?:#{{1,4}} |\*\*){_ANSWER_WORDS}[ \t]*[:：]?(?:\*\*)?[ \t]*[:：]?[ \t]*\n",
    ),
    (
        _LABEL,
        r"^[*_]{0,2}(?:final )?(?:answer|response|最终回答|最终答案|回答|答案)"
        r"[*_]{0,2}[:：][*_]{0,2}[ \t]*",
    ),
    (_REMARK, r"[*_)）]{1,2}[ \t]*\n"),
)

_HEADINGS = (
    *(
        re.compile(rf"\A\s*{start}.*?{end}", re.S | re.I | re.M)
        for start, end in _UNMARKED
        if start != _REMARK
    ),
    chinese_pattern(rf"\A\s*{_REMARK}[^\n]*[*_)）]{{1,2}}[ \t]*\n", re.I),
    # A block quotation that contains the reasoning.
    chinese_pattern(rf"\A\s*{_QUOTATION}[^\n]*\n(?:[ \t]*>[^\n]*\n)*\s*(?=[^\s>])", re.I),
)

CONTROL_TOKEN = re.compile(
    r"<\|start_header_id\|>\w{1,20}<\|end_header_id\|>|<\|/?\w{2,40}\|>|<[｜|][^<>\n]{2,40}[｜|]>"
    r"|</?s>|<(?:start|end)_of_turn>"
)
"""A pattern for control tokens of a chat template that were left in the text."""

# The first characters of reasoning markers, which later chunks of a stream may complete.
_FIRST_WORDS = (
    "assistantanalysis",
    "analysis",
    "assistantfinal",
    "thinking...\n",
    "thinking…\n",
    "here's my thought process:",
    "here is my thought process:",
    "thinking:",
    "thought:",
    "thoughts:",
    "thought process:",
    "thinking process:",
    "reasoning:",
    "思考：",
    "思考过程：",
    "推理过程：",
    "思考:",
    "思考过程:",
)

_OPEN_MARK = chinese_pattern(
    r"(?:(?:<\|start\|>[a-z]{0,12})?<[^<>\n]{0,60}|<\|start\|>[a-z]{0,12}|<\|channel>[a-z]{0,7}"
    r"|\[/?[a-z:_]{0,30}|【/?\w{0,6}|◁[^▷\n]{0,20}|`{1,3}[a-z]{0,9}"
    r"|<details[^<>\n]{0,200}>\s{0,9}(?:<[a-z]{0,7}>?[^<>\n]{0,40}(?:</?[a-z]{0,7})?)?"
    r"|#{1,4}(?: [a-z思考推理过程 ]{0,16}:?)?"
    r"|(?:\*\*?|__?|[(（])[a-z思考推理过程 ]{0,16}[:：]?\*{0,2}[:：]?"
    r"|>\s?(?:💭?|[*_]{0,2}[a-z思考过程 ]{0,16}[*_]{0,2}))\Z",
    re.I,
)

_UNFINISHED = chinese_pattern(
    "|".join((*(start for start, _ in _UNMARKED if start != _REMARK), _QUOTATION)), re.I
)

_UNFINISHED_REMARK = chinese_pattern(rf"{_REMARK}[^\n]*\Z", re.I)


def _without_headings(answer: str) -> str:
    """Remove reasoning that is marked by channels or headings."""
    text = answer
    channels = [*_CHANNEL.finditer(text)]
    if channels:
        final = [channel["text"] for channel in channels if channel["name"] == "final"]
        text = "\n".join(final)
    for heading in _HEADINGS:
        text = heading.sub("", text)
    return text


def without_thoughts(answer: str) -> str:
    """Remove the reasoning from an answer, no matter where it occurs.

    Example:
        >>> without_thoughts("[THINK]Which town?[/THINK]He lived in Skien.")
        'He lived in Skien.'
    """
    text = _without_headings(answer)
    comment = _COMMENT.match(text)
    if comment is not None:
        text = text[comment.end() :]
    for block in _BLOCKS:
        text = block.sub(_keep_open_line, text)
    text = _UNOPENED.sub("", text)
    return _LEADING_NOTES.sub("", text)


def _keep_open_line(found: re.Match[str]) -> str:
    """Return the replacement for removed reasoning.

    It is a line break if the reasoning spanned several lines, or else an empty string.
    """
    return "\n" if "\n" in found[0] else ""


def without_leading_thoughts(answer: str) -> str:
    """Remove the reasoning at the start of an answer.

    Markers that occur later are kept, because the answer may be about them.

    Example:
        >>> without_leading_thoughts("<think>Hm.</think>Write <think> to begin.")
        'Write <think> to begin.'
    """
    text = _without_headings(answer)
    start = _end_of_blocks(text)
    if start == 0:
        unopened = _UNOPENED_MARK.search(text)
        if unopened is not None:
            start = unopened.end()
    return _LEADING_NOTES.sub("", text[start:])


def _end_of_blocks(text: str) -> int:
    """Return the offset at which the marked reasoning at the start of a text ends."""
    end = 0
    while end < len(text):
        matches = (block.match(text, end) for block in _LEADING_BLOCKS)
        found = next((match for match in matches if match is not None), None)
        if found is None:
            break
        end = found.end()
    return end


def may_begin_with_thoughts(text: str) -> bool:
    """Return whether a text may turn out to be reasoning when later chunks of a stream arrive."""
    start = text.lstrip()
    if "<|channel|>" in start:
        return "<|channel|>final<|message|>" not in start
    folded = start.casefold()
    if any(words.startswith(folded) for words in _FIRST_WORDS):
        return True
    if _OPEN_NOTES.match(start):
        return _LEADING_NOTES.match(start) is None
    openings = (_OPEN_MARK, _UNFINISHED, _UNFINISHED_REMARK)
    if not any(opening.match(start) for opening in openings):
        return False
    return not any(heading.match(start) for heading in _HEADINGS)
