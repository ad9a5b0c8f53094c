"""Split texts into sentences, paragraphs and chunks of whole sentences."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from ..lazy_names import lazy_pattern
from .abbreviations import FullStop, letter_after
from .chunking import (
    CLAUSES,
    UNSPACED,
    WORDS,
    Length,
    Span,
    check_sizes,
    count_tokens,
    cut_to_fit,
    measured,
    pack,
    strip_span,
)

_CLOSERS = "\"'”’»›」』）)\\]】》〉}｣〟〞＂＇＞］｝〕〗"

# End marks of Chinese, Japanese, Arabic, Urdu, Hindi, Tibetan, Burmese, Khmer, Amharic and
# Armenian.
_SURE_ENDS = "。！？｡؟۔।॥།။។።։"

_IS_UNSURE = frozenset(_SURE_ENDS).isdisjoint

# In „Ja.“ and »Ja.«, the closing marks are opening marks in other languages. « Oui. » contains a
# no-break space.
_OTHER_CLOSER = r"(?:(?:(?<=[!?.])[“«]|[ \xa0\u202f]»)(?!\S))?"

# End marks, including ". . .", with closing quotation marks, brackets and references: "so.[1]".
_CANDIDATE = lazy_pattern(
    rf"(?P<mark>[{_SURE_ENDS}!?….]+(?:[ \xa0]+[.…]+(?=[\s.…]|\Z))*)"
    rf"(?P<closers>[{_CLOSERS}]*{_OTHER_CLOSER}(?:\[\d+\])*[{_SURE_ENDS}]*)|\n\s*"
)

_WIDE = lazy_pattern(f"[{UNSPACED}\u3001-\u303f\uff01-\uff65]")

_ITEM = re.compile(r"(?:[-*+]|#{1,6}|\d{1,3}[.)])[ \t]|[•>|]|(?:\d{1,3}|[一二三四五六七八九十]+)、")

_HEADING = re.compile(r"#{1,6}[ \t]")

_HEADING_BLOCK = re.compile(r"#{1,6}[ \t][^\n]{1,200}|[^\n]{1,200}\n(?:=+|-+)[ \t]*").fullmatch

_CONTENTS_ENTRY = re.compile(r"(?:[.…][ \xa0]?){4,}\d{1,5}\Z")

# Thai and Lao are written with spaces between sentences, and with full stops only in abbreviations.
_THAI = "\u0e01-\u0eff"

_THAI_ABBREVIATION = re.compile(rf"(?<![{_THAI}])[{_THAI}]{{1,5}}\.|[{_THAI}]\.[{_THAI}]")

_THAI_SPACE = re.compile(rf"(?<=[{_THAI})\]”\"])[ \xa0]+(?=[{_THAI}(“\"])(?!ๆ)")

_THAI_LETTER = re.compile(f"[{_THAI}]")

_THAI_SENTENCE = 80  # minimum number of letters before a space that ends a sentence

# A separator of a table or a line across the page, without words.
_RULE = re.compile(r"[\s|+:=*_~#-]{3,}").fullmatch

# A quotation inside a sentence: 「…。」と言った, “…。”的说法.
_CONTINUES = re.compile("と|って|なんて|など|を|の(?![ちど])|が(?!、)|的")


def sentence_spans(text: str) -> list[Span]:
    """Return the start and end of each sentence, without whitespace at the ends.

    A sentence includes its end mark and any closing quotation marks and brackets. A blank line ends
    a sentence. A single line break ends a sentence if it is next to Chinese, Japanese or Korean
    text, or before a list item or heading, but not in hard-wrapped English text. Thai and Lao
    texts, which have no end marks, are split at spaces into pieces of at least 80 letters.
    """
    return [span for span in _spans_with_rules(text) if not _RULE(text, *span)]


def _spans_with_rules(text: str) -> list[Span]:
    """Return the spans of all sentences, and of the lines between them that contain no words."""
    ends = _marked_ends(text)
    if not text.isascii() and _THAI_LETTER.search(text):
        ends = _with_thai_ends(text, ends)
    return list(_stripped(text, ends))


def split_sentences(text: str) -> list[str]:
    """Split a text into sentences. This function can be used as the transform of a node group.

    Example:
        >>> split_sentences("他问：“你好吗？”我说很好。Dr. Who paid $3.50. OK!")
        ['他问：“你好吗？”我说很好。', 'Dr. Who paid $3.50.', 'OK!']
    """
    return [text[start:end] for start, end in sentence_spans(text)]


# Sentences are rebuilt if this number changes.
vars(split_sentences).update(spans=sentence_spans, rules=3)


def paragraph_spans(text: str) -> list[Span]:
    """Return the start and end of each paragraph, without whitespace at the ends.

    Paragraphs are separated by blank lines, and a Markdown heading belongs to the paragraph below
    it. A single line break also separates paragraphs if it is next to Chinese, Japanese or Korean
    text, or if the block contains a line with more than 120 characters, because such a block is not
    hard-wrapped.
    """
    spans: list[Span] = []
    is_open = False
    for start, end in block_spans(text):
        first = start
        if is_open:
            first, _ = spans.pop()
        spans.append((first, end))
        is_open = _HEADING_BLOCK(text, start, end) is not None
    return spans


def block_spans(text: str) -> list[Span]:
    """Return the start and end of each paragraph. A heading counts as a separate paragraph."""
    return list(_stripped(text, _paragraph_ends(text)))


def split_paragraphs(text: str) -> list[str]:
    """Split a text into paragraphs. This function can be used as the transform of a node group.

    Example:
        >>> split_paragraphs("One line,\\nwrapped.\\n\\n第一段。\\n第二段。")
        ['One line,\\nwrapped.', '第一段。', '第二段。']
    """
    return [text[start:end] for start, end in paragraph_spans(text)]


vars(split_paragraphs).update(spans=paragraph_spans, rules=2)


def _stripped(text: str, ends: Iterable[int]) -> Iterable[Span]:
    start = 0
    for end in (*ends, len(text)):
        span = strip_span(text, (start, end))
        if span[0] < span[1]:
            yield span
        start = end


def _with_thai_ends(text: str, ends: Iterable[int]) -> Iterable[int]:
    """Yield the ends of sentences, including spaces that end sentences in Thai or Lao text."""
    start = 0
    for end in (*ends, len(text)):
        if _THAI_LETTER.search(text, start, end):
            yield from _thai_ends(text, start, end)
        yield end
        start = end


def _thai_ends(text: str, start: int, end: int) -> Iterable[int]:
    """Yield the positions of spaces that end a sentence in a Thai or Lao passage."""
    for space in _THAI_SPACE.finditer(text, start, end):
        sentence = text[start : space.start()]
        size = len(sentence)
        remaining = end - space.end()
        if size < _THAI_SENTENCE or remaining < _THAI_SENTENCE // 2:
            continue
        is_open = sentence.count("(") != sentence.count(")")
        if not is_open or size >= 5 * _THAI_SENTENCE:
            start = space.end()
            yield start


def _marked_ends(text: str) -> Iterable[int]:
    for match in _CANDIDATE.finditer(text):
        start, end = match.span()
        following = text[end : end + 1]
        if not following:
            return  # This is the end of the text.
        if match["mark"] is None:
            if _breaks(text, start, end):
                yield end
        elif match["closers"] and _CONTINUES.match(text, end):
            continue
        elif match["closers"] and following.isalnum() and not re.search("[。｡]", match[0]):
            continue  # A quotation inside a sentence: “…？”他问
        elif following in "，、；：,;:":
            continue
        elif _ends(text, start, match["mark"], match["closers"], end):
            yield end


def _ends(text: str, start: int, stop: str, closers: str, end: int) -> bool:
    if not _IS_UNSURE(stop + closers):
        return True
    before = text[max(0, start - 1) : start]
    following = text[end : end + 1]
    open_end = following.isspace()
    is_dotted_line = stop[-1] in ".…" and len(stop) > 3
    if is_dotted_line and letter_after(text, end).isdigit():
        return False  # A page number follows.
    if "…" in stop:
        return open_end
    may_abbreviate = stop == "." and not closers and not text.isascii()
    if may_abbreviate and _THAI_ABBREVIATION.search(text, max(0, start - 6), end + 1):
        return False
    if not open_end and (stop != "." or not _WIDE.match(following)):
        return stop != "." and bool(_WIDE.match(before))  # Chinese text with ASCII punctuation
    if stop == ".":
        return FullStop.at(text, start, end).ends_sentence()
    if "." in stop or closers:
        return not letter_after(text, end).islower()
    return True


def _breaks(text: str, start: int, end: int) -> bool:
    if text.count("\n", start, end) > 1:
        return True
    if _WIDE.match(text, end) or _ITEM.match(text, end):
        return True
    line = text[text.rfind("\n", 0, start) + 1 : start].strip()
    if not line:
        return False
    is_entry = line[-1].isdigit() and _CONTENTS_ENTRY.search(line[-40:])
    return bool(is_entry or _WIDE.match(line[-1]) or _HEADING.match(line))


def _paragraph_ends(text: str) -> Iterable[int]:
    start = 0
    for blank in re.finditer(r"\n\s*\n", text):
        yield from _line_ends(text[start : blank.start()], start)
        start = blank.end()
        yield start
    yield from _line_ends(text[start:], start)


def _line_ends(block: str, at: int) -> Iterable[int]:
    """Yield the positions of line breaks that separate paragraphs in a block.

    The block starts at the offset ``at`` in the text.
    """
    lines = block.split("\n")
    is_unwrapped = any(len(line) > 120 for line in lines)
    for line, upcoming in pairwise(lines):
        at += len(line) + 1
        last = line.rstrip()[-1:]
        first = upcoming.lstrip()[:1]
        if is_unwrapped or _WIDE.match(last) or _WIDE.match(first):
            yield at


@dataclass(frozen=True, slots=True)
class SentenceSplitter:
    """Splits texts into chunks of whole sentences.

    This splitter is suitable for continuous text. The chunks cover the whole text. A sentence that
    is too long is split between clauses or words, or else at any position. To get one sentence per
    node, use ``split_sentences``. To keep paragraphs together, use ``RecursiveSplitter``.

    Args:
        chunk_size: The maximum length of a chunk, in units of ``length``.
        chunk_overlap: The maximum total length of the sentences that a chunk repeats from the end
            of the previous chunk.
        length: A function that returns the length of a text. Defaults to an estimate of the number
            of tokens (``count_tokens``). Use ``len`` to count characters, or the tokenizer of a
            model: ``lambda text: len(tokenizer.encode(text))``.

    Raises:
        ValueError: If the size is less than 1, or if the overlap is not less than the size.

    Example:
        >>> SentenceSplitter(chunk_size=8, chunk_overlap=0)("茶是饮品。用叶子泡。Rivers run.")
        ['茶是饮品。', '用叶子泡。Rivers run.']
    """

    chunk_size: int = 1024
    chunk_overlap: int = 100
    length: Length = count_tokens
    rules: ClassVar[int] = 3  # All chunks are rebuilt if this number changes.

    def __post_init__(self) -> None:
        check_sizes(self.chunk_size, self.chunk_overlap, self.length)

    def __call__(self, text: str) -> list[str]:
        """Split a text and return the chunks."""
        return [text[start:end] for start, end in self.spans(text)]

    def spans(self, text: str) -> list[Span]:
        """Split a text and return the start and end of each chunk, in characters."""
        measure = measured(text, self.length)
        parts: list[Span] = []
        for sentence in _spans_with_rules(text):
            parts += cut_to_fit(text, sentence, self.chunk_size, measure, (CLAUSES, WORDS))
        return pack(text, parts, self.chunk_size, self.chunk_overlap, measure)
