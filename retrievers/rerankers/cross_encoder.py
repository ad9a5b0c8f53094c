"""Cross-encoders: models that score pairs of a query and a passage."""

from __future__ import annotations

import inspect
import math
import threading
from bisect import bisect_left, bisect_right
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol
from weakref import WeakValueDictionary

from ...nodegraph.locking import Lock
from ...nodegraph.models.model_objects import check_is_model, is_async
from ...nodegraph.plugins import MODELS, load_plugin, plugins
from ...nodegraph.splitters.chunking import Length, Measure
from ..plans.plan import Do, run
from ..protocols import RerankError

if TYPE_CHECKING:
    import numpy as np

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
        length: Counts tokens with the model's tokenizer. None: unknown.
        special_tokens: Number of tokens that the model adds to a pair.
        pairs: Scores tokenized pairs. None: ``score`` is used.
    """

    score: ScoreFunction
    ascore: AsyncScoreFunction | None = None
    max_tokens: int | None = None
    length: Length | None = None
    special_tokens: int = 4
    pairs: PairScorer | None = None

    def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return the score of each passage. Without passages, the model is not called.

        Raises:
            RerankError: If the model fails or does not return one finite number per passage.
        """
        return run(partial(self.plan, query, [QueryPassage(query, text) for text in texts]))

    async def plan(self, query: str, pairs: Sequence[QueryPassage]) -> list[float]:
        """Return the scores of a query's pairs. A model without async function runs in a thread."""
        if not pairs:
            return []
        texts = [pair.text for pair in pairs]
        score = partial(self.score, query, texts)
        if self.pairs is not None:
            score = partial(self.pairs.scores, pairs)
        ascore = None if self.ascore is None else partial(self.ascore, query, texts)
        try:
            return _checked_scores((await Do(score, ascore)), len(pairs))
        except RerankError:
            raise
        except Exception as error:
            raise RerankError(
                f"the model failed on {len(pairs)} passage{'' if len(pairs) == 1 else 's'}: "
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
        >>> model.scores("tea", ["tea or tea", "water"])
        [2.0, 0.0]
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
            return _scorer_of(model, method).cross_encoder()
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


Tokens = Mapping[str, "np.ndarray[Any, Any]"]
"""The output of a tokenizer for a text, by the model's input names."""


class DirectModel(Protocol):
    """A cross-encoder that is computed from tokens.

    The plugin ``pairs`` of ``nodekin.models`` creates it.
    """

    @property
    def is_usable(self) -> bool:
        """Whether the model accepts unmodified pairs."""

    def tokenized(
        self, queries: Sequence[str], texts: Sequence[str], truncation: bool
    ) -> list[Tokens]:
        """Tokenize pairs, including the model's special tokens."""

    def computed(self, tokens: Sequence[Tokens]) -> Any:
        """Return the scores of pairs."""


@dataclass(frozen=True, slots=True)
class QueryPassage:
    """A query and a passage. Their tokens are set if the pair is tokenized and within the limit."""

    query: str
    text: str
    tokens: Tokens | None = None


class PairScorer:
    """A thread-safe caller of a model that scores pairs of a query and a passage.

    Calls are sequential, because these models are not thread-safe.

    A ``CrossEncoder`` of sentence-transformers that consists of one transformer is computed without
    its ``predict`` method. Pairs are tokenized only once and batched by length. The scores equal
    the scores of ``predict``, except for rounding.

    Args:
        model: The model.
        method: The name of the model's method for pairs.
    """

    def __init__(self, model: Any, method: str) -> None:
        self._model = model
        self._method = method
        self._lock = Lock()
        self._tokenizing = Lock()
        self._direct: DirectModel | None = None
        if type(model).__module__.startswith("sentence_transformers.cross_encoder"):
            self._direct = (
                load_plugin(MODELS, "pairs")(model) if "pairs" in plugins(MODELS) else None
            )

    def __reduce__(self) -> tuple[Callable[..., PairScorer], tuple[Any, ...]]:
        return _scorer_of, (self._model, self._method)

    def __call__(self, query: str, texts: Sequence[str]) -> Any:
        """Return the model's scores of passages for a query."""
        return self.scores([QueryPassage(query, text) for text in texts])

    def scores(self, pairs: Sequence[QueryPassage]) -> Any:
        """Return the model's scores of pairs, in the form of the model."""
        with self._lock.held():
            return self._scores(pairs)

    def _scores(self, pairs: Sequence[QueryPassage]) -> Any:
        if self.is_direct and self._direct is not None:
            missing = [pair for pair in pairs if pair.tokens is None]
            truncated = iter(self.tokenized(missing, truncation=True))
            return self._direct.computed([pair.tokens or next(truncated) for pair in pairs])
        method = getattr(self._model, self._method)
        options = {"show_progress_bar": False} if _accepts(method, "show_progress_bar") else {}
        with self._tokenizing.held():
            return method([(pair.query, pair.text) for pair in pairs], **options)

    @property
    def is_direct(self) -> bool:
        """Whether this class tokenizes the pairs."""
        return self._direct is not None and self._direct.is_usable

    def tokenized(self, pairs: Sequence[QueryPassage], truncation: bool = False) -> list[Tokens]:
        """Tokenize pairs, for a model that ``is_direct``."""
        assert self._direct is not None
        queries, texts = [pair.query for pair in pairs], [pair.text for pair in pairs]
        with self._tokenizing.held():
            return self._direct.tokenized(queries, texts, truncation)

    def lengths(self, texts: Sequence[str]) -> list[int]:
        """Count the tokens of texts with the model's tokenizer."""
        if not texts:
            return []
        with self._tokenizing.held():
            encoded = self._model.tokenizer(
                list(texts), add_special_tokens=False, truncation=False, verbose=False
            )
        return [len(row) for row in encoded["input_ids"]]

    def measures(self, texts: Sequence[str]) -> list[Measure]:
        """Return a token counter for the spans of each text, for a model that ``is_direct``.

        The text of a span may have one more token, if the tokenizer marks the beginning of a text.
        """
        if not texts:
            return []
        with self._tokenizing.held():
            encoded = self._model.tokenizer(
                list(texts),
                add_special_tokens=False,
                truncation=False,
                verbose=False,
                return_offsets_mapping=True,
            )
        return [*map(_span_measure, encoded["offset_mapping"])]

    def length(self, text: str) -> int:
        """Count the tokens of a text."""
        return self.lengths([text])[0]

    def cross_encoder(self) -> CrossEncoder:
        """Return the model as a cross-encoder, with its limit and tokenizer if available."""
        limit = None
        for name in ("max_seq_length", "max_length"):  # ``max_length`` before version 6
            limit = getattr(self._model, name, None) if limit is None else limit
        if isinstance(limit, bool) or not isinstance(limit, int) or limit > 1_000_000:
            limit = None
        tokenizer = getattr(self._model, "tokenizer", None)
        special_tokens = getattr(tokenizer, "num_special_tokens_to_add", None)
        if not callable(tokenizer) or not callable(special_tokens):
            return CrossEncoder(self, None, limit, pairs=self)
        return CrossEncoder(self, None, limit, self.length, int(special_tokens(pair=True)), self)


def _span_measure(offsets: Sequence[tuple[int, int]]) -> Measure:
    starts, ends = sorted(start for start, _ in offsets), sorted(end for _, end in offsets)

    return lambda start, end: bisect_left(starts, end) - bisect_right(ends, start)


_SCORERS: WeakValueDictionary[tuple[int, str], PairScorer] = WeakValueDictionary()
"""The scorer of each model, by ``id``. A scorer references its model, so the ``id`` is unique."""

_SCORERS_LOCK = threading.Lock()


def _scorer_of(model: Any, method: str) -> PairScorer:
    """Return the scorer of a model, shared by all rerankers with this model."""
    scorer = PairScorer(model, method)
    with _SCORERS_LOCK:
        return _SCORERS.setdefault((id(model), method), scorer)


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
            f"the model gave {output!r:.80} for {count} passages; it has to give one number a "
            "passage (a cross-encoder with num_labels=1)"
        ) from error
    if len(scores) != count:
        raise RerankError(
            f"the model gave {len(scores)} scores for {count} passages; it has to give one a "
            "passage, in their order"
        )
    for index, score in enumerate(scores, 1):
        if not math.isfinite(score):
            raise RerankError(
                f"the model gave {score!r} for passage {index} of {count}; a score is a finite "
                "number: look for overflow in half precision, or an empty passage"
            )
    return scores


def _as_float(value: Any) -> float:
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
