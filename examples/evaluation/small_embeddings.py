"""Embeddings for both frameworks without a model: counted pairs of letters. Put your own here."""

from zlib import crc32

import numpy as np
from langchain_core.embeddings import Embeddings
from llama_index.core.embeddings import BaseEmbedding


def embed(text: str, size: int = 2048) -> list[float]:
    """Return the counts of letter pairs as a vector, so that similar texts have near vectors."""
    pairs = [text[n : n + 2].lower() for n in range(len(text) - 1)]
    counts = np.bincount([crc32(pair.encode()) % size for pair in pairs], minlength=size)
    vector = np.sqrt(counts[:size])
    return (vector / (np.linalg.norm(vector) or 1)).tolist()


class LangChainEmbeddings(Embeddings):
    """Embed for LangChain."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [embed(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return embed(text)


class LlamaIndexEmbeddings(BaseEmbedding):
    """Embed for LlamaIndex."""

    def _get_text_embedding(self, text: str) -> list[float]:
        return embed(text)

    def _get_query_embedding(self, query: str) -> list[float]:
        return embed(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return embed(query)
