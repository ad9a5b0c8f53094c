"""Render a PDF page as an image, with a node's span highlighted."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from weakref import finalize

import numpy as np

from ...nodegraph.errors import ReadError
from ...nodegraph.node import Node
from ...nodegraph.workers.process_workers import WorkerProcess
from .office_xml import parser

_WIDTH = 1_200  # pixels

_MAX_HEIGHT = 12_000

_MAX_PIXELS = 4_000_000

# The maximum of each color under a highlight, so that text stays readable.
_HIGHLIGHT = np.array([255, 228, 92], dtype=np.uint8)

_PADDING = 0.002  # share of the page's height, added around a highlight

_Rectangle = tuple[float, float, float, float]


def page_image(node: Node, page: int | None = None, span: tuple[int, int] | None = None) -> bytes:
    """Return a PDF page as a PNG, with a node's text highlighted.

    A separate process renders the page. The file must not have changed since it was read.
    Otherwise, the highlights could be wrong.

    Use it to show the position of a result or a quotation (``answer.quotes[0].spans[0]``).

    Args:
        node: The node. A whole document has no highlight.
        page: The page number, starting at 1. Defaults to the node's first page.
        span: The span (start, end) to highlight in the node's document. Defaults to the node's
            span.

    Raises:
        ValueError: If the node has no graph, or the span is outside of its document.
        LookupError: If the page does not exist, or the document has no file.
        ReadError: If the file was removed or changed, is not a PDF, or can't be rendered, or if
            pypdfium2 is not installed.
    """
    graph: Any = node.graph
    if graph is None:
        raise ValueError(f"{node!r} must belong to a graph, which stores the path of its file")
    if span is not None:
        node = _passage(node.root, span)
    with parser("pypdfium2"):
        import pypdfium2  # noqa: F401
    if node.metadata.get("page_unit") != "page":
        raise ReadError(f"{node.document_id!r} is not a PDF")
    path, _ = graph.reader.unchanged_file(node.document_id)
    is_document = (node.start, node.end) == (0, len(node.root.text))
    locations = [] if is_document else node.locations
    if page is None:
        page = next((location.page for location in locations), None) or 1
    count = int(node.metadata.get("page_count", 1))
    if not 1 <= page <= count:
        raise LookupError(f"page must be from 1 to {count} in {path.name}, got {page}")
    rectangles = tuple(x.rectangle for x in locations if x.page == page and x.rectangle)

    def started() -> WorkerProcess:
        process = WorkerProcess(render_page, seconds=10, memory_bytes=512 * 2**20)
        finalize(graph, process.close)  # if the graph is never closed
        return process

    try:
        image = graph.reader.shared(render_page, started).call((str(path), page, rectangles))
    except (TimeoutError, ChildProcessError, RuntimeError) as error:
        raise ReadError(f"can't show page {page} of {path}: {error}") from error
    return bytes(image)


def _passage(document: Node, span: tuple[int, int]) -> Node:
    """Return a node that contains only the span of a document."""
    start, end = span
    if not 0 <= start < end <= len(document.text):
        raise ValueError(
            f"span must be from 0 to {len(document.text)} in {document.id!r}, got {span}"
        )
    return replace(document, text=document.text[start:end], start=start, end=end)


def render_page(task: tuple[str, int, Sequence[_Rectangle]]) -> bytes:
    """Return a PDF page as a PNG.

    Args:
        task: The path, the page number, starting at 1, and the rectangles to highlight.

    Raises:
        ValueError: If the visible area of the page is empty.
    """
    from PIL import Image
    from pypdfium2 import PdfDocument

    from .pdf import page_with_fields

    path, number, rectangles = task
    pdf = PdfDocument(path)
    page = page_with_fields(pdf, number)
    width, height = page.get_size()
    if not width * height:
        raise ValueError("it shows nothing: it is cut to an empty area")
    scale = min(_WIDTH / width, _MAX_HEIGHT / height, (_MAX_PIXELS / (width * height)) ** 0.5)
    bitmap = page.render(scale=scale, rev_byteorder=True)
    pixels = bitmap.to_numpy()[:, :, :3].copy()
    pdf.close()
    rows, columns = pixels.shape[:2]
    margin = round(_PADDING * rows)
    for left, top, right, bottom in rectangles:
        across = slice(max(0, round(left * columns) - margin), round(right * columns) + margin)
        down = slice(max(0, round(top * rows) - margin), round(bottom * rows) + margin)
        pixels[down, across] = np.minimum(pixels[down, across], _HIGHLIGHT)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, "PNG")
    return buffer.getvalue()
