"""Find words in a text, and runs of scripts without spaces."""

from __future__ import annotations

import re
import unicodedata

from ...nodegraph.splitters.chunking import UNSPACED
from .languages import script_of

# Begins with a plain set of characters, so that prose is passed over quickly.
CAMEL = re.compile(r"[A-Z](?:(?<=[a-z][A-Z])|(?<=[A-Z][A-Z])(?=[a-z]))")

_CHARACTER = rf"[^\W{UNSPACED}]"

_IDENTIFIER = re.compile(
    rf"(?<!{_CHARACTER}){_CHARACTER}*?"
    rf"(?:[a-z](?=[A-Z])|[A-Z](?=[A-Z][a-z])|[^\W_{UNSPACED}]_+(?=[^\W_{UNSPACED}]))"
    rf"{_CHARACTER}*"
)

# A plural of capitals, capitals that end before a word, a word, a number.
_PART = re.compile(r"[A-Z]+s(?![a-z])|[A-Z]+(?![a-z])|[A-Z]?(?:(?![A-Z])[^\W\d_])+|\d+")


# McDonald, YouTube, PlayStation: a class in a program, and a name that is one word in prose.
_NAME = re.compile(r"[A-Z][a-z]+[A-Z][a-z]+")

# What programs have, and prose hardly ever.
_CODE = re.compile(r"[{}=]|\(\)|[^\W_]_[^\W_]|::|->")


def with_parts(text: str) -> str:
    """Return a text in which every name of several parts is followed by these.

    The name itself loses its underscores, so that the ways to write one name are one word. Two
    capitalised words in one, as in ``PlayStation``, are taken apart in programs only. Only texts
    that have an underscore or ``CAMEL`` have names of several parts. The time it takes grows with
    the text's length.

    Example:
        >>> with_parts("call getUserName or run_target")
        'call getUserName get User Name or runtarget run target'
    """
    is_code = _CODE.search(text) is not None

    def expanded(match: re.Match[str]) -> str:
        name = match[0]
        if not is_code and _NAME.fullmatch(name):
            return name
        full = name.replace("_", "")
        expanded = " ".join([full, *(part for part in _parts(name) if part != full)])
        # A sign may stand on the underscore beside, which keeps the words apart.
        return f"{'_' * (name[0] == '_')}{expanded}{'_' * (name[-1] == '_')}"

    return _IDENTIFIER.sub(expanded, text)


def _parts(name: str) -> list[str]:
    parts: list[str] = []
    for word in name.split("_"):
        subwords = _PART.findall(word)
        if len(subwords) > 1:  # the letter of xAxis and iPhone says nothing
            stored = [part for part in subwords if len(part) > 1 or part.isdigit()]
            # Asked for alone, a word is taken apart by capitals only; some are left out.
            is_part = "_" in name and (len(stored) < len(subwords) or not CAMEL.search(word))
            subwords = [*stored, word] if is_part else stored
        parts += subwords if len(subwords) > 1 or "_" in name else []
    return parts


Segments = list[list[str] | str]
"""Words that follow each other, and runs of a script without spaces, in the order of a text."""

# Accents, and the vowel signs and points of words in Cyrillic, Hebrew, Arabic, Thaana and the
# scripts of India and Tibet, which regular expressions don't take for parts of a word.
SIGNS = "\u0300-\u036f\u0483-\u0489\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed"

SIGNS += "\u07a6-\u07b0\u0900-\u0963\u0966-\u0dff\u0f18-\u0f84"

# Alphabets without spaces: Thai, Lao, Myanmar, Khmer.
_ALPHABETS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"

_ALPHABET_CODES = (*range(0xE00, 0xF00), *range(0x1000, 0x10A0), *range(0x1780, 0x1800))

_AM = "\u0e33\u0eb3"  # vowels of Thai and Lao, of which half stands above

_STACKED = _AM + "".join(
    c for c in map(chr, _ALPHABET_CODES) if unicodedata.category(c) in ("Mn", "Mc")
)

# A letter of these with its signs, and with the letters that are stacked below it.
_CLUSTERS = re.compile(f".(?:[\u17d2\u1039].|[{_STACKED}])*")

_INVISIBLE = "\u00ad\u200d\u2060\ufeff"  # soft hyphens, joiners

_RUNS = re.compile(rf"[{UNSPACED}]+|[^\W_{UNSPACED}]+(?:[{SIGNS}]+[^\W_{UNSPACED}]*)*(?:\+\+|#)?")

# The same in a text that is not normalized yet, where words have soft hyphens.
_RAW_RUNS = re.compile(
    rf"[{UNSPACED}]+|[^\W_{UNSPACED}]+(?:[{SIGNS}{_INVISIBLE}]+[^\W_{UNSPACED}]*)*(?:\+\+|#)?"
)

