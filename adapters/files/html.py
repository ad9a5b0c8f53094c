"""Read HTML and files that contain HTML: books and e-mail."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from html import unescape
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from ...nodegraph.document import Document
from ...nodegraph.readers.source_files import SourceFile
from ...nodegraph.readers.text import decode, decoded, join_pages
from .markup import with_repeated_cells, with_scripts
from .packed_files import opened_zip, parser, title_and_author

if TYPE_CHECKING:
    from email.message import EmailMessage  # a slow import of network modules
    from email.policy import EmailPolicy


_TITLE = re.compile(r"<title[^>]*>(.*?)</title>", re.I | re.S)

_INTERNAL_LINK = re.compile(r"\[([^\[\]\n]*)\]\(#[^)\s]*\)")
"""A link within the page. Its target is removed; a link with a number refers to a note."""

_TAG = re.compile(r"<(?:script|style)\b.*?</(?:script|style)\s*>|<[^<>]*>", re.I | re.S)

_AS_IT_IS = re.compile(r"(</?(?:pre|script|style|textarea)\b)", re.I)

_WIDE = "[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff01-\uffef]"

_WRAP = re.compile(
    rf"(?<={_WIDE})[ \t]*\r?\n\s*(?=((?![\uac00-\ud7af]){_WIDE})|[^\s<])"  # not Korean
    rf"|(?<=[^\s>])\r?\n\s*(?={_WIDE})"
)

_MAX_DEPTH = 1_000  # maximum depth of tags; above it, the HTML library may return nothing

_EMPHASIS = ["b", "strong", "i", "em", "u", "s", "font", "span", "mark", "ins"]


def read_html(source: SourceFile) -> Document:
    """Read a page as Markdown with headings, lists, tables, code and links."""
    html, encoding = decoded(source, declared=True)
    metadata = {} if encoding in ("utf-8", "utf8") else {"encoding": encoding}
    match = _TITLE.search(html)
    if match and (title := " ".join(unescape(match[1]).split())):
        metadata["title"] = title
    return source.document(markdown(html), metadata)


def markdown(html: str) -> str:
    """Convert HTML to Markdown, without emphasis, scripts, forms and menus.

    Raises:
        ReadError: If html-to-markdown is not installed.
    """
    with parser("html_to_markdown"):
        from html_to_markdown import ConversionOptions, convert
    options = ConversionOptions(
        skip_images=True, compact_tables=True, extract_metadata=False, strip_tags=_EMPHASIS
    )
    html = with_repeated_cells(with_scripts(html))
    text = convert(_unwrapped(html), options).content or ""
    if not text.strip() and _depth(html) > _MAX_DEPTH:
        text = unescape(_TAG.sub(" ", html))
    while "\n\n\n" in text:  # left by removed elements
        text = text.replace("\n\n\n", "\n\n")
    if "](#" in text:
        text = _INTERNAL_LINK.sub(lambda m: f"[{m[1]}]" if m[1].isdecimal() else m[1], text)
    return text.strip()


def _unwrapped(html: str) -> str:
    """Remove line breaks within Chinese and Japanese text.

    Browsers don't show such a line break, but in Markdown it would end a sentence.
    """
    if html.isascii():
        return html
    parts = _AS_IT_IS.split(html)
    for at in range(0, len(parts), 2):
        if not at or parts[at - 1].startswith("</"):
            parts[at] = _WRAP.sub(lambda wrap: "" if wrap[1] else " ", parts[at])
    return "".join(parts)


def _depth(html: str) -> int:
    """Return the maximum depth of nested tags."""
    depth = deepest = 0
    for tag in _TAG.finditer(html):
        depth += -1 if tag[0].startswith("</") else 1
        deepest = max(deepest, depth)
    return deepest


def read_epub(source: SourceFile) -> Document:
    """Read a book, with a page break between chapters.

    Raises:
        ReadError: If the book is damaged or protected.
    """
    from xml.etree import ElementTree

    with opened_zip(source, "EPUB") as archive:
        names = set(archive.namelist())
        if "META-INF/rights.xml" in names:
            raise source.encrypted("EPUB")
        try:
            container = ElementTree.fromstring(archive.read("META-INF/container.xml"))
            package_path = next(
                e.attrib["full-path"] for e in container.iter() if e.tag.endswith("}rootfile")
            )
            package = ElementTree.fromstring(archive.read(package_path))
        except (KeyError, StopIteration, ElementTree.ParseError) as error:
            raise source.damaged(f"it has no list of its chapters ({error})") from error
        base = posixpath.dirname(package_path)
        items = {e.get("id"): e for e in package.iter() if e.tag.endswith("}item")}
        chapters = []
        for reference in (e for e in package.iter() if e.tag.endswith("}itemref")):
            item = items.get(reference.get("idref"))
            if item is None or item.get("properties") == "nav":
                continue
            name = posixpath.normpath(posixpath.join(base, unquote(item.get("href", ""))))
            if name in names:
                html, _ = decode(archive.read(name), source, declared=True)
                chapters.append(markdown(html))
    metadata = {**title_and_author(package.iter()), "page_unit": "chapter"}
    return source.document(join_pages(filter(None, chapters)), metadata)


def read_message(source: SourceFile) -> Document:
    """Read the text of a message, with the subject as title. Attachments are listed, not read."""
    from email import message_from_binary_file

    with source.path.open("rb") as file:
        message = message_from_binary_file(file, policy=_mail_policy())
    return _mail_document(message, None)


def read_mailbox(source: SourceFile) -> Iterator[Document]:
    """Read each message of a mailbox as a document. Its id is its number."""
    import mailbox
    from email import message_from_bytes

    box = mailbox.mbox(source.path, create=False)
    try:
        policy = _mail_policy()
        for number, key in enumerate(box.keys(), start=1):
            message = message_from_bytes(box.get_bytes(key), policy=policy)
            yield _mail_document(message, str(number))
    finally:
        box.close()


_MAX_HEADER = 20_000  # maximum characters; the parser takes seconds for headers of megabytes


def _mail_policy() -> EmailPolicy[Any]:
    from email.policy import EmailPolicy

    class Policy(EmailPolicy):
        """A mail policy that truncates long headers."""

        def header_fetch_parse(self, name: str, value: str) -> Any:
            return super().header_fetch_parse(name, value[:_MAX_HEADER])

    return Policy()


def _mail_document(message: EmailMessage, number: str | None) -> Document:
    from email.utils import parsedate_to_datetime

    metadata: dict[str, Any] = {}
    for name, field in (("title", "subject"), ("from", "from"), ("to", "to"), ("cc", "cc")):
        if value := _header(message, field):
            metadata[name] = value
    if date := _header(message, "date"):
        try:
            metadata["date"] = parsedate_to_datetime(date).isoformat()
        except (ValueError, TypeError):
            metadata["date"] = date
    names = [name for part in message.walk() if (name := _file_name(part))]
    if names:
        metadata["attachments"] = names
    return Document(_body(message), metadata, id=number)


def _header(message: EmailMessage, name: str) -> str:
    try:
        return " ".join(str(message.get(name, "")).split())
    except Exception:  # the parser raises various errors for broken headers
        return ""


def _file_name(part: Any) -> str:
    try:
        return str(part.get_filename() or "")
    except Exception:  # raises the same errors as headers
        return ""


def _body(message: EmailMessage) -> str:
    plain: list[str] = []
    pages: list[str] = []
    for part in message.walk():
        if part.get_content_maintype() != "text" or _file_name(part):
            continue
        text = _content(part)
        (pages if part.get_content_subtype() == "html" else plain).append(text)
    if any(text.strip() for text in plain):
        return "\n\n".join(text.strip() for text in plain)
    return "\n\n".join(markdown(page) for page in pages)


def _content(part: Any) -> str:
    data = part.get_payload(decode=True) or b""
    charset = part.get_content_charset("utf-8")
    for name in (charset, "utf-8", "gb18030"):
        try:
            return str(data.decode("gb18030" if name in ("gb2312", "gbk") else name))
        except (UnicodeDecodeError, LookupError):
            continue
    return str(data.decode("utf-8", "replace"))
