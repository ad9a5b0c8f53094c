"""What the corpus is: documents, groups of nodes made from them, transforms and the store."""

from .batch_writer import Failure
from .cached_llm import CachedLLM
from .corpus import Refresh
from .document import Document
from .embedder import Embedder
from .entities import EntityExtractor
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
from .llm import LLM
from .llm_extractor import LLMExtractor
from .markdown_splitter import MarkdownSplitter
from .memory_store import MemoryStore
from .node import ROOT, Node
from .readers import register_reader
from .recursive_splitter import RecursiveSplitter
from .sentence_splitter import SentenceSplitter
from .sentences import split_paragraphs, split_sentences
from .store import Changes, Derivation, NodeStore, Stamp
from .tokens import count_tokens

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
