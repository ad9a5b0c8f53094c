"""Types of arguments that accept objects from several frameworks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias

from ..nodegraph.graph import NodeGraph
from ..retrievers.answers.engine import QueryEngine
from ..retrievers.protocols import RetrieverProtocol


class EmbedsDocuments(Protocol):
    """A LangChain embedding model."""

    def embed_documents(self, texts: list[str], /) -> Any:
        """Return one vector for each passage."""

    def embed_query(self, text: str, /) -> Any:
        """Return the vector of a query."""


class EmbedsBatches(Protocol):
    """A LlamaIndex embedding model."""

    def get_text_embedding_batch(self, texts: list[str], /) -> Any:
        """Return one vector for each passage."""

    def get_query_embedding(self, query: str, /) -> Any:
        """Return the vector of a query."""


class Encodes(Protocol):
    """A sentence-transformers embedding model."""

    def encode(self, texts: list[str], /) -> Any:
        """Return one vector for each text."""


class Embeds(Protocol):
    """A nodekin embedding model."""

    def embed(self, texts: list[str], /) -> Any:
        """Return one vector for each text."""


EmbeddingModel: TypeAlias = (
    EmbedsDocuments | EmbedsBatches | Encodes | Embeds | Callable[[list[str]], Any]
)
"""An embedding model from a supported framework, or a function that returns the vectors of texts.
"""

Embedding: TypeAlias = EmbeddingModel | Mapping[str, EmbeddingModel]
"""A single embedding model, or a mapping from keys to embedding models."""


class Invokes(Protocol):
    """A LangChain language model."""

    def invoke(self, input: Any, /) -> Any:
        """Return the answer to a prompt."""


class Completes(Protocol):
    """A LlamaIndex or nodekin language model."""

    def complete(self, prompt: Any, /) -> Any:
        """Return the answer to a prompt."""


LanguageModel: TypeAlias = Invokes | Completes | Callable[..., Any]
"""A language model from a supported framework, or a function that returns the answer to a prompt.
"""


class SplitsText(Protocol):
    """A LangChain or LlamaIndex text splitter."""

    def split_text(self, text: str, /) -> list[str]:
        """Split a text into parts."""


class ParsesDocuments(Protocol):
    """A LlamaIndex node parser."""

    def get_nodes_from_documents(self, documents: Any, /) -> Any:
        """Split documents into nodes."""


Splitter: TypeAlias = SplitsText | ParsesDocuments | Callable[..., Any]
"""A splitter from a supported framework, or a function that splits a text or node into parts."""


class Retrieves(Protocol):
    """A LlamaIndex retriever."""

    def retrieve(self, query: Any, /) -> Any:
        """Return the search results for a query."""


AnyRetriever: TypeAlias = (
    RetrieverProtocol | Retrieves | Invokes | NodeGraph | QueryEngine | Callable[..., Any]
)
"""Any object that ``as_retriever`` accepts.

This includes retrievers of the supported frameworks, functions, graphs and query engines.
"""
