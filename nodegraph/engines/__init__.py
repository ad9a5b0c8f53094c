"""Engines that search a graph's vectors beside its store: Milvus, Chroma, OpenSearch."""

from .engine_addresses import as_engine
from .engine_table import EngineTable
from .index_engine import (
    EngineRow,
    EngineUnavailableError,
    IndexEngine,
    MissingCollectionError,
)

__all__ = [
    "EngineRow",
    "EngineTable",
    "EngineUnavailableError",
    "IndexEngine",
    "MissingCollectionError",
    "as_engine",
]
