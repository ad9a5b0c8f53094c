"""A source text with its metadata and its id."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .hashing import digest, metadata_digest


@dataclass(frozen=True, slots=True)
class Document:
    """Hold one source text, its metadata and its id.

    Without an id, one is made from the text and the metadata, so that the same document added
    twice is one document, on any machine.

    Raises:
        TypeError: If the text is not a string, the metadata not a mapping with string keys.
        ValueError: If the id is an empty string.

    Example:
        >>> Document("Tea is a drink.", {"topic": "tea"}, id="tea").id
        'tea'
    """

    text: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    id: str = ""

    def __init__(
        self, text: str, metadata: Mapping[str, Any] | None = None, *, id: str | None = None
    ) -> None:
        if not isinstance(text, str):
            raise TypeError(f"a document's text must be a str, not {type(text).__name__}")
        if metadata is not None and not (
            isinstance(metadata, Mapping) and all(isinstance(key, str) for key in metadata)
        ):
            raise TypeError(f"metadata must map names (str) to values, not {metadata!r:.80}")
        if id is not None and (not isinstance(id, str) or not id):
            raise ValueError(f"a document's id must be a non-empty str, not {id!r}")
        own = dict(metadata or {})
        if id is None:
            id = digest(text, metadata_digest(own)) if own else digest(text)
        object.__setattr__(self, "text", text)
        object.__setattr__(self, "metadata", own)
        object.__setattr__(self, "id", id)


def as_document(item: object) -> Document:
    """Take a text, a Document, or a LangChain or LlamaIndex document (known by its shape)."""
    if isinstance(item, Document):
        return item
    if isinstance(item, str):
        return Document(item)
    metadata = getattr(item, "metadata", None)
    if isinstance(metadata, Mapping):
        if isinstance(text := getattr(item, "page_content", None), str):  # LangChain
            return Document(text, metadata, id=getattr(item, "id", None) or None)
        if callable(content := getattr(item, "get_content", None)):  # LlamaIndex
            return Document(content(), metadata, id=getattr(item, "node_id", None))
    raise TypeError(
        f"can't make a document from {type(item).__name__} {item!r:.80}; give a text (str), a "
        "pathlib.Path, a nodekin Document, or a LangChain or LlamaIndex document"
    )


def flatten(items: object) -> Iterator[object]:
    """Yield the one item, or the items of an iterable of them; of a loader what it loads."""
    single = isinstance(items, str | bytes | Path | Mapping | Document)
    if callable(load := getattr(items, "lazy_load", None)):  # LangChain
        yield from load()
    elif single or hasattr(items, "metadata") or not isinstance(items, Iterable):
        yield items
    else:
        yield from items
