"""Language detection, and the stems and parts of words in each language."""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path

from Stemmer import Stemmer, algorithms

SAMPLE = 200
"""The number of words that are used for language detection."""

# A text is English if more than one in 8 words is in ``_ENGLISH_ONLY``.
_ENGLISH_SHARE = 8

# Minimum evidence: one function word or typical letter per 20 words.
_LEAST_SHARE = 20

_ALGORITHMS = frozenset(algorithms()) - {"porter", "dutch_porter", "lovins"}


LANGUAGE_TERM = "\0"
"""The term that marks a text whose language is not the default language of its script."""


@dataclass(frozen=True, slots=True, eq=False)
class Language:
    """A language and its properties.

    Attributes:
        name: The name of the language in Snowball, in lower case.
        script: The script of its words. See ``script_of``.
        stemmed: Whether Snowball provides a stemmer for the language.
        grows: Whether words are often compounds or have many endings for case, person and tense, so
            that parts of words must be compared as well.
        function_words: Articles, pronouns, auxiliaries and question words, and for most languages
            also prepositions and conjunctions. They identify the language. English function words
            are omitted from queries.
        letters: The letters that distinguish the language from other languages of the same script.
    """

    name: str
    script: str
    stemmed: bool
    grows: bool
    function_words: frozenset[str]
    letters: str = ""

    @property
    def term(self) -> str:
        """The term that marks texts of this language in an index."""
        return f"{LANGUAGE_TERM}{self.name}"


def _parse(entry: str) -> Language:
    head, *lines = entry.split("\n")
    name, script, *remaining = head.split(" ")
    words = frozenset(" ".join(lines).split())
    letters = "".join(part for part in remaining if part != "grows")
    name, _, _ = name.partition("_")
    return Language(name, script, name in _ALGORITHMS, "grows" in remaining, words, letters)


# Read at import, since the first search may be in an event loop.
_TABLE = Path(__file__).with_name("languages.txt").read_text("utf-8")

_ALL = [_parse(entry) for entry in _TABLE.strip().split("\n\n")[1:]]

ENGLISH = _ALL[0]

# Prepositions and conjunctions identify English, but stay in queries: frequent words have low
# weights, and some texts use them as names (with, for, in).
_ENGLISH_EVIDENCE = ENGLISH.function_words.union(
    "and or of to in on by with for from as at not if but than into also no one two".split()
)

_ENGLISH_WORDS = frozenset(word for word in _ENGLISH_EVIDENCE if len(word) > 1)

# English words that are rare in all other languages of the table.
_ENGLISH_ONLY = frozenset(
    "the and that with from by this which are were his her they have has not their these what "
    "when who how where why".split()
)


@cache
def of_script(script: str) -> tuple[Language, ...]:
    """Return the languages of a script, beginning with its default language."""
    languages = tuple(language for language in _ALL if language.script == script)
    grows = script not in ("digit", "none")
    return languages or (Language(script, script, False, grows, frozenset()),)


@cache
def _hints(script: str) -> Mapping[str, tuple[Language, ...]]:
    """Return the languages that each function word of a script belongs to."""
    hints: dict[str, tuple[Language, ...]] = {}
    for language in of_script(script):
        evidence = _ENGLISH_EVIDENCE if language is ENGLISH else language.function_words
        for word in evidence:
            if len(word) > 1 or script != "latin":  # single letters are variables and initials
                hints[word] = (*hints.get(word, ()), language)
    return hints


@cache
def _foreign_words() -> frozenset[str]:
    """Return the function words of languages in Latin script that are not English words."""
    languages = of_script("latin")
    return frozenset(word for word, batch in _hints("latin").items() if batch != languages[:1])


@cache
def _letter_hints(script: str) -> Mapping[str, tuple[Language, ...]]:
    """Return the languages that each typical letter of a script belongs to."""
    languages = of_script(script)
    hints: dict[str, tuple[Language, ...]] = {}
    for letter in set("".join([language.letters for language in languages])):
        hints[letter] = tuple(language for language in languages if letter in language.letters)
    return hints


@cache
def _letter_pattern(script: str) -> re.Pattern[str]:
    """Return a pattern that matches the typical letters of all languages of a script."""
    return re.compile(f"[{''.join(_letter_hints(script))}]")


