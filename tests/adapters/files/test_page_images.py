"""Pages of PDF files as pictures, with parts of them marked."""

import shutil
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

from nodekin.adapters.files.page_images import page_image, png, render_page
from nodekin.nodegraph import Document, Node, NodeGraph, ReadError, split_sentences

EXAMPLES = Path(__file__).parents[3] / "examples" / "files"


def pixels_of(image: bytes) -> np.ndarray:
    """Read what ``png`` wrote."""
    width, height = struct.unpack(">II", image[16:24])
    size = struct.unpack(">I", image[33:37])[0]
    rows = np.frombuffer(zlib.decompress(image[41 : 41 + size]), dtype=np.uint8)
    return rows.reshape(height, 1 + 3 * width)[:, 1:].reshape(height, width, 3)


def marked_rows(image: bytes) -> np.ndarray:
    """Return which rows of pixels have marks, as shares of the height."""
    pixels = pixels_of(image).astype(int)
    is_yellow = (pixels[:, :, 0] > 200) & (pixels[:, :, 2] < 120)
    return np.flatnonzero(is_yellow.any(axis=1)) / len(pixels)


def test_an_image_is_a_png() -> None:
    pixels = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3)
    assert (pixels_of(png(pixels)) == pixels).all()


def test_a_page_with_a_sentence_marked_while_the_file_is_as_it_was(tmp_path: Path) -> None:
    file = shutil.copy(EXAMPLES / "handbook.pdf", tmp_path)
    with NodeGraph(file, progress=False) as graph:
        graph.create_node_group("sentence", split_sentences)
        (node,) = [n for n in graph.nodes("sentence") if "vinegar on Mondays" in n.text]
        (top, *_), (*_, bottom) = zip(*(x.rectangle[1::2] for x in node.locations), strict=True)
        image = page_image(node)
        rows = marked_rows(image)
        assert top - 0.01 < rows[0] < rows[-1] < bottom + 0.01
        assert page_image(node) is image
        assert page_image(node.root, 2, (node.start, node.end)) is image
        assert not len(marked_rows(page_image(node.root, 2)))
        assert not len(marked_rows(page_image(node, 1)))
        with pytest.raises(LookupError, match="pages 1 to 2, not 3"):
            page_image(node, 3)
        with pytest.raises(ValueError, match="characters 0 to"):
            page_image(node, None, (5, 5))
        with Path(file).open("ab") as opened:
            opened.write(b"\n")
        with pytest.raises(ReadError, match="has changed since it was read"):
            page_image(node)
        Path(file).unlink()
        with pytest.raises(ReadError, match="can't read"):
            page_image(node)


def test_what_is_no_page_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("Tea.", encoding="utf-8")
    graph = NodeGraph(tmp_path, progress=False)
    with pytest.raises(ReadError, match="is not a PDF"):
        page_image(graph.nodes("ROOT")[0])
    with pytest.raises(ValueError, match="belongs to no graph"):
        page_image(Node("Tea."))
    secret = {"page_unit": "page", "file_path": str(EXAMPLES / "handbook.pdf")}
    graph.add(Document("Tea.", secret, id="b"))  # which names a file that was not read
    with pytest.raises(LookupError, match="is not a file that the graph has read"):
        page_image(graph.node("b"))
    (tmp_path / "c.pdf").write_bytes(b"%PDF-1.4 nothing")
    assert isinstance(render_page((str(tmp_path / "c.pdf"), 1, ())), str)
