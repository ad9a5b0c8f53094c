"""Know a model that scores passages for a query by its shape, and call it."""

from __future__ import annotations

import asyncio
import inspect
import math
import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...nodegraph.models import is_async
from ...nodegraph.splitters import Length
from ..protocols import RerankError

Score = Callable[[str, list[str]], Any]
"""Takes a query and passages, returns one number for each, higher for a better one."""

AsyncScore = Callable[[str, list[str]], Awaitable[Any]]

PAIR_METHODS = ("predict", "score", "compute_score")


@dataclass(frozen=True, slots=True)
class CrossEncoder:
    """Hold a model that reads a query and a passage together, and how it is called.

    Attributes:
        call: Scores passages for a query.
        acall: The same without blocking the event loop; None where the model has no such form.
        limit: How many tokens it reads of a pair; None where it does not say.
        length: Counts tokens as the model does; None where it does not say.
        special: How many tokens it puts around and between query and passage.
    """

    call: Score
    acall: AsyncScore | None = None
    limit: int | None = None
    length: Length | None = None
    special: int = 4

    def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return the score of each passage; no passages need no model.

        Raises:
            RerankError: If the model fails, or its scores are not one finite number a passage.
        """
        if not texts:
            return []
        try:
            made = self.call(query, list(texts))
            return check_scores(made, len(texts))
        except RerankError:
            raise
        except Exception as error:
            raise _failure(len(texts), error) from error

    async def ascores(self, query: str, texts: Sequence[str]) -> list[float]:
        """Do the same without blocking, in a thread where the model has no async form."""
        if self.acall is None or not texts:
            return await asyncio.to_thread(self.scores, query, texts)
        try:
            made = await self.acall(query, list(texts))
            return check_scores(made, len(texts))
        except RerankError:
            raise
        except Exception as error:
            raise _failure(len(texts), error) from error


def as_cross_encoder(model: Any) -> CrossEncoder:
    """Take a model in any of the forms people have, known by its shape.

    - an object with ``rerank(query, texts)`` that returns scores, and ``arerank`` where it has an
      async form: such as ``RerankEndpoint`` of nodekin.adapters, or a model of fastembed;
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
    _refuse_what_is_no_model(model)
    if callable(getattr(model, "rerank", None)):
        return CrossEncoder(model.rerank, getattr(model, "arerank", None))
    for method in PAIR_METHODS:
        if callable(getattr(model, method, None)):
            pairs = Pairs(model, method)
            measured = pairs.measured()
            return CrossEncoder(pairs, None, *measured)
    if not callable(model):
        raise TypeError(
            f"{model!r:.80} is no reranking model; give a function from a query and a list of "
            "passages to their scores, or a cross-encoder of sentence-transformers or LangChain"
        )
    if is_async(model):
        raise TypeError(
            f"{model!r:.80} is async alone; give an object with both: rerank(query, texts) and "
            "async arerank(query, texts)"
        )
    return CrossEncoder(model)


class Pairs:
    """Call a model that scores pairs.

    One call at a time: the tokenizers below can't be used by two threads at once.
    """

    def __init__(self, model: Any, method: str) -> None:
        self._model = model
        self._method = method
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[Pairs], tuple[Any, ...]]:
        return type(self), (self._model, self._method)

    def __call__(self, query: str, texts: list[str]) -> Any:
        """Return what the model makes of the pairs."""
        call = getattr(self._model, self._method)
        settings = {"show_progress_bar": False} if _takes(call, "show_progress_bar") else {}
        with self._lock:
            return call([(query, text) for text in texts], **settings)

    def length(self, text: str) -> int:
        """Count the tokens of a text by the model's own tokenizer."""
        with self._lock:
            made = self._model.tokenizer(
                text, add_special_tokens=False, truncation=False, verbose=False
            )
        return len(made["input_ids"])

    def measured(self) -> tuple[int | None, Length | None, int]:
        """Return how much the model reads, its counter, and its special tokens, if it says."""
        limit = None
        for name in ("max_seq_length", "max_length"):  # before version 6 the second
            limit = getattr(self._model, name, None) if limit is None else limit
        if isinstance(limit, bool) or not isinstance(limit, int) or limit > 1_000_000:
            limit = None
        tokenizer = getattr(self._model, "tokenizer", None)
        count = getattr(tokenizer, "num_special_tokens_to_add", None)
        if not callable(tokenizer) or not callable(count):
            return limit, None, 4
        return limit, self.length, int(count(pair=True))


def check_scores(made: Any, count: int) -> list[float]:
    """Return scores as floats.

    Raises:
        RerankError: If they are not one finite number a passage.
    """
    plain = made.tolist() if hasattr(made, "tolist") else made
    try:
        scores = [_number(each) for each in (plain if hasattr(plain, "__iter__") else [plain])]
    except (TypeError, ValueError) as error:
        raise RerankError(
            f"the model gave {made!r:.80} for {count} passages; it has to give one number a "
            "passage (a cross-encoder with num_labels=1)"
        ) from error
    if len(scores) != count:
        raise RerankError(
            f"the model gave {len(scores)} scores for {count} passages; it has to give one a "
            "passage, in their order"
        )
    bad = next((at for at, score in enumerate(scores) if not math.isfinite(score)), None)
    if bad is not None:
        raise RerankError(
            f"the model gave {scores[bad]!r} for passage {bad + 1} of {count}; a score is a finite "
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


def _failure(count: int, error: Exception) -> RerankError:
    return RerankError(
        f"the model failed on {count} passage{'' if count == 1 else 's'}: "
        f"{type(error).__name__}: {error}"
    )


def _refuse_what_is_no_model(model: Any) -> None:
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


def _takes(call: Callable[..., Any], name: str) -> bool:
    try:
        return name in inspect.signature(call).parameters
    except (TypeError, ValueError):  # written in C
        return False
