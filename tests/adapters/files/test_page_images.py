"""Pages of PDF files as pictures, with parts of them marked."""

import io
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from pypdfium2 import PdfiumError
from support.sample_files import pdf_of

from nodekin.adapters.files.page_images import page_image, render_page
from nodekin.nodegraph import Document, Node, NodeGraph, ReadError, split_sentences

EXAMPLES = Path(__file__).parents[3] / "examples" / "files"


def pixels_of(image: bytes) -> np.ndarray:
    return np.array(Image.open(io.BytesIO(image)))


def marked_rows(image: bytes) -> np.ndarray:
    """Return which rows of pixels have marks, as shares of the height."""
    pixels = pixels_of(image).astype(int)
    is_yellow = (pixels[:, :, 0] > 200) & (pixels[:, :, 2] < 120)
    return np.flatnonzero(is_yellow.any(axis=1)) / len(pixels)


def test_page_image_marks_sentence_if_file_is_unchanged(tmp_path: Path) -> None:
    file = shutil.copy(EXAMPLES / "handbook.pdf", tmp_path)
    with NodeGraph(file, progress=False) as graph:
        graph.create_node_group("sentence", split_sentences)
        (node,) = [n for n in graph.nodes("sentence") if "vinegar on Mondays" in n.text]
        (top, *_), (*_, bottom) = zip(*(x.rectangle[1::2] for x in node.locations), strict=True)
        image = page_image(node)
        rows = marked_rows(image)
        assert top - 0.01 < rows[0] < rows[-1] < bottom + 0.01
        assert page_image(node.root, 2, (node.start, node.end)) == image
        assert not len(marked_rows(page_image(node.root, 2)))
        assert not len(marked_rows(page_image(node, 1)))
        for number in (0, 3):
            with pytest.raises(LookupError, match=f"from 1 to 2 in handbook.pdf, got {number}"):
                page_image(node, number)
        with pytest.raises(ValueError, match="span must be from 0 to"):
            page_image(node, None, (5, 5))
        with Path(file).open("ab") as opened:
            opened.write(b"\n")
        with pytest.raises(ReadError, match="has changed since it was read"):
            page_image(node)
        Path(file).unlink()
        with pytest.raises(ReadError, match="can't read"):
            page_image(node)


def test_page_image_raises_for_other_nodes(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("Tea.", encoding="utf-8")
    graph = NodeGraph(tmp_path, progress=False)
    with pytest.raises(ReadError, match="is not a PDF"):
        page_image(graph.nodes("ROOT")[0])
    with pytest.raises(ValueError, match="must belong to a graph"):
        page_image(Node("Tea."))
    secret = {"page_unit": "page", "file_path": str(EXAMPLES / "handbook.pdf")}
    graph.add(Document("Tea.", secret, id="b"))  # which names a file that was not read
    with pytest.raises(LookupError, match="was not read from a file"):
        page_image(graph.node("b"))
    (tmp_path / "c.pdf").write_bytes(b"%PDF-1.4 nothing")
    with pytest.raises(PdfiumError):
        render_page((str(tmp_path / "c.pdf"), 1, ()))


@pytest.mark.parametrize(
    ("boxes", "shown"),
    [
        (b"MediaBox[0 0 300 600]", (1200, 2400)),
        (b"MediaBox[0 0 300 600]/Rotate 90", (1200, 600)),
        (b"MediaBox[0 0 300 300]/CropBox[0 0 300 100]", (1200, 400)),
        (b"MediaBox[0 0 1 1000000]", (1, 12_000)),
        (b"MediaBox[0 0 1000000 1]", (1200, 1)),
        (b"MediaBox[0 0 300 300]/CropBox[500 500 600 600]", "cut to an empty area"),
    ],
)
def test_page_image_has_limited_size(tmp_path: Path, boxes: bytes, shown: object) -> None:
    file = tmp_path / "a.pdf"
    file.write_bytes(pdf_of(b"").replace(b"MediaBox[0 0 300 300]", boxes))
    task = (str(file), 1, [(0.9, 0.9, 1, 1), (0.6, 0.6, 0.4, 0.4)])
    if isinstance(shown, str):
        with pytest.raises(ValueError, match=shown):
            render_page(task)
    else:
        assert Image.open(io.BytesIO(render_page(task))).size == shown


def test_form_field_values_are_read_and_rendered(tmp_path: Path) -> None:
    field = (
        b"/Annots[<</Type/Annot/Subtype/Widget/FT/Tx/T(a)/V(Ada)/F 4/Rect[10 100 290 140]"
        b"/DA(/F 30 Tf 0 g)/AP<</N 6 0 R>>>>]"
    )
    look = b"<</Type/XObject/Subtype/Form/BBox[0 0 280 40]/Resources<</Font<</F 3 0 R>>>>/Length 32"
    text = b"BT /F 30 Tf 2 8 Td (Ada) Tj ET  "
    data = pdf_of(b"BT /F 12 Tf 20 250 Td (Name:) Tj ET")
    data = data.replace(b"/Type/Page/", b"/Type/Page" + field + b"/")
    data = data.replace(b"/Type/Catalog", b"/Type/Catalog/AcroForm<</Fields[]>>")
    picture = data.index(b"6 0 obj") + len(b"6 0 obj")
    stop = data.index(b"endobj", picture)
    data = data[:picture] + look + b">>stream\n" + text + b"\nendstream " + data[stop:]
    (tmp_path / "a.pdf").write_bytes(data[: data.index(b"xref")] + data[data.index(b"trailer") :])
    node = NodeGraph(tmp_path, progress=False).nodes("ROOT")[0]
    assert node.text.split() == ["Name:", "Ada"]
    (_, place) = node.locations
    assert place.rectangle is not None
    letters = np.flatnonzero((pixels_of(page_image(node)) < 100).any(axis=(1, 2))) / 1200
    assert any(place.rectangle[1] < row < place.rectangle[3] for row in letters)
