"""Embeddings for both frameworks that count pairs of letters instead of using a model.

Replace them with your own embedding model.
"""

from zlib import crc32

import numpy as np
from langchain_core.embeddings import Embeddings
from llama_index.core.embeddings import BaseEmbedding


def embed(text: str, size: int = 2048) -> list[float]:
    """Return a vector of letter pair counts, so that similar texts have similar vectors."""
    pairs = [text[n : n + 2].lower() for n in range(len(text) - 1)]
    counts = np.bincount([crc32(pair.encode()) % size for pair in pairs], minlength=size)
    vector = np.sqrt(counts[:size])
    return (vector / (np.linalg.norm(vector) or 1)).tolist()


class LangChainEmbeddings(Embeddings):
    """A LangChain embedding model that counts pairs of letters."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [embed(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return embed(text)


class LlamaIndexEmbeddings(BaseEmbedding):
    """A LlamaIndex embedding model that counts pairs of letters."""

    def _get_text_embedding(self, text: str) -> list[float]:
        return embed(text)

    def _get_query_embedding(self, query: str) -> list[float]:
        return embed(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return embed(query)
