"""Open engines by their addresses."""

from __future__ import annotations

from collections.abc import Callable

from ..errors import nearest_names
from .index_engine import IndexEngine


def _milvus(address: str) -> IndexEngine:
    from .milvus import MilvusEngine

    return MilvusEngine(address)


def _chroma(address: str) -> IndexEngine:
    from .chroma import ChromaEngine

    return ChromaEngine(address)


def _opensearch(address: str) -> IndexEngine:
    from .opensearch import OpenSearchEngine

    return OpenSearchEngine(address)


_ENGINES: dict[str, Callable[[str], IndexEngine]] = {
    "chroma": _chroma,
    "milvus": _milvus,
    "opensearch": _opensearch,
}


def as_engine(index: str | IndexEngine) -> IndexEngine:
    """Take an engine or its address for one.

    Raises:
        ImportError: If the engine's client is not installed; it names the extra.
        TypeError: If it is neither.
        ValueError: If it is an address of another kind of engine.
    """
    if isinstance(index, str):
        kind = index.partition(":")[0]
        if kind not in _ENGINES or ":" not in index:
            raise ValueError(
                f"index={kind!r:.40} names no engine that searches vectors; write an address that "
                f"begins with one of {nearest_names(kind, _ENGINES)}, like 'milvus://host:19530'"
            )
        return _ENGINES[kind](index)
    if not callable(getattr(index, "nearest", None)):
        raise TypeError(
            "index is the address of an engine that searches vectors, an IndexEngine, or None for "
            f"none beside the store, not {index!r:.80}; write "
            'NodeGraph(store="graph.db", index="milvus://host:19530")'
        )
    return index
