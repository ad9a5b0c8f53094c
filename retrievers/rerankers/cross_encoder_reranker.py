"""A reranker that uses a cross-encoder, a model that reads a query together with a passage."""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

from ...nodegraph.concurrency import fork_safe_lock
from ...nodegraph.errors import check_integer
from ...nodegraph.models.model_objects import check_is_model, is_async
from ...nodegraph.node import Node
from ...nodegraph.splitters.chunking import (
    CLAUSES,
    WORDS,
    Length,
    Measure,
    Span,
    count_tokens,
    cut_to_fit,
    measured,
    pack,
)
from ...nodegraph.splitters.sentences import sentence_spans
from ..plans.plan import Do, arun, run
from ..protocols import RerankError, by_score
from ..results import Evidence, Results, ScoredNode
from ..tracing import start_span
from ..validation import parameters_of

# Methods of sentence-transformers, LangChain and FlagEmbedding.
_PAIR_METHODS = ("predict", "score", "compute_score")

_LOCKS: dict[int, threading.RLock] = {}  # the locks, by the id of the model object


@dataclass(frozen=True, slots=True)
class CrossEncoder:
    """The functions and limits of a cross-encoder.

    Attributes:
        score: A function that returns a score for each passage, given a query. A higher score is
            better.
        ascore: The asynchronous version of ``score``. If None, ``score`` runs in a thread.
        max_tokens: The maximum number of tokens of a query and a passage, or None if it is unknown.
        lengths: A function that counts the tokens of texts with the model's tokenizer, or None if
            the model has no tokenizer.
        special_tokens: The number of special tokens that the model adds to a query and a passage.
    """

    score: Callable[[str, list[str]], Any]
    ascore: Callable[[str, list[str]], Awaitable[Any]] | None = None
    max_tokens: int | None = None
    lengths: Callable[[Sequence[str]], list[int]] | None = None
    special_tokens: int = 4


def as_cross_encoder(model: Any) -> CrossEncoder:
    """Convert a reranking model to a ``CrossEncoder``.

    The following models are supported:

    - objects with a method ``rerank(query, texts)`` that returns scores, and optionally the
      asynchronous version ``arerank``, such as ``RerankEndpoint`` from nodekin.adapters or a
      fastembed model
    - objects with a method that scores pairs of a query and a passage: ``predict(pairs)``
      (sentence-transformers), ``score(pairs)`` (LangChain) or ``compute_score(pairs)``
      (FlagEmbedding)
    - functions that receive a query and a list of passages, and return their scores

    Raises:
        TypeError: If the model is not supported. The message explains what to do.

    Example:
        >>> model = as_cross_encoder(lambda query, texts: [text.count(query) for text in texts])
        >>> model.score("tea", ["tea or tea", "water"])
        [2, 0]
    """
    check_is_model(
        model,
        "load it, for example with sentence_transformers.CrossEncoder({name}), or name it to a "
        "server: RerankEndpoint({name}, base_url=...), from nodekin.adapters.openai",
    )
    if callable(getattr(model, "rerank", None)):
        return CrossEncoder(model.rerank, getattr(model, "arerank", None))
    for method in _PAIR_METHODS:
        if callable(getattr(model, method, None)):
            return _pair_model(model, method)
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


def _pair_model(model: Any, method: str) -> CrossEncoder:
    """Convert a model that scores pairs, with its token limit and tokenizer if available."""
    names = ("max_seq_length", "max_length")  # ``max_length`` before version 6
    limits = [getattr(model, name, None) for name in names]
    limit = next((n for n in limits if type(n) is int and n <= 1_000_000), None)
    score = partial(_score_pairs, model, method)
    tokenizer = getattr(model, "tokenizer", None)
    special_tokens = getattr(tokenizer, "num_special_tokens_to_add", None)
    if not callable(tokenizer) or not callable(special_tokens):
        return CrossEncoder(score, None, limit)
    lengths = partial(_token_counts, model)
    return CrossEncoder(score, None, limit, lengths, int(special_tokens(pair=True)))


def _lock_of(model: Any) -> threading.RLock:
    """Return the lock that protects a model and its tokenizer, which are not thread-safe."""
    return _LOCKS.setdefault(id(model), fork_safe_lock())


def _score_pairs(model: Any, method: str, query: str, texts: Sequence[str]) -> Any:
    score = getattr(model, method)
    has_progress = "show_progress_bar" in parameters_of(score)
    options = {"show_progress_bar": False} if has_progress else {}
    with _lock_of(model):
        return score([(query, text) for text in texts], **options)