@cache
def script_of(character: str) -> str:
    """Return the name of the script that a letter belongs to, in lower case.

    Example:
        >>> script_of("ж"), script_of("é"), script_of("7")
        ('cyrillic', 'latin', 'digit')
    """
    return unicodedata.name(character, "none").partition(" ")[0].lower()


def names() -> list[str]:
    """Return the names of all supported languages."""
    return sorted({language.name for language in _ALL} | _ALGORITHMS)


@cache
def named(name: str) -> tuple[Language, ...]:
    """Return the language with a given name, with one entry for each of its scripts."""
    languages = tuple(language for language in _ALL if language.name == name)
    return languages or (Language(name, "latin", True, False, frozenset()),)


def detect(
    words: Sequence[str], script: str, candidates: Collection[Language] | None = None
) -> Language | None:
    """Detect the language of words in one script. Without enough evidence, None is returned.

    The language with the most function words and typical letters among the first 200 words is
    returned. If several languages have the same number, the first one in the table is returned.

    Args:
        words: The words in lower case and composed Unicode form (NFC), in the order of the text.
        script: The script of the words.
        candidates: The languages that can be returned. If None, all languages are considered.
    """
    words = words[:SAMPLE]
    if script == "latin" and candidates is None:
        english = len([word for word in words if word in _ENGLISH_ONLY])
        if english > 1 and english * _ENGLISH_SHARE > len(words):
            return ENGLISH
    least = _least(words) if candidates is None else 1
    if script == "latin" and _may_be_english(candidates):
        # In ASCII, no letter indicates another language. If no language has more function words
        # than English, English is the result, since it is first.
        foreign_words = _foreign_words()
        evidence = len([word for word in words if word in _ENGLISH_WORDS])
        foreign = len([word for word in words if word in foreign_words])
        if evidence >= foreign and "".join(words).isascii():
            return ENGLISH if evidence >= least else None
    scores = _evidence(words, script)
    if not scores:
        return None
    best = max(candidates or of_script(script), key=lambda language: scores.get(language, 0))
    if script != "latin" or candidates is not None:
        return best if best in scores else None
    score = scores.get(best, 0)
    if score < least:
        return None
    # A single word, such as a repeated part of a name, does not identify a language.
    hints = _hints(script)
    repeated = [word for word in words if best in hints.get(word, ())]
    has_letters = score > len(repeated)
    if best is ENGLISH or has_letters or len({*repeated}) > 1:
        return best
    return None


def _may_be_english(candidates: Collection[Language] | None) -> bool:
    """Return whether English is the first candidate. If no candidates are given, return True."""
    if candidates is None:
        return True
    return next(iter(candidates), None) is ENGLISH


def _evidence(words: Sequence[str], script: str) -> dict[Language, int]:
    """Return the number of function words and typical letters for each language."""
    hints = _hints(script)
    scores: dict[Language, int] = {}
    for word in words:
        for language in hints.get(word, ()):
            scores[language] = scores.get(language, 0) + 1
    joined = "".join(words)
    letters = _letter_hints(script)
    if letters and not joined.isascii():
        for letter in _letter_pattern(script).findall(joined):
            for language in letters[letter]:
                scores[language] = scores.get(language, 0) + 1
    return scores


def _least(words: Sequence[str]) -> float:
    """Return the minimum evidence for detecting a language in Latin script among all languages.

    A minimum is necessary because texts in other languages contain some function words by chance.
    For example, "die" is both a German and an English word.
    """
    return max(2, len(words) / _LEAST_SHARE)


_ACCENTS = re.compile("[\u0300-\u036f]")

_STRESS = re.compile("[\u0300\u0301]")  # in Cyrillic, where a breve makes a different letter

# Points of Hebrew and Arabic, and the elongation mark.
_POINTS = re.compile(
    "[\u0591-\u05c7\u0610-\u061a\u0640\u064b-\u0652\u0656-\u065f\u0670\u06d6-\u06ed]"
)

# Letters that are often replaced by a similar letter, or missing on keyboards.
_LETTERS = str.maketrans(
    dict(zip("ıłøđðħŧёأإآٱىیکةۀ", "iloddhtеاااايي\u0643هه", strict=True)) | {"æ": "ae", "œ": "oe"}
)

_VIETNAMESE = "vietnamese"

_SERBIAN = "serbian"  # the stemmer returns stems in Latin letters

_GRAM = 4  # the number of letters of a part of a word

