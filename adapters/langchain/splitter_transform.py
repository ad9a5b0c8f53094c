"""Use LangChain's text splitters and document transformers to make node groups."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from langchain_core.documents import Document

from ...nodegraph import Node


def as_transform(splitter: object) -> SplitterTransform:
    """Make a transform of a LangChain splitter, for ``graph.create_node_group``.

    A graph takes a bare text splitter too, and finds where its pieces stand. Choose this one for
    a splitter with ``add_start_index=True``, whose word on that is taken where it is true, and
    for what splits or changes documents and has no ``split_text``.

    What the splitter puts into its pieces' metadata (headings, ``start_index``) becomes the
    nodes' own. A piece that is no part of the text, for example one that
    ``MarkdownHeaderTextSplitter`` joined of several lines, has no span.

    Args:
        splitter: An object with ``create_documents``, ``split_text``, ``transform_documents`` or
            ``split_documents``, asked in this order. The first two see a text; the others a
            document with the node's metadata and id.

    Raises:
        TypeError: If it has none of them, or is a class.

    Example:
        >>> from langchain_text_splitters import CharacterTextSplitter
        >>> from nodekin.nodegraph import NodeGraph
        >>> splitter = CharacterTextSplitter(
        ...     separator=" ", chunk_size=9, chunk_overlap=0, add_start_index=True
        ... )
        >>> graph = NodeGraph()
        >>> ids = graph.add("Rivers run to the sea.")
        >>> graph.create_node_group("piece", as_transform(splitter))
        >>> [(node.text, node.start) for node in graph.nodes("piece")]
        [('Rivers', 0), ('run to', 7), ('the sea.', 14)]
    """
    return SplitterTransform(splitter)


_TEXT_METHODS = ("create_documents", "split_text")

_DOCUMENT_METHODS = ("transform_documents", "split_documents")


@dataclass(frozen=True, slots=True)
class SplitterTransform:
    """Hold a LangChain splitter and call it with a node or a text."""

    splitter: object

    def __post_init__(self) -> None:
        if inspect.isclass(self.splitter):
            raise TypeError(
                f"as_transform takes a splitter, not the class; give {self.splitter.__name__}(...)"
            )
        if not any(hasattr(self.splitter, m) for m in (*_TEXT_METHODS, *_DOCUMENT_METHODS)):
            raise TypeError(
                f"a LangChain splitter has one of {', '.join((*_TEXT_METHODS, *_DOCUMENT_METHODS))}"
                f"; {self.splitter!r:.80} has none"
            )

    @property
    def trans_node(self) -> bool:
        """Whether it wants nodes: then a change of a document's metadata makes its nodes anew."""
        return not any(hasattr(self.splitter, method) for method in _TEXT_METHODS)

    def __call__(self, node: Node | str) -> list[Node]:
        """Return the pieces of a node or a text."""
        text = node if isinstance(node, str) else node.text
        given = {} if isinstance(node, str) else node.metadata
        made = self._made(text, deepcopy(given), None if isinstance(node, str) else node.id or None)
        pieces = [Document(each) if isinstance(each, str) else each for each in made]
        starts = _true_starts(pieces, text)
        return [
            Node(piece.page_content, _own(piece.metadata, given), start=start)
            for piece, start in zip(pieces, starts, strict=True)
        ]

    def _made(self, text: str, metadata: dict[str, Any], id: str | None) -> Iterable[Any]:
        splitter: Any = self.splitter
        if hasattr(splitter, "create_documents"):
            return splitter.create_documents([text])  # type: ignore[no-any-return]
        if hasattr(splitter, "split_text"):
            return splitter.split_text(text)  # type: ignore[no-any-return]
        document = Document(text, metadata=metadata, id=id)
        method = next(m for m in _DOCUMENT_METHODS if hasattr(splitter, m))
        return getattr(splitter, method)([document])  # type: ignore[no-any-return]


def _own(metadata: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """Leave out what the pieces have from the document that was given."""
    return {
        field: value
        for field, value in metadata.items()
        if field not in given or given[field] != value
    }


def _true_starts(pieces: list[Document], text: str) -> list[int | None]:
    """Return the pieces' ``start_index``; None for all where one is wrong.

    They are a search's result, which goes astray where overlap is counted in tokens.
    """
    starts = [piece.metadata.get("start_index") for piece in pieces]
    before = 0
    for piece, start in zip(pieces, starts, strict=True):
        if not isinstance(start, int) or start < before:
            return [None] * len(pieces)
        if not text.startswith(piece.page_content, start):
            return [None] * len(pieces)
        before = start
    return starts
