"""Choose the parts of a text that are displayed for a query.

The parts are sentences and lines that together cover the words of the query. Neighbors of such
sentences are preferred as well, because the answer is often not in the sentence with the most query
words but in the sentence before or after it.
"""

from __future__ import annotations

import math
import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

from ..nodegraph.lazy_names import lazy_pattern
from ..nodegraph.splitters.chunking import UNSPACED
from ..nodegraph.splitters.sentences import sentence_spans
from .analysis.text_analyzer import TextAnalyzer
from .question_kinds import QuestionKind, has_numeral

_MATCHED = 3.0  # the value of the sentence that matched; a word has a value of about 1

_AFTER, _BEFORE = 0.7, 0.5  # the values of the sentences after and before a chosen sentence

_REASON = 1.5  # the value of the sentence before a chosen sentence if a reason is asked for

_NUMBER = 1.5  # the value of a number if a number is asked for

_LEAD = 1.0  # the value of a first sentence that starts with a word of the query

_COLUMN = 0.006  # the cost of each column

_CUT_COST = 1.5  # the cost of a sentence without spaces of which nothing fits

_DIGITS = 2.0  # the factor of the weight of a term with digits, such as a year

# The weight of a letter in a script without spaces, relative to a pair of letters.
_SINGLE_LETTER = 0.15

_FUNCTION_PAIR = 0.3  # the factor of the weight of a pair with a function word

_FUNCTION_WORDS = frozenset(
    "的了是在和有与及对为以于之其这那何哪些么什谁吗呢被从把由而但又也就都个怎样如"
)

_LONG = 5  # the length from which a word has its full weight; most function words are shorter

_LEAST = 25  # the minimum number of columns for a part of a sentence

_START = 0.35  # the share of the free columns before the first query word if a sentence is cut

_NEAR = 4_000  # the number of characters before and after the match that are examined

_LONGEST = 24  # the maximum length of words that are never cut

_OPENING = "《「『"  # quotation marks before the first word of a sentence

GAP = " … "

_CUT = "…"

_LINE = lazy_pattern(r"[^\n]*\S[^\n]*")

_SEPARATOR_ROW = lazy_pattern(r"[\s|:=+-]+")

_HEADING = lazy_pattern(r"\s*#{1,6}\s")

_UNSPACED = lazy_pattern(f"[{UNSPACED}]")


class Part(NamedTuple):
    """A part of a text.

    Attributes:
        start: The position of the first character.
        end: The position after the last character.
        line: The position of the line that contains the part.
        is_cut_before: Whether the part starts inside a sentence.
        is_cut_after: Whether the part ends inside a sentence.
    """

    start: int
    end: int
    line: int
    is_cut_before: bool = False
    is_cut_after: bool = False

    def moved(self, by: int) -> Part:
        """Return a copy whose positions are increased by a number of characters."""
        return self._replace(start=self.start + by, end=self.end + by, line=self.line + by)


class _Word(NamedTuple):
    """A word of the query in the text, with its span, its terms and a factor for their weights."""

    start: int
    end: int
    terms: frozenset[str]
    length_factor: float = 1.0


class _Sentence(NamedTuple):
    """A sentence, a heading or a table row.

    Attributes:
        start: The position of the first character.
        end: The position after the last character.
        line: The position of the line that contains the sentence.
        words: The words of the query that the sentence contains.
        is_row: Whether it is a table row.
        is_prose: Whether it is neither a heading nor a table row. As a neighbor of a chosen
            sentence, prose may contain the answer.
        has_numeral: Whether the sentence contains a number.
        is_unspaced: Whether the sentence is in a script without spaces.
    """

    start: int
    end: int
    line: int
    words: tuple[_Word, ...]
    is_row: bool
    is_prose: bool
    has_numeral: bool
    is_unspaced: bool


