"""Parse the summary that a model wrote of a passage."""

from __future__ import annotations

import re
from collections.abc import Mapping

from .answer_text import read_json
from .chinese_script import chinese_pattern
from .json_values import texts_in
from .lines import label_pattern, unwrap, without_label
from .missing_passage import check_passage_given

_WORD = re.compile(r"\w")

_KEYS = tuple(
    """summary summary_text text summarization abstract tldr tl;dr overview synopsis gist content
    摘要 总结 概要 概述 内容摘要 文本摘要 核心内容 要点""".split()
)

_NAMES = (
    r"(?:(?:brief|short|concise|final|one-sentence|quick|executive|passage|text|article)\ )?"
    r"(?:summary|tl;?\ ?dr|abstract|overview|synopsis|gist|in\ (?:short|brief|a\ nutshell))"
    r"(?:\ (?:of|for)\ the\ \w{1,12}|\ in\ \w{1,5}\ sentences?)?"
    r"|(?:内容|文章|本文|段落|文段|一句话|简[要短]|核心)?(?:摘要|总结|概要|概述|概括|简述|大意)"
    r"(?:如下)?|核心内容"
)

# A heading or a label before a summary: "## TL;DR", "**Summary** (two sentences):".
_HEAD = chinese_pattern(
    rf"""\A[\s>]{{0,9}}(?:\#{{1,6}}\s{{0,4}})?(?:📝|📌|✨)?\ufe0f?\s?[*_【\[]{{0,3}}(?:{_NAMES})
    (?:\s?[(（][^()（）\n]{{1,40}}[)）])?
    (?:[*_】\]]{{0,3}}\s?(?:[:：]|\s[-–—]\s|——)[*_]{{0,3}}\s{{0,9}}
      |\]\s|[*_】\]]{{0,3}}[ \t]*\n\s{{0,9}}(?:[-=]{{3,40}}\s{{0,9}}\n\s{{0,9}})?)(?=\S)
    |\A[^\n:：,，。]{{0,20}}(?:大意|摘要|总结|概括)(?:起来)?[是为]?[:：]\s{{0,4}}(?=\S)
    |\A[^\n:：]{{0,60}}\b(?:summary|[摘概]要|总结)[^\n:：]{{0,30}}[:：][*_]{{0,3}}\s{{0,9}}\n\s{{0,9}}(?=\S)""",
    re.I | re.X,
)

# The label of a summary below its title, or below text that the prompt did not request.
_LABEL = chinese_pattern(
    rf"^[\s*_\#【]{{0,9}}(?:{_NAMES})[*_】]{{0,3}}\s?(?:[:：][*_]{{0,3}}|\n)\s{{0,9}}(?=\S)",
    re.I | re.M | re.X,
)

# The label of text that the prompt did not request.
_OTHER = label_pattern(
    r"(?:passage\ |document\ |article\ )?title|topic|key\ ?words?|note|word\ count|length"
    r"|language|(?:original\ )?(?:passage|text)|reasoning|analysis|thoughts?|tags"
    r"|标题|主题|关键[词字]|注|说明|字数|原文|分析"
)

# The heading of text that the prompt did not request.
_OTHER_TITLE = chinese_pattern(
    r"\s{0,4}(?:\#{1,6}\s|\*\*|【)\s?(?:key\ ?words?|notes?|tags"
    r"|关键[词字])[\s*_】:：]{0,9}",
    re.I | re.X,
)

# Matches "(42 words)", "[Word count: 42]" and "（共50字）".
_COUNT = chinese_pattern(
    r"\s{0,9}[*_]{0,2}[(（\[](?:(?:word\ count\s?:\s?|字数[:：]\s?)\d{1,4}(?:\s?\w{1,10})?"
    r"|[共约]?\s?\d{1,4}\s?(?:words|characters|字|个字))[)）\]][*_]{0,2}\s{0,9}\Z",
    re.I | re.X,
)

_RULE = re.compile(r"\n\s{0,9}(?:-{3,20}|\*{3}|={3,20}|_{3})\s{0,9}\Z")

# An offer or a question to the user in the last line, unless the line before it is "He asks:".
_OFFER = chinese_pattern(
    r"(?<![:：\n])\n\s{0,9}[*_(（]{0,2}(?:would\ you\ like|do\ you\ want|if\ you(?:['’]d|\ would)?"
    r"\ (?:like|need|want|prefer)"
    r"\ (?:me|more|further|another|any\w{0,5}|additional|to|an?\ \w+er)\b"
    r"|please\ let|let\ me\ know|feel\ free|(?:i\ )?hope\ (?:this|that|it|you)\b|i\ can\ also"
    r"|是否需要|(?:如需|若[需您]|如有)(?=[^\n]*(?:我|告|随时|提供|请))|需要我|您?还?需要"
    r"|希望这|请告诉)[^\n]*\Z",
    re.I | re.X,
)


def parse_summary(answer: str) -> list[str]:
    """Return a list with the summary, or an empty list if the model answered NONE.

    Headings, labels and remarks around the summary are left out.

    Raises:
        ValueError: If the answer is empty or a refusal, or states that the passage is
            missing.

    Example:
        >>> parse_summary("**Summary:** Tea is a drink.")
        ['Tea is a drink.']
        >>> parse_summary("## TL;DR\\n\\nTea is a drink.")
        ['Tea is a drink.']
    """
    text, value = read_json(answer, _KEYS)
    if not text:
        return []
    check_passage_given(text)
    is_json = isinstance(value, Mapping) or (value is not None and text.startswith("["))
    summary = "\n".join(texts_in(value, _KEYS)) if is_json else text
    summary = _without_tail(_without_head(summary))
    if not _WORD.search(summary):
        raise ValueError("the answer is empty")
    return [summary]


def _without_head(text: str) -> str:
    """Remove a heading, a label, a title or quotation marks from the start of a summary."""
    text = _unquoted(text)
    if _OTHER.match(text):
        label = _LABEL.search(text)
        if label is not None:
            text = text[label.start() :]
    head = _HEAD.match(text)
    if head is None:
        return unwrap(without_label(text))
    return unwrap(text[head.end() :])


def _unquoted(text: str) -> str:
    """Remove the signs of a Markdown quotation if all lines begin with them."""
    lines = [line for line in text.split("\n") if line.strip()]
    if all(line.startswith("> ") for line in lines):
        return re.sub(r"^>[ \t]?", "", text, flags=re.M)
    return text


def _without_tail(text: str) -> str:
    """Remove remarks, offers, rules and the number of words from the end of a summary."""
    lines = text.split("\n")
    for at, line in enumerate(lines):
        if at and (_OTHER.match(line) or _OTHER_TITLE.fullmatch(line)):
            text = "\n".join(lines[:at])
            break
    for pattern in (_OFFER, _RULE, _COUNT, _RULE):
        text = pattern.sub("", text.rstrip())
    return unwrap(text)
