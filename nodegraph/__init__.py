"""What the corpus is: documents, groups of nodes made from them, transforms and the store."""

from typing import TYPE_CHECKING

from .lazy_names import lazy_names

if TYPE_CHECKING:
    from .argument_names import explain_names
    from .build_writer import Failure
    from .concurrency import Workers, limit_concurrency, run_in_tasks, run_in_threads
    from .corpus import Refresh
    from .derivation import CORPUS, Derivation, Stamp
    from .document import Document, declared_search_text
    from .errors import (
        EmbeddingError,
        ModelError,
        ModelTimeoutError,
        ReadError,
        StoreError,
        TransformError,
        TransientStoreError,
        UnknownGroupError,
        UnsupportedFilesError,
        nearest_names,
    )
    from .extractors import EntityExtractor, LLMExtractor
    from .graph import NodeGraph
    from .groups import GroupSummary, NodeGroup
    from .hashing import fingerprint
    from .imported_groups import Family
    from .memory_store import MemoryStore
    from .models import LLM, CachedLLM, Embedder
    from .node import ROOT, Kin, Link, LinkedText, Node
    from .observation import Observation, OutsideHoldError, observing
    from .progress import track
    from .readers import ReadOptions, ReadReport, register_reader
    from .search_text import SearchText, SearchTextOption, as_search_text
    from .source_names import file_name_of, headings_of, source_title
    from .splitters import (
        MarkdownSplitter,
        PassageSplitter,
        RecursiveSplitter,
        SentenceSplitter,
        count_tokens,
        markdown_headings,
        split_paragraphs,
        split_sentences,
    )
    from .store import Changes, NodeStore
    from .store_configuration import store_options
    from .vector_table import (
        Nearest,
        TableAheadError,
        TableState,
        ValueMatch,
        VectorRow,
        VectorTable,
        does_without_tables,
        without_tables,
    )
    from .workers import ProcessWorkers
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            ".argument_names": "explain_names",
            ".build_writer": "Failure",
            ".concurrency": "Workers limit_concurrency run_in_tasks run_in_threads",
            ".corpus": "Refresh",
            ".derivation": "CORPUS Derivation Stamp",
            ".document": "Document declared_search_text",
            ".errors": (
                "EmbeddingError ModelError ModelTimeoutError ReadError StoreError "
                "TransformError TransientStoreError UnknownGroupError UnsupportedFilesError "
                "nearest_names"
            ),
            ".extractors": "EntityExtractor LLMExtractor",
            ".graph": "NodeGraph",
            ".groups": "GroupSummary NodeGroup",
            ".hashing": "fingerprint",
            ".imported_groups": "Family",
            ".memory_store": "MemoryStore",
            ".models": "LLM CachedLLM Embedder",
            ".node": "ROOT Kin Link LinkedText Node",
            ".observation": "Observation OutsideHoldError observing",
            ".progress": "track",
            ".readers": "ReadOptions ReadReport register_reader",
            ".search_text": "SearchText SearchTextOption as_search_text",
            ".source_names": "file_name_of headings_of source_title",
            ".splitters": (
                "MarkdownSplitter PassageSplitter RecursiveSplitter SentenceSplitter "
                "count_tokens markdown_headings split_paragraphs split_sentences"
            ),
            ".store": "Changes NodeStore",
            ".store_configuration": "store_options",
            ".vector_table": "Nearest TableAheadError TableState ValueMatch VectorRow VectorTable "
            "does_without_tables without_tables",
            ".workers": "ProcessWorkers",
        },
    )

__all__ = [
    "CORPUS",
    "LLM",
    "ROOT",
    "CachedLLM",
    "Changes",
    "Derivation",
    "Document",
    "Embedder",
    "EmbeddingError",
    "EntityExtractor",
    "Failure",
    "Family",
    "GroupSummary",
    "Kin",
    "LLMExtractor",
    "Link",
    "LinkedText",
    "MarkdownSplitter",
    "MemoryStore",
    "ModelError",
    "ModelTimeoutError",
    "Nearest",
    "Node",
    "NodeGraph",
    "NodeGroup",
    "NodeStore",
    "Observation",
    "OutsideHoldError",
    "PassageSplitter",
    "ProcessWorkers",
    "ReadError",
    "ReadOptions",
    "ReadReport",
    "RecursiveSplitter",
    "Refresh",
    "SearchText",
    "SearchTextOption",
    "SentenceSplitter",
    "Stamp",
    "StoreError",
    "TableAheadError",
    "TableState",
    "TransformError",
    "TransientStoreError",
    "UnknownGroupError",
    "UnsupportedFilesError",
    "ValueMatch",
    "VectorRow",
    "VectorTable",
    "Workers",
    "as_search_text",
    "count_tokens",
    "declared_search_text",
    "does_without_tables",
    "explain_names",
    "file_name_of",
    "fingerprint",
    "headings_of",
    "limit_concurrency",
    "markdown_headings",
    "nearest_names",
    "observing",
    "register_reader",
    "run_in_tasks",
    "run_in_threads",
    "source_title",
    "split_paragraphs",
    "split_sentences",
    "store_options",
    "track",
    "without_tables",
]