def excerpt(
    text: str,
    match: tuple[int, int] | None,
    query: str,
    *,
    columns: int,
    rows: int,
    first: int = 0,
) -> list[list[Part]]:
    """Choose the parts of a text that are displayed for a query, as rows in text order.

    Sentences that contain the most words of the query are added until the rows are full. Words that
    are rare in the text count more. These sentences are preferred: the sentence that matched, the
    neighbors of chosen sentences, a first sentence that starts with a word of the query, sentences
    with numbers if the query asks for a number, and the sentence before a chosen sentence if the
    query asks for a reason. A table row is displayed below the header of its table.

    Args:
        text: The text.
        match: The span of the best match in the text. If None, no part is preferred.
        query: The query. If it is blank, the parts around the match are chosen.
        columns: The number of columns of a row. Chinese characters occupy two columns.
        rows: The maximum number of rows after long rows are wrapped.
        first: The number of columns in the first row that are already occupied.
    """
    start, end = match or (0, len(text))
    if end - start > _NEAR:
        start = end = start + best_start(text[start:end], query)
    origin = max(0, start - _NEAR)
    near = text[origin : end + _NEAR]
    sentences = _sentences(near, query)
    if not sentences:
        return []
    layout = _Layout(near, columns, rows, first)
    matched = None
    if match is not None or not any(sentence.words for sentence in sentences):
        matched = _sentence_at(sentences, start - origin)
    values = _Values(sentences, matched, layout, QuestionKind.of(query))
    if origin == 0:
        values.lead = _lead_of(near, sentences)
    _choose(values, layout)
    return [[part.moved(origin) for part in row] for row in layout.rows()]


def row_text(text: str, parts: Sequence[Part]) -> str:
    """Return the text of a row, in which ``…`` represents a gap between two parts."""
    shown = ""
    last = None
    for part in parts:
        if last is None:
            shown = _CUT if part.is_cut_before else ""
        elif columns_of(text[last.end : part.start].strip()) > len(GAP):
            shown += GAP
        else:
            shown += text[last.end : part.start]
        shown += text[part.start : part.end]
        last = part
    return shown + _CUT if last is not None and last.is_cut_after else shown


def best_start(text: str, query: str) -> int:
    """Return the start of the line or sentence that contains the most distinct query words."""
    analyze = TextAnalyzer().like(text)
    terms = set(analyze.query(query))
    most = 0
    best = 0
    for start, end in sentence_spans(text):
        for line in _LINE.finditer(text, start, end):
            words = terms.intersection(analyze(line[0]))
            letters = sum(map(len, words))
            if letters > most:
                most = letters
                best = line.start()
    return best


def columns_of(text: str) -> int:
    """Return the number of columns that a text occupies in a terminal."""
    return sum(map(_columns, text))


def _columns(character: str) -> int:
    if character.isascii():
        return 1
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


# Sentences and their words


def _sentences(text: str, query: str) -> list[_Sentence]:
    """Return the sentences of each line, without the separator rows of tables."""
    words = _words(text, query)
    sentences = []
    for line in _LINE.finditer(text):
        if _SEPARATOR_ROW.fullmatch(line[0]):
            continue
        is_row = line[0].lstrip().startswith("|")
        is_prose = not is_row and not _HEADING.match(line[0])
        spans = _sentences_of_line(line) if is_prose else [line.span()]
        for start, end in spans:
            first = bisect_left(words, start, key=_start_of_word)
            last = bisect_left(words, end, key=_start_of_word)
            inside = tuple(words[first:last])
            sentences.append(
                _Sentence(
                    start,
                    end,
                    line.start(),
                    inside,
                    is_row,
                    is_prose,
                    has_numeral(text, start, end),
                    _UNSPACED.search(text, start, end) is not None,
                )
            )
    return sentences


def _start_of_word(word: _Word) -> int:
    return word.start


def _sentences_of_line(line: re.Match[str]) -> list[tuple[int, int]]:
    at = line.start()
    return [(at + start, at + end) for start, end in sentence_spans(line[0])]


