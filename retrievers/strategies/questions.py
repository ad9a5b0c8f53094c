"""Tell questions from statements, offers and phrases, in English and Chinese."""

from __future__ import annotations

import re

from ...nodegraph.llm.lines import bare, unlabelled
from .answer_lines import unordered

LONGEST_QUERY = 400
"""Characters of a query that a model made, at most; one that is longer is not used."""
_LONGEST_PHRASE = 200
_AROUND = "*_`\"”' "
_MARKS = re.compile(r"[?？]+[\"'”’」』)）*_`]*")
# A sentence begins here: of one before the question only the question is wanted.
_SENTENCE = re.compile(r"(?<=[.!])\s+(?=[A-Z\u4e00-\u9fff])|(?<=[。！])")
_ASKS = re.compile(
    r"(?:who|whom|whose|what|when|where|which|why|how|is|are|was|were|do|does|did|can|could|should"
    r"|would|will|has|have|in (?:what|which))\b"
    r"|.*(?:什么|什麼|为何|为什么|如何|怎[么样]|哪|谁|几|多少|多[久长大高远重]|是否|吗|何[时地人])",
    re.I,
)
_TELLS = re.compile(
    r"(?:explain|describe|list|find|tell|give|name|show|compare|define|summari[sz]e|identify|search"
    r"|outline|discuss|provide|look)\b|(?:请|解释|说明|介绍|列出|描述|比较|查找|查询|搜索|概述|分析)",
    re.I,
)
_OFFERS = re.compile(
    r"(?:would|do) you (?:like|want|need)|(?:shall|should|can|may|could) i\b|(?:can|could) you"
    r"|is (?:this|that|there anything)|does (?:this|that) help|how (?:can|may) i help"
    r"|what (?:would you like|can i)|(?:请问)?(?:您|你)(?:是否)?(?:想|需要|希望|还有|可以|能)"
    r"|(?:还)?需要我|有什么(?:可以|我能)|我(?:可以|能)帮",
    re.I,
)


def asks(text: str) -> bool:
    """Tell whether a text is a question, with or without its mark.

    Example:
        >>> asks("how long is the Nile"), asks("尼罗河有多长"), asks("The Nile is long.")
        (True, True, False)
    """
    stripped = text.strip()
    return stripped.endswith(("?", "？")) or _ASKS.match(stripped) is not None


def asked_once(text: str) -> str:
    """Return a question with one mark at its end, where a model writes several.

    Example:
        >>> asked_once("How long is it??"), asked_once("它有多长？?")
        ('How long is it?', '它有多长？')
    """
    stem = text.rstrip("?？")
    return text[: len(stem) + 1]


def answers(line: str, query: str) -> bool:
    """Tell whether a line states something where the query asks.

    Example:
        >>> answers("It is 6,650 km long.", "How long is it?"), answers("Its length.", "length")
        (True, False)
    """
    text = line.strip().strip(_AROUND)
    states = text.endswith((".", "。", "!", "！")) and not text.endswith("...")
    return states and asks(query) and not asks(text) and not _TELLS.match(text)


def is_query(text: str) -> bool:
    """Tell whether a text can be searched for: it has words, and not too many."""
    return len(text) <= LONGEST_QUERY and re.search(r"\w", text) is not None


def is_phrase(line: str) -> bool:
    """Tell whether a line of a list can be searched for: short, in words, and no statement."""
    text = line.strip().strip(_AROUND)
    words = re.search(r"[^\W\d_]{2}", text) is not None and not _OFFERS.match(text)
    return words and len(text) <= _LONGEST_PHRASE and not text.endswith((".", "。", "!", "！"))


def questions_in(line: str) -> list[str]:
    """Return the questions that end with a mark in a line, without what stands before a list.

    Example:
        >>> questions_in("We need two things. How long is it? And how wide?")
        ['How long is it?', 'how wide?']
    """
    found = []
    rest = unlabelled(line)
    begin = 0
    for mark in _MARKS.finditer(rest):
        part = rest[begin : mark.end()]
        begin = mark.end()
        *_, last = _SENTENCE.split(part)
        last = last if _ASKS.match(last) else part  # "Who was St. Paul?" is one sentence
        found.append(asked_once(bare(unordered(unlabelled(last)))))
    return [each for each in found if re.search(r"\w", each) and not _OFFERS.match(each)]
