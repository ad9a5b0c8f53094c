"""Convert documents and nodes of LangChain and LlamaIndex.

The objects are recognized by their attributes, without importing the frameworks.
"""

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
"""The search text of LangChain documents. It adds only the headings set by nodekin's splitters."""

ALL_METADATA = SearchText(
    None, field_template="{key}: {value}", list_separator=None, template="{metadata}\n\n{text}"
)
"""The default search text of LlamaIndex nodes."""

_OUR_PLACES = {"metadata_str": "metadata", "content": "text"}

_THEIR_PLACES = {ours: theirs for theirs, ours in _OUR_PLACES.items()}

_PLACE = re.compile(r"(?<!\{)((?:\{\{)*\{)(\w+)(?=[}!:])")


class ForeignText(NamedTuple):
    """The content of a document or node of another library.

    Attributes:
        text: The text of the document.
        metadata: The metadata of the document.
        id: The id of the document, or None if the library does not set one.
        search_text: Selects the metadata that the library embeds together with the text.
    """

    text: str
    metadata: Any
    id: str | None
    search_text: SearchText | None


def read_foreign(item: object) -> ForeignText | None:
    """Return the content of a LangChain or LlamaIndex object, or None for any other object."""
    metadata = getattr(item, "metadata", {})
    text = getattr(item, "page_content", None)
    if isinstance(text, str):  # a LangChain document
        return ForeignText(text, metadata, getattr(item, "id", None) or None, HEADINGS_ONLY)
    content = getattr(item, "get_content", None)
    if callable(content):  # a LlamaIndex node
        return ForeignText(content(), metadata, getattr(item, "node_id", None), _embedded(item))
    return None


def _embedded(item: object) -> SearchText | None:
    """Describe the text that LlamaIndex embeds for a node (``MetadataMode.EMBED``).

    The text contains all metadata except ``excluded_embed_metadata_keys``, and is formatted with
    the node's templates.
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
    """Convert the ``template`` of a ``SearchText`` to a LlamaIndex template."""
    return _renamed(template, _THEIR_PLACES)


def _renamed(template: str, names: Mapping[str, str]) -> str:
    """Rename the placeholders in a format string. Escaped (doubled) braces are left unchanged."""
    return _PLACE.sub(lambda place: place[1] + names.get(place[2], place[2]), template)


def as_document(item: object) -> Document:
    """Convert a text, or a LangChain or LlamaIndex document, to a ``Document``.

    Framework objects are recognized by their attributes, without importing the framework.

    Raises:
        TypeError: If the type of the item is not supported.
        ValueError: If the item is a string that is the path of an existing file or folder.
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
    """Convert an item to a ``Document``. The random id of a document read from a file is replaced.

    LlamaIndex's ``SimpleDirectoryReader`` sets ``file_path`` and, without ``filename_as_id=True``,
    a new id in each run. If a folder was read twice, all its documents would be duplicated. The new
    id is a hash of the path, the text and the metadata. Other documents keep their ids.
    """
    document = as_document(item)
    path = document.metadata.get("file_path")
    if document is item or not isinstance(path, str) or not _RANDOM.fullmatch(document.id):
        return document
    metadata = metadata_digest(document.metadata)
    return replace(document, id=digest("file", path, document.text, metadata))


_LIKE_A_PATH = re.compile(r"[/\\]|\.\w{1,8}$")


def _is_path(text: str) -> bool:
    """Return whether a string is the path of an existing file or folder."""
    is_line = len(text) <= 400 and text.isprintable()
    return is_line and _LIKE_A_PATH.search(text) is not None and os.path.exists(text)


def flatten(items: object) -> Iterator[object]:
    """Yield the documents of a loader, the items of an iterable, or a single item."""
    single = isinstance(items, str | bytes | Path | Mapping | Document)
    if callable(load := getattr(items, "lazy_load", None)):  # a LangChain loader
        yield from load()
    elif single or hasattr(items, "metadata") or not isinstance(items, Iterable):
        yield items
    else:
        yield from items