def _words(text: str, query: str) -> list[_Word]:
    """Return the occurrences of query words in a text, in text order."""
    analyze = TextAnalyzer().like(text)
    terms = frozenset(analyze.query(query))
    words: list[_Word] = []
    for start, end in analyze.spans(text):
        if _UNSPACED.search(text, start, end):
            words += _unspaced_words(text, start, end, terms)
        elif found := terms.intersection(analyze(text[start:end])):
            words.append(_Word(start, end, found, min(1.0, (end - start) / _LONG)))
    return words


def _unspaced_words(text: str, start: int, end: int, terms: frozenset[str]) -> Iterator[_Word]:
    """Yield the query terms in a text without spaces.

    These are pairs of letters, and single letters outside of such pairs.
    """
    for at in range(start, end):
        pair = text[at : min(at + 2, end)]
        for term in (pair, text[at]):
            if term in terms:
                yield _Word(at, at + len(term), frozenset((term,)))
                break


# The choice


def _sentence_at(sentences: Sequence[_Sentence], position: int) -> int:
    """Return the index of the sentence at a position of the text."""
    return max(0, bisect_right(sentences, position, key=_start_of_sentence) - 1)


def _lead_of(text: str, sentences: Sequence[_Sentence]) -> int | None:
    """Return the index of the first sentence if it starts with a word of the query, otherwise None.

    Such a sentence usually introduces the subject of the query.
    """
    for at, sentence in enumerate(sentences):
        if sentence.is_prose:
            if not sentence.words:
                return None
            before = text[sentence.start : sentence.words[0].start]
            return None if before.strip(_OPENING) else at
    return None


class _Values:
    """The values of the sentences of a text, which change whenever a sentence is chosen.

    Args:
        sentences: The sentences of the text.
        matched: The index of the sentence that the search found, or None.
        layout: The layout, which limits how much of a sentence can be displayed.
        kind: The kind of the question.

    Attributes:
        sentences: The sentences of the text.
        matched: The index of the sentence that the search found, or None.
        lead: The index of the sentence that introduces the subject of the query, or None.
    """

    def __init__(
        self,
        sentences: Sequence[_Sentence],
        matched: int | None,
        layout: _Layout,
        kind: QuestionKind,
    ) -> None:
        self.sentences = sentences
        self.matched = matched
        self.lead: int | None = None
        self._layout = layout
        self._kind = kind
        weights = _weights(sentences)
        self._words = [_weights_of_words(sentence, weights) for sentence in sentences]
        self._widths = [layout.width(sentence.start, sentence.end) for sentence in sentences]
        self._chosen: set[int] = set()
        self._covered: set[str] = set()

    def value(self, at: int) -> tuple[float, int]:
        """Return the value of a sentence, and a second value that prefers sentences near the match.

        The second value decides between sentences of equal value.
        """
        sentence = self.sentences[at]
        uncovered = [w for term, w in self._words[at].items() if term not in self._covered]
        worth = sum(uncovered) - _COLUMN * self._widths[at]
        if at == self.matched:
            worth += _MATCHED
        if at == self.lead:
            worth += _LEAD
        if self._kind.asks_number and sentence.has_numeral:
            worth += _NUMBER
        worth += max((self._nearness(at - other) for other in self._chosen), default=0.0)
        worth -= _CUT_COST * self._share_cut(at)
        return worth, -abs(at - (self.matched or 0))

    def is_new(self, at: int) -> bool:
        """Return whether a sentence is worth displaying by itself, and not only as a neighbor."""
        return at in (self.matched, self.lead) or bool(self._words[at].keys() - self._covered)

    def is_beside(self, at: int) -> bool:
        """Return whether the sentence before or after a sentence has been chosen."""
        return at - 1 in self._chosen or at + 1 in self._chosen

    def choose(self, at: int) -> None:
        """Record that a sentence is displayed."""
        if self.is_new(at):
            self._chosen.add(at)
        self._covered |= self._words[at].keys()

    def _nearness(self, distance: int) -> float:
        """Return the value that a sentence receives for its distance from a chosen sentence."""
        if distance > 0:
            return _AFTER / distance
        before = _REASON if self._kind.asks_reason else _BEFORE
        return before / -distance

    def _share_cut(self, at: int) -> float:
        """Return the share of a sentence that does not fit if it is written without spaces.

        Such a sentence can be cut inside a word, which makes the rest hard to read. The first
        chosen sentence is never penalized.
        """
        if not (self._chosen and self.sentences[at].is_unspaced):
            return 0.0
        free = max(0, self._layout.free(self.sentences[at].line))
        return max(0.0, 1 - free / self._widths[at])


