"""Read e-mail: single messages, and boxes of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ...nodegraph.document import Document
from ...nodegraph.readers.source_file import SourceFile
from .html import markdown

if TYPE_CHECKING:
    from email.message import EmailMessage  # which loads the modules of the network


def read_message(source: SourceFile) -> Document:
    """Read a message: its text, with the subject as title; attachments are named, not opened."""
    from email import message_from_binary_file
    from email.policy import default

    with source.path.open("rb") as file:
        message = message_from_binary_file(file, policy=default)
    return _document(message, None)


def read_mailbox(source: SourceFile) -> Iterator[Document]:
    """Read a box of messages, a document each, which is known by its number."""
    import mailbox
    from email import message_from_bytes
    from email.policy import default

    box = mailbox.mbox(source.path, create=False)
    try:
        for number, key in enumerate(box.keys(), start=1):
            message = message_from_bytes(box.get_bytes(key), policy=default)
            yield _document(message, str(number))
    finally:
        box.close()


def _document(message: EmailMessage, number: str | None) -> Document:
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
    except Exception:  # the parser of headers trips over broken ones in many ways
        return ""


def _file_name(part: Any) -> str:
    try:
        return str(part.get_filename() or "")
    except Exception:  # as above
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
