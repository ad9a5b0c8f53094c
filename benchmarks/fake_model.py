"""An embedding model that costs next to nothing, so that what is around it is measured."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

DIMENSION = 384
Vectors = npt.NDArray[np.float32]


@cache
def _table() -> Vectors:
    return np.random.default_rng(2018).standard_normal((4096, DIMENSION), np.float32)


def embed(texts: Sequence[str]) -> Vectors:
    """Return unit vectors (texts, 384): the sum of a random vector for each pair of characters.

    Texts that share words are near each other, as with a real model (random indexing: Kanerva,
    Kristoferson and Holst, 2000); equal texts have equal vectors, in every process.
    """
    made = np.empty((len(texts), DIMENSION), np.float32)
    for row, text in enumerate(texts):
        characters = np.frombuffer(f"^{text}$".encode("utf-32-le"), np.uint32).astype(np.uint64)
        pairs = (characters[:-1] * 1_000_003 + characters[1:]) * 2_654_435_761
        made[row] = _table()[pairs >> 12 & 4095].sum(axis=0)
    return made / np.linalg.norm(made, axis=1, keepdims=True)


def embedder(**settings: Any) -> Any:
    """Return the model for nodekin."""
    from nodekin.nodegraph import Embedder

    return Embedder(embed, "pairs of characters", **settings)


def for_llama_index() -> Any:
    """Return the model for LlamaIndex."""
    from llama_index.core.embeddings import BaseEmbedding

    class FakeEmbedding(BaseEmbedding):
        def _get_text_embedding(self, text: str) -> list[float]:
            return embed([text])[0].tolist()

        def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
            return embed(texts).tolist()

        def _get_query_embedding(self, query: str) -> list[float]:
            return embed([query])[0].tolist()

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return embed([query])[0].tolist()

    return FakeEmbedding()


def for_langchain() -> Any:
    """Return the model for LangChain."""
    from langchain_core.embeddings import Embeddings

    class FakeEmbeddings(Embeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return embed(texts).tolist()

        def embed_query(self, text: str) -> list[float]:
            return embed([text])[0].tolist()

    return FakeEmbeddings()
