"""Readers of other frameworks, known by their methods, as readers of ours."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from ..document import Document, as_document
from .text import markdown_table

_FILE_FIELDS = frozenset(
    "source file_path file_name file_type file_size file_directory filename total_pages "
    "creation_date last_modified_date last_accessed_date last_modified".split()
)
"""What loaders say of the file itself, which is known better here."""


def as_reader(reader: object) -> Callable[[Path], Document | str | Iterable[Document]]:
    """Return a function from a path to what some reader reads there.

    Raises:
        TypeError: If it is no reader.
    """
    if isinstance(reader, type):
        if hasattr(reader, "lazy_load") or (
            hasattr(reader, "load") and not hasattr(reader, "load_data")
        ):
            return lambda path: _documents(_loaded(reader(str(path))))
        if hasattr(reader, "load_data") or hasattr(reader, "convert"):
            return as_reader(reader())
    if callable(load := getattr(reader, "load_data", None)):  # LlamaIndex
        return lambda path: _documents(_load_data(load, path))
    if callable(convert := getattr(reader, "convert", None)):  # Docling, MarkItDown
        return lambda path: _converted(convert(path))
    if callable(getattr(reader, "lazy_load", None)) or callable(getattr(reader, "load", None)):
        raise TypeError(
            f"{type(reader).__name__} loads the one file that it was made for: register its class "
            "instead, or a function that makes one: "
            f'register_reader("*.msg", lambda path: {type(reader).__name__}(str(path)))'
        )
    if callable(reader):
        call: Callable[[Any], Any] = reader
        return lambda path: _anything(_called(call, path))
    raise TypeError(
        "a reader is a function from a path to a text or documents, a LangChain loader class or a "
        f"LlamaIndex reader, not {reader!r:.80}"
    )


def _called(call: Callable[..., Any], path: Path) -> Any:
    """Call a function with the path, by the name that ``unstructured`` gives it if it has it."""
    try:
        parameters = [*inspect.signature(call).parameters]
    except (TypeError, ValueError):
        parameters = []
    return call(filename=str(path)) if parameters[:1] == ["filename"] else call(path)


def _load_data(load: Callable[..., Any], path: Path) -> Any:
    """Call the method of a LlamaIndex reader, some of which take many files at once."""
    parameters = inspect.signature(load).parameters
    if "input_files" in parameters:
        return load(input_files=[str(path)])
    for name in ("file", "file_path", "input_file"):
        if name in parameters:
            return load(**{name: path})
    return load(path)


def _loaded(loader: Any) -> Any:
    return loader.lazy_load() if hasattr(loader, "lazy_load") else loader.load()


def _anything(read: Any) -> Any:
    if hasattr(read, "lazy_load") or hasattr(read, "load"):
        return _documents(_loaded(read))
    if isinstance(read, Sequence) and not isinstance(read, str) and read:
        if all(hasattr(item, "category") and hasattr(item, "text") for item in read):
            return _elements(read)
        return _documents(read)
    return read


def _documents(read: Iterable[Any]) -> Document | list[Document]:
    """Return what a loader loaded, with numbers as ids; a single document gets the file's."""
    documents = [as_document(item) for item in read]
    numbered = [
        Document(
            document.text,
            {k: v for k, v in document.metadata.items() if k not in _FILE_FIELDS},
            id=str(number),
            search_text=document.search_text,
        )
        for number, document in enumerate(documents, start=1)
    ]
    return numbered[0] if len(numbered) == 1 else numbered


def _converted(result: Any) -> Document | str:
    """Return the Markdown of what a converter made."""
    document = getattr(result, "document", result)
    if callable(export := getattr(document, "export_to_markdown", None)):  # Docling
        return str(export())
    for name in ("markdown", "text_content"):  # MarkItDown
        if isinstance(text := getattr(document, name, None), str):
            return text
    raise TypeError(f"a converter returned {type(result).__name__}, of which no text is known")


class _TableCells(HTMLParser):
    """Collect the cells of an HTML table by rows."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th") and self.rows:
            self.rows[-1].append("")

    def handle_data(self, data: str) -> None:
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] += data


def _table(html: str) -> str:
    cells = _TableCells()
    cells.feed(html)
    return markdown_table(cells.rows)


_LEVELS = {"Title": "#", "Header": "##"}


def _elements(elements: Sequence[Any]) -> str:
    """Return the elements of ``unstructured`` as Markdown: titles, items, tables."""
    blocks, page = [], None
    for element in elements:
        metadata = getattr(element, "metadata", None)
        number = getattr(metadata, "page_number", None)
        if page is not None and number is not None and number != page:
            blocks.append("\f")
        page = number if number is not None else page
        category, text = str(element.category), str(element.text)
        html = getattr(metadata, "text_as_html", None)
        if category == "Table" and html:
            text = _table(html)
        elif category in _LEVELS:
            text = f"{_LEVELS[category]} {text}"
        elif category == "ListItem":
            text = f"- {text}"
        blocks.append(text)
    return "\n\n".join(blocks)
