"""Recognise questions in a model's text, with and without a question mark."""

from __future__ import annotations

import re

from .lines import strip_markup, strip_ordinal, strip_question_label

MAX_QUERY_LENGTH = 400
"""Characters of a query from a model, at most; a longer one is not used."""

_MAX_PHRASE = 200

QUESTION_MARKS = re.compile(r"[?？]+[\"'”’」』)）*_`]*")

_STRUCTURE = re.compile(
    r"""["”]\s?[:：=]\s?[\[{"“] | [\[{]\s?["“]?\w{1,40}["”]?\s?[:：=]\s?[\[{"“]
    | ["”]\s?[,;]\s?["“]\w{1,40}["”]\s?[:：] | [?？]["”]\s?[,;]\s?["“]""",
    re.X,
)

_DECORATION = "*_`\"”' "

_SENTENCE_BREAK = re.compile(r"(?<=[.!])\s+(?=[A-Z\u4e00-\u9fff])|(?<=[。！])")

_QUESTION = re.compile(
    r"(?:who|whom|whose|what|when|where|which|why|how|is|are|was|were|do|does|did|can|could|should"
    r"|would|will|has|have|in (?:what|which))\b"
    r"|.*(?:什么|什麼|为何|为什么|如何|怎[么样]|哪|谁|几|多少|多[久长大高远重]|是否|吗|何[时地人])",
    re.I,
)

_REQUEST = re.compile(
    r"(?:explain|describe|list|find|tell|give|name|show|compare|define|summari[sz]e|identify|search"
    r"|outline|discuss|provide|look)\b|(?:请|解释|说明|介绍|列出|描述|比较|查找|查询|搜索|概述|分析)",
    re.I,
)

_OFFER = re.compile(
    r"(?:would|do) you (?:like|want|need)|(?:shall|should|can|may|could) i\b|(?:can|could) you"
    r"|is (?:this|that|there anything)|does (?:this|that) help|how (?:can|may) i help"
    r"|what (?:would you like|can i)|(?:请问)?(?:您|你)(?:是否)?(?:想|需要|希望|还有|可以|能)"
    r"|(?:还)?需要我|有什么(?:可以|我能)|我(?:可以|能)帮",
    re.I,
)


def begins_like_question(text: str) -> bool:
    """Check whether a text begins with a question word, or has a Chinese one in it."""
    return _QUESTION.match(text) is not None


def is_question(text: str) -> bool:
    """Check whether a text is a question, with or without its mark.

    Example:
        >>> is_question("how long is the Nile"), is_question("尼罗河有多长")
        (True, True)
        >>> is_question("The Nile is long.")
        False
    """
    text = text.strip()
    return text.endswith(("?", "？")) or begins_like_question(text)


def is_statement(line: str) -> bool:
    """Check whether a line is a sentence that neither asks nor requests anything.

    Example:
        >>> is_statement("It is 6,650 km long."), is_statement("Describe the Nile.")
        (True, False)
    """
    text = line.strip().strip(_DECORATION)
    ends = text.endswith((".", "。", "!", "！")) and not text.endswith("...")
    return ends and not is_question(text) and not _REQUEST.match(text)


def is_query(text: str) -> bool:
    """Check whether a text can be searched for: words, not too many, and no remains of JSON."""
    is_short = len(text) <= MAX_QUERY_LENGTH and re.search(r"\w", text) is not None
    return is_short and _STRUCTURE.search(text) is None


def is_phrase(line: str) -> bool:
    """Check whether a line of a list can be searched for: short, in words, and no sentence."""
    text = line.strip().strip(_DECORATION)
    has_words = re.search(r"[^\W\d_]{2}", text) is not None and not _OFFER.match(text)
    return has_words and len(text) <= _MAX_PHRASE and not text.endswith((".", "。", "!", "！"))


def single_mark(text: str) -> str:
    """Return a question with one question mark at its end, where a model writes several.

    Example:
        >>> single_mark("How long is it??"), single_mark("它有多长？?")
        ('How long is it?', '它有多长？')
    """
    return text[: len(text.rstrip("?？")) + 1]


def split_questions(line: str) -> list[str]:
    """Return the questions of a line that end with a mark, without sentences before them.

    Example:
        >>> split_questions("We need two things. How long is it? And how wide?")
        ['How long is it?', 'how wide?']
    """
    questions = []
    text = strip_question_label(line)
    begin = 0
    for marks in QUESTION_MARKS.finditer(text):
        part = text[begin : marks.end()]
        begin = marks.end()
        *_, last = _SENTENCE_BREAK.split(part)
        last = last if begins_like_question(last) else part  # "Who was St. Paul?" is one sentence
        questions.append(single_mark(strip_markup(strip_ordinal(strip_question_label(last)))))
    return [text for text in questions if re.search(r"\w", text) and not _OFFER.match(text)]
