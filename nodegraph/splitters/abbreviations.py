"""Determine whether a full stop ends a sentence or belongs to an abbreviation or ordinal number."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from ..lazy_names import lazy_pattern
from .chunking import UNSPACED

# Combining marks of Hebrew, Arabic and Indian scripts, which ``\w`` does not match.
_SIGNS = "\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0963\u0980-\u0dff"

# Matches the last word of a text that is reversed.
_LAST_WORD = lazy_pattern(rf"\n?(['׳]?(?:[^\W{UNSPACED}]+|[{_SIGNS}.\-/]+)*)")

_FIRST_WORD = re.compile(r"[\s\"'“‘„«»([（「『]*([^\W\d_]+)(?!\w|(?<=\b\w)\.)")

_OPENERS = " \t\n\r\"'“‘„([（「『"

_WINDOW = 24  # number of characters before a full stop that are considered

_HINT_WINDOW = 100  # number of characters around a full stop from which the language is guessed

# Words of languages that write ordinal numbers with a full stop: Turkish, Hungarian, Czech and
# German. In Czech and German, a capital letter follows an ordinal number only in the names of
# rulers.
_WITH_ORDINALS = re.compile("[ığşİŞĞőűŐŰ]")

_WITH_RULERS = re.compile(
    "[ığşİŞĞőűŐŰěřůčýĚŘŮČß]|\\b(?:der|die|das|und|von|des|dem|wurde|war|ist)\\b"
)

_NUMBER = re.compile(r"[0-9]{1,3}(?:\.[0-9]{1,3})*")

_ROMAN = re.compile(r"(?=.)X{0,3}(?:IX|IV|V?I{0,3})")

_LETTERS = re.compile(r"(?:[^\W\d_]\.-?)*[^\W\d_]")

# A capital letter and consonants: Дж. А. Гобсон, Вл. Соловьёв.
_CYRILLIC_INITIAL = re.compile("(?:[А-Я][.]-?)*[А-Я][бвгджзклмнпрстфхцчшщ]{1,2}")

# A single syllable, or the name of a Latin letter: एम, ಎಸ್.
_SYLLABLE = re.compile(
    r"(?:[\u0904-\u0914\u0985-\u0994\u0a05-\u0a14\u0a85-\u0a94\u0b05-\u0b14\u0b85-\u0b94"
    r"\u0c05-\u0c14\u0c85-\u0c94\u0d05-\u0d14])?[^\W\d_]?[\u0900-\u0903\u093a-\u094f\u0981-\u0983"
    r"\u09bc-\u09cd\u0a01-\u0a03\u0a3c-\u0a4d\u0a81-\u0a83\u0abc-\u0acd\u0b01-\u0b03\u0b3c-\u0b4d"
    r"\u0b82\u0bbe-\u0bcd\u0c00-\u0c03\u0c3e-\u0c4d\u0c81-\u0c83\u0cbc-\u0ccd\u0d00-\u0d03"
    r"\u0d3e-\u0d4d]*"
)

_INDIC = re.compile("[\u0900-\u0dff]")

# Short words that end sentences in Hindi, Marathi and Gujarati.
_INDIC_ENDS = frozenset("है हैं था थी थे हो हूं हूँ दी ली की ही भी जी ने गए एक आप अब और छे છે હતી".split())

# The names of Latin letters in Arabic and Hindi.
_LETTER_NAMES = frozenset(
    "إيه ايه أيه بي سي دي إي إف اف جي جيه إتش اتش آي أي كي كيه إل ال إم ام إن ان أو او كيو آر ار "
    "إس اس تي يو في دبليو إكس اكس واي زد "
    "ए बी सी डी ई एफ जी एच आई जे के एल एम एन ओ पी क्यू आर एस टी यू वी "
    "डब्ल्यू एक्स वाई ज़ेड".split()
)

_UNCASED_LETTER = re.compile("(?:[א-ת]|[ء-ي]ـ?)['׳]?")  # a letter of Hebrew or Arabic

# Russian abbreviations: и т. д., до н. э.
_FINAL_LETTERS = re.compile(r"(?:\bт\. ?[дп]|\bн\. ?[эе])\Z")

_AFTER_NUMBER = re.compile(r"(?:[0-9٠-٩]|\b[IVX]+|[0-9]-?[а-яё]{1,2})[ \xa0\u202f]?\Z")

_LINE_STARTS = ("", "\n", "#")

_STARTS = (*_LINE_STARTS, *".!?:)。！？：）")


def _parsed(table: str) -> dict[str, frozenset[str]]:
    sections: dict[str, frozenset[str]] = {}
    for section in table.split("\n\n"):
        head, _, words = section.partition("\n")
        name = head.removeprefix("# ").partition(":")[0]
        sections[name] = frozenset(words.split())
    return sections


_TABLE = _parsed(Path(__file__).with_name("abbreviations.txt").read_text("utf-8"))

_NEVER = _TABLE["never"]

_BEFORE_NUMBERS = _TABLE["number"]

_BEFORE_NOUNS = _TABLE["noun"]

_MAY_END = _TABLE["may"]

_MONTHS = _TABLE["months"]

_AFTER_ORDINALS = _TABLE["ordinal"]

_BEFORE_ORDINALS = _TABLE["leads"]

_STARTERS = _TABLE["starters"]


def letter_after(text: str, end: int) -> str:
    """Return the first character after whitespace and opening quotation marks."""
    return text[end : end + 40].lstrip(_OPENERS)[:1]


class FullStop(NamedTuple):
    """A full stop that is followed by whitespace.

    Attributes:
        text: The whole text.
        start: The position of the full stop in the text.
        end: The position after the full stop and any closing quotation marks and brackets.
        word: The word before the full stop.
    """

    text: str
    start: int
    end: int
    word: str

    @classmethod
    def at(cls, text: str, start: int, end: int) -> FullStop:
        """Return the full stop at a position of a text."""
        word = _last_word(text[max(0, start - _WINDOW) : start])
        return cls(text, start, end, word)

    def ends_sentence(self) -> bool:
        """Return whether the full stop ends a sentence."""
        upcoming = letter_after(self.text, self.end)
        word = self.word.lower()
        if upcoming.islower() or word in _NEVER:
            return False
        is_number = upcoming.isdigit() or upcoming in ("§", "№")
        if is_number and (word in _BEFORE_NUMBERS or word.endswith("str")):
            return False
        ends_list = _FINAL_LETTERS.search(self.text, max(0, self.start - 6), self.start)
        if word in _MAY_END or ends_list:
            return upcoming.isupper() or not upcoming
        if word in _BEFORE_NOUNS:
            return self.starts_sentence or not upcoming
        if _NUMBER.fullmatch(word) or _ROMAN.fullmatch(self.word):
            return not self._is_ordinal()
        return not self._is_initial()

    @property
    def starts_sentence(self) -> bool:
        """True if the next word is capitalized and is a word that often begins sentences."""
        match = _FIRST_WORD.match(self.text, self.end)
        if match is None or match[1][0].islower():
            return False
        return match[1].lower() in _STARTERS

    @property
    def _before(self) -> str:
        """The text before the last word."""
        end = self.start - len(self.word)
        return self.text[max(0, end - _WINDOW) : end]

    def _is_ordinal(self) -> bool:
        """Return whether the number before the full stop is an ordinal number.

        The number of a section or list item also counts as an ordinal number.
        """
        before = self._before.rstrip(" \t")
        if before[-1:] in (_LINE_STARTS if "." in self.word else _STARTS):
            return self._starts_after(before)
        # The letter is an initial rather than a Roman numeral.
        if self.word.isalpha() and len(self.word) == 1:
            return True
        match = _FIRST_WORD.match(self.text, self.end)
        following = match[1].lower() if match else ""
        if "." in self.word:
            return False
        if following in _MONTHS or following in _AFTER_ORDINALS:
            return True
        if not following or following in _STARTERS:
            return False
        lead = before.split()[-1:]
        if self.word.isdigit() and lead and lead[0].lower() in _BEFORE_ORDINALS:
            return True
        around = self.text[max(0, self.start - _HINT_WINDOW) : self.end + _HINT_WINDOW]
        hints = _WITH_ORDINALS if self.word.isdigit() else _WITH_RULERS
        return hints.search(around) is not None

    def _starts_after(self, before: str) -> bool:
        """Return whether the word starts a sentence. For example, the 4 in "Kap. 4." does not."""
        if before[-1:] != ".":
            return True
        end = self.start - len(self.word) - len(self._before) + len(before)
        previous = FullStop.at(self.text, end - 1, end)
        return previous.word.isdigit() or previous.ends_sentence()

    def _is_initial(self) -> bool:
        """Return whether the word before the full stop is an initial or a short abbreviation."""
        word = self.word
        if word in ("r", "w") and self._follows_number:  # Polish, as in "1990 r."
            return False
        if word.isascii():
            return _LETTERS.fullmatch(word) is not None
        if _CYRILLIC_INITIAL.fullmatch(word):
            return not self._follows_number  # Russian units, as in "50 Гц"
        if _INDIC.match(word):
            return self._is_indic_initial()
        if word in _LETTER_NAMES or _UNCASED_LETTER.fullmatch(word):
            return not (self.starts_sentence or self._follows_number or self._is_spelled)
        if not _LETTERS.fullmatch(word):
            return False
        if word[-1].isupper():
            return not self.starts_sentence
        return _is_abbreviated(word) and not self._follows_number

    @property
    def _follows_number(self) -> bool:
        return _AFTER_NUMBER.search(self._before) is not None

    @property
    def _is_spelled(self) -> bool:
        """True if the word is the last letter of a spelled-out name, such as BBC in Arabic."""
        return any(name in _LETTER_NAMES for name in self._before.split()[-1:])

    def _is_indic_initial(self) -> bool:
        is_syllable = len(self.word) <= 6 and _SYLLABLE.fullmatch(self.word)
        if not is_syllable and self.word not in _LETTER_NAMES:
            return False
        if "।" in self.text:  # In this text, sentences end with a danda.
            return True
        return self.word not in _INDIC_ENDS


def _last_word(before: str) -> str:
    """Return the word at the end of a text, or an empty string if there is none."""
    match = _LAST_WORD.match(before[::-1])
    if match is None:
        return ""
    word = match[1][::-1].lstrip("-/")
    if _UNCASED_LETTER.fullmatch(word):
        return word
    return word.rstrip("'׳")


def _is_abbreviated(letters: str) -> bool:
    """Return whether a lowercase word ends with a Cyrillic letter or č, like an abbreviation."""
    return letters[-1] in "čšžř" or "\u0400" <= letters[-1] <= "\u052f"
