"""Show results to a reader: the score, the place, the part of the text that matters."""

from __future__ import annotations

import json
import os
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from ...nodegraph.node import Node
from ...nodegraph.readers.formats import has_lines
from ...nodegraph.search_text import file_name_of
from ...retrievers.results import Evidence, ScoredNode
from ...retrievers.tracing import Span
from .exit_status import escaped, printable
from .snippet import best_sentence, highlight, matches, snippet, terminal_columns, wrap

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


def stage_record(span: Span) -> dict[str, Any]:
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
