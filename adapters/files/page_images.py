"""Render the pages of a PDF as images in which the text of a node is highlighted."""

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

_WIDTH = 1_200  # width of the image in pixels

_MAX_HEIGHT = 12_000

_MAX_PIXELS = 4_000_000

# The maximum value of each color component under a highlight, so that the text stays readable.
_HIGHLIGHT = np.array([255, 228, 92], dtype=np.uint8)

_PADDING = 0.002  # padding around a highlight, relative to the height of the page

_Rectangle = tuple[float, float, float, float]


def page_image(node: Node, page: int | None = None, span: tuple[int, int] | None = None) -> bytes:
    """Render a PDF page as a PNG image in which the text of a node is highlighted.

    Use it to show where a result or a quotation (``answer.quotes[0].spans[0]``) is located. The
    page is rendered in a separate process. The file must be unchanged since it was read, because
    otherwise the highlights could be wrong.

    Args:
        node: The node. If it is a whole document, nothing is highlighted.
        page: The page number, starting at 1. Defaults to the first page of the node.
        span: The start and end offsets of the text to highlight, in the document of the node.
            Defaults to the text of the node.

    Returns:
        The bytes of the PNG image.

    Raises:
        ValueError: If the node does not belong to a graph, or the span is outside the document.
        LookupError: If the page does not exist, or the document was not read from a file.
        ReadError: If the file was removed or changed, is not a PDF, or cannot be rendered, or if
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
        finalize(graph, process.close)  # in case the graph is never closed
        return process

    try:
        image = graph.reader.shared(render_page, started).call((str(path), page, rectangles))
    except (TimeoutError, ChildProcessError, RuntimeError) as error:
        raise ReadError(f"can't show page {page} of {path}: {error}") from error
    return bytes(image)


def _passage(document: Node, span: tuple[int, int]) -> Node:
    """Return a node that contains only the given span of a document."""
    start, end = span
    if not 0 <= start < end <= len(document.text):
        raise ValueError(
            f"span must be from 0 to {len(document.text)} in {document.id!r}, got {span}"
        )
    return replace(document, text=document.text[start:end], start=start, end=end)


def render_page(task: tuple[str, int, Sequence[_Rectangle]]) -> bytes:
    """Render a PDF page as a PNG image.

    Args:
        task: The path of the file, the page number (starting at 1), and the rectangles to
            highlight.

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
