"""Choose the part of a passage that shows best why it was found, and mark what matched."""

from __future__ import annotations

import re
import shutil
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence

from ...nodegraph.splitters.chunking import UNSPACED
from ...nodegraph.splitters.sentences import sentence_spans
from ...retrievers.analysis.text_analyzer import TextAnalyzer
from .exit_status import printable

Span = tuple[int, int]


def matches(text: str, query: str) -> list[Span]:
    """Return where a text has the words of a query, in order, touching ones as one.

    Words match by their stem in the text's language. A Chinese character alone only counts where
    it stands alone in the query.

    Example:
        >>> [("长江的 Rivers"[a:b]) for a, b in matches("长江的 Rivers", "长江 river 的水")]
        ['长江', 'Rivers']
    """
    analyze = TextAnalyzer().like(text)
    terms = set(analyze.query(query)).intersection(analyze.words(query))
    unspaced = {term for term in terms if _unspaced(term)}
    several = {term for term in unspaced if len(term) > 1}
    single_characters = unspaced - several - set("".join(several))
    sizes = {len(term) for term in several}
    spans: list[Span] = []
    for start, end in analyze.spans(text):
        if not _unspaced(text[start]):
            if terms.intersection(analyze.words(text[start:end])):
                spans.append((start, end))
            continue
        for at in range(start, end):
            if text[at] in single_characters:
                spans.append((at, at + 1))
            spans += ((at, at + n) for n in sizes if text[at : at + n] in several)
    return _merged(sorted(spans))


def _unspaced(text: str) -> bool:
    return re.fullmatch(f"[{UNSPACED}]+", text) is not None


def _merged(spans: Sequence[Span]) -> list[Span]:
    merged: list[Span] = []
    for start, end in spans:
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def best_sentence(text: str, spans: Sequence[Span]) -> Span:
    """Return the sentence with the most different matches, the first of equals."""
    sentences = sentence_spans(text) or [(0, len(text))]
    starts = [start for start, _ in sentences]
    having: dict[int, set[str]] = {}
    for start, end in spans:
        at = max(0, bisect_right(starts, start) - 1)
        having.setdefault(at, set()).add(text[start:end].casefold())
    best = max(having, key=lambda at: (sum(map(len, having[at])), -at), default=0)
    return sentences[best]


