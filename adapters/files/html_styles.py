"""Apply those rules of style sheets that affect how the text of web pages and books is read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from html import unescape

_COMMENT = re.compile(r"/\*.*?\*/", re.S)

_AT_RULE = re.compile(r"@[\w-]+[^{};]*(?:;|\{(?:[^{}]*\{[^{}]*\})*[^{}]*\})")

_RULE = re.compile(r"([^{}]+)\{([^{}]*)\}")

_CLASS = re.compile(r"(?:[a-z]\w*)?\.([\w-]+)", re.I)

_LINE_THROUGH = re.compile(r"text-decoration(?:-line)?\s*:[^;]*line-through", re.I)

_NOT_DISPLAYED = re.compile(r"display\s*:\s*none", re.I)

_MOVED = re.compile(
    r"(?:^|[;{\s])(?:vertical-align\s*:\s*(super|sub)|top\s*:\s*(-?)[\d.]*[1-9])", re.I
)

_RELATIVE = re.compile(r"position\s*:\s*relative")

_SIZE = re.compile(r"font-size\s*:\s*([\d.]+)(pt|px|em|rem|%)", re.I)

_POINTS = {"pt": 1.0, "px": 0.75, "em": 12.0, "rem": 12.0, "%": 0.12}

_CLASSES = re.compile(r"\bclass\s*=\s*(?:\"([^\"<>]*)\"|'([^'<>]*)'|([\w-]+))", re.I)

_STYLE_SHEET = re.compile(r"<style\b[^<>]*>(.*?)</style\s*>", re.I | re.S)


def class_rules(css: str) -> dict[str, str]:
    """Return a dictionary of the declarations in a style sheet, keyed by class name.

    Media queries are ignored.

    Example:
        >>> class_rules(".old, .gone { text-decoration: line-through }")
        {'old': ' text-decoration: line-through ', 'gone': ' text-decoration: line-through '}
    """
    rules: dict[str, str] = {}
    for selectors, declarations in _RULE.findall(_AT_RULE.sub(" ", _COMMENT.sub(" ", css))):
        for selector in selectors.split(","):
            if match := _CLASS.fullmatch(selector.strip()):
                rules[match[1]] = f"{rules.get(match[1], '')};{declarations}".removeprefix(";")
    return rules


def rules_in(html: str) -> dict[str, str]:
    """Return the rules that strike through text in the style sheets of a page."""
    if "line-through" not in html:
        return {}
    rules = class_rules("\n".join(_STYLE_SHEET.findall(html)))
    return {name: "text-decoration:line-through" for name in rules if _strikes(rules[name])}


def _strikes(declarations: str) -> bool:
    return _LINE_THROUGH.search(declarations) is not None


def rules_of_book(css: str) -> dict[str, str]:
    """Return the rules of a book's style sheet that affect the text.

    These are rules for strikethrough, hidden, superscript and subscript text.
    """
    found: dict[str, str] = {}
    for name, declarations in class_rules(css).items():
        styles: list[str] = []
        if _strikes(declarations):
            styles.append("text-decoration:line-through")
        if _NOT_DISPLAYED.search(declarations):
            styles.append("display:none")
        if alignment := _vertical_alignment(declarations):
            styles.append(f"vertical-align:{alignment}")
        if styles:
            found[name] = ";".join(styles)
    return found


def _vertical_alignment(declarations: str) -> str:
    """Return ``super`` or ``sub`` for superscript or subscript text, otherwise an empty string."""
    moved = _MOVED.search(declarations)
    if moved is None:
        return ""
    if moved[1]:
        return moved[1].lower()
    if not _RELATIVE.search(declarations):
        return ""
    return "super" if moved[2] == "-" else "sub"


def with_styles(html: str, rules: Mapping[str, str]) -> str:
    """Add the declarations of style sheet classes to the elements that use these classes."""
    if not rules:
        return html

    def styled(tag: re.Match[str]) -> str:
        styles = ";".join(rules[name] for name in _class_names(tag) if name in rules)
        if not styles:
            return tag[0]
        return f'{tag[0]} style="{styles}"'

    return _CLASSES.sub(styled, html)


def _class_names(tag: re.Match[str]) -> list[str]:
    """Return the class names in a match of ``_CLASSES``."""
    return (tag[1] or tag[2] or tag[3] or "").split()


_STRUCK_TAGS = ("s", "strike", "del")

_MAY_BE_STRUCK = re.compile(r"<(?:s|strike|del)[\s>]|line-through", re.I)

_TOKEN = re.compile(
    r"<!--.*?(?:-->|\Z)|<(?P<raw>script|style|title|textarea)\b.*?</(?P=raw)\s*>"
    r"|<(?P<end>/?)(?P<name>[a-z][\w:-]*)(?P<attributes>[^<>]*)>|(?P<text>[^<]+)|<",
    re.I | re.S,
)

_INLINE_LINE_THROUGH = re.compile(r"\bstyle\s*=\s*[\"']?[^\"'<>]*line-through", re.I)

_VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())

_START = "\ue038"

_END = "\ue039"


def mark_struck(html: str) -> str:
    """Surround strikethrough text of a page with the marks that ``struck_as_markdown`` replaces."""
    if not _MAY_BE_STRUCK.search(html):
        return html
    parts: list[str] = []
    open_tags: list[tuple[str, bool]] = []
    for token in _TOKEN.finditer(html):
        if token["text"] and any(is_struck for _, is_struck in open_tags):
            parts.append(_marked(token["text"]))
        else:
            parts.append(token[0])
        name = (token["name"] or "").lower()
        if not name:
            continue
        if token["end"]:
            _close(open_tags, name)
        elif name not in _VOID and not token["attributes"].endswith("/"):
            has_line = _INLINE_LINE_THROUGH.search(token["attributes"]) is not None
            open_tags.append((name, has_line or name in _STRUCK_TAGS))
    return "".join(parts)


def _marked(text: str) -> str:
    """Add the strikethrough marks to a text, excluding the spaces around it."""
    inner = text.strip()
    if not inner:
        return text
    before, _, after = text.partition(inner)
    return f"{before}{_START}{inner}{_END}{after}"


def _close(open_tags: list[tuple[str, bool]], name: str) -> None:
    """Close the most recent open tag with the given name, and all tags inside it."""
    for at in range(len(open_tags) - 1, max(-1, len(open_tags) - _DEEPEST), -1):
        if open_tags[at][0] == name:
            del open_tags[at:]
            return


_DEEPEST = 200  # maximum number of open tags that are searched for the start of an element

_BETWEEN = re.compile(f"{_END}([ \\t]*){_START}")


def struck_as_markdown(text: str) -> str:
    """Replace the marks of strikethrough text with Markdown's ``~~``.

    Example:
        >>> struck_as_markdown(mark_struck("Fee <s>10 euros</s>"))
        'Fee <s>~~10 euros~~</s>'
    """
    if _START not in text:
        return text
    text = _BETWEEN.sub(r"\1", text)
    return text.replace(_START, "~~").replace(_END, "~~")


_PARAGRAPH = re.compile(r"<p\b([^<>]*)>((?:(?!</?p\b).){1,2000}?)</p\s*>", re.I | re.S)

_TAG = re.compile(r"<[^<>]*>")

_LONGEST_HEADING = 150  # maximum number of characters in a heading


class BookHeadings:
    """A detector for headings in books that do not use heading elements.

    In such books, headings are paragraphs with a larger font size.
    """

    def __init__(self, css: str) -> None:
        self._sizes: dict[str, float] = {}
        for name, declarations in class_rules(css).items():
            if size := _SIZE.search(declarations):
                self._sizes[name] = float(size[1]) * _POINTS[size[2].lower()]
        self._levels: dict[float, int] = {}

    def count(self, chapters: list[str]) -> None:
        """Find the font sizes of headings, which are rare and larger than the size of the text."""
        if any(re.search(r"<h[1-6]\b", chapter, re.I) for chapter in chapters):
            return
        characters: Counter[float] = Counter()
        for chapter in chapters:
            for size, text in self._paragraphs(chapter):
                characters[size] += len(text)
        body = max(characters, key=characters.__getitem__, default=0.0)
        rare = characters.total() * _RARE
        larger = {
            size for size, count in characters.items() if size >= _LARGER * body and count <= rare
        }
        ranks = enumerate(sorted(larger, reverse=True)[:6], start=1)
        self._levels = {size: level for level, size in ranks}

    def _paragraphs(self, chapter: str) -> Iterator[tuple[float, str]]:
        for paragraph in _PARAGRAPH.finditer(chapter):
            yield self._size(paragraph), unescape(_TAG.sub("", paragraph[2])).strip()

    def _size(self, paragraph: re.Match[str]) -> float:
        """Return the font size of a paragraph, or 0 if it contains several sizes."""
        sizes: set[float] = set()
        size = self._size_of_tag(paragraph[1], 0.0)
        for part in re.split(r"(<[^<>]*>)", paragraph[2]):
            if part.startswith("<"):
                size = self._size_of_tag(part, size)
            elif part.strip():
                sizes.add(size)
        if len(sizes) != 1:
            return 0.0
        return sizes.pop()

    def _size_of_tag(self, tag: str, default: float) -> float:
        classes = _CLASSES.search(tag)
        if classes is None:
            return default
        names = _class_names(classes)
        return next((self._sizes[name] for name in names if name in self._sizes), default)

    def marked(self, chapter: str) -> str:
        """Return a chapter in which paragraphs that are headings become heading elements."""
        if not self._levels:
            return chapter

        def as_heading(paragraph: re.Match[str]) -> str:
            level = self._levels.get(self._size(paragraph))
            text = unescape(_TAG.sub("", paragraph[2])).strip()
            if level is None or not 0 < len(text) <= _LONGEST_HEADING:
                return paragraph[0]
            return f"<h{level}>{paragraph[2]}</h{level}>"

        return _PARAGRAPH.sub(as_heading, chapter)


_RARE = 0.15  # maximum share of all characters that belong to headings of the same size

_LARGER = 1.12
