"""Rerank results by a model that reads query and passage together."""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ...nodegraph.errors import check_integer
from ...nodegraph.locking import Lock
from ...nodegraph.models.model_objects import check_is_model, is_async
from ...nodegraph.node import Node
from ...nodegraph.search_text import SearchTextOption, as_search_text
from ...nodegraph.splitters.chunking import (
    CLAUSES,
    WORDS,
    Length,
    Span,
    count_tokens,
    cut_to_fit,
    pack,
)
from ...nodegraph.splitters.sentences import sentence_spans
from ..plans.effects import Compute
from ..plans.plan import Plan, apaid, arun, paid, run
from ..protocols import RerankError, by_score
from ..results import Evidence, Results, ScoredNode
from ..tracing import start_span


def passage_windows(
    text: str, limit: int, overlap: int | None = None, length: Length = count_tokens
) -> list[Span]:
    """Return the start and end of the windows that cover a text. One for a text within the limit.

    A window has whole sentences. Of a sentence longer than the limit it has clauses, words, or
    any characters, no longer than the overlap. White space at its ends is left out.

    Args:
        text: The passage.
        limit: How long a window is at most. A single character is a window even if it is longer.
        overlap: How much of a window the next one repeats, at most, in whole sentences or parts
            of long ones. None for ``default_overlap(limit)``.
        length: Measures a text, by default in tokens (an estimate). It should grow with the text.

    Raises:
        ValueError: If the limit is below 1, the overlap negative or not below the limit.

    Example:
        >>> text = "Tea is a leaf. It is picked by hand. It is dried."
        >>> [text[start:end] for start, end in passage_windows(text, 11, 6)]
        ['Tea is a leaf. It is picked by hand.', 'It is picked by hand. It is dried.']
    """
    check_integer(limit, "limit", 1)
    overlap = default_overlap(limit) if overlap is None else overlap
    if not 0 <= overlap < limit:
        raise ValueError(
            f"overlap must be 0 or more and less than limit ({limit}), not {overlap!r}"
        )
    if length(text) <= limit:
        return [(0, len(text))]
    parts: list[Span] = []
    for sentence in sentence_spans(text):
        start, end = sentence
        if length(text[start:end]) <= limit:
            parts.append(sentence)
        else:
            parts += cut_to_fit(text, sentence, overlap or limit, length, (CLAUSES, WORDS))
    return pack(text, parts, limit, overlap, length) or [(0, 0)]


