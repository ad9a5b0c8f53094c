"""Defines ``Document``, a source text with metadata and an id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from .hashing import digest, metadata_digest
from .search_text import SearchText, as_stored_search_text


@dataclass(frozen=True, slots=True)
class Document:
    """A source text with metadata and an id.

    By default, the id is a hash of the text and the metadata, so identical documents have the same
    id on every machine.

    Args:
        text: The text of the document.
        metadata: The metadata as a dictionary.
        id: The id of the document. Defaults to a hash of the text and the metadata.
        search_text: The metadata fields that are indexed and embedded together with the text of the
            document and its derived nodes: field names, a ``SearchText``, or False for none.
            Settings of the group and the graph take precedence. Defaults to ``title``, ``headings``
            and ``table_head``.
        layout: The positions of parts of the text on the pages of the file, in packed form. They
            are used by ``Node.locations``.

    Raises:
        TypeError: If the text is not a string, the metadata is not a mapping with string keys, or
            the search text cannot be stored.
        ValueError: If the id is not a string or is empty, or if the metadata is nested more than
            100 levels deep.

    Example:
        >>> Document("Tea is a drink.", {"topic": "tea"}, id="tea").id
        'tea'
    """

    # The names of the predefined groups, as in LazyLLM: ``Document.CoarseChunk``.
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


_MAX_DEPTH = 100  # maximum nesting of lists and dictionaries in metadata

_PLAIN = (str, int, float, bool, type(None))


def _check_depth(field: str, value: object) -> None:
    """Check that a metadata value is not nested too deeply.

    Raises:
        ValueError: If the value is nested more than 100 levels deep.
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
