"""Sentence-transformers models as embedding models."""

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
"""The positions of the texts of a batch, and their vectors."""


_PROMPTS = {"encode_document": ("document", "passage", "corpus"), "encode_query": ("query",)}
"""The methods of sentence-transformers, and the names of their prompts in order of preference."""


class Encoder:
    """A sentence-transformers model, with separate settings for passages and queries.

    Only one thread at a time calls ``encode``, since tokenizers do not support concurrent calls.
    The plugin ``vectors`` runs standard models without ``encode``, in batches of similar lengths
    and in several threads. Its vectors differ only by rounding.

    Args:
        model: The model.
        passages: Arguments of ``encode`` for passages.
        queries: Arguments of ``encode`` for queries.
        by_tokens: Whether the plugin may choose the batches. Otherwise ``batch_size`` decides.
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
        """Return texts in batches, the longest first, or None if ``batch_size`` decides.

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
        """Embed passages as an array (texts, dimension)."""
        if (computed := self.embed_batches(texts, method)) is not None:
            rows: dict[int, Any] = {}
            for batch, vectors in computed:
                rows |= zip(batch, vectors, strict=True)
            return [rows[at] for at in range(len(rows))]
        call = getattr(self._model, method if has(self._model, method) else "encode")
        arguments = {"show_progress_bar": False, "convert_to_numpy": True, **self._settings[method]}
        parameters = inspect.signature(call).parameters
        if not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
            # Related libraries accept fewer arguments.
            arguments = {name: v for name, v in arguments.items() if name in parameters}
        with self._lock:
            return call(texts, **arguments)

    def embed_queries(self, texts: list[str]) -> Any:
        """Embed queries as an array (texts, dimension)."""
        return self.embed(texts, "encode_query")


def padded_batches(sizes: Sequence[int], budget: int, most: int | None = None) -> list[list[int]]:
    """Return positions in batches of similar sizes, the largest first.

    Args:
        sizes: The size of each text.
        budget: Maximum size of a batch, in which each text counts as much as the largest one. A
            text above the budget forms its own batch.
        most: Maximum number of texts in a batch.

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
