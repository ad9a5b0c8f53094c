"""Helpers for zip archives, XML, equations and charts, shared by the readers for Office files."""

from __future__ import annotations

import posixpath
import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import zip_longest
from typing import Any, NamedTuple
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from ...nodegraph.errors import NEEDS_EXTRA, ReadError
from ...nodegraph.readers.formats import INSTALL_FILES
from ...nodegraph.readers.source_files import SourceFile
from .markup import subscript


@contextmanager
def parser(module: str, install: str = INSTALL_FILES) -> Iterator[None]:
    """Import the library that parses a file format inside a ``with`` block.

    Raises:
        ReadError: If the library is not installed. The message contains the install command.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] != module:
            raise
        raise ReadError(
            f"{module} is not installed; get the readers of files with: {install}",
            f"{NEEDS_EXTRA}{install}",
            skippable=True,
        ) from error


_MANIFEST = "META-INF/manifest.xml"


@contextmanager
def opened_zip(source: SourceFile, what: str) -> Iterator[zipfile.ZipFile]:
    """Open a zip archive after checking its uncompressed size.

    Raises:
        ReadError: If the archive is encrypted, or its uncompressed size exceeds the limit.
    """
    with zipfile.ZipFile(source.path) as archive:
        parts = archive.infolist()
        is_open = any(part.filename == _MANIFEST for part in parts)  # this is an OpenDocument file
        if any(part.flag_bits & 1 for part in parts):
            raise source.encrypted(what)
        if is_open and b"encryption-data" in archive.read(_MANIFEST):
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


def xml_part(archive: zipfile.ZipFile, name: str) -> Element:
    """Parse an XML part of an archive. Return an empty element if it is missing or damaged."""
    try:
        return ElementTree.fromstring(archive.read(name))
    except (KeyError, ElementTree.ParseError):
        return Element("missing")


def title_and_author(elements: Iterable[Element]) -> dict[str, str]:
    """Extract the title and the author from XML elements."""
    values = {local_name(element): (element.text or "").strip() for element in elements}
    metadata = {"title": values.get("title"), "author": values.get("creator")}
    return {name: value for name, value in metadata.items() if value}


class Relation(NamedTuple):
    """A reference from one part of an Office file to another part.

    Attributes:
        kind: The type of the referenced part, such as ``drawing``.
        part: The name of the referenced part in the archive.
    """

    kind: str
    part: str


def relations(archive: zipfile.ZipFile, name: str) -> dict[str, Relation]:
    """Return the references from a part of an Office file to other parts, keyed by id."""
    folder, base = posixpath.split(name)
    parts: dict[str, Relation] = {}
    for relation in xml_part(archive, f"{folder}/_rels/{base}.rels"):
        kind = relation.get("Type", "").rpartition("/")[2]
        target = posixpath.join("/", folder, relation.get("Target", ""))
        part = posixpath.normpath(target).strip("/")
        parts[relation.get("Id", "")] = Relation(kind, part)
    return parts


def local_name(element: Element) -> str:
    """Return the name of an element without its namespace. For comments, return an empty string."""
    return _name_of(element.tag)


@lru_cache(maxsize=10_000)
def _name_of(tag: object) -> str:
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def attribute(element: Element, name: str) -> str:
    """Return an attribute, ignoring namespaces, or an empty string if it is missing."""
    return next((v for k, v in element.attrib.items() if k.rpartition("}")[2] == name), "")


def integer(text: str | None, default: int = 0) -> int:
    """Convert an XML attribute to an integer.

    Return the default if it is missing or not a number.
    """
    if text and _INTEGER.fullmatch(text):
        return int(text)
    return default


_INTEGER = re.compile(r"-?\d{1,9}")


def named(element: Element, *names: str) -> Iterator[Any]:
    """Yield the descendants of an element that have one of the given names, ignoring namespaces."""
    return (inner for inner in element.iter() if _name_of(inner.tag) in names)


def texts(element: Element, *names: str) -> str:
    """Return the joined texts of all descendants with one of the given names, such as ``t``."""
    return "".join(inner.text or "" for inner in named(element, *names))


_DELETED = "deleted passages left out"

_KINDS_LEFT_OUT = {
    **dict.fromkeys(("commentReference", "comment", "cm", "annotation"), "comments left out"),
    **dict.fromkeys(("del", "moveFrom", "deletion"), _DELETED),
    **dict.fromkeys(("blip", "imagedata", "image"), "pictures left out"),
    **dict.fromkeys(("OLEObject", "altChunk", "oleObj"), "embedded files left out"),
}
"""The categories of notes about Office elements that the readers leave out."""


def note_left_out(source: SourceFile, root: Element, part: str, *, is_sheet: bool = False) -> None:
    """Record notes about the elements that a reader leaves out.

    Args:
        source: The file.
        root: The root element of the text.
        part: The name of the XML part, which is the recorded position of elements before the first
            paragraph.
        is_sheet: Whether all elements have the part as their position. Otherwise, their position is
            the text of their own paragraph or the preceding one.
    """
    paragraphs: list[Element] = []
    for element in root.iter():
        name = local_name(element)
        if name in ("p", "h") and not is_sheet:
            paragraphs.append(element)
        if kind := _KINDS_LEFT_OUT.get(name):
            inner = named(element, "t", "delText", "p", "h")
            deleted = " ".join("".join(each.itertext()) for each in inner)
            if kind == _DELETED and not deleted.strip():
                continue  # this is a paragraph mark, or the mark at the start of moved text
            place = deleted
            if name != "deletion":
                lines = (texts(p, "t") or " ".join(p.itertext()) for p in reversed(paragraphs))
                place = next((line for line in lines if line.strip()), part)
            source.note(kind, " ".join(place.split())[:60])


def running_heads(parts: Iterable[tuple[str, str]]) -> list[str]:
    """Return the texts of page headers and footers, which are given as pairs of type and text.

    Duplicates are removed, and so are texts without letters, such as page numbers.
    """
    heads: dict[str, None] = {}
    for kind, text in parts:
        if any(character.isalpha() for character in text):
            heads[f"{kind.capitalize()}: {' '.join(text.split())}"] = None
    return list(heads)


_GROUPED = re.compile(r"[\w.′'∞]*|[([][^()\[\]]*[)\]]|\w+\([^()]*\)")

_OPERATOR = re.compile(r"(?<=[\w)\]!′])\s*([=+−±×÷<>≤≥≈≠≡→⇒∈])\s*(?=\S)")


def equation(element: Element) -> str:
    """Convert an equation in OMML (Office) or MathML to text, such as ``a^2 + b``."""
    return _OPERATOR.sub(r" \1 ", " ".join(_equation(element).split()))


def _equation(element: Element) -> str:
    name = local_name(element)
    if name in ("t", "mi", "mn", "mo", "mtext", "ms"):
        return element.text or ""
    inner = [e for e in element if not local_name(e).endswith(("Pr", "annotation"))]
    parts = [_equation(e) for e in inner]
    first, second, third = _operands(parts)
    match name:
        case "f" | "mfrac":
            return f"{_grouped(first)}/{_grouped(second)}"
        case "rad":
            return _root(degree=first, base=second)
        case "mroot":
            return _root(degree=second, base=first)
        case "msqrt":
            return _root(degree="", base="".join(parts))
        case "func":
            return f"{first} {second}" if second[:1].isalnum() else f"{first}{second}"
        case "nary":
            sign = _property(element, "chr") or "∫"
            return f" {sign}{_marked('_', first)}{_marked('^', second)} {third}"
        case "d":
            return _delimited(element, parts)
        case "m" | "mtable":
            return f"[{'; '.join(parts)}]"
        case "eqArr":
            return "; ".join(parts)
        case "mr" | "mtr":
            return ", ".join(parts)
    return _with_scripts(name, parts)


def _operands(parts: Sequence[str]) -> tuple[str, str, str]:
    """Return the first three parts. Missing parts are replaced with empty strings."""
    first, second, third, *_ = [*(part.strip() for part in parts), "", "", ""]
    return first, second, third


def _with_scripts(name: str, parts: Sequence[str]) -> str:
    """Return an expression with superscripts and subscripts.

    For other elements, join their parts.
    """
    first, second, third = _operands(parts)
    match name:
        case "sSup" | "msup" | "limUpp" | "mover":
            return f"{_grouped(first)}{_marked('^', second)}"
        case "sSub" | "msub" | "limLow" | "munder":
            return _lowered(first, second)
        case "sSubSup" | "msubsup" | "munderover":
            return f"{_lowered(first, second)}{_marked('^', third)}"
        case "sPre":
            return f"{_marked('_', first)}{_marked('^', second)}{third}"
    return "".join(parts)


def _property(element: Element, name: str, default: str = "") -> str:
    """Return a property of an element in an equation."""
    found = default
    for child in element:
        if local_name(child) == f"{local_name(element)}Pr":
            for value in child:
                if local_name(value) == name:
                    found = attribute(value, "val")
    return found


def _root(degree: str, base: str) -> str:
    if degree:
        return f" root({degree}, {base})"
    return f" sqrt({base})"


def _delimited(element: Element, parts: Sequence[str]) -> str:
    """Enclose parts in parentheses, or in the delimiters that the element specifies."""
    begin = _property(element, "begChr", "(")
    end = _property(element, "endChr", ")")
    separator = _property(element, "sepChr") or "|"
    return f"{begin}{separator.join(parts)}{end}"


def _grouped(text: str) -> str:
    if _GROUPED.fullmatch(text):
        return text
    return f"({text})"


def _marked(mark: str, text: str) -> str:
    return f"{mark}{_grouped(text)}" if text else ""


def _lowered(base: str, index: str) -> str:
    return f"{_grouped(base)}{subscript(base, _grouped(index))}"


def drawing_lines(root: Element) -> list[str]:
    """Return the texts of a SmartArt diagram, or the title, axes and data series of a chart."""
    if local_name(root) == "dataModel":
        return [text for point in named(root, "pt") if (text := texts(point, "t").strip())]
    if local_name(root) != "chartSpace":
        return []
    titles = [" ".join(texts(title, "t", "v").split()) for title in named(root, "title")]
    lines = [f"Chart: {'; '.join(title for title in titles if title)}"]
    for series in named(root, "ser"):
        heads = _point_values(series, "cat", "xVal")
        values = _point_values(series, "val", "yVal")
        pairs = (" ".join(pair).strip() for pair in zip_longest(heads, values, fillvalue=""))
        name = "".join(texts(part, "v") for part in named(series, "tx"))
        lines.append(f"{name}: {', '.join(pairs)}".removeprefix(": "))
    return lines


def _point_values(series: Element, *kinds: str) -> list[str]:
    """Return the values of the data points of a series, taken from its categories or its values."""
    values: list[str] = []
    for part in named(series, *kinds):
        values += [texts(point, "v") for point in named(part, "pt")]
    return values


def raised(style: Element) -> int:
    """Return 1 if an OpenDocument style is superscript, -1 if it is subscript, and 0 otherwise."""
    position = next((p for child in style if (p := attribute(child, "text-position"))), "0")
    if position.startswith("0"):
        return 0
    if position.startswith(("sub", "-")):
        return -1
    return 1


def is_line_through(style: Element) -> bool | None:
    """Return whether an OpenDocument style strikes text through, or None if it is not specified."""
    names = ("text-line-through-style", "text-line-through-type")
    values: list[str] = []
    for child in style:
        values += [attribute(child, name) for name in names]
    if not any(values):
        return None
    return "none" not in values


def open_object(archive: zipfile.ZipFile, target: str) -> list[str]:
    """Return the lines of an equation or a chart that is embedded in an OpenDocument file."""
    root = xml_part(archive, f"{target.removeprefix('./')}/content.xml")
    if local_name(root) == "math":
        return [equation(root)]
    if not len(root):
        return []
    titles = [_inner_words(title) for title in named(root, "title")]
    lines = [f"Chart: {'; '.join(titles)}"]
    for row in named(root, "table-row"):
        cells = [_inner_words(cell) for cell in row]
        lines.append(" ".join(cells))
    return lines


def _inner_words(element: Element) -> str:
    return "".join(element.itertext())