def default_overlap(limit: int) -> int:
    """Return two sevenths of a window, at most 80 (as in QAnything)."""
    return min(80, 2 * limit // 7)


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
        ascore: The same without blocking the event loop. None if the model has no such function.
        max_tokens: How many tokens the model reads of a pair. None if unknown.
        length: Counts tokens as the model does. None if unknown.
        special_tokens: How many tokens the model adds to query and passage.
    """

    score: ScoreFunction
    ascore: AsyncScoreFunction | None = None
    max_tokens: int | None = None
    length: Length | None = None
    special_tokens: int = 4

    def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return the score of each passage. The model is not called without passages.

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
            scores = yield from Compute(score, ascore)
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
        TypeError: If it is none. The error says what to give instead.

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
        "server: RerankEndpoint({name}, base_url=...), from nodekin.adapters.rerank_endpoint",
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
        self._lock = Lock("another thread that scores")

    def __reduce__(self) -> tuple[type[PairScorer], tuple[Any, ...]]:
        return type(self), (self._model, self._method)

    def __call__(self, query: str, texts: list[str]) -> Any:
        """Return the model's scores of the passages."""
        method = getattr(self._model, self._method)
        options = {"show_progress_bar": False} if _accepts(method, "show_progress_bar") else {}
        with self._lock.held():
            return method([(query, text) for text in texts], **options)

    def length(self, text: str) -> int:
        """Count the tokens of a text by the model's own tokenizer."""
        with self._lock.held():
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


_BREAK = re.compile(r"\n+| > ")  # between fields, and between headings

ESTIMATED_LIMIT = 400
"""For models that read 512 tokens, of which we estimate the count: a fifth for the error."""


class CrossEncoderReranker:
    """Score results by a cross-encoder. A long passage counts with its best window.

    Choose it where the best of a few dozen results matter: a model that reads both texts at once
    ranks better than any similarity, and takes milliseconds a passage (Nogueira and Cho,
    "Passage re-ranking with BERT", 2019). A long passage gets the score of its best window (Dai
    and Callan, "Deeper text understanding for IR with contextual neural language modeling",
    2019).

    Args:
        model: A cross-encoder, a function, or an endpoint. See ``as_cross_encoder``.
        max_tokens: How many tokens of a query and a passage the model reads together. None for
            the model's own limit, else 400, counted by ``length``.
        overlap: How many tokens two windows of a passage share. None for two sevenths of a
            window, at most 80.
        length: Counts a text's tokens. None for the model's own tokenizer if it has one, else
            an estimate.
        search_text: What the model reads of a node, as for ``NodeGraph``: a metadata field, a
            list of them, a ``SearchText``, a function. False for the text alone. None for the
            node's ``searched_text``, by which it was found. What it adds to the text is read with
            every window and gets at most a quarter of ``max_tokens``: of fields and headings the
            first are left out for that.

    Raises:
        TypeError: If it is no model, or an argument is of the wrong type.
        ValueError: If a number is out of range.

    Example:
        >>> from nodekin.nodegraph import Node
        >>> from nodekin.retrievers import ScoredNode
        >>> model = lambda query, texts: [text.count(query) for text in texts]
        >>> results = [ScoredNode(Node("water"), 2.0), ScoredNode(Node("tea, tea"), 1.0)]
        >>> [(r.node.text, r.score) for r in CrossEncoderReranker(model).rerank(results, "tea")]
        [('tea, tea', 2.0), ('water', 0.0)]
    """

    name = "ModuleReranker"

    def __init__(
        self,
        model: Any,
        *,
        max_tokens: int | None = None,
        overlap: int | None = None,
        length: Length | None = None,
        search_text: SearchTextOption = None,
    ) -> None:
        self.model = model
        self._model = as_cross_encoder(model)
        limit = self._model.max_tokens if length is None else None
        self.max_tokens = limit or ESTIMATED_LIMIT
        if max_tokens is not None:
            self.max_tokens = check_integer(max_tokens, "max_tokens", 1)
        self.overlap = None if overlap is None else check_integer(overlap, "overlap", 0)
        if not (length is None or callable(length)):
            raise TypeError(f"length is a function, not {length!r:.80}; leave it out for None")
        self.length = length or self._model.length or count_tokens
        self.search_text = as_search_text(search_text)

    def __repr__(self) -> str:
        limit, search_text = self.max_tokens, self.search_text
        return f"CrossEncoderReranker(max_tokens={limit}, search_text={search_text!r})"

    def rerank(self, results: Sequence[ScoredNode], query: str) -> Results:
        """Return all results by their new scores, best first. Equal ones in their old order.

        Raises:
            RerankError: If the model fails, or its scores are no finite numbers.
        """
        return run(self._plan(results, query))

    async def arerank(self, results: Sequence[ScoredNode], query: str) -> Results:
        """Async version of `rerank`."""
        return await arun(self._plan(results, query))

    def _plan(self, results: Sequence[ScoredNode], query: str) -> Plan[Results]:
        passages = yield from Compute(partial(self._passages, results, query))
        texts = [text for passage in passages for text in passage.texts]
        with start_span("model", passages=len(passages), windows=len(texts)):
            scores = yield from self._model.plan(query, texts)
        return self._ranked(passages, scores, query)

    def _passages(self, results: Sequence[ScoredNode], query: str) -> list[_WindowedPassage]:
        """Split results into windows that the model can read."""
        if not results:
            return []
        used = self.length(query) + self._model.special_tokens
        # The model cuts a query that is as long as what it reads.
        limit = max(self.max_tokens - used, self.max_tokens // 4, 1)
        passages = []
        for result in results:
            prefix, text, suffix = self._parts(result.node, self.max_tokens // 4)
            added = self.length(prefix + suffix) if prefix or suffix else 0
            budget = max(1, limit - added)
            overlap = (
                default_overlap(budget) if self.overlap is None else min(self.overlap, budget // 2)
            )
            spans = passage_windows(text, budget, overlap, self.length)
            texts = [f"{prefix}{text[a:b]}{suffix}" for a, b in spans]
            passages.append(_WindowedPassage(result, text, spans, texts))
        return passages

    def _parts(self, node: Node, limit: int) -> tuple[str, str, str]:
        """Return what is read before a window, the text to cut windows from, what is read after.

        Args:
            node: The node.
            limit: How long the first and the last may be together.
        """
        rule, text = self.search_text, node.text
        searched = node.searched_text if rule is None else rule(node)
        core = text.strip()
        if searched == text or not core:
            return "", text, ""
        prefix, match, suffix = searched.rpartition(core)
        if not match:
            return "", searched, ""
        if self.length(prefix + suffix) > limit:
            suffix = ""
        while prefix and self.length(prefix) > limit:
            stop_at = _BREAK.search(prefix)
            prefix = prefix[stop_at.end() :] if stop_at else ""
        return prefix, text, suffix

    def _ranked(
        self, passages: Sequence[_WindowedPassage], scores: Sequence[float], query: str
    ) -> Results:
        """Rank passages by the score of their best window, the first of equal ones."""
        ranked, remaining = [], iter(scores)
        for passage in passages:
            scores_of = [next(remaining) for _ in passage.spans]
            best = max(range(len(scores_of)), key=scores_of.__getitem__)
            node = passage.result.node
            is_window = len(scores_of) > 1 and passage.text == node.text
            match = _window(node, passage.spans[best]) if is_window else node
            evidence = Evidence(match, scores_of[best], self.name, query)
            ranked.append(ScoredNode(node, scores_of[best], (evidence, *passage.result.evidence)))
        return by_score(ranked)


@dataclass(frozen=True, slots=True)
class _WindowedPassage:
    """A result, the text that windows are cut from, the windows, what the model reads of them."""

    result: ScoredNode
    text: str
    spans: list[Span]
    texts: list[str]


def _window(node: Node, span: Span) -> Node:
    """Return a part of a node as its child, which has no id of its own."""
    start, stop_at = span
    return replace(
        node,
        text=node.text[start:stop_at],
        content=None,
        id="",
        parent_id=node.id or None,
        start=None if node.start is None else node.start + start,
        end=None if node.start is None else node.start + stop_at,
        offset=None if node.start is None else start,
    )
