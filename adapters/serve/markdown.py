"""Convert untrusted Markdown to HTML without links, images and raw HTML."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from functools import cache

from ..extras import extra

with extra("serve", "markdown_it", "markupsafe"):
    from markdown_it import MarkdownIt
    from markdown_it.token import Token
    from markupsafe import Markup

_MAX_TEXT = 100_000  # maximum number of characters; longer texts are displayed without markup

_MAX_MARKUP = 300  # maximum number of characters of markup at each end of a match

# The start and end of a match are marked with Unicode noncharacters, which do not occur in texts.
_HIT_START = "\ufdd0"
_HIT_END = "\ufdd1"

_FULL_MARKUP = ".md .markdown .mdx .html .htm .xhtml .docx .odt .pptx .epub .ipynb".split()

_BLOCK_MARKUP = ".pdf .txt .text .xlsx .ods .csv .tsv .eml .msg .rtf".split()

# Markdown syntax at the start and at the end of a match.
_LEADING = re.compile(
    r"(?:\s|#{1,6}(?=[ \t])|[-+>](?=[ \t])|\d+[.)](?=[ \t])|`{3,}[^`\n]*\n|[-:| \t]+\n|[|*_~`])*"
)
_TRAILING = re.compile(r"[\s|`~*_:#-]*\Z")

_CITATION = re.compile(r"[\[【［]([\d\s,，、;；\-–]+)[\]】］]")


def markdown(text: str, sources: Collection[int] = (), *, has_inline: bool = True) -> Markup:
    """Convert Markdown text to HTML.

    Args:
        text: The Markdown text.
        sources: The numbers of the available sources. Citations of these numbers become links.
        has_inline: Whether to convert markup within lines. If False, only headings, lists, tables
            and code blocks are converted.

    Example:
        >>> markdown("*Green* <tea> [1]", [1])
        Markup('<p><em>Green</em> &lt;tea&gt; <a class="citation" href="#source-1">1</a></p>\\n')
    """
    if len(text) > _MAX_TEXT:
        return Markup('<div class="plain">{}</div>').format(text)
    return _rendered(text, sources, has_inline)[0]


def marked_passage(before: str, hit: str, after: str, file_name: str) -> Markup:
    """Convert a passage to HTML in which the match is surrounded by ``mark`` elements.

    Args:
        before: The text before the match.
        hit: The match. If it is empty, nothing is marked.
        after: The text after the match.
        file_name: The name of the file, whose suffix determines which Markdown syntax is converted.
    """
    text = before + hit + after
    suffix = _suffix(file_name)
    has_inline = suffix in _FULL_MARKUP
    has_markup = has_inline or suffix in _BLOCK_MARKUP
    if not has_markup or len(text) > _MAX_TEXT:
        return _plain(before, hit, after)
    if not hit:
        return markdown(text, has_inline=has_inline)
    first, last = _without_markup(hit)
    start = len(before) + first
    end = len(before) + last
    if start >= end or _HIT_START in text or _HIT_END in text:
        return _plain(before, hit, after)
    delimited = f"{text[:start]}{_HIT_START}{text[start:end]}{_HIT_END}{text[end:]}"
    html, hits = _rendered(delimited, (), has_inline)
    if hits != [_HIT_START, _HIT_END]:
        return _plain(before, hit, after)
    return html


def _suffix(file_name: str) -> str:
    """Return the suffix of a file name, including the dot. Defaults to ``.txt``."""
    _, dot, suffix = file_name.rpartition(".")
    return f".{suffix.lower()}" if dot else ".txt"


def _without_markup(hit: str) -> tuple[int, int]:
    """Return the start and the end of a match, excluding markup at its ends."""
    leading = _LEADING.match(hit, 0, _MAX_MARKUP)
    trailing = _TRAILING.search(hit, max(0, len(hit) - _MAX_MARKUP))
    start = leading.end() if leading else 0
    end = trailing.start() if trailing else len(hit)
    return start, end


def _plain(before: str, hit: str, after: str) -> Markup:
    """Convert a passage to HTML without interpreting markup. The match is in a ``mark`` element."""
    mark = Markup("<mark>{}</mark>").format(hit) if hit else ""
    return Markup('<div class="plain">{}{}{}</div>').format(before, mark, after)


@cache
def _parser(has_inline: bool) -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable(
        ["table", "strikethrough"]
    )
    parser.disable(["reference", "autolink", "link", "image", "html_block", "html_inline"])
    if not has_inline:
        parser.disable(["code", "lheading"])
        parser.inline.ruler.enableOnly(["text", "newline"])
        parser.inline.ruler2.enableOnly([])
    return parser


def _rendered(text: str, sources: Collection[int], has_inline: bool) -> tuple[Markup, list[str]]:
    """Return the HTML of a text, and the delimiters of matches in the order of the text."""
    parser = _parser(has_inline)
    tokens = parser.parse(text)
    for token in tokens:
        _simplify(token)
    html = parser.renderer.render(tokens, parser.options, {})
    hits: list[str] = []
    return Markup("".join(_parts(re.split(r"(<[^>]*>)", html), sources, hits))), hits


def _simplify(token: Token) -> None:
    """Lower the level of headings, and remove attributes that the security policy forbids."""
    token.info = ""
    if token.type.startswith("heading"):
        token.tag = f"h{min(6, int(token.tag[1]) + 3)}"
    if style := token.attrs.pop("style", None):
        token.attrs["class"] = str(style).removeprefix("text-align:")


def _parts(parts: Sequence[str], sources: Collection[int], hits: list[str]) -> Iterator[str]:
    """Yield tags and texts, adding marks and citations to texts. Texts are at even positions."""
    in_code = False
    for at, part in enumerate(parts):
        if at % 2:
            in_code = part == "<code>" or (in_code and part != "</code>")
            yield part
            continue
        for text in re.split(f"([{_HIT_START}{_HIT_END}])", part):
            if text in (_HIT_START, _HIT_END):
                hits.append(text)
            elif hits[-1:] == [_HIT_START] and text.strip():
                yield f"<mark>{text}</mark>"
            elif hits[-1:] == [_HIT_START] or in_code or not sources:
                yield text
            else:
                yield _with_citations(text, sources)


def _with_citations(text: str, sources: Collection[int]) -> str:
    def links(match: re.Match[str]) -> str:
        numbers = re.findall(r"\d{1,9}", match[1])
        if not numbers or any(int(number) not in sources for number in numbers):
            return match[0]
        return " ".join(f'<a class="citation" href="#source-{n}">{n}</a>' for n in numbers)

    return _CITATION.sub(links, text)
