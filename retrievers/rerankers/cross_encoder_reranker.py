"""Rerank results by a model that reads query and passage together."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ...nodegraph.node import Node
from ...nodegraph.search_text import SearchTextOption, as_search_text
from ...nodegraph.splitters.chunking import Length, Span
from ...nodegraph.splitters.tokens import count_tokens
from ..plans.effects import Compute
from ..plans.plan import Plan, arun, run
from ..protocols import by_score
from ..results import Evidence, Results, ScoredNode
from ..tracing import start_span
from ..validation import whole
from .cross_encoder import as_cross_encoder
from .passage_windows import default_overlap, passage_windows

_BREAK = re.compile(r"\n+| > ")  # between fields, and between headings

ESTIMATED_LIMIT = 400
"""For models that read 512 tokens, of which we estimate the count: a fifth for the error."""


class CrossEncoderReranker:
    """Score results by a cross-encoder; a long passage counts with its best window.

    Choose it where the best of a few dozen results matter: a model that reads both texts at once
    ranks better than any similarity, and takes milliseconds a passage (Nogueira and Cho,
    "Passage re-ranking with BERT", 2019). A long passage gets the score of its best window (Dai
    and Callan, "Deeper text understanding for IR with contextual neural language modeling",
    2019).

    Args:
        model: A cross-encoder, a function, or an endpoint; see ``as_cross_encoder``.
        max_tokens: How many tokens of a query and a passage the model reads together; None for
            the model's own limit, else 400, counted by ``length``.
        overlap: How many tokens two windows of a passage share; None for two sevenths of a
            window, at most 80.
        length: Counts a text's tokens; None for the model's own tokenizer if it has one, else
            an estimate.
        search_text: What the model reads of a node, as for ``NodeGraph``: a metadata field, a
            list of them, a ``SearchText``, a function; False for the text alone. None for the
            node's ``searched_text``, by which it was found. What it adds to the text is read with
            every window and gets at most a quarter of ``max_tokens``: of fields and headings the
            first are left out for that.

    Raises:
        TypeError: If the model is none, or an argument is of the wrong type.
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
        self._model = as_cross_encoder(model)
        limit = self._model.max_tokens if length is None else None
        self.max_tokens = limit or ESTIMATED_LIMIT
        if max_tokens is not None:
            self.max_tokens = whole(max_tokens, "max_tokens", 1)
        self.overlap = None if overlap is None else whole(overlap, "overlap", 0)
        if not (length is None or callable(length)):
            raise TypeError(f"length is a function, not {length!r:.80}; leave it out for None")
        self.length = length or self._model.length or count_tokens
        self.search_text = as_search_text(search_text)

    def __repr__(self) -> str:
        limit, search_text = self.max_tokens, self.search_text
        return f"CrossEncoderReranker(max_tokens={limit}, search_text={search_text!r})"

    def rerank(self, results: Sequence[ScoredNode], query: str) -> Results:
        """Return all results by their new scores, best first; equal ones in their old order.

        Raises:
            RerankError: If the model fails, or its scores are no finite numbers.
        """
        return run(self._plan(results, query))

    async def arerank(self, results: Sequence[ScoredNode], query: str) -> Results:
        """Return the same without blocking the event loop."""
        return await arun(self._plan(results, query))

    def _plan(self, results: Sequence[ScoredNode], query: str) -> Plan[Results]:
        passages = yield from Compute(partial(self._passages, results, query))
        texts = [text for passage in passages for text in passage.texts]
        with start_span("model", passages=len(passages), windows=len(texts)):
            scores = yield from self._model.plan(query, texts)
        return self._ranked(passages, scores, query)

    def _passages(self, results: Sequence[ScoredNode], query: str) -> list[_Passage]:
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
            room = max(1, limit - added)
            overlap = (
                default_overlap(room) if self.overlap is None else min(self.overlap, room // 2)
            )
            spans = passage_windows(text, room, overlap, self.length)
            texts = [f"{prefix}{text[a:b]}{suffix}" for a, b in spans]
            passages.append(_Passage(result, text, spans, texts))
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
            end = _BREAK.search(prefix)
            prefix = prefix[end.end() :] if end else ""
        return prefix, text, suffix

    def _ranked(self, passages: Sequence[_Passage], scores: Sequence[float], query: str) -> Results:
        """Rank passages by the score of their best window, the first of equal ones."""
        ranked, remaining = [], iter(scores)
        for passage in passages:
            own = [next(remaining) for _ in passage.spans]
            best = max(range(len(own)), key=own.__getitem__)
            node = passage.result.node
            is_window = len(own) > 1 and passage.text == node.text
            match = _window(node, passage.spans[best]) if is_window else node
            evidence = Evidence(match, own[best], self.name, query)
            ranked.append(ScoredNode(node, own[best], (evidence, *passage.result.evidence)))
        return by_score(ranked)


@dataclass(frozen=True, slots=True)
class _Passage:
    """A result, the text that windows are cut from, the windows, what the model reads of them."""

    result: ScoredNode
    text: str
    spans: list[Span]
    texts: list[str]


def _window(node: Node, span: Span) -> Node:
    """Return a part of a node as its child, which has no id of its own."""
    start, end = span
    return replace(
        node,
        text=node.text[start:end],
        content=None,
        id="",
        parent_id=node.id or None,
        start=None if node.start is None else node.start + start,
        end=None if node.start is None else node.start + end,
        offset=None if node.start is None else start,
    )
