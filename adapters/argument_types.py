"""Types of arguments that accept objects from several frameworks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias

from ..nodegraph.graph import NodeGraph
from ..retrievers.answers.engine import QueryEngine
from ..retrievers.protocols import RetrieverProtocol


class EmbedsDocuments(Protocol):
    """An embedding model of LangChain."""

    def embed_documents(self, texts: list[str], /) -> Any:
        """Return the vectors of passages."""

    def embed_query(self, text: str, /) -> Any:
        """Return the vector of a query."""


class EmbedsBatches(Protocol):
    """An embedding model of LlamaIndex."""

    def get_text_embedding_batch(self, texts: list[str], /) -> Any:
        """Return the vectors of passages."""

    def get_query_embedding(self, query: str, /) -> Any:
        """Return the vector of a query."""


class Encodes(Protocol):
    """An embedding model of sentence-transformers."""

    def encode(self, texts: list[str], /) -> Any:
        """Return the vectors of texts."""


class Embeds(Protocol):
    """An embedding model of nodekin."""

    def embed(self, texts: list[str], /) -> Any:
        """Return the vectors of texts."""


EmbeddingModel: TypeAlias = (
    EmbedsDocuments | EmbedsBatches | Encodes | Embeds | Callable[[list[str]], Any]
)
"""An embedding model from any framework, or a function that returns the vectors of texts."""

Embedding: TypeAlias = EmbeddingModel | Mapping[str, EmbeddingModel]
"""An embedding model, or several models by key."""


class Invokes(Protocol):
    """A language model of LangChain."""

    def invoke(self, input: Any, /) -> Any:
        """Return the answer to a prompt."""


class Completes(Protocol):
    """A language model of LlamaIndex or nodekin."""

    def complete(self, prompt: Any, /) -> Any:
        """Return the answer to a prompt."""


LanguageModel: TypeAlias = Invokes | Completes | Callable[..., Any]
"""A language model from any framework, or a function that returns the answer to a prompt."""


class SplitsText(Protocol):
    """A text splitter of LangChain or LlamaIndex."""

    def split_text(self, text: str, /) -> list[str]:
        """Return the parts of a text."""


class ParsesDocuments(Protocol):
    """A node parser of LlamaIndex."""

    def get_nodes_from_documents(self, documents: Any, /) -> Any:
        """Return the nodes of documents."""


Splitter: TypeAlias = SplitsText | ParsesDocuments | Callable[..., Any]
"""A splitter from any framework, or a function that returns the parts of a text or node."""


class Retrieves(Protocol):
    """A retriever of LlamaIndex."""

    def retrieve(self, query: Any, /) -> Any:
        """Return the results of a query."""


AnyRetriever: TypeAlias = (
    RetrieverProtocol | Retrieves | Invokes | NodeGraph | QueryEngine | Callable[..., Any]
)
"""A retriever from any framework, a function, a graph or a query engine. See ``as_retriever``."""
