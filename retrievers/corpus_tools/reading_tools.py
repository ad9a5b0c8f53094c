"""The tools ``outline``, ``read`` and ``grep``, and the visible part of a graph."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any

from ...nodegraph.errors import nearest_names
from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import Node
from ...nodegraph.search_text import file_name_of, source_title
from ...nodegraph.splitters.chunking import count_tokens, shorten
from ...nodegraph.splitters.headings import markdown_headings
from ..filters import Filters, parse_filters
from .tool_output import (
    Interval,
    OutputBuilder,
    ToolError,
    ToolOutput,
    ToolSession,
    heading_line,
    in_line,
    location_of,
    quoted,
    reference_line,
    span_of,
)

_AT_ONCE = 200  # maximum number of documents with texts in memory

_COUNTED, _FIELDS, _VALUES = 2_000, 8, 4  # maximum documents, fields and values in a filter hint

_LONGEST_VALUE = 40  # characters


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

    def documents(self, folder: str = "", *, after: str | None = None) -> Iterator[Node]:
        """Yield the documents, or the documents in a folder. Texts are loaded in batches.

        Args:
            folder: A folder, or a document's id.
            after: The id of the document before the first result.

        Raises:
            ToolError: If the document ``after`` does not exist.
        """
        existing = self.graph.reader.document_ids()
        if after is not None:
            if after not in existing or not self.allows(self.graph.node(after)):
                raise ToolError(f"there is no page {after!r:.80}; list from the beginning")
            existing = existing[existing.index(after) + 1 :]
        ids = (i for i in existing if is_below(i, folder))
        while subset := list(islice(ids, _AT_ONCE)):
            yield from (node for node in self.graph.reader.nodes_by_id(subset) if self.allows(node))

    def document(self, name: str) -> Node:
        """Return the document with an id, or the only document with this path suffix or name.

        A name is a title or a file name.

        Raises:
            ToolError: If no document or several documents match. The message lists similar names.
        """
        ids = self.graph.reader.document_ids()
        results = [name] if name in set(ids) else [i for i in ids if i.endswith(f"/{name}")]
        if not results:
            nodes = self.documents()
            results = [
                n.id for n in nodes if name in (n.metadata.get("title"), file_name_of(n.metadata))
            ]
        named = (self.graph.node(i) for i in results)
        matching = list(islice(filter(self.allows, named), 9))
        if len(matching) == 1:
            return matching[0]
        if matching:
            listed = ", ".join(repr(node.id) for node in matching[:8])
            raise ToolError(f"{name!r:.200} is several documents; give one of these: {listed}")
        existing = [node.id for node in islice(self.documents(), 2_000)]
        raise ToolError(
            f"there is no document {name!r:.200}; there is {nearest_names(name, existing)}. "
            "outline lists all"
        )

    def values(self) -> str:
        """Return the metadata fields with their most frequent values, as a hint for filters."""
        counts: dict[str, Counter[str]] = {}
        for node in islice(self.documents(), _COUNTED):
            for name, value in node.own_metadata.items():
                if isinstance(value, str | int | float) and len(str(value)) <= _LONGEST_VALUE:
                    counts.setdefault(name, Counter())[repr(value)] += 1

        def usefulness(name: str) -> tuple[bool, int, str]:
            """Sort fields with several values, each in several documents, first."""
            count = len(counts[name])
            return not 1 < count <= counts[name].total() / 2, count, name

        fields = sorted(counts, key=usefulness)[:_FIELDS]
        return "; ".join(
            f"{name}: {', '.join(value for value, _ in counts[name].most_common(_VALUES))}"
            f"{', ...' if len(counts[name]) > _VALUES else ''}"
            for name in fields
        )

    def passages(self, document: Node) -> Sequence[Node]:
        """Return the passages of a document, in order."""
        results: Sequence[Node] = self.graph.find(self.target)(document)
        return results

    def passage_at(self, document: Node, at: int) -> Node:
        """Return the passage that contains a position, or the passage before it."""
        passages = [node for node in self.passages(document) if span_of(node)]
        starts = [(span_of(node) or (0, 0))[0] for node in passages]
        if not passages:
            return document
        return passages[max(0, bisect_right(starts, at) - 1)]

    def allows(self, node: Node) -> bool:
        """Return whether a node meets the conditions."""
        return self._allowed.matches(node)


def is_below(document_id: str, folder: str) -> bool:
    """Return whether a document is in a folder or has this id."""
    folder = folder.strip().rstrip("/")
    return not folder or document_id == folder or document_id.startswith(f"{folder}/")


_CONTEXT_TOKENS = 30  # tokens of a line before and after a match in grep

_MAX_LENGTH = 400  # maximum characters of a match, and of its context on either side

_REFERENCE = 40  # characters: shorter parts are repeated instead of referenced


class ReadingTools:
    """The tools that read documents.

    Args:
        view: The visible part of the graph.
    """

    def __init__(self, view: CorpusView) -> None:
        self.view = view

    def outline(self, document: str, skip: int, max_tokens: int) -> ToolOutput:
        """Return the documents of the corpus or of a folder, or the headings of a document."""
        builder = OutputBuilder(max_tokens)
        if document and not document.endswith("/"):
            node = self._document_or_none(document)
            if node is not None:
                return self._headings(node, skip, builder)
        rows = (partial(_document_row, node) for node in self.view.documents(document))
        index, omitted = builder.add_page(rows, skip)
        if not builder.size:
            if skip:
                raise ToolError(f"there are only {index} documents; give a smaller skip")
            raise ToolError(
                f"no document is below {document!r:.200}; outline without a document lists all"
                if document
                else "the corpus has no documents"
            )
        more = (
            f"{omitted:,} more documents: outline with skip={skip + builder.size}, or with a "
            "folder as document."
            if omitted
            else ""
        )
        return builder.output(omitted, more, separator="\n")

    def _document_or_none(self, name: str) -> Node | None:
        try:
            return self.view.document(name)
        except ToolError:
            if any(True for _ in self.view.documents(name)):
                return None
            raise

    def _headings(self, node: Node, skip: int, builder: OutputBuilder) -> ToolOutput:
        headings = list(markdown_headings(node.text)) or list(self._first_words(node))
        ends = [start_at for start_at, _, _ in headings[1:]] + [len(node.text)]
        rows = [
            partial(_heading_row, node, heading, end)
            for heading, end in zip(headings, ends, strict=True)
        ]
        _, omitted = builder.add_page(rows, skip)
        if skip and not builder.size:
            raise ToolError(f"{node.id!r} has only {len(headings)} headings; give a smaller skip")
        more = f"{omitted:,} more: outline with skip={skip + builder.size}." if omitted else ""
        return builder.output(omitted, more, separator="\n")

    def _first_words(self, node: Node) -> Iterator[tuple[int, int, str]]:
        """Yield the start and the first words of each passage, for a document without headings."""
        for passage in self.view.passages(node):
            span = span_of(passage)
            if span:
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
        if end is None:  # to the end of the passage that contains the start
            span = span_of(self.view.passage_at(node, start_at)) or (0, size)
            stop = size if start is None else max(span[1], start_at)
        else:
            stop = min(end, size)
        if stop > start_at and not session.unseen(node, start_at, stop):
            entry = location_of(node, start_at, stop) | {"shown_before": True, "text": None}
            remainder = f"; read on with start={stop}" if stop < size else ""
            return ToolOutput(reference_line(entry, f"shown before{remainder}"), [entry])
        is_new = not session.knows(node.id)
        entries, lines, cut = self._parts(node, start_at, stop, max_tokens, session)
        title = heading_line(entries[0] | {"start": start_at, "end": cut}, titled=is_new)
        more = f"\n\n{size - cut:,} more characters: read with start={cut}." if cut < size else ""
        return ToolOutput("\n".join([title, *lines]) + more, entries, int(cut < size))

    def _parts(
        self, node: Node, start_at: int, stop: int, remaining: int, session: ToolSession
    ) -> tuple[list[dict[str, Any]], list[str], int]:
        """Return the new parts, references to parts read before, and the end."""
        entries, lines, at = list[dict[str, Any]](), list[str](), start_at

        def refer(end: int) -> None:
            lines.append(f"([{at}:{end}] shown before)")
            entries.append(location_of(node, at, end) | {"shown_before": True, "text": None})

        for a, b in session.unseen(node, start_at, stop, _REFERENCE) or [(start_at, stop)]:
            if a > at:
                refer(a)
            text = _shorten_quoted(node.text[a:b], remaining)
            at, remaining = a + len(text), remaining - count_tokens(quoted(text))
            position = location_of(self.view.passage_at(node, a), a, at)
            entries.append(position | {"text": text, "size": len(node.text)})
            lines.append(quoted(text))
            session.show(node.id, a, at)
            if at < b or remaining <= 0:
                return entries, lines, at
        if node.text[at:stop].strip():
            refer(stop)
        return entries, lines, stop

    def grep(
        self, pattern: str, regex: bool, document: str, skip: int, max_tokens: int
    ) -> ToolOutput:
        """Return the lines that match a pattern. Very long matches are truncated."""
        if not pattern:
            raise ToolError("the pattern is empty; give the text to look for")
        builder = OutputBuilder(max_tokens)
        documents = self.view.documents(document)
        index, omitted = builder.add_page(_match_rows(documents, _finder(pattern, regex)), skip)
        if index and not builder.size:
            raise ToolError(f"there are only {index:,} matches; give a smaller skip")
        if not builder.size:
            where = f" below {document!r}" if document else ""
            return ToolOutput(
                f"{pattern!r:.200} stands nowhere{where}; grep looks for exact text: try a part of "
                "it, or search for what it means."
            )
        more = f"{omitted:,} more: grep with skip={skip + builder.size}." if omitted else ""
        return builder.output(omitted, more)


def _shorten_quoted(text: str, tokens: int) -> str:
    """Truncate a text to a number of tokens, including the line prefixes."""
    text = shorten(text, tokens)
    while (used := count_tokens(quoted(text))) > tokens:
        shorter = shorten(text, max(1, count_tokens(text) * tokens // used))
        if shorter == text:
            break
        text = shorter
    return text


def _document_row(node: Node) -> tuple[str, dict[str, Any]]:
    title, tokens = source_title(node.metadata), count_tokens(node.text)
    name = f" {title}" if title and title not in node.id else ""
    entry = {"document": node.id, "title": title, "tokens": tokens}
    return in_line(f"{node.id} ({tokens:,} tokens){name}"), entry


def _heading_row(node: Node, heading: tuple[int, int, str], end: int) -> tuple[str, dict[str, Any]]:
    start, level, text = heading
    tokens = count_tokens(node.text[start:end])
    entry = {"document": node.id, "heading": text, "level": level}
    entry |= {"start": start, "end": end, "tokens": tokens}
    line = in_line(f"- {text} [{start}:{end}] ({tokens:,} tokens)")
    return f"{'  ' * max(0, level - 1)}{line}", entry


def _match_rows(
    documents: Iterable[Node], find: Callable[[str], Iterator[Interval]]
) -> Iterator[Callable[[], tuple[str, dict[str, Any]]]]:
    """Yield a row function for each match. A match in the previous row's lines refers to them."""
    for node in documents:
        visible: list[Interval] = []  # the last lines of this document in the output

        def row(node: Node, start: int, end: int, visible: list[Interval]) -> tuple[str, Any]:
            entry, window = _match_entry(node, start, end)
            if visible and visible[0][0] <= start and end <= visible[0][1]:
                return reference_line(entry, "in the line above"), entry
            lines = _format_lines(entry, node.text, window)
            text = f"{heading_line(entry, titled=not visible)} (line {entry['line']})\n{lines}"
            visible[:] = [window]
            return text, entry

        for start, end in find(node.text):
            yield partial(row, node, start, end, visible)


