"""Find names in texts by capital letters and quotation marks, without a model."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ..lazy_names import lazy_pattern
from ..splitters.chunking import UNSPACED

# Python's regular expressions have no class of capital letters. Accents are removed before.
_UPPER = "".join(
    re.escape(chr(code)) for code in (*range(0x590), *range(0x1E00, 0x2000)) if chr(code).isupper()
)

_LETTER = rf"[^\W_{UNSPACED}]"

_CAPITAL = rf"[{_UPPER}]{_LETTER}*(?:['’]{_LETTER}+)*"

# Lowercase words inside names, and lowercase words inside titles only.
_JOINING = "of|the|de|del|della|di|da|du|des|la|le|von|van|der|den|al|el|bin|ibn"

_LOOSE = "and|in|on|at|to|for|with|from|a|an|by|or|as"

_RUN = lazy_pattern(
    rf"(?<!{_LETTER}){_CAPITAL}(?:(?:[ \-–]|, |(?<![^\W\d_][^\W\d_])\. ?)"
    rf"(?:(?:{_JOINING}|{_LOOSE}) ){{0,2}}(?:{_CAPITAL}|\d+(?!{_LETTER})))*"
)

_WORD = lazy_pattern(rf"{_LETTER}+(?:['’]{_LETTER}+)*")

_LOWER = lazy_pattern(rf"(?<!{_LETTER})[^\W\d_{_UPPER}{UNSPACED}]+")

_TERM = lazy_pattern(rf"[{UNSPACED}]+|{_LETTER}+(?:['’]{_LETTER}+)*")

_HAS_UNSPACED = lazy_pattern(f"[{UNSPACED}]")

# Quotation marks around fewer than three characters are for emphasis.
_QUOTED = lazy_pattern(
    r"《([^《》\n]{1,40})》|〈([^〈〉\n]{1,40})〉|「([^「」\n]{3,20})」|『([^『』\n]{3,20})』"
    r"|“([^“”\n]{3,20})”"
)

_REMARK = re.compile(r"\s*[(（][^()（）]*[)）]\s*$")

_BEFORE_A_SENTENCE = re.compile(r"(?:^|[.!?:;\n。！？：；\"“”‘(（|*#-])\s*$")

_ACCENTS = re.compile("[\u0300-\u036f]")

_POSSESSIVE = re.compile("['’]s$")

ARTICLES = ("the", "a", "an")

_MAX_LENGTH = 8  # capitalized words in a name

_MAX_UNSPACED_LENGTH = 20  # characters


def name_key(name: str) -> str:
    """Return the normalized form of a name, for comparison.

    Example:
        >>> name_key("The Café's (play)"), name_key("《红楼梦》")
        ('cafe', '红楼梦')
    """
    words = [_plain(word) for word in _TERM.findall(_folded(_REMARK.sub("", name)))]
    while len(words) > 1 and words[0] in ARTICLES:
        del words[0]
    return " ".join(words)


def has_name(text: str, name: str) -> bool:
    """Return whether a text contains the words of a name in sequence, in any spelling.

    Args:
        text: A text.
        name: The name's key (``name_key``), in a script with spaces.

    Example:
        >>> [has_name(text, "green tea") for text in ("He drinks green tea.", "Tea, green tees")]
        [True, False]
    """
    words = " ".join(map(_plain, _TERM.findall(_folded(text))))
    return f" {name} " in f" {words} "


def is_written_as_name(text: str, name: str) -> bool:
    """Return whether a name in a text is written with a capital letter.

    The last word of the name may be a number. The first word of the text does not count. In
    scripts without spaces the result is True.

    Args:
        text: The text.
        name: The name's key (``name_key``).

    Example:
        >>> [is_written_as_name(text, "green tea") for text in ("He drinks Green Tea", "Green tea")]
        [True, False]
    """
    if is_unspaced(name):
        return True
    terms = [match.group() for match in _TERM.finditer(_folded(text))]
    plain = [_plain(term) for term in terms]
    words = name.split(" ")
    starts = (at for at in range(1, len(plain)) if plain[at : at + len(words)] == words)
    return any(
        terms[at][0].isupper() and not terms[at + len(words) - 1][0].islower() for at in starts
    )


def names_in(text: str, is_name: Callable[[str], bool]) -> list[str]:
    """Return the keys of existing names in a text, the longest names first.

    Names do not overlap. A single word counts if it has a capital letter and is not the first
    word of the text.

    Args:
        text: A question, or another text.
        is_name: A function from a key (``name_key``) to whether the name exists.

    Example:
        >>> known = {"cafe", "brand", "who", "wrote", "红楼梦", "红楼"}
        >>> names_in("Who wrote The Café and Brand?", known.__contains__)
        ['cafe', 'brand']
        >>> names_in("《红楼梦》的作者是谁？", known.__contains__)
        ['红楼梦']
    """
    terms = [match.group() for match in _TERM.finditer(_folded(text))]
    plain = [_plain(term) for term in terms]
    taken = [False] * len(terms)
    names: list[str] = []
    for length in range(_MAX_LENGTH, 0, -1):
        for start in range(len(terms) - length + 1):
            if any(taken[start : start + length]) or plain[start] in ARTICLES:
                continue
            if length == 1 and not (start and terms[start][0].isupper() and len(plain[start]) > 1):
                continue
            if is_name(key := " ".join(plain[start : start + length])):
                names.append(key)
                taken[start : start + length] = [True] * length
    for term, used in zip(plain, taken, strict=True):
        if not used and _HAS_UNSPACED.match(term):
            names += _unspaced_names(term, is_name)
    return list(dict.fromkeys(names))


def _unspaced_names(text: str, is_name: Callable[[str], bool]) -> Iterator[str]:
    """Yield the names in a text without spaces, the longest name at each position."""
    start = 0
    while start < len(text) - 1:
        ends = range(min(len(text), start + _MAX_UNSPACED_LENGTH), start + 1, -1)
        end = next((end for end in ends if is_name(text[start:end])), None)
        if end is None:
            start += 1
        else:
            yield text[start:end]
            start = end


@dataclass(frozen=True, slots=True)
class _Run:
    """Adjacent capitalized words, with the lowercase words between them.

    Attributes:
        words: The words.
        plain: The normalized words.
        breaks: Positions of words before which a name ends, unless the name is a title.
        begins: Whether the first word begins a sentence.
    """

    words: list[str]
    plain: list[str]
    breaks: frozenset[int]
    begins: bool


@dataclass(frozen=True, slots=True)
class ParsedText:
    """The possible names of a text. Other texts decide which of them are names.

    Attributes:
        runs: Runs of capitalized words.
        lower: The words without a capital letter.
        quoted: Texts in quotation marks of scripts without spaces.
        unspaced: The normalized text if it has a script without spaces, else an empty string.
    """

    runs: list[_Run]
    lower: list[str]
    quoted: list[str]
    unspaced: str

    @property
    def upper(self) -> Iterator[str]:
        """The capitalized words that do not begin a sentence."""
        for run in self.runs:
            remaining = zip(run.words[run.begins :], run.plain[run.begins :], strict=True)
            yield from (plain for word, plain in remaining if word[0].isupper())

    @property
    def first(self) -> set[str]:
        """The capitalized words that begin a sentence."""
        return {run.plain[0] for run in self.runs if run.begins}

    @property
    def inner(self) -> set[str]:
        """The words after the beginning of a sentence in which a name may begin or end."""
        return {
            plain
            for run in self.runs
            for word, plain in zip(run.words[run.begins :], run.plain[run.begins :], strict=True)
            if not word[0].islower()
        }

    def names(self, small: Callable[[str], bool]) -> dict[str, str]:
        """Return the names of the text in their first spelling, by key.

        Args:
            small: A function from a word to whether other texts write it in lowercase. Such a
                word at the beginning of a sentence is not part of a name.
        """
        names: dict[str, str] = {}
        for name in (*self.quoted, *(name for run in self.runs for name in _names(run, small))):
            key = name_key(name)
            if len(key) > 1 and not key.isdigit():
                names.setdefault(key, _POSSESSIVE.sub("", name))
        return names

    def known(self, is_name: Callable[[str], bool], small: Callable[[str], bool]) -> Iterator[str]:
        """Yield the keys of existing names in runs, including names inside longer names."""
        for run in self.runs:
            first, words = _first(run, small), run.plain
            ends = [i for i, word in enumerate(run.words) if i >= first and not word[0].islower()]
            for number, start in enumerate(ends):
                if words[start] in ARTICLES:
                    continue
                for end in ends[number : number + _MAX_LENGTH]:
                    if is_name(key := " ".join(words[start : end + 1])):
                        yield key


def parse(body: str) -> ParsedText:
    """Return the possible names of a text, and its lowercase words."""
    text = _folded(body)
    unspaced = is_unspaced(text)
    return ParsedText(
        [_run(match) for match in _RUN.finditer(text)],
        _LOWER.findall(text),
        ["".join(parts) for parts in _QUOTED.findall(text)],
        " ".join(_TERM.findall(text.casefold())) if unspaced else "",
    )


def is_unspaced(text: str) -> bool:
    """Return whether a text contains a script without spaces."""
    return _HAS_UNSPACED.search(text) is not None


def _run(match: re.Match[str]) -> _Run:
    text, start = match.group(), match.start()
    matches = list(_WORD.finditer(text))
    words = [word.group() for word in matches]
    pairs = enumerate(pairwise(matches), 1)
    breaks = frozenset(at for at, (a, b) in pairs if "," in text[a.end() : b.start()])
    before = match.string[max(0, start - 3) : start]
    starts = not start or _BEFORE_A_SENTENCE.search(before) is not None
    return _Run(words, [*map(_plain, words)], breaks, starts)


def _first(run: _Run, small: Callable[[str], bool]) -> int:
    """Return the position of the first possible name, after a word that only begins a sentence."""
    return int(run.begins and small(run.plain[0]))


def _names(run: _Run, small: Callable[[str], bool]) -> Iterator[str]:
    """Return the longest names of a run."""
    name: list[str] = []
    loose, joining = _LOOSE.split("|"), _JOINING.split("|")
    for at, word in enumerate(run.words[(first := _first(run, small)) :], first):
        if at in run.breaks or word in loose:
            yield " ".join(_ended(name, joining))
            name = []
        if word not in loose and (name or word[0].isupper()):
            name.append(word)
    yield " ".join(_ended(name, joining))


def _ended(words: list[str], joining: Sequence[str]) -> list[str]:
    while words and words[-1] in joining:
        words = words[:-1]
    return words


def _folded(text: str) -> str:
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFKD", text)))


def _plain(word: str) -> str:
    word = word.casefold()
    if "'" not in word and "’" not in word:
        return word
    return _POSSESSIVE.sub("", word).replace("'", "").replace("’", "")
