"""Split normalized texts into words, and into runs of characters in scripts without spaces."""

from __future__ import annotations

import re
import unicodedata
from itertools import chain, pairwise

from ...nodegraph.lazy_names import lazy_pattern
from ...nodegraph.splitters.chunking import ALPHABETS, IDEOGRAPHS, UNSPACED
from .languages import script_of
from .normal_form import AM, HAN, INVISIBLE

Segments = list[list[str] | str]
"""Lists of adjacent words, and sequences of characters without spaces, in text order."""

# Accents, and the vowel signs and points of words in Cyrillic, Hebrew, Arabic, Thaana and the
# scripts of India and Tibet, which regular expressions exclude from words.
SIGNS = "\u0300-\u036f\u0483-\u0489\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed"

SIGNS += "\u07a6-\u07b0\u0900-\u0963\u0966-\u0dff\u0f18-\u0f84"

# Alphabets without spaces.
_ALPHABET_CODES = (*range(0xE00, 0xF00), *range(0x1000, 0x10A0), *range(0x1780, 0x1800))

_ALPHABET_CHARACTERS = [chr(code) for code in _ALPHABET_CODES]

_STACKED = AM + "".join(c for c in _ALPHABET_CHARACTERS if unicodedata.category(c) in ("Mn", "Mc"))

# A letter of these alphabets with its signs and with the letters stacked below it.
_CLUSTERS = lazy_pattern(f".(?:[\u17d2\u1039].|[{_STACKED}])*")

RUNS = lazy_pattern(
    rf"[^\W_{UNSPACED}]+(?:[{SIGNS}]+[^\W_{UNSPACED}]*)*(?:\+\+|#)?"
    rf"|[{IDEOGRAPHS}]+|[{ALPHABETS}]+"
)

# For texts before normalization, in which words contain soft hyphens.
RAW_RUNS = lazy_pattern(
    rf"[{UNSPACED}]+|[^\W_{UNSPACED}]+(?:[{SIGNS}{INVISIBLE}]+[^\W_{UNSPACED}]*)*(?:\+\+|#)?"
)

# Without these characters, a faster pattern finds the words of a text.
_SIGNS_OR_UNSPACED = lazy_pattern(f"[{SIGNS}{UNSPACED}]")

_SPACED_WORDS = re.compile(r"[^\W_]+(?:\+\+|#)?")

_UNSPACED = lazy_pattern(f"[{UNSPACED}]")

_ASCII_WORDS = re.compile(r"[a-z0-9]+(?:\+\+|#)?")

_ONLY_WORDS = re.sub(b"[^a-z0-9\x80-\xff]", b" ", bytes(range(256)))

_PUNCTUATION = "–—‘’“”„«»…"  # the punctuation that is frequent in texts of scripts with spaces

CHINESE = "\u3000"
"""A character that sorts after alphabets without spaces and before Chinese, Japanese and Korean."""

_THAI = "\u0e00"  # the first character of all scripts without spaces


def segments(normal: str) -> Segments:
    """Split a normalized text into words, and sequences of characters in scripts without spaces."""
    if normal.isascii():
        only = ascii_words(normal)
    elif not _SIGNS_OR_UNSPACED.search(normal):
        only = _spaced_words(normal)
    else:
        return _mixed_segments(normal)
    return [only] if only else []


def _mixed_segments(normal: str) -> Segments:
    """Split a text that may contain characters of scripts without spaces."""
    result: Segments = []
    words: list[str] = []
    for run in RUNS.findall(normal):
        if run < _THAI:
            words.append(run)
        elif "\u4e00" <= run < "\ua000" or _UNSPACED.match(run):
            if words:
                result.append(words)
                words = []
            result.append(run)
        else:  # a word of a script after Thai, such as Georgian
            words.append(run)
    if words:
        result.append(words)
    return result


def ascii_words(normal: str) -> list[str]:
    """Return the words of a normalized ASCII text. This is faster than ``segments``."""
    if "+" in normal or "#" in normal:  # C++, C#
        return _ASCII_WORDS.findall(normal)
    return normal.encode().translate(_ONLY_WORDS).decode().split()


def _spaced_words(normal: str) -> list[str]:
    """Return the words of a normalized text.

    The text must not contain combining signs or characters of scripts without spaces.
    """
    if "+" not in normal and "#" not in normal:
        plain = normal
        for mark in _PUNCTUATION:
            if mark in plain:
                plain = plain.replace(mark, " ")
        encoded = plain.encode("utf-8", "surrogatepass")
        words = encoded.translate(_ONLY_WORDS).decode("utf-8", "surrogatepass").split()
        if "".join(words).isalnum():  # otherwise, the text has other signs
            return words
    return _SPACED_WORDS.findall(normal)


def word_script(word: str) -> str:
    """Return the script of the first letter of a word."""
    if word[0].isascii():
        return "latin"
    return script_of(word[0])


def by_script(segments: Segments) -> dict[str, list[str]]:
    """Group words by their script."""
    lists = [segment for segment in segments if isinstance(segment, list)]
    words = lists[0] if len(lists) == 1 else [*chain.from_iterable(lists)]
    if not words:
        return {}
    if "".join(words).isascii():  # the fast path of most queries
        return {"latin": words}
    scripts = {letter: word_script(letter) for letter in {word[0] for word in words}}
    if len(set(scripts.values())) < 2:
        return dict.fromkeys(scripts.values(), words)
    result: dict[str, list[str]] = {}
    for word in words:
        result.setdefault(scripts[word[0]], []).append(word)
    return result


def run_length(run: str) -> int:
    """Return the number of letters in a text without spaces. A combining sign is not counted.

    Example:
        >>> run_length("绿茶"), run_length("น้ำชา")
        (2, 3)
    """
    if run >= CHINESE:
        return len(run)
    return len(_CLUSTERS.findall(run))


def sequences(run: str, is_query: bool) -> list[str]:
    """Return all sequences of one, two and three letters in a text without spaces.

    A letter includes its signs and the letters that are stacked below it.

    Args:
        run: The text without spaces, in an alphabetic script.
        is_query: Whether to omit single letters. Sequences of two letters are sufficient to match
            words in other contexts.
    """
    letters = _CLUSTERS.findall(run)
    shortest = 1
    if is_query and len(letters) > 1:
        shortest = 2
    longest = min(3, len(letters))
    result: list[str] = []
    for size in range(shortest, longest + 1):
        starts = range(len(letters) - size + 1)
        result += ["".join(letters[start : start + size]) for start in starts]
    return result


def sequences_of_han(name: str) -> list[str]:
    """Return the words of a name, and each character and each pair of Chinese characters.

    Example:
        >>> sequences_of_han("3000万元")
        ['3000', '万', '元', '万元']
    """
    parts: list[str] = []
    for run in RUNS.findall(name):
        if HAN.match(run):
            parts += run
            parts += [first + second for first, second in pairwise(run)]
        else:
            parts.append(run)
    return parts
