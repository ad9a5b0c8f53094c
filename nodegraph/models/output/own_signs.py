"""Protect special characters in a model's answer that come from the user's question.

For example, ``<div>`` in a question about HTML is not a tag of the answer, and "git:" is not a
label. Before an answer is parsed, such characters are replaced by letters that do not occur in any
text, so that the parsers treat them as parts of words. Afterwards, the original characters are
restored.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

from .bullets import split_bullet

# Letters of the Linear A script represent special characters.
_FIRST_LETTER = 0x10600
_LETTER_COUNT = 311
_LETTERS = re.compile(f"[{chr(_FIRST_LETTER)}-{chr(_FIRST_LETTER + _LETTER_COUNT - 1)}]")

_MAX_LENGTH = 20_000  # maximum number of characters in an answer; no query is longer

_MAX_GAP = 40  # maximum number of characters between two words

_WORDS = re.compile(r"\w+")

# Punctuation marks that end sentences. A dot may also be part of a name or a number.
_ENDS = "?？!！。,，"

# Apostrophes and hyphens inside words.
_IN_WORD = re.compile(r"['’.-]")

_PAIRS = {"(": ")", "[": "]", "{": "}", "<": ">", "“": "”", "「": "」", "【": "】", "（": "）"}

_QUOTES = "\"`'*"

_NUMBERED = re.compile(r"(?:^|(?<=\s))[(（]?(\d{1,2})[.)、）]\s?(?=\D)")


class OwnSigns(NamedTuple):
    """An answer in which special characters from the user's question are replaced by letters.

    Attributes:
        text: The answer after the replacement.
        signs: A mapping from the letters to the original characters.
    """

    text: str
    signs: Mapping[str, str]

    def restored(self, text: str) -> str:
        """Restore the original characters in a part of the answer."""
        if not self.signs:
            return text
        return _LETTERS.sub(lambda found: self.signs.get(found[0], found[0]), text)


def protect_signs(answer: str, query: str) -> OwnSigns:
    """Replace the special characters in an answer that come from the user's question with letters.

    Args:
        answer: The answer of the model.
        query: The user's question.

    Example:
        >>> own = protect_signs("Query: git: rebase with *args", "git: rebase *args")
        >>> own.text.startswith("Query: "), own.text.endswith("*args")
        (True, False)
        >>> own.restored(own.text)
        'Query: git: rebase with *args'
    """
    asked = _without_numbers(query)
    has_letters = _LETTERS.search(answer) is not None
    if has_letters or len(answer) > _MAX_LENGTH:
        return OwnSigns(answer, {})
    if not any(sign in asked for sign in _signs_of(answer)):
        return OwnSigns(answer, {})
    positions = _balanced(answer, {*_own_positions(answer, asked)})
    letters: dict[str, str] = {}
    text = [*answer]
    for at in sorted(positions):
        if len(letters) < _LETTER_COUNT:
            letters.setdefault(answer[at], chr(_FIRST_LETTER + len(letters)))
        text[at] = letters.get(answer[at], answer[at])
    protected = "".join(text)
    if _is_json(answer) and not _is_json(protected):
        return OwnSigns(answer, {})
    return OwnSigns(protected, {letter: sign for sign, letter in letters.items()})


def without_own_signs(text: str) -> str:
    """Replace the letters that represent special characters with spaces."""
    return _LETTERS.sub(" ", text)


def _signs_of(text: str) -> set[str]:
    return {sign for sign in {*text} if not sign.isalnum() and not sign.isspace()}


def _is_json(text: str) -> bool:
    if text.lstrip()[:1] not in ("{", "["):
        return False
    with suppress(ValueError, RecursionError):
        json.loads(text, strict=False)
        return True
    return False


def _without_numbers(query: str) -> str:
    """Convert a question to lowercase, and remove the bullets and numbers of lists."""
    lines = query.strip().split("\n")
    if len(lines) > 1:
        query = " ".join(split_bullet(line)[0] for line in lines)
    if _NUMBERED.findall(query)[:2] == ["1", "2"]:
        query = _NUMBERED.sub("", query)
    return " ".join(query.casefold().split())


def _own_positions(answer: str, asked: str) -> Iterator[int]:
    """Yield the positions of special characters with the same neighboring words in the question."""
    words = [*_WORDS.finditer(answer)]
    own = {sign for sign in _signs_of(asked) if sign not in _ENDS}
    starts = [0, *(word.end() for word in words)]
    ends = [*(word.start() for word in words), len(answer)]
    for number, (start, end) in enumerate(zip(starts, ends, strict=True)):
        gap = answer[start:end]
        if own.isdisjoint(gap) or len(gap) > _MAX_GAP:
            continue
        before = _nearest(words[number - 1][0], -1) if number else ""
        after = _nearest(words[number][0], 1) if number < len(words) else ""
        for first, last in _own_spans(gap, before, after, asked):
            for at in range(first, last):
                if not gap[at].isspace() and gap[at] not in _ENDS:
                    yield start + at


def _nearest(word: str, side: int) -> str:
    """Return a word, or only its first or last character if it is Chinese."""
    edge = word[0] if side > 0 else word[-1]
    if "\u3040" <= edge <= "\u9fff":
        return edge
    return word.casefold()


def _own_spans(gap: str, before: str, after: str, asked: str) -> Iterator[tuple[int, int]]:
    """Yield spans of special characters that the answer and the question share.

    A span is a part of the gap between two words of the answer. The question must contain it next
    to at least one of these words.
    """
    if before and after:
        if _IN_WORD.fullmatch(gap):
            return
        if "\n" not in gap and _has(asked, before + _spaced(gap) + after):
            yield 0, len(gap)
            return
    if before:
        yield 0, _end_behind(gap.partition("\n")[0], before, asked)
    if after:
        yield _start_before(gap, before, after, asked), len(gap)
    tail = gap.rpartition("\n")[2]
    sign = _FIRST_SIGN.match(tail)
    if sign is not None and asked.startswith(f"{sign[0]} "):
        start = len(gap) - len(tail)
        yield start, start + sign.end()


_FIRST_SIGN = re.compile(r"[^\w\s\"'“]{1,3}(?=\s)")


def _start_before(gap: str, before: str, after: str, asked: str) -> int:
    """Return the start of special characters that precede a word in both answer and question."""
    start = gap.rfind("\n") + 1
    for first in range(start, len(gap)):
        is_of_word_before = first == 0 and before and gap[0] not in _PAIRS and gap[0] not in _QUOTES
        if gap[first].isspace() or is_of_word_before:
            continue
        if _has(asked, _spaced(gap[first:]) + after):
            return first
    return len(gap)


def _end_behind(gap: str, before: str, asked: str) -> int:
    """Return the end of the special characters that follow a word in both answer and question."""
    for last in range(len(gap), 0, -1):
        piece = gap[:last].rstrip(_ENDS + ".")
        if not piece.strip() or piece[-1].isspace():
            continue
        if _has(asked, before + _spaced(piece), is_word=False):
            return len(piece)
    return 0


def _spaced(gap: str) -> str:
    return re.sub(r"\s+", " ", gap)


def _has(asked: str, piece: str, *, is_word: bool = True) -> bool:
    """Return whether a question contains a given text that begins and ends at word boundaries.

    Args:
        asked: The question in lowercase.
        piece: The text, which consists of words and special characters.
        is_word: Whether the text ends with a word. Otherwise a space must follow it.
    """
    at = asked.find(piece)
    while at >= 0:
        end = at + len(piece)
        begins = not _joins(asked[at - 1 : at] + piece[0])
        follows = asked[end : end + 1]
        if is_word:
            ends = not _joins(piece[-1] + follows)
        else:
            ends = not follows.strip() or follows in _ENDS + ";；:："
        if begins and ends:
            return True
        at = asked.find(piece, at + 1)
    return False


def _joins(pair: str) -> bool:
    """Return whether two adjacent characters belong to the same word."""
    return re.fullmatch("[A-Za-z0-9]{2}", pair) is not None


def _balanced(answer: str, positions: set[int]) -> set[int]:
    """Remove the positions of brackets and quotation marks whose counterpart is markup."""
    for line in re.finditer(r"[^\n]+", answer):
        opened: list[int] = []
        quotes: dict[str, list[int]] = {}
        for at in range(line.start(), line.end()):
            sign = answer[at]
            if sign in _PAIRS:
                opened.append(at)
            elif opened and sign == _PAIRS[answer[opened[-1]]]:
                positions -= _halved(positions, opened.pop(), at)
            elif sign in _QUOTES:
                quotes.setdefault(sign, []).append(at)
        for places in quotes.values():
            if len(places) % 2 == 0:
                for first, second in zip(places[::2], places[1::2], strict=True):
                    positions -= _halved(positions, first, second)
    return positions


def _halved(positions: set[int], first: int, second: int) -> set[int]:
    """Return both positions of a pair of brackets if only one of them comes from the question."""
    ends = {first, second}
    if len(ends & positions) == 1:
        return ends
    return set()
