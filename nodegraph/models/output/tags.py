"""Convert answers with tags, such as ``<question>…</question>``, to the equivalent JSON values."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from .chinese_script import chinese_pattern

_NAME = r"[A-Za-z\u4e00-\u9fff][\w:.-]{0,40}"

_TAG = re.compile(
    rf"<(?P<close>/)?(?P<name>{_NAME})(?P<attributes>(?:\s[^<>]{{0,300}}?)?)(?P<empty>/)?\s?>"
)

_ATTRIBUTE = re.compile(r"([\w:-]{1,40})\s?=\s?(?:\"([^\"]*)\"|'([^']*)')")

_SQUARE = re.compile(rf"^([ \t]{{0,9}})\[({_NAME})\](.{{0,2000}}?)\[/\2\]", re.S | re.M)

_CDATA = re.compile(r"<!\[CDATA\[(.{0,5000}?)\]\]>", re.S)

_HEAD = re.compile(r"\A\s*<\?xml[^<>]{0,200}\?>\s*|<!--.{0,2000}?-->", re.S)

# Formatting tags inside a text. They never enclose an item.
_FORMATTING = frozenset(
    "a abbr b big br cite code del em font i img ins kbd mark s small span strong sub sup u".split()
)

_HTML = _FORMATTING | frozenset(
    """article aside audio blockquote body button canvas dd div dl dt fieldset figure footer form
    h1 h2 h3 h4 h5 h6 head header hr html iframe input label legend li link main meta nav ol option
    output p pre script section select style svg table tbody td template textarea tfoot th thead
    title tr ul video""".split()
)

# HTML elements that models use to enclose items.
_WRAPPING_HTML = frozenset("ol ul li p div section dl dd pre output input".split())

# HTML elements whose end tags are optional.
_OPEN_HTML = frozenset(("li", "p", "dd"))

# Names of tags that enclose an item anywhere in a line.
_ITEM_NAME = chinese_pattern(
    r"(?:(?:rewritten|search|new|sub|improved|standalone|final|user|next)[_-]?)?"
    r"(?:quer(?:y|ies)|questions?|q|rewrit\w{0,6}|search|answer|result|output|response)|问题|查询|改写",
    re.I,
)

_BEFORE = re.compile(
    r"(?:^|\n)[ \t]*(?:[-*+•>]\s{1,4}|\(?\d{1,3}[.)、]\s{0,4})?[*_`\"]{0,3}\Z|>\s*\Z"
)

_AFTER = re.compile(r"[*_`\"]{0,3}[ \t.,;。，；]*(?:\n|\Z|</?[\w\u4e00-\u9fff])")

# The function calls of some models: <function=search><parameter=query>…
_CALL = re.compile(r"<(function|parameter)=([\w.-]{1,60})>")

# Names of elements whose attribute "name" is used as a key.
_NAMED = frozenset(("parameter", "param", "arg", "argument", "field", "property"))

_ESCAPED = re.compile(r"\A\W{0,9}(?:&lt;|\\<)/?[A-Za-z]")

_MAX_TAGS = 2_000

_MAX_DEPTH = 20


@dataclass
class _Element:
    name: str
    tag: str = ""
    attributes: dict[str, str] = field(default_factory=dict)
    text: str = ""
    children: list[_Element] = field(default_factory=list)


def is_asked(tag: str, query: str) -> bool:
    """Return whether the user's question contains a tag, which is then part of the text."""
    name = tag.casefold()
    asked = query.casefold()
    return f"<{name}" in asked or f"</{name}" in asked


