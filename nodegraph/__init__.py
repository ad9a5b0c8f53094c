"""What the corpus is: documents, groups of nodes made from them, transforms and the store."""

from .batch_writer import Failure
from .corpus import Refresh
from .document import Document
from .embeddings.embedder import Embedder
from .entities.extractor import EntityExtractor
from .errors import (
    EmbeddingError,
    ModelError,
    ModelTimeoutError,
    ReadError,
    StoreError,
    TransformError,
    UnknownGroupError,
)
from .graph import NodeGraph
from .group import GroupSummary, NodeGroup
from .link import Link, Linked
from .llm.cached import CachedLLM
from .llm.extractor import LLMExtractor
from .llm.model import LLM
from .memory_store import MemoryStore
from .node import ROOT, Node
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
    "Linked",
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
