"""Render a page of a PDF as an image, with the span of a node highlighted."""

from __future__ import annotations

import struct
import threading
import zlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from weakref import finalize

import numpy as np

from ...nodegraph.errors import ReadError
from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import Node
from ...nodegraph.workers.process_workers import WorkerProcess
from .packed_files import parser
from .pdf import page_with_fields

_WIDTH = 1_200  # pixels

_MAX_HEIGHT = 12_000

_MAX_PIXELS = 4_000_000

_MAX_CACHED_BYTES = 20_000_000

# The maximum of each color under a highlight, so that text stays readable.
_HIGHLIGHT = np.array([255, 228, 92], dtype=np.uint8)

_PADDING = 0.002  # share of a page's height, around a highlight

_Rectangle = tuple[float, float, float, float]


class PageImages:
    """A renderer of PDF pages of a graph, in a separate process.

    The file must be unchanged since it was read. Otherwise, the highlights could be wrong. The last
    images are cached.

    Args:
        graph: The graph.
    """

    def __init__(self, graph: NodeGraph) -> None:
        self._graph = graph
        self._process = WorkerProcess(render_page, seconds=10, memory_bytes=512 * 2**20)
        self._cache: OrderedDict[tuple[Any, ...], bytes] = OrderedDict()
        self._lock = threading.Lock()
        finalize(self, self._process.close)  # if the graph is never closed

    def image(self, node: Node, page: int | None = None) -> bytes:
        """Return a page. See ``page_image``."""
        with parser("pypdfium2"):
            import pypdfium2  # noqa: F401
        if node.metadata.get("page_unit") != "page":
            raise ReadError(f"{node.document_id!r} is not a PDF")
        path, content = self._graph.reader.unchanged_file(node.document_id)
        is_document = (node.start, node.end) == (0, len(node.root.text))
        locations = [] if is_document else node.locations
        if page is None:
            page = next((location.page for location in locations), None) or 1
        count = int(node.metadata.get("page_count", 1))
        if not 1 <= page <= count:
            raise LookupError(f"{path.name} has the pages 1 to {count}, not {page}")
        rectangles = tuple(x.rectangle for x in locations if x.page == page and x.rectangle)
        key = (content, page, rectangles)
        with self._lock:
            if key in self._cache:
                self._cache.move_to_end(key)
                return self._cache[key]
        try:
            image: bytes | str = self._process.call((str(path), page, rectangles))
        except (TimeoutError, ChildProcessError) as error:
            raise ReadError(f"can't show page {page} of {path}: {error}") from error
        if isinstance(image, str):
            raise ReadError(f"can't show page {page} of {path}: {image}")
        with self._lock:
            self._cache[key] = image
            while sum(map(len, self._cache.values())) > _MAX_CACHED_BYTES:
                self._cache.popitem(last=False)
        return image

    def close(self) -> None:
        """Stop the process. The next image starts a new process."""
        self._process.close()


def page_image(node: Node, page: int | None = None, span: tuple[int, int] | None = None) -> bytes:
    """Return a page of a PDF as a PNG, with the text of a node highlighted.

    Use it to show the position of a result or a quotation (``answer.quotes[0].spans[0]``).

    Args:
        node: The node. A whole document has no highlight.
        page: The page, from 1. Defaults to the first page of the node.
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
        raise ValueError(f"{node!r} belongs to no graph, which knows its file")
    if span is not None:
        root = node.root
        start, end = span
        if not 0 <= start < end <= len(root.text):
            raise ValueError(f"{root.id!r} has the characters 0 to {len(root.text)}, not {span}")
        node = replace(root, text=root.text[start:end], start=start, end=end)
    images: PageImages = graph.reader.shared(PageImages, lambda: PageImages(graph))
    return images.image(node, page)


def render_page(task: tuple[str, int, Sequence[_Rectangle]]) -> bytes | str:
    """Return a page of a PDF as a PNG, or the reason for a failure.

    Args:
        task: The path, the page number from 1, and the rectangles to highlight.
    """
    from pypdfium2 import PdfDocument, PdfiumError

    path, number, rectangles = task
    try:
        pdf = PdfDocument(path)
        page = page_with_fields(pdf, number)
        width, height = page.get_size()
        if not width * height:
            return "it shows nothing: it is cut to an empty area"
        scale = min(_WIDTH / width, _MAX_HEIGHT / height, (_MAX_PIXELS / (width * height)) ** 0.5)
        bitmap = page.render(scale=scale, rev_byteorder=True)
        pixels = bitmap.to_numpy()[:, :, :3].copy()
        pdf.close()
    except (PdfiumError, OSError) as error:
        return str(error)
    rows, columns = pixels.shape[:2]
    margin = round(_PADDING * rows)
    for left, top, right, bottom in rectangles:
        across = slice(max(0, round(left * columns) - margin), round(right * columns) + margin)
        down = slice(max(0, round(top * rows) - margin), round(bottom * rows) + margin)
        pixels[down, across] = np.minimum(pixels[down, across], _HIGHLIGHT)
    return png(pixels)


def png(pixels: Any) -> bytes:
    """Return an image as a PNG file.

    Args:
        pixels: Red, green and blue, (height, width, 3) uint8.
    """
    height, width = pixels.shape[:2]

    def chunk(kind: bytes, data: bytes) -> bytes:
        checksum = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", checksum)

    rows = b"".join(b"\0" + row.tobytes() for row in pixels)  # no filter
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = (chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(rows, 6)), chunk(b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)
