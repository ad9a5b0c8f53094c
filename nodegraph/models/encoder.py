"""Use sentence-transformers models as embedding models."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from ..concurrency import fork_safe_lock
from ..lazy_names import MODELS, plugins
from .model_objects import (
    has,
)

if TYPE_CHECKING:
    pass


Batch: TypeAlias = "tuple[list[int], Any]"
"""A pair of the positions of the texts in a batch and their vectors."""


_PROMPTS = {"encode_document": ("document", "passage", "corpus"), "encode_query": ("query",)}
"""The names of the prompts to use for each ``encode`` method, in order of preference."""


class Encoder:
    """A wrapper for sentence-transformers models with separate settings for queries.

    Only one thread at a time calls ``encode``, because tokenizers do not support concurrent calls.
    If a plugin with the name ``vectors`` is installed, it runs standard models without ``encode``,
    in several threads and in batches of texts with similar lengths. The resulting vectors differ
    only by rounding.

    Args:
        model: The sentence-transformers model.
        passages: Keyword arguments of ``encode`` for passages.
        queries: Keyword arguments of ``encode`` for queries.
        by_tokens: Whether the plugin may choose the batches. If False, ``batch_size`` is used.
    """

    def __init__(
        self,
        model: Any,
        passages: dict[str, Any] | None = None,
        queries: dict[str, Any] | None = None,
        by_tokens: bool = True,
    ) -> None:
        self._arguments = (model, passages, queries, by_tokens)
        self._model = model
        self._settings = {"encode_document": passages or {}, "encode_query": queries or {}}
        self._lock = fork_safe_lock()
        is_standard = type(model).__module__.startswith("sentence_transformers.")
        has_plugin = by_tokens and is_standard and "vectors" in plugins(MODELS)
        self._direct: Any = plugins(MODELS)["vectors"].load()(model) if has_plugin else None

    def __reduce__(self) -> tuple[type[Encoder], tuple[Any, ...]]:
        return type(self), self._arguments

    def embed_batches(
        self, texts: list[str], method: str = "encode_document"
    ) -> Iterator[Batch] | None:
        """Embed texts in batches, longest texts first. If ``batch_size`` must be used, return None.

        Example:
            >>> Encoder(object()).embed_batches(["tea"]) is None
            True
        """
        if self._direct is None or not texts:
            return None
        settings = self._settings[method]
        batches: Iterator[Batch] | None = self._direct.batches(texts, _PROMPTS[method], settings)
        return batches

    def embed(self, texts: list[str], method: str = "encode_document") -> Any:
        """Embed passages and return an array of shape (texts, dimension)."""
        if (computed := self.embed_batches(texts, method)) is not None:
            rows: dict[int, Any] = {}
            for batch, vectors in computed:
                rows |= zip(batch, vectors, strict=True)
            return [rows[at] for at in range(len(rows))]
        call = getattr(self._model, method if has(self._model, method) else "encode")
        arguments = {"show_progress_bar": False, "convert_to_numpy": True, **self._settings[method]}
        parameters = inspect.signature(call).parameters
        if not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
            # Similar libraries accept fewer arguments.
            arguments = {name: v for name, v in arguments.items() if name in parameters}
        with self._lock:
            return call(texts, **arguments)

    def embed_queries(self, texts: list[str]) -> Any:
        """Embed queries and return an array of shape (texts, dimension)."""
        return self.embed(texts, "encode_query")


def padded_batches(sizes: Sequence[int], budget: int, most: int | None = None) -> list[list[int]]:
    """Group texts of similar size into batches, largest first, and return their positions.

    Args:
        sizes: The size of each text.
        budget: The maximum size of a batch after padding, when each text is as large as the largest
            text in the batch. A text that exceeds the budget forms its own batch.
        most: The maximum number of texts in a batch. If None, the number is not limited.

    Example:
        >>> padded_batches([1, 9, 2, 30, 3], 10)
        [[3], [1], [4, 2, 0]]
    """
    order = sorted(range(len(sizes)), key=lambda at: -sizes[at])
    batches: list[list[int]] = []
    while order:
        count = max(1, budget // max(1, sizes[order[0]]))
        batches.append(order[: min(count, most or count)])
        del order[: len(batches[-1])]
    return batches
