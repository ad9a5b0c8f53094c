"""Engines that search a graph's vectors and words beside its store: Milvus, Chroma, OpenSearch."""

from .engine_addresses import as_engine
from .engine_table import delete_unused, drop_outdated
from .engine_vectors import EngineVectors
from .engine_words import EngineWords, WordCandidates
from .index_engine import (
    EngineRow,
    EngineUnavailableError,
    IndexEngine,
    MissingCollectionError,
)
from .word_engine import (
    REFERENCE_B,
    REFERENCE_K1,
    QueryTerm,
    WordEngine,
    WordHits,
    WordRow,
    searches_words,
)
from .word_statistics import NodeTerms, TermFrequency, WordedNode, WordTotals

__all__ = [
    "REFERENCE_B",
    "REFERENCE_K1",
    "EngineRow",
    "EngineUnavailableError",
    "EngineVectors",
    "EngineWords",
    "IndexEngine",
    "MissingCollectionError",
    "NodeTerms",
    "QueryTerm",
    "TermFrequency",
    "WordCandidates",
    "WordEngine",
    "WordHits",
    "WordRow",
    "WordTotals",
    "WordedNode",
    "as_engine",
    "delete_unused",
    "drop_outdated",
    "searches_words",
]
