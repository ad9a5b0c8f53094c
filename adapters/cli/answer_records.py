"""The plain values of an answer that ``ask --json`` prints, and its lines for a reader."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from .columns import columns, cut, terminal_columns
from .listing import mark, place
from .records import FORMAT, Places, result_record
from .snippet import snippet


def answer_record(answer: Any, model: str) -> dict[str, Any]:
    """Return an answer with its sources, and what is to be known about it."""
    places = Places()
    sources = [
        {
            "number": source.number,
            "cited": source.cited,
            "shown": source.text,
            **result_record(source.number, source.result, places),
        }
        for source in answer.sources
    ]
    left_out = [
        {
            "document": each.result.node.document_id or None,
            "line": places.line(each.result.node),
            "reason": each.reason,
        }
        for each in answer.left_out
    ]
    return {
        **{"format": FORMAT, "command": "ask", "question": answer.question},
        **{"searched": answer.searched, "answer": answer.text, "found": answer.found},
        **{"preset": answer.preset is not None, "model": model, "sources": sources},
        **{"left_out": left_out, "notes": list(answer.notes)},
    }


def source_lines(answer: Any) -> Iterator[str]:
    """Yield the numbered sources, those that the answer does not cite in a lower voice."""
    places = Places()
    any_cited = any(source.cited for source in answer.sources)
    for source in answer.sources:
        node = source.result.node
        query = answer.searched or answer.question
        where = place(node, places, query)
        number = f"[{source.number}]"
        aside = "" if source.cited or not any_cited else "  (not cited)"
        room = terminal_columns() - columns(f"{number} {where}  {aside}")
        text = snippet(str(node.content), query, max(24, room), mark) if room > 24 else ""
        bare = click.unstyle(text)
        if columns(bare) > room:
            text = cut(bare, room)
        styled = f"{click.style(number, bold=source.cited)} {click.style(where, fg='green')}"
        yield f"{styled}{'  ' + text if text else ''}{click.style(aside, dim=True)}"


def remarks(answer: Any) -> Iterator[str]:
    """Yield what is to be known besides the answer."""
    yield from answer.notes
    reasons: dict[str, int] = {}
    for each in answer.left_out:
        reasons[each.reason] = reasons.get(each.reason, 0) + 1
    for reason, number in reasons.items():
        yield f"{number} result{'' if number == 1 else 's'} not shown to the model ({reason})"
