"""File formats that require a library or a special parser. An entry point registers them."""

from __future__ import annotations

import json
import re
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from ...nodegraph.document import Document
from ...nodegraph.errors import ReadError
from ...nodegraph.readers.decoding import decoded
from ...nodegraph.readers.formats import PROGRAM, FileFormat, format_by_name
from ...nodegraph.readers.source_files import ReadOptions, SourceFile
from ...nodegraph.readers.text import join_pages
from .html import markdown, read_epub, read_html
from .mail import read_mailbox, read_message
from .office import read_office
from .spreadsheets import read_spreadsheet
from .symbols import symbols_in

_MAX_OUTPUT = 2000  # maximum characters of the outputs of a cell


_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\].*?(?:\x07|\x1b\\)|[@-_])|\x08")
"""Escape sequences of terminals: colors, links, cursor movements."""


def read_notebook(source: SourceFile) -> Document:
    """Read a notebook as Markdown, with a page break between two cells."""
    notebook = json.loads(decoded(source))
    cells = notebook["cells"] if "cells" in notebook else notebook["worksheets"][0]["cells"]
    language = str(notebook.get("metadata", {}).get("kernelspec", {}).get("language", ""))
    pages: list[str] = []
    for number, cell in enumerate(cells, start=1):
        place = f"cell {number}"
        text = _joined(cell.get("source", cell.get("input", ""))).strip()
        if cell.get("attachments"):
            source.note("pictures left out", place, len(cell["attachments"]))
        if cell["cell_type"] == "code":
            written = (_output(output, source, place) for output in cell.get("outputs", []))
            outputs = _ESCAPE.sub("", "\n".join(filter(None, written)))
            if len(outputs) > _MAX_OUTPUT:
                source.note(f"outputs cut after {_MAX_OUTPUT:,} characters", place)
                outputs = f"{outputs[:_MAX_OUTPUT]} ..."
            blocks = ((language or "python", text), ("", outputs))
            text = "\n\n".join(f"```{name}\n{code}\n```" for name, code in blocks if code)
        pages.append(text)
    return source.document(join_pages(pages), {"page_unit": "cell"})


def _joined(lines: Any) -> str:
    return lines if isinstance(lines, str) else "".join(lines)


def _output(output: Any, source: SourceFile, place: str) -> str:
    if "ename" in output:
        traceback = "\n".join(output.get("traceback", ()))
        return traceback.strip() or f"{output['ename']}: {output.get('evalue', '')}"
    data = {**output, **output.get("data", {})}
    for kind in ("text", "text/plain", "text/markdown", "text/latex"):
        if kind in data:
            return _joined(data[kind]).strip()
    if html := _joined(data.get("text/html", data.get("html", ""))):
        return markdown(html)
    if kinds := [kind for kind in output.get("data", {}) if "/" in kind]:
        source.note(f"outputs of type {kinds[0]} left out", place)
    return ""


_HTML = re.compile(rb"\s*(?:<!--.{0,400}?-->\s*)?(?:<!doctype\s+html|<html[\s>])", re.I | re.S)

_HTML_NAMES = (".html", ".htm", ".xhtml")

_PDF = re.compile(rb"\s*%PDF-\d\.\d[\r\n]")


def _is_text_name(path: Path) -> bool:
    """Return whether a file name is of a text format, which begins as the author likes."""
    by_name = format_by_name(path)
    return by_name is not None and not by_name.binary


def _is_html(path: Path, head: bytes) -> bool:
    may_be = path.suffix.lower() in ("", ".txt", ".text", *_HTML_NAMES) or not _is_text_name(path)
    return may_be and _HTML.match(head.removeprefix(b"\xef\xbb\xbf")) is not None


def _is_pdf(path: Path, head: bytes) -> bool:
    return bool(_PDF.match(head)) if _is_text_name(path) else b"%PDF-" in head[:1024]


def _is_packed(folder: str = "\0", mime_type: str = "\0") -> Callable[[Path, bytes], bool]:
    """Return a function that recognizes zip files with a folder or a MIME type."""

    def recognizes(path: Path, head: bytes) -> bool:
        if not head.startswith(b"PK\x03\x04"):
            return False
        try:
            with zipfile.ZipFile(path) as archive:
                names = archive.namelist()
                mime = archive.read("mimetype")[:80] if "mimetype" in names else b""
        except (zipfile.BadZipFile, zlib.error, OSError, ValueError, RuntimeError) as error:
            by_name = format_by_name(path)
            if by_name is None or not by_name.binary:
                return False
            raise ReadError(
                f"can't read {path}: it is not a complete {by_name.name}: {error}"
            ) from error
        return mime.startswith(mime_type.encode()) or any(n.startswith(folder) for n in names)

    return recognizes


_INSTALL_LEGACY = 'pip install "nodekin[legacy]"'


_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"

