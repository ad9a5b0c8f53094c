"""Read e-mail messages and mailboxes."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...nodegraph.document import Document
from ...nodegraph.errors import ReadError
from ...nodegraph.readers.decoding import decode, label_in
from ...nodegraph.readers.formats import format_of
from ...nodegraph.readers.source_files import MESSAGES_WITHOUT_TEXT, SourceFile
from .html import page_text


def read_message(source: SourceFile) -> Document:
    """Read the displayed text and the attachments of a message. The subject becomes the title."""
    from email import message_from_binary_file

    with source.path.open("rb") as file:
        message = _repaired(message_from_binary_file(file))
    return _mail_document(message, source, None)


def read_mailbox(source: SourceFile) -> Iterator[Document]:
    """Read each message of a mailbox as a document, whose id is the number of the message."""
    import mailbox
    from email import message_from_bytes

    box = mailbox.mbox(source.path, create=False)
    try:
        for number, key in enumerate(box.keys(), start=1):
            message = _repaired(message_from_bytes(box.get_bytes(key)))
            yield _mail_document(message, source, str(number))
    finally:
        box.close()


def _mail_document(message: Any, source: SourceFile, number: str | None) -> Document:
    from email.utils import parsedate_to_datetime

    place = f"message {number}" if number else ""
    _decode_raw_headers(message, source, place)
    fields = {"title": "subject", "from": "from", "to": "to", "cc": "cc", "date": "date"}
    values: dict[str, Any] = {
        name: _header(message, field, source, place) for name, field in fields.items()
    }
    with suppress(ValueError, TypeError):
        values["date"] = parsedate_to_datetime(values["date"]).isoformat()
    quiet = replace(source, notes={})  # problems with names are recorded by `_displayed`
    names = (_file_name(part, quiet, place) for part in message.walk())
    values["attachments"] = [name for name in names if name]
    metadata = {name: value for name, value in values.items() if value}
    blocks = [block.strip() for block in _displayed(message, source, place)]
    text = "\n\n".join(block for block in blocks if block)
    _note_defects(message, source, place)
    if not text:
        source.note(MESSAGES_WITHOUT_TEXT, place)
    return Document(text, metadata, id=number)


_BOUNDARY = re.compile(r"^--(?P<boundary>\S.{0,200}?)[ \t\r]*\n(?:content-|\s*$)", re.I | re.M)
"""The boundary line that starts a part of a message."""


def _repaired(message: Any) -> Any:
    """Correct a message that declares a wrong boundary between its parts."""
    from email import message_from_bytes
    from email.errors import NoBoundaryInMultipartDefect, StartBoundaryNotFoundDefect

    kinds = (NoBoundaryInMultipartDefect, StartBoundaryNotFoundDefect)
    if not any(isinstance(defect, kinds) for defect in message.defects):
        return message
    payload = message.get_payload()
    if not isinstance(payload, str):
        return message
    match = _BOUNDARY.search(payload)
    if match is None:
        return message
    message.set_param("boundary", match["boundary"])
    repaired = message_from_bytes(message.as_bytes())
    repaired.defects = [*message.defects, *repaired.defects]
    return repaired


_DEFECTS = {
    "NoBoundaryInMultipartDefect": "parts without their boundary",
    "StartBoundaryNotFoundDefect": "parts without their boundary",
    "MultipartInvariantViolationDefect": "parts without their boundary",
    "CloseBoundaryNotFoundDefect": "parts cut off",
    "InvalidBase64PaddingDefect": "parts with invalid base64",
    "InvalidBase64CharactersDefect": "parts with invalid base64",
    "InvalidBase64LengthDefect": "parts with invalid base64",
}
"""The categories of notes for the defects that the mail parser detects."""


def _note_defects(message: Any, source: SourceFile, place: str) -> None:
    """Record a note for each type of defect in each part of a message."""
    for part in message.walk():
        names = {type(defect).__name__ for defect in part.defects}
        for kind in sorted({_DEFECTS[name] for name in names if name in _DEFECTS}):
            source.note(kind, place or part.get_content_type())


def _decode_raw_headers(message: Any, source: SourceFile, place: str) -> None:
    """Decode headers that contain raw non-ASCII bytes instead of encoded words."""
    for part in message.walk():
        # if a name occurs more than once, the first header is used
        for name, value in reversed([*part.raw_items()]):
            if not value.isascii():
                data = value.encode("utf-8", "surrogateescape")
                part.replace_header(name, _text(data, source, "", place or name))


def _text(data: bytes, source: SourceFile, label: str, place: str) -> str:
    try:
        return decode(data, source, label, place)
    except ReadError:
        source.note("texts of unknown encoding", place)
        return data.decode("utf-8", "replace")


_ENCODED_WORDS = re.compile(r"=\?[^?]*\?[bq]\?[^?]*\?=(?: ?=\?[^?]*\?[bq]\?[^?]*\?=)*", re.I)


def _header(message: Any, name: str, source: SourceFile, place: str) -> str:
    return _decoded_words(str(message.get(name, "")), source, place or name)


def _decoded_words(text: str, source: SourceFile, place: str) -> str:
    """Decode the encoded words in a header, such as ``=?gb2312?B?...?=``."""
    from email.errors import HeaderParseError
    from email.header import decode_header

    def decoded(words: re.Match[str]) -> str:
        with suppress(HeaderParseError):  # invalid base64 text is kept
            return "".join(
                _text(data, source, (label or "").partition("*")[0], place)
                for data, label in decode_header(words[0])
            )
        return words[0]

    return " ".join(_ENCODED_WORDS.sub(decoded, " ".join(text.split())).split())


def _file_name(part: Any, source: SourceFile, place: str) -> str:
    place = place or "file name"
    name = _parsed(lambda: part.get_param("filename", header="content-disposition"))
    name = name or _parsed(lambda: part.get_param("name"))
    if isinstance(name, str):
        return _decoded_words(name, source, place)
    label, _, text = name  # the format that RFC 2231 defines
    if any(character > "\xff" for character in text):
        return str(text)  # the name is already decoded
    return _text(text.encode("latin-1"), source, label or "", place)


def _parsed(read: Callable[[], Any]) -> Any:
    """Return a header parameter, or an empty string if the parser raises any error."""
    try:
        return read() or ""
    except Exception:
        return ""


def _displayed(part: Any, source: SourceFile, place: str) -> Iterator[str]:
    """Yield the texts that a mail program displays for a part, including its attachments."""
    kind = part.get_content_type()
    main = part.get_content_maintype()
    name = _file_name(part, source, place)
    is_attached = _parsed(part.get_content_disposition) == "attachment"
    if kind == "multipart/alternative" and part.is_multipart():
        yield from _richest(part.get_payload(), source, place)
    elif part.is_multipart():
        for inner in part.get_payload():
            if kind == "message/rfc822":  # a forwarded message
                yield _fields(inner, _MAIN_FIELDS, source, place)
            elif main == "message":  # a report
                yield _fields(inner, inner.keys(), source, place)
            yield from _displayed(inner, source, place)
    elif is_attached or (name and kind not in ("text/plain", "text/html")):
        yield _attachment(part, name or kind, source)
    # this may be a multipart message that lacks the declared parts
    elif main in ("text", "multipart"):
        yield _content(part, source, place)
    elif main == "image":
        source.note("inline images left out", place or name or kind)
    else:
        source.note(f"{kind} parts left out", place or name or kind)


_MAIN_FIELDS = ("Subject", "From", "To", "Date")


def _fields(message: Any, names: Iterable[str], source: SourceFile, place: str) -> str:
    """Format the given header fields of a message as lines."""
    fields = {name: _header(message, name, source, place) for name in names}
    return "\n".join(f"{name}: {value}" for name, value in fields.items() if value)


def _richness(part: Any, text: str) -> int:
    """Return the rank of an alternative version of a message. Higher ranks have more formatting.

    Empty texts have the lowest rank.
    """
    if not text.strip():
        return -1
    if part.get_content_type() == "text/html" or part.is_multipart():
        return 2
    return int(part.get_content_type() == "text/plain")


def _richest(parts: Any, source: SourceFile, place: str) -> Iterator[str]:
    """Yield the richest of several alternative versions of a text.

    HTML is preferred to plain text, which is preferred to all other types. The text of an
    invitation is followed by the data of its event. A note is recorded for other alternatives if
    they contain words that the chosen version does not contain.
    """
    texts: list[tuple[int, str, str]] = []
    for part in parts:
        text = "\n\n".join(_displayed(part, source, place))
        texts.append((_richness(part, text), part.get_content_type(), text))
    # If several alternatives have the same rank, the last one is the richest.
    _, _, rich = max(reversed(texts), key=lambda entry: entry[0], default=(0, "", ""))
    yield rich
    shown = set(re.findall(r"\w+", rich.lower()))
    for _, kind, text in texts:
        if kind == "text/calendar" and text is not rich:
            event = re.sub(r"\n[ \t]", "", text).partition("BEGIN:VEVENT")[2]
            yield "\n".join(": ".join(field) for field in _EVENT.findall(event))
        words = set(re.findall(r"\w+", text.lower()))
        if len(words - shown) > len(words) / 5:
            source.note("alternative texts with other words left out", place or kind)


_EVENT = re.compile(r"^(SUMMARY|LOCATION|DTSTART|DTEND)\b[^:\n]*:(.+)", re.M)


def _content(part: Any, source: SourceFile, place: str) -> str:
    data = part.get_payload(decode=True) or b""
    label = _parsed(part.get_content_charset)
    if part.get_content_subtype() != "html":
        return _text(data, source, label, place or part.get_content_type())
    text = _text(data, source, label or label_in(data), place or part.get_content_type())
    return page_text(text, source, place or "the message")


def _attachment(part: Any, name: str, source: SourceFile) -> str:
    """Return the name and the text of an attachment.

    If the attachment cannot be read, a note is recorded.
    """
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
