"""Analyse many texts at once: the same terms as one by one, in a fraction of the time.

English words and Chinese, Japanese and Korean characters, which most texts consist of, are found
in all texts together and become terms as arrays of numbers. Texts that have letters of other
scripts, or whose language is not English, are analysed one by one.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...nodegraph.splitters.tokens import UNSPACED
from .languages import ENGLISH, SAMPLE, are_english, english_evidence, folded, script_of, stems
from .segments import (
    CHINESE,
    SIGNS,
    composed,
    has_parts,
    lower,
    normalized,
    plain_marks,
    with_parts,
    without_invisible,
)

MOST_TEXTS = 1 << 16
"""Texts that may be inverted at a time."""

Ints = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class InvertedTexts:
    """Hold the terms of some texts, each with the texts that have it.

    Attributes:
        terms: Each term once.
        sizes: In how many texts each is, (terms,).
        rows: The numbers of these texts, ascending, term after term.
        counts: How often each has the term.
        lengths: How many terms each text has, (texts,).
    """

    terms: Sequence[str]
    sizes: Ints
    rows: npt.NDArray[np.uint16]
    counts: npt.NDArray[np.unsignedinteger[Any]]
    lengths: Ints


def invert(texts: Sequence[str], analyze: Callable[[str], Iterable[str]]) -> InvertedTexts:
    """Analyse texts one by one.

    Args:
        texts: At most ``MOST_TEXTS``.
        analyze: Returns the terms of a text, each as often as it occurs.

    Example:
        >>> inverted = invert(["tea", "green tea"], str.split)
        >>> inverted.terms, inverted.sizes.tolist(), inverted.rows.tolist()
        (['tea', 'green'], [2, 1], [0, 1, 1])
    """
    numbers = _Numbers()
    tokens, lengths = array("q"), []
    for text in texts:
        before = len(tokens)
        tokens.extend(map(numbers.__getitem__, analyze(text)))
        lengths.append(len(tokens) - before)
    keys = np.frombuffer(tokens, np.int64) << 16
    keys |= np.repeat(np.arange(len(lengths)), lengths)
    _, sizes, rows, counts = count_keys(keys)
    return InvertedTexts(list(numbers), sizes, rows, counts, np.array(lengths, np.int32))


class _Numbers(dict[str, int]):
    """Number terms in the order in which they are seen."""

    def __missing__(self, term: str) -> int:
        number = self[term] = len(self)
        return number


def count_keys(
    keys: npt.NDArray[np.int64],
) -> tuple[
    npt.NDArray[np.int64], Ints, npt.NDArray[np.uint16], npt.NDArray[np.unsignedinteger[Any]]
]:
    """Sort and count tokens: the number of a term times 65,536, plus that of a text, each.

    Returns:
        The numbers of the terms, ascending; in how many texts each is; these texts; how often
        each has the term.
    """
    keys = np.sort(keys)
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    counts = np.diff(starts, append=len(keys))
    pairs = keys[starts]
    rows = (pairs & 0xFFFF).astype(np.uint16)
    pairs >>= 16
    firsts = np.flatnonzero(np.diff(pairs, prepend=-1))
    sizes = np.diff(firsts, append=len(pairs)).astype(np.int32)
    return pairs[firsts], sizes, rows, counts.astype(np.min_scalar_type(counts.max(initial=0)))


SEPARATOR = "\0"
"""Stands between texts that are joined."""

_JOINT = f" {SEPARATOR} "

_ASCII_WORDS = re.compile(rf"[a-z0-9]+(?:\+\+|#)?|{SEPARATOR}")

_ASCII_POSSESSIVE = re.compile(r"'(?<=\w')s\b", re.ASCII)

_SIGNED_WORD = re.compile(r"[a-z0-9](?:\+\+|#)")

# Keeps words and separators, and makes spaces of all else.
_ONLY_WORDS = bytes(code if chr(code).isalnum() or not code else 32 for code in range(128))

_ONLY_WORDS += bytes(128)  # which ASCII has not


def normalized_together(texts: Sequence[str]) -> str:
    """Return normalized texts, joined by ``SEPARATOR``, which is a space within them."""
    if any(SEPARATOR in text for text in texts):
        texts = [text.replace(SEPARATOR, " ") for text in texts]
    joined = plain_marks(SEPARATOR.join(texts))
    if not (joined.isascii() or unicodedata.is_normalized("NFKC", joined)):
        joined = SEPARATOR.join(map(composed, joined.split(SEPARATOR)))
    joined = without_invisible(joined)
    if has_parts(joined):
        parts = (with_parts(s) if has_parts(s) else s for s in joined.split(SEPARATOR))
        joined = SEPARATOR.join(parts)
    return lower(joined)


def ascii_words_together(texts: Sequence[str]) -> list[str]:
    """Return the words of ASCII texts as ``ascii_words`` finds them once these are normalized,
    with ``SEPARATOR`` between those of one text and the next.
    """
    joined = _JOINT.join(texts)
    if joined.count(SEPARATOR) >= len(texts):
        texts = [text.replace(SEPARATOR, " ") for text in texts]
        joined = _JOINT.join(texts)
    with_names = _texts_with_parts(joined)
    if with_names:
        texts = list(texts)
        for at in with_names:
            texts[at] = with_parts(texts[at])
        joined = _JOINT.join(texts)
    joined = joined.lower()
    if "'" in joined:
        joined = _ASCII_POSSESSIVE.sub("", joined)
    if _SIGNED_WORD.search(joined) is None:
        return joined.encode().translate(_ONLY_WORDS).decode().split()
    return _ASCII_WORDS.findall(joined)


def _texts_with_parts(joined: str) -> list[int]:
    """Return which of joined ASCII texts have names of several parts, ascending."""
    data = np.frombuffer(joined.encode(), np.uint8)
    upper, lower = data - np.uint8(65) < 26, data - np.uint8(97) < 26  # below 0 comes 255
    matches = np.concatenate(
        [
            np.flatnonzero(data == ord("_")),
            np.flatnonzero(lower[:-1] & upper[1:]),
            np.flatnonzero(upper[:-2] & upper[1:-1] & lower[2:]),
        ]
    )
    if not len(matches):
        return []
    texts: list[int] = np.unique(np.searchsorted(np.flatnonzero(data == 0), matches)).tolist()
    return texts


Analyze = Callable[[str], Collection[str]]

_Longs = npt.NDArray[np.int64]

_ROW = 0xFFFF  # the bits of a key that number the text

_LATIN_WORDS = re.compile(rf"[^\W_{UNSPACED}]+(?:\+\+|#)?|{SEPARATOR}")

# What characters of a normalized text are: 0 until one is met. Letters are those that are not
# ASCII; what is none of these takes its text out.
_BETWEEN, _OTHER, _CHARACTER, _LATIN, _HARD = 1, 2, 3, 4, 5

_KINDS = np.zeros(0x110000, np.uint8)

_IS_CHARACTER = re.compile(f"[{UNSPACED}]")

_CHARACTERS = re.compile(f"[{UNSPACED}]{{1,2}}")

_IS_WORD = re.compile(rf"[^\W_]|[{SIGNS}]")

_REMEMBERED = 200_000  # words from which a thread begins anew

_local = threading.local()


def invert_together(
    texts: Sequence[str], stem: bool, all_english: bool, analyze: Analyze
) -> InvertedTexts:
    """Return the terms of texts.

    Args:
        texts: At most ``MOST_TEXTS``.
        stem: Whether words are reduced to their stem.
        all_english: Whether all words of Latin letters are English.
        analyze: Returns the terms of a normalized text, for those that can't be taken together.
    """
    words = _known_words(stem)
    plain = np.fromiter(map(str.isascii, texts), np.bool_, len(texts))
    keys: list[_Longs] = [np.zeros(0, np.int64)]
    for keys_of, rows in ((_ascii_keys, np.flatnonzero(plain)), (_keys, np.flatnonzero(~plain))):
        if len(rows):
            batch = [texts[row] for row in rows.tolist()]
            of_some = keys_of(batch, words, all_english, analyze)
            at = of_some & _ROW
            of_some += rows[at] - at
            keys.append(of_some)
    tokens = np.concatenate(keys)
    lengths = np.bincount(tokens & _ROW, minlength=len(texts)).astype(np.int32)
    terms, sizes, rows_of_terms, counts = count_keys(tokens)
    return InvertedTexts(words.names(terms.tolist()), sizes, rows_of_terms, counts, lengths)


def _ascii_keys(
    texts: Sequence[str], words: _KnownWords, all_english: bool, analyze: Analyze
) -> _Longs:
    """Return the keys of the terms of ASCII texts."""
    matches = ascii_words_together(texts)
    keys, foreign = _word_keys(words, matches, len(texts), all_english, ascii=True)
    alone = ((row, normalized(texts[row])) for row in np.flatnonzero(foreign).tolist())
    return np.concatenate([keys, *_keys_one_by_one(words, alone, analyze)])


def _keys(texts: Sequence[str], words: _KnownWords, all_english: bool, analyze: Analyze) -> _Longs:
    """Return the keys of the terms of texts that are not ASCII."""
    joined = normalized_together(texts)
    normal = joined.split(SEPARATOR)
    codes, kinds, rows = _characters(joined)
    alone = _marked(rows[kinds == _HARD], len(texts))
    latin = _marked(rows[kinds == _LATIN], len(texts))
    keys: list[_Longs] = []
    for batch, pattern in ((~latin & ~alone, _ASCII_WORDS), (latin & ~alone, _LATIN_WORDS)):
        if batch.any():
            matches = pattern.findall(SEPARATOR.join(map(_if, batch.tolist(), normal)))
            ascii = pattern is _ASCII_WORDS
            of_words, foreign = _word_keys(words, matches, len(texts), all_english, ascii)
            alone |= foreign & batch
            keys.append(of_words)
    characters = np.flatnonzero(kinds == _CHARACTER)
    keys += _character_keys(codes, rows, characters[~alone[rows[characters]]])
    one_by_one = ((row, normal[row]) for row in np.flatnonzero(alone).tolist())
    return np.concatenate([*keys, *_keys_one_by_one(words, one_by_one, analyze)])


def _marked(rows: npt.NDArray[np.int32], size: int) -> npt.NDArray[np.bool_]:
    marked = np.zeros(size, np.bool_)
    marked[rows] = True
    return marked


def _if(wanted: bool, text: str) -> str:
    return text if wanted else ""


def _word_keys(
    words: _KnownWords, found: list[str], size: int, all_english: bool, ascii: bool
) -> tuple[_Longs, npt.NDArray[np.bool_]]:
    """Return the keys of English words.

    Args:
        words: What is known of words.
        found: The words of texts, with ``SEPARATOR`` between those of one and the next.
        size: How many texts these are.
        all_english: Whether all words are English.
        ascii: Whether all words are ASCII.

    Returns:
        The keys, and which of the texts may be of another language, which have none.
    """
    numbers, rows = words.number(found)
    foreign = np.zeros(size, np.bool_)
    if not all_english:
        foreign = ~are_english(*_evidence(words, numbers, rows, size), ascii=ascii)
        english = ~foreign[rows]
        numbers, rows = numbers[english], rows[english]
    return words.stem_numbers(numbers) << 16 | rows, foreign


def _keys_one_by_one(
    words: _KnownWords, texts: Iterable[tuple[int, str]], analyze: Analyze
) -> Iterator[_Longs]:
    """Yield the keys of texts, each with its number."""
    terms = _TermKeys(words)
    for row, text in texts:
        keys = array("q", map(terms.__getitem__, analyze(text)))
        yield np.frombuffer(keys, np.int64) | row


# The number of a term is that of a word's stem, with ``_WORD`` added, or of one character or two:
# their codes, 21 bits each, the second 0 where there is one.

_WORD = 1 << 46


def _characters(
    joined: str,
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint8], npt.NDArray[np.int32]]:
    """Return the codes of characters, what they are, and in which text they stand."""
    codes = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), "<u4")
    kinds = _KINDS[codes]
    if not kinds.all():
        for code in np.unique(codes[kinds == 0]).tolist():
            _KINDS[code] = _kind(chr(code))
        kinds = _KINDS[codes]
    return codes, kinds, np.cumsum(kinds == _BETWEEN, dtype=np.int32)


def _kind(character: str) -> int:
    if character == SEPARATOR:
        return _BETWEEN
    if _IS_CHARACTER.match(character):
        return _CHARACTER if character >= CHINESE else _HARD
    if character.isascii() or not _IS_WORD.match(character):
        return _OTHER
    return _LATIN if script_of(character) == "latin" else _HARD


def _character_keys(
    codes: npt.NDArray[np.uint32], rows: npt.NDArray[np.int32], at: _Longs
) -> list[_Longs]:
    """Return the keys of characters at some places, and of every two that follow each other."""
    singles = codes[at].astype(np.int64) << 37
    singles |= rows[at]
    first = np.flatnonzero(np.diff(at) == 1)
    pairs = singles[first]
    pairs |= codes[at[first + 1]].astype(np.int64) << 16
    return [singles, pairs]


def _evidence(
    words: _KnownWords, numbers: npt.NDArray[np.int32], rows: npt.NDArray[np.int32], size: int
) -> list[_Longs]:
    """Return how many of the first words of so many texts are evidence, and how many they are."""
    counts = np.bincount(rows, minlength=size)
    evidence = np.array(words.evidence, np.uint8)[numbers]
    if counts.max(initial=0) > SAMPLE:
        sampled = np.arange(len(rows)) - (np.cumsum(counts) - counts)[rows] < SAMPLE
        rows, evidence = rows[sampled], evidence[sampled]
        counts = np.minimum(counts, SAMPLE)
    return [*(np.bincount(rows[(evidence & b) > 0], minlength=size) for b in (1, 2, 4)), counts]


class _KnownWords(dict[str, int]):
    """Number words, and note of each its stem and how it tells English from other languages.

    Attributes:
        evidence: Of each word, see ``english_evidence``.
    """

    def __init__(self, stem: bool) -> None:
        super().__init__({SEPARATOR: 0})
        self._stem = stem
        self.evidence = array("B", [0])
        self._stem_of = array("q", [0])
        self._stems: list[str] = []
        self._stem_numbers: dict[str, int] = {}

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self)
        self.evidence.append(english_evidence(word))
        self._stem_of.append(self.stem_number(self._stem_word(word)))
        return number

    def stem_number(self, stem: str) -> int:
        """Return the number of a stem, or of another term that is no characters."""
        number = self._stem_numbers.get(stem)
        if number is None:
            number = self._stem_numbers[stem] = len(self._stems) + _WORD
            self._stems.append(stem)
        return number

    def _stem_word(self, word: str) -> str:
        return (stems if self._stem else folded)([word], ENGLISH)[0]

    def number(self, words: list[str]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Return the numbers of the words of joined texts, and in which text each is."""
        numbers = np.array(array("i", map(self.__getitem__, words)), np.int32)
        between = numbers == 0
        rows = np.cumsum(between, dtype=np.int32)
        return numbers[~between], rows[~between]

    def stem_numbers(self, numbers: npt.NDArray[np.int32]) -> _Longs:
        """Return the numbers of the stems of words."""
        return np.array(self._stem_of, np.int64)[numbers]

    def names(self, terms: Sequence[int]) -> list[str]:
        """Return terms by their numbers."""
        stems, last = self._stems, 0x1FFFFF
        return [
            stems[term - _WORD]
            if term >= _WORD
            else chr(term >> 21) + chr(term & last)
            if term & last
            else chr(term >> 21)
            for term in terms
        ]


class _TermKeys(dict[str, int]):
    """Map terms to their keys in the text 0."""

    def __init__(self, words: _KnownWords) -> None:
        super().__init__()
        self._words = words

    def __missing__(self, term: str) -> int:
        if _CHARACTERS.fullmatch(term) and term[0] >= CHINESE <= term[-1]:
            number = ord(term[0]) << 21 | (ord(term[1]) if term[1:] else 0)
        else:
            number = self._words.stem_number(term)
        key = self[term] = number << 16
        return key


def _known_words(stem: bool) -> _KnownWords:
    """Return this thread's words."""
    existing: dict[bool, _KnownWords] | None = getattr(_local, "known", None)
    if existing is None:
        existing = _local.known = {}
    words = existing.get(stem)
    if words is None or len(words) > _REMEMBERED:
        words = existing[stem] = _KnownWords(stem)
    return words
