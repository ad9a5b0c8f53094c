"""The output of a tool: text for a model within a token budget, and JSON values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ...nodegraph.navigation import page_label, pages_between
from ...nodegraph.node import Node
from ...nodegraph.source_names import headings_of, source_title
from ...nodegraph.splitters.chunking import count_tokens


class ToolError(ValueError):
    """An invalid call. The message describes the remedy for the model.

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
        text: The entries as text for the model, with a last line about omitted entries.
        entries: The entries as JSON values. Places are character spans in the document's text:
            ``text[start:end]``.
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


Entry = dict[str, Any]
"""The JSON values of an entry."""

Row = Callable[[], tuple[str, Entry]]
"""A function that returns an entry as text and as JSON values."""


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
    """Return one page of rows within a token budget, with at least one row.

    Args:
        rows: All rows. Only the rows of the page are called.
        max_tokens: The token budget.
        skip: The number of rows before the page.
        tool: The tool that returns the next page.
        items: The name of the rows in the error message.
        separator: The text between two rows.
        empty: The text if there are no rows.

    Raises:
        ToolError: If ``skip`` is not less than the number of rows.
    """
    texts: list[str] = []
    entries: list[Entry] = []
    count = omitted = used = 0
    for count, make in enumerate(rows, 1):
        if count <= skip:
            continue
        if not omitted:
            text, entry = make()
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
    """Return the place of a document part: document, title, headings, span, line, pages.

    Args:
        node: The document, or a node that contains the part.
        start: The start in the document's text, in characters.
        stop: The end in the document's text.
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
"""The prefix of each line of a document's text.

Other lines never have this prefix, so that no text can imitate a heading or a remark.
"""


def quoted(text: str) -> str:
    """Return a document's text with the prefix before each line.

    Example:
        >>> print(quoted("Tea notes.\\n\\nbank.txt [0:60]"))
        | Tea notes.
        |
        | bank.txt [0:60]
    """
    return "\n".join(QUOTED + line if line else QUOTED.rstrip() for line in text.splitlines())


def in_line(text: str) -> str:
    """Return a document's name or a heading as one line.

    Example:
        >>> in_line("evil.txt\\nbank.txt [0:60]")
        'evil.txt bank.txt [0:60]'
    """
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def heading_line(entry: Entry) -> str:
    """Return the line above an entry: document, span, pages, title and headings."""
    title = entry["title"]
    names = [*entry["headings"]]
    if title and title not in entry["document"]:
        names.insert(0, title)
    span = f"{entry['document']} [{entry['start']}:{entry['end']}] {entry.get('pages', '')}"
    return in_line(f"{span} {' > '.join(names)}")


Interval = tuple[int, int]

GAP = 3
"""The maximum number of characters between two spans that are joined."""


def span_of(node: Node) -> Interval | None:
    """Return the character span of a node in its document, or None for generated nodes."""
    if node.group == "ROOT":
        return 0, len(node.text)
    if node.start is None or node.end is None:
        return None
    return node.start, node.end


def joined(spans: Sequence[Interval], gap: int) -> list[Interval]:
    """Return spans in order. Spans that overlap or are at most ``gap`` apart are joined."""
    result: list[Interval] = []
    for start, stop in sorted(spans):
        if result and start - result[-1][1] <= gap:
            result[-1] = result[-1][0], max(result[-1][1], stop)
        else:
            result.append((start, stop))
    return result