_STREAMS = {
    "encrypted": ("EncryptedPackage",),
    "msg": ("__substg1.0_",),
    "xls": ("Workbook", "Book"),
    "ppt": ("PowerPoint Document",),
    "doc": ("WordDocument",),
}
"""The names of streams in files of Office 97 to 2003, by the usual suffix."""


def _old_kind(path: Path, head: bytes) -> str:
    """Return the usual suffix of a file of Office 97 to 2003 by its contents, then its name.

    A document may contain others. Empty: another file.
    """
    if not head.startswith(_OLE):
        return ""
    with path.open("rb") as file:
        data = file.read(1 << 20)
        file.seek(max(0, path.stat().st_size - (1 << 16)))
        data += file.read()
    found = [
        kind
        for kind, names in _STREAMS.items()
        if any(name.encode("utf-16-le") in data for name in names)
    ]
    suffix = path.suffix.lower()[1:]
    by_name = {"dot": "doc", "pps": "ppt"}.get(suffix, suffix)
    is_known = by_name in found or (not found and by_name in _STREAMS)
    return by_name if is_known and "encrypted" not in found else next(iter(found), "")


def _read_old_office(source: SourceFile) -> Document:
    """Read a Word document or slides of Office 97 to 2003."""
    from office_oxide import Document as OldDocument

    data = source.path.read_bytes()
    is_text = _old_kind(source.path, data) == "doc"
    with OldDocument.from_bytes(data, "doc" if is_text else "ppt") as document:
        html = document.to_html()
    if is_text:
        return source.document(markdown(html))
    slides = map(markdown, re.split(r"<hr ?/?>", html))
    return source.document(join_pages(slides), {"page_unit": "slide"})


def _is_old_office(path: Path, head: bytes) -> bool:
    """Return whether a file is a text or slides of old Office programs.

    Raises:
        ReadError: If the file is encrypted, a message of Outlook, or needs office-oxide, which is
            not installed.
    """
    kind = _old_kind(path, head)
    if kind == "encrypted":
        by_name = format_by_name(path)
        raise SourceFile(path, ReadOptions()).encrypted(by_name.name if by_name else "Office file")
    if kind not in ("doc", "ppt", "msg") or (kind != "msg" and find_spec("office_oxide")):
        return kind in ("doc", "ppt")
    what, remedy = "message of Outlook", "save it as .eml"
    if kind != "msg":
        what = "file of old Office programs"
        remedy = f"{_INSTALL_LEGACY}; or soffice --headless --convert-to {kind}x {path.name!r}"
    raise ReadError(
        f"{path} is a {what}, a format without a reader; {remedy}; or register a reader: "
        f"register_reader({'*' + path.suffix!r}, SomeLoader)",
        f"old {path.suffix.lower() or 'Office'} file",
        skippable=True,
    )


_OPEN_DOCUMENT = "application/vnd.oasis.opendocument."

_is_workbook = _is_packed("xl/", f"{_OPEN_DOCUMENT}spreadsheet")


def _is_spreadsheet(path: Path, head: bytes) -> bool:
    return _old_kind(path, head) == "xls" or _is_workbook(path, head)


def _read_pdf(source: SourceFile) -> Document:
    from .pdf import read_pdf  # a slow import

    return read_pdf(source)


FORMATS = (
    replace(PROGRAM, symbols=symbols_in),
    FileFormat("notebook", (".ipynb",), read_notebook, isolated=False, binary=False),
    FileFormat("PDF", (".pdf",), _read_pdf, recognizes=_is_pdf),
    FileFormat(
        "rich text", (".rtf",), read_office, recognizes=lambda _, head: head.startswith(b"{\\rtf1")
    ),
    FileFormat("EPUB", (".epub",), read_epub, recognizes=_is_packed(mime_type="application/epub")),
    FileFormat(
        "Word document", (".docx", ".docm", ".dotx"), read_office, recognizes=_is_packed("word/")
    ),
    FileFormat(
        "PowerPoint file", (".pptx", ".pptm", ".ppsx"), read_office, recognizes=_is_packed("ppt/")
    ),
    FileFormat(
        "spreadsheet",
        (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"),
        read_spreadsheet,
        recognizes=_is_spreadsheet,
    ),
    FileFormat(
        "old Office file",
        (".doc", ".dot", ".ppt", ".pps"),
        _read_old_office,
        recognizes=_is_old_office,
    ),
    FileFormat(
        "OpenDocument file",
        (".odt", ".ott", ".odp"),
        read_office,
        recognizes=_is_packed(mime_type=_OPEN_DOCUMENT),
    ),
    FileFormat("web page", _HTML_NAMES, read_html, binary=False, recognizes=_is_html),
    FileFormat("e-mail", (".eml",), read_message, binary=False),
    FileFormat("mailbox", (".mbox",), read_mailbox, binary=False),
)
