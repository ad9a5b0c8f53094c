"""Hold an embedding model of any framework, and call it."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from ..errors import EmbeddingError, check_integer
from .embedder_adapters import (
    AsyncEmbedTexts,
    EmbedTexts,
    Vectors,
    adapt_embedder,
    check_vectors,
    count_of,
    has,
    in_thread,
    is_async,
)
from .identity import model_name


@dataclass(frozen=True, slots=True)
class Embedder:
    """Hold an embedding model: how it embeds passages and queries, and what it is called.

    A graph takes a bare model too. Choose this one to give queries a way of their own, to name
    the model, or to set the batch size.

    A model gets passages of like lengths together, the longest first: it fills each batch up to
    its longest text. A function gets them in the order of the documents.

    Args:
        embed: Embeds passages, many at once: a function from a list of texts to an array (texts,
            dimension) or a list of lists. Or a model: LangChain ``Embeddings``, LlamaIndex
            ``BaseEmbedding``, a ``SentenceTransformer``, any object with such an ``embed``. It
            then brings the other two functions, as far as it has them.
        name: Names the model. What it has embedded is kept under this name, in the store too, and
            never embedded again: another model, or other settings that change its vectors, need
            another name. Left out, it is made of the model's class, name and settings, or of a
            function's code and what it uses. Give one where the model does not tell them apart:
            where its code is changed (with a newer Python the code of a function counts as
            changed), or where it asks a server that may come to run another model.
        embed_queries: Embeds queries, where the model treats them differently.
        aembed_queries: The same without blocking the event loop. Without it, a thread is used.
        aembed: Embeds passages in async code. Without it, a thread is used.
        batch_size: How many texts are given at once.
        num_workers: How many batches of passages are embedded at the same time, in threads. 0 and
            1 for one after the other. Choose 4 to 16 for a model behind a server, which may be
            called by several threads. A model in this process gains nothing by it.

    Raises:
        TypeError: If there is no model, or it can't be called.
        ValueError: If the batch size is below 1.

    Example:
        >>> embedder = Embedder(lambda texts: [[len(text), 1] for text in texts], "lengths")
        >>> embedder.passages(["tea", "water"]).tolist()
        [[3.0, 1.0], [5.0, 1.0]]
    """

    embed: Any
    name: str = ""
    _: KW_ONLY
    embed_queries: EmbedTexts | None = None
    aembed_queries: AsyncEmbedTexts | None = None
    batch_size: int = 64
    num_workers: int = 0
    aembed: AsyncEmbedTexts | None = None
    by_length: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        calls = adapt_embedder(self.embed)
        if self.name is not None and not isinstance(self.name, str):
            raise TypeError(f"an Embedder's name is a text, not {self.name!r:.80}")
        check_integer(self.batch_size, "batch_size", 1)
        check_integer(self.num_workers, "num_workers", 0)
        for name in ("embed_queries", "aembed_queries", "aembed"):
            _check_callable(name, getattr(self, name))
        # The model's async form would embed queries in another way than those given here.
        of_model = calls.aembed_queries if self.embed_queries is None else None
        settled = {
            "name": self.name or model_name(self.embed),
            "embed": calls.embed,
            "embed_queries": self.embed_queries or calls.embed_queries,
            "aembed_queries": self.aembed_queries or of_model,
            "aembed": self.aembed or calls.aembed,
            "by_length": not inspect.isroutine(self.embed),
        }
        for name, value in settled.items():
            object.__setattr__(self, name, value)

    def batches(self, texts: Mapping[str, str]) -> list[list[str]]:
        """Return the keys of passages in the batches that the model is to get."""
        keys = sorted(texts, key=lambda key: -len(texts[key])) if self.by_length else list(texts)
        return split_batches(keys, self.batch_size)

    def passages(self, texts: Sequence[str]) -> Vectors:
        """Embed passages: (texts, dimension) float32.

        Raises:
            EmbeddingError: If the model fails, or makes no usable vectors.
        """
        return self._checked(self.embed, texts)

    def queries(self, texts: Sequence[str]) -> Vectors:
        """Embed queries: (texts, dimension) float32.

        Raises:
            EmbeddingError: If the model fails, or makes no usable vectors.
        """
        return self._checked(self.embed_queries or self.embed, texts)

    async def aqueries(self, texts: Sequence[str]) -> Vectors:
        """Embed queries without blocking, in a thread where the model has no async form.

        Raises:
            EmbeddingError: If the model fails, or makes no usable vectors.
        """
        if self.aembed_queries is None:
            return await in_thread(self.queries, texts)
        return await self._achecked(self.aembed_queries, texts)

    async def apassages(self, texts: Sequence[str]) -> Vectors:
        """Embed passages without blocking, in a thread where the model has no async form.

        Raises:
            EmbeddingError: If the model fails, or makes no usable vectors.
        """
        if self.aembed is None:
            return await in_thread(self.passages, texts)
        return await self._achecked(self.aembed, texts)

    async def _achecked(self, call: AsyncEmbedTexts, texts: Sequence[str]) -> Vectors:
        try:
            vectors = await call(list(texts))
        except EmbeddingError:
            raise
        except Exception as error:
            raise self._failure(texts, error) from error
        return check_vectors(vectors, texts, self.name)

    def _checked(self, call: EmbedTexts, texts: Sequence[str]) -> Vectors:
        try:
            vectors = call(list(texts))
        except EmbeddingError:
            raise
        except Exception as error:
            raise self._failure(texts, error) from error
        return check_vectors(vectors, texts, self.name)

    def _failure(self, texts: Sequence[str], error: Exception) -> EmbeddingError:
        number = count_of(texts, "text")
        first = f", the first of them {texts[0]!r:.80}" if texts else ""
        return EmbeddingError(
            f"the embedding model {self.name!r} failed on {number}{first}: "
            f"{type(error).__name__}: {error}; what it embedded before is kept: mend it and ask "
            "again"
        )


def as_embedder(model: object) -> Embedder:
    """Return an embedding model of any supported kind as an ``Embedder``.

    Raises:
        TypeError: If it is no model. The error says what to give instead.
    """
    if isinstance(model, Embedder):
        return model
    size = getattr(model, "batch_size", None) if has(model, "embed") else None
    return Embedder(model, batch_size=size) if isinstance(size, int) else Embedder(model)


def as_embedders(embed: object) -> dict[str, Embedder]:
    """Take one model, which is then called ``"default"``, or several by key.

    Raises:
        TypeError: If a model is of no known kind, or a key is no text.
        ValueError: If there are no models in the mapping.
    """
    if embed is None:
        return {}
    if isinstance(embed, list | tuple | set):
        raise TypeError(
            f"embed takes one model, or several by key, not {type(embed).__name__}; write "
            "embed={'key': model, ...}"
        )
    if not isinstance(embed, Mapping):
        return {"default": as_embedder(embed)}
    if not embed:
        raise ValueError("embed={} has no models; leave it out, or write embed={'key': model}")
    for key in embed:
        if not isinstance(key, str) or not key:
            raise TypeError(f"the keys of embed are names, not {key!r:.80}; write {{'key': model}}")
    return {key: as_embedder(model) for key, model in embed.items()}


def _check_callable(field: str, call: object) -> None:
    if call is not None and not callable(call):
        raise TypeError(
            f"{field} is a function from a list of texts to their vectors, not {call!r:.80}"
        )
    if callable(call) and is_async(call) and field == "embed_queries":
        raise TypeError(f"{call!r:.80} is async; give it as aembed_queries")


def split_batches(items: Sequence[str], size: int) -> list[list[str]]:
    """Return items in lists of a size, the last one shorter."""
    return [list(items[at : at + size]) for at in range(0, len(items), size)]
