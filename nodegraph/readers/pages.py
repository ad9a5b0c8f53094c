"""Put the pages of a document into one text, and tell them apart again."""

from __future__ import annotations

import re
from collections.abc import Iterable

PAGE_BREAK = "\f"
"""Stands between two pages, slides, sheets, cells or chapters of a text, as in printed files."""


def join_pages(pages: Iterable[str]) -> str:
    """Return pages as one text, with a page break between each two.

    Example:
        >>> join_pages(["One.", "", "Three."])
        'One.\\n\\n\\x0c\\n\\n\\n\\n\\x0c\\n\\nThree.'
    """
    return f"\n\n{PAGE_BREAK}\n\n".join(page.strip().replace(PAGE_BREAK, "\n") for page in pages)


def markdown_table(rows: Iterable[Iterable[object]]) -> str:
    """Return rows as a Markdown table, the first of which is its head.

    Example:
        >>> print(markdown_table([["a", "b"], [1, "x|y"]]))
        | a | b |
        | --- | --- |
        | 1 | x\\|y |
    """
    cells = [[_cell(value) for value in row] for row in rows]
    width = max(map(len, cells), default=0)
    lines = [f"| {' | '.join([*row, *[''] * (width - len(row))])} |" for row in cells]
    return "\n".join([*lines[:1], f"|{' --- |' * width}", *lines[1:]]) if width else ""


_BREAKS = re.compile(r"\s*[\r\n\f\v]+\s*")


def _cell(value: object) -> str:
    text = "" if value is None else str(value)
    return _BREAKS.sub(" ", text).replace("|", "\\|").strip()
