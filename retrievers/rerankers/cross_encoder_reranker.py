"""Rerank results with a cross-encoder."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

from ...nodegraph.errors import check_integer
from ...nodegraph.node import Node
from ...nodegraph.search_text import SearchTextOption, as_search_text
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
from ..protocols import by_score
from ..results import Evidence, Results, ScoredNode
from ..tracing import start_span
from .cross_encoder import as_cross_encoder


def passage_windows(text: str, limit: int, overlap: int, measure: Measure) -> list[Span]:
    """Return the spans (start, end) of the windows of a text that is longer than the limit.

    A window consists of whole sentences. A sentence longer than the limit is split at clauses, then
    at words, then at any character, into parts no longer than the overlap. White space at the ends
    of a window is left out.

    Args:
        text: The passage.
        limit: Maximum length of a window. A single character may be longer.
        overlap: Maximum length of the text shared by two adjacent windows, in whole sentences or
            parts of long sentences.
        measure: Measures a span of the text. The length should grow with the span.
    """
    parts: list[Span] = []
    for sentence in sentence_spans(text):
        if measure(*sentence) <= limit:
            parts.append(sentence)
        else:
            parts += cut_to_fit(text, sentence, overlap or limit, measure, (CLAUSES, WORDS))
    return pack(text, parts, limit, overlap, measure) or [(0, 0)]


def default_overlap(limit: int) -> int:
    """Return two sevenths of a window, at most 80 (as in QAnything)."""
    return min(80, 2 * limit // 7)


_BREAK = re.compile(r"\n+| > ")  # between fields, and between headings

_CHARACTERS = 32
"""Characters per token of the limit. Longer texts are split before they are tokenized."""

ESTIMATED_LIMIT = 400
"""Limit for estimated counts: a model limit of 512 tokens, less a fifth for the error."""


class CrossEncoderReranker:
    """A reranker that scores results with a cross-encoder.

    Choose it if the order of the first few dozen results matters. A model that reads query and
    passage together ranks better than any similarity, and takes milliseconds per passage (Nogueira
    and Cho, "Passage re-ranking with BERT", 2019). A long passage gets the score of its best window
    (Dai and Callan, "Deeper text understanding for IR with contextual neural language modeling",
    2019).

    Args:
        model: A cross-encoder, a function or an endpoint. See ``as_cross_encoder``.
        max_tokens: Maximum number of tokens of a query and a passage. Defaults to the model's
            limit. If the limit is unknown or ``length`` is given, the default is 400.
        overlap: Number of tokens shared by two windows of a passage. Defaults to two sevenths of a
            window, at most 80.
        length: Counts the tokens of a text. Defaults to the model's tokenizer if it has one, else
            to an estimate.
        search_text: The text of a node for the model, as for ``NodeGraph``: a metadata field, a
            list of fields, a ``SearchText`` or a function. False: only the text. None: the
            ``searched_text`` of the node. Added fields and headings are repeated in every window
            and take at most a quarter of ``max_tokens``. If they are longer, the first fields are
            left out.

    Raises:
        TypeError: If the model is invalid or an argument has the wrong type.
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
            raise TypeError(f"length must be a function or None, got {length!r:.80}")
        self.length = length
        self.search_text = as_search_text(search_text)

    def __repr__(self) -> str:
        limit, search_text = self.max_tokens, self.search_text
        return f"CrossEncoderReranker(max_tokens={limit}, search_text={search_text!r})"

    def rerank(self, results: Sequence[ScoredNode], query: str) -> Results:
        """Return all results with their new scores, best first. Ties keep their order.

        Raises:
            RerankError: If the model fails or returns invalid scores.
        """
        return run(partial(self._plan, results, query))

    async def arerank(self, results: Sequence[ScoredNode], query: str) -> Results:
        """Async version of `rerank`."""
        return await arun(partial(self._plan, results, query))

    async def _plan(self, results: Sequence[ScoredNode], query: str) -> Results:
        passages = await Do(partial(self._passages, results, query))
        texts = [text for passage in passages for text in passage.texts]
        with start_span("model", passages=len(passages), windows=len(texts)):
            scores = iter(await self._model.scores(query, texts))
        return by_score(
            [p.ranked(self.name, query, [*islice(scores, len(p.texts))]) for p in passages]
        )

    def _passages(self, results: Sequence[ScoredNode], query: str) -> list[_WindowedPassage]:
        """Split results into windows within the token limit."""
        parts = [self._parts(result.node) for result in results]
        texts = [text for prefix, text, suffix in parts for text in (prefix + suffix, text)]
        length = self._counter([query, *texts])
        # A long query may fill the token limit. The model truncates it, so reserve a quarter.
        used = length(query) + self._model.special_tokens
        limit = max(self.max_tokens - used, self.max_tokens // 4, 1)
        return [
            self._windowed(result, _shortened(part, self.max_tokens // 4, length), limit, length)
            for result, part in zip(results, parts, strict=True)
        ]

    def _counter(self, texts: Sequence[str]) -> Length:
        """Return a token counter. The model's tokenizer counts the given texts in one call.

        The tokenizer does not read a text that is far above the limit.
        """
        if self.length is not None:
            return self.length
        if self._model.lengths is None:
            return count_tokens
        lengths, readable = self._model.lengths, _CHARACTERS * self.max_tokens
        known = [text for text in {*texts} if len(text) <= readable]
        counts = dict(zip(known, lengths(known), strict=True))

        def count(text: str) -> int:
            if len(text) > readable:
                return readable
            return counts[text] if text in counts else lengths([text])[0]

        return count

    def _windowed(
        self, result: ScoredNode, parts: _Parts, limit: int, length: Length
    ) -> _WindowedPassage:
        """Split a result into windows within the limit."""
        prefix, text, suffix = parts
        budget = max(1, limit - (length(prefix + suffix) if prefix or suffix else 0))
        overlap = (
            default_overlap(budget) if self.overlap is None else min(self.overlap, budget // 2)
        )
        measure = measured(text, length)
        spans = [(0, len(text))]
        if measure(*spans[0]) > budget:
            spans = passage_windows(text, budget, overlap, measure)
        windows = [f"{prefix}{text[start:end]}{suffix}" for start, end in spans]
        return _WindowedPassage(result, text, spans, windows)

    def _parts(self, node: Node) -> _Parts:
        rule, text = self.search_text, node.text
        searched = node.searched_text if rule is None else rule(node)
        core = text.strip()
        if searched == text or not core:
            return "", text, ""
        prefix, match, suffix = searched.rpartition(core)
        return (prefix, text, suffix) if match else ("", searched, "")


_Parts = tuple[str, str, str]
"""The text before a window, the text to split into windows, and the text after a window."""


def _shortened(parts: _Parts, limit: int, length: Length) -> _Parts:
    """Shorten the texts before and after a window to the limit."""
    prefix, text, suffix = parts
    if length(prefix + suffix) > limit:
        suffix = ""
    while prefix and length(prefix) > limit:
        stop_at = _BREAK.search(prefix)
        prefix = prefix[stop_at.end() :] if stop_at else ""
    return prefix, text, suffix


@dataclass(frozen=True, slots=True)
class _WindowedPassage:
    """A result, its text, the spans of the windows in this text, and the texts for the model."""

    result: ScoredNode
    text: str
    spans: list[Span]
    texts: list[str]

    def ranked(self, name: str, query: str, scores: Sequence[float]) -> ScoredNode:
        """Score the passage by its best window. On ties, the first window is the evidence."""
        best = max(range(len(scores)), key=scores.__getitem__)
        node = self.result.node
        is_window = len(scores) > 1 and self.text == node.text
        match = _window(node, self.spans[best]) if is_window else node
        evidence = Evidence(match, scores[best], name, query)
        return ScoredNode(node, scores[best], (evidence, *self.result.evidence))


def _window(node: Node, span: Span) -> Node:
    """Return a part of a node as its child, without an id."""
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
