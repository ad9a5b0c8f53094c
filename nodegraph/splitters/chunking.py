"""Split texts into pieces of a maximum size, and combine the pieces into overlapping chunks."""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from ..errors import check_integer
from ..lazy_names import lazy_pattern

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Span = tuple[int, int]
"""The start and the end (exclusive) of a part of a text, in characters."""

Length = Callable[[str], int]
"""A function that returns the length of a text in tokens, characters or another unit."""

Measure = Callable[[int, int], int]
"""A function that returns the length of a part of a text, given its start and end."""

CLAUSES = re.compile(r"[，、；：,;:—]+[”’」』）)\]】]*\s*|\n+")

WORDS = re.compile(r"\s+")


def check_sizes(chunk_size: int, chunk_overlap: int, length: object) -> None:
    """Validate the chunk size, the overlap and the length function of a splitter.

    Raises:
        TypeError: If a size is not an integer, or if the length is not a function.
        ValueError: If the size is less than 1, or if the overlap is negative or not less than the
            size.
    """
    if not callable(length):
        raise TypeError(f"length must be a function from a text to its length, got {length!r:.80}")
    check_integer(chunk_size, "chunk_size", 1)
    if not 0 <= check_integer(chunk_overlap, "chunk_overlap") < chunk_size:
        raise ValueError(
            f"chunk_overlap must be 0 or more and less than chunk_size ({chunk_size}), "
            f"not {chunk_overlap!r}"
        )


def _is_list_of_texts(value: object) -> bool:
    return isinstance(value, Sequence) and all(isinstance(item, str) for item in value)


def strip_span(text: str, span: Span) -> Span:
    """Shrink a span so that it does not start or end with whitespace."""
    start, end = span
    padded = text[start:end]
    content = padded.strip()
    start += len(padded) - len(padded.lstrip())
    return start, start + len(content)


def cut_at(text: str, span: Span, separator: re.Pattern[str]) -> list[Span]:
    """Split a span after each match of a separator. The parts cover the whole span."""
    parts: list[Span] = []
    start = span[0]
    for match in separator.finditer(text, *span):
        if start < match.end() < span[1]:
            parts.append((start, match.end()))
            start = match.end()
    return [*parts, (start, span[1])]


def cut_to_fit(
    text: str, span: Span, size: int, measure: Measure, separators: Sequence[re.Pattern[str]]
) -> list[Span]:
    """Split a span that is too long at the strongest separator in it, or else anywhere."""
    if measure(*span) <= size:
        return [span]
    for level, separator in enumerate(separators):
        parts = cut_at(text, span, separator)
        if len(parts) > 1:
            weaker = separators[level + 1 :]
            fitting: list[Span] = []
            for part in parts:
                fitting += cut_to_fit(text, part, size, measure, weaker)
            return fitting
    return _cut_anywhere(span, size, measure)


def _cut_anywhere(span: Span, size: int, measure: Measure) -> list[Span]:
    """Split a span at arbitrary positions into the longest parts that fit the size."""
    parts: list[Span] = []
    start, end = span
    count = 1
    while start < end:
        count = _prefix_length(start, end, size, measure, guess=count)
        parts.append((start, start + count))
        start += count
    return parts


def _prefix_length(start: int, end: int, size: int, measure: Measure, guess: int) -> int:
    """Return the number of characters that fit the maximum size. The result is at least 1.

    The measure must not decrease if characters are added.
    """

    def length_of(count: int) -> int:
        return measure(start, start + count)

    max_count = end - start
    low = 1
    if 1 < guess <= max_count and length_of(guess) <= size:
        low = guess
    step = 1
    while low + step <= max_count and length_of(low + step) <= size:
        low += step
        step *= 2
    high = min(low + step - 1, max_count)
    return bisect_right(range(high + 1), size, lo=low + 1, key=length_of) - 1