# The weight of a part in a query; a word weighs 1. Selected from 0.1 to 0.5 on German, Russian and
# Arabic, where 0.2 to 0.5 differ little.
_GRAM_WEIGHT = 0.3

_MOST_STEMS = 50_000  # the maximum number of cached stems per language and thread


class _Stemmers(threading.local):
    """The stemming functions of each thread, by the name of the language."""

    def __init__(self) -> None:
        self.by_name: dict[str, Callable[[str], str]] = {}


_STEMMERS = _Stemmers()


def terms(words: list[str], language: Language) -> list[str]:
    """Return the stems of words. If the language uses parts of words, they follow each stem."""
    if language.name == _VIETNAMESE:
        return stems(words, language) + syllable_pairs(words)
    if not language.grows:
        return stems(words, language)
    result: list[str] = []
    for stem, word in zip(stems(words, language), folded(words, language), strict=True):
        result.append(stem)
        result += _cached_grams(word)
    return result


def query_parts(words: list[str], languages: Sequence[Language]) -> list[list[tuple[str, float]]]:
    """Return the parts of each word in a query, with their weights, for several languages.

    A pair of syllables belongs to its first syllable and has the same weight as a word.
    """
    result: list[list[tuple[str, float]]] = [[] for _ in words]
    growing = next((language for language in languages if language.grows), None)
    if growing is not None:
        for of_word, word in zip(result, folded(words, growing), strict=True):
            of_word += ((gram, _GRAM_WEIGHT) for gram in grams(word))
    if any(language.name == _VIETNAMESE for language in languages):
        for of_word, pair in zip(result, syllable_pairs(words), strict=False):
            of_word.append((pair, 1.0))
    return result


def stems(words: list[str], language: Language) -> list[str]:
    """Return the stems of words without accents, or the words if the language has no stemmer."""
    if not language.stemmed:
        return folded(words, language)
    # The hottest loop of the analysis, in which map() is faster than a comprehension.
    return [*map(_stemmer(language), words)]


def folded(words: list[str], language: Language) -> list[str]:
    """Remove accents and vowel signs from words, unless they distinguish letters."""
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


def length_of(words: Sequence[str], language: Language) -> int:
    """Return the length of a text in words.

    In languages with compounds or many endings, a word counts once for about every five letters, so
    that a compound is as long as its parts.
    """
    if not language.grows:
        return len(words)
    return -(-sum(max(1, len(word) - 1) for word in words) // _GRAM)


def grams(word: str) -> list[str]:
    """Return all sequences of four letters in a word. The first sequence begins with a mark.

    Short words and numbers have no such sequences.

    Example:
        >>> grams("flusse")
        ['_flu', 'flus', 'luss', 'usse']
    """
    if len(word) < _GRAM or word[0].isdigit():
        return []
    word = f"_{word}"
    return [word[at : at + _GRAM] for at in range(len(word) - _GRAM + 1)]


@lru_cache(10_000)  # words are often repeated
def _cached_grams(word: str) -> tuple[str, ...]:
    return tuple(grams(word))


def syllable_pairs(words: list[str]) -> list[str]:
    """Return pairs of adjacent Vietnamese syllables as terms, without tones.

    Most Vietnamese words consist of two syllables and can be distinguished without tones.
    """
    return [f"{item}_{other}" for item, other in pairwise(folded(words, ENGLISH))]


class _Stems(dict[str, str]):
    """A cache of stems without accents, which is faster than the cache of the stemmer."""

    def __init__(self, language: Language) -> None:
        super().__init__()
        self._language = language
        self._stem: Callable[[str], str] = Stemmer(language.name, 0).stemWord

    def __missing__(self, word: str) -> str:
        if len(self) >= _MOST_STEMS:
            self.clear()
        if self._language is ENGLISH:  # the English stemmer expects words without accents
            plain = word if word.isascii() else folded([word], ENGLISH)[0]
            stem = self._stem(plain)
        else:
            stem = folded([self._stem(word) or word], self._language)[0]
        self[word] = stem
        return stem


def _stemmer(language: Language) -> Callable[[str], str]:
    """Return the stemming function of the current thread for a language."""
    stemmers = _STEMMERS.by_name
    stemmer = stemmers.get(language.name)
    if stemmer is None:
        stemmer = stemmers[language.name] = _Stems(language).__getitem__
    return stemmer
