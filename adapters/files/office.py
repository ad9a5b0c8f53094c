"""Read Word documents, presentations, OpenDocument files and RTF files."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

from ...nodegraph.document import Document
from ...nodegraph.readers.source_files import SourceFile
from ...nodegraph.readers.text import join_pages, markdown_table
from .hidden_text import (
    hidden_styles,
    is_not_displayed,
    is_vanished,
    remove_hidden_parts,
    remove_hidden_runs,
    remove_hidden_shapes,
)
from .markup import TextRun, joined_runs
from .office_passes import (
    CHINESE_NUMBER,
    HEAD_SHAPES,
    URN,
    Replace,
    chinese_number,
    replaced,
    replaced_open,
    rewrite,
)
from .office_xml import (
    attribute,
    local_name,
    named,
    note_left_out,
    opened_zip,
    parser,
    running_heads,
    texts,
    title_and_author,
    xml_part,
)
from .rich_text import HEAD_MARK, rewritten_rich_text

_NOTE = re.compile("\ue033(.*?)\ue034")
"""The mark at the position of a footnote or endnote, which contains the id of the note."""


def read_office(source: SourceFile) -> Document:
    """Read a Word document, an OpenDocument text, an RTF file or a presentation.

    The text contains headings, lists with their numbers, tables, equations, charts and text boxes.
    Footnotes are inserted in parentheses at the place where they are cited, and page headers and
    footers are added at the end. Slides are separated by page breaks.

    The anydoc library does not read superscripts and subscripts. Therefore, the existing
    strikethrough and italic formatting is removed first. Then superscripts are formatted as
    strikethrough, subscripts as italic, and strikethrough text as both. Hidden text is left out,
    and a note about it is recorded.

    Raises:
        ReadError: If the file is encrypted or damaged.
    """
    with parser("anydoc"):
        from anydoc import UnsupportedError, to_document
    metadata: dict[str, Any] = {}
    if zipfile.is_zipfile(source.path):
        with opened_zip(source, "Office file") as archive:
            for part in ("docProps/core.xml", "meta.xml"):
                metadata.update(title_and_author(xml_part(archive, part).iter()))
            rewritten = _rewritten_file(archive, source)
    else:
        rewritten = _Rewritten(rewritten_rich_text(source))
    try:
        document = to_document(rewritten.data)
    except UnsupportedError as error:
        raise source.damaged("it is damaged or not a file of its type") from error
    heads = list(rewritten.heads)
    notes = _notes(document.notes, heads)
    first, *slides = _parted(document.blocks)
    if slides:
        metadata["page_unit"] = "slide"
        text = join_pages(_markdown(slide, is_slide=True) for slide in slides)
    else:
        text = join_pages([_markdown(first)])
    parts = [text, *running_heads(heads)]
    text = _without_marks("\n\n".join(part for part in parts if part), notes)
    _note_lost_words(source, rewritten.roots, text)
    return source.document(text, metadata)


def _without_marks(text: str, notes: Mapping[str, str]) -> str:
    """Replace the marks for labels, footnotes and Chinese numbers with the displayed text."""
    text = _SHOWN_LABEL.sub(_label_text, text)
    text = _NOTE.sub(lambda mark: notes.get(mark[1], ""), text)
    return CHINESE_NUMBER.sub(chinese_number, text)


def _notes(notes: Iterable[Any], heads: list[tuple[str, str]]) -> dict[str, str]:
    """Return a dictionary from the ids of footnotes to their texts in parentheses.

    Page headers and footers that are stored as footnotes are added to ``heads``.
    """
    by_id: dict[str, str] = {}
    for note in notes:
        text = _markdown(note.blocks)
        if text.startswith(HEAD_MARK):
            kind, _, head = text[1:].partition(" ")
            heads.append((kind, head))
        elif text:
            by_id[note.id] = f" ({text})"
    return by_id


def _parted(blocks: Iterable[Any]) -> list[list[Any]]:
    """Split blocks into a list for the text before the first slide, and a list for each slide."""
    parts: list[list[Any]] = [[]]
    for block in blocks:
        if block.content and block.content[0].text == HEAD_MARK:
            parts.append([])
        else:
            parts[-1].append(block)
    return parts


def _note_lost_words(source: SourceFile, roots: Iterable[Element], text: str) -> None:
    """Record notes about words of the file that are missing from the extracted text."""
    known = set(re.findall(r"\w+", text))
    for root in roots:
        parts = "\n".join(_texts(root))
        for word in re.findall(r"\w+", parts):
            if word not in known and word not in text:
                source.note("words left out", word)


def _texts(root: Element) -> Iterator[str]:
    """Yield all texts in an XML part of an Office or OpenDocument file."""
    for element in root.iter():
        if local_name(element) in ("t", "p", "h", "span", "a"):
            yield element.text or ""
            for child in element:
                yield child.tail or ""


_XML_PARTS = re.compile(r"(?:word/|ppt/|content|styles).*\.xml")

_TEXT_PARTS = re.compile(
    r"content\.xml|word/(?:document|footnotes|endnotes)\d*\.xml|ppt/(?:slides|notesSlides)/\w+\.xml"
)

# these parts may contain elements that are left out
_NOTED_PARTS = ("word/header", "word/footer", "ppt/comments")


class _Rewritten(NamedTuple):
    """A copy of a file in a form that the anydoc library can read.

    Attributes:
        data: The bytes of the copy.
        roots: The root elements of the XML parts that contain text.
        heads: The page headers and footers, as pairs of type and text.
    """

    data: bytes
    roots: Sequence[Element] = ()
    heads: Sequence[tuple[str, str]] = ()


def _rewritten_file(archive: zipfile.ZipFile, source: SourceFile) -> _Rewritten:
    """Return a rewritten copy of an Office file without pictures.

    Notes are recorded in the source file.
    """
    passes = _Passes(archive, source)
    copied = io.BytesIO()
    with zipfile.ZipFile(copied, "w") as copy:
        for name in archive.namelist():
            data = b""  # pictures are removed
            if name.endswith((".xml", ".rels", "mimetype")):
                data = archive.read(name)
            if _XML_PARTS.fullmatch(name):
                data = passes.rewritten(name, data)
            copy.writestr(name, data)
    return _Rewritten(copied.getvalue(), passes.roots, passes.heads)


class _Passes:
    """The transformations that are applied to the XML parts of an Office file.

    Attributes:
        roots: The root elements of the XML parts that contain text.
        heads: The page headers and footers, as pairs of type and text.
    """

    def __init__(self, archive: zipfile.ZipFile, source: SourceFile) -> None:
        self.roots: list[Element] = []
        self.heads: list[tuple[str, str]] = []
        self._source = source
        self._is_open = "content.xml" in archive.namelist()
        self._replace: Replace = replaced
        if self._is_open:
            self._replace = partial(replaced_open, archive)
            styles = [xml_part(archive, name) for name in ("content.xml", "styles.xml")]
            self._hidden = hidden_styles(styles, is_not_displayed)
        else:
            self._hidden = hidden_styles([xml_part(archive, "word/styles.xml")], is_vanished)

    def rewritten(self, name: str, data: bytes) -> bytes:
        """Return the XML of a part in a form that the anydoc library can read."""
        root = ElementTree.fromstring(data)
        has_text = _TEXT_PARTS.fullmatch(name) is not None
        self._remove_hidden(name, root)
        self.heads += _running_heads(name, root)
        if has_text or name.startswith(_NOTED_PARTS):
            note_left_out(self._source, root, name.partition("/")[2])
        rewrite(root, self._replace)
        if name.startswith(("ppt/slides/", "content")):
            _mark_slides(root, self._source)
        if has_text:
            self.roots.append(root)
        return ElementTree.tostring(root)

    def _remove_hidden(self, name: str, root: Element) -> None:
        if self._is_open:
            remove_hidden_parts(root, self._hidden, self._source)
        elif name.startswith("word/"):
            remove_hidden_runs(root, self._hidden, self._source)
        else:
            remove_hidden_shapes(root, self._source)


def _running_heads(name: str, root: Element) -> Iterator[tuple[str, str]]:
    """Yield the page headers and footers of an XML part."""
    if match := re.fullmatch(r"word/(header|footer)\d*\.xml", name):
        yield match[1], texts(root, "t", "tab")
    for path in named(root, "textpath"):
        yield "watermark" if match else "word art", path.get("string", "")
    if name.startswith("ppt/slides/"):
        for shape in named(root, "sp"):
            if any(inner.get("type") in HEAD_SHAPES[1:] for inner in named(shape, "ph")):
                yield "footer", texts(shape, "t")
    if name == "styles.xml":
        for head in named(root, *_HEADS):
            yield local_name(head).partition("-")[0], "".join(head.itertext())


_HEADS = ("header", "footer", "header-first", "header-left", "footer-left")


def _mark_slides(root: Element, source: SourceFile) -> None:
    """Mark where each slide starts, and record notes about hidden slides."""
    hidden = {attribute(style, "name") for style in named(root, "style") if _hides(style)}
    for slide in named(root, "page", "sld"):
        is_hidden = slide.get("show") in ("0", "false")
        if is_hidden or attribute(slide, "style-name") in hidden:
            source.note("hidden slides read", " ".join(" ".join(_texts(slide)).split())[:60])
        if local_name(slide) == "page":
            slide.insert(0, ElementTree.fromstring(_MARKED_FRAME))
        for tree in list(named(slide, "spTree"))[:1]:
            tree.insert(2, ElementTree.fromstring(_MARKED_SHAPE))


def _hides(style: Element) -> bool:
    return any(attribute(properties, "visibility") == "hidden" for properties in style)


_MARKED_FRAME = (
    f'<d:frame xmlns:d="{URN}drawing:1.0" xmlns:p="{URN}presentation:1.0" p:class="title">'
    f'<d:text-box><t:p xmlns:t="{URN}text:1.0">{HEAD_MARK}</t:p></d:text-box></d:frame>'
)

_MAIN = "http://schemas.openxmlformats.org/{}/2006/main"

_MARKED_SHAPE = (
    f'<p:sp xmlns:p="{_MAIN.format("presentationml")}" xmlns:a="{_MAIN.format("drawingml")}">'
    f"<p:txBody><a:p><a:r><a:t>{HEAD_MARK}</a:t></a:r></a:p></p:txBody></p:sp>"
)


def _markdown(blocks: Iterable[Any], *, is_slide: bool = False) -> str:
    """Convert blocks to Markdown. The titles of slides become top-level headings."""
    texts_of_blocks = [_block(block, is_slide) for block in blocks]
    return "\n\n".join(text for text in texts_of_blocks if text)


_HASHES = re.compile("^#{1,6} ", re.M)  # these characters would start a heading


def _block(block: Any, is_slide: bool) -> str:
    if block.kind == "table":
        return markdown_table(_rows(block.table))
    if block.kind == "list":
        return "\n".join(_items(block.list))
    if block.kind == "block_quote":
        quote = _markdown(block.blocks)
        if quote and is_slide:
            return f"Notes: {quote}"
        return quote
    text = _line(block.content or ()) or block.text or ""
    if block.kind == "heading" and text:
        return f"{'#' * min(6, max(1, block.level - is_slide))} {' '.join(text.split())}"
    if block.kind == "code_block":
        return f"```\n{text}\n```"
    return _HASHES.sub(r"\\\g<0>", text)


def _rows(table: Any) -> list[list[str]]:
    """Return the rows of a table. The text of merged cells is repeated."""
    rows: list[list[str]] = []
    for slots in table.grid:
        rows.append([])
        for slot in slots:
            if slot.kind == "covered":
                rows[-1].append(rows[slot.origin_row][slot.origin_col])
                continue
            inner = [_inner_text(block) for block in slot.cell.blocks]
            rows[-1].append(" ".join(inner).strip())
    return rows


def _inner_text(block: Any) -> str:
    """Return the text of a block inside a table cell. The block may itself be a table."""
    if block.kind != "table":
        return _block(block, False)
    rows = [" ".join(row) for row in _rows(block.table)]
    return " ".join(rows)


_SHOWN_LABEL = re.compile("\ue035(.*?)\ue036\\s*")
"""The displayed label of a list item in an RTF file."""


def _label_text(match: re.Match[str]) -> str:
    label = match[1]
    if not any(character.isalnum() for character in label):
        return ""  # the label is a bullet
    return f"{label.strip()} "


def _items(items: Any) -> Iterator[str]:
    for number, item in enumerate(items.items, items.start):
        text = _markdown(item.blocks)
        shown = _SHOWN_LABEL.match(text)
        of_rich_text = _label_text(shown).strip() if shown else ""
        label = of_rich_text or item.marker_label or _label(items.marker, number)
        first, *rest = _SHOWN_LABEL.sub("", text).split("\n")
        yield f"{label} {first}"
        yield from (f"{' ' * (len(label) + 1)}{line}" for line in rest if line)


_ROMAN = " i ii iii iv v vi vii viii ix".split(" ")


def _label(marker: str, number: int) -> str:
    """Return the label of a list item, such as ``-``, ``1.``, ``a.`` or ``iv.``."""
    if marker == "bullet":
        return "-"
    text = str(number)
    if marker.endswith("alpha") and number <= 26:
        text = chr(ord("a") + number - 1)
    elif marker.endswith("roman") and number < 40:
        text = f"{'x' * (number // 10)}{_ROMAN[number % 10]}"
    if marker.startswith("upper"):
        text = text.upper()
    return f"{text}."


def _line(content: Iterable[Any]) -> str:
    """Return the text of a paragraph."""
    runs: list[TextRun] = []
    for part in content:
        text = part.text or ""
        if part.kind == "link":
            text = _line(part.content)
            if part.target.kind == "external" and text != part.target.value:
                text = f"[{text}]({part.target.value})"
        elif part.kind == "note_ref":
            text = f"\ue033{part.note_id}\ue034"
        elif part.kind == "line_break":
            text = "\n"
        elif part.kind == "checkbox":
            text = "[x] " if part.checked else "[ ] "
        style = part.style
        if style is None or part.kind == "note_ref":
            runs.append(TextRun(text))
        else:
            runs.append(TextRun(text, style.strike - style.italic, style.strike and style.italic))
    return joined_runs(runs).strip()
