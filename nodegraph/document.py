"""A source text with metadata and an id."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

from .hashing import digest, metadata_digest
from .search_text import SearchText, as_stored_search_text


@dataclass(frozen=True, slots=True)
class Document:
    """A source text with metadata and an id.

    The default id is a hash of text and metadata, so identical documents have one id on every
    machine.

    Args:
        text: The text.
        metadata: The metadata by field name.
        id: The id. Defaults to a hash.
        search_text: The metadata to index and embed with the text, for the document and its derived
            nodes: field names, a ``SearchText``, or False. Settings of the group and the graph have
            priority. None: ``title``, ``headings`` and ``table_head``.
        layout: The packed positions of the text's parts in the file, read by ``Node.locations``.

    Raises:
        TypeError: If the text is not a string, the metadata is not a mapping with string keys, or
            the search text cannot be stored.
        ValueError: If the id is not a non-empty string, or metadata has more than 100 levels.

    Example:
        >>> Document("Tea is a drink.", {"topic": "tea"}, id="tea").id
        'tea'
    """

    # The names of predefined groups, which LazyLLM's programs write as ``Document.CoarseChunk``.
    CoarseChunk: ClassVar[str] = "CoarseChunk"
    MediumChunk: ClassVar[str] = "MediumChunk"
    FineChunk: ClassVar[str] = "FineChunk"

    text: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    id: str = ""
    search_text: SearchText | None = field(default=None, repr=False)
    layout: bytes | None = field(default=None, repr=False, compare=False)

    def __init__(
        self,
        text: str,
        metadata: Mapping[str, Any] | None = None,
        *,
        id: str | None = None,
        search_text: SearchText | str | Sequence[str] | Literal[False] | None = None,
        layout: bytes | None = None,
    ) -> None:
        if not isinstance(text, str):
            raise TypeError(f"text must be a str, got {type(text).__name__}")
        if metadata is not None and not (
            isinstance(metadata, Mapping) and all(isinstance(key, str) for key in metadata)
        ):
            raise TypeError(f"metadata must be a mapping with str keys, got {metadata!r:.80}")
        if id is not None and (not isinstance(id, str) or not id):
            raise ValueError(f"id must be a non-empty str, got {id!r}")
        own = dict(metadata or {})
        for key, value in own.items():
            _check_depth(key, value)
        if id is None:
            id = digest(text, metadata_digest(own)) if own else digest(text)
        values: dict[str, Any] = {"text": text, "metadata": own, "id": id, "layout": layout}
        values["search_text"] = as_stored_search_text(search_text)
        for name, value in values.items():
            object.__setattr__(self, name, value)


_MAX_DEPTH = 100  # levels of lists and mappings in metadata

_PLAIN = (str, int, float, bool, type(None))


def _check_depth(field: str, value: object) -> None:
    """Check that a metadata value is not nested too deeply.

    Raises:
        ValueError: If the value has more than 100 levels.
    """
    level = [value]
    for _ in range(_MAX_DEPTH):
        containers = [item for item in level if isinstance(item, Mapping | list | tuple)]
        level = []
        for container in containers:
            items = container.values() if isinstance(container, Mapping) else container
            level += [item for item in items if not isinstance(item, _PLAIN)]
        if not level:
            return
    raise ValueError(
        f"metadata must be nested at most {_MAX_DEPTH} levels deep, and the field {field!r:.80} is "
        "deeper; give a flatter value, or a JSON text"
    )


HEADINGS_ONLY = SearchText("headings")
"""The search text of LangChain documents: only the headings that nodekin's splitters add."""


def declared_search_text(item: object) -> SearchText | None:
    """Return the search text that a LangChain or LlamaIndex object declares, or None.

    LlamaIndex embeds the metadata of a node except ``excluded_embed_metadata_keys``, formatted with
    its templates (``MetadataMode.EMBED``). LangChain embeds ``page_content`` only.
    """
    if isinstance(getattr(item, "page_content", None), str):
        return HEADINGS_ONLY
    if not isinstance(template := getattr(item, "metadata_template", None), str):
        return None
    return SearchText(
        None,
        excluded=getattr(item, "excluded_embed_metadata_keys", ()),
        field_template=template,
        separator=getattr(item, "metadata_separator", "\n"),
        list_separator=None,
        template=getattr(item, "text_template", "{metadata_str}\n\n{content}"),
        excluded_llm=getattr(item, "excluded_llm_metadata_keys", ()),
    )


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
        is_line = len(item) <= 400 and item.isprintable()
        if is_line and _LIKE_A_PATH.search(item) and os.path.exists(item):
            kind = "folder" if os.path.isdir(item) else "file"
            raise ValueError(
                f"{item!r:.200} is an existing {kind}; pass Path({item!r:.200}) to read it, or "
                f"Document({item!r:.200}) to add the text"
            )
        return Document(item)
    metadata = getattr(item, "metadata", None)
    if isinstance(metadata, Mapping):
        search_text = declared_search_text(item)
        if isinstance(text := getattr(item, "page_content", None), str):  # LangChain
            id = getattr(item, "id", None) or None
            return Document(text, metadata, id=id, search_text=search_text)
        if callable(content := getattr(item, "get_content", None)):  # LlamaIndex
            id = getattr(item, "node_id", None)
            return Document(content(), metadata, id=id, search_text=search_text)
    raise TypeError(
        "a document must be a text (str), a pathlib.Path, a nodekin Document, or a LangChain or "
        f"LlamaIndex document, got {type(item).__name__} {item!r:.80}"
    )


_RANDOM = re.compile(
    "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
)  # UUID 4


def stable_document(item: object) -> Document:
    """Convert an item to a ``Document`` and replace a random id of a file's document.

    The ``SimpleDirectoryReader`` of LlamaIndex sets ``file_path`` and, without
    ``filename_as_id=True``, a new id in each run. A folder that is read twice would be duplicated.
    The new id is a hash of path, text and metadata. Other documents and nodekin's ``Document``
    objects are unchanged.
    """
    document = as_document(item)
    path = document.metadata.get("file_path")
    if document is item or not isinstance(path, str) or not _RANDOM.fullmatch(document.id):
        return document
    own = metadata_digest(document.metadata)
    return replace(document, id=digest("file", path, document.text, own))


_LIKE_A_PATH = re.compile(r"[/\\]|\.\w{1,8}$")


def flatten(items: object) -> Iterator[object]:
    """Yield a single item, the items of an iterable, or the documents of a loader."""
    single = isinstance(items, str | bytes | Path | Mapping | Document)
    if callable(load := getattr(items, "lazy_load", None)):  # LangChain
        yield from load()
    elif single or hasattr(items, "metadata") or not isinstance(items, Iterable):
        yield items
    else:
        yield from items
