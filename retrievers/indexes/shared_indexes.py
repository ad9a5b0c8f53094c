"""Open the index of a group: in this process, or in the graph's engine where that has one."""

from __future__ import annotations

import logging
from collections.abc import Hashable
from typing import TYPE_CHECKING

from ...nodegraph.graph import NodeGraph
from ..analysis.text_analyzer import Analyzer

if TYPE_CHECKING:
    from .engine_vector_index import EngineVectorIndex
    from .text_index import TextIndex
    from .vector_index import VectorIndex
    from .word_search import WordSearch

logger = logging.getLogger(__name__)


def open_words(graph: NodeGraph, group: str, analyzer: Analyzer) -> WordSearch:
    """Return the index of a group's words, shared by all who analyse texts alike.

    Where the graph has an engine that searches words, it is there.

    Raises:
        TransientStoreError: If there is an engine, and it can't be reached.
    """
    if graph.reader.word_table(group) is None:
        return open_postings(graph, group, analyzer)
    from .engine_text_index import EngineTextIndex

    name = ("words in an engine", group, _identity(analyzer))
    return graph.reader.shared(name, lambda: EngineTextIndex(graph, group, analyzer))


def open_postings(graph: NodeGraph, group: str, analyzer: Analyzer, reason: str = "") -> TextIndex:
    """Return the index of a group's words that this process has, with all postings.

    Args:
        graph: The node graph.
        group: The group.
        analyzer: Turns texts into terms.
        reason: Why, for the log, where an engine searches words.
    """
    from .text_index import TextIndex

    def make() -> TextIndex:
        if reason:
            warn_of_memory(graph, group, f"the words of group {group!r} are indexed", reason)
        return TextIndex(graph, group, analyzer)

    return graph.reader.shared(("words", group, _identity(analyzer)), make)


def warn_of_memory(graph: NodeGraph, group: str, what: str, reason: str) -> None:
    """Log what each process holds although the graph has an engine that searches words."""
    if graph.reader.word_table(group) is not None:
        logger.warning("%s in this process, and not in the engine: %s", what, reason)


def _identity(analyzer: Analyzer) -> object:
    return analyzer if isinstance(analyzer, Hashable) else id(analyzer)  # which the index holds


def open_vectors(graph: NodeGraph, group: str, key: str) -> VectorIndex | EngineVectorIndex:
    """Return the index of a group's embeddings of one key, shared by all retrievers.

    Raises:
        LookupError: If the graph has no such embedding.
    """
    from .engine_vector_index import EngineVectorIndex
    from .vector_index import VectorIndex

    graph.embeddings.embedder(key)

    def make() -> VectorIndex | EngineVectorIndex:
        is_local = graph.reader.vector_table(group, key) is None
        return (VectorIndex if is_local else EngineVectorIndex)(graph, group, key)

    return graph.reader.shared(("vector index", group, key), make)
