"""Find possible names in texts without a model, and normalize names for comparison."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from .lazy_names import lazy_pattern
from .node import Node
from .splitters.chunking import UNSPACED

MAX_TITLE = 100
"""The maximum number of characters in a first line that is recognized as a title."""

_SENTENCE_END = re.compile(r"[.!?,;:。！？，；：、]$")

# Python's regular expressions have no class for capital letters. Accents are removed first.
_UPPER = "".join(
    re.escape(chr(code)) for code in (*range(0x590), *range(0x1E00, 0x2000)) if chr(code).isupper()
)

_LETTER = rf"[^\W_{UNSPACED}]"

_CAPITAL = rf"[{_UPPER}]{_LETTER}*(?:['’]{_LETTER}+)*"

# Lowercase words that can occur inside names, and lowercase words that occur only in titles.
_JOINING = "of|the|de|del|della|di|da|du|des|la|le|von|van|der|den|al|el|bin|ibn"

_LOOSE = "and|in|on|at|to|for|with|from|a|an|by|or|as"

_RUN = lazy_pattern(
    rf"(?<!{_LETTER}){_CAPITAL}(?:(?:[ \-–]|, |(?<![^\W\d_][^\W\d_])\. ?)"
    rf"(?:(?:{_JOINING}|{_LOOSE}) ){{0,2}}(?:{_CAPITAL}|\d+(?!{_LETTER})))*"
)

_SEPARATORS = str.maketrans("-–.", "   ")  # separators between the words of a run

_LOWER = lazy_pattern(rf"(?<!{_LETTER})[^\W\d_{_UPPER}{UNSPACED}]+")

_TERM = lazy_pattern(rf"[{UNSPACED}]+|{_LETTER}+(?:['’]{_LETTER}+)*")

_HAS_UNSPACED = lazy_pattern(f"[{UNSPACED}]")

# Quotation marks around fewer than three characters usually indicate emphasis.
_QUOTED = lazy_pattern(
    r"《([^《》\n]{1,40})》|〈([^〈〉\n]{1,40})〉|「([^「」\n]{3,20})」|『([^『』\n]{3,20})』"
    r"|“([^“”\n]{3,20})”"
)

_REMARK = re.compile(r"[(（][^()（）]*[)）]$")

_BEFORE_A_SENTENCE = re.compile(r"(?:^|[.!?:;\n。！？：；\"“”‘(（|*#-])\s*$")

_ACCENTS = re.compile("[\u0300-\u036f]")

_POSSESSIVE = re.compile("['’]s$")

ARTICLES = ("the", "a", "an")

LOOSE_WORDS = frozenset(_LOOSE.split("|"))
"""Lowercase words that can occur inside a title, but not inside a name."""

JOINING_WORDS = frozenset(_JOINING.split("|"))
"""Lowercase words that can occur inside a name."""


def name_key(name: str) -> str:
    """Normalize a name, so that different spellings of the same name can be compared.

    Example:
        >>> name_key("The Café's (play)"), name_key("《红楼梦》")
        ('cafe', '红楼梦')
    """
    words = plain_words(words_of(_without_remark(name)))
    while len(words) > 1 and words[0] in ARTICLES:
        del words[0]
    return " ".join(words)


def _without_remark(name: str) -> str:
    """Remove a remark in parentheses from the end of a name."""
    stripped = name.rstrip()
    # A regular expression would try each parenthesis as the start.
    start = max(stripped.rfind("("), stripped.rfind("（"))
    if start < 0 or not _REMARK.match(stripped, start):
        return name
    return stripped[:start].rstrip()


class Mentions(NamedTuple):
    """The possible names in a passage, in a form that can be stored as JSON.

    Which of them are names is determined later by comparing passages.

    Attributes:
        title: The title of the passage, which may be empty.
        names: Phrases that are certainly names, such as phrases in quotation marks, keyed by their
            normalized form.
        title_runs: Sequences of capitalized words in the title, one per line.
        runs: Sequences of capitalized words in the text, one per line.
        lower: The lowercase words of the text, separated by spaces.
        unspaced: The normalized title and text if they contain a script without spaces between
            words, such as Chinese.
    """

    title: str
    names: Mapping[str, str]
    title_runs: str = ""
    runs: str = ""
    lower: str = ""
    unspaced: str = ""


def find_mentions(title: str, body: str) -> Mentions:
    """Find the possible names and the lowercase words in a passage.

    Args:
        title: The title of the passage, which may be empty.
        body: The text without the title.
    """
    folded_title = _folded(title)
    folded_body = _folded(body)
    names: dict[str, str] = {}
    for parts in _QUOTED.findall(folded_body):
        name = "".join(parts)
        if is_name_key(key := name_key(name)):
            names.setdefault(key, without_possessive(name))
    unspaced: list[str] = []
    for text in (folded_title, folded_body):
        if is_unspaced(text):
            unspaced += _TERM.findall(text.casefold())
    return Mentions(
        title,
        names,
        title_runs=_runs(folded_title),
        runs=_runs(folded_body),
        lower=" ".join(_LOWER.findall(folded_body)),
        unspaced=" ".join(unspaced),
    )


def _runs(text: str) -> str:
    """Return all sequences of capitalized words in a text, one per line."""
    return "\n".join([_compact(run) for run in _RUN.finditer(text)])


def words_of(text: str) -> list[str]:
    """Return the words of a text without accents.

    In scripts without spaces, such as Chinese, a whole sequence of characters counts as one word.
    """
    words: list[str] = _TERM.findall(_folded(text))
    return words


def is_name_key(key: str) -> bool:
    """Return whether a normalized name has at least two characters and is not a number."""
    return len(key) > 1 and not key.isdigit()


def is_unspaced(text: str) -> bool:
    """Return whether a text contains a script without spaces between words, such as Chinese."""
    return not text.isascii() and _HAS_UNSPACED.search(text) is not None


def _compact(match: re.Match[str]) -> str:
    words = " ".join(match.group().translate(_SEPARATORS).split())
    before = match.string[max(0, match.start() - 3) : match.start()]
    begins = not match.start() or _BEFORE_A_SENTENCE.search(before) is not None
    return f".{words}" if begins else words


def _folded(text: str) -> str:
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFKD", text)))


def plain_words(words: Iterable[str]) -> list[str]:
    """Convert words to lowercase, and remove possessive endings and apostrophes."""
    return [_plain(word) for word in words]


def _plain(word: str) -> str:
    word = word.casefold()
    if "'" not in word and "’" not in word:
        return word
    return _POSSESSIVE.sub("", word).replace("'", "").replace("’", "")


def without_possessive(name: str) -> str:
    """Remove a possessive ``'s`` from the end of a name."""
    return _POSSESSIVE.sub("", name)


def split_title(passage: Node) -> tuple[str, str]:
    """Split a passage into its title and the remaining text.

    The title is taken from the metadata, or from the first line if it is short and does not look
    like a sentence. If neither exists, the title is empty.
    """
    title = passage.metadata.get("title")
    body = passage.text
    if isinstance(title, str):
        return title, body
    head, _, remaining = body.partition("\n")
    head = head.strip().lstrip("#").strip()
    is_wrapped = _SENTENCE_END.search(head) or remaining.lstrip()[:1].islower()
    if not head or is_wrapped or not remaining.strip() or len(head) > MAX_TITLE:
        return "", body
    return head, remaining
