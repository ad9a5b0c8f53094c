"""Find the words of many texts at once, joined to one."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

import numpy as np

from .identifiers import with_parts
from .segments import composed, has_parts, lower, plain_marks, without_invisible

SEPARATOR = "\0"
"""Stands between texts that are joined."""

_BETWEEN = f" {SEPARATOR} "

_ASCII_WORDS = re.compile(rf"[a-z0-9]+(?:\+\+|#)?|{SEPARATOR}")

_ASCII_POSSESSIVE = re.compile(r"'(?<=\w')s\b", re.ASCII)

_SIGNED_WORD = re.compile(r"[a-z0-9](?:\+\+|#)")

# Keeps words and separators, and makes spaces of all else.
_ONLY_WORDS = bytes(code if chr(code).isalnum() or not code else 32 for code in range(128))

_ONLY_WORDS += bytes(128)  # which ASCII has not


def normalized_together(texts: Sequence[str]) -> str:
    """Return normalized texts, joined by ``SEPARATOR``, which is a space within them."""
    if any(SEPARATOR in text for text in texts):
        texts = [text.replace(SEPARATOR, " ") for text in texts]
    joined = plain_marks(SEPARATOR.join(texts))
    if not (joined.isascii() or unicodedata.is_normalized("NFKC", joined)):
        joined = SEPARATOR.join(map(composed, joined.split(SEPARATOR)))
    joined = without_invisible(joined)
    if has_parts(joined):
        parts = (with_parts(s) if has_parts(s) else s for s in joined.split(SEPARATOR))
        joined = SEPARATOR.join(parts)
    return lower(joined)


def ascii_words_together(texts: Sequence[str]) -> list[str]:
    """Return the words of ASCII texts as ``ascii_words`` finds them once these are normalized,
    with ``SEPARATOR`` between those of one text and the next.
    """
    joined = _BETWEEN.join(texts)
    if joined.count(SEPARATOR) >= len(texts):
        texts = [text.replace(SEPARATOR, " ") for text in texts]
        joined = _BETWEEN.join(texts)
    with_names = _texts_with_parts(joined)
    if with_names:
        texts = list(texts)
        for at in with_names:
            texts[at] = with_parts(texts[at])
        joined = _BETWEEN.join(texts)
    joined = joined.lower()
    if "'" in joined:
        joined = _ASCII_POSSESSIVE.sub("", joined)
    if _SIGNED_WORD.search(joined) is None:
        return joined.encode().translate(_ONLY_WORDS).decode().split()
    return _ASCII_WORDS.findall(joined)


def _texts_with_parts(joined: str) -> list[int]:
    """Return which of joined ASCII texts have names of several parts, ascending."""
    data = np.frombuffer(joined.encode(), np.uint8)
    upper, lower = data - np.uint8(65) < 26, data - np.uint8(97) < 26  # below 0 comes 255
    found = np.concatenate(
        [
            np.flatnonzero(data == ord("_")),
            np.flatnonzero(lower[:-1] & upper[1:]),
            np.flatnonzero(upper[:-2] & upper[1:-1] & lower[2:]),
        ]
    )
    if not len(found):
        return []
    texts: list[int] = np.unique(np.searchsorted(np.flatnonzero(data == 0), found)).tolist()
    return texts
