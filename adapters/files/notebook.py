"""Read notebooks: cells of text and of code, with what they printed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from ...nodegraph.document import Document
from ...nodegraph.readers.source_files import SourceFile
from ...nodegraph.readers.text import decoded, join_pages

_MAX_OUTPUT = 2000  # characters of one cell


def read_notebook(source: SourceFile) -> Document:
    """Read a notebook as Markdown, with a page break between two cells.

    Raises:
        ReadError: If it is not a notebook.
    """
    text, _ = decoded(source)
    try:
        notebook: Any = json.loads(text)
        cells = notebook["cells"] if "cells" in notebook else notebook["worksheets"][0]["cells"]
        language = str(notebook.get("metadata", {}).get("kernelspec", {}).get("language", ""))
        pages = ["\n\n".join(_blocks(cell, language or "python")) for cell in cells]
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
        raise source.damaged(f"it is no notebook ({type(error).__name__}: {error})") from error
    return source.document(join_pages(pages), {"page_unit": "cell"})


def _joined(lines: Any) -> str:
    return lines if isinstance(lines, str) else "".join(lines)


def _blocks(cell: Any, language: str) -> Iterator[str]:
    source = _joined(cell.get("source", cell.get("input", ""))).strip()
    if cell["cell_type"] != "code":
        yield source
        return
    if source:
        yield f"```{language}\n{source}\n```"
    outputs = "\n".join(filter(None, map(_output, cell.get("outputs", []))))
    if outputs:
        cut = outputs[:_MAX_OUTPUT]
        yield f"```\n{cut}{' ...' if len(outputs) > len(cut) else ''}\n```"


def _output(output: Any) -> str:
    text = output.get("text") or output.get("data", {}).get("text/plain", "")
    return _joined(text).strip()
