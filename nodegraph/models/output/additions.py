"""Remove text that a model added before or after a rewritten question.

A prompt that asks for a rewritten question forbids any other text. Words before a colon, an arrow
or a full stop, and words after the question mark, are therefore removed as an announcement or a
remark, unless they occur in the user's question. The remaining text must share words with the
user's question.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .own_signs import without_own_signs

_MAX_ADDITION = 80  # maximum number of characters

# Characters that may occur between an announcement and a question.
_LEAD_END = re.compile(
    r"""(?:[:：=|！。—)）\]】]|[.!](?=\s)|(?:^|\s)[-=]>\s|\s?[→➜➡➔⇒]\s?|\s[-–])
    [\s"'”」*_`]{0,6}(?:</\w{1,10}>\s{0,4})?(?=\S)""",
    re.X,
)

_QUOTED = re.compile(r"[\"'“「`]{1,3}([^\"“”「」`?？]{2,400}[?？])[\"'”」`]{1,3}")

_ASKING = re.compile(r"(?:what|who|when|where|which|why|how|is|are|do|does|did|can)\b", re.I)

_COMMON = frozenset(
    """the and for you your are was were did does can could would will has have had this that these
    those with from what how who whom when where which why not its""".split()
)

_UNSPACED = "\u3040-\u9fff\uac00-\ud7a3"

_WORD = re.compile(f"[{_UNSPACED}]+|[^\\W\\d_{_UNSPACED}]{{3,}}|\\w[+#]{{1,2}}|[^\\W\\d_]\\w?(?=:)")

# number of letters that are compared, since the user may have misspelled the rest of the word
_STEM = 4


def without_additions(text: str, query: str) -> str:
    """Remove announcements and remarks from a rewritten question.

    Args:
        text: A single line of the answer.
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
    """Yield the offsets of all parts of a text that may be the actual question, shortest first."""
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
    """Yield the first letters of each word, and each pair of adjacent East Asian characters."""
    for word in _WORD.findall(without_own_signs(text.casefold())):
        if word in _COMMON:
            continue
        if re.match(f"[{_UNSPACED}]", word):
            for at in range(len(word) - 1):
                yield word[at : at + 2]
        else:
            yield word[:_STEM]