def pack(text: str, parts: Sequence[Span], size: int, overlap: int, measure: Measure) -> list[Span]:
    """Join adjacent parts into chunks of at most ``size``, without whitespace at the ends.

    Each chunk repeats whole parts from the end of the previous chunk, up to a total length of
    ``overlap``, and contains at least one new part. The limit applies to the text of the chunk,
    which may be longer than the sum of its parts.
    """
    stripped = [strip_span(text, part) for part in parts]
    filled = [part for part in stripped if part[0] < part[1]]
    return _Packer(filled, size, overlap, measure).chunks()


class _Packer:
    """Joins adjacent parts of a text into overlapping chunks.

    A chunk is represented by the indexes of its first part and of the part after its last part.
    """

    def __init__(self, parts: Sequence[Span], size: int, overlap: int, measure: Measure) -> None:
        self._parts = parts
        self._size = size
        self._overlap = overlap
        self._measure = measure
        self._lengths = [measure(*part) for part in parts]

    def chunks(self) -> list[Span]:
        """Return all chunks in text order."""
        chunks: list[Span] = []
        first = 0
        after = 0
        while after < len(self._parts):
            after = self._last(first, after + 1)
            chunks.append((self._parts[first][0], self._parts[after - 1][1]))
            if after < len(self._parts):
                first = self._first(first, after)
        return chunks

    def _last(self, first: int, least: int) -> int:
        """Return the end of the largest chunk that fits the size.

        The result is at least ``least``.
        """
        after = least
        total = sum(self._lengths[first:after])
        while after < len(self._parts) and total + self._lengths[after] <= self._size:
            total += self._lengths[after]
            after += 1
        if after == least or self._joined(first, after) <= self._size:
            return after
        return bisect_right(
            range(after), self._size, lo=least, key=lambda last: self._joined(first, last + 1)
        )

    def _first(self, first: int, after: int) -> int:
        """Return the index of the first part that the next chunk repeats."""
        total = sum(self._lengths[first:after])
        while first < after and not self._may_repeat(first, after, total):
            total -= self._lengths[first]
            first += 1
        return first

    def _may_repeat(self, first: int, after: int, total: int) -> bool:
        """Return whether parts fit into the overlap, and fit into a chunk with the next part."""
        if total > self._overlap or total + self._lengths[after] > self._size:
            return False
        if self._joined(first, after) > self._overlap:
            return False
        return self._joined(first, after + 1) <= self._size

    def _joined(self, first: int, after: int) -> int:
        """Return the length of the text from the first to the last part of a chunk."""
        return self._measure(self._parts[first][0], self._parts[after - 1][1])


def locate(parts: Sequence[str], text: str) -> list[Span | None]:
    """Find the positions of parts in a text. The result is None for parts that do not occur in it.

    Each part is searched for after the end of the previous part, then after its start (because
    chunks may overlap), and finally from the start of the text (because a transform may change the
    order). The spans are exact: ``text[start:end] == part``. The total work for parts that do not
    occur is limited to a few scans of the text.

    Example:
        >>> locate(["a b", "b c", "new"], "a b c")
        [(0, 3), (2, 5), None]
    """
    spans: list[Span | None] = []
    budget = 16 * len(text) + 1_000_000
    start = -1
    end = 0
    for part in parts:
        window = end + 4 * len(part) + 4096
        at = text.find(part, end, window)
        if at < 0 or _has_letters(text[end:at]):
            overlapping = text.find(part, start + 1, window)
            if overlapping >= 0:
                at = overlapping
        if at < 0 and budget > 0:
            at = text.find(part, end)
            if at < 0:
                at = text.find(part)
            budget -= len(text) if at < 0 else abs(at - end)
        if at < 0 or not part:
            spans.append(None)
            continue
        start = at
        end = at + len(part)
        spans.append((start, end))
    return spans


def _has_letters(text: str) -> bool:
    return any(character.isalnum() for character in text)


# Scripts without spaces between words, as a character class of a regular expression.
ALPHABETS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
"""Alphabets that are written without spaces between words (Thai, Lao, Myanmar and Khmer), as part
of a character class."""

IDEOGRAPHS = (
    "\u3005-\u3007\u3041-\u30ff\u31f0-\u31ff"  # iteration marks, kana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Han
    "\uac00-\ud7af"  # hangul syllables
    "\U00020000-\U0003ffff"  # Han, extensions
)
"""Chinese, Japanese and Korean characters, as part of a character class."""

