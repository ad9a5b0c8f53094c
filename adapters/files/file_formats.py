"""File formats that need a third-party library or a special parser.

An entry point registers these formats.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from ...nodegraph.document import Document
from ...nodegraph.readers.decoding import decoded
from ...nodegraph.readers.formats import PROGRAM, FileFormat, format_by_name
from ...nodegraph.readers.source_files import SourceFile
from ...nodegraph.readers.text import join_pages
from .html import markdown, page_text, read_epub, read_html
from .mail import read_mailbox, read_message
from .office import read_office
from .office_xml import parser
from .spreadsheets import read_spreadsheet
from .symbols import symbols_in

_MAX_OUTPUT = 2000  # maximum total number of characters in the outputs of a cell


_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\].*?(?:\x07|\x1b\\)|[@-_])|\x08")
"""Terminal escape sequences, which set colors, create links or move the cursor."""


def read_notebook(source: SourceFile) -> Document:
    """Convert a Jupyter notebook to Markdown, with page breaks between its cells.

    Raises:
        ReadError: If the file does not contain any cells.
    """
    notebook = json.loads(decoded(source))
    cells = _cells(notebook)
    if cells is None:
        raise source.damaged("it is not a notebook, because it has no cells")
    kernel = notebook.get("metadata", {}).get("kernelspec", {})
    language = str(kernel.get("language", "")) or "python"
    pages: list[str] = []
    for number, cell in enumerate(cells, start=1):
        place = f"cell {number}"
        text = _joined(cell.get("source", cell.get("input", ""))).strip()
        if cell.get("attachments"):
            source.note("pictures left out", place, len(cell["attachments"]))
        if cell.get("cell_type") == "code":
            blocks = {language: text, "": _outputs(cell, source, place)}
            text = "\n\n".join(f"```{name}\n{code}\n```" for name, code in blocks.items() if code)
        pages.append(text)
    return source.document(join_pages(pages), {"page_unit": "cell"})


def _cells(notebook: Any) -> list[Any] | None:
    """Return the cells of a notebook, or None if it is not a notebook."""
    if not isinstance(notebook, dict):
        return None
    sheets = [notebook, *notebook.get("worksheets", ())]
    lists = [sheet["cells"] for sheet in sheets if "cells" in sheet]
    if not lists:
        return None
    return list(chain.from_iterable(lists))


def _outputs(cell: Any, source: SourceFile, place: str) -> str:
    """Return the outputs of a cell, truncated to a maximum length."""
    written = [_output(output, source, place) for output in cell.get("outputs", [])]
    outputs = _ESCAPE.sub("", "\n".join(output for output in written if output))
    if len(outputs) <= _MAX_OUTPUT:
        return outputs
    source.note(f"outputs cut after {_MAX_OUTPUT:,} characters", place)
    return f"{outputs[:_MAX_OUTPUT]} ..."


def _joined(lines: Any) -> str:
    return lines if isinstance(lines, str) else "".join(lines)


def _output(output: Any, source: SourceFile, place: str) -> str:
    if "ename" in output:
        traceback = "\n".join(output.get("traceback", ()))
        return traceback.strip() or f"{output['ename']}: {output.get('evalue', '')}"
    data = {**output, **output.get("data", {})}
    for kind in data:
        if kind in _PICTURES or kind.startswith("image/"):
            source.note("pictures left out", place)
        elif "/" in kind and not kind.startswith("text/"):
            source.note(f"outputs of type {kind} left out", place)
    kinds = ("text/markdown", "text", "text/plain", "text/latex", "latex")
    texts = [text for kind in kinds if (text := _joined(data.get(kind, "")).strip())]
    # A text such as "<IPython.core.display.HTML object>" is only a placeholder for other
    # representations.
    full = [text for text in texts if not text.startswith("<")]
    html = _joined(data.get("text/html", data.get("html", "")))
    if html and ("<table" in html or not full):
        full.insert(0, page_text(html, source, place))
    return next((text for text in (*full, *texts) if text), "")


_PICTURES = ("png", "jpeg", "svg")  # keys that old notebook formats use

_HTML = re.compile(rb"\s*(?:<!--.{0,400}?-->\s*)?(?:<!doctype\s+html|<html[\s>])", re.I | re.S)

_HTML_NAMES = (".html", ".htm", ".xhtml")

_PDF = re.compile(rb"\s*%PDF-\d\.\d[\r\n]")


def _is_text_name(path: Path) -> bool:
    """Return whether a file name has the suffix of a text format.

    Text files can begin with any characters, so their type cannot be detected from their contents.
    """
    by_name = format_by_name(path)
    return by_name is not None and not by_name.binary


def _is_html(path: Path, head: bytes) -> bool:
    may_be = path.suffix.lower() in ("", ".txt", ".text", *_HTML_NAMES) or not _is_text_name(path)
    return may_be and _HTML.match(head.removeprefix(b"\xef\xbb\xbf")) is not None


def _is_pdf(path: Path, head: bytes) -> bool:
    if _is_text_name(path):
        return _PDF.match(head) is not None
    return b"%PDF-" in head[:1024]


_ZIP = b"PK\x03\x04"

_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # files from Office 97 to 2003, and encrypted files

_OFFICE_NAMES = tuple(
    ".docx .docm .dotx .pptx .pptm .ppsx .odt .ott .odp .rtf "
    ".xlsx .xlsm .xlsb .xls .ods .doc .dot .ppt .pps".split()
)


_MAX_UNNAMED = 20_000_000  # maximum size in bytes of a file whose suffix does not match


def _kind_of(path: Path, head: bytes) -> str:
    """Detect the type of an Office file from its contents.

    For other files, return an empty string.
    """
    is_named = path.suffix.lower() in _OFFICE_NAMES
    is_small = is_named or path.stat().st_size <= _MAX_UNNAMED  # other archives may be huge
    if not is_small or not head.startswith((_ZIP, _OLE, b"{\\rtf1")):
        return ""
    try:
        from anydoc import format_from_bytes
    except ModuleNotFoundError:
        if not is_named:  # this is some other archive
            return ""
        with parser("anydoc"):
            raise
    return format_from_bytes(path.read_bytes()) or ""


def _is_office(path: Path, head: bytes) -> bool:
    """Return whether a file is an Office file.

    If the file is damaged or encrypted, this is determined from its name.
    """
    if kind := _kind_of(path, head):
        return kind != "epub"
    return path.suffix.lower() in _OFFICE_NAMES and head.startswith((_ZIP, _OLE))


def _is_epub(path: Path, head: bytes) -> bool:
    if head[30:].startswith(b"mimetypeapplication/epub+zip"):
        return True
    return path.suffix.lower() == ".epub" and head.startswith(_ZIP)


def _read_office_file(source: SourceFile) -> Document:
    """Read a text document, presentation or spreadsheet.

    Raises:
        ReadError: If the file is encrypted.
    """
    data = source.path.read_bytes()
    if data.startswith(_OLE) and "EncryptedPackage".encode("utf-16-le") in data:
        raise source.encrypted("Office file")
    match _kind_of(source.path, data):
        case "xlsx" | "ods":
            return read_spreadsheet(source)
        case "doc":
            return _read_old_office(source, "doc")
        case "ppt":
            return _read_old_office(source, "ppt")
    return read_office(source)


_INSTALL_LEGACY = 'pip install "nodekin[legacy]"'


def _read_old_office(source: SourceFile, kind: Literal["doc", "ppt"]) -> Document:
    """Read a Word document or a presentation from Office 97 to 2003.

    Raises:
        ReadError: If office-oxide is not installed.
    """
    with parser("office_oxide", _INSTALL_LEGACY):
        from office_oxide import Document as OldDocument
    with OldDocument.from_bytes(source.path.read_bytes(), kind) as document:
        html = document.to_html()
    source.note("pictures, charts, hidden slides, deleted passages not read", "the document")
    if kind == "doc":
        return source.document(markdown(html))
    slides = [markdown(slide) for slide in re.split(r"<hr ?/?>", html)]
    return source.document(join_pages(slides), {"page_unit": "slide"})


def _read_pdf(source: SourceFile) -> Document:
    from .pdf import read_pdf  # this import is slow

    return read_pdf(source)


FORMATS = (
    replace(PROGRAM, symbols=symbols_in),
    FileFormat("notebook", (".ipynb",), read_notebook, isolated=False, binary=False),
    FileFormat("PDF", (".pdf",), _read_pdf, recognizes=_is_pdf),
    FileFormat("EPUB", (".epub",), read_epub, recognizes=_is_epub),
    FileFormat("Office file", _OFFICE_NAMES, _read_office_file, recognizes=_is_office),
    FileFormat("web page", _HTML_NAMES, read_html, binary=False, recognizes=_is_html),
    FileFormat("e-mail", (".eml",), read_message, binary=False),
    FileFormat("mailbox", (".mbox",), read_mailbox, binary=False),
)