def snippet(
    text: str, query: str, width: int, mark: Callable[[str], str], part: Span | None = None
) -> str:
    """Return the part of a text around its best sentence, as one line, matches marked.

    Args:
        text: The passage.
        query: What was searched for.
        width: How many columns it may take.
        mark: Puts a mark on a match.
        part: The part that matched, where that is known better than by words.
    """
    text = printable(text)
    spans = matches(text, query)
    start, end = best_sentence(text, spans) if part is None else part
    inside = [span for span in spans if start <= span[0] < end]
    if columns(text[start:end]) > width and inside and columns(text[start : inside[0][1]]) > width:
        start = _step_back(text, inside[0][0], start, width // 4)
    if columns(text) <= width:
        start, end = 0, len(text)
    elif start and columns(text[start:]) < width:  # the last of the passage: fill up before it
        start = _step_back(text, len(text), 0, width - 4)
    end = _step_on(text, start, width - 4)
    inside = [(a - start, b - start) for a, b in spans if a >= start and b <= end]
    excerpt = " ".join(highlight(text[start:end], inside, mark).split())
    return f"{'… ' if text[:start].strip() else ''}{excerpt}{' …' if text[end:].strip() else ''}"


def _step_back(text: str, at: int, least: int, width: int) -> int:
    """Return a place before another one, as far as there is room, where a word begins."""
    start, used = at, 0
    while start > least and used + columns(text[start - 1]) <= width:
        start -= 1
        used += columns(text[start])
    while least < start < at and (_inside_word(text, start) or text[start] in _NEVER_FIRST):
        start += 1
    return start


def _step_on(text: str, start: int, width: int) -> int:
    """Return the place up to which there is room, not inside a word."""
    end, used = start, 0
    while end < len(text) and used + columns(text[end]) <= width:
        used += columns(text[end])
        end += 1
    full = end
    while end < len(text) and end > start and _inside_word(text, end):
        end -= 1
    return end if end > start else full


def _inside_word(text: str, at: int) -> bool:
    pair = text[at - 1 : at + 1]
    return len(pair) == 2 and pair.isalnum() and not any(map(_unspaced, pair))


def highlight(text: str, spans: Iterable[Span], mark: Callable[[str], str]) -> str:
    """Return a text with a mark on each of the spans, which are in order."""
    parts, at = [], 0
    for start, end in spans:
        parts += [text[at:start], mark(text[start:end])]
        at = end
    return "".join([*parts, text[at:]])


_ANSI = re.compile("\x1b\\[[0-9;]*m")

_WORD = "[!-~\u00a0-\u02af]"

# Words, white space, single characters of other scripts; each with the colours it is given.
_UNBROKEN = re.compile(
    f"(?:{_ANSI.pattern}|{_WORD})*{_WORD}(?:\x1b\\[0m)?|[ \t]+|(?:{_ANSI.pattern})*.(?:\x1b\\[0m)?",
    re.DOTALL,
)

_NEVER_FIRST = frozenset("，。、；：？！”’」』）》】…,.;:?!)]}% ")


def columns(text: str) -> int:
    """Return how many columns a text takes: two for Chinese, none for combining marks and colour.

    Example:
        >>> columns("tea"), columns("绿茶"), columns("e\\u0301")
        (3, 4, 1)
    """
    if text.isascii():
        return len(_ANSI.sub("", text))
    return sum(map(_columns_of, _ANSI.sub("", text)))


def _columns_of(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf", "Cc"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def pad(text: str, width: int) -> str:
    """Fill a text up with spaces to a number of columns."""
    return text + " " * (width - columns(text))


def cut(text: str, width: int) -> str:
    """Shorten a text to a number of columns, an ellipsis saying so.

    Example:
        >>> cut("绿茶是不发酵的", 9)
        '绿茶是不…'
    """
    if columns(text) <= width:
        return text
    result, used = "", 0
    for character in text:
        used += _columns_of(character)
        if used > width - 1:
            break
        result += character
    return result + "…"


def wrap(text: str, width: int) -> list[str]:
    """Break a text into lines of a number of columns: at spaces, and anywhere in Chinese.

    A closing mark does not begin a line, but hangs over its end, once; what has no place to
    break is broken anyway.

    Example:
        >>> wrap("绿茶是茶，green tea", 10)
        ['绿茶是茶，', 'green tea']
    """
    return list(_lines(text, width))


def _lines(text: str, width: int) -> Iterator[str]:
    line, used = "", 0
    for token in unbroken(" ".join(text.split())):
        size = columns(token)
        plain_token = _ANSI.sub("", token)
        hangs = hangs_over(plain_token) and used <= width
        if used + size > width and used and plain_token.strip() and not hangs:
            yield line.rstrip()
            line, used = "", 0
        while size > width:  # a word longer than the line, which loses its colour
            yield plain_token[:width]
            token = plain_token = plain_token[width:]
            size = columns(plain_token)
        if used or token.strip():
            line, used = line + token, used + size
    if line.strip():
        yield line.rstrip()


def hangs_over(part: str) -> bool:
    """Return whether it is a closing mark, which does not begin a line."""
    return part in _NEVER_FIRST


def unbroken(text: str) -> list[str]:
    """Return the parts of a text between which a line may be broken: words, spaces, signs.

    Example:
        >>> unbroken("绿茶 tea.")
        ['绿', '茶', ' ', 'tea.']
    """
    return _UNBROKEN.findall(text)


def terminal_columns() -> int:
    """Return the width of the terminal, 80 where there is none, 120 at most for reading."""
    return max(40, min(120, shutil.get_terminal_size((80, 24)).columns))