UNSPACED = ALPHABETS + IDEOGRAPHS

# Matches a sequence of characters that are one token each, or a token of any other kind.
_TOKENS = lazy_pattern(rf"([{UNSPACED}]+)|[^\W\d_{UNSPACED}]{{1,6}}|\d{{1,3}}|[^\w\s]|_+")

_KIND = lazy_pattern(rf"([{UNSPACED}])|([^\W\d_])|(\d)|([^\w\s])|(_)")

_SPACE = 0

_UNKNOWN = 255

_LENGTHS = (1, 1, 6, 3, 1, 1 << 30)  # maximum length of a token of each kind

_BLOCK = 1 << 16  # number of characters

# maximum number of characters; counting the tokens of shorter texts needs no array
_COUNTED_DIRECTLY = 2_000


def count_tokens(text: str) -> int:
    """Estimate the number of tokens in a text.

    The following count as one token: each character of a script without spaces between words, each
    piece of a word or number, and each punctuation mark. The estimate differs from actual
    tokenizers by about 20 %. If the exact number matters, pass the tokenizer of the model as the
    ``length`` of a splitter.

    Args:
        text: The text to measure.

    Returns:
        The number of tokens, which is 0 for an empty text.

    Example:
        >>> count_tokens("长江有多长？6300 kilometers")
        10
    """
    runs = _TOKENS.findall(text)  # The group is empty for tokens of other kinds.
    return len("".join(runs)) + runs.count("")


def tokens_before(text: str) -> npt.NDArray[np.int32]:
    """Return an array with the number of tokens before each position in a text.

    The last element is the total number of tokens.
    """
    import numpy as np

    counts = np.zeros(len(text) + 1, np.int32)
    lengths = np.array(_LENGTHS, np.int32)
    kind = start = 0  # kind and start of the current sequence of characters
    for at in range(0, len(text), _BLOCK):
        kinds = _kinds_of(text[at : at + _BLOCK])
        places = np.arange(at, at + len(kinds), dtype=np.int32)
        starts = np.where(kinds != np.append(kind, kinds[:-1]), places, start)
        np.maximum.accumulate(starts, out=starts)
        kind = kinds[-1]
        start = starts[-1]
        is_first = (places - starts) % lengths[kinds] == 0
        is_first &= kinds != _SPACE
        counts[at + 1 : at + 1 + len(kinds)] = np.cumsum(is_first) + counts[at]
    return counts


@cache
def _kinds_by_code() -> npt.NDArray[np.uint8]:
    """Return an array of the kinds of characters, indexed by Unicode code point.

    An entry is computed when the character is first used.
    """
    import numpy as np

    return np.full(sys.maxunicode + 1, _UNKNOWN, np.uint8)


def _kinds_of(text: str) -> npt.NDArray[np.uint8]:
    import numpy as np

    by_code = _kinds_by_code()
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    if (new := codes[by_code[codes] == _UNKNOWN]).size:
        for code in np.unique(new).tolist():
            match = _KIND.match(chr(code))
            by_code[code] = (match and match.lastindex) or _SPACE
    return by_code[codes]


def measured(text: str, length: Length) -> Measure:
    """Return a function that measures parts of a text.

    For long texts, tokens are counted only once.
    """
    if length is not count_tokens or len(text) < _COUNTED_DIRECTLY:
        return lambda start, end: length(text[start:end])
    counts = tokens_before(text)

    def measure(start: int, end: int) -> int:
        first: int = counts.item(start)
        if 0 < start < end and not text[start - 1].isspace():
            starts_token = counts.item(start + 1) > first
            if not starts_token:
                return count_tokens(text[start:end])
        return int(counts.item(end)) - first

    return measure


def shorten(text: str, tokens: int) -> str:
    """Truncate a text to a maximum number of tokens, at the end of a word."""
    if len(text) <= tokens:
        return text
    end = int(tokens_before(text).searchsorted(tokens, "right")) - 1
    if end == len(text):
        return text

    stop = end
    while stop and (pair := text[stop - 1 : stop + 1]).isalnum() and count_tokens(pair) == 1:
        stop -= 1
    return text[: stop or end]


