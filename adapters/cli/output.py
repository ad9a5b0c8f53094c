"""Print results for readers and as JSON."""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ...nodegraph.node import Node
from ...nodegraph.readers.formats import PROGRAM, format_by_name, has_lines
from ...nodegraph.search_text import file_name_of
from ...nodegraph.splitters.chunking import UNSPACED
from ...nodegraph.splitters.sentences import sentence_spans
from ...retrievers.analysis.text_analyzer import TextAnalyzer
from ...retrievers.results import Evidence, ScoredNode
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
    words: dict[int, set[str]] = {}
    starts = [start for start, _ in parts]
    for start, end in spans:
        at = max(0, bisect_right(starts, start) - 1)
        if start < parts[at][1]:
            words.setdefault(at, set()).add(text[start:end].casefold())
    return parts[max(words, key=lambda at: (sum(map(len, words[at])), -at), default=0)]


def console() -> Console:
    """Return a console for standard output, without colors and wrapping for programs."""
    from rich.console import Console

    class PipeConsole(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    return PipeConsole(highlight=False, markup=False, emoji=False)


def listing(results: Sequence[ScoredNode], query: str, *, full: bool, explain: bool) -> None:
    """Print results.

    Args:
        results: The results, best first.
        query: The query, to highlight its words.
        full: Print the complete texts.
        explain: Print how each result was found.
    """
    from rich.text import Text

    out, line_numbers = console(), LineNumbers()
    width = min(out.width, 120) - 3
    for rank, result in enumerate(results, 1):
        head = Text("\n" if rank > 1 else "")
        head.append(f"{rank}. ", "bold")
        head.append(place(result.best_match, line_numbers, query), "green")
        head.append(f"  {result.score:.3f}  {result.node.group}", "dim")
        out.print(head, soft_wrap=True)
        if full:
            text = printable(str(result.node.content))
            shown = [*_highlighted(text, 0, len(text), query).split("\n", allow_blank=True)]
        else:
            shown = snippet(result, query, width, line_numbers)
        for line in shown:
            for row in line.wrap(out, width) or [line]:
                out.print(Text("   ") + row if row.plain.strip() else row, soft_wrap=True)
        for reason in explanation(result) if explain else ():
            out.print(Text(f"   {printable(reason)}", "dim"), soft_wrap=True)


def snippet(result: ScoredNode, query: str, width: int, line_numbers: LineNumbers) -> list[Text]:
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
    file_format = format_by_name(file_name_of(node.metadata) or "")
    if file_format is None or file_format.name != PROGRAM.name:
        return texts
    numbers = [line_numbers.line(node, line.start()) or "" for line in shown]
    return [Text(f"{number:>5}  ") + row for number, row in zip(numbers, texts, strict=True)]


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


_SIMILARITIES = {"bm25": "words (BM25)", "cosine": "meaning (cosine)", "exact": "whole text"}


def explanation(result: ScoredNode) -> Iterator[str]:
    """Yield the evidence of a result, a line for each match."""
    for match in result.evidence:
        similarity = _SIMILARITIES.get(match.similarity, match.similarity)
        text = " ".join(match.node.text.split())
        is_part = match.node.id != result.node.id
        where = f'{match.group} "{text:.80}"' if is_part else f"the {match.group} as a whole"
        yield f"found by {similarity}, score {match.score:.3f}: {where}"
        for variant in match.variants:
            note = f" ({variant.note})" if variant.note else ""
            yield f'  searched by {variant.strategy}: "{variant.query}"{note}'


def place(node: Node, line_numbers: LineNumbers, query: str = "") -> str:
    """Return the document and the line of the query's words in a node: ``docs/tea.md:12``.

    For files with pages, the page and the heading.
    """
    file = file_name_of(node.metadata) or ""
    if node.start is not None and not has_lines(file):
        return document_name(node) + printable(node.place.removeprefix(file))
    line = line_numbers.line(node, best_line(node.text, query))
    return document_name(node) if line is None else f"{document_name(node)}:{line}"


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


class LineNumbers:
    """The line numbers of nodes in their documents. Each document is read once."""

    def __init__(self) -> None:
        self._breaks: dict[str, list[int]] = {}

    def line(self, node: Node, offset: int = 0) -> int | None:
        """Return the line of a node, from 1. None: the node has no position."""
        if node.start is None or not node.document_id or node.graph is None:
            return None
        if node.document_id not in self._breaks:
            text = node.root.text
            self._breaks[node.document_id] = [at for at, c in enumerate(text) if c == "\n"]
        return bisect_right(self._breaks[node.document_id], node.start + offset - 1) + 1


def result_record(rank: int, result: ScoredNode, line_numbers: LineNumbers) -> dict[str, Any]:
    """Return a result as JSON values."""
    node = result.node
    return {
        "rank": rank,
        "score": result.score,
        **node_record(node, line_numbers),
        "path": node.metadata.get("file_path"),
        "place": result.place,
        "text": node.content if isinstance(node.content, str) else node.text,
        "metadata": node.metadata,
        "matches": [_match_record(match, line_numbers) for match in result.evidence],
    }


def node_record(node: Node, line_numbers: LineNumbers) -> dict[str, Any]:
    """Return the id and the position of a node as JSON values."""
    return {
        "id": node.id,
        "group": node.group,
        "document": node.document_id or None,
        "line": line_numbers.line(node),
        "start": node.start,
        "end": node.end,
    }


def _match_record(match: Evidence, line_numbers: LineNumbers) -> dict[str, Any]:
    names = ("score", "similarity", "query", "embed_key", "share")
    return {
        **node_record(match.node, line_numbers),
        **{name: getattr(match, name) for name in names},
        "variants": [asdict(variant) for variant in match.variants],
        "text": match.node.text,
    }
