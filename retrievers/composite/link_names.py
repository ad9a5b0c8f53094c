"""Find names in questions and in the capitalized words of passages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from ...nodegraph.names import (
    ARTICLES,
    JOINING_WORDS,
    LOOSE_WORDS,
    is_name_key,
    is_unspaced,
    plain_words,
    without_possessive,
    words_of,
)

_MAX_LENGTH = 8  # the maximum number of words in a name

_MAX_UNSPACED_LENGTH = 20  # the maximum number of characters of a name in a script without spaces


def has_name(text: str, name: str) -> bool:
    """Return whether a text contains the words of a name in sequence, regardless of their spelling.

    Args:
        text: The text.
        name: The key of the name (see ``name_key``), in a script that separates words by spaces.

    Example:
        >>> [has_name(text, "green tea") for text in ("He drinks green tea.", "Tea, green tees")]
        [True, False]
    """
    words = " ".join(plain_words(words_of(text)))
    return f" {name} " in f" {words} "


def is_written_as_name(text: str, name: str) -> bool:
    """Return whether a text contains a name that is written with capital letters.

    The last word of the name can also be a number. The first word of the text is ignored, since it
    is always capitalized. In scripts without spaces, the result is True.

    Args:
        text: The text.
        name: The key of the name. See ``name_key``.

    Example:
        >>> [is_written_as_name(text, "green tea") for text in ("He drinks Green Tea", "Green tea")]
        [True, False]
    """
    if is_unspaced(name):
        return True
    terms = words_of(text)
    plain = plain_words(terms)
    words = name.split(" ")
    for start in range(1, len(plain)):
        end = start + len(words)
        if plain[start:end] != words:
            continue
        if terms[start][0].isupper() and not terms[end - 1][0].islower():
            return True
    return False


def names_in(text: str, is_name: Callable[[str], bool]) -> list[str]:
    """Return the keys of existing names in a text, longest names first.

    Names do not overlap. A single word counts as a name only if it is capitalized and is not the
    first word of the text.

    Args:
        text: A question or any other text.
        is_name: A function that returns whether a key belongs to an existing name. See
            ``name_key``.

    Example:
        >>> known = {"cafe", "brand", "who", "wrote", "红楼梦", "红楼"}
        >>> names_in("Who wrote The Café and Brand?", known.__contains__)
        ['cafe', 'brand']
        >>> names_in("《红楼梦》的作者是谁？", known.__contains__)
        ['红楼梦']
    """
    terms = words_of(text)
    plain = plain_words(terms)
    taken = [False] * len(terms)
    names: list[str] = []
    for length in range(_MAX_LENGTH, 0, -1):
        for start in range(len(terms) - length + 1):
            end = start + length
            if any(taken[start:end]) or plain[start] in ARTICLES:
                continue
            if length == 1 and not _may_be_name(terms, plain, start):
                continue
            key = " ".join(plain[start:end])
            if is_name(key):
                names.append(key)
                taken[start:end] = [True] * length
    for term, used in zip(plain, taken, strict=True):
        if not used and is_unspaced(term):
            names += _unspaced_names(term, is_name)
    return list(dict.fromkeys(names))


def _may_be_name(terms: Sequence[str], plain: Sequence[str], at: int) -> bool:
    """Return whether a single word is capitalized and is not the first word of the text."""
    return at > 0 and terms[at][0].isupper() and len(plain[at]) > 1


def _unspaced_names(text: str, is_name: Callable[[str], bool]) -> Iterator[str]:
    """Yield the names in a text without spaces, preferring the longest name at each position."""
    start = 0
    while start < len(text) - 1:
        ends = range(min(len(text), start + _MAX_UNSPACED_LENGTH), start + 1, -1)
        end = next((end for end in ends if is_name(text[start:end])), None)
        if end is None:
            start += 1
        else:
            yield text[start:end]
            start = end


class Run(NamedTuple):
    """A sequence of capitalized words, with the lowercase words between them.

    Attributes:
        words: The words as they are spelled in the text.
        plain: The normalized words.
        breaks: The positions of words before which a name ends, unless the name is a title.
        begins: Whether the first word begins a sentence.
    """

    words: list[str]
    plain: list[str]
    breaks: frozenset[int]
    begins: bool

    @classmethod
    def from_str(cls, compact: str) -> Run:
        """Parse a sequence of words in the compact format that ``find_mentions`` writes.

        The format has a dot before the first word if the word begins a sentence, and a comma before
        each break.
        """
        begins = compact.startswith(".")
        words = compact[begins:].split(" ")
        breaks = frozenset(at for at, word in enumerate(words, 1) if word[-1] == ",")
        words = [word.rstrip(",") for word in words]
        return cls(words, plain_words(words), breaks, begins)

    @property
    def limits(self) -> Iterator[int]:
        """The positions of words with which a name can begin or end."""
        return (at for at, word in enumerate(self.words) if not word[0].islower())

    def names(self, small: Callable[[str], bool]) -> Iterator[tuple[str, str]]:
        """Yield the keys and the spellings of the longest possible names.

        Args:
            small: A function that returns whether other texts write a word in lowercase. At the
                beginning of a sentence, such a word does not belong to a name.
        """
        start = end = first = self._first(small)
        for at, word in enumerate(self.words[first:], first):
            if at in self.breaks or word in LOOSE_WORDS:
                yield from self._name(start, end)
                start = end = at
            if word in LOOSE_WORDS or (start == end and not word[0].isupper()):
                start = end = at + 1
            else:
                end = at + 1
        yield from self._name(start, end)

    def _name(self, start: int, end: int) -> Iterator[tuple[str, str]]:
        while end > start and self.words[end - 1] in JOINING_WORDS:
            end -= 1
        spelling = " ".join(self.words[start:end])
        while end - start > 1 and self.plain[start] in ARTICLES:
            start += 1
        key = " ".join(self.plain[start:end])
        if is_name_key(key):
            yield key, without_possessive(spelling)

    def known(self, is_name: Callable[[str], bool], small: Callable[[str], bool]) -> Iterator[str]:
        """Yield the keys of existing names, including names within longer names."""
        first = self._first(small)
        limits = [at for at in self.limits if at >= first]
        for number, start in enumerate(limits):
            if self.plain[start] in ARTICLES:
                continue
            for end in limits[number : number + _MAX_LENGTH]:
                key = " ".join(self.plain[start : end + 1])
                if is_name(key):
                    yield key

    def _first(self, small: Callable[[str], bool]) -> int:
        """Return the position at which the first name can begin."""
        return int(self.begins and small(self.plain[0]))


def runs_of(compact: str) -> list[Run]:
    """Parse the word sequences in ``Mentions.runs`` or ``Mentions.title_runs``."""
    return [Run.from_str(run) for run in compact.split("\n") if run]
