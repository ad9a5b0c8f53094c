"""Nodes that no graph has: the documents of other frameworks, as they were returned."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...nodegraph.document import Document
from ...nodegraph.node import Node


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ForeignNode(Node):
    """Hold a document of another framework as a node; it belongs to no graph.

    It has text, metadata and id, all that rerankers, fusions, strategies and citations need. It
    has no parent, no children and no neighbours.

    Attributes:
        original: The document or node of the framework, None of a text; the adapters turn the
            node into it again, so that nothing is lost.
    """

    original: Any = field(default=None, repr=False)

    def __reduce__(self) -> tuple[Callable[..., Node], tuple[Any, ...]]:
        return _restore, (
            *(self.text, dict(self.own_metadata), self.id, self.original),
            *(self.start, self.end, self.document_id),
        )


def is_document(item: object) -> bool:
    """Return whether an item has the shape of a framework's document or node, or is a node."""
    return isinstance(item, Node) or (
        isinstance(getattr(item, "metadata", None), Mapping)
        and (isinstance(getattr(item, "page_content", None), str) or _is_llama_index(item))
    )


def to_node(item: Any, score_key: str | None = None) -> Node:
    """Return a document of LangChain, a node of LlamaIndex or a node as a node.

    The id is the document's own; without one it is made from text and metadata, so that the same
    document has the same id in every retrieval.

    Args:
        item: For which ``is_document`` holds.
        score_key: A metadata field that differs with every query, left out of a made id.

    Example:
        >>> from types import SimpleNamespace
        >>> document = SimpleNamespace(page_content="Tea", metadata={"page": 3}, id="d1")
        >>> to_node(document)
        Node('Tea', group='', id='d1')
    """
    if isinstance(item, Node):
        return item
    metadata = dict(item.metadata)
    if not _is_llama_index(item):
        text, identity = item.page_content, getattr(item, "id", None)
        return ForeignNode(
            text, metadata, id=identity or _made_id(text, metadata, score_key), original=item
        )
    text, source = item.get_content(), getattr(item, "ref_doc_id", None)
    return ForeignNode(
        text,
        metadata,
        start=getattr(item, "start_char_idx", None),
        end=getattr(item, "end_char_idx", None),
        id=item.node_id or _made_id(text, metadata, score_key),
        document_id=source if isinstance(source, str) else "",
        original=item,
    )


def text_node(text: str, title: str = "", metadata: Mapping[str, Any] | None = None) -> ForeignNode:
    """Return a text that no document has, an answer, as a node whose id is made from it."""
    fields = {**({"title": title} if title else {}), **(metadata or {})}
    return ForeignNode(text, fields, id=_made_id(text, fields, None))


def _is_llama_index(item: object) -> bool:
    return callable(getattr(item, "get_content", None)) and hasattr(item, "node_id")


def _made_id(text: str, metadata: Mapping[str, Any], score_key: str | None) -> str:
    return Document(text, {k: v for k, v in metadata.items() if k != score_key}).id


def _restore(
    text: str,
    metadata: dict[str, Any],
    id: str,
    original: Any,
    start: int | None,
    end: int | None,
    document_id: str,
) -> ForeignNode:
    return ForeignNode(
        text, metadata, start=start, end=end, id=id, document_id=document_id, original=original
    )
