"""Recognize queries and questions, and split a text into questions."""

from __future__ import annotations

import re
from itertools import pairwise

from ...splitters.chunking import UNSPACED
from .answer_text import normalize
from .chinese_script import chinese_pattern
from .failures import failure_in
from .free_text import is_unknown
from .lines import strip_markup
from .own_signs import without_own_signs

MAX_QUERY_LENGTH = 400
"""The maximum length in characters of a query from a model.

Longer texts are not used as queries.
"""

_QUESTION = chinese_pattern(
    r"(?:who\w*|what|when|where|which|why|how|is|are|was|were|do|does|did|can|could|should|would"
    r"|will|has|have|in what|in which)\b"
    r"|.*(?:什么|为何|如何|怎[么样]|哪|谁|几|多[少久长大高远重]|是否|吗|何[时地人])",
    re.I,
)

# Remains of JSON in a text.
_STRUCTURE = re.compile(
    r"[{\[]\s?\Z|[\"'”]\s?[:：=\]}]|[{\[]\s?[\"'“]|[?？][\"”]\s?[,;]|[\]}]\s?[,\]}]"
)

# Matches "[[Prototype]]", "{{ user.name }}", 'dict["key"]', 'len("abc")'
# and """loads('{"a": 1}')""".
_NAME_IN_BRACKETS = re.compile(
    r"\[\[[^\[\]:\"]+\]\]|\{\{[^{}:\"]+\}\}|(?<=\w)\[[\"'][^\"'\]]*[\"']\]"
    r"|(?<=\w)\((?:[\"'][^\"')]*[\"']|'[^'\n]{0,100}')\)|(?<=\w\s)\{\"\w+\":\s?[^{}\"]*\}(?=\s\w)"
)

# A question up to its question mark. A quoted question in the middle of a sentence belongs to the
# sentence.
_ASKED = re.compile(r"[^?？]*(?:[?？][\"”'’」』][^\s?？][^?？]*)*[?？]+")

_OFFER = chinese_pattern(
    r"(?:would|do|can|could) you|(?:shall|should|can|may) i\b|(?:请问)?[您你]"
    r"|(?:does|do|is|are) (?:this|that|these|those) (?:help|work|make sense|ok(?:ay)?|what you)\b",
    re.I,
)

_NO_QUERY = chinese_pattern(r"no (?:query|change)s?|unchanged|yes|可以|不(?:需要?|用)改写", re.I)

_WORD = re.compile(r"\w")


def is_question(text: str) -> bool:
    """Return whether a text is a question, with or without a question mark.

    Example:
        >>> [is_question(text) for text in ("how long is it", "它有多长", "It is long.")]
        [True, True, False]
    """
    stripped = text.strip()
    return stripped.endswith(("?", "？")) or _QUESTION.match(stripped) is not None


def is_statement(text: str) -> bool:
    """Return whether a text is a sentence but not a question."""
    is_sentence = text.endswith((".", "。", "!", "！")) and not text.endswith("...")
    return is_sentence and not is_question(text)


def is_offer(text: str) -> bool:
    """Return whether a text is a question addressed to the user, such as "Would you like more?"."""
    return _OFFER.match(text) is not None


def is_query(text: str, query: str = "") -> bool:
    """Return whether a text is suitable as a query. It must be short and not contain JSON syntax.

    Args:
        text: The text.
        query: The query that the text replaces. A text of one or two letters is accepted only if it
            is a word of this query.

    Example:
        >>> [is_query(text, "how long is it") for text in ("Nile length", "NO ANSWER", "Hi")]
        [True, False, False]
    """
    if len(text) > MAX_QUERY_LENGTH or failure_in(text, query):
        return False
    remains = _STRUCTURE.search(_NAME_IN_BRACKETS.sub("", text))
    if remains is not None and remains[0] not in query:
        return False
    count = len(re.findall(r"[^\W_]", text))
    if count == 0:
        return False
    if count < _shortest(text):
        word = rf"(?<![^\W{UNSPACED}]){re.escape(text)}(?![^\W{UNSPACED}])"
        return re.search(word, query, re.I) is not None
    if is_question(text) or is_own(text, query):
        return True
    return not (_NO_QUERY.fullmatch(text) or is_unknown(text))


def is_short_name(text: str) -> bool:
    """Return whether a text of one or two characters can be a name, such as "Go" or "UK".

    Example:
        >>> [is_short_name(text) for text in ("Go", "C", "茶", "Ok", "it")]
        [True, True, True, False, False]
    """
    return _SHORT_NAME.fullmatch(text) is not None


# Matches "Go", "C", "C#", "3D" and "茶", but not "Ok" or "无".
_SHORT_NAME = chinese_pattern(
    f"(?!(?i:ok|no|hi|na)\\Z|[无是否没不好对行])(?:[A-Z][A-Za-z0-9+#]?|[0-9][A-Z]|[{UNSPACED}])"
)


