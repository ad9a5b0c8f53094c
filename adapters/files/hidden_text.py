"""Remove hidden text from Word documents, presentations, OpenDocument files and RTF files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import NamedTuple
from xml.etree.ElementTree import Element

from ...nodegraph.readers.source_files import SourceFile
from .office_xml import attribute, local_name, named

HIDDEN_TEXT = "hidden passages left out"
"""The category of notes that report hidden text."""

_OFF = ("0", "false", "off", "none")


def hidden_styles(
    roots: Iterable[Element], is_hidden: Callable[[Element], bool | None]
) -> set[str]:
    """Return the names of all styles that hide text, directly or by inheriting from another style.

    Args:
        roots: The root elements of the XML parts that define styles.
        is_hidden: A function that returns whether a style hides text, or None if the style does not
            specify this.
    """
    found: dict[str, tuple[bool | None, str]] = {}
    for root in roots:
        for style in named(root, "style"):
            name = attribute(style, "styleId") or attribute(style, "name")
            based_on = [attribute(base, "val") for base in style if local_name(base) == "basedOn"]
            parent = attribute(style, "parent-style-name") or "".join(based_on[:1])
            found[name] = (is_hidden(style), parent)
    return {name for name in found if _inherited(name, found)}


def _inherited(name: str, styles: Mapping[str, tuple[bool | None, str]]) -> bool:
    """Return whether a style or one of the styles from which it inherits hides text."""
    for _ in range(20):  # styles may inherit from themselves
        is_hidden, parent = styles.get(name, (False, ""))
        if is_hidden is not None:
            return is_hidden
        name = parent
    return False


def is_vanished(element: Element) -> bool | None:
    """Return whether the properties of a Word style or run hide text, or None if not specified."""
    for properties in element:
        if local_name(properties) == "rPr":
            for mark in properties:
                if local_name(mark) == "vanish":
                    return attribute(mark, "val") not in _OFF
    return None


def is_not_displayed(style: Element) -> bool | None:
    """Return whether an OpenDocument style hides text, or None if this is not specified."""
    for properties in style:
        if local_name(properties) == "text-properties":
            display = next((v for k, v in properties.attrib.items() if k == _TEXT_DISPLAY), "")
            if display:
                return display == "none"
    return None


_TEXT_DISPLAY = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}display"


def _style_of(element: Element, name: str) -> str:
    """Return the name of the style that the properties of a run or paragraph refer to."""
    for properties in element:
        if local_name(properties) in ("rPr", "pPr"):
            for style in properties:
                if local_name(style) == name:
                    return attribute(style, "val")
    return ""


def remove_hidden_runs(root: Element, styles: set[str], source: SourceFile) -> None:
    """Remove hidden runs from a part of a Word document, and record a note about them."""
    for paragraph in named(root, "p"):
        is_hidden = partial(
            _is_hidden_run,
            styles=styles,
            is_hidden_paragraph=_style_of(paragraph, "pStyle") in styles,
        )
        _remove(paragraph, is_hidden, source)


def _is_hidden_run(element: Element, styles: set[str], is_hidden_paragraph: bool) -> bool:
    """Return whether an element is a run whose text is hidden.

    The properties of the run itself take precedence over its character style, which takes
    precedence over the style of the paragraph.
    """
    if local_name(element) != "r":
        return False
    has_text = next(named(element, "t"), None) is not None
    if not has_text:
        return False
    is_hidden = is_vanished(element)
    if is_hidden is not None:
        return is_hidden
    style = _style_of(element, "rStyle")
    if style:
        return style in styles
    return is_hidden_paragraph


def remove_hidden_shapes(root: Element, source: SourceFile) -> None:
    """Remove hidden shapes from a slide, and record a note about shapes that contain text."""

    def is_hidden(element: Element) -> bool:
        for inner in element:
            if local_name(inner).startswith("nv"):
                for properties in inner:
                    if local_name(properties) == "cNvPr":
                        return properties.get("hidden") in ("1", "true")
        return False

    _remove(root, is_hidden, source)


def remove_hidden_parts(root: Element, styles: set[str], source: SourceFile) -> None:
    """Remove hidden sections, paragraphs and spans from an OpenDocument file.

    A note is recorded for the removed text.
    """

    def is_hidden(element: Element) -> bool:
        name = local_name(element)
        if name in ("hidden-text", "hidden-paragraph"):
            return attribute(element, "is-hidden") not in _OFF
        if name == "section":
            display = attribute(element, "display")
            return display == "none" or attribute(element, "is-hidden") == "true"
        return name in ("span", "p", "h") and attribute(element, "style-name") in styles

    for paragraph in list(named(root, "p", "h")):
        marks = [inner for inner in paragraph if local_name(inner) == "hidden-paragraph"]
        if any(is_hidden(mark) for mark in marks):
            _note(paragraph, source)
            paragraph[:] = []
            paragraph.text = ""
    _remove(root, is_hidden, source)


def _remove(root: Element, is_hidden: Callable[[Element], bool], source: SourceFile) -> None:
    """Remove all elements for which ``is_hidden`` is true. Text that follows them is kept."""
    for parent in list(root.iter()):
        kept: list[Element] = []
        for child in parent:
            if not is_hidden(child):
                kept.append(child)
                continue
            _note(child, source)
            tail = child.tail or ""
            if kept:
                kept[-1].tail = (kept[-1].tail or "") + tail
            else:
                parent.text = (parent.text or "") + tail
        if len(kept) < len(parent):
            parent[:] = kept


def _note(element: Element, source: SourceFile) -> None:
    text = " ".join("".join(element.itertext()).split())
    text = text or attribute(element, "string-value")
    if text:
        source.note(HIDDEN_TEXT, text[:60])


_RTF_TOKEN = re.compile(
    r"\\(?P<word>[a-z]+)(?P<number>-?\d+)? ?|\\'[0-9a-fA-F]{2}|\\[^a-z]|(?P<brace>[{}])|[^\\{}]+"
)

_RTF_HIDDEN = re.compile(r"\\v(?![a-z0])")

_NOT_SHOWN = ("xe", "tc", "tcn", "rxe", "stylesheet", "listtable", "fldinst")
"""The RTF groups whose text is never displayed."""


class _Group(NamedTuple):
    """The formatting of the text in an RTF group."""

    is_hidden: bool = False
    is_shown: bool = True


def without_hidden_rich_text(data: str, source: SourceFile) -> str:
    """Remove hidden text from an RTF file, and record a note about it."""
    if not _RTF_HIDDEN.search(data):
        return data
    kept: list[str] = []
    outer: list[_Group] = []
    group = _Group()
    passage = ""
    for match in _RTF_TOKEN.finditer(data):
        word = match["word"]
        if match["brace"] == "{":
            outer.append(group)
        elif match["brace"] == "}":
            group = outer.pop() if outer else _Group()
        elif word == "v":
            group = group._replace(is_hidden=match["number"] != "0")
            continue
        elif word == "plain":
            group = group._replace(is_hidden=False)
        elif word in _NOT_SHOWN:
            group = group._replace(is_shown=False)
        elif group.is_hidden and _is_character(match):
            if group.is_shown:
                passage += match[0].strip("\r\n")
            continue
        if passage and not group.is_hidden:
            _note_passage(passage, source)
            passage = ""
        kept.append(match[0])
    _note_passage(passage, source)
    return "".join(kept)


def _is_character(match: re.Match[str]) -> bool:
    """Return whether an RTF token is a character that is displayed."""
    return match["word"] in (None, "u", "tab", "line", "emdash", "endash", "bullet", "lquote")


def _note_passage(passage: str, source: SourceFile) -> None:
    text = re.sub(r"\\u-?\d+ ?\??|\\'[0-9a-fA-F]{2}|\\[a-z]+ ?", "", passage)
    if passage.strip():
        source.note(HIDDEN_TEXT, " ".join(text.split())[:60])
