"""Print results for readers and as JSON."""

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
from ...nodegraph.splitters.sentences import sentence_spans
from ...retrievers.analysis.identifiers import identifiers
from ...retrievers.analysis.text_analyzer import TextAnalyzer, normalized
from ...retrievers.results import ScoredNode
from .messages import escaped, printable

_ROWS = 5  # lines of a snippet

_MATCH = "bold red"


def print_rows(rows: Iterable[Text]) -> None:
    """Print rows that are not wrapped."""
    out = Console()
    for row in rows:
        with out.capture() as capture:  # otherwise, rich ends the process if the output is closed
            out.print(row, soft_wrap=True)
        sys.stdout.write(capture.get())


def result_rows(results: Sequence[ScoredNode], query: str, *, explain: bool) -> Iterator[Text]:
    """Yield the rows of results, best first.

    Args:
        results: The results.
        query: The query, to highlight its words.
        explain: Add how each result was found.
    """
    for rank, result in enumerate(results, 1):
        number = ("\n" * (rank > 1) + f"{rank}. ", "bold")
        score = (f"  {result.score:.3f}  {result.node.group}", "dim")
        yield Text.assemble(number, (place(result.best_match, query), "green"), score)
        yield from (Text("   ") + row for row in snippet(result, query))
        notes = result.explain() if explain else str(result)  # names of copies: "also in b.md"
        yield from (Text(f" {printable(note)}", "dim") for note in notes.splitlines()[1:])


def snippet(result: ScoredNode, query: str) -> list[Text]:
    """Return up to five rows around the best match: with numbers for code, headers for tables."""
    node, match = result.node, result.best_match
    text, width = printable(node.text), min(Console().width, 120) - 4
    start = best_start(match.text, query) + (match.start or 0) - (node.start or 0)
    lines = [line.span() for line in re.finditer(r"[^\n]*\S[^\n]*", text)] or [(0, 0)]
    at = max((n for n, line in enumerate(lines) if line[0] <= start), default=0)
    first = max(0, at - 1)
    while first and all(text.startswith("|", lines[n][0]) for n in (first - 1, at)):
        first -= 1
    above = [line for line in lines[first:at][:2] if line[1] - line[0] <= width]
    is_program = Path(file_name_of(node.metadata) or "").suffix.lower() in PROGRAM.suffixes
    rows: list[Text] = []
    for begin, end in (*above, *lines[at : at + _ROWS]):
        number = f"{line_of(node, begin) or '':>5}  " if is_program else ""
        row = highlighted(text[begin:end], query)
        if begin == lines[at][0] and end - begin > 2 * width:  # a paragraph in one line
            words = [span.start for span in row.spans if span.start >= start - begin]
            skipped = max(start - begin, min(words, default=0) - width)
            row = Text("…" if skipped else "") + row[skipped:]
        rows += (Text(number) + row).wrap(Console(), width)
    return rows[:_ROWS]


def best_start(text: str, query: str) -> int:
    """Return the start of the line or sentence with the most different words of a query."""
    analyze = TextAnalyzer().like(text)
    terms = set(analyze.query(query))
    pieces = (re.compile(r"[^\n]+").finditer(text, *span) for span in sentence_spans(text))
    found = {m.start(): terms.intersection(analyze(m[0])) for piece in pieces for m in piece}
    return max(found, key=lambda start: sum(map(len, found[start])), default=0)


def highlighted(text: str, query: str) -> Text:
    """Return a text with highlighted words of a query.

    Words match by their stems. A single Chinese character matches only if it is single in the
    query. Names match as written: E-105 for E105.
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
    """Return the document and the line of the query's words in a node: ``docs/tea.md:12``.

    For files with pages, the page and the heading.
    """
    file = file_name_of(node.metadata) or ""
    if node.start is not None and not has_lines(file):
        return document_name(node) + printable(node.place.removeprefix(file))
    line = line_of(node, best_start(node.text, query))
    return document_name(node) if line is None else f"{document_name(node)}:{line}"


def line_of(node: Node, offset: int = 0) -> int | None:
    """Return the line of a position in a node, from 1. None: the node has no position."""
    if node.start is None:
        return None
    return node.root.text.count("\n", 0, node.start + offset) + 1


def document_name(node: Node) -> str:
    """Return the path of a file below the current folder, or the document's id."""
    document_id = node.document_id or node.id
    file_id = file_id_of(document_id, str(node.metadata.get("file_path", "")))
    return containing_file(node) if file_id == document_id else printable(document_id)


def containing_file(node: Node) -> str:
    """Return the path of a document's file below the current folder, or the file's id."""
    path = str(node.metadata.get("file_path", ""))
    here = Path.cwd()
    if path and Path(path).absolute().is_relative_to(here):
        return printable(Path(path).absolute().relative_to(here).as_posix())
    return printable(file_id_of(node.document_id or node.id, path))


def echo_json(command: str, record: Mapping[str, Any]) -> None:
    """Print the JSON of a command. Other types become texts, control characters escapes."""
    record = {"format": 1, "command": command, **record}
    click.echo(escaped(json.dumps(record, ensure_ascii=False, indent=2, default=str)))


_MATCH_FIELDS = ("score", "similarity", "query", "embed_key", "share")


def result_record(result: ScoredNode, **more: object) -> dict[str, Any]:
    """Return a result as JSON values, after more values."""
    return {
        **more,
        "score": result.score,
        **node_record(result.node),
        "path": result.metadata.get("file_path"),
        "place": result.place,
        "metadata": result.metadata,
        "matches": [
            {
                **node_record(match.node),
                **{name: getattr(match, name) for name in _MATCH_FIELDS},
                "variants": [asdict(variant) for variant in match.variants],
            }
            for match in result.evidence
        ],
    }


def node_record(node: Node) -> dict[str, Any]:
    """Return a node as JSON values, with its document and line."""
    record = {name: getattr(node, name) for name in ("id", "group", "start", "end", "text")}
    return {**record, "document": node.document_id or None, "line": line_of(node)}