def _finder(pattern: str, regex: bool) -> Callable[[str], Iterator[Interval]]:
    """Return a function that yields the spans of matches, in time linear in the text.

    Raises:
        ToolError: If the regular expression is invalid, or google-re2 is not installed.
    """
    compiled: Any
    if not regex:
        compiled = re.compile(re.escape(pattern), re.IGNORECASE)
    else:
        try:
            import re2
        except ImportError as error:
            raise ToolError(
                "regular expressions are not available here (they need google-re2: pip install "
                '"nodekin[mcp]"); grep for a plain text'
            ) from error
        options = re2.Options()
        options.case_sensitive, options.log_errors = False, False
        options.never_nl = False
        try:
            compiled = re2.compile(f"(?m){pattern}", options)
        except re2.error as error:
            reason = error.args[0].decode() if isinstance(error.args[0], bytes) else str(error)
            raise ToolError(
                f"{pattern!r:.200} is no regular expression: {reason}; without backreferences and "
                "lookarounds, in RE2's syntax"
            ) from error

    def find(text: str) -> Iterator[Interval]:
        for match in compiled.finditer(text):
            if match.end() > match.start():
                yield match.start(), match.end()

    return find


def _match_entry(node: Node, start_at: int, end: int) -> tuple[dict[str, Any], Interval]:
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


def _format_lines(entry: dict[str, Any], text: str, window: Interval) -> str:
    """Return the lines of a match, with ellipses at truncated ends."""
    start_at, end = window
    before = "… " if start_at and text[start_at - 1] != "\n" else ""
    after = " …" if end < len(text) and text[end] != "\n" else ""
    return quoted(f"{before}{entry['context']}{after}")
