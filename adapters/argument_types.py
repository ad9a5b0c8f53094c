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
        """Return the vectors of passages."""

    def embed_query(self, text: str, /) -> Any:
        """Return the vector of a query."""


class EmbedsBatches(Protocol):
    """A LlamaIndex embedding model."""

    def get_text_embedding_batch(self, texts: list[str], /) -> Any:
        """Return the vectors of passages."""

    def get_query_embedding(self, query: str, /) -> Any:
        """Return the vector of a query."""


class Encodes(Protocol):
    """A sentence-transformers embedding model."""

    def encode(self, texts: list[str], /) -> Any:
        """Return the vectors of texts."""


class Embeds(Protocol):
    """A nodekin embedding model."""

    def embed(self, texts: list[str], /) -> Any:
        """Return the vectors of texts."""


EmbeddingModel: TypeAlias = (
    EmbedsDocuments | EmbedsBatches | Encodes | Embeds | Callable[[list[str]], Any]
)
"""An embedding model from any framework, or a function that returns the vectors of texts."""

Embedding: TypeAlias = EmbeddingModel | Mapping[str, EmbeddingModel]
"""An embedding model, or several models by key."""


class Invokes(Protocol):
    """A LangChain language model."""

    def invoke(self, input: Any, /) -> Any:
        """Return the answer to a prompt."""


class Completes(Protocol):
    """A LlamaIndex or nodekin language model."""

    def complete(self, prompt: Any, /) -> Any:
        """Return the answer to a prompt."""


LanguageModel: TypeAlias = Invokes | Completes | Callable[..., Any]
"""A language model from any framework, or a function that returns the answer to a prompt."""


class SplitsText(Protocol):
    """A LangChain or LlamaIndex text splitter."""

    def split_text(self, text: str, /) -> list[str]:
        """Return the parts of a text."""


class ParsesDocuments(Protocol):
    """A LlamaIndex node parser."""

    def get_nodes_from_documents(self, documents: Any, /) -> Any:
        """Return the nodes of documents."""


Splitter: TypeAlias = SplitsText | ParsesDocuments | Callable[..., Any]
"""A splitter from any framework, or a function that returns the parts of a text or node."""


class Retrieves(Protocol):
    """A LlamaIndex retriever."""

    def retrieve(self, query: Any, /) -> Any:
        """Return the results of a query."""


AnyRetriever: TypeAlias = (
    RetrieverProtocol | Retrieves | Invokes | NodeGraph | QueryEngine | Callable[..., Any]
)
"""A retriever from any framework, a function, a graph or a query engine. See ``as_retriever``."""
