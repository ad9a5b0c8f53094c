"""Read EPUB: the chapters of a book, in the order of its spine."""

from __future__ import annotations

import posixpath
from urllib.parse import unquote

from ...nodegraph.document import Document
from ...nodegraph.readers.pages import join_pages
from ...nodegraph.readers.source_file import SourceFile
from ...nodegraph.readers.text import decode
from .html import markdown
from .packed_files import opened_zip


def read_epub(source: SourceFile) -> Document:
    """Read a book; a page break between two chapters.

    Raises:
        ReadError: If it is damaged, or protected.
    """
    from xml.etree import ElementTree

    with opened_zip(source, "EPUB") as archive:
        names = set(archive.namelist())
        if "META-INF/rights.xml" in names:
            raise source.encrypted("EPUB")
        try:
            container = ElementTree.fromstring(archive.read("META-INF/container.xml"))
            package_path = next(
                e.attrib["full-path"] for e in container.iter() if e.tag.endswith("}rootfile")
            )
            package = ElementTree.fromstring(archive.read(package_path))
        except (KeyError, StopIteration, ElementTree.ParseError) as error:
            raise source.damaged(f"it has no list of its chapters ({error})") from error
        base = posixpath.dirname(package_path)
        items = {e.get("id"): e for e in package.iter() if e.tag.endswith("}item")}
        chapters = []
        for reference in (e for e in package.iter() if e.tag.endswith("}itemref")):
            item = items.get(reference.get("idref"))
            if item is None or item.get("properties") == "nav":
                continue
            name = posixpath.normpath(posixpath.join(base, unquote(item.get("href", ""))))
            if name in names:
                html, _ = decode(archive.read(name), source, declared=True)
                chapters.append(markdown(html))
    values = {e.tag.rsplit("}")[-1]: (e.text or "").strip() for e in package.iter()}
    metadata = {"title": values.get("title"), "author": values.get("creator")}
    known = {name: value for name, value in metadata.items() if value}
    return source.document(join_pages(filter(None, chapters)), {**known, "page_unit": "chapter"})