def _token_counts(model: Any, texts: Sequence[str]) -> list[int]:
    if not texts:
        return []
    options = {"add_special_tokens": False, "truncation": False, "verbose": False}
    with _lock_of(model):
        encoded = model.tokenizer(list(texts), **options)
    return [len(row) for row in encoded["input_ids"]]


def _checked_scores(output: Any, count: int) -> list[float]:
    """Convert the output of a model to a list of floats.

    Raises:
        RerankError: If the output is not one finite number per passage.
    """
    values = as_list(output)
    if not hasattr(values, "__iter__"):
        values = [values]
    try:
        scores = [_as_float(value) for value in values]
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


def as_list(output: Any) -> Any:
    """Convert an array or a tensor to a list. Other values are returned unchanged."""
    return output.tolist() if hasattr(output, "tolist") else output


def _as_float(value: Any) -> float:
    value = as_list(value)
    if isinstance(value, list | tuple):
        (value,) = value
    if isinstance(value, str):
        raise TypeError("a score must be a number, got a text")
    return float(value)


def passage_windows(text: str, limit: int, overlap: int, measure: Measure) -> list[Span]:
    """Split a text that exceeds a limit into windows, and return their spans (start, end).

    A window consists of whole sentences. A sentence that exceeds the limit is split between
    clauses, between words or, as a last resort, between any two characters. Its parts are not
    longer than the overlap. White space at both ends of a window is excluded.

    Args:
        text: The passage.
        limit: The maximum length of a window. It is exceeded only if a single character is longer.
        overlap: The maximum length of the text that two adjacent windows share. The shared text
            consists of whole sentences, or of parts of long sentences.
        measure: A function that returns the length of a span of the text. The length should
            increase with the size of the span.
    """
    parts: list[Span] = []
    for sentence in sentence_spans(text):
        if measure(*sentence) <= limit:
            parts.append(sentence)
        else:
            parts += cut_to_fit(text, sentence, overlap or limit, measure, (CLAUSES, WORDS))
    return pack(text, parts, limit, overlap, measure) or [(0, 0)]


_BREAK = re.compile(r"\n+| > ")  # matches the separators between fields and between headings

# The maximum number of characters per token of the limit. Longer texts are not tokenized as a
# whole.
_CHARACTERS = 32

_ESTIMATED_LIMIT = 400  # a model limit of 512 tokens, minus a fifth for estimation errors


