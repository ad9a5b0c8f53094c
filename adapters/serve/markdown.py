"""Conversion of Markdown to page elements, without links, pictures and HTML."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from ..extras import extra

with extra("serve", "markdown_it"):
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_MAX_TEXT = 100_000  # characters; a longer text is displayed without markup

_MAX_PENDING = 20_000  # characters of an incomplete block

_MAX_DEPTH = 40  # nested elements

_MAX_MARKUP = 300  # characters of markup at either end of a match

_HIT_START, _HIT_END = "\ufdd0", "\ufdd1"  # noncharacters of Unicode, never part of a text

_FULL_MARKUP = ".md .markdown .mdx .html .htm .xhtml .docx .odt .pptx .epub .ipynb".split()

_BLOCK_MARKUP = ".pdf .txt .text .xlsx .ods .csv .tsv .eml .msg .rtf".split()

_ELEMENTS = {
    "paragraph": "p",
    "bullet_list": "ul",
    "ordered_list": "ol",
    "list_item": "li",
    **{tag: tag for tag in ("blockquote", "em", "strong", "s")},
    **{tag: tag for tag in ("table", "thead", "tbody", "tr", "th", "td")},
}

# Markup at the start and at the end of a match
_LEADING = re.compile(
    r"(?:\s|#{1,6}(?=[ \t])|[-+>](?=[ \t])|\d+[.)](?=[ \t])|`{3,}[^`\n]*\n|[-:| \t]+\n|[|*_~`])*"
)
_TRAILING = re.compile(r"[\s|`~*_:#-]*\Z")

_CITATION = re.compile(r"[\d\s,，、;；–-]+")


def elements(text: str, *, has_inline: bool = True) -> list[Any]:
    """Convert a Markdown text to elements: texts and ``[tag, attributes, *children]``.

    Args:
        text: The text.
        has_inline: Whether to parse markup within lines. False: only headings, lists, tables and
            code blocks are parsed.

    Example:
        >>> elements("# Tea\\n\\n*Green* tea [1]")
        [['h4', {}, 'Tea'], ['p', {}, ['em', {}, 'Green'], ' tea [1]']]
    """
    if len(text) > _MAX_TEXT:
        return [text]
    return _ElementBuilder(_parser(has_inline).parse(text)).result


def passage_elements(before: str, hit: str, after: str, file_name: str) -> list[Any]:
    """Convert a passage to elements, with the match in a ``mark`` element.

    Args:
        before: The text before the match.
        hit: The match. Empty: mark nothing.
        after: The text after the match.
        file_name: The name of the file. Its suffix determines the parsed Markdown syntax.
    """
    plain = [part for part in (before, ["mark", {}, hit] if hit else "", after) if part]
    suffix = file_name[file_name.rfind(".") :].lower() if "." in file_name else ".txt"
    has_inline = suffix in _FULL_MARKUP
    text = before + hit + after
    if (not has_inline and suffix not in _BLOCK_MARKUP) or len(text) > _MAX_TEXT:
        return plain
    if not hit:
        return elements(text, has_inline=has_inline)
    leading = _LEADING.match(hit, 0, _MAX_MARKUP)
    trailing = _TRAILING.search(hit, max(0, len(hit) - _MAX_MARKUP))
    start = len(before) + (leading.end() if leading else 0)
    end = len(before) + (trailing.start() if trailing else len(hit))
    if start >= end or _HIT_START in text or _HIT_END in text:
        return plain
    marked = f"{text[:start]}{_HIT_START}{text[start:end]}{_HIT_END}{text[end:]}"
    built = _ElementBuilder(_parser(has_inline).parse(marked))
    return built.result if built.hits == [_HIT_START, _HIT_END] else plain


class GrowingMarkdown:
    """An incremental Markdown parser for a text that arrives in pieces.

    Attributes:
        pending: The text of the incomplete last block.
    """

    def __init__(self) -> None:
        self.pending = ""

    def add(self, text: str) -> list[Any]:
        """Append text and return the newly completed blocks as elements."""
        checked = max(0, len(self.pending) - 1)
        self.pending += text.replace("\r", "")
        if "\n\n" not in self.pending[checked:] or len(self.pending) > _MAX_PENDING:
            return []
        tokens = _parser(True).parse(self.pending)
        blocks = [i for i, token in enumerate(tokens) if not token.level and token.nesting >= 0]
        if len(blocks) < 2:
            return []
        last = tokens[blocks[-1]]
        start = last.map[0] if last.map else 0
        self.pending = "\n".join(self.pending.split("\n")[start:])
        return _ElementBuilder(tokens[: blocks[-1]]).result

    def finish(self) -> list[Any]:
        """Return the remaining text as elements."""
        remaining, self.pending = self.pending, ""
        return elements(remaining)


@cache
def _parser(has_inline: bool) -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    # With references a last line "[1]: tea.md" would turn every citation [1] into a link.
    parser.disable(["reference", "autolink", "html_block", "html_inline"])
    if not has_inline:
        parser.disable(["code", "lheading"])
        parser.inline.ruler.enableOnly(["text", "newline"])
        parser.inline.ruler2.enableOnly([])
    return parser


class _ElementBuilder:
    """A converter from Markdown tokens to elements.

    Attributes:
        result: The elements.
        hits: The match delimiters found so far.
    """

    def __init__(self, tokens: Sequence[Token]) -> None:
        self.result: list[Any] = []
        self.hits: list[str] = []
        self._open = [self.result]
        self._link_ends: list[str] = []
        self._add(tokens)

    def _add(self, tokens: Sequence[Token]) -> None:
        for i, token in enumerate(tokens):
            kind = token.type.removesuffix("_open")
            if token.type == "inline":
                self._add(token.children or [])
            elif token.type == "link_open":
                self._start_link(str(token.attrs.get("href", "")), tokens[i + 1].content)
            elif token.type == "link_close":
                self._text(self._link_ends.pop())
            elif token.nesting == 1:
                tag = f"h{min(6, int(token.tag[1]) + 3)}" if kind == "heading" else _ELEMENTS[kind]
                self._start(tag, _attributes(token), is_hidden=token.hidden)
            elif token.nesting == -1:
                self._open.pop()
            elif token.type in ("fence", "code_block", "code_inline"):
                for tag in ("code",) if token.type == "code_inline" else ("pre", "code"):
                    self._start(tag, {})
                self._text(token.content)
                del self._open[-1 if token.type == "code_inline" else -2 :]
            elif token.type == "hr":
                self._open[-1].append(["hr", {}])
            else:  # a line break stays a newline, a picture becomes its description
                self._text("\n" if token.type.endswith("break") else token.content)

    def _start(self, tag: str, attributes: dict[str, Any], is_hidden: bool = False) -> None:
        parent = self._open[-1]
        if is_hidden or len(self._open) > _MAX_DEPTH:
            self._open.append(parent)
            return
        element: list[Any] = [tag, attributes]
        parent.append(element)
        self._open.append(element)

    def _start_link(self, address: str, label: str) -> None:
        is_citation = _CITATION.fullmatch(label) is not None
        self._text("[" if is_citation else "")
        is_external = address.startswith(("http://", "https://", "mailto:")) and address != label
        self._link_ends.append("]" * is_citation + f" ({address})" * is_external)

    def _text(self, text: str) -> None:
        siblings = self._open[-1]
        for part in re.split(f"([{_HIT_START}{_HIT_END}])", text):
            if part in (_HIT_START, _HIT_END):
                self.hits.append(part)
            elif part and self.hits[-1:] == [_HIT_START]:
                siblings.append(["mark", {}, part])
            elif part and siblings and isinstance(siblings[-1], str):
                siblings[-1] += part  # keeps a citation in one text
            elif part:
                siblings.append(part)


def _attributes(token: Token) -> dict[str, Any]:
    if "start" in token.attrs:
        return {"start": token.attrs["start"]}
    style = str(token.attrs.get("style", ""))
    return {"class": style.removeprefix("text-align:")} if style else {}
