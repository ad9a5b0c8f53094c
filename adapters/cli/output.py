"""Print results for readers and as JSON."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...nodegraph.node import Node
from ...nodegraph.readers.formats import PROGRAM, has_lines
from ...nodegraph.search_text import file_name_of
from ...nodegraph.splitters.chunking import UNSPACED
from ...nodegraph.splitters.sentences import sentence_spans
from ...retrievers.analysis.identifiers import identifiers
from ...retrievers.analysis.text_analyzer import TextAnalyzer, normalized
from ...retrievers.results import ScoredNode
from .exit_status import escaped, printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

Span = tuple[int, int]

_ROWS = 5  # of a snippet


def matches(text: str, query: str) -> list[Span]:
    """Return the positions of the query's words in a text, in order.

    Words match by their stems. A single Chinese character matches only if it is single in the
    query.

    Example:
        >>> [("长江的 Rivers"[a:b]) for a, b in matches("长江的 Rivers", "长江 river 的水")]
        ['长江', 'Rivers']
        >>> [("Pump E-105, 3.1.0"[a:b]) for a, b in matches("Pump E-105, 3.1.0", "E105 3.1.0")]
        ['E-105', '3.1.0']
    """
    analyze = TextAnalyzer().like(text)
    terms = set(analyze.query(query)).intersection(analyze.words(query))
    unspaced = {term for term in terms if _is_unspaced(term)}
    longer = {term for term in unspaced if len(term) > 1}
    allowed = longer | (unspaced - set("".join(longer)))
    sizes = {len(term) for term in allowed}
    spans: list[Span] = []
    for start, end in analyze.spans(text):
        if _is_unspaced(text[start]):
            found = ((at, at + n) for at in range(start, end) for n in sizes)
            spans += (span for span in found if text[slice(*span)] in allowed)
        elif terms.intersection(analyze.words(text[start:end])):
            spans.append((start, end))
    named = terms.union(term for term, _ in identifiers(normalized(query)))
    for term, name in dict.fromkeys(identifiers(normalized(text))):
        if term in named and term not in re.findall(
            r"\w+", name
        ):  # as written, such as E-105 for E105
            spans += (m.span() for m in re.finditer(re.escape(name), text, re.IGNORECASE))
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _is_unspaced(text: str) -> bool:
    return re.fullmatch(f"[{UNSPACED}]+", text) is not None


def best_sentence(text: str, query: str) -> Span:
    """Return the sentence with the most different words of a query, the first of equals."""
    return _best(sentence_spans(text) or [(0, len(text))], text, matches(text, query))


def best_line(text: str, query: str) -> int:
    """Return the start of the line with the most words of a query in the best sentence."""
    start, end = best_sentence(text, query)
    lines = [line.span() for line in re.compile(r"[^\n]+").finditer(text, start, end)]
    return _best(lines or [(start, end)], text, matches(text, query))[0]


def _best(parts: Sequence[Span], text: str, spans: Sequence[Span]) -> Span:
    def letters(part: Span) -> int:
        words = {text[slice(*span)].casefold() for span in spans if part[0] <= span[0] < part[1]}
        return sum(map(len, words))

    return max(parts, key=letters)


def console() -> Console:
    """Return a console for standard output, without colors and wrapping for programs."""
    from rich.console import Console

    class PipeConsole(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    return PipeConsole(highlight=False, markup=False, emoji=False)


def listing(results: Sequence[ScoredNode], query: str, *, explain: bool) -> None:
    """Print results.

    Args:
        results: The results, best first.
        query: The query, to highlight its words.
        explain: Print how each result was found.
    """
    from rich.text import Text

    out = console()
    width = min(out.width, 120) - 3
    for rank, result in enumerate(results, 1):
        head = Text("\n" if rank > 1 else "")
        head.append(f"{rank}. ", "bold")
        head.append(place(result.best_match, query), "green")
        head.append(f"  {result.score:.3f}  {result.node.group}", "dim")
        out.print(head, soft_wrap=True)
        for line in snippet(result, query, width):
            for row in line.wrap(out, width) or [line]:
                out.print(Text("   ") + row if row.plain.strip() else row, soft_wrap=True)
        notes = result.explain() if explain else str(result)  # of copies: "also in b.md"
        for note in notes.splitlines()[1:]:
            out.print(Text(f" {printable(note)}", "dim"), soft_wrap=True)


def snippet(result: ScoredNode, query: str, width: int) -> list[Text]:
    """Return up to five rows around the best match: with numbers for code, headers for tables.

    A long line is truncated to three rows.
    """
    from rich.cells import cell_len
    from rich.text import Text

    node, match = result.node, result.best_match
    text = printable(str(node.content))
    start = (match.start or 0) - (node.start or 0)
    if text[start : start + len(match.text)] == printable(match.text):
        start += best_line(match.text, query)
    else:
        start = best_line(text, query)
    lines = [line for line in re.finditer(r"[^\n]+", text) if line[0].strip()]
    if not lines:
        return []
    at = max(0, bisect_right([line.start() for line in lines], start) - 1)
    if cell_len(lines[at][0]) > 2 * width:
        return [excerpt(text, start, lines[at].end(), query, width)]
    is_table = lines[at][0].lstrip().startswith("|")
    header = at
    while is_table and header and lines[header - 1][0].lstrip().startswith("|"):
        header -= 1
    shown = lines[header : min(header + 2, at)] or lines[max(0, at - 1) : at]
    shown = [line for line in shown if cell_len(line[0]) <= width]
    rows = len(shown)
    for line in lines[at:]:
        rows += -(-cell_len(line[0]) // width)
        if line is not lines[at] and rows > _ROWS:
            break
        shown.append(line)
    texts = [_highlighted(text, *line.span(), query) for line in shown]
    if Path(file_name_of(node.metadata) or "").suffix.lower() not in PROGRAM.suffixes:
        return texts
    numbers = (f"{line_of(node, line.start()) or '':>5}  " for line in shown)
    return [Text(number) + row for number, row in zip(numbers, texts, strict=True)]


def excerpt(text: str, start: int, end: int, query: str, width: int) -> Text:
    """Return three rows of a long line, from the start of a sentence or near its first match."""
    from rich.cells import chop_cells
    from rich.text import Text

    first = next((at for at, _ in matches(text, query) if at >= start), start)
    if first - start > width:
        start = first - width // 2
    piece = chop_cells(text[start : min(end, start + 3 * width)], 3 * width - 4)[0]
    stop = start + len(piece)
    if stop < end and " " in piece[-30:]:
        stop = start + piece.rindex(" ")
    row = _highlighted(text, start, stop, query)
    before, after = text[:start].strip(), text[stop:].strip()
    return Text("… " if before else "") + row + Text(" …" if after else "")


def _highlighted(text: str, start: int, end: int, query: str) -> Text:
    from rich.text import Text

    row = Text(text[start:end])
    for span in matches(row.plain, query):
        row.stylize("bold red", *span)
    return row


def place(node: Node, query: str = "") -> str:
    """Return the document and the line of the query's words in a node: ``docs/tea.md:12``.

    For files with pages, the page and the heading.
    """
    file = file_name_of(node.metadata) or ""
    if node.start is not None and not has_lines(file):
        return document_name(node) + printable(node.place.removeprefix(file))
    line = line_of(node, best_line(node.text, query))
    return document_name(node) if line is None else f"{document_name(node)}:{line}"


def line_of(node: Node, offset: int = 0) -> int | None:
    """Return the line of a position in a node, from 1. None: the node has no position."""
    if node.start is None or not node.document_id or node.graph is None:
        return None
    return node.root.text.count("\n", 0, node.start + offset) + 1


def document_name(node: Node) -> str:
    """Return the path of a file below the current folder, or the document's id."""
    path = node.metadata.get("file_path")
    if path and "#" not in node.document_id:
        try:
            return printable(Path(str(path)).absolute().relative_to(Path.cwd()).as_posix())
        except ValueError:
            pass
    return printable(node.document_id or node.id)


def echo_json(command: str, record: Mapping[str, Any]) -> None:
    """Print the JSON of a command. Other types become texts, control characters escapes."""
    header = {"format": 1, "command": command}
    text = json.dumps({**header, **record}, ensure_ascii=False, indent=2, default=str)
    click.echo(escaped(text))


def result_record(rank: int, result: ScoredNode) -> dict[str, Any]:
    """Return a result as JSON values."""
    node = result.node
    return {
        "rank": rank,
        "score": result.score,
        **node_record(node),
        "path": node.metadata.get("file_path"),
        "place": result.place,
        "text": node.content if isinstance(node.content, str) else node.text,
        "metadata": node.metadata,
        "matches": [
            {
                **node_record(match.node),
                "score": match.score,
                "similarity": match.similarity,
                "query": match.query,
                "embed_key": match.embed_key,
                "share": match.share,
                "variants": [asdict(variant) for variant in match.variants],
                "text": match.node.text,
            }
            for match in result.evidence
        ],
    }


def node_record(node: Node) -> dict[str, Any]:
    """Return the id and the position of a node as JSON values."""
    return {
        "id": node.id,
        "group": node.group,
        "document": node.document_id or None,
        "line": line_of(node),
        "start": node.start,
        "end": node.end,
    }