SEPARATORS = (
    r"\n\s*\n",
    r"\n",
    r"[。！？｡][”’」』）)】》]*|(?<![.!?])[.!?]+[\"'”’)\]]*(?=\s)\s*",
    r"[；;][”’」』）)]*\s*",
    r"[，、：][”’」』）)]*|[,:](?=\s)\s*",
    r"\s+",
)


@dataclass(frozen=True, slots=True)
class RecursiveSplitter:
    """Splits texts at blank lines, and if necessary at line breaks, sentences, clauses and words.

    Use this splitter if keeping paragraphs and sections together is more important than chunks of
    equal size, since a part is split at a weaker separator only if it is too long. Separators are
    kept at the end of each part. Whitespace at the start and end of chunks is removed.

    Args:
        chunk_size: The maximum length of a chunk, in units of ``length``.
        chunk_overlap: The maximum total length of the parts that a chunk repeats from the end of
            the previous chunk. Chunks that were split by different separators do not overlap.
        separators: Regular expressions for the separators, strongest first. The default is suitable
            for Chinese, English and mixed texts. If no separator matches, the text is split at any
            position.
        length: A function that returns the length of a text. Defaults to an estimate of the number
            of tokens (``count_tokens``). Use ``len`` to count characters.

    Raises:
        ValueError: If a size is out of range, or if a separator is not a valid regular expression
            or matches an empty string.

    Example:
        >>> RecursiveSplitter(chunk_size=5, chunk_overlap=0)("一二三。四五六。\\n七八九。")
        ['一二三。', '四五六。', '七八九。']
    """

    chunk_size: int = 1024
    chunk_overlap: int = 100
    separators: Sequence[str] = SEPARATORS
    length: Length = count_tokens

    def __post_init__(self) -> None:
        check_sizes(self.chunk_size, self.chunk_overlap, self.length)
        if isinstance(self.separators, str):
            raise ValueError(f"separators is a list of expressions, not one: {self.separators!r}")
        if not _is_list_of_texts(self.separators):
            raise TypeError(f"separators must be a list of texts, got {self.separators!r:.80}")
        for separator in self.separators:
            try:
                pattern = re.compile(separator)
            except re.error as error:
                raise ValueError(
                    f"separators must be regular expressions, got {separator!r}: {error}"
                ) from error
            if pattern.fullmatch(""):
                raise ValueError(
                    f"the separator {separator!r} matches the empty text; leave it out: what "
                    "fits by none is cut anywhere"
                )

    def __call__(self, text: str) -> list[str]:
        """Split a text and return the chunks."""
        return [text[start:end] for start, end in self.spans(text)]

    def spans(self, text: str) -> list[Span]:
        """Split a text and return the start and end of each chunk, in characters."""
        patterns = [re.compile(separator) for separator in self.separators]
        measure = measured(text, self.length)
        spans = self._split(text, (0, len(text)), patterns, measure)
        chunks = (strip_span(text, span) for span in spans)
        return [(start, end) for start, end in chunks if start < end]

    def _split(
        self, text: str, span: Span, patterns: Sequence[re.Pattern[str]], measure: Measure
    ) -> list[Span]:
        if measure(*span) <= self.chunk_size:
            return [span]
        parts = [span]
        while patterns and len(parts) == 1:
            parts = cut_at(text, span, patterns[0])
            patterns = patterns[1:]
        if len(parts) == 1:
            parts = cut_to_fit(text, span, self.chunk_size, measure, ())
            return pack(text, parts, self.chunk_size, self.chunk_overlap, measure)
        chunks: list[Span] = []
        fitting: list[Span] = []
        for part in parts:
            if measure(*part) <= self.chunk_size:
                fitting.append(part)
                continue
            chunks += pack(text, fitting, self.chunk_size, self.chunk_overlap, measure)
            fitting = []
            chunks += self._split(text, part, patterns, measure)
        return chunks + pack(text, fitting, self.chunk_size, self.chunk_overlap, measure)
