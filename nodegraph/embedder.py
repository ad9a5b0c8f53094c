"""Call whatever a user gives as an embedding model, and check what it returns."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

EmbedTexts = Callable[[list[str]], Any]
"""Takes texts, returns one vector for each: an array (texts, dimension), or a list of lists."""


@dataclass(frozen=True, slots=True)
class Embedder:
    """Hold an embedding model: how it embeds passages and queries, and what it is called.

    Args:
        embed: Embeds passages, many at once.
        name: Names the model: what it has embedded is kept under this name and never embedded
            again, so another model needs another one.
        embed_queries: Embeds queries, where the model treats them differently.
        aembed_queries: The same without blocking the event loop.
        batch_size: How many texts are given at once.
    """

    embed: EmbedTexts
    name: str
    embed_queries: EmbedTexts | None = None
    aembed_queries: Callable[[list[str]], Awaitable[Any]] | None = None
    batch_size: int = 64


def as_embedder(model: object) -> Embedder:
    """Take an embedding model in any of the forms people have, known by its shape."""
    if isinstance(model, Embedder):
        return model
    if callable(model):
        return Embedder(model, getattr(model, "__qualname__", type(model).__qualname__))
    raise TypeError(f"no embedding model: {model!r:.80}")


def as_embedders(embed: object) -> dict[str, Embedder]:
    """Take one model, which is then called ``"default"``, or several by key."""
    if embed is None:
        return {}
    if isinstance(embed, dict):
        return {key: as_embedder(model) for key, model in embed.items()}
    return {"default": as_embedder(embed)}


def check_vectors(made: Any, texts: Sequence[str], name: str) -> Any:
    """Return what a model made as an array (texts, dimension) of float32."""
    import numpy as np

    return np.asarray(made, np.float32)