def tagged_value(text: str, query: str = "") -> Any:
    """Return the texts that are enclosed by tags in an answer.

    The result is None if no lines are enclosed by tags.

    Otherwise it is a text, a list or an object, as for an equivalent answer in JSON. Text outside
    the tags, such as an introduction or a remark, is left out.

    Args:
        text: The answer of the model, without its reasoning.
        query: The user's question. Tags that occur in it are treated as part of the text.

    Example:
        >>> tagged_value("Here:\\n<q1>Who wrote it?</q1>\\n<q2>Who painted it?</q2>")
        {'q1': 'Who wrote it?', 'q2': 'Who painted it?'}
        >>> tagged_value("How do I center a <div>?")
    """
    text = _without_escapes(_SQUARE.sub(r"\1<\2>\3</\2>", text))
    if "<" not in text or ">" not in text:
        return None
    text = _HEAD.sub("", text)
    text = _CDATA.sub(lambda found: html.escape(found[1]), text)
    root = _parsed(text, lambda name: _is_wrapper_name(name) and not is_asked(name, query))
    if not root.children:
        return None
    return _value_of_children(root.children)


def _without_escapes(text: str) -> str:
    """Replace escaped tags and calls in a text with plain tags."""
    if "<" not in text and _ESCAPED.match(text):
        text = html.unescape(text)
    if "\\" in text:
        text = re.sub(r"\\([<>])|(?<=<)\\(?=[a-z]{1,30}>)", _plain_sign, text)
    return _CALL.sub(r'<\1 name="\2">', text)


def _plain_sign(found: re.Match[str]) -> str:
    """Return the text that replaces a backslash in a tag.

    An escaped angle bracket loses its backslash. In a closing tag that is written with a backslash,
    the backslash becomes a slash.
    """
    return found[1] or "/"


def _is_wrapper_name(name: str) -> bool:
    lower = name.casefold()
    return lower in _WRAPPING_HTML or lower not in _HTML


def _parsed(text: str, is_wrapper: Callable[[str], bool]) -> _Element:
    """Parse a text into a tree of elements that enclose items.

    Tags inside sentences remain text.
    """
    found = [tag for tag in _wrapping_tags(text) if is_wrapper(tag["name"])]
    closed = {tag["name"].casefold() for tag in found if tag["close"]}
    # An HTML element without an end tag is a word in the text.
    words = _HTML - _OPEN_HTML - closed
    tags = [tag for tag in found if tag["name"].casefold() not in words]
    root = _Element("")
    path = [root]
    end = 0
    for tag in tags[:_MAX_TAGS]:
        path[-1].text += text[end : tag.start()]
        end = tag.end()
        if tag["close"]:
            _close(path, tag["name"])
            continue
        element = _element(tag)
        is_sibling = path[-1].name == element.name and len(path) > 1
        if is_sibling and path[-1].text.strip():
            path.pop()  # The end tag was left out.
        path[-1].children.append(element)
        if not tag["empty"] and len(path) < _MAX_DEPTH:
            path.append(element)
    path[-1].text += text[end:]
    is_open = len(path) > 1 and path[-1].name in closed
    if is_open and not _IS_COMPLETE.search(path[-1].text):
        path[-2].children.pop()  # The answer was truncated after elements with end tags.
    return root


_IS_COMPLETE = re.compile(r"[.?!。？！\"”]\s{0,9}\Z")


def _element(tag: re.Match[str]) -> _Element:
    """Create the element for an opening tag."""
    name = tag["name"]
    attributes = _attributes(tag["attributes"])
    if name.casefold() in _NAMED and "name" in attributes:
        name = attributes.pop("name")
    return _Element(name, tag["name"], attributes)


def _close(path: list[_Element], name: str) -> None:
    """Close the innermost open element with the given name."""
    names = [element.tag.casefold() for element in path]
    if name.casefold() in names[1:]:
        while path.pop().tag.casefold() != name.casefold():
            pass
        return
    # The opening tag is part of the prompt, so all text before the end tag belongs to the element.
    root = path[0]
    if len(path) == 1 and root.text.strip():
        root.children.append(_Element(name, name, text=root.text))
        root.text = ""


