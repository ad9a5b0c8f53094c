"""Remove the words around a rewritten question that the user's question does not contain.

A prompt to rewrite a question forbids additions. Words before a colon, an arrow or a full stop, and
words after the question mark, are therefore an announcement or a remark if the user's question
contains none of them, but contains words of the rest of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .own_signs import without_own_signs

_MAX_ADDITION = 80  # characters

# What may stand between an announcement and a question.
_LEAD_END = re.compile(
    r"""(?:[:：=|！。—)）\]】]|[.!](?=\s)|(?:^|\s)[-=]>\s|\s?→\s?|\s[-–])
    [\s"'”」*_`]{0,6}(?:</\w{1,10}>\s{0,4})?(?=\S)""",
    re.X,
)

_QUOTED = re.compile(r"[\"'“「`]{1,3}([^\"“”「」`?？]{2,400}[?？])[\"'”」`]{1,3}")

_ASKING = re.compile(r"(?:what|who|when|where|which|why|how|is|are|do|does|did|can)\b", re.I)

_COMMON = frozenset(
    """the and for you your are was were did does can could would will has have had this that these
    those with from what how who whom when where which why not its""".split()
)

_WORD = re.compile("[\u3040-\u9fff]+|[^\\W\\d_\u3040-\u9fff]{3,}|\\w[+#]{1,2}|[^\\W\\d_]\\w?(?=:)")

_STEM = 4  # letters of a word; the user may have misspelled the letters after them


def without_additions(text: str, query: str) -> str:
    """Return a rewritten question without announcements and remarks.

    Args:
        text: The text of one line.
        query: The user's question.

    Example:
        >>> without_additions("Bot: How long is the Nile? [corrected]", "hw long is teh nile")
        'How long is the Nile?'
        >>> without_additions("C++: what is a move?", "c++: waht is a move")
        'C++: what is a move?'
    """
    asked = {*_words(query)}
    for start, end in _spans(text):
        question = text[start:end].strip()
        around = f"{text[:start]} {text[end:]}"
        is_long = len(around) > 2 * _MAX_ADDITION
        if is_long or not around.strip() or _ASKING.match(text[:start]):
            continue
        is_asked = not asked.isdisjoint(_words(question))
        if is_asked and asked.isdisjoint(_words(around)):
            return question
    return text


def _spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of questions that may be a text's only content, short spans first."""
    quoted = [*_QUOTED.finditer(text)]
    if len(quoted) == 1:
        yield quoted[0].span(1)
    end = max(text.rfind("?"), text.rfind("？")) + 1
    if end == 0:
        return
    if not re.search(r"[^\W_]", text[end:]):
        end = len(text)
    leads = [found.end() for found in _LEAD_END.finditer(text[: _MAX_ADDITION + 1])]
    for start in reversed(leads):
        if re.search(r"\w", text[start:end]):
            yield start, end
    yield 0, end


def _words(text: str) -> Iterator[str]:
    """Yield the beginnings of words, and pairs of Chinese characters."""
    for word in _WORD.findall(without_own_signs(text.casefold())):
        if word in _COMMON:
            continue
        if "\u3040" <= word[0] <= "\u9fff":
            for at in range(len(word) - 1):
                yield word[at : at + 2]
        else:
            yield word[:_STEM]