def _shortest(text: str) -> int:
    """Return the minimum number of letters and digits in a text that is used as a query."""
    is_formula = len(text.split()) > 2  # Matches "a << 2".
    return 2 if is_formula or re.search(f"[{UNSPACED}]", text) else 3


def is_own(text: str, query: str) -> bool:
    """Return whether the words of a text occur in the user's question in the same order."""
    letters = _letters(text)
    asked = _letters(query)
    if letters == asked:
        return True
    has_words = len(text.split()) > 2
    return has_words and letters in asked


def _letters(text: str) -> str:
    return re.sub(r"[\W_]", "", normalize(without_own_signs(text)))


def one_mark(text: str) -> str:
    """Remove repeated question marks from the end of a text."""
    return text[: len(text.rstrip("?？")) + 1]


_REMARK = re.compile(r"(?<=[?？])\s?[(（][^()（）?？]{1,100}[)）]\s{0,9}\Z")


def without_remark(text: str) -> str:
    """Remove a remark in parentheses after a question.

    Example:
        >>> without_remark("How long is it? (in kilometers)")
        'How long is it?'
    """
    return _REMARK.sub("", text)


# Punctuation and words between questions in the same line.
_CONNECTION = chinese_pattern(
    r"\A[\s;；,，|、/•&»+]{0,9}(?:(?:(?:and\sthen|and|then|以及|和)\s(?:(?:ask|search|find)\s)?|(?:然后|其次|接着)[：:，,]?)"
    r"|(?:first|second|third|last)(?:ly)?,\s|(?:finally|next|then),\s)?\s{0,3}",
    re.I,
)

_QUOTED_QUESTION = re.compile(r"[\"“「]([^\"“”「」?？]{2,300}[?？])[\"”」]")


def quoted_questions(text: str) -> list[str]:
    """Return the quoted questions in a text that contains at least two of them, joined by "and"."""
    found = [*_QUOTED_QUESTION.finditer(text)]
    if len(found) < 2:
        return []
    if _QUESTION.match(text[: found[0].start()]):
        return []
    for before, behind in pairwise(found):
        if not _BETWEEN.fullmatch(text, before.end(), behind.start()):
            return []
    rest = text[found[-1].end() :]
    if re.search("[?？]", rest):
        return []
    return [match[1] for match in found]


# Matches "and then ask" and "，再问".
_BETWEEN = chinese_pattern(
    r"[\s,;、，；.。]{0,9}(?:(?:and|or|then|next|also|finally|ask|search|for|followed|by"
    r"|以及|和|或|再|接着|然后|最后|其次|问|搜索|查询)\s{0,9}){0,4}[:：]?\s{0,9}",
    re.I,
)


def _asked_parts(text: str) -> list[str]:
    """Return the parts of a text that end with a question mark outside a quotation."""
    parts: list[str] = []
    open_part = ""
    end = max(text.rfind("?"), text.rfind("？")) + 1
    for asked in _ASKED.findall(text[:end]):
        open_part += asked
        if not _is_quoting(open_part):
            parts.append(open_part)
            open_part = ""
    if open_part:
        mark = text[end : end + 1]
        if mark in '"”':
            open_part += mark
        parts.append(open_part)
    return parts


def _is_quoting(text: str) -> bool:
    """Return whether a quotation is open at the end of a text.

    Quotation marks around the whole text are ignored.
    """
    start = text.lstrip(' ;；,，"“')
    if len(text) >= _MAX_OPEN:
        return False
    if start.count("“") > start.count("”"):
        return True
    return start.count('"') % 2 == 1 and text.lstrip()[0] != '"'


_MAX_OPEN = 1_000  # maximum number of characters of a question with an open quotation


def split_questions(text: str, *, is_item: bool = False) -> list[str]:
    """Return the questions in a text that end with a question mark, without other sentences.

    Args:
        text: A text from the model's answer.
        is_item: Whether the text is an item of a list. In a list, "Should I …?" is not treated as
            an offer to the user.

    Example:
        >>> split_questions("We need two things. How long is it?? How wide is it?")
        ['How long is it?', 'How wide is it?']
    """
    quoted = quoted_questions(text)
    if quoted:
        return quoted
    questions: list[str] = []
    for asked in _asked_parts(text):
        question = one_mark(strip_markup(_last_sentence(asked)))
        if _WORD.search(question):
            questions.append(question)
    if len(questions) == 1 and is_item:
        return questions
    return [question for question in questions if not is_offer(question)]


def _last_sentence(asked: str) -> str:
    """Return the last sentence of a text if it is a question, otherwise the whole text."""
    *_, last = re.split(r"(?<=[.!])\s+(?=[A-Z])|(?<=[。！；])", asked)
    last = _CONNECTION.sub("", last)
    if _QUESTION.match(last.strip()):
        return last
    return _CONNECTION.sub("", asked)
