"""Show results to a reader: the score, the location, the part of the text that matters."""

from __future__ import annotations

import json
import os
import re
import shutil
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from ...nodegraph.node import Node
from ...nodegraph.readers.formats import has_lines
from ...nodegraph.search_text import file_name_of
from ...nodegraph.splitters.chunking import UNSPACED
from ...nodegraph.splitters.sentences import sentence_spans
from ...retrievers.analysis.text_analyzer import TextAnalyzer
from ...retrievers.results import Evidence, ScoredNode
from ...retrievers.tracing import Span as StageSpan
from .exit_status import escaped, printable

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


_INDENT = "   "

_LINES = 3


def mark(text: str) -> str:
    """Mark a match for terminals; what goes elsewhere is freed of it."""
    return click.style(text, fg="red", bold=True)


def echo(text: str = "") -> None:
    """Write a line to standard output, without colour where nobody wants it."""
    click.echo(text, color=False if os.environ.get("NO_COLOR") else None)


def listing(results: Sequence[ScoredNode], query: str, *, full: bool) -> Iterator[str]:
    """Yield the lines that show the results.

    Args:
        results: Best first.
        query: What was searched for, to be marked.
        full: Whether the whole texts are shown, as they are.
    """
    line_numbers = LineNumbers()
    for rank, result in enumerate(results, 1):
        node = result.node
        if rank > 1:
            yield ""
        part = matched_part(result)
        number = click.style(f"{rank}.", bold=True)
        where = click.style(place(node, line_numbers, query, part), fg="green")
        yield f"{number} {where}  {click.style(f'{result.score:.3f}  {node.group}', dim=True)}"
        if full:
            text = printable(str(node.content))
            lines = highlight(text, matches(text, query), mark).split("\n")
            yield from (_INDENT + line if line else "" for line in lines)
            continue
        capacity = terminal_columns() - len(_INDENT)
        excerpt = snippet(str(node.content), query, _LINES * (capacity - 3), mark, part)
        yield from (_INDENT + line for line in wrap(excerpt, capacity))


def matched_part(result: ScoredNode) -> tuple[int, int] | None:
    """Return which part of a result its best match was that is not the result itself."""
    node = result.node
    for match in result.evidence:
        inner = match.node
        if inner.id == node.id:
            continue
        if inner.document_id != node.document_id:
            return None
        if inner.start is None or inner.end is None or node.content != node.text:
            return None
        start = inner.start - (node.start or 0)
        if start >= 0 and node.text[start : start + len(inner.text)] == inner.text:
            return start, start + len(inner.text)
    return None


def place(
    node: Node, line_numbers: LineNumbers, query: str = "", part: tuple[int, int] | None = None
) -> str:
    """Return the document and the line in it where what matched begins: ``docs/tea.md:12``.

    Of a file that has pages, or that is no text, the page and the heading.
    """
    if node.start is not None and not has_lines(file_name_of(node.metadata) or ""):
        file = file_name_of(node.metadata) or ""
        return document_name(node) + printable(node.place.removeprefix(file))
    if part is None:
        part = best_sentence(node.text, matches(node.text, query)) if query else (0, 0)
    line = line_numbers.line(node, part[0])
    name = document_name(node)
    return name if line is None else f"{name}:{line}"


def document_name(node: Node) -> str:
    """Return the file's path where it lies below the current folder, else the document's id."""
    path = node.metadata.get("file_path")
    if path and "#" not in node.document_id:
        try:
            return printable(Path(str(path)).absolute().relative_to(Path.cwd()).as_posix())
        except ValueError:
            pass
    return printable(node.document_id or node.id)


FORMAT = 1
"""The number of the form, told in every document; fields may come, none goes or changes."""


def to_json(record: Mapping[str, Any], *, indent: int | None = 2) -> str:
    """Write a record; what JSON has no form for becomes its text.

    Characters that a terminal takes for commands are escapes.
    """
    return escaped(json.dumps(record, ensure_ascii=False, indent=indent, default=str))


class LineNumbers:
    """Tell where nodes stand in their documents; read each document once."""

    def __init__(self) -> None:
        self._breaks: dict[str, list[int]] = {}

    def line(self, node: Node, offset: int = 0) -> int | None:
        """Return the line of a node in its document, from 1; None where it was not cut out."""
        if node.start is None or not node.document_id or node.graph is None:
            return None
        if node.document_id not in self._breaks:
            text = node.root.text
            self._breaks[node.document_id] = [at for at, c in enumerate(text) if c == "\n"]
        return bisect_right(self._breaks[node.document_id], node.start + offset - 1) + 1


def result_record(rank: int, result: ScoredNode, line_numbers: LineNumbers) -> dict[str, Any]:
    """Return one result: where it is, what it says, how it was found."""
    node = result.node
    return {
        "rank": rank,
        "score": result.score,
        **_node_record(node, line_numbers),
        "path": node.metadata.get("file_path"),
        "place": node.place,
        "text": node.content if isinstance(node.content, str) else node.text,
        "metadata": node.metadata,
        "matches": [_match_record(match, line_numbers) for match in result.evidence],
    }


def _node_record(node: Node, line_numbers: LineNumbers) -> dict[str, Any]:
    return {
        "id": node.id,
        "group": node.group,
        "document": node.document_id or None,
        "line": line_numbers.line(node),
        "start": node.start,
        "end": node.end,
    }


_MATCH_FIELDS = ("score", "similarity", "query", "embed_key", "share")


def _match_record(match: Evidence, line_numbers: LineNumbers) -> dict[str, Any]:
    return {
        **_node_record(match.node, line_numbers),
        **{name: getattr(match, name) for name in _MATCH_FIELDS},
        "variants": [asdict(variant) for variant in match.variants],
        "text": match.node.text,
    }


def stage_record(span: StageSpan) -> dict[str, Any]:
    """Return what a stage of a retrieval did, and the stages within it."""
    return {
        "name": span.name,
        "attributes": {key: _plain(value) for key, value in span.attributes.items()},
        "seconds": span.seconds,
        "error": None if span.error is None else f"{type(span.error).__name__}: {span.error}",
        "children": [stage_record(child) for child in span.children],
    }


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if isinstance(value, str | int | float | None) else repr(value)
