"""The output of a tool, as text within a token budget and as JSON values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ...nodegraph.navigation import page_label, pages_between
from ...nodegraph.node import Node
from ...nodegraph.source_names import headings_of, source_title
from ...nodegraph.splitters.chunking import count_tokens


class ToolError(ValueError):
    """An error that is raised for an invalid tool call. Its message explains how to fix it.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> from nodekin.retrievers import CorpusTools
        >>> try:
        ...     CorpusTools(NodeGraph()).call("find", {"query": "tea"})
        ... except ToolError as error:
        ...     print(error)
        unknown tool 'find'; known: search, grep, outline, read, related, cite
    """


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """The output of a tool.

    Attributes:
        text: The entries as text for the model. If entries are omitted, the last line states their
            number.
        entries: The entries as JSON values. Locations are character spans, so that
            ``text[start:end]`` is the quoted part of a document's text.
        left_out: The number of omitted entries.
    """

    text: str
    entries: Sequence[dict[str, Any]] = ()
    left_out: int = 0

    @property
    def tokens(self) -> int:
        """The estimated number of tokens of the text."""
        return count_tokens(self.text)

    def to_dict(self) -> dict[str, Any]:
        """Convert the output to a dictionary of JSON values."""
        return {"text": self.text, "entries": list(self.entries), "left_out": self.left_out}


Entry = dict[str, Any]
"""An entry of the output as JSON values."""


class Row(Protocol):
    """A row of the output, which is formatted only if it is part of the page."""

    def formatted(self) -> tuple[str, Entry]:
        """Return the row as text and as JSON values."""
        ...


def page_of(
    rows: Iterable[Row],
    max_tokens: int,
    skip: int,
    *,
    tool: str,
    items: str,
    separator: str = "\n\n",
    empty: str = "",
) -> ToolOutput:
    """Return as many rows as fit into a token budget. At least one row is returned.

    Args:
        rows: All rows. Only the returned rows are formatted.
        max_tokens: The token budget.
        skip: The number of rows to skip at the beginning.
        tool: The name of the tool, which the last line suggests for the next page.
        items: The word for the rows in the error message.
        separator: The text between two rows.
        empty: The text that is returned if there are no rows.

    Raises:
        ToolError: If ``skip`` is not less than the number of rows.
    """
    texts: list[str] = []
    entries: list[Entry] = []
    count = omitted = used = 0
    for count, row in enumerate(rows, 1):
        if count <= skip:
            continue
        if not omitted:
            text, entry = row.formatted()
            used += count_tokens(text)
        if omitted or (entries and used > max_tokens):
            omitted += 1
            continue
        texts.append(text)
        entries.append(entry)
    if not count:
        return ToolOutput(empty)
    if count <= skip:
        raise ToolError(f"skip must be below {count:,}, the number of {items}, got {skip:,}")
    text = separator.join(texts)
    if omitted:
        text += f"\n\n{omitted:,} more: {tool} with skip={skip + len(entries)}."
    return ToolOutput(text, entries, omitted)


def location_of(node: Node, start: int, stop: int) -> Entry:
    """Return the location of a part of a document as a dictionary.

    It contains the document's id and title, the headings, the span, the line number and, if known,
    the pages.

    Args:
        node: The document, or a node that contains the part.
        start: The start of the part in the document's text, in characters.
        stop: The end of the part in the document's text, in characters.
    """
    document = node.root
    text = document.text
    metadata = document.metadata
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
"""The prefix of each line that is quoted from a document.

No other line has this prefix, so the text of a document cannot imitate a heading or a remark.
"""


def quoted(text: str) -> str:
    """Add the prefix for quotations to each line of a text.

    Example:
        >>> print(quoted("Tea notes.\\n\\nbank.txt [0:60]"))
        | Tea notes.
        |
        | bank.txt [0:60]
    """
    return "\n".join(QUOTED + line if line else QUOTED.rstrip() for line in text.splitlines())


def in_line(text: str) -> str:
    """Convert a document's name or a heading to a single line of printable characters.

    Example:
        >>> in_line("evil.txt\\nbank.txt [0:60]")
        'evil.txt bank.txt [0:60]'
    """
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def heading_line(entry: Entry) -> str:
    """Return the heading of an entry, with the document, span, pages, title and headings."""
    title = entry["title"]
    names = [*entry["headings"]]
    if title and title not in entry["document"]:
        names.insert(0, title)
    span = f"{entry['document']} [{entry['start']}:{entry['end']}] {entry.get('pages', '')}"
    return in_line(f"{span} {' > '.join(names)}")


Interval = tuple[int, int]

GAP = 3
"""The maximum number of characters between two spans that are merged."""


def span_of(node: Node) -> Interval | None:
    """Return the character span of a node in its document. Generated text has no span (None)."""
    if node.group == "ROOT":
        return 0, len(node.text)
    if node.start is None or node.end is None:
        return None
    return node.start, node.end


def joined(spans: Sequence[Interval], gap: int) -> list[Interval]:
    """Sort spans, and merge spans that overlap or are at most ``gap`` characters apart."""
    result: list[Interval] = []
    for start, stop in sorted(spans):
        if result and start - result[-1][1] <= gap:
            result[-1] = result[-1][0], max(result[-1][1], stop)
        else:
            result.append((start, stop))
    return result
