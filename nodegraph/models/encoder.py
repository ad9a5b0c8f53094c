"""Call a model of sentence-transformers, with batches as large as suit its device."""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

from ..locking import Lock
from ..plugins import MODELS, load_plugin, plugins
from .model_objects import attribute, has

CPU_BATCH_TOKENS = 1_024
"""Tokens of a batch, padding counted: what a layer computes stays in a processor's cache."""

GPU_BATCH_TOKENS = 32_768
"""The same on a GPU, which has more to do at once: 64 texts of 512 tokens."""

_COUNTED = 1 << 17  # characters whose tokens are in memory at once

_AHEAD = 2  # batches that a GPU computes or has computed while the next texts are tokenized

Batch: TypeAlias = "tuple[list[int], Any]"
"""Which texts were embedded together, and their vectors, or the exception that was raised."""

_NO_LIMIT = 1 << 20  # tokens; where a model states no limit, a tokenizer has a much larger number


_PASSAGES = "encode_document", ("document", "passage", "corpus")
_QUERIES = "encode_query", ("query",)
"""The method of sentence-transformers for each role, and its prompts, of which the first counts."""


class Encoder:
    """Call ``encode``, or the ways that sentence-transformers has for the two roles.

    One call at a time: the tokenizers below can't be used by two threads at once. A model that
    is one transformer with its pooling is called without ``encode``, by several threads at once:
    texts are tokenized once, to count and to compute. Its vectors are those of ``encode`` but for
    rounding.

    Args:
        model: The model.
        passages: Arguments for ``encode`` of passages.
        queries: Arguments for ``encode`` of queries.
        by_tokens: Whether passages are computed in batches of so many tokens, where the model's
            tokenizer counts them quickly, whatever its batch size is.
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
        self._lock = Lock("another thread that embeds")
        self._direct: Any = None
        if type(model).__module__.startswith("sentence_transformers.") and by_tokens:
            self._direct = (
                load_plugin(MODELS, "vectors")(model) if "vectors" in plugins(MODELS) else None
            )

    def __reduce__(self) -> tuple[type[Encoder], tuple[Any, ...]]:
        return type(self), (self._model, *self._settings)

    def embed_batches(self, texts: list[str]) -> Iterator[Batch] | None:
        """Return passages in batches as they are embedded, the longest first.

        None if tokens don't say which to embed together.

        Example:
            >>> Encoder(object()).embed_batches(["tea"]) is None
            True
        """
        settings, _, by_tokens = self._settings
        if not by_tokens:
            return None
        if (computed := self._computed(_PASSAGES[1], texts, settings)) is not None:
            return computed
        batches = self._token_batches(texts)
        if batches is None:
            return None
        return ((batch, _outcome(self._encode_batch, texts, batch)) for batch in batches)

    def _encode_batch(self, texts: list[str], batch: list[int]) -> Any:
        settings = {**self._settings[0], "batch_size": len(batch)}
        return self._encode(*_PASSAGES, [texts[at] for at in batch], settings)

    def embed(self, texts: list[str]) -> Any:
        """Embed passages: (texts, dimension)."""
        computed = self.embed_batches(texts)
        if computed is None:
            return self._encode(*_PASSAGES, texts, self._settings[0])
        return _in_order(computed)

    def embed_queries(self, texts: list[str]) -> Any:
        """Embed queries."""
        settings = self._settings[1]
        computed = self._computed(_QUERIES[1], texts, settings)
        if computed is None:
            return self._encode(*_QUERIES, texts, settings)
        return _in_order(computed)

    def _computed(
        self, prompts: Sequence[str], texts: list[str], settings: dict[str, Any]
    ) -> Iterator[Batch] | None:
        """Return the batches of a model that is called without ``encode``; None for another."""
        direct, model = self._direct, self._model
        if direct is None or not texts:
            return None
        prompt = settings.get("prompt")
        if prompt is None:
            name = next((n for n in prompts if n in model.prompts), model.default_prompt_name)
            prompt = model.prompts.get(name) or ""
        if not direct.is_usable(prompt):
            return None
        normalize = settings.get("normalize_embeddings", False)
        return self._computed_batches([prompt + text for text in texts], normalize)

    def _computed_batches(self, texts: list[str], normalize: bool) -> Iterator[Batch]:
        """Tokenize texts, some at a time, while a GPU computes those before."""
        direct, budget = self._direct, self._batch_tokens()
        ahead = _AHEAD if budget == GPU_BATCH_TOKENS else 0
        parts = deque(padded_batches([*map(len, texts)], _COUNTED))
        tokens: dict[int, Any] = {}  # by text, of those that wait for others of their length
        computing: deque[Batch] = deque()
        while parts or tokens:
            if parts:
                part = parts.popleft()
                tokenized = _outcome(self._tokenized, [texts[at] for at in part])
                if not isinstance(tokenized, Exception):
                    tokens |= zip(part, tokenized, strict=True)
                elif len(part) > 1:  # a lone surrogate in one of them, say
                    parts.extendleft([at] for at in part)
                else:
                    yield part, tokenized
            waiting = list(tokens)
            batches = padded_batches([len(row["input_ids"]) for row in tokens.values()], budget)
            for rows in batches[:-1] if parts else batches:
                batch = [waiting[row] for row in rows]
                of_batch = [tokens.pop(at) for at in batch]
                computing.append((batch, _outcome(direct.begun, of_batch, normalize)))
                if len(computing) > ahead:
                    yield _ended(direct, *computing.popleft())
        for batch, begun in computing:
            yield _ended(direct, batch, begun)

    def _tokenized(self, texts: list[str]) -> Any:
        with self._lock.held():
            return self._direct.tokenized(texts)

    def _batch_tokens(self) -> int:
        on_cpu = str(attribute(self._model, "device") or "cpu") == "cpu"
        return CPU_BATCH_TOKENS if on_cpu else GPU_BATCH_TOKENS

    def _token_batches(self, texts: Sequence[str]) -> list[list[int]] | None:
        tokenizer = attribute(self._model, "tokenizer")
        if attribute(tokenizer, "is_fast") is not True:
            return None
        # As ``encode`` does: other settings would change what other threads have set.
        settings: dict[str, Any] = {"padding": True, "truncation": True, "return_tensors": "np"}
        settings["return_attention_mask"] = True
        limit = attribute(self._model, "max_seq_length")
        if isinstance(limit, int) and limit < _NO_LIMIT:
            settings["max_length"] = limit
        tokens = [0] * len(texts)
        for part in padded_batches([*map(len, texts)], _COUNTED):
            try:
                with self._lock.held():
                    encoded = tokenizer([texts[at] for at in part], **settings)
            except Exception:  # a lone surrogate, say: the batch with this text fails, and says why
                return None
            for at, count in zip(part, encoded["attention_mask"].sum(axis=1), strict=True):
                tokens[at] = int(count)
        return padded_batches(tokens, self._batch_tokens())

    def _encode(
        self, method: str, prompts: Sequence[str], texts: list[str], settings: dict[str, Any]
    ) -> Any:
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


def _outcome(call: Callable[..., Any], *args: object) -> Any:
    """Return what a call returns, or the exception that it raises."""
    try:
        return call(*args)
    except Exception as error:
        return error


def _ended(direct: Any, batch: list[int], begun: Any) -> Batch:
    return batch, begun if isinstance(begun, Exception) else _outcome(direct.ended, begun)


def _in_order(batches: Iterator[Batch]) -> list[Any]:
    """Return the vectors of batches in the order of the texts."""
    rows: dict[int, Any] = {}
    for batch, vectors in batches:
        if isinstance(vectors, Exception):
            raise vectors
        rows |= zip(batch, vectors, strict=True)
    return [rows[at] for at in range(len(rows))]


def _accepted(call: Callable[..., Any], settings: dict[str, Any]) -> dict[str, Any]:
    """Return the settings that the call accepts. Related libraries have fewer."""
    try:
        parameters = inspect.signature(call).parameters
    except (TypeError, ValueError):  # written in C
        return {}
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return {k: v for k, v in settings.items() if k != "prompt_name" or v is not None}
    return {k: v for k, v in settings.items() if k in parameters}


def padded_batches(sizes: Sequence[int], budget: int, most: int | None = None) -> list[list[int]]:
    """Return positions in batches of like sizes, the largest first.

    Args:
        sizes: How large each text is.
        budget: How large a batch is at most, each text counted as the largest in it; a text that
            is larger still is a batch by itself.
        most: How many texts a batch has at most.

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