def _wrapping_tags(text: str) -> Iterator[re.Match[str]]:
    """Yield the tags at the start or end of a line, and the tags next to them."""
    found = [*_TAG.finditer(text)]
    opened = {tag["name"].casefold() for tag in found if not tag["close"]}
    closed = {tag["name"].casefold() for tag in found if tag["close"]}
    paired = {name for name in opened & closed if _ITEM_NAME.fullmatch(name)}
    if opened & {"ul", "ol"}:
        paired |= _OPEN_HTML
    for tag in found:
        if tag["name"].casefold() in paired:
            yield tag
        elif tag["close"]:
            if _AFTER.match(text, tag.end()):
                yield tag
        elif _BEFORE.search(text[max(0, tag.start() - 40) : tag.start()]) or not tag.start():
            yield tag


def _attributes(text: str) -> dict[str, str]:
    """Return the attributes of a tag. Numbers are left out, as in ``<question id="1">``."""
    found = {name: double or single for name, double, single in _ATTRIBUTE.findall(text)}
    return {name: html.unescape(value) for name, value in found.items() if not value.isdigit()}


def _value_of(element: _Element) -> Any:
    if element.children:
        return _value_of_parent(element)
    text = html.unescape(element.text).strip()
    if text.startswith(("{", "[")):
        with suppress(ValueError, RecursionError):
            return json.loads(text, strict=False)
    if not element.attributes:
        return text
    if not text:
        return element.attributes
    return {**element.attributes, element.name: text}


def _value_of_parent(element: _Element) -> Any:
    """Convert an element with child elements to a JSON value that includes its attributes."""
    children = element.children
    names = [child.name for child in children]
    if names[0] == "arg_key" and len(names) % 2 == 0:
        keys = [child.text.strip() for child in children[::2]]
        values = [child.text.strip() for child in children[1::2]]
        return {"name": element.text.strip(), **dict(zip(keys, values, strict=True))}
    value = _value_of_children(children)
    if not element.attributes:
        return value
    if isinstance(value, dict):
        return {**element.attributes, **value}
    return {**element.attributes, names[0]: value}


def _value_of_children(children: Sequence[_Element]) -> Any:
    """Convert child elements to a JSON value.

    The result is the value of a single element, a list if all tags are equal, or else an object.
    """
    values = [_value_of(child) for child in children]
    names = [child.name for child in children]
    if len(children) == 1:
        return values[0]
    if len({*names}) == 1:
        return values
    records: list[dict[str, Any]] = [{}]
    for name, value in zip(names, values, strict=True):
        if name in records[-1]:
            records.append({})
        records[-1][name] = value
    if len(records) == 1:
        return records[0]
    return records


def leftover_tag(text: str, query: str = "") -> str | None:
    """Return a tag at the start or end of a text that cannot be part of a question, or None.

    HTML elements and types such as ``List<String>`` can be part of a question.

    Example:
        >>> leftover_tag("<query>How long is it?"), leftover_tag("What is <div>?")
        ('<query>', None)
    """
    stripped = text.strip()
    for tag in _TAG.finditer(stripped[:100_000]):
        if is_asked(tag["name"], query):
            continue
        is_closing = tag["close"] is not None
        is_last = not stripped[tag.end() :].strip(".?!。？！")
        is_outer = tag.start() == 0 or (is_closing and is_last)
        is_word = tag["name"].casefold() in _HTML and not is_closing
        is_opened = is_closing and f"<{tag['name']}" in stripped[: tag.start()]
        if not is_closing and stripped[: tag.start()].endswith(("?", "？", ".", "。")):
            is_outer = is_outer or tag.end() == len(stripped)
        if is_outer and not is_word and not is_opened:
            return tag[0]
    return None


def check_no_tag(text: str, query: str = "") -> None:
    """Check that no tag is left over at the start or end of a text.

    Raises:
        ValueError: If a tag is left over that the user's question does not contain.
    """
    tag = leftover_tag(text, query)
    if tag is not None:
        raise ValueError(f"the answer has the tag {tag:.60}; write the text without tags")
