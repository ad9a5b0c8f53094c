"""Read e-mail: messages and mailboxes."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...nodegraph.document import Document
from ...nodegraph.errors import ReadError
from ...nodegraph.readers.decoding import decode, label_in
from ...nodegraph.readers.formats import format_of
from ...nodegraph.readers.source_files import SourceFile
from .html import page_text


def read_message(source: SourceFile) -> Document:
    """Read the displayed text of a message and its attachments, with the subject as title."""
    from email import message_from_binary_file
    from email.policy import default

    with source.path.open("rb") as file:
        message = message_from_binary_file(file, policy=default)
    return _mail_document(message, source, None)


def read_mailbox(source: SourceFile) -> Iterator[Document]:
    """Read each message of a mailbox as a document. Its id is its number."""
    import mailbox
    from email import message_from_bytes
    from email.policy import default

    box = mailbox.mbox(source.path, create=False)
    try:
        for number, key in enumerate(box.keys(), start=1):
            message = message_from_bytes(box.get_bytes(key), policy=default)
            yield _mail_document(message, source, str(number))
    finally:
        box.close()


def _mail_document(message: Any, source: SourceFile, number: str | None) -> Document:
    from email.utils import parsedate_to_datetime

    fields = {"title": "subject", "from": "from", "to": "to", "cc": "cc", "date": "date"}
    values: dict[str, Any] = {name: _header(message, field) for name, field in fields.items()}
    with suppress(ValueError, TypeError):
        values["date"] = parsedate_to_datetime(values["date"]).isoformat()
    values["attachments"] = [name for part in message.walk() if (name := _file_name(part))]
    metadata = {name: value for name, value in values.items() if value}
    blocks = _displayed(message, source, f"message {number}" if number else "")
    return Document("\n\n".join(filter(None, map(str.strip, blocks))), metadata, id=number)


def _header(message: Any, name: str) -> str:
    return " ".join(str(_parsed(lambda: message.get(name))).split())


def _file_name(part: Any) -> str:
    return str(_parsed(part.get_filename))


def _parsed(read: Callable[[], Any]) -> Any:
    """Return a value of a header, or "". The parser raises various errors for broken headers."""
    try:
        return read() or ""
    except Exception:
        return ""


def _displayed(part: Any, source: SourceFile, place: str) -> Iterator[str]:
    """Yield the texts of a part that a mail program displays, and of its attachments."""
    kind, main = part.get_content_type(), part.get_content_maintype()
    name = _file_name(part)
    is_attached = _parsed(part.get_content_disposition) == "attachment"
    if kind == "multipart/alternative" and part.is_multipart():
        yield from _richest(part.get_payload(), source, place)
    elif part.is_multipart():
        for inner in part.get_payload():
            if main == "message":  # a forwarded message, or a report
                is_mail = kind == "message/rfc822"
                shown = ("Subject", "From", "To", "Date") if is_mail else inner.keys()
                fields = {field: _header(inner, field) for field in shown}
                yield "\n".join(f"{field}: {value}" for field, value in fields.items() if value)
            yield from _displayed(inner, source, place)
    elif is_attached or (name and kind not in ("text/plain", "text/html")):
        yield _attachment(part, name or kind, source)
    elif main in ("text", "multipart"):  # multipart without the parts it declares
        yield _content(part, source, place)
    else:
        source.note(f"{'inline images' if main == 'image' else f'{kind} parts'} left out", place)


def _richest(parts: Any, source: SourceFile, place: str) -> Iterator[str]:
    """Yield the texts of the last alternative that has a text, as mail programs do.

    Other alternatives are noted if they contain words that the richest one lacks.
    """
    texts: list[str] = []
    for part in parts:
        is_text = part.get_content_maintype() in ("text", "multipart")
        quiet = replace(source, notes={}) if is_text and part is not parts[-1] else source
        texts.append("\n\n".join(_displayed(part, quiet, place)))
    rich = next((text for text in reversed(texts) if text.strip()), "")
    yield rich
    words = [set(re.findall(r"\w+", text.lower())) for text in (rich, *texts)]
    for other in words[1:]:
        if len(other - words[0]) > len(other) / 5:
            source.note("alternative texts with other words left out", place)


def _content(part: Any, source: SourceFile, place: str) -> str:
    data = part.get_payload(decode=True) or b""
    is_html = part.get_content_subtype() == "html"
    label = _parsed(part.get_content_charset) or (label_in(data) if is_html else "")
    try:
        text = decode(data, source, label, place)
    except ReadError:
        source.note("texts of unknown encoding", place)
        text = data.decode("utf-8", "replace")
    return page_text(text, source, place or "the message") if is_html else text


def _attachment(part: Any, name: str, source: SourceFile) -> str:
    """Return the text of an attachment below its name. Unreadable attachments are noted."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, re.sub(r"[^\w.-]", "_", name)[-100:])
        path.write_bytes(part.get_payload(decode=True) or b"")
        try:
            if reader := format_of(path):
                records = reader.records(replace(source, path=path))
                texts = (record[0].replace("\f", "\n") for record in records)
                return "\n\n".join([f"# {name}", *texts])
            source.note("attachments without a reader", name)
        except ReadError as error:
            source.note(f"attachments not read ({error.kind})", name)
    return ""
