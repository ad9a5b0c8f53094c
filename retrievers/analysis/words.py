"""Make terms of the words of a language: stems, parts of words, pairs of syllables."""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Sequence
from itertools import pairwise

from Stemmer import Stemmer

from .languages import ENGLISH, Language

_ACCENTS = re.compile("[\u0300-\u036f]")

_STRESS = re.compile("[\u0300\u0301]")  # in Cyrillic, where a breve makes another letter

# Points of Hebrew and Arabic, and the letter that only makes a word longer.
_POINTS = re.compile(
    "[\u0591-\u05c7\u0610-\u061a\u0640\u064b-\u0652\u0656-\u065f\u0670\u06d6-\u06ed]"
)

# Letters that many write for another one, or lack on their keyboard.
_LETTERS = str.maketrans(
    dict(zip("ıłøđðħŧёأإآٱىیکةۀ", "iloddhtеاااايي\u0643هه", strict=True)) | {"æ": "ae", "œ": "oe"}
)

_VIETNAMESE, _SERBIAN = "vietnamese", "serbian"  # the stems of Serbian are in Latin letters

_GRAM = 4  # letters of the parts of words

# What a part counts in a query beside a word's 1 (chosen from 0.1 to 0.5 on German, Russian and
# Arabic, where 0.2 to 0.5 differ little).
_GRAM_WEIGHT = 0.3

_CACHED_STEMS = 100_000  # of a language, by thread

_local = threading.local()


def terms(words: list[str], language: Language) -> list[str]:
    """Return the stems of words, each followed by its parts where the language has them."""
    if language.name == _VIETNAMESE:
        return stems(words, language) + syllable_pairs(words)
    if not language.grows:
        return stems(words, language)
    result: list[str] = []
    for stem, word in zip(stems(words, language), folded(words, language), strict=True):
        result.append(stem)
        result += grams(word)
    return result


def query_parts(words: list[str], languages: Sequence[Language]) -> list[tuple[str, float]]:
    """Return the parts of a query's words in any of some languages, and what each counts."""
    result: list[tuple[str, float]] = []
    growing = next((language for language in languages if language.grows), None)
    if growing is not None:
        for word in folded(words, growing):
            result += ((gram, _GRAM_WEIGHT) for gram in grams(word))
    if any(language.name == _VIETNAMESE for language in languages):
        result += ((pair, 1.0) for pair in syllable_pairs(words))
    return result


def stems(words: list[str], language: Language) -> list[str]:
    """Return the stems of words without accents, the words where there is no stemmer."""
    if not language.stemmed:
        return folded(words, language)
    if language is ENGLISH:  # whose stemmer takes letters without accents
        stemmed: list[str] = _stemmer(language.name).stemWords(folded(words, language))
        return stemmed
    pairs = zip(_stemmer(language.name).stemWords(words), words, strict=True)
    return folded([stem or word for stem, word in pairs], language)


def folded(words: list[str], language: Language) -> list[str]:
    """Return words without accents and points, where these don't make another word."""
    joined = "\n".join(words)
    if joined.isascii() or language.name == _VIETNAMESE:
        return words
    if language.script in ("latin", "greek") or language.name == _SERBIAN:
        joined = _ACCENTS.sub("", unicodedata.normalize("NFD", joined))
    elif language.script == "cyrillic":
        joined = _STRESS.sub("", joined)
    else:
        joined = _POINTS.sub("", joined)
    result = unicodedata.normalize("NFC", joined).translate(_LETTERS).split("\n")
    return [batch or word for batch, word in zip(result, words, strict=True)]


def grams(word: str) -> list[str]:
    """Return the sequences of four letters of a word, the first with a mark in front.

    Short words and numbers have none.

    Example:
        >>> grams("flusse")
        ['_flu', 'flus', 'luss', 'usse']
    """
    if len(word) < _GRAM or word[0].isdigit():
        return []
    word = f"_{word}"
    return [word[at : at + _GRAM] for at in range(len(word) - _GRAM + 1)]


def syllable_pairs(words: list[str]) -> list[str]:
    """Return neighbouring syllables of Vietnamese, each pair as one term, without their tones.

    Most words have two syllables, which together hardly need the tones.
    """
    return [f"{item}_{other}" for item, other in pairwise(folded(words, ENGLISH))]


def _stemmer(language: str) -> Stemmer:
    stemmers: dict[str, Stemmer] | None = getattr(_local, "stemmers", None)
    if stemmers is None:
        stemmers = _local.stemmers = {}
    if language not in stemmers:
        stemmers[language] = Stemmer(language, _CACHED_STEMS)
    return stemmers[language]
