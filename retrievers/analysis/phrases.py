"""Find phrases in quotation marks in queries, and search for them in texts."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ...nodegraph.lazy_names import lazy_pattern
from ...nodegraph.splitters.chunking import UNSPACED
from ...nodegraph.text_forms import composed
from .normal_form import INVISIBLE
from .segments import SIGNS
from .text_analyzer import Analyzer, TextAnalyzer

# Quotation marks open a phrase only before a word, so that 5" and a single mark are text.
_QUOTED = re.compile(
    r'(?<!\w)"(?=\w)([^"]*\w\W?)"(?!\w)|[“„](\w[^“”]*)[”“]|「(\w[^「」]*)」|『(\w[^『』]*)』'
)

_OPENING = '"“„「『'

_SEPARATOR = lazy_pattern(rf"(?:[^\w{SIGNS}{INVISIBLE}]|_)+")

_LETTER = lazy_pattern(f"[{UNSPACED}]")


def quoted_phrases(query: str) -> list[str]:
    """Return the phrases in quotation marks in a query that consist of several words.

    Example:
        >>> quoted_phrases('Who wrote "green tea" and 「绿茶」, 5" thick?')
        ['green tea', '绿茶']
    """
    if not any([mark in query for mark in _OPENING]):  # as in most queries
        return []
    # Only one group of each match has text.
    found = dict.fromkeys(["".join(groups) for groups in _QUOTED.findall(query)])
    return [phrase for phrase in found if len(_spaced(phrase).split()) > 1]


class Phrase:
    """A phrase that can be searched in texts.

    Words are compared after analysis, so separators and case are ignored.

    Args:
        analyzer: The analyzer of the index.
        text: The phrase.

    Example:
        >>> Phrase(TextAnalyzer(), "gentle coding").is_in("We teach Gentle-Coding.")
        True
    """

    def __init__(self, analyzer: Analyzer, text: str) -> None:
        self._analyzer = analyzer
        self._analyzed: dict[TextAnalyzer, str] = {}  # the analyzed words of the phrase
        self.text = f'"{text}"'
        """The phrase in quotation marks, the name of its term."""
        self.words = _spaced(text)
        """The words, and the letters of scripts without spaces, separated by spaces."""

    def is_in(self, text: str) -> bool:
        """Return whether a text contains the phrase."""
        analyzer = self._analyzer
        if not isinstance(analyzer, TextAnalyzer):
            return _joined(analyzer(self.words)) in _joined(analyzer(_spaced(text)))
        alike = analyzer.like(text)
        if alike not in self._analyzed:
            self._analyzed[alike] = _joined(alike.words(self.words))
        return self._analyzed[alike] in _joined(alike.words(_spaced(text)))


def _spaced(text: str) -> str:
    return _LETTER.sub(r"\g<0> ", _SEPARATOR.sub(" ", composed(text)))


def _joined(words: Iterable[str]) -> str:
    return "\0".join(["", *words, ""])
