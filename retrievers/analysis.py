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

from ..nodegraph.characters import UNSPACED

_RUNS = re.compile(rf"([{UNSPACED}]+)|([^\W_{UNSPACED}]+(?:\+\+|#)?)")
_MARKS = re.compile("[\u0300-\u036f]")
_POSSESSIVE = re.compile("['’]s\\b")
_local = threading.local()

# What asks, and is not in the answer. Where the same characters begin other words (哪吒, 几何,
# 吗啡), they only count in the company or the place in which they ask.
_QUESTION_WORDS = re.compile(
    "什么时候|为什么|什么样|什么|为何|怎么样|怎么|怎样|如何|何时|何地|何处|何人|何种|何年|请问|是否"
    "|哪里|哪儿|哪些|哪个|哪位|哪(?!吒)|多少|多久|谁"
    "|几(?=[个年月天次种岁位人名条座部届场大世])|[吗呢](?=\\W*$)"
)
# Articles, auxiliaries, pronouns and question words. Prepositions and conjunctions stay: they
# weigh next to nothing where they are common, and are names in some texts (with, for, in).
_FUNCTION_WORDS = frozenset(
    "a an the am are is was were be been being do does did can could will would should has have "
    "had i me my we us our you your it its he him his she her they them their this that these "
    "those there what when where which who whom whose why how".split()
)


class Analyzer(Protocol):
    """Turns a text into terms; with a method ``query`` of its own, queries differently."""

    def __call__(self, text: str, /) -> Iterable[str]:
        """Return the terms of a passage, each as often as it occurs."""
        ...


@dataclass(frozen=True, slots=True)
class TextAnalyzer:
    """Analyse Chinese, English and mixed text alike, without a dictionary.

    Words are lower-cased, freed of accents and reduced to their English stem. Scripts without
    spaces give every character and every pair of neighbours: a one-character word is found, and
    so is any other, known to a dictionary or not. In a query, words that only ask (what, 什么)
    and English articles, auxiliaries and pronouns are left out, unless nothing else is there.

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
        asked = _RUNS.findall(_QUESTION_WORDS.sub(" ", normal))
        kept = [run for run in asked if run[1] not in _FUNCTION_WORDS]
        return self._terms(kept or _RUNS.findall(normal))

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
        decomposed = _MARKS.sub("", unicodedata.normalize("NFKD", text))
        text = unicodedata.normalize("NFC", decomposed)
    return _POSSESSIVE.sub("", text.casefold())


def _stems(words: list[str]) -> list[str]:
    stemmer = getattr(_local, "stemmer", None)
    if stemmer is None:  # one a thread: it is not safe to share
        stemmer = _local.stemmer = Stemmer("english", 100_000)
    stems: list[str] = stemmer.stemWords(words)
    return stems
