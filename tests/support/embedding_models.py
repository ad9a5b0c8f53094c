"""Embedding models of all supported kinds, for tests."""

from collections.abc import Callable

from langchain_core.embeddings import Embeddings
from llama_index.core.base.embeddings.base import BaseEmbedding


def lengths(texts):
    return [[len(text), 1] for text in texts]


def of_queries(texts):
    return [[len(text), 2] for text in texts]


class LangChainModel(Embeddings):
    def __init__(self, model="small", dimensions=None, api_key="a", base_url="x"):
        self.model = model
        self.dimensions = dimensions
        self.api_key = api_key
        self.base_url = base_url
        self.calls = 0

    def embed_documents(self, texts):
        self.calls += 1
        return lengths(texts)

    def embed_query(self, text):
        return [len(text), 2]


class LangChainAsync(LangChainModel):
    async def aembed_query(self, text):
        return [len(text), 3]


class LlamaIndexModel(BaseEmbedding):
    api_key: str = "none"
    dimensions: int | None = None

    def _get_text_embedding(self, text):
        return [len(text), 1]

    def _get_query_embedding(self, query):
        return [len(query), 2]

    async def _aget_query_embedding(self, query):
        return [len(query), 3]


class LangChainVectors(Embeddings):
    """A LangChain model that embeds passages and queries with the same function."""

    def __init__(self, vector: Callable[[str], list[float]]) -> None:
        self.vector = vector

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.vector(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.vector(text)


class LlamaIndexVectors(BaseEmbedding):
    """A LlamaIndex model that embeds passages and queries with the same function."""

    vector: Callable[[str], list[float]]

    def _get_text_embedding(self, text: str) -> list[float]:
        return self.vector(text)

    def _get_query_embedding(self, query: str) -> list[float]:
        return self.vector(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self.vector(query)


class Own:
    name = "own"
    batch_size = 3

    def embed(self, texts):
        return lengths(texts)

    def embed_queries(self, texts):
        return of_queries(texts)

    async def aembed_queries(self, texts):
        return [[len(text), 3] for text in texts]


class Call:
    def __init__(self, size=1):
        self.size = size

    def __call__(self, texts):
        return [[len(text), self.size] for text in texts]
