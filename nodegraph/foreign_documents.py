"""LangChain's and LlamaIndex's documents and nodes, recognized by their attributes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from .document import Document
from .hashing import digest, metadata_digest
from .search_text import SearchText

HEADINGS_ONLY = SearchText("headings")
"""The search text of LangChain documents: only the headings that nodekin's splitters add."""

ALL_METADATA = SearchText(
    None, field_template="{key}: {value}", list_separator=None, template="{metadata}\n\n{text}"
)
"""The default search text of LlamaIndex nodes."""

_OUR_PLACES = {"metadata_str": "metadata", "content": "text"}

_THEIR_PLACES = {ours: theirs for theirs, ours in _OUR_PLACES.items()}

_PLACE = re.compile(r"(?<!\{)((?:\{\{)*\{)(\w+)(?=[}!:])")


class ForeignText(NamedTuple):
    """The parts of a document or node from another library.

    Attributes:
        text: The text.
        metadata: The metadata.
        id: The id. If None, the library does not provide one.
        search_text: The metadata that the library embeds with the text.
    """

    text: str
    metadata: Any
    id: str | None
    search_text: SearchText | None


def read_foreign(item: object) -> ForeignText | None:
    """Return the parts of a LangChain or LlamaIndex object, or None for any other object."""
    metadata = getattr(item, "metadata", {})
    text = getattr(item, "page_content", None)
    if isinstance(text, str):  # LangChain
        return ForeignText(text, metadata, getattr(item, "id", None) or None, HEADINGS_ONLY)
    content = getattr(item, "get_content", None)
    if callable(content):  # LlamaIndex
        return ForeignText(content(), metadata, getattr(item, "node_id", None), _embedded(item))
    return None


def _embedded(item: object) -> SearchText | None:
    """Return the text that LlamaIndex embeds for a node (``MetadataMode.EMBED``).

    It contains all metadata except ``excluded_embed_metadata_keys``, formatted with the node's
    templates.
    """
    field_template = getattr(item, "metadata_template", None)
    if not isinstance(field_template, str):
        return None
    template = getattr(item, "text_template", their_template(ALL_METADATA.template))
    return SearchText(
        None,
        excluded=getattr(item, "excluded_embed_metadata_keys", ()),
        field_template=field_template,
        separator=getattr(item, "metadata_separator", "\n"),
        list_separator=None,
        template=_renamed(template, _OUR_PLACES),
        excluded_llm=getattr(item, "excluded_llm_metadata_keys", ()),
    )


def their_template(template: str) -> str:
    """Convert a ``SearchText.template`` to a LlamaIndex template."""
    return _renamed(template, _THEIR_PLACES)


def _renamed(template: str, names: Mapping[str, str]) -> str:
    """Rename the placeholders in a format string. Doubled braces are not placeholders."""
    return _PLACE.sub(lambda place: place[1] + names.get(place[2], place[2]), template)


def as_document(item: object) -> Document:
    """Convert a text, or a LangChain or LlamaIndex document, to a ``Document``.

    Objects of the frameworks are recognized by their attributes.

    Raises:
        TypeError: If the item has an unsupported type.
        ValueError: If a text is the path of an existing file or folder.
    """
    if isinstance(item, Document):
        return item
    if isinstance(item, str):
        if _is_path(item):
            kind = "folder" if os.path.isdir(item) else "file"
            raise ValueError(
                f"{item!r:.200} is an existing {kind}; pass Path({item!r:.200}) to read it, or "
                f"Document({item!r:.200}) to add the text"
            )
        return Document(item)
    foreign = read_foreign(item) if isinstance(getattr(item, "metadata", None), Mapping) else None
    if foreign is not None:
        return Document(
            foreign.text,
            foreign.metadata,
            id=foreign.id,
            search_text=foreign.search_text,
        )
    raise TypeError(
        "a document must be a text (str), a pathlib.Path, a nodekin Document, or a LangChain or "
        f"LlamaIndex document, got {type(item).__name__} {item!r:.80}"
    )


_RANDOM = re.compile(
    "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
)  # UUID 4


def stable_document(item: object) -> Document:
    """Convert an item to a ``Document``. If a file's document has a random id, replace the id.

    LlamaIndex's ``SimpleDirectoryReader`` sets ``file_path`` and, without ``filename_as_id=True``,
    a new id in each run. A folder that is read twice would then be duplicated. The replacement is a
    hash of the path, text and metadata. Other documents and nodekin's ``Document`` objects are
    unchanged.
    """
    document = as_document(item)
    path = document.metadata.get("file_path")
    if document is item or not isinstance(path, str) or not _RANDOM.fullmatch(document.id):
        return document
    metadata = metadata_digest(document.metadata)
    return replace(document, id=digest("file", path, document.text, metadata))


_LIKE_A_PATH = re.compile(r"[/\\]|\.\w{1,8}$")


def _is_path(text: str) -> bool:
    """Return whether a text is the path of an existing file or folder."""
    is_line = len(text) <= 400 and text.isprintable()
    return is_line and _LIKE_A_PATH.search(text) is not None and os.path.exists(text)


def flatten(items: object) -> Iterator[object]:
    """Yield a single item, the items of an iterable, or the documents of a loader."""
    single = isinstance(items, str | bytes | Path | Mapping | Document)
    if callable(load := getattr(items, "lazy_load", None)):  # LangChain
        yield from load()
    elif single or hasattr(items, "metadata") or not isinstance(items, Iterable):
        yield items
    else:
        yield from items