def _choose(values: _Values, layout: _Layout) -> None:
    """Add the sentences with the highest values to the layout, until it is full."""
    sentences = values.sentences
    left = {at for at, sentence in enumerate(sentences) if _may_answer(sentence)}
    if values.matched is not None:
        left.add(values.matched)
    while left and not layout.is_full():
        best = max(left, key=values.value)
        left.remove(best)
        is_connected = layout.has_line(sentences[best].line) or values.is_beside(best)
        if not (values.is_new(best) or is_connected):
            continue
        if layout.add(sentences[best], _header_of(sentences, best)):
            values.choose(best)


def _may_answer(sentence: _Sentence) -> bool:
    """Return whether a sentence can contain the answer. A heading cannot."""
    return sentence.is_prose or (sentence.is_row and bool(sentence.words))


def _start_of_sentence(sentence: _Sentence) -> int:
    return sentence.start


def _weights(sentences: Sequence[_Sentence]) -> dict[str, float]:
    """Return the weight of each term, which is higher if fewer sentences contain the term."""
    counts: Counter[str] = Counter()
    for sentence in sentences:
        counts.update(frozenset().union(*(word.terms for word in sentence.words)))
    weights = {}
    for term, count in counts.items():
        weights[term] = math.log(1 + len(sentences) / count)
        weights[term] *= _weight_factor(term)
    return weights


def _weight_factor(term: str) -> float:
    """Return the factor by which the weight of a term is multiplied."""
    if any(letter.isdigit() for letter in term):
        return _DIGITS
    if not _UNSPACED.match(term):
        return 1.0
    has_function_word = not _FUNCTION_WORDS.isdisjoint(term)
    if len(term) == 1:
        return 0.0 if has_function_word else _SINGLE_LETTER
    return _FUNCTION_PAIR if has_function_word else 1.0


def _weights_of_words(sentence: _Sentence, weights: Mapping[str, float]) -> dict[str, float]:
    """Return the weights of the query words in a sentence.

    A word has the weight of its rarest term.
    """
    found = {}
    for word in sentence.words:
        rarest = max(word.terms, key=lambda term: (weights[term], term))
        found[rarest] = weights[rarest] * word.length_factor
    return found


def _header_of(sentences: Sequence[_Sentence], at: int) -> _Sentence | None:
    """Return the first row of the table that a row belongs to.

    If the row itself is the first one, None is returned.
    """
    first = at
    while first >= 0 and sentences[first].is_row:
        first -= 1
    header = first + 1
    return sentences[header] if header < at else None


