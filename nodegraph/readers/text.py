"""Read text files in any encoding, JSON and CSV."""

from __future__ import annotations

import codecs
import contextlib
import io
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ..document import Document
from ..errors import ReadError
from ..locations import Layout, TextBox
from .source_files import SourceFile

PAGE_BREAK = "\f"
"""The separator of pages, slides, sheets, notebook cells and chapters."""


def join_pages(pages: Iterable[str]) -> str:
    """Join pages with page breaks.

    Example:
        >>> join_pages(["One.", "", "Three."])
        'One.\\n\\n\\x0c\\n\\n\\n\\n\\x0c\\n\\nThree.'
    """
    return f"\n\n{PAGE_BREAK}\n\n".join(page.strip().replace(PAGE_BREAK, "\n") for page in pages)


def markdown_table(rows: Iterable[Iterable[object]]) -> str:
    """Return rows as a Markdown table. The first row is the header.

    Example:
        >>> print(markdown_table([["a", "b"], [1, "x|y"]]))
        | a | b |
        | --- | --- |
        | 1 | x\\|y |
    """
    cells = [[_cell(value) for value in row] for row in rows]
    width = max(map(len, cells), default=0)
    lines = [f"| {' | '.join([*row, *[''] * (width - len(row))])} |" for row in cells]
    return "\n".join([*lines[:1], f"|{' --- |' * width}", *lines[1:]]) if width else ""


BAR = re.compile(r"(?<!\\)\|")


_TABLE_LINE = re.compile(r"(?m)^\|.*$")


def sheet_layout(text: str, sheets: Sequence[tuple[int, Sequence[int]]]) -> Layout:
    """Return the layout of a text with one Markdown table per page.

    Args:
        text: The text.
        sheets: The first column and the row numbers of each sheet, from 0.
    """
    boxes: list[TextBox] = []
    at = 0
    for page, (left, rows) in zip(text.split(PAGE_BREAK), sheets, strict=True):
        lines = list(_TABLE_LINE.finditer(page))
        del lines[1:2]  # the line below the header is not a row
        for row, line in zip(rows, lines, strict=True):
            right = left + len(BAR.findall(line[0])) - 1
            boxes.append(TextBox(at + line.start(), at + line.end(), left, row, right, row + 1))
        at += len(page) + 1
    return Layout(boxes, in_cells=True)


_BREAKS = re.compile(r"\s*[\r\n\f\v]+\s*")


def _cell(value: object) -> str:
    text = "" if value is None else str(value)
    return _BREAKS.sub(" ", text).replace("|", "\\|").strip()


_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)

_CONTROL = bytes([*range(9), *range(14, 27), *range(28, 32), 127])

_DECLARED = re.compile(
    rb"""<\?xml[^>]{0,80}?\bencoding=["']([\w.:-]+)|<meta[^>]{0,200}?\bcharset=["']?([\w.:-]+)""",
    re.I,
)

_CANDIDATES = (
    *("gb18030", "big5", "euc_jp", "shift_jis", "euc_kr", "cp1252", "cp1250", "cp1251"),
    *("koi8_r", "iso8859_7", "cp1255", "cp1256", "latin_1"),
)


def read_text(source: SourceFile) -> Document:
    r"""Read a text file. Line ends become ``\n``.

    Encoding: byte order mark, then UTF-8, then ``options.encoding``, then detection. The
    metadata contains an encoding other than UTF-8.

    Raises:
        ReadError: If the file is not text.
    """
    text, encoding = decoded(source)
    return source.document(text, {} if encoding == "utf-8" else {"encoding": encoding})


def decoded(source: SourceFile, *, declared: bool = False) -> tuple[str, str]:
    """Return the text of a file, and the name of its encoding.

    Args:
        source: The file.
        declared: Whether the file may declare its encoding, like XML and HTML.

    Raises:
        ReadError: If the file is not text.
    """
    return decode(source.path.read_bytes(), source, declared=declared)