class CrossEncoderReranker:
    """A reranker that scores results with a cross-encoder.

    Use it if the order of the first few dozen results matters. A model that reads the query
    together with a passage ranks better than a similarity, but it takes milliseconds per passage
    (Nogueira and Cho, "Passage re-ranking with BERT", 2019). The score of a long passage is the
    score of its best window (Dai and Callan, "Deeper text understanding for IR with contextual
    neural language modeling", 2019). As in QAnything, adjacent windows share two sevenths of their
    tokens, but at most 80 tokens.

    The model reads the ``searched_text`` of the nodes. Metadata fields and headings are repeated in
    every window. They take up at most a quarter of ``max_tokens``. If they are longer, the first
    fields are omitted.

    Args:
        model: A cross-encoder of sentence-transformers, LangChain or FlagEmbedding, an object with
            a method ``rerank(query, texts)``, or a function that receives a query and a list of
            texts and returns their scores.
        max_tokens: The maximum number of tokens of a query and a passage. Defaults to the limit of
            the model. If this limit is unknown, or if ``length`` is given, the default is 400.
        length: A function that counts the tokens of a text. Defaults to the model's tokenizer if
            there is one, and otherwise to an estimate.

    Raises:
        TypeError: If the model is not supported, or an argument has the wrong type.
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
        length: Length | None = None,
    ) -> None:
        self.model = model
        self._model = as_cross_encoder(model)
        limit = self._model.max_tokens if length is None else None
        self.max_tokens = limit or _ESTIMATED_LIMIT
        if max_tokens is not None:
            self.max_tokens = check_integer(max_tokens, "max_tokens", 1)
        if not (length is None or callable(length)):
            raise TypeError(f"length must be a function or None, got {length!r:.80}")
        self.length = length

    def __repr__(self) -> str:
        return f"CrossEncoderReranker(max_tokens={self.max_tokens})"

    def rerank(self, results: Sequence[ScoredNode], query: str) -> Results:
        """Return all results with new scores, best first. Equal scores keep their order.

        Raises:
            RerankError: If the model fails or returns invalid scores.
        """
        return run(lambda: self._plan(results, query))

    async def arerank(self, results: Sequence[ScoredNode], query: str) -> Results:
        """Asynchronous version of ``rerank``."""
        return await arun(lambda: self._plan(results, query))

    async def _plan(self, results: Sequence[ScoredNode], query: str) -> Results:
        passages = await Do(lambda: self._windows(results, query))
        texts: list[str] = []
        for _, _, windows in passages:
            texts += windows
        with start_span("model", passages=len(passages), windows=len(texts)):
            scores = iter(await self._scores(query, texts))
        ranked = []
        for result, (text, spans, windows) in zip(results, passages, strict=True):
            of_windows = [*islice(scores, len(windows))]
            best = max(range(len(of_windows)), key=of_windows.__getitem__)
            match = result.node
            if len(windows) > 1 and text == match.text:
                match = _window(match, spans[best])
            evidence = Evidence(match, of_windows[best], self.name, query)
            ranked.append(ScoredNode(result.node, of_windows[best], (evidence, *result.evidence)))
        return by_score(ranked)

    async def _scores(self, query: str, texts: list[str]) -> list[float]:
        """Return the score of each text."""
        if not texts:
            return []
        score = self._model.score
        ascore = self._model.ascore
        try:
            call = None if ascore is None else partial(ascore, query, texts)
            output = await Do(lambda: score(query, texts), call)
            return _checked_scores(output, len(texts))
        except RerankError:
            raise
        except Exception as error:
            raise RerankError(
                f"the model failed on {len(texts)} passage{'' if len(texts) == 1 else 's'}: "
                f"{type(error).__name__}: {error}"
            ) from error

    def _windows(self, results: Sequence[ScoredNode], query: str) -> list[Windows]:
        """Split the texts of results into windows that do not exceed the token limit."""
        parts = [self._parts(result.node) for result in results]
        texts = [query]
        for prefix, text, suffix in parts:
            texts += [prefix + suffix, text]
        length = self._counter(texts)
        # A long query may fill the token limit. The model truncates it, so reserve a quarter.
        quarter = self.max_tokens // 4
        limit = max(self.max_tokens - length(query) - self._model.special_tokens, quarter, 1)
        passages = []
        for prefix, text, suffix in parts:
            if length(prefix + suffix) > quarter:
                suffix = ""
            while prefix and length(prefix) > quarter:
                _, *remaining = _BREAK.split(prefix, maxsplit=1)
                prefix = "".join(remaining)
            budget = limit
            if prefix or suffix:
                budget = max(1, limit - length(prefix + suffix))
            measure = measured(text, length)
            spans = [(0, len(text))]
            if measure(0, len(text)) > budget:
                spans = passage_windows(text, budget, min(80, 2 * budget // 7), measure)
            windows = [f"{prefix}{text[start:end]}{suffix}" for start, end in spans]
            passages.append((text, spans, windows))
        return passages

    def _counter(self, texts: Sequence[str]) -> Length:
        """Return a function that counts tokens.

        If the model has a tokenizer, the given texts are counted in a single call. Texts that are
        much longer than the limit are not passed to the tokenizer.
        """
        if self.length is not None:
            return self.length
        if self._model.lengths is None:
            return count_tokens
        lengths = self._model.lengths
        readable = _CHARACTERS * self.max_tokens
        known = [text for text in {*texts} if len(text) <= readable]
        counts = dict(zip(known, lengths(known), strict=True))

        def count(text: str) -> int:
            if len(text) > readable:
                return readable
            if text not in counts:
                return lengths([text])[0]
            return counts[text]

        return count

    def _parts(self, node: Node) -> tuple[str, str, str]:
        """Split the text of a node into a prefix, a main text and a suffix.

        Only the main text is divided into windows. Each window repeats the prefix and the suffix.
        """
        text = node.text
        searched = node.searched_text
        core = text.strip()
        if searched == text or not core:
            return "", text, ""
        prefix, match, suffix = searched.rpartition(core)
        if not match:
            return "", searched, ""
        return prefix, text, suffix


Windows = tuple[str, list[Span], list[str]]
"""The text of a result, the spans of its windows, and the texts that the model reads."""


def _window(node: Node, span: Span) -> Node:
    """Return a part of a node as a child node without an id."""
    start, stop_at = span
    part = replace(
        node,
        text=node.text[start:stop_at],
        content=None,
        id="",
        parent_id=node.id or None,
        start=None,
        end=None,
        offset=None,
    )
    if node.start is None:
        return part
    return replace(part, start=node.start + start, end=node.start + stop_at, offset=start)
