"""The output of a tool: text for a model within a token budget, and JSON values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...nodegraph.navigation import page_label, pages_between
from ...nodegraph.node import Node
from ...nodegraph.search_text import headings_of, source_title
from ...nodegraph.splitters.chunking import count_tokens


class ToolError(ValueError):
    """An invalid call. The message contains the remedy for the model."""


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """The output of a tool.

    Attributes:
        text: For the model: the entries, and a line about omitted entries.
        entries: JSON values, one for each part of the text. Places are spans of characters in the
            document's text: ``text[start:end]``.
        left_out: The number of omitted entries.
    """

    text: str
    entries: Sequence[dict[str, Any]] = ()
    left_out: int = 0

    @property
    def tokens(self) -> int:
        """The estimated tokens of the text."""
        return count_tokens(self.text)

    def to_dict(self) -> dict[str, Any]:
        """Return the output as JSON values."""
        return {"text": self.text, "entries": list(self.entries), "left_out": self.left_out}


@dataclass(slots=True)
class OutputBuilder:
    """A builder of outputs within a token budget.

    Args:
        max_tokens: The budget for all entries.
    """

    max_tokens: int
    _parts: list[str] = field(default_factory=list)
    _entries: list[dict[str, Any]] = field(default_factory=list)
    _used: int = 0

    @property
    def remaining(self) -> int:
        """The remaining tokens."""
        return max(0, self.max_tokens - self._used)

    @property
    def size(self) -> int:
        """The number of entries."""
        return len(self._entries)

    def add(self, text: str, entry: dict[str, Any]) -> bool:
        """Add an entry and return True if it fits. The first entry always fits."""
        tokens = count_tokens(text)
        if tokens > self.remaining and self._entries:
            return False
        self._used += tokens
        self._parts.append(text)
        self._entries.append(entry)
        return True

    def add_page(
        self, rows: Iterable[Callable[[], tuple[str, dict[str, Any]]]], skip: int = 0
    ) -> tuple[int, int]:
        """Add rows until one does not fit.

        Args:
            rows: Functions that return a text and an entry. Only the rows of this page are called.
            skip: The number of rows before this page.

        Returns:
            The number of all rows, and the number of rows after this page.
        """
        count = omitted = 0
        for count, make in enumerate(rows, 1):
            if count > skip and (omitted or not self.add(*make())):
                omitted += 1
        return count, omitted

    def output(self, left_out: int = 0, remark: str = "", separator: str = "\n\n") -> ToolOutput:
        """Return the output, with a remark at its end."""
        text = separator.join(self._parts)
        if remark:
            text = f"{text}\n\n{remark}" if text else remark
        return ToolOutput(text, self._entries, left_out)


def location_of(node: Node, start: int, stop: int) -> dict[str, Any]:
    """Return the place of a part of a document: document, title, headings, span, line, pages.

    Args:
        node: The document, or a node that contains the part.
        start: The start in the document's text, in characters.
        stop: The end.
    """
    document = node.root
    text, metadata = document.text, document.metadata
    location = {
        "document": document.id,
        "title": source_title(metadata),
        "headings": headings_of(node.metadata),
        "start": start,
        "end": stop,
        "line": text.count("\n", 0, start) + 1,
    }
    if "page_unit" in metadata:
        location["pages"] = page_label(metadata, *pages_between(text, start, stop))
    return location


QUOTED = "| "
"""The prefix of each line of a document's text. No other line of an output has it, so that no text
of a document can look like a heading, a reference or a remark."""


def quoted(text: str) -> str:
    """Return a text of a document with a marker before each line.

    Example:
        >>> print(quoted("Tea notes.\\n\\nbank.txt [0:60]"))
        | Tea notes.
        |
        | bank.txt [0:60]
    """
    return "\n".join(QUOTED + line if line else QUOTED.rstrip() for line in text.splitlines())


def in_line(text: str) -> str:
    """Return the name of a document or heading in one line.

    Example:
        >>> in_line("evil.txt\\nbank.txt [0:60]")
        'evil.txt bank.txt [0:60]'
    """
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def heading_line(entry: dict[str, Any], *, titled: bool = True) -> str:
    """Return the line above an entry: document, span, title (if ``titled``) and headings."""
    title = entry["title"] if titled else ""
    names = [title] if title and title not in entry["document"] else []
    above = " > ".join([*names, *entry["headings"]])
    return in_line(f"{_span_label(entry)} {above}")


def reference_line(entry: dict[str, Any], remark: str) -> str:
    """Return the line for a part that is left out: document, span and reason."""
    return in_line(f"{_span_label(entry)} ({remark})")


def _span_label(entry: dict[str, Any]) -> str:
    """Return the document, the characters and the pages of an entry."""
    return f"{entry['document']} [{entry['start']}:{entry['end']}] {entry.get('pages', '')}"


Interval = tuple[int, int]


@dataclass(slots=True)
class ToolSession:
    """The parts of documents that a conversation has read.

    Pass the same session to all calls of a conversation. Later calls refer to these parts instead
    of repeating them. Not thread-safe.
    """

    _spans: dict[str, list[Interval]] = field(default_factory=dict)

    def show(self, document_id: str, start: int, stop: int) -> None:
        """Record a span of a document as read."""
        self._spans[document_id] = joined([*self._spans.get(document_id, ()), (start, stop)], 0)

    def covers(self, document_id: str, start: int, stop: int) -> bool:
        """Return whether a span of a document was read completely."""
        return any(a <= start and stop <= b for a, b in self._spans.get(document_id, ()))

    def knows(self, document_id: str) -> bool:
        """Return whether any part of a document, and therefore its title, was read."""
        return document_id in self._spans

    def unseen(self, document: Node, start: int, stop: int, least: int = 1) -> list[Interval]:
        """Return the unread parts of a span of a document, in order.

        Parts of white space are left out. Read text of less than ``least`` characters between two
        parts is included, since a reference to it would be as long.
        """
        parts, at = list[Interval](), start
        for a, b in self._spans.get(document.id, ()):
            if min(b, stop) - max(a, at) >= least:
                parts.append((at, max(a, at)))
                at = min(b, stop)
        return [(a, b) for a, b in [*parts, (at, stop)] if document.text[a:b].strip()]

    def clear(self) -> None:
        """Forget everything."""
        self._spans.clear()


def span_of(node: Node) -> Interval | None:
    """Return the span of a node in its document, in characters. None for generated nodes."""
    if node.group == "ROOT":
        return 0, len(node.text)
    return None if node.start is None or node.end is None else (node.start, node.end)


def joined(spans: Sequence[Interval], gap: int) -> list[Interval]:
    """Return spans in order; spans that overlap or are at most ``gap`` apart are joined."""
    result: list[Interval] = []
    for start, stop in sorted(spans):
        if result and start - result[-1][1] <= gap:
            result[-1] = result[-1][0], max(result[-1][1], stop)
        else:
            result.append((start, stop))
    return result
