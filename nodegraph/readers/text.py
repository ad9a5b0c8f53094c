"""Read text, JSON and CSV files."""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from ..document import Document
from ..errors import ReadError
from .decoding import decoded
from .front_matter import SUFFIXES, front_matter
from .source_files import SourceFile

PAGE_BREAK = "\f"
"""The separator between pages, slides, sheets, notebook cells and chapters."""


def join_pages(pages: Iterable[str]) -> str:
    """Join the texts of pages with page breaks between them.

    Example:
        >>> join_pages(["One.", "", "Three."])
        'One.\\n\\n\\x0c\\n\\n\\n\\n\\x0c\\n\\nThree.'
    """
    return f"\n\n{PAGE_BREAK}\n\n".join(page.strip().replace(PAGE_BREAK, "\n") for page in pages)


def markdown_table(rows: Iterable[Iterable[object]]) -> str:
    """Format rows as a Markdown table. The first row is used as the header.

    Example:
        >>> print(markdown_table([["a", "b"], [1, "x|y"]]))
        | a | b |
        | --- | --- |
        | 1 | x\\|y |
    """
    cells = [_cells(row) for row in rows]
    width = max([len(row) for row in cells], default=0)
    if not width:
        return ""
    lines = []
    for row in cells:
        row += [""] * (width - len(row))
        lines.append(f"| {' | '.join(row)} |")
    lines.insert(1, f"|{' --- |' * width}")
    return "\n".join(lines)


_BREAKS = re.compile(r"\s*[\r\n\f\v]+\s*")


def _cells(row: Iterable[object]) -> list[str]:
    """Format values as the cells of a Markdown table."""
    cells: list[str] = []
    for value in row:
        text = "" if value is None else str(value)
        if not text.isprintable():
            text = _BREAKS.sub(" ", text)
        cells.append(text.replace("|", "\\|").strip())
    return cells


def read_text(source: SourceFile) -> Document:
    """Read a text file. The front matter of Markdown files is stored as metadata.

    Raises:
        ReadError: If the file does not contain text.
    """
    text = decoded(source)
    if source.path.suffix.lower() in SUFFIXES:
        return source.document(text, front_matter(source, text))
    return source.document(text)


_LONGEST_FIELD = 200  # maximum number of characters in a string that is stored as metadata

_MAX_FIELDS = 100  # maximum number of fields in a JSON file that are stored as metadata