def decode(data: bytes, source: SourceFile, *, declared: bool = False) -> tuple[str, str]:
    """Decode the bytes of a file. Return the text and the name of the encoding."""
    text, encoding = _decoded(data, source, declared)
    controls = len(data) - len(data.translate(None, _CONTROL))
    if encoding.startswith(("utf-16", "utf-32")):  # half of the bytes are 0
        controls = len(text) - len(text.translate(dict.fromkeys(_CONTROL)))
    if controls > len(text) // 1000 + ("\0" not in text):
        raise ReadError(
            f"{source.path} is not text: it has {controls:,} control characters among "
            f"{len(text):,}; remove it, or register a reader for it",
            "not text",
            skippable=True,
        )
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text, encoding


def _decoded(data: bytes, source: SourceFile, declared: bool) -> tuple[str, str]:
    for bom, name in _BYTE_ORDER_MARKS:
        if data.startswith(bom):
            try:
                return data.decode(name), name.removesuffix("-sig")
            except UnicodeDecodeError as error:
                if name == "utf-8-sig" or source.options.encoding is None:
                    raise _not_in(
                        source, "UTF-8" if name == "utf-8-sig" else name, data, error
                    ) from error
    if declared and (match := _DECLARED.search(data[:4000])):
        name = (match[1] or match[2]).decode("ascii").lower()
        name = "gb18030" if name in ("gb2312", "gbk") else name
        try:
            return data.decode(name), name
        except (UnicodeDecodeError, LookupError):
            pass  # the declared encoding is wrong
    try:
        return data.decode("utf-8"), "utf-8"
    except UnicodeDecodeError as error:
        encoding = source.options.encoding or detected(data)
        if encoding is None:
            raise _not_in(source, "UTF-8", data, error) from error
        try:
            return data.decode(encoding), encoding
        except UnicodeDecodeError as other:
            raise _not_in(source, encoding, data, other) from other


def detected(data: bytes) -> str | None:
    """Detect the encoding of bytes that are not UTF-8. Return None for binary data.

    Uses ``charset-normalizer``. Short texts that consist of common characters in GB18030 are
    decoded as GB18030.

    Example:
        >>> detected("绿茶和红茶".encode("gb18030")), detected(bytes(range(256)))
        ('gb18030', None)
    """
    if b"\0" in data[:4096]:
        return None
    from charset_normalizer import from_bytes

    start = max(0, next((i for i, byte in enumerate(data) if byte > 127), 0) - 500)
    sample = data[start : start + 20_000]
    best = from_bytes(sample, cp_isolation=list(_CANDIDATES)).best()
    name = None if best is None else str(best.encoding)
    high = sum(byte > 127 for byte in sample)
    if name not in ("gb18030", "big5") and high < 120 and _common_share(sample, high) > 0.8:
        name = "gb18030"
    if high < 4 and len(sample) < 40:
        return None  # too short to detect
    if name == "cp1250" and _is_western(sample):
        name = "cp1252"
    if name is not None and _decodes(data, name):
        return name
    return next((n for n in ("gb18030", "big5") if high > 200 and _decodes(data, n)), None)


def _is_western(sample: bytes) -> bool:
    """Return whether all bytes above 127 are letters and punctuation of cp1252."""
    text = sample.decode("cp1252", "replace")
    return all(c.isalpha() or c in "‘’“”–—…«»°§" for c in text if c > "\x7f")


def _common_share(sample: bytes, high: int) -> float:
    """Return the share of the bytes above 127 that are common characters of GB2312."""
    try:
        text = sample.decode("gb18030")
    except UnicodeDecodeError:
        return 0
    common = 0
    for character in text:
        if character > "\x7f":
            pair = character.encode("gb18030")
            common += len(pair) == 2 and (0xB0 <= pair[0] <= 0xD7 or pair[0] in (0xA1, 0xA3))
    return 2 * common / high if high else 0


def _decodes(data: bytes, name: str) -> bool:
    try:
        data.decode(name)
    except UnicodeDecodeError:
        return False
    return True


