"""The tools ``outline``, ``read`` and ``grep``, and the visible part of a graph."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from operator import itemgetter

from ...nodegraph.errors import nearest_names
from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import Node
from ...nodegraph.search_text import file_name_of, source_title
from ...nodegraph.splitters.chunking import count_tokens, shorten
from ...nodegraph.splitters.headings import markdown_headings
from ..filters import Filters, parse_filters
from .tool_output import (
    Entry,
    Interval,
    Row,
    ToolError,
    ToolOutput,
    ToolSession,
    heading_line,
    in_line,
    location_of,
    page_of,
    quoted,
    reference_line,
    span_of,
)

_AT_ONCE = 200  # maximum number of documents with texts in memory


class CorpusView:
    """The documents and passages of a graph that meet conditions.

    Args:
        graph: The node graph.
        target: The group of passages.
        filters: Conditions on the metadata of documents. Other documents are invisible to the
            tools.
    """

    def __init__(self, graph: NodeGraph, target: str, filters: Filters | None = None) -> None:
        self.graph = graph
        self.target = target
        self._allowed = parse_filters(filters)

    def documents(self, folder: str = "") -> Iterator[Node]:
        """Yield the documents, loaded in batches.

        Args:
            folder: Only the documents in this folder, or the document with this id.
        """
        folder = folder.strip().rstrip("/")
        ids = iter(self.graph.reader.document_ids())
        if folder:
            ids = (i for i in ids if i == folder or i.startswith(f"{folder}/"))
        while subset := list(islice(ids, _AT_ONCE)):
            yield from (node for node in self.graph.reader.nodes_by_id(subset) if self.allows(node))

    def document(self, name: str) -> Node:
        """Return the document with an id, or the only one with a path suffix, title or file name.

        Raises:
            ToolError: If no document or several documents match. The message lists similar names.
        """
        ids = self.graph.reader.document_ids()
        names = [name] if name in set(ids) else [i for i in ids if i.endswith(f"/{name}")]
        nodes = map(self.graph.node, names) if names else self._named(name)
        matching = list(islice(filter(self.allows, nodes), 9))
        if len(matching) == 1:
            return matching[0]
        if matching:
            listed = ", ".join(repr(node.id) for node in matching[:8])
            raise ToolError(f"{name!r:.200} is several documents; give one of these: {listed}")
        existing = [node.id for node in islice(self.documents(), 2_000)]
        raise ToolError(
            f"unknown document {name!r:.200}; known: {nearest_names(name, existing)}. "
            "outline lists all"
        )

    def _named(self, name: str) -> Iterator[Node]:
        for node in self.documents():
            if name in (node.metadata.get("title"), file_name_of(node.metadata)):
                yield node

    def passages(self, document: Node) -> Sequence[Node]:
        """Return the passages of a document, in order."""
        results: Sequence[Node] = self.graph.find(self.target)(document)
        return results

    def passage_at(self, document: Node, at: int) -> Node:
        """Return the passage that contains a position, or the passage before it."""
        passages = [(span[0], node) for node in self.passages(document) if (span := span_of(node))]
        if not passages:
            return document
        return passages[max(0, bisect_right(passages, at, key=itemgetter(0)) - 1)][1]

    def allows(self, node: Node) -> bool:
        """Return whether a node meets the conditions."""
        return self._allowed.matches(node)


_CONTEXT_TOKENS = 30  # tokens of a line before and after a match in grep

_MAX_LENGTH = 400  # maximum characters of a match, and of its context on either side


class ReadingTools:
    """The tools that read documents.

    Args:
        view: The visible part of the graph.
    """

    def __init__(self, view: CorpusView) -> None:
        self.view = view

    def outline(self, document: str, skip: int, max_tokens: int) -> ToolOutput:
        """Return the documents of the corpus or of a folder, or the headings of a document."""
        first = next(self.view.documents(document), None)
        is_folder = not document or document.endswith("/") or (first and first.id != document)
        if not is_folder:
            return self._headings(self.view.document(document), skip, max_tokens)
        rows = (partial(_document_row, node) for node in self.view.documents(document))
        options = {"tool": "outline", "items": "documents", "separator": "\n"}
        output = page_of(rows, max_tokens, skip, **options)
        if output is None:
            raise ToolError(
                f"no document is below {document!r:.200}; outline without a document lists all"
                if document
                else "the corpus has no documents"
            )
        return output

    def _headings(self, node: Node, skip: int, max_tokens: int) -> ToolOutput:
        headings = list(markdown_headings(node.text)) or list(self._first_words(node))
        ends = [start for start, _, _ in headings[1:]] + [len(node.text)]
        rows = (
            partial(_heading_row, node, *heading, end)
            for heading, end in zip(headings, ends, strict=True)
        )
        options = {"tool": "outline", "items": "headings", "separator": "\n"}
        return page_of(rows, max_tokens, skip, **options) or ToolOutput("")

    def _first_words(self, node: Node) -> Iterator[tuple[int, int, str]]:
        """Yield the start and the first words of each passage, for a document without headings."""
        for passage in self.view.passages(node):
            if span := span_of(passage):
                yield span[0], 1, " ".join(shorten(passage.text, 12).split())

    def read(
        self,
        document: str,
        start: int | None,
        end: int | None,
        max_tokens: int,
        session: ToolSession,
    ) -> ToolOutput:
        """Return the exact text of a part of a document."""
        node = self.view.document(document)
        size = len(node.text)
        start_at = 0 if start is None else start
        if not 0 <= start_at <= size or (end is not None and end < start_at):
            raise ToolError(
                f"{node.id!r} has the characters 0 to {size}; start={start}, end={end} is no part"
            )
        if end is not None:
            stop = min(end, size)
        elif start is None:
            stop = size
        else:  # the end of the passage that contains the start
            span = span_of(self.view.passage_at(node, start_at)) or (0, size)
            stop = max(span[1], start_at)
        text = _shorten_quoted(node.text[start_at:stop], max_tokens)
        cut = start_at + len(text)
        session.show(node.id, start_at, cut)
        entry = location_of(self.view.passage_at(node, start_at), start_at, cut)
        more = f"\n\n{size - cut:,} more characters: read with start={cut}." if cut < size else ""
        return ToolOutput(
            f"{heading_line(entry)}\n{quoted(text)}{more}",
            [entry | {"text": text, "size": size}],
            int(cut < size),
        )

    def grep(self, pattern: str, document: str, skip: int, max_tokens: int) -> ToolOutput:
        """Return the lines with a text, in any case. Very long matches are truncated."""
        if not pattern:
            raise ToolError("the pattern is empty; give the text to look for")
        sought = re.compile(re.escape(pattern), re.IGNORECASE)
        rows = _match_rows(self.view.documents(document), sought)
        where = f" below {document!r}" if document else ""
        return page_of(rows, max_tokens, skip, tool="grep", items="matches") or ToolOutput(
            f"{pattern!r:.200} does not occur{where}; grep finds exact text only: try a part of "
            "the text, or search for the meaning."
        )


def _shorten_quoted(text: str, tokens: int) -> str:
    """Truncate a text to a number of tokens, including the line prefixes."""
    text = shorten(text, tokens)
    while (used := count_tokens(quoted(text))) > tokens:
        shorter = shorten(text, max(1, count_tokens(text) * tokens // used))
        if shorter == text:
            break
        text = shorter
    return text


def _document_row(node: Node) -> tuple[str, Entry]:
    title, tokens = source_title(node.metadata), count_tokens(node.text)
    name = f" {title}" if title and title not in node.id else ""
    entry = {"document": node.id, "title": title, "tokens": tokens}
    return in_line(f"{node.id} ({tokens:,} tokens){name}"), entry


def _heading_row(node: Node, start: int, level: int, text: str, end: int) -> tuple[str, Entry]:
    tokens = count_tokens(node.text[start:end])
    entry = {"document": node.id, "heading": text, "level": level}
    entry |= {"start": start, "end": end, "tokens": tokens}
    line = in_line(f"- {text} [{start}:{end}] ({tokens:,} tokens)")
    return f"{'  ' * max(0, level - 1)}{line}", entry


def _match_rows(documents: Iterable[Node], pattern: re.Pattern[str]) -> Iterator[Row]:
    """Yield a row for each match. A match in the lines of the row above refers to these lines."""
    for node in documents:
        visible: list[Interval] = []  # the lines in the last row of the document
        for match in pattern.finditer(node.text):
            yield partial(_match_row, node, match.span(), visible)


def _match_row(node: Node, match: Interval, visible: list[Interval]) -> tuple[str, Entry]:
    entry, window = _match_entry(node, *match)
    if visible and visible[0][0] <= match[0] and match[1] <= visible[0][1]:
        return reference_line(entry, "in the line above"), entry
    lines = _format_lines(entry, node.text, window)
    text = f"{heading_line(entry, titled=not visible)} (line {entry['line']})\n{lines}"
    visible[:] = [window]
    return text, entry


def _match_entry(node: Node, start_at: int, end: int) -> tuple[Entry, Interval]:
    """Return the location of a match, and the span of its context."""
    text = node.text
    first, last = text.rfind("\n", 0, start_at) + 1, text.find("\n", end)
    last = len(text) if last < 0 else last
    stop = min(end, start_at + _MAX_LENGTH)
    before = text[max(first, start_at - _MAX_LENGTH) : start_at]
    from_ = start_at - len(shorten(before[::-1], _CONTEXT_TOKENS))
    to = stop
    if stop == end:
        to += len(shorten(text[end : min(last, end + _MAX_LENGTH)], _CONTEXT_TOKENS))
    entry = location_of(node, start_at, end) | {
        "text": text[start_at:stop],
        "context": text[from_:to],
    }
    return entry, (from_, to)


def _format_lines(entry: Entry, text: str, window: Interval) -> str:
    """Return the lines of a match, with ellipses at truncated ends."""
    start_at, end = window
    before = "… " if start_at and text[start_at - 1] != "\n" else ""
    after = " …" if end < len(text) and text[end] != "\n" else ""
    return quoted(f"{before}{entry['context']}{after}")
