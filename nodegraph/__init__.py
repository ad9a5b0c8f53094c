"""What the corpus is: documents, groups of nodes made from them, transforms and the store."""

from .build_writer import Failure
from .corpus import Refresh
from .document import Document
from .errors import (
    EmbeddingError,
    ModelError,
    ModelTimeoutError,
    ReadError,
    StoreError,
    TransformError,
    UnknownGroupError,
)
from .extractors.entity_extractor import EntityExtractor
from .extractors.llm_extractor import LLMExtractor
from .graph import NodeGraph
from .groups import GroupSummary, NodeGroup
from .memory_store import MemoryStore
from .models.cached_llm import CachedLLM
from .models.embedder import Embedder
from .models.llm import LLM
from .node import ROOT, Link, LinkedText, Node
from .readers import register_reader
from .splitters.markdown_splitter import MarkdownSplitter
from .splitters.recursive_splitter import RecursiveSplitter
from .splitters.sentence_splitter import SentenceSplitter
from .splitters.sentences import split_paragraphs, split_sentences
from .splitters.tokens import count_tokens
from .store import Changes, Derivation, NodeStore, Stamp

__all__ = [
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
    "GroupSummary",
    "LLMExtractor",
    "Link",
    "LinkedText",
    "MarkdownSplitter",
    "MemoryStore",
    "ModelError",
    "ModelTimeoutError",
    "Node",
    "NodeGraph",
    "NodeGroup",
    "NodeStore",
    "ReadError",
    "RecursiveSplitter",
    "Refresh",
    "SentenceSplitter",
    "Stamp",
    "StoreError",
    "TransformError",
    "UnknownGroupError",
    "count_tokens",
    "register_reader",
    "split_paragraphs",
    "split_sentences",
]