def read_json_lines(source: SourceFile) -> list[Document]:
    """Read a JSON Lines file, in which each line is an object and becomes a document.

    The text is in the field ``text``, ``content`` or ``page_content``. The document's id consists
    of the file's id and the field ``id`` or the line number. All other fields are stored as
    metadata, and are also appended to the text as lines of the form ``a.b: value``. A nested object
    such as ``{"a": {"b": 1}}`` is stored as the field ``a.b``. The fields inside ``metadata``, and
    lists of more than 50 numbers, are stored as metadata only. If an object has none of the text
    fields, its text consists of all its fields, and strings with more than 200 characters are not
    stored as metadata. If a line contains a string instead of an object, the string is the text.
    Any other value is kept as JSON. Blank lines are skipped. Lines that are not valid JSON are
    skipped and reported.

    Raises:
        ReadError: If no line is valid JSON.
    """
    documents: dict[str, Document] = {}
    problem = ""
    for number, line in enumerate(decoded(source).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            document = _from_record(json.loads(line), number)
        # RecursionError is raised if the nesting is too deep.
        except (ValueError, RecursionError) as error:
            problem = problem or f"line {number} is not JSON: {error}"
            source.note("lines that are not JSON, left out", f"line {number}")
            continue
        if document.id in documents:
            source.note("ids of earlier lines, numbered", f"line {number}")
            new_id = f"{document.id} (line {number})"
            document = Document(document.text, document.metadata, id=new_id)
        documents[document.id] = document
    if problem and not documents:
        raise ReadError(f"{source.path}, {problem}")
    return list(documents.values())


def _from_record(record: Any, number: int) -> Document:
    if not isinstance(record, dict):
        return Document(_scalar(record), id=str(number))
    whole = dict(record)
    record_id = record.pop("id", None)
    if record_id in (None, ""):
        record_id = number
    inner: dict[str, Any] = {}
    if isinstance(record.get("metadata"), dict | None):
        inner = record.pop("metadata", None) or {}
    names = ("text", "content", "page_content")
    name = next((name for name in names if isinstance(record.get(name), str)), None)
    if name is None:
        text = _lines(whole) or _scalar(whole)
        metadata = _short(_fields(record | inner))
    else:
        text = record.pop(name)
        shown = {name: value for name, value in record.items() if not _is_vector(value)}
        text = "\n\n".join([part for part in (text, _lines(shown)) if part])
        metadata = _fields(record | inner)
    return Document(text, metadata, id=str(record_id))


_LONGEST_VECTOR = 50  # maximum number of elements in a list of numbers that is included in the text


def _is_vector(value: Any) -> bool:
    """Return whether a JSON value is an embedding."""
    is_long = isinstance(value, list) and len(value) > _LONGEST_VECTOR
    return is_long and all(isinstance(number, int | float) for number in value)


def _values(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the scalars, and the lists without objects, in a JSON value with their dotted names.

    Example:
        >>> list(_values({"a": {"b": 1}, "c": [{"d": 2}, {"d": 3}], "e": [4, 5]}))
        [('a.b', 1), ('c.d', 2), ('c.d', 3), ('e', [4, 5])]
    """
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _values(inner, f"{name}.{key}" if name else key)
    elif isinstance(value, list) and any(isinstance(inner, dict) for inner in value):
        for inner in value:
            yield from _values(inner, name)
    else:
        yield name, value


def _lines(value: Any) -> str:
    """Format a JSON value as lines of the form ``a.b: value``. Empty values are left out."""
    lines = []
    for name, inner in _values(value):
        if inner in (None, "", [], {}):
            continue
        values = inner if isinstance(inner, list) else [inner]
        line = ", ".join([_scalar(value) for value in values])
        if name:
            line = f"{name}: {line}"
        lines.append(line)
    return "\n".join(lines)


def _scalar(value: Any) -> str:
    """Return a string unchanged, and format any other value as JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def _fields(value: Any) -> dict[str, Any]:
    """Convert a JSON value to metadata with dotted names.

    If a name is repeated, its values are listed.
    """
    values: dict[str, list[Any]] = {}
    for name, inner in _values(value):
        values.setdefault(name, []).append(inner)
    values.pop("", None)
    return {name: found[0] if len(found) == 1 else found for name, found in values.items()}


def _short(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return only the fields with short values."""
    return {name: value for name, value in fields.items() if len(str(value)) <= _LONGEST_FIELD}


def read_json(source: SourceFile) -> Document:
    """Convert a JSON file to lines of the form ``a.b: value``.

    If the file is small, its fields are also stored as metadata. JSON with comments is read as
    plain text.
    """
    text = decoded(source)
    try:
        value = json.loads(text)
        metadata = _fields(value)
        if len(metadata) > _MAX_FIELDS:
            metadata = {}
        return source.document(_lines(value) or text, _short(metadata))
    except (ValueError, RecursionError) as error:
        if isinstance(error, json.JSONDecodeError) and _is_cut_off(error):
            source.note("JSON cut off, read as text", f"line {error.lineno}")
        return source.document(text)


def _is_cut_off(error: json.JSONDecodeError) -> bool:
    """Return whether JSON was truncated, so that its last string, list or object is not closed."""
    is_at_end = error.pos >= len(error.doc.rstrip()) - 1
    return is_at_end or error.msg.startswith("Unterminated string")


# If several delimiters are equally good, the first is used, since commas also occur in numbers and
# texts.
_DELIMITERS = "\t;|,"


def read_csv(source: SourceFile) -> Document:
    """Convert a CSV file to a Markdown table. Lines above and below the table are kept as text.

    The delimiter can be a comma, a semicolon, a tab or a vertical bar. The delimiter for which most
    rows have the same number of cells is used, unless the first line sets it, as in ``sep=;``.
    """
    text = decoded(source)
    if "\0" in text:  # Python 3.10 cannot read NUL characters.
        source.note("NUL characters left out", count=text.count("\0"))
        text = text.replace("\0", "")
    first, _, rest = text.partition("\n")
    if match := re.fullmatch(r'"?sep=(.)"?', first.strip(" "), re.I):
        delimiter = match[1]
        text = f"\n{rest}"
    elif source.path.suffix.lower() == ".tsv":
        delimiter = "\t"
    else:
        head = text[:50_000]
        delimiter = max(_DELIMITERS, key=lambda d: _share_of_equal_rows(_csv_rows(head, d)))
    rows = [row for row in _csv_rows(text, delimiter, source) if "".join(row).strip()]
    start, end = _table_span(rows)
    above = "\n".join([_line(row) for row in rows[:start]])
    below = "\n".join([_line(row) for row in rows[end:]])
    parts = [above, markdown_table(rows[start:end]), below]
    return source.document("\n\n".join([part for part in parts if part]))


def _line(row: Iterable[str]) -> str:
    """Format a row outside the table as text."""
    return " ".join([cell for cell in _cells(row) if cell])


def _table_span(rows: Sequence[Sequence[str]]) -> tuple[int, int]:
    """Return the index of the first row of the table, and of the first row after the table."""
    width = _usual_width(rows)
    start = 0
    end = len(rows)
    if width > 1:
        while start < end and _is_outside(rows[start], width, above=True):
            start += 1
        while start < end and _is_outside(rows[end - 1], width):
            end -= 1
    return start, end


def _csv_rows(text: str, delimiter: str, source: SourceFile | None = None) -> list[list[str]]:
    """Parse CSV and return the rows.

    In a line with an unclosed quote, quotes are treated as text.
    """
    import csv

    csv.field_size_limit(10_000_000)
    lines = io.StringIO(text).readlines()
    rows: list[list[str]] = []
    at = 0  # index of the first line that has not been parsed yet
    while at < len(lines):
        start = at
        reader = csv.reader(islice(lines, at, None), delimiter=delimiter, strict=True)
        try:
            for row in reader:
                rows.append(row)
                at = start + reader.line_num
        except csv.Error:
            is_open = start + reader.line_num > at + 1 or lines[at].count('"') % 2 == 1
            if is_open and source:
                source.note("unclosed quotes, read as characters", f"line {at + 1}")
            if is_open:
                rows += csv.reader([lines[at]], delimiter=delimiter, quoting=csv.QUOTE_NONE)
            else:
                rows += csv.reader([lines[at]], delimiter=delimiter)
            at += 1
    return rows


def _usual_width(rows: Iterable[Sequence[str]]) -> int:
    """Return the most frequent number of cells in a row. In case of a tie, return the largest."""
    widths = Counter([len(row) for row in rows])
    return max(widths, key=lambda width: (widths[width], width), default=0)


def _share_of_equal_rows(rows: Sequence[Sequence[str]]) -> float:
    """Return the proportion of rows with the most frequent number of cells.

    The result is 0 if most rows consist of a single cell.
    """
    rows = [row for row in rows if row]
    width = _usual_width(rows)
    if width < 2:
        return 0
    return sum(len(row) == width for row in rows) / len(rows)


def _is_outside(row: Sequence[str], width: int, *, above: bool = False) -> bool:
    """Return whether a row with few cells is a title above the table or a remark below it."""
    filled = sum(bool(cell.strip()) for cell in row)
    if len(row) < width:
        return filled <= width / 2
    return above and filled == 1
