"""Turn texts and queries into the terms that a text index stores and looks up."""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from operator import add
from typing import Protocol

from Stemmer import Stemmer

from ..nodegraph.splitters import UNSPACED

# Vowel signs and points of words in Cyrillic, Hebrew, Arabic and the scripts of India, which
# regular expressions don't take for parts of a word.
_SIGNS = "\u0483-\u0489\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed"

_SIGNS += "\u0900-\u0963\u0966-\u0dff"

_RUNS = re.compile(rf"([{UNSPACED}]+)|((?:[^\W_{UNSPACED}]|[{_SIGNS}])+(?:\+\+|#)?)")

_ACCENTS = re.compile("[\u0300-\u036f]")

_POSSESSIVE = re.compile("['’]s\\b")

_local = threading.local()

# Question words, which are not in the answer. Where the same characters begin other words (哪吒,
# 几何, 吗啡), they count only with the neighbours or at the place that make them a question word.
_QUESTION_WORDS = re.compile(
    "什[么麼]时候|什麼時候|[为為]什[么麼]|什[么麼]样|什麼樣|[什甚][么麼]|[为為]何|怎[么麼][样樣]?|怎[样樣]"
    "|如何|何[时時]|何地|何[处處]|何人|何[种種]|何年|[请請][问問]|是否"
    "|哪[里裡裏儿兒些个個位]|哪(?!吒)|多少|多久|[谁誰]"
    "|[几幾](?=[个個年月天次种種岁歲位人名条條座部届屆场場大世])|[吗嗎呢](?=\\W*$)"
)

# Articles, auxiliaries, pronouns and question words. Prepositions and conjunctions stay: they
# weigh next to nothing where they are common, and are names in some texts (with, for, in).
_FUNCTION_WORDS = frozenset(
    "a an the am are is was were be been being do does did can could will would should has have "
    "had i me my we us our you your it its he him his she her they them their this that these "
    "those there what when where which who whom whose why how".split()
)


class Analyzer(Protocol):
    """Turns a text into terms; a method ``query``, where there is one, is used for queries."""

    def __call__(self, text: str, /) -> Iterable[str]:
        """Return the terms of a passage, each as often as it occurs."""
        ...


@dataclass(frozen=True, slots=True)
class TextAnalyzer:
    """Analyse Chinese, English and mixed text alike, without a dictionary.

    Words are lower-cased, freed of accents and reduced to their English stem. Scripts without
    spaces give every character and every pair of neighbours, so that words of one character match,
    and so do words that are in no dictionary. In a query, question words (what, 什么) and English
    articles, auxiliaries and pronouns are left out, unless it consists of nothing else.

    Characters and bigrams together are the classic dictionary-free choice for Chinese retrieval
    (Nie, Gao, Zhang and Zhou, "On the use of words and n-grams for Chinese information
    retrieval", 2000).

    Args:
        stem: Whether English words are reduced to their stem (Porter2).

    Example:
        >>> TextAnalyzer()("The rivers of C++, 长江")
        ['the', 'river', 'of', 'c++', '长', '江', '长江']
        >>> TextAnalyzer().query("什么是 rivers?")
        ['是', 'river']
    """

    stem: bool = True

    def __call__(self, text: str) -> list[str]:
        """Return the terms of a passage."""
        return self._terms(_RUNS.findall(_normalized(text)))

    def query(self, text: str) -> list[str]:
        """Return the terms of a query."""
        normal = _normalized(text)
        runs = _RUNS.findall(_QUESTION_WORDS.sub(" ", normal))
        content = [run for run in runs if run[1] not in _FUNCTION_WORDS]
        return self._terms(content or _RUNS.findall(normal))

    def _terms(self, runs: list[tuple[str, str]]) -> list[str]:
        terms: list[str] = []
        words: list[str] = []
        for unspaced, word in runs:
            if word:
                words.append(word)
                continue
            if words:
                terms += _stems(words) if self.stem else words
                words = []
            terms += unspaced
            terms += map(add, unspaced, unspaced[1:])
        return terms + (_stems(words) if self.stem else words)


def _normalized(text: str) -> str:
    if not text.isascii():
        decomposed = _ACCENTS.sub("", unicodedata.normalize("NFKD", text))
        text = unicodedata.normalize("NFC", decomposed)
    return _POSSESSIVE.sub("", text.casefold())


def _stems(words: list[str]) -> list[str]:
    stemmer = getattr(_local, "stemmer", None)
    if stemmer is None:  # one a thread: it is not safe to share
        stemmer = _local.stemmer = Stemmer("english", 100_000)
    stems: list[str] = stemmer.stemWords(words)
    return stems
