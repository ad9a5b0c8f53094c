"""Rewrite the XML of Office files so that the anydoc library reads the text as it is displayed.

The library does not read superscripts and subscripts. Therefore, superscripts are formatted as
strikethrough, subscripts as italic, and strikethrough text as both.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable
from xml.etree.ElementTree import Element, SubElement

from .office_xml import (
    attribute,
    equation,
    integer,
    is_line_through,
    local_name,
    named,
    open_object,
    raised,
    texts,
)

HEAD_SHAPES = ("sldNum", "ftr", "dt", "hdr")
"""The types of shapes that contain the number, footer, date and header of a slide."""

URN = "urn:oasis:names:tc:opendocument:xmlns:"
"""The common prefix of all OpenDocument namespaces."""

Replace = Callable[[Element, Element], list[Element]]
"""A function that takes an element and its parent, and returns the elements that replace it."""


def rewrite(element: Element, replace: Replace) -> None:
    """Replace all descendants of an element."""
    children: list[Element] = []
    for child in element:
        new = replace(child, element)
        for inner in new:
            rewrite(inner, replace)
        if new:
            new[-1].tail = child.tail
        children += new
    element[:] = children


def replaced(child: Element, parent: Element) -> list[Element]:
    """Return the elements that replace an element of a Word document or a PowerPoint slide."""
    name = local_name(child)
    if name.endswith(("rPr", "RPr")):
        return _slide_marks(child)
    pass_of_name = _PASSES.get(name)
    if pass_of_name is None:
        return [child]
    space = parent.tag.rpartition("}")[0] + "}"
    return pass_of_name(child, parent, space)


def _equations(child: Element, _: Element, space: str) -> list[Element]:
    return [_run(space, equation(math)) for math in named(child, "oMath")]


def _chosen_equation(child: Element, parent: Element, _: str) -> list[Element]:
    """Return the first alternative in an ``AlternateContent`` element if it contains an equation.

    Otherwise, the element itself is returned.
    """
    if next(named(child, "oMath"), None) is None:
        return [child]
    new: list[Element] = []
    for choice in list(child)[:1]:
        for inner in choice:
            new += replaced(inner, parent)
    return new


def _raised_number(child: Element, _: Element, space: str) -> list[Element]:
    """Convert a raised or lowered number in a run to a superscript or subscript."""
    if re.fullmatch(r"[\d+−-]+", texts(child, "t")):
        for position in named(child, "position"):
            height = integer(attribute(position, "val"))
            position.tag = f"{space}vertAlign"
            position.set(f"{space}val", _HEIGHTS[(height > 0) - (height < 0)])
    return [child]


def _shape(child: Element, _: Element, __: str) -> list[Element]:
    """Return the shape, or nothing if it contains the number, date, header or footer of a slide."""
    if any(inner.get("type") in HEAD_SHAPES for inner in named(child, "ph")):
        return []
    return [child]


def _ruby(child: Element, _: Element, space: str) -> list[Element]:
    """Return a text with ruby annotations as plain text, followed by its reading in parentheses."""
    base = next(named(child, "rubyBase"), child)
    reading = texts(next(named(child, "rt"), child), "t")
    return [_run(space, f"{texts(base, 't')}({reading})")[0]]


def _list_label(child: Element, parent: Element, space: str) -> list[Element]:
    """Return the label format of a list. Chinese numbers in it are marked."""
    formats = [attribute(kind, "val") for kind in named(parent, "numFmt")]
    if any(value.startswith(_CHINESE) for value in formats):
        number = f"%{integer(attribute(parent, 'ilvl')) + 1}"
        marked = attribute(child, "val").replace(number, f"\ue031{number}\ue032")
        child.set(f"{space}val", marked)
    return [child]


def _hyphen(_: Element, __: Element, space: str) -> list[Element]:
    return [_run(space, "\u2011")[0]]


def _symbol(child: Element, _: Element, space: str) -> list[Element]:
    """Replace a character of a symbol font with the character that it displays."""
    character = "\ufffd"
    if attribute(child, "font") == "Symbol":
        code = int(attribute(child, "char"), 16) % 256
        character = chr(code).translate(_SYMBOL_FONT)
    return [_run(space, character)[0]]


def _italic_mark(child: Element, parent: Element, _: str) -> list[Element]:
    if local_name(parent) == "rPr":
        return []
    return [child]


def _strike_mark(child: Element, parent: Element, space: str) -> list[Element]:
    """Return the elements that represent strikethrough text in Word.

    They are strikethrough and italic elements, or none at all.
    """
    if local_name(parent) != "rPr":
        return [child]
    is_raised = any(local_name(other) == "vertAlign" for other in parent)
    is_off = attribute(child, "val") in ("0", "false", "off")
    if is_off and is_raised:
        return []
    return [Element(f"{space}{mark}", child.attrib) for mark in ("strike", "i")]


def _script_mark(child: Element, _: Element, space: str) -> list[Element]:
    """Return the element that represents a superscript (strikethrough) or a subscript (italic)."""
    mark = _MARKS.get(attribute(child, "val"))
    if mark is None:
        return []
    return [Element(f"{space}{mark}")]


_MARKS = {"superscript": "strike", "subscript": "i"}
"""The names of the elements that represent superscripts and subscripts."""


def _slide_marks(properties: Element) -> list[Element]:
    """Change the properties of a run on a slide to represent its superscripts and strikethrough.

    Superscripts are formatted as strikethrough, subscripts as italic, and strikethrough text as
    both.
    """
    height = integer(properties.attrib.pop("baseline", ""))
    properties.attrib.pop("i", "")
    is_struck = properties.attrib.get("strike", "noStrike") != "noStrike"
    if is_struck or height > 0:
        properties.set("strike", "sngStrike")
    if is_struck or height < 0:
        properties.set("i", "1")
    return [properties]


_PASSES: dict[str, Callable[[Element, Element, str], list[Element]]] = {
    "oMath": _equations,
    "oMathPara": _equations,
    "m": _equations,
    "AlternateContent": _chosen_equation,
    "r": _raised_number,
    "sp": _shape,
    "ruby": _ruby,
    "lvlText": _list_label,
    "noBreakHyphen": _hyphen,
    "sym": _symbol,
    "i": _italic_mark,
    "strike": _strike_mark,
    "dstrike": _strike_mark,
    "vertAlign": _script_mark,
}
"""The functions that replace elements, keyed by the name of the element."""


_HEIGHTS = ("baseline", "superscript", "subscript")

_SYMBOL_FONT = str.maketrans(
    "abcdefghiklmnopqrstuwxyzCDFGJLPQSUWXY\xa3\xa5\xae\xb0\xb1\xb3\xb4\xb6\xb7\xb8\xb9\xbb\xce\xd6\xe5\xf2",
    "αβχδεφγηικλμνοπθρστυωξψζΧΔΦΓϑΛΠΘΣΥΩΞΨ≤∞→°±≥×∂•÷≠≈∈√∑∫",
)
"""A translation table from the character codes of the Symbol font to Unicode characters."""

_CHINESE = ("chinese", "japanese", "taiwanese", "ideograph")
"""The prefixes of list number formats that anydoc incorrectly writes as 1, 2, 3."""

CHINESE_NUMBER = re.compile("\ue031([^\ue032]*)\ue032")


def chinese_number(match: re.Match[str]) -> str:
    """Convert a marked list number up to 99 to Chinese numerals."""
    if not re.fullmatch(r"\d\d?", match[1]):
        return match[1]
    tens, ones = divmod(int(match[1]), 10)
    return f"{_TENS[tens]}{_ONES[ones]}"


_ONES = ("", *"一二三四五六七八九")

_TENS = ("", "十", *(f"{digit}十" for digit in "二三四五六七八九"))


def _run(space: str, text: str) -> Element:
    run = Element(f"{space}r")
    SubElement(run, f"{space}t").text = text
    return run


_STRUCK = (f"{{{URN}style:1.0}}text-line-through-style", "solid")

_LINES_THROUGH = [f"{{{URN}style:1.0}}text-line-through-{part}" for part in ("style", "type")]

_ITALIC = (f"{{{URN}xsl-fo-compatible:1.0}}font-style", "italic")

_TEXT = f"{{{URN}text:1.0}}"


def replaced_open(archive: zipfile.ZipFile, child: Element, parent: Element) -> list[Element]:
    """Return the elements that replace an element of an OpenDocument file."""
    name = local_name(child)
    if name in ("annotation", "tracked-changes"):
        return [Element(f"{_TEXT}span")]
    # this frame belongs to a page and not to a paragraph
    if name == "frame" and local_name(parent) == "text":
        paragraph = Element(f"{_TEXT}p")
        paragraph.append(child)
        return [paragraph]
    if name == "frame":
        return _open_frame(archive, child, parent)
    if name == "list-level-style-number" and attribute(child, "num-format").startswith("一"):
        for key, mark in (("num-prefix", "{}\ue031"), ("num-suffix", "\ue032{}")):
            child.set(f"{{{URN}style:1.0}}{key}", mark.format(attribute(child, key)))
    if name == "text-properties":
        _mark_open_style(child, parent)
    return [child]


def _open_frame(archive: zipfile.ZipFile, frame: Element, parent: Element) -> list[Element]:
    """Return a frame. If it contains an equation or a chart, this is converted to text."""
    targets = [attribute(inner, "href") for inner in frame if local_name(inner) == "object"]
    if not targets:
        return [frame]
    paragraph = Element(f"{_TEXT}p")
    for line in open_object(archive, targets[0]):
        SubElement(paragraph, f"{_TEXT}span").text = line
        SubElement(paragraph, f"{_TEXT}line-break")
    paragraph[-1:] = []
    if local_name(parent) in ("p", "span"):
        paragraph.tag = f"{_TEXT}span"
        return [paragraph]
    frame[:] = [Element(f"{{{URN}drawing:1.0}}text-box")]
    frame[0].append(paragraph)
    return [frame]


def _mark_open_style(properties: Element, style: Element) -> None:
    """Change the properties of a style to represent superscripts and strikethrough text.

    Superscripts are formatted as strikethrough, subscripts as italic, and strikethrough text as
    both.
    """
    is_struck = is_line_through(style)
    height = raised(style)
    for name in (*_LINES_THROUGH, _ITALIC[0]):
        properties.attrib.pop(name, "")
    if is_struck or height > 0:
        properties.set(*_STRUCK)
    if is_struck or height < 0:
        properties.set(*_ITALIC)
    if is_struck is False and not height:
        properties.set(_STRUCK[0], "none")
        properties.set(_ITALIC[0], "normal")
