"""Read Word documents and slides."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from typing import Any

from ...nodegraph.document import Document
from ...nodegraph.readers.pages import join_pages, markdown_table
from ...nodegraph.readers.source_file import SourceFile
from .html import markdown
from .packed_files import check_zip, opened_zip, parser


def read_docx(source: SourceFile) -> Document:
    """Read a Word document: headings, lists, tables, and footnotes at its end."""
    check_zip(source, "Word document")
    with parser("mammoth"):
        import mammoth
    with source.path.open("rb") as file:
        html = mammoth.convert_to_html(file, convert_image=mammoth.images.img_element(_no_image))
    text = markdown(_NOTE_MARK.sub(r"\1", html.value))
    return source.document(text, _core_properties(source))


_NOTE_MARK = re.compile(r'<a href="#(?:foot|end)note-[^>]*>(?:(\[\d+\])|↑)</a>')
"""Where a note belongs, and the arrow with which it leads back there."""


def _no_image(image: Any) -> dict[str, str]:
    return {"src": ""}


def _core_properties(source: SourceFile) -> dict[str, Any]:
    """Return the title and the author that an Office file says it has."""
    from xml.etree import ElementTree

    with opened_zip(source, "Office file") as archive:
        if "docProps/core.xml" not in archive.namelist():
            return {}
        try:
            root = ElementTree.fromstring(archive.read("docProps/core.xml"))
        except ElementTree.ParseError:
            return {}
    values = {element.tag.rsplit("}")[-1]: (element.text or "").strip() for element in root}
    named = {"title": values.get("title"), "author": values.get("creator")}
    return {name: value for name, value in named.items() if value}


def read_pptx(source: SourceFile) -> Document:
    """Read slides: titles as headings, lists, tables, notes; a page break between two slides."""
    check_zip(source, "PowerPoint file")
    with parser("pptx"):
        from pptx import Presentation
    logging.getLogger("pptx").setLevel(logging.ERROR)
    slides = ["\n\n".join(_slide_blocks(slide)) for slide in Presentation(str(source.path)).slides]
    return source.document(join_pages(slides), {**_core_properties(source), "page_unit": "slide"})


def _slide_blocks(slide: Any) -> Iterator[str]:
    title = slide.shapes.title
    if title is not None and (text := " ".join(title.text_frame.text.split())):
        yield f"# {text}"
    for shape in _in_reading_order(slide.shapes):
        if title is None or shape.shape_id != title.shape_id:
            yield from _shape_blocks(shape)
    frame = slide.notes_slide.notes_text_frame if slide.has_notes_slide else None
    if frame is not None and (notes := frame.text.strip()):
        yield f"Notes: {notes}"


def _in_reading_order(shapes: Any) -> list[Any]:
    return sorted(shapes, key=lambda shape: (shape.top or 0, shape.left or 0))


def _shape_blocks(shape: Any) -> Iterator[str]:
    if hasattr(shape, "shapes"):  # a group of shapes
        for inner in _in_reading_order(shape.shapes):
            yield from _shape_blocks(inner)
    elif getattr(shape, "has_table", False) and shape.has_table:
        yield markdown_table([cell.text for cell in row.cells] for row in shape.table.rows)
    elif getattr(shape, "has_text_frame", False) and shape.has_text_frame:
        paragraphs = [p for p in shape.text_frame.paragraphs if p.text.strip()]
        if len(paragraphs) > 1:
            yield "\n".join(f"{'  ' * p.level}- {' '.join(p.text.split())}" for p in paragraphs)
        elif paragraphs:
            yield " ".join(paragraphs[0].text.split())