_ALPHABET_RUNS = re.compile(rf"[{_ALPHABETS}]+|[^{_ALPHABETS}]+")

_UNSPACED = re.compile(f"[{UNSPACED}]")

_ASCII_WORDS = re.compile(r"[a-z0-9]+(?:\+\+|#)?")

CHINESE = "\u3000"
"""Before the first letter of Chinese, Japanese and Korean, behind the alphabets without spaces."""

# A vowel of Thai and Lao is one letter, though compatibility forms take it apart.
_REPLACED = [
    *((character, "") for character in _INVISIBLE),
    ("\u0e4d\u0e32", _AM[0]),
    ("\u0ecd\u0eb2", _AM[1]),
]

# The wide punctuation that most Chinese texts have, and hardly anything else to compose. None of
# it, in either form, composes with what may follow it.
_WIDE_PUNCTUATION = {
    sign: unicodedata.normalize("NFKC", sign) for sign in "，！？：；（）％～－／．\u3000\xa0…"
}

_POSSESSIVE = re.compile(r"['’](?<=\w['’])[sS]\b")

_THAI = "\u0e00"  # the first of all scripts without spaces


def normalized(text: str) -> str:
    """Return a text in lower case and composed form, with the parts of names in it.

    Possessive endings are left out: ``Tom's`` is ``Tom``.
    """
    if not text.isascii():
        for before, after in _WIDE_PUNCTUATION.items():
            if before in text:
                text = text.replace(before, after)
        if not unicodedata.is_normalized("NFKC", text):
            # In two steps: NFKC in one takes five times as long.
            text = unicodedata.normalize("NFC", unicodedata.normalize("NFKD", text))
        for before, after in _REPLACED:
            if before in text:
                text = text.replace(before, after)
    if "_" in text or CAMEL.search(text) is not None:
        text = with_parts(text)
    text = text.casefold()
    if not text.isascii():
        # A capital I with a dot is two letters in lower case.
        text = text.replace("i\u0307", "i")
        if not unicodedata.is_normalized("NFC", text):
            text = unicodedata.normalize("NFC", text)
    return _POSSESSIVE.sub("", text) if "'" in text or "’" in text else text


def segments(normal: str) -> Segments:
    """Return the words and runs of a normalized text."""
    if normal.isascii():
        only = ascii_words(normal)
        return [only] if only else []
    result: Segments = []
    words: list[str] = []
    for run in _RUNS.findall(normal):
        if run < _THAI or not ("\u4e00" <= run < "\ua000" or _UNSPACED.match(run)):
            words.append(run)
            continue
        if words:
            result.append(words)
            words = []
        if run < CHINESE:
            result += _ALPHABET_RUNS.findall(run)
        else:
            result.append(run)
    if words:
        result.append(words)
    return result


def run_spans(text: str) -> list[tuple[int, int]]:
    """Return where a text has words and runs, begin and end."""
    return [match.span() for match in _RAW_RUNS.finditer(text)]


def ascii_words(normal: str) -> list[str]:
    """Return the words of a normalized text that is ASCII; quicker than ``segments``."""
    return _ASCII_WORDS.findall(normal)


def word_script(word: str) -> str:
    """Return the script of a word's first letter."""
    return "latin" if word[0].isascii() else script_of(word[0])


def by_script(segments: Segments) -> dict[str, list[str]]:
    """Return all words by their script."""
    words: list[str] = []
    for segment in segments:
        if isinstance(segment, list):
            words = words + segment if words else segment
    initials = {word[0] for word in words}
    if "".join(initials).isascii():  # the quick way of most queries
        return {"latin": words} if words else {}
    scripts = {letter: word_script(letter) for letter in initials}
    if len(set(scripts.values())) < 2:
        return dict.fromkeys(scripts.values(), words)
    result: dict[str, list[str]] = {}
    for word in words:
        result.setdefault(scripts[word[0]], []).append(word)
    return result


def run_length(run: str) -> int:
    """Return how many letters a run of a script without spaces has, each with its signs.

    Example:
        >>> run_length("绿茶"), run_length("น้ำชา")
        (2, 3)
    """
    return len(_CLUSTERS.findall(run)) if run < CHINESE else len(run)


def sequences(run: str, is_query: bool) -> list[str]:
    """Return sequences of one, two and three letters of an alphabet without spaces.

    A letter comes with its signs, and with what is stacked below it.

    Args:
        run: The run.
        is_query: Whether the longest sequences are enough.
    """
    letters = _CLUSTERS.findall(run)
    sizes = [min(3, len(letters))] if is_query else range(1, min(3, len(letters)) + 1)
    return [
        "".join(letters[at : at + size]) for size in sizes for at in range(len(letters) - size + 1)
    ]