def _not_in(source: SourceFile, name: str, data: bytes, error: UnicodeDecodeError) -> ReadError:
    offset = error.start + len(data) - len(error.object)  # without the byte order mark
    return ReadError(
        f"{source.path} is not {name}: byte {data[offset]:#04x} at offset {offset}; convert it, "
        f"set its encoding: ReadOptions(encoding='gb18030'), or register a reader: "
        f'@register_reader("{source.path.suffix}")',
        "not text",
    )


_LONGEST_FIELD = 200  # characters of a string that is stored as metadata


def read_json_lines(source: SourceFile) -> list[Document]:
    """Read one document per line: an object with ``text``, ``content`` or ``page_content``.

    The id is the file's id with ``id`` or the line number. ``metadata`` and all other fields
    become metadata. If an object has no such text field, its text consists of all strings with
    their field names, and fields of up to 200 characters are also stored as metadata. A value
    that is not an object is stored as JSON. Blank lines are skipped.

    Raises:
        ReadError: If a line is not JSON, or two lines have one id.
    """
    path = source.path
    documents: dict[str, Document] = {}
    for number, line in enumerate(decoded(source)[0].split("\n"), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:  # RecursionError: deep nesting
            raise ReadError(f"{path}, line {number} is not JSON: {error}") from error
        document = _from_record(record, number)
        if document.id in documents:
            raise ReadError(f"{path}, line {number}: duplicate id {document.id!r}")
        documents[document.id] = document
    return list(documents.values())


def _from_record(record: Any, number: int) -> Document:
    if not isinstance(record, dict):
        text = record if isinstance(record, str) else json.dumps(record, ensure_ascii=False)
        return Document(text, id=str(number))
    metadata = {name: value for name, value in record.items() if name != "id"}
    names = ("text", "content", "page_content")
    name = next((name for name in names if isinstance(record.get(name), str)), None)
    if name is not None:
        text = metadata.pop(name)
    else:
        strings = {name: [*_strings(value)] for name, value in metadata.items()}
        strings = {name: values for name, values in strings.items() if values}
        text = "\n".join(f"{name}: {value}" for name in strings for value in strings[name])
        text = text or json.dumps(record, ensure_ascii=False)
        for name, values in strings.items():
            if sum(map(len, values)) > _LONGEST_FIELD:
                del metadata[name]
    inner = metadata.get("metadata")
    if inner is None or isinstance(inner, dict):
        metadata.update(metadata.pop("metadata", None) or {})
    record_id = record.get("id")
    return Document(text, metadata, id=str(number if record_id in (None, "") else record_id))


def _strings(value: Any) -> Iterator[str]:
    """Yield the strings of a JSON value, recursively."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _strings(inner)


def read_json(source: SourceFile) -> Document:
    """Read a JSON file as text. A file with escapes (``\\u8336``) or with one line is formatted."""
    text, _ = decoded(source)
    if "\\u" in text or "\n" not in text.strip():
        # JSON with comments is not changed.
        with contextlib.suppress(ValueError, RecursionError):
            text = json.dumps(json.loads(text), ensure_ascii=False, indent=2)
    return source.document(text)


def read_csv(source: SourceFile) -> Document:
    """Read a CSV file as a Markdown table. Delimiters: comma, semicolon, tab or bar."""
    text, encoding = decoded(source)
    metadata = {} if encoding == "utf-8" else {"encoding": encoding}
    if source.path.suffix.lower() == ".tsv":
        delimiter = "\t"
    else:
        lines = [line for line in text.split("\n", 20)[:20] if line.strip()]
        delimiter = max(",;\t|", key=lambda d: min((n.count(d) for n in lines), default=0))
    import csv

    csv.field_size_limit(10_000_000)
    read = enumerate(csv.reader(io.StringIO(text), delimiter=delimiter))
    rows = [(number, row) for number, row in read if any(row)]
    table = markdown_table(row for _, row in rows)
    return source.document(
        table, metadata, sheet_layout(table, [(0, [number for number, _ in rows])])
    )


def is_text(path: Path) -> bool:
    """Return whether the first bytes of a file are text."""
    with path.open("rb") as file:
        head = file.read(4096)
    return any(head.startswith(bom) for bom, _ in _BYTE_ORDER_MARKS) or b"\0" not in head
