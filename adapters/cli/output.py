"""Print search results as text or JSON."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.text import Text

from ...nodegraph.node import Node
from ...nodegraph.readers.formats import PROGRAM, has_lines
from ...nodegraph.readers.source_files import file_id_of
from ...nodegraph.source_names import file_name_of
from ...nodegraph.splitters.chunking import UNSPACED
from ...retrievers.analysis.identifiers import identifiers
from ...retrievers.analysis.normal_form import normalized
from ...retrievers.analysis.text_analyzer import TextAnalyzer
from ...retrievers.excerpt import best_start
from ...retrievers.results import Evidence, ScoredNode, other_places
from .line_breaks import wrapped
from .messages import escaped, printable, translated

_ROWS = 5  # maximum number of lines in a snippet

_MATCH = "bold red"


def print_rows(rows: Iterable[Text]) -> None:
    """Print rows of text without wrapping them."""
    out = Console()
    for row in rows:
        # without capturing, rich would end the process if the output is closed
        with out.capture() as capture:
            out.print(row, soft_wrap=True)
        sys.stdout.write(capture.get())


def result_rows(results: Sequence[ScoredNode], query: str, *, explain: bool) -> Iterator[Text]:
    """Yield the rows of text that describe results, best first.

    Args:
        results: The results.
        query: The query, whose words are highlighted.
        explain: Whether to explain how each result was found.
    """
    for rank, result in enumerate(results, 1):
        number = ("\n" * (rank > 1) + f"{rank}. ", "bold")
        score = (f"  {result.score:.3f}  {result.node.group}", "dim")
        yield Text.assemble(number, (place(result.best_match, query), "green"), score)
        yield from (Text("   ") + row for row in snippet(result, query))
        notes = result.explain().splitlines()[1:] if explain else other_places(result)
        yield from (Text(f" {printable(translated(note))}", "dim") for note in notes)


def snippet(result: ScoredNode, query: str) -> list[Text]:
    """Return up to five rows of a result that are most relevant to the query.

    For source code, consecutive lines around the match are returned, with their line numbers.
    """
    width = min(Console().width, 120) - 4
    suffix = Path(file_name_of(result.node.metadata) or "").suffix.lower()
    if suffix in PROGRAM.suffixes:
        rows = _program_rows(result, query, width)
    else:
        rows = _text_rows(result, query, width)
    return rows[:_ROWS]


def _text_rows(result: ScoredNode, query: str, width: int) -> list[Text]:
    """Return the rows of a snippet, which is shortened until its wrapped lines fit."""
    rows: list[Text] = []
    for columns in range(width, width // 2, -1):
        snippet = result.snippet(query=query, columns=columns, rows=_ROWS)
        rows = []
        for line in snippet:
            rows += wrapped(highlighted(printable(line), query), width)
        if len(rows) <= _ROWS:
            break
    return rows


def _program_rows(result: ScoredNode, query: str, width: int) -> list[Text]:
    node = result.node
    match = result.best_match
    start = best_start(match.text, query) + (match.start or 0) - (node.start or 0)
    text = printable(node.text)
    lines = [line.span() for line in re.finditer(r"[^\n]*\S[^\n]*", text)] or [(0, 0)]
    at = max((n for n, line in enumerate(lines) if line[0] <= start), default=0)
    rows: list[Text] = []
    for begin, end in lines[max(0, at - 1) : at + _ROWS]:
        number = Text(f"{line_of(node, begin) or '':>5}  ")
        rows += wrapped(number + highlighted(text[begin:end], query), width)
    return rows


def highlighted(text: str, query: str) -> Text:
    """Highlight the words of a query in a text.

    Words are compared by their stems. A Chinese character is highlighted only as a part of a longer
    query term, unless it stands alone in the query. Different spellings of a name match, such as
    E-105 and E105.
    """
    row = Text(text)
    analyze = TextAnalyzer().like(text)
    terms = set(analyze.query(query)).intersection(analyze.words(query))
    unspaced = {term for term in terms if re.fullmatch(f"[{UNSPACED}]+", term)}
    longer = {term for term in unspaced if len(term) > 1}
    names = terms.union(term for term, _ in identifiers(normalized(query)))
    named = [name for term, name in identifiers(normalized(text)) if term in names]
    for word in (*longer, *(unspaced - set("".join(longer))), *named):
        row.highlight_words([word], _MATCH, case_sensitive=False)
    for start, end in analyze.spans(text):
        if (terms - unspaced).intersection(analyze.words(text[start:end])):
            row.stylize(_MATCH, start, end)
    return row


def place(node: Node, query: str = "") -> str:
    """Return the document and the line that contains the query, such as
    ``docs/tea.md:12``.

    For files with pages, the page and the heading are returned instead of the line.
    """
    file = file_name_of(node.metadata) or ""
    if node.start is not None and not has_lines(file):
        return document_name(node) + printable(node.place.removeprefix(file))
    line = line_of(node, best_start(node.text, query))
    return document_name(node) if line is None else f"{document_name(node)}:{line}"


def line_of(node: Node, offset: int = 0) -> int | None:
    """Return the line number of a position in a node, starting at 1.

    Return None if the position of the node in its document is unknown.
    """
    if node.start is None:
        return None
    return node.root.text.count("\n", 0, node.start + offset) + 1


def document_name(node: Node) -> str:
    """Return the path of a document relative to the current folder, or the id of the document.

    If a file contains several records, a record is named by its number: ``docs/teas.jsonl#7``.
    """
    document_id = node.document_id or node.id
    file_id = file_id_of(document_id, str(node.metadata.get("file_path", "")))
    return containing_file(node) + printable(document_id.removeprefix(file_id))


def containing_file(node: Node) -> str:
    """Return the path of a document's file relative to the current folder, or the file's id."""
    path = str(node.metadata.get("file_path", ""))
    here = Path.cwd()
    if path and Path(path).absolute().is_relative_to(here):
        return printable(Path(path).absolute().relative_to(here).as_posix())
    return printable(file_id_of(node.document_id or node.id, path))


def echo_json(command: str, record: Mapping[str, Any]) -> None:
    """Print the output of a command as JSON.

    Values of unsupported types are converted to strings, and control characters are escaped.
    """
    record = {"format": 1, "command": command, **record}
    click.echo(escaped(json.dumps(record, ensure_ascii=False, indent=2, default=str)))


_MATCH_FIELDS = ("score", "similarity", "query", "embed_key", "share")


def result_record(result: ScoredNode, **more: object) -> dict[str, Any]:
    """Convert a result to JSON-compatible values, starting with the additional values."""
    return {
        **more,
        "score": result.score,
        **node_record(result.node),
        "path": result.metadata.get("file_path"),
        "place": result.place,
        "metadata": result.metadata,
        "matches": [_match_record(match) for match in result.evidence],
    }


def _match_record(match: Evidence) -> dict[str, Any]:
    """Convert a match of a result to JSON-compatible values."""
    return {
        **node_record(match.node),
        **{name: getattr(match, name) for name in _MATCH_FIELDS},
        "variants": [asdict(variant) for variant in match.variants],
    }


def node_record(node: Node) -> dict[str, Any]:
    """Convert a node to JSON-compatible values, including its document and line number."""
    record = {name: getattr(node, name) for name in ("id", "group", "start", "end", "text")}
    return {**record, "document": node.document_id or None, "line": line_of(node)}
