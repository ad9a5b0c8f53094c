"""Call models of sentence-transformers and related libraries."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from ..locking import Lock
from ..plugins import MODELS, load_plugin, plugins
from .model_objects import has

Batch: TypeAlias = "tuple[list[int], Any]"
"""The positions of the texts of a batch, and their vectors."""

PASSAGES = "encode_document", ("document", "passage", "corpus")
QUERIES = "encode_query", ("query",)
"""The method of sentence-transformers for each role, and its prompts in order of preference."""


class Encoder:
    """A sentence-transformers model, with separate settings for passages and queries.

    ``encode`` is called by one thread at a time, since tokenizers do not support concurrent
    calls. The plugin ``vectors`` computes standard models without ``encode``, in batches of
    similar lengths and by several threads. The vectors differ by rounding only.

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
        self._model = model
        self._settings = (passages or {}, queries or {}, by_tokens)
        self._lock = Lock()
        is_standard = type(model).__module__.startswith("sentence_transformers.")
        has_plugin = by_tokens and is_standard and "vectors" in plugins(MODELS)
        self._direct: Any = load_plugin(MODELS, "vectors")(model) if has_plugin else None

    def __reduce__(self) -> tuple[type[Encoder], tuple[Any, ...]]:
        return type(self), (self._model, *self._settings)

    def embed_batches(self, texts: list[str]) -> Iterator[Batch] | None:
        """Return passages in batches, the longest first, None if ``batch_size`` decides.

        Example:
            >>> Encoder(object()).embed_batches(["tea"]) is None
            True
        """
        return self._computed(PASSAGES[1], texts, self._settings[0])

    def embed(self, texts: list[str]) -> Any:
        """Embed passages: (texts, dimension)."""
        return self._embed(*PASSAGES, texts, self._settings[0])

    def embed_queries(self, texts: list[str]) -> Any:
        """Embed queries: (texts, dimension)."""
        return self._embed(*QUERIES, texts, self._settings[1])

    def _computed(
        self, prompts: Sequence[str], texts: list[str], settings: dict[str, Any]
    ) -> Iterator[Batch] | None:
        if self._direct is None or not texts:
            return None
        batches: Iterator[Batch] | None = self._direct.batches(texts, prompts, settings)
        return batches

    def _embed(
        self, method: str, prompts: Sequence[str], texts: list[str], settings: dict[str, Any]
    ) -> Any:
        computed = self._computed(prompts, texts, settings)
        if computed is not None:
            return _in_order(computed)
        arguments: dict[str, Any] = {"show_progress_bar": False, "convert_to_numpy": True}
        if has(self._model, method):
            call = getattr(self._model, method)
        else:  # before version 5
            call = self._model.encode
            available = getattr(self._model, "prompts", None) or {}
            arguments["prompt_name"] = next(filter(available.get, prompts), None)
        arguments |= settings
        if arguments.get("prompt") is not None:
            arguments.pop("prompt_name", None)
        with self._lock.held():
            return call(texts, **_accepted(call, arguments))


def _in_order(batches: Iterator[Batch]) -> list[Any]:
    """Return the vectors of batches in the order of the texts."""
    rows: dict[int, Any] = {}
    for batch, vectors in batches:
        rows |= zip(batch, vectors, strict=True)
    return [rows[at] for at in range(len(rows))]


def _accepted(call: Any, settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings that a call accepts. Related libraries accept fewer."""
    try:
        parameters = inspect.signature(call).parameters
    except (TypeError, ValueError):  # written in C
        return {}
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return {k: v for k, v in settings.items() if k != "prompt_name" or v is not None}
    return {k: v for k, v in settings.items() if k in parameters}


def padded_batches(sizes: Sequence[int], budget: int, most: int | None = None) -> list[list[int]]:
    """Return positions in batches of similar sizes, the largest first.

    Args:
        sizes: The size of each text.
        budget: Maximum size of a batch, in which each text counts as much as the largest. A text
            above the budget is a batch.
        most: Maximum number of texts in a batch.

    Example:
        >>> padded_batches([1, 9, 2, 30, 3], 10)
        [[3], [1], [4, 2, 0]]
    """
    order = sorted(range(len(sizes)), key=lambda at: -sizes[at])
    batches: list[list[int]] = []
    at = 0
    while at < len(order):
        count = max(1, budget // max(1, sizes[order[at]]))
        batches.append(order[at : at + min(count, most or count)])
        at += len(batches[-1])
    return batches
