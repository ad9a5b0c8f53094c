"""Functions shared by file readers: missing libraries and zip files."""

from __future__ import annotations

import posixpath
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from xml.etree import ElementTree

from ...nodegraph.errors import NEEDS_EXTRA, ReadError
from ...nodegraph.readers.formats import INSTALL_FILES
from ...nodegraph.readers.source_files import SourceFile


@contextmanager
def parser(module: str) -> Iterator[None]:
    """Import the library of a format in the block.

    Raises:
        ReadError: If the library is not installed. The message names the extra.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != module:
            raise
        raise ReadError(
            f"{module} is not installed; get the readers of files with: {INSTALL_FILES}",
            f"{NEEDS_EXTRA}{INSTALL_FILES}",
            skippable=True,
        ) from error


def title_and_author(elements: Iterable[ElementTree.Element]) -> dict[str, str]:
    """Return the title and the author from XML elements."""
    values = {element.tag.rsplit("}")[-1]: (element.text or "").strip() for element in elements}
    metadata = {"title": values.get("title"), "author": values.get("creator")}
    return {name: value for name, value in metadata.items() if value}


@contextmanager
def opened_zip(source: SourceFile, what: str) -> Iterator[zipfile.ZipFile]:
    """Open a zip file and check its unpacked size.

    Raises:
        ReadError: If the file is encrypted, or larger unpacked than the options allow.
    """
    with zipfile.ZipFile(source.path) as archive:
        parts = archive.infolist()
        if any(part.flag_bits & 1 for part in parts):
            raise source.encrypted(what)
        size = sum(part.file_size for part in parts)
        if size > source.options.max_unpacked_bytes:
            raise ReadError(
                f"{source.path} unpacks to {size:,} bytes, more than the "
                f"{source.options.max_unpacked_bytes:,} of ReadOptions(max_unpacked_bytes=...)",
                "too large unpacked",
                skippable=True,
            )
        yield archive


def core_properties(archive: zipfile.ZipFile) -> dict[str, str]:
    """Return the title and the author from the properties of an Office file."""
    return title_and_author(xml_part(archive, "docProps/core.xml"))


def xml_part(archive: zipfile.ZipFile, name: str) -> ElementTree.Element:
    """Return the XML of a part, or an empty element if the part is missing or damaged."""
    try:
        return ElementTree.fromstring(archive.read(name))
    except (KeyError, ElementTree.ParseError):
        return ElementTree.Element("missing")


def relations(archive: zipfile.ZipFile, name: str) -> dict[str, tuple[str, str]]:
    """Return the parts to which a part of an Office file refers, by id: kind and name."""
    folder, base = posixpath.split(name)
    return {
        relation.get("Id", ""): (
            relation.get("Type", "").rpartition("/")[2],
            posixpath.normpath(posixpath.join("/", folder, relation.get("Target", ""))).strip("/"),
        )
        for relation in xml_part(archive, f"{folder}/_rels/{base}.rels")
    }
