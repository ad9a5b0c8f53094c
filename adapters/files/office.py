"""Read Word documents, slides, OpenDocument texts and slides, and rich text."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

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
    without_hidden_rich_text,
)
from .markup import TextRun, joined_runs
from .office_xml import (
    attribute,
    equation,
    integer,
    is_line_through,
    local_name,
    named,
    note_left_out,
    open_object,
    opened_zip,
    parser,
    raised,
    running_heads,
    texts,
    title_and_author,
    xml_part,
)

_MARK = "\ue030"
"""The first character of each slide and of each running head of a rich text."""

_NOTE = re.compile("\ue033(.*?)\ue034")
"""The place of a note, with its id."""


def read_office(source: SourceFile) -> Document:
    """Read a Word document, an OpenDocument text, rich text, or slides.

    The text has headings, lists with their numbers, tables, equations, charts and text boxes.
    Footnotes are in their places in parentheses, running heads at the end. Slides have a page
    break between them.

    The library reads no superscripts and subscripts. So the reader marks them as struck and as
    italic text, and struck text as both, after removing the real marks. Hidden text is left out
    and noted.

    Raises:
        ReadError: If the file is encrypted or damaged.
    """
    with parser("anydoc"):
        from anydoc import UnsupportedError, to_document
    heads: list[tuple[str, str]] = []
    metadata: dict[str, Any] = {}
    roots: list[Element] = []
    if zipfile.is_zipfile(source.path):
        with opened_zip(source, "Office file") as archive:
            for part in ("docProps/core.xml", "meta.xml"):
                metadata.update(title_and_author(xml_part(archive, part).iter()))
            data = _rewritten_file(archive, source, roots, heads)
    else:
        data = _rewritten_rtf(source)
    try:
        document = to_document(data)
    except UnsupportedError as error:
        raise source.damaged("it is damaged or not a file of its type") from error
    notes: dict[str, str] = {}
    for note in document.notes:
        text = _markdown(note.blocks)
        if text.startswith(_MARK):
            kind, _, head = text[1:].partition(" ")
            heads.append((kind, head))
        elif text:
            notes[note.id] = f" ({text})"
    pages: list[list[Any]] = [[]]
    for block in document.blocks:
        if block.content and block.content[0].text == _MARK:
            pages.append([])
        else:
            pages[-1].append(block)
    if slides := pages[1:]:
        metadata["page_unit"] = "slide"
    text = join_pages(_markdown(page, is_slide=bool(slides)) for page in slides or pages)
    text = "\n\n".join(filter(None, [text, *running_heads(heads)]))
    text = _SHOWN_LABEL.sub(_label_text, text)
    text = _CHINESE_NUMBER.sub(_chinese, _NOTE.sub(lambda mark: notes.get(mark[1], ""), text))
    _note_lost_words(source, roots, text)
    return source.document(text, metadata)


def _note_lost_words(source: SourceFile, roots: Iterable[Element], text: str) -> None:
    """Note the words of the file that are not in its text."""
    known = set(re.findall(r"\w+", text))
    parts = "\n".join(part for root in roots for part in _texts(root))
    for word in re.findall(r"\w+", parts):
        if word not in known and word not in text:
            source.note("words left out", word)


def _texts(root: Element) -> Iterator[str]:
    """Yield the texts of an Office or an OpenDocument part."""
    for element in root.iter():
        if local_name(element) in ("t", "p", "h", "span", "a"):
            yield element.text or ""
            for child in element:
                yield child.tail or ""


_TEXT_PARTS = re.compile(
    r"content\.xml|word/(?:document|footnotes|endnotes)\d*\.xml|ppt/(?:slides|notesSlides)/\w+\.xml"
)


_NOTED_PARTS = "word/(?:header|footer)|ppt/comments"  # may have parts that are left out


def _rewritten_file(
    archive: zipfile.ZipFile, source: SourceFile, roots: list[Element], heads: list[tuple[str, str]]
) -> bytes:
    """Return a copy of a packed file without pictures, whose text the library can read.

    Args:
        archive: The file.
        source: The file, which records the notes.
        roots: Receives the parts that have text.
        heads: Receives the running heads.
    """
    is_open = "content.xml" in archive.namelist()
    replaced = partial(_replaced_open, archive) if is_open else _replaced
    style_parts = ("content.xml", "styles.xml") if is_open else ("word/styles.xml",)
    hidden = hidden_styles(
        [xml_part(archive, name) for name in style_parts],
        is_not_displayed if is_open else is_vanished,
    )
    copied = io.BytesIO()
    with zipfile.ZipFile(copied, "w") as copy:
        for name in archive.namelist():
            data = archive.read(name) if name.endswith((".xml", ".rels", "mimetype")) else b""
            if re.fullmatch(r"(?:word/|ppt/|content|styles).*\.xml", name):
                root = ElementTree.fromstring(data)
                if is_open:
                    remove_hidden_parts(root, hidden, source)
                elif name.startswith("word/"):
                    remove_hidden_runs(root, hidden, source)
                else:
                    remove_hidden_shapes(root, source)
                heads += _running_heads(name, root)
                if _TEXT_PARTS.fullmatch(name) or re.match(_NOTED_PARTS, name):
                    note_left_out(source, root, name.partition("/")[2])
                _rewrite(root, replaced)
                if name.startswith(("ppt/slides/", "content")):
                    _mark_slides(root, source)
                if _TEXT_PARTS.fullmatch(name):
                    roots.append(root)
                data = ElementTree.tostring(root)
            copy.writestr(name, data)
    return copied.getvalue()


def _running_heads(name: str, root: Element) -> Iterator[tuple[str, str]]:
    """Yield the headers and the footers of a part."""
    if match := re.fullmatch(r"word/(header|footer)\d*\.xml", name):
        yield match[1], texts(root, "t", "tab")
    for path in named(root, "textpath"):
        yield "watermark" if match else "word art", path.get("string", "")
    for shape in named(root, "sp") if name.startswith("ppt/slides/") else ():
        if any(inner.get("type") in _HEAD_SHAPES[1:] for inner in named(shape, "ph")):
            yield "footer", texts(shape, "t")
    if name == "styles.xml":
        for head in named(root, *_HEADS):
            yield local_name(head).partition("-")[0], "".join(head.itertext())


_HEAD_SHAPES = ("sldNum", "ftr", "dt", "hdr")

_HEADS = ("header", "footer", "header-first", "header-left", "footer-left")


def _mark_slides(root: Element, source: SourceFile) -> None:
    """Mark the start of a slide, or of the slides of an OpenDocument file. Note hidden slides."""
    hidden = {
        attribute(style, "name")
        for style in named(root, "style")
        if any(attribute(properties, "visibility") == "hidden" for properties in style)
    }
    for slide in named(root, "page", "sld"):
        if slide.get("show") in ("0", "false") or attribute(slide, "style-name") in hidden:
            source.note("hidden slides read", " ".join(" ".join(_texts(slide)).split())[:60])
        if local_name(slide) == "page":
            slide.insert(0, ElementTree.fromstring(_MARKED_FRAME))
        for tree in list(named(slide, "spTree"))[:1]:
            tree.insert(2, ElementTree.fromstring(_MARKED_SHAPE))


_URN = "urn:oasis:names:tc:opendocument:xmlns:"

_MARKED_FRAME = (
    f'<d:frame xmlns:d="{_URN}drawing:1.0" xmlns:p="{_URN}presentation:1.0" p:class="title">'
    f'<d:text-box><t:p xmlns:t="{_URN}text:1.0">{_MARK}</t:p></d:text-box></d:frame>'
)

_MAIN = "http://schemas.openxmlformats.org/{}/2006/main"

_MARKED_SHAPE = (
    f'<p:sp xmlns:p="{_MAIN.format("presentationml")}" xmlns:a="{_MAIN.format("drawingml")}">'
    f"<p:txBody><a:p><a:r><a:t>{_MARK}</a:t></a:r></a:p></p:txBody></p:sp>"
)

_Replace = Callable[[Element, Element], list[Element]]
"""A function from an element and its parent to the elements that replace it."""


def _rewrite(element: Element, replace: _Replace) -> None:
    """Replace the elements below an element."""
    children: list[Element] = []
    for child in element:
        new = replace(child, element)
        for inner in new:
            _rewrite(inner, replace)
        if new:
            new[-1].tail = child.tail
        children += new
    element[:] = children


def _replaced(child: Element, parent: Element) -> list[Element]:
    """Return the replacement of an element of Word documents and PowerPoint slides."""
    name, space = local_name(child), parent.tag.rpartition("}")[0] + "}"
    match name:
        case "oMath" | "oMathPara" | "m":
            return [_run(space, equation(math)) for math in named(child, "oMath")]
        case "AlternateContent" if next(named(child, "oMath"), None) is not None:
            choices = (inner for choice in list(child)[:1] for inner in choice)
            return [new for choice in choices for new in _replaced(choice, parent)]
        case "r" if re.fullmatch(r"[\d+−-]+", texts(child, "t")):
            for position in named(child, "position"):
                height = integer(attribute(position, "val"))
                position.tag = f"{space}vertAlign"
                position.set(f"{space}val", _HEIGHTS[(height > 0) - (height < 0)])
        case "sp" if any(inner.get("type") in _HEAD_SHAPES for inner in named(child, "ph")):
            return []
        case "ruby":
            base = next(named(child, "rubyBase"), child)
            reading = texts(next(named(child, "rt"), child), "t")
            return [_run(space, f"{texts(base, 't')}({reading})")[0]]
        case "lvlText" if any(
            attribute(kind, "val").startswith(_CHINESE) for kind in named(parent, "numFmt")
        ):
            number = f"%{integer(attribute(parent, 'ilvl')) + 1}"
            marked = attribute(child, "val").replace(number, f"\ue031{number}\ue032")
            child.set(f"{space}val", marked)
        case "noBreakHyphen":
            return [_run(space, "\u2011")[0]]
        case "sym":
            code = chr(int(attribute(child, "char"), 16) % 256)
            is_known = attribute(child, "font") == "Symbol"
            return [_run(space, code.translate(_SYMBOL_FONT) if is_known else "\ufffd")[0]]
        case "i" if local_name(parent) == "rPr":
            return []
        case "strike" | "dstrike" if local_name(parent) == "rPr":
            return _struck_marks(child, parent, space)
        case "vertAlign":
            mark = {"superscript": "strike", "subscript": "i"}.get(attribute(child, "val"))
            return [Element(f"{space}{mark}")] if mark else []
    if name.endswith("rPr") or name.endswith("RPr"):
        height = integer(child.attrib.pop("baseline", ""))
        child.attrib.pop("i", "")
        strike = child.attrib.get("strike", "noStrike")
        is_struck = strike != "noStrike"
        if is_struck or height > 0:
            child.set("strike", "sngStrike")
        if is_struck or height < 0:
            child.set("i", "1")
    return [child]


def _struck_marks(strike: Element, properties: Element, space: str) -> list[Element]:
    """Return the marks of struck text in Word: struck and italic, or neither."""
    is_raised = any(local_name(other) == "vertAlign" for other in properties)
    is_off = attribute(strike, "val") in ("0", "false", "off")
    if is_off and is_raised:
        return []
    return [Element(f"{space}{mark}", strike.attrib) for mark in ("strike", "i")]


_HEIGHTS = ("baseline", "superscript", "subscript")

_SYMBOL_FONT = str.maketrans(
    "abcdefghiklmnopqrstuwxyzCDFGJLPQSUWXY\xa3\xa5\xae\xb0\xb1\xb3\xb4\xb6\xb7\xb8\xb9\xbb\xce\xd6\xe5\xf2",
    "αβχδεφγηικλμνοπθρστυωξψζΧΔΦΓϑΛΠΘΣΥΩΞΨ≤∞→°±≥×∂•÷≠≈∈√∑∫",
)
"""The letters and signs of the font Symbol by their codes."""

_CHINESE = ("chinese", "japanese", "taiwanese", "ideograph")
"""The beginnings of formats of list numbers that the library writes as 1, 2, 3."""

_CHINESE_NUMBER = re.compile("\ue031([^\ue032]*)\ue032")


def _chinese(match: re.Match[str]) -> str:
    if not re.fullmatch(r"\d\d?", match[1]):
        return match[1]
    tens, ones = divmod(int(match[1]), 10)
    digits = " 一二三四五六七八九"
    return f"{digits[tens] if tens > 1 else ''}{'十' if tens else ''}{digits[ones]}".strip()


def _run(space: str, text: str) -> Element:
    run = Element(f"{space}r")
    SubElement(run, f"{space}t").text = text
    return run


_STRUCK = (f"{{{_URN}style:1.0}}text-line-through-style", "solid")

_LINES_THROUGH = [f"{{{_URN}style:1.0}}text-line-through-{part}" for part in ("style", "type")]

_ITALIC = (f"{{{_URN}xsl-fo-compatible:1.0}}font-style", "italic")

_TEXT = f"{{{_URN}text:1.0}}"


def _replaced_open(archive: zipfile.ZipFile, child: Element, parent: Element) -> list[Element]:
    """Return the replacement of an element of an OpenDocument file."""
    name = local_name(child)
    if name in ("annotation", "tracked-changes"):
        return [Element(f"{_TEXT}span")]
    if name == "frame" and local_name(parent) == "text":  # of a page, not of a paragraph
        paragraph = Element(f"{_TEXT}p")
        paragraph.append(child)
        return [paragraph]
    targets = [attribute(inner, "href") for inner in child if local_name(inner) == "object"]
    if name == "frame" and targets:
        paragraph = Element(f"{_TEXT}p")
        for line in open_object(archive, targets[0]):
            SubElement(paragraph, f"{_TEXT}span").text = line
            SubElement(paragraph, f"{_TEXT}line-break")
        paragraph[-1:] = []
        if local_name(parent) in ("p", "span"):
            paragraph.tag = f"{_TEXT}span"
            return [paragraph]
        child[:] = [Element(f"{{{_URN}drawing:1.0}}text-box")]
        child[0].append(paragraph)
    if name == "list-level-style-number" and attribute(child, "num-format").startswith("一"):
        for key, mark in (("num-prefix", "{}\ue031"), ("num-suffix", "\ue032{}")):
            child.set(f"{{{_URN}style:1.0}}{key}", mark.format(attribute(child, key)))
    if name == "text-properties":
        is_struck = is_line_through(parent)
        height = raised(parent)
        for name in (*_LINES_THROUGH, _ITALIC[0]):
            child.attrib.pop(name, "")
        if is_struck or height > 0:
            child.set(*_STRUCK)
        if is_struck or height < 0:
            child.set(*_ITALIC)
        if is_struck is False and not height:
            child.set(_STRUCK[0], "none")
            child.set(_ITALIC[0], "normal")
    return [child]


_NUMBER = r"(?=(?:\\[a-z]+-?\d*){0,9}\s\d)"  # after the other properties of its text

_DELETED = r"(?<!\\)\{(?:\\(?!deleted)[a-z]+-?\d*\s?)*\\deleted\b(?:[^{}\\]|\\(?!deleted0).)*\}"

_RTF_MARKS = (
    (r"\\i(?![a-z])", r"\\shad"),  # an effect that changes nothing
    (r"\\striked?1?(?![a-z\d])", r"\\strike\\i"),
    (r"\\striked?0", r"\\strike0\\i0"),
    (r"\\super(?![a-z])", r"\\strike"),
    (r"\\sub(?![a-z])", r"\\i"),
    (rf"\\up[1-9]\d*{_NUMBER}", r"\\strike"),
    (rf"\\dn[1-9]\d*{_NUMBER}", r"\\i"),
    (r"\\(?:nosupersub(?![a-z\d])|(?:up|dn)0)", r"\\strike0\\i0"),
    (_DELETED, ""),
    (r"\{\\listtext(?![a-z])(?:\\pard|\\plain|\s)*([^{}]*)\}", r"{\\u57397?\1\\u57398?}"),
    (r"\{\\(header|footer)[lrf]?(?![a-z])", rf"{{\\footnote\\u{ord(_MARK)}?\1 "),
)
"""Patterns of a rich text and their replacements: scripts, labels of items, running heads."""


_RTF_LEFT_OUT = {
    "pictures left out": r"\\pict(?![a-z])",
    "comments left out": r"\\atnid(?![a-z])",
    "embedded objects left out": r"\\object(?![a-z])",
    "deleted passages left out": _DELETED,
    "deleted passages read as text": r"\\deleted\b(?![^{}]{0,500}\})",
}


_RTF_BRACE = re.compile(r"\\.|([{}])", re.S)


def _rewritten_rtf(source: SourceFile) -> bytes:
    data = source.path.read_bytes().decode("latin-1")
    depth = 0
    for brace in _RTF_BRACE.findall(data.rstrip("\0\r\n ")):
        depth += (brace == "{") - (brace == "}")
        if depth < 0:
            break
    if depth and "\\bin" not in data:  # binary pictures may contain braces
        source.note("unbalanced groups, so that text may be missing", "", abs(depth))
    data = without_hidden_rich_text(data, source)
    for kind, pattern in _RTF_LEFT_OUT.items():
        if found := list(re.finditer(pattern, data)):
            before = re.findall(r"\\par(?![a-z])", data[: found[0].start()])
            source.note(kind, f"paragraph {len(before) + 1}", len(found))
    for pattern, replacement in _RTF_MARKS:
        data = re.sub(rf"(?<!\\){pattern}", replacement, data)
    return data.encode("latin-1")


def _markdown(blocks: Iterable[Any], *, is_slide: bool = False) -> str:
    """Return blocks as Markdown. Titles of slides rise from the second to the first level."""
    return "\n\n".join(filter(None, (_block(block, is_slide) for block in blocks)))


_HASHES = re.compile("^#{1,6} ", re.M)  # would begin a heading


def _block(block: Any, is_slide: bool) -> str:
    if block.kind == "table":
        return markdown_table(_rows(block.table))
    if block.kind == "list":
        return "\n".join(_items(block.list))
    if block.kind == "block_quote":
        quote = _markdown(block.blocks)
        return f"Notes: {quote}" if quote and is_slide else quote
    text = _line(block.content or ()) or block.text or ""
    if block.kind == "heading" and text:
        return f"{'#' * min(6, max(1, block.level - is_slide))} {' '.join(text.split())}"
    return f"```\n{text}\n```" if block.kind == "code_block" else _HASHES.sub(r"\\\g<0>", text)


def _rows(table: Any) -> list[list[str]]:
    """Return the rows of a table. Merged cells are repeated."""
    rows: list[list[str]] = []
    for slots in table.grid:
        rows.append([])
        for slot in slots:
            if slot.kind == "covered":
                rows[-1].append(rows[slot.origin_row][slot.origin_col])
                continue
            inner = [  # tables in cells become text
                " ".join(map(" ".join, _rows(block.table)))
                if block.kind == "table"
                else _block(block, False)
                for block in slot.cell.blocks
            ]
            rows[-1].append(" ".join(inner).strip())
    return rows


_SHOWN_LABEL = re.compile("\ue035(.*?)\ue036\\s*")
"""The label of an item of a rich text."""


def _label_text(match: re.Match[str]) -> str:
    return f"{match[1].strip()} " if any(map(str.isalnum, match[1])) else ""


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
    """Return the label of a list item: ``-``, ``1.``, ``a.`` or ``iv.``."""
    if marker == "bullet":
        return "-"
    text = str(number)
    if marker.endswith("alpha") and number <= 26:
        text = chr(ord("a") + number - 1)
    elif marker.endswith("roman") and number < 40:
        text = f"{'x' * (number // 10)}{_ROMAN[number % 10]}"
    return f"{text.upper() if marker.startswith('upper') else text}."


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
