"""Normalize the characters of a text, so that different spellings of a word become equal."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from pathlib import Path

from ...nodegraph.lazy_names import lazy_pattern
from .character_kinds import has_camel_case, kinds_of, may_have_chinese, may_have_foreign_digits
from .identifiers import with_parts

LATEST = 4
"""The number of cached queries, which all indexes of a search share."""

INVISIBLE = "\u00ad\u200d\u2060\ufeff"  # soft hyphens and joiners

HAN = re.compile("[\u3400-\u9fff]")
"""A Chinese character."""

AM = "\u0e33\u0eb3"
"""The vowels of Thai and Lao whose first half is above the line."""

# A vowel of Thai and Lao is one letter, though compatibility forms split it.
_REPLACED = [
    *((character, "") for character in INVISIBLE),
    ("\u0e4d\u0e32", AM[0]),
    ("\u0ecd\u0eb2", AM[1]),
]

# The wide punctuation of Chinese texts. Replacing it first is faster than NFKC, and no sign
# composes with a following character.
_WIDE_PUNCTUATION = {
    sign: unicodedata.normalize("NFKC", sign) for sign in "，！？：；（）％～－／．\u3000\xa0…"
}

# Without these, NFKC would make 2³⁰ the number 230, and Tea™ one word.
_RAISED = re.compile("[\u2070\u00b9\u00b2\u00b3\u2074-\u2079]+")

_MARKS = re.compile("[™℠]")

_FOREIGN_DIGITS = re.compile(r"[^\D0-9]")  # matches digits of other scripts

_POSSESSIVE = re.compile(r"['’](?<=\w['’])[sS]\b")


def normalized(text: str) -> str:
    """Normalize a text to lower case and composed Unicode form, and add the parts of compound
    names.

    Possessive endings are removed. For example, ``Tom's`` becomes ``Tom``.
    """
    if not text.isascii():
        for before, after in _WIDE_PUNCTUATION.items():
            if before in text:
                text = text.replace(before, after)
        if not unicodedata.is_normalized("NFKC", text):
            text = _MARKS.sub(" ", _RAISED.sub(lambda match: f"^{match[0]}", text))
            # Two steps, because NFKC takes five times as long.
            text = unicodedata.normalize("NFC", unicodedata.normalize("NFKD", text))
        for before, after in _REPLACED:
            if before in text:
                text = text.replace(before, after)
    kinds = kinds_of(text)
    if may_have_foreign_digits(kinds):
        text = _FOREIGN_DIGITS.sub(lambda match: str(unicodedata.digit(match[0])), text)
    if may_have_chinese(kinds):
        text = simplified(text)
    if "_" in text or has_camel_case(kinds):
        text = with_parts(text)
    text = text.casefold()
    if not text.isascii():
        # casefold() turns a capital I with a dot into two characters.
        text = text.replace("i\u0307", "i")
        if not unicodedata.is_normalized("NFC", text):
            text = unicodedata.normalize("NFC", text)
    if "'s" in text or "’s" in text:
        text = _POSSESSIVE.sub("", text)
    return text


# Read at import, since the first search may be in an event loop.
_LINES = Path(__file__).with_name("simplified.txt").read_text("utf-8").splitlines()

_PAIRS = "".join(line for line in _LINES if not line.startswith("#"))

_TRADITIONAL = lazy_pattern(f"[{_PAIRS[::2]}]")

_SIMPLE_FORMS = str.maketrans(_PAIRS[::2], _PAIRS[1::2])


def simplified(text: str) -> str:
    """Replace traditional Chinese characters by simplified characters."""
    if HAN.search(text) and _TRADITIONAL.search(text):
        return text.translate(_SIMPLE_FORMS)
    return text


normalized_query = lru_cache(LATEST)(normalized)
