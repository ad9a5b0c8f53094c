"""The tools ``outline``, ``read`` and ``grep``, which list, read and scan documents."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from ...nodegraph.node import Node
from ...nodegraph.source_names import source_title
from ...nodegraph.splitters.chunking import count_tokens, shorten
from ...nodegraph.splitters.headings import markdown_headings
from ...nodegraph.text_forms import composed, composed_matches
from .corpus_view import CorpusView, file_of
from .tool_output import (
    Entry,
    Interval,
    Row,
    ToolError,
    ToolOutput,
    heading_line,
    in_line,
    location_of,
    page_of,
    quoted,
    span_of,
)

_CONTEXT_TOKENS = 30  # the number of tokens that grep displays on either side of a match

_MAX_LENGTH = 400  # the maximum length of a match and of its context on either side, in characters


def outline(view: CorpusView, max_tokens: int, *, document: str, skip: int) -> ToolOutput:
    """List the documents of the corpus or of a folder, or the headings of a document."""
    first = next(view.documents(document), None)
    names_document = bool(document) and not document.endswith("/")
    if names_document and first is None:
        records = view.records(document)
        if records:
            rows = [_FileRow(node.id, [node]) for node in records]
            return page_of(rows, max_tokens, skip, tool="outline", items="records", separator="\n")
    is_whole = first is None or composed(first.id) == composed(document)
    if names_document and is_whole:
        headings = _heading_rows(view, view.document(document))
        return page_of(headings, max_tokens, skip, tool="outline", items="headings", separator="\n")
    files = groupby(view.documents(document), file_of)
    listed = (_FileRow(file, list(nodes)) for file, nodes in files)
    output = page_of(listed, max_tokens, skip, tool="outline", items="documents", separator="\n")
    if output.entries:
        return output
    if not document:
        raise ToolError("the corpus has no documents")
    raise ToolError(f"no document is below {document!r:.200}; outline without a document lists all")


def read(
    view: CorpusView,
    max_tokens: int,
    *,
    document: str,
    start: int | None,
    end: int | None,
) -> ToolOutput:
    """Return the exact text of a part of a document."""
    node = view.document(document)
    size = len(node.text)
    first = start or 0
    stop = size if end is None else min(end, size)
    is_reversed = end is not None and end < first
    if first > size or is_reversed:
        raise ToolError(
            f"start and end must be from 0 to {size} in {node.id!r}, got {start} and {end}"
        )
    passage = view.passage_at(node, first)
    # By default, read to the end of the passage that contains the start.
    if end is None and start is not None:
        stop = max((span_of(passage) or (0, size))[1], start)
    text = _shorten_quoted(node.text[first:stop], max_tokens)
    cut = first + len(text)
    entry = location_of(passage, first, cut)
    more = ""
    if cut < size:
        more = f"\n\n{size - cut:,} more characters: read with start={cut}."
    return ToolOutput(
        f"{heading_line(entry)}\n{quoted(text)}{more}",
        [entry | {"text": text, "size": size}],
        int(cut < size),
    )


def grep(
    view: CorpusView,
    max_tokens: int,
    *,
    pattern: str,
    document: str,
    skip: int,
) -> ToolOutput:
    """Return the lines that contain a text, ignoring case."""
    if not pattern:
        raise ToolError("the pattern is empty; give the text to look for")
    sought = re.compile(re.escape(composed(pattern)), re.IGNORECASE)
    rows = _match_rows(view.documents(document), sought)
    where = f" below {document!r}" if document else ""
    empty = (
        f"{pattern!r:.200} does not occur{where}; grep finds exact text only: try a part of "
        "the text, or search for the meaning."
    )
    return page_of(rows, max_tokens, skip, tool="grep", items="matches", empty=empty)


def _shorten_quoted(text: str, tokens: int) -> str:
    """Truncate a text to a number of tokens, including the prefixes of its lines."""
    text = shorten(text, tokens)
    while (used := count_tokens(quoted(text))) > tokens:
        shorter = shorten(text, max(1, count_tokens(text) * tokens // used))
        if shorter == text:
            break
        text = shorter
    return text


class _FileRow(NamedTuple):
    """A file, which contains a single document or several records.

    Attributes:
        file: The name of the file.
        nodes: The documents in the file.
    """

    file: str
    nodes: Sequence[Node]

    def formatted(self) -> tuple[str, Entry]:
        """Return the row as text and as JSON values."""
        tokens = sum(count_tokens(node.text) for node in self.nodes)
        if len(self.nodes) > 1:
            count = len(self.nodes)
            entry = {"document": self.file, "title": "", "tokens": tokens, "records": count}
            return in_line(f"{self.file} ({tokens:,} tokens, {count:,} records)"), entry
        node = self.nodes[0]
        title = source_title(node.metadata)
        name = f" {title}" if title and title not in node.id else ""
        entry = {"document": node.id, "title": title, "tokens": tokens}
        return in_line(f"{node.id} ({tokens:,} tokens){name}"), entry


def _heading_rows(view: CorpusView, node: Node) -> Iterator[Row]:
    """Yield a row for each heading. Without headings, the passages are listed."""
    headings = list(markdown_headings(node.text))
    if not headings:
        for passage in view.passages(node):
            if span := span_of(passage):
                headings.append((span[0], 1, " ".join(shorten(passage.text, 12).split())))
    ends = [start for start, _, _ in headings[1:]] + [len(node.text)]
    for heading, end in zip(headings, ends, strict=True):
        yield _HeadingRow(node, *heading, end)


class _HeadingRow(NamedTuple):
    """A heading with the span of its section.

    Attributes:
        node: The document.
        start: The start of the section in the document's text, in characters.
        level: The level of the heading, which is 1 for the highest level.
        text: The text of the heading.
        end: The end of the section, in characters.
    """

    node: Node
    start: int
    level: int
    text: str
    end: int

    def formatted(self) -> tuple[str, Entry]:
        """Return the row as text and as JSON values."""
        tokens = count_tokens(self.node.text[self.start : self.end])
        entry = {"document": self.node.id, "heading": self.text, "level": self.level}
        entry |= {"start": self.start, "end": self.end, "tokens": tokens}
        line = in_line(f"- {self.text} [{self.start}:{self.end}] ({tokens:,} tokens)")
        return f"{'  ' * max(0, self.level - 1)}{line}", entry


def _match_rows(documents: Iterable[Node], pattern: re.Pattern[str]) -> Iterator[Row]:
    """Yield a row for each match that is not already visible in the excerpt before it."""
    for node in documents:
        shown = 0
        for match in composed_matches(pattern, node.text):
            start, end = match
            if start >= shown:
                excerpt = _excerpt(node.text, start, end)
                shown = excerpt[1]
                yield _MatchRow(node, match, excerpt)


def _excerpt(text: str, start: int, end: int) -> Interval:
    """Return the span of the line around a match.

    Long lines and very long matches are truncated.
    """
    before = text[max(text.rfind("\n", 0, start) + 1, start - _MAX_LENGTH) : start]
    first = start - len(shorten(before[::-1], _CONTEXT_TOKENS))
    if end > start + _MAX_LENGTH:
        return first, start + _MAX_LENGTH
    behind = text[end : end + _MAX_LENGTH].partition("\n")[0]
    return first, end + len(shorten(behind, _CONTEXT_TOKENS))


class _MatchRow(NamedTuple):
    """The location of a match together with the text around it.

    Attributes:
        node: The document.
        match: The span of the match in the document's text.
        excerpt: The span of the text around the match.
    """

    node: Node
    match: Interval
    excerpt: Interval

    def formatted(self) -> tuple[str, Entry]:
        """Return the row as text and as JSON values."""
        text = self.node.text
        first, last = self.excerpt
        entry = location_of(self.node, *self.match)
        entry |= {"text": text[slice(*self.match)][:_MAX_LENGTH], "context": text[first:last]}
        before = "… " if text[max(0, first - 1) : first].strip("\n") else ""
        after = " …" if text[last : last + 1].strip("\n") else ""
        title = f"{heading_line(entry)} (line {entry['line']})"
        return f"{title}\n{quoted(f'{before}{text[first:last]}{after}')}", entry
