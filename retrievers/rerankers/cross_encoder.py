"""Models that score passages for a query, in the forms that libraries have."""

from __future__ import annotations

import inspect
import math
import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ...nodegraph.models.embedder_adapters import is_async
from ...nodegraph.splitters.chunking import Length
from ..plans.effects import Compute
from ..plans.one_state import apaid, paid
from ..plans.plan import Plan, run
from ..protocols import RerankError

ScoreFunction = Callable[[str, list[str]], Any]
"""Takes a query and passages, returns one number for each passage, higher for a better one."""

AsyncScoreFunction = Callable[[str, list[str]], Awaitable[Any]]

PAIR_METHODS = ("predict", "score", "compute_score")
"""The methods of libraries that score pairs of a query and a passage."""


@dataclass(frozen=True, slots=True)
class CrossEncoder:
    """Hold the functions and limits of a model that reads a query and a passage together.

    Attributes:
        score: Scores passages for a query.
        ascore: The same without blocking the event loop; None if the model has no such function.
        max_tokens: How many tokens the model reads of a pair; None if unknown.
        length: Counts tokens as the model does; None if unknown.
        special_tokens: How many tokens the model adds to query and passage.
    """

    score: ScoreFunction
    ascore: AsyncScoreFunction | None = None
    max_tokens: int | None = None
    length: Length | None = None
    special_tokens: int = 4

    def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return the score of each passage; the model is not called without passages.

        Raises:
            RerankError: If the model fails, or its scores are not one finite number a passage.
        """
        return run(self.plan(query, texts))

    def plan(self, query: str, texts: Sequence[str]) -> Plan[list[float]]:
        """Return the same as a plan, which runs in a thread if the model has no async function."""
        if not texts:
            return []
        key = "scores", id(self.score), query, tuple(texts)
        score: Callable[[], Any] = partial(paid, key, partial(self.score, query, list(texts)))
        ascore: Callable[[], Awaitable[Any]] | None = None
        if self.ascore is not None:
            ascore = partial(apaid, key, partial(self.ascore, query, list(texts)))
        try:
            scores = yield from Compute(
                score, None if ascore is None else partial(apaid, key, ascore)
            )
            return _checked_scores(scores, len(texts))
        except RerankError:
            raise
        except Exception as error:
            raise RerankError(
                f"the model failed on {len(texts)} passage{'' if len(texts) == 1 else 's'}: "
                f"{type(error).__name__}: {error}"
            ) from error


def as_cross_encoder(model: Any) -> CrossEncoder:
    """Return a model of any of these forms as a ``CrossEncoder``.

    - an object with ``rerank(query, texts)`` that returns scores, and optionally ``arerank``,
      its async form: such as ``RerankEndpoint`` of nodekin.adapters, or a model of fastembed;
    - ``predict(pairs)`` of sentence-transformers, ``score(pairs)`` of LangChain,
      ``compute_score(pairs)`` of FlagEmbedding, for pairs of the query and a passage;
    - a function of the query and a list of passages that returns their scores.

    Raises:
        TypeError: If it is none; the error says what to give instead.

    Example:
        >>> model = as_cross_encoder(lambda query, texts: [text.count(query) for text in texts])
        >>> model.scores("tea", ["tea or tea", "water"])
        [2.0, 0.0]
    """
    if isinstance(model, CrossEncoder):
        return model
    if isinstance(model, str | Path):
        raise TypeError(
            f"{str(model)!r} is the name of a model, not a model; load it, for example with "
            f"sentence_transformers.CrossEncoder({str(model)!r}), or name it to a server: "
            f"RerankEndpoint({str(model)!r}, base_url=...), from nodekin.adapters.rerank_endpoint"
        )
    if model is None or inspect.isclass(model):
        name = "None" if model is None else f"the class {model.__qualname__}"
        raise TypeError(
            f"{name} is no reranking model; give a model: a cross-encoder, or a function from a "
            "query and a list of passages to their scores"
        )
    if callable(getattr(model, "rerank", None)):
        return CrossEncoder(model.rerank, getattr(model, "arerank", None))
    for method in PAIR_METHODS:
        if callable(getattr(model, method, None)):
            return PairScorer(model, method).cross_encoder()
    if not callable(model):
        raise TypeError(
            f"{model!r:.80} is no reranking model; give a function from a query and a list of "
            "passages to their scores, or a cross-encoder of sentence-transformers or LangChain"
        )
    if is_async(model):
        raise TypeError(
            f"{model!r:.80} is only async; give an object with both: rerank(query, texts) and "
            "async arerank(query, texts)"
        )
    return CrossEncoder(model)


class PairScorer:
    """Call a model that scores pairs of a query and a passage.

    One call at a time: the tokenizers of these models can't be used by two threads at once.

    Args:
        model: The model.
        method: The name of its method for pairs.
    """

    def __init__(self, model: Any, method: str) -> None:
        self._model = model
        self._method = method
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[PairScorer], tuple[Any, ...]]:
        return type(self), (self._model, self._method)

    def __call__(self, query: str, texts: list[str]) -> Any:
        """Return the model's scores of the passages."""
        method = getattr(self._model, self._method)
        options = {"show_progress_bar": False} if _accepts(method, "show_progress_bar") else {}
        with self._lock:
            return method([(query, text) for text in texts], **options)

    def length(self, text: str) -> int:
        """Count the tokens of a text by the model's own tokenizer."""
        with self._lock:
            encoded = self._model.tokenizer(
                text, add_special_tokens=False, truncation=False, verbose=False
            )
        return len(encoded["input_ids"])

    def cross_encoder(self) -> CrossEncoder:
        """Return the model as a cross-encoder, with its limit and tokenizer if it has them."""
        limit = None
        for name in ("max_seq_length", "max_length"):  # the second before version 6
            limit = getattr(self._model, name, None) if limit is None else limit
        if isinstance(limit, bool) or not isinstance(limit, int) or limit > 1_000_000:
            limit = None
        tokenizer = getattr(self._model, "tokenizer", None)
        special_tokens = getattr(tokenizer, "num_special_tokens_to_add", None)
        if not callable(tokenizer) or not callable(special_tokens):
            return CrossEncoder(self, max_tokens=limit)
        return CrossEncoder(self, None, limit, self.length, int(special_tokens(pair=True)))


def _checked_scores(output: Any, count: int) -> list[float]:
    """Return a model's scores as floats.

    Raises:
        RerankError: If they are not one finite number a passage.
    """
    values = output.tolist() if hasattr(output, "tolist") else output
    try:
        scores = [_number(v) for v in (values if hasattr(values, "__iter__") else [values])]
    except (TypeError, ValueError) as error:
        raise RerankError(
            f"the model gave {output!r:.80} for {count} passages; it has to give one number a "
            "passage (a cross-encoder with num_labels=1)"
        ) from error
    if len(scores) != count:
        raise RerankError(
            f"the model gave {len(scores)} scores for {count} passages; it has to give one a "
            "passage, in their order"
        )
    for number, score in enumerate(scores, 1):
        if not math.isfinite(score):
            raise RerankError(
                f"the model gave {score!r} for passage {number} of {count}; a score is a finite "
                "number: look for overflow in half precision, or an empty passage"
            )
    return scores


def _number(value: Any) -> float:
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, list | tuple):
        (value,) = value
    if isinstance(value, str):
        raise TypeError("a text is no number")
    return float(value)


def _accepts(function: Callable[..., Any], parameter: str) -> bool:
    try:
        return parameter in inspect.signature(function).parameters
    except (TypeError, ValueError):  # written in C
        return False
