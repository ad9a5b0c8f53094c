"""Cross-encoders: models that score pairs of a query and a passage."""

from __future__ import annotations

import inspect
import math
import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

from ...nodegraph.concurrency import fork_safe_lock
from ...nodegraph.models.model_objects import check_is_model, is_async
from ..plans.plan import Do
from ..protocols import RerankError

ScoreFunction = Callable[[str, list[str]], Any]
"""Returns one number per passage for a query, higher is better."""

AsyncScoreFunction = Callable[[str, list[str]], Awaitable[Any]]

PAIR_METHODS = ("predict", "score", "compute_score")
"""Methods of other libraries that score pairs of a query and a passage."""


@dataclass(frozen=True, slots=True)
class CrossEncoder:
    """The functions and limits of a cross-encoder.

    Attributes:
        score: Scores passages for a query.
        ascore: Async version of ``score``. None: ``score`` runs in a thread.
        max_tokens: Maximum number of tokens of a pair. None: unknown.
        lengths: Counts the tokens of texts with the model's tokenizer. None: no tokenizer.
        special_tokens: Number of tokens that the model adds to a pair.
    """

    score: ScoreFunction
    ascore: AsyncScoreFunction | None = None
    max_tokens: int | None = None
    lengths: Callable[[Sequence[str]], list[int]] | None = None
    special_tokens: int = 4

    async def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return the score of each passage. Without passages, the model is not called.

        Raises:
            RerankError: If the model fails or does not return one finite number per passage.
        """
        if not texts:
            return []
        score = partial(self.score, query, list(texts))
        ascore = None if self.ascore is None else partial(self.ascore, query, list(texts))
        try:
            return _checked_scores(await Do(score, ascore), len(texts))
        except RerankError:
            raise
        except Exception as error:
            raise RerankError(
                f"the model failed on {len(texts)} passage{'' if len(texts) == 1 else 's'}: "
                f"{type(error).__name__}: {error}"
            ) from error


def as_cross_encoder(model: Any) -> CrossEncoder:
    """Convert a model to a ``CrossEncoder``.

    A model is one of:

    - an object with ``rerank(query, texts)`` that returns scores, and optionally the async version
      ``arerank``: for example ``RerankEndpoint`` of nodekin.adapters or a model of fastembed
    - an object with a method for pairs of query and passage: ``predict(pairs)`` of
      sentence-transformers, ``score(pairs)`` of LangChain or ``compute_score(pairs)`` of
      FlagEmbedding
    - a function from a query and a list of passages to their scores

    Raises:
        TypeError: If the model has none of these forms. The error names the remedy.

    Example:
        >>> model = as_cross_encoder(lambda query, texts: [text.count(query) for text in texts])
        >>> model.score("tea", ["tea or tea", "water"])
        [2, 0]
    """
    if isinstance(model, CrossEncoder):
        return model
    check_is_model(
        model,
        "load it, for example with sentence_transformers.CrossEncoder({name}), or name it to a "
        "server: RerankEndpoint({name}, base_url=...), from nodekin.adapters.openai",
    )
    if callable(getattr(model, "rerank", None)):
        return CrossEncoder(model.rerank, getattr(model, "arerank", None))
    for method in PAIR_METHODS:
        if callable(getattr(model, method, None)):
            return _pair_model(model, method).cross_encoder()
    if not callable(model):
        raise TypeError(
            "the reranking model must be a function from a query and a list of passages to their "
            "scores, or a cross-encoder of sentence-transformers or LangChain, got "
            f"{model!r:.80}"
        )
    if is_async(model):
        raise TypeError(
            f"{model!r:.80} is only async; give an object with both: rerank(query, texts) and "
            "async arerank(query, texts)"
        )
    return CrossEncoder(model)


class PairModel:
    """A thread-safe caller of a model that scores pairs of a query and a passage.

    Calls are sequential, because these models are not thread-safe.

    Args:
        model: The model.
        method: The name of the model's method for pairs.
    """

    def __init__(self, model: Any, method: str) -> None:
        self._model = model
        self._method = method
        self._lock = fork_safe_lock()

    def __reduce__(self) -> tuple[Callable[..., PairModel], tuple[Any, ...]]:
        return _pair_model, (self._model, self._method)

    def score(self, query: str, texts: Sequence[str]) -> Any:
        """Return the model's scores of passages for a query, in the form of the model."""
        method = getattr(self._model, self._method)
        options = {"show_progress_bar": False} if _accepts(method, "show_progress_bar") else {}
        with self._lock:
            return method([(query, text) for text in texts], **options)

    def lengths(self, texts: Sequence[str]) -> list[int]:
        """Count the tokens of texts with the model's tokenizer."""
        if not texts:
            return []
        with self._lock:
            encoded = self._model.tokenizer(
                list(texts), add_special_tokens=False, truncation=False, verbose=False
            )
        return [len(row) for row in encoded["input_ids"]]

    def cross_encoder(self) -> CrossEncoder:
        """Return the model as a cross-encoder, with its limit and tokenizer if available."""
        names = ("max_seq_length", "max_length")  # ``max_length`` before version 6
        limits = [getattr(self._model, name, None) for name in names]
        limit = next((n for n in limits if type(n) is int and n <= 1_000_000), None)
        tokenizer = getattr(self._model, "tokenizer", None)
        special_tokens = getattr(tokenizer, "num_special_tokens_to_add", None)
        if not callable(tokenizer) or not callable(special_tokens):
            return CrossEncoder(self.score, None, limit)
        return CrossEncoder(self.score, None, limit, self.lengths, int(special_tokens(pair=True)))


_MODELS: WeakValueDictionary[tuple[int, str], PairModel] = WeakValueDictionary()
"""The caller of each model, by ``id``. A caller references its model, so the ``id`` is unique."""

_MODELS_LOCK = threading.Lock()


def _pair_model(model: Any, method: str) -> PairModel:
    """Return the caller of a model, shared by all rerankers with this model."""
    pair_model = PairModel(model, method)
    with _MODELS_LOCK:
        return _MODELS.setdefault((id(model), method), pair_model)


def _checked_scores(output: Any, count: int) -> list[float]:
    """Return a model's scores as floats.

    Raises:
        RerankError: If the output is not one finite number per passage.
    """
    values = output.tolist() if hasattr(output, "tolist") else output
    try:
        scores = [_as_float(v) for v in (values if hasattr(values, "__iter__") else [values])]
    except (TypeError, ValueError) as error:
        raise RerankError(
            f"the model returned {output!r:.80} for {count} passages; it must return one number "
            "per passage (a cross-encoder with num_labels=1)"
        ) from error
    if len(scores) != count:
        raise RerankError(
            f"the model returned {len(scores)} scores for {count} passages; it must return one "
            "per passage, in their order"
        )
    for index, score in enumerate(scores, 1):
        if not math.isfinite(score):
            raise RerankError(
                f"the model returned {score!r} for passage {index} of {count}; scores must be "
                "finite numbers: look for overflow in half precision, or an empty passage"
            )
    return scores


def _as_float(value: Any) -> float:
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, list | tuple):
        (value,) = value
    if isinstance(value, str):
        raise TypeError("a score must be a number, got a text")
    return float(value)


def _accepts(function: Callable[..., Any], parameter: str) -> bool:
    try:
        return parameter in inspect.signature(function).parameters
    except (TypeError, ValueError):  # written in C
        return False