class _Layout:
    """The chosen parts of a text, arranged by line within a number of rows."""

    def __init__(self, text: str, columns: int, rows: int, first: int) -> None:
        self._text = text
        self._columns = columns
        self._rows = rows
        self._first = first
        self._parts: dict[int, list[Part]] = {}
        self._ends = [0, *accumulate(map(_columns, text))]

    def width(self, start: int, end: int) -> int:
        """Return the number of columns that a span occupies."""
        return self._ends[end] - self._ends[start]

    def has_line(self, line: int) -> bool:
        """Return whether the layout contains a part of a line."""
        return line in self._parts

    def is_full(self) -> bool:
        free = self._rows * self._columns - self._first
        return free - sum(map(self._width_of_line, self._parts)) < _LEAST

    def add(self, sentence: _Sentence, header: _Sentence | None) -> bool:
        """Add a sentence, or as much of it as fits, and return whether anything was added.

        Args:
            sentence: The sentence.
            header: The header of the table that the sentence belongs to, or None. It is added if a
                row is free.
        """
        if sentence.is_row and sentence.line in self._parts:  # the sentence was added as a header
            return True
        if header is not None and header.line not in self._parts:
            free_beside = self.free(header.line, sentence.line)
            if free_beside >= self._columns:
                self._add_part(header, free_beside)
        free = self.free(sentence.line)
        if self.width(sentence.start, sentence.end) > free < _LEAST:
            return False
        self._add_part(sentence, free)
        return True

    def rows(self) -> list[list[Part]]:
        return [sorted(self._parts[line]) for line in sorted(self._parts)]

    def _add_part(self, sentence: _Sentence, free: int) -> None:
        start = sentence.start
        end = sentence.end
        if self.width(start, end) > free:
            free -= 2 * len(_CUT)
            start = self._start_of_cut(sentence, free)
            end = min(end, self._end_of(start, free))
            start = self._word_start(start, sentence.start)
            end = self._word_end(end, sentence.end)
        part = Part(start, end, sentence.line, start > sentence.start, end < sentence.end)
        self._parts.setdefault(sentence.line, []).append(part)

    def free(self, line: int, *others: int) -> int:
        """Return the number of free columns for a line if each other line requires a row."""
        used = sum(self._rows_of(each) for each in self._parts if each != line)
        used += sum(other not in self._parts for other in others)
        free = (self._rows - used) * self._columns - self._width_of_line(line)
        if line in self._parts:
            free -= len(GAP)
        if line == min([line, *self._parts]):
            free -= self._first
        return free

    def _rows_of(self, line: int) -> int:
        width = self._width_of_line(line)
        if line == min(self._parts):
            width += self._first
        return math.ceil(width / self._columns)

    def _width_of_line(self, line: int) -> int:
        parts = self._parts.get(line, [])
        gaps = len(GAP) * max(0, len(parts) - 1)
        return gaps + sum(self.width(part.start, part.end) for part in parts)

    def _start_of_cut(self, sentence: _Sentence, free: int) -> int:
        """Return the start of the part of a sentence that contains the most query words."""
        words = sentence.words
        if not words:
            return sentence.start
        starts = [sentence.start, *(word.start for word in words)]
        starts += [max(sentence.start, self._start_of(word.end, free)) for word in words]
        inside = {start: self._words_between(words, start, free) for start in starts}
        best = max(inside, key=lambda start: len(inside[start]))
        found = inside[best] or words[:1]
        unused = free - self.width(found[0].start, found[-1].end)
        before = max(0, int(_START * unused))
        return max(sentence.start, self._start_of(found[0].start, before))

    def _word_start(self, position: int, least: int) -> int:
        """Return the start of the next word if a position is inside a word."""
        space = self._text.rfind(" ", max(least, position - _LONGEST), position)
        if position == least or space in (-1, position - 1):
            return position
        following = self._text.find(" ", position, position + _LONGEST)
        return position if following == -1 else following + 1

    def _word_end(self, position: int, most: int) -> int:
        """Return the end of the previous word if a position is inside a word."""
        if position == most or self._text[position].isspace():
            return position
        space = self._text.rfind(" ", position - _LONGEST, position)
        return position if space == -1 else space

    def _words_between(self, words: Sequence[_Word], start: int, free: int) -> list[_Word]:
        end = self._end_of(start, free)
        return [word for word in words if word.start >= start and word.end <= end]

    def _start_of(self, end: int, columns: int) -> int:
        """Return the start of the text that ends at a position and occupies a number of columns."""
        return bisect_left(self._ends, self._ends[end] - columns)

    def _end_of(self, start: int, columns: int) -> int:
        """Return the end of the text that starts at a position and occupies a number of columns."""
        return bisect_right(self._ends, self._ends[start] + columns) - 1
