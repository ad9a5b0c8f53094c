"""Rerank by a model that reads query and passage together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...nodegraph import Node, count_tokens
from ...nodegraph.splitters import Length, Span
from ..protocols import by_score
from ..results import Evidence, ScoredNode
from ..tracing import start_span
from .cross_encoder import as_cross_encoder
from .passage_windows import default_overlap, passage_windows

Prefix = Callable[[Node], str]

ESTIMATED_LIMIT = 400
"""For models that read 512 tokens and don't count them for us: a fifth for the estimate's error."""


class CrossEncoderReranker:
    """Score results by a cross-encoder; a long passage counts with its best window.

    Choose it where the best of a few dozen results matter: a model that reads both texts at once
    knows better than any similarity, and takes milliseconds a passage (Nogueira and Cho,
    "Passage re-ranking with BERT", 2019). The best window's score stands for a long passage (Dai
    and Callan, "Deeper text understanding for IR with contextual neural language modeling",
    2019).

    Args:
        model: A cross-encoder, a function, or an endpoint; see ``as_cross_encoder``.
        max_tokens: How many tokens of a query and a passage the model reads together; None for
            what the model says, else 400, counted by ``length``.
        overlap: How many tokens two windows of a passage share; None for two sevenths of a
            window, at most 80.
        length: Counts a text's tokens; None for the model's own tokenizer, where it has one, else
            an estimate.
        prefix: What is put before each window for the model, and never shown: a metadata key,
            whose value is a text or a list of them (``MarkdownSplitter`` writes ``"headings"``),
            a function of the node, or None. It gets a quarter of what the model reads at most;
            the first of a list are left out for that.

    Raises:
        TypeError: If the model is none, or an argument of another kind.
        ValueError: If a number is out of range.

    Example:
        >>> from nodekin.nodegraph import Node
        >>> from nodekin.retrievers import ScoredNode
        >>> model = lambda query, texts: [text.count(query) for text in texts]
        >>> found = [ScoredNode(Node("water"), 2.0), ScoredNode(Node("tea, tea"), 1.0)]
        >>> [(r.node.text, r.score) for r in CrossEncoderReranker(model).rerank(found, "tea")]
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
        prefix: str | Prefix | None = "headings",
    ) -> None:
        self._model = as_cross_encoder(model)
        known = self._model.limit if length is None else None
        self.max_tokens = _whole("max_tokens", max_tokens, 1) or known or ESTIMATED_LIMIT
        self.overlap = _whole("overlap", overlap, 0)
        for field, call in (("length", length), ("prefix", prefix)):
            if not (
                call is None or callable(call) or (field == "prefix" and isinstance(call, str))
            ):
                raise TypeError(f"{field} is a function, not {call!r:.80}; leave it out for None")
        self.length = length or self._model.length or count_tokens
        self.prefix = prefix

    def __repr__(self) -> str:
        return f"ModuleReranker(max_tokens={self.max_tokens}, prefix={self.prefix!r})"

    def rerank(self, results: Sequence[ScoredNode], query: str) -> list[ScoredNode]:
        """Return all results by their new scores, best first; equal ones in their old order.

        Raises:
            RerankError: If the model fails, or its scores are no finite numbers.
        """
        passages = self._passages(results, query)
        texts = [text for passage in passages for text in passage.texts]
        with start_span("model", passages=len(passages), windows=len(texts)):
            scores = self._model.scores(query, texts)
        return self._ranked(passages, scores, query)

    async def arerank(self, results: Sequence[ScoredNode], query: str) -> list[ScoredNode]:
        """Do the same without blocking the event loop."""
        passages = await asyncio.to_thread(self._passages, results, query)
        texts = [text for passage in passages for text in passage.texts]
        with start_span("model", passages=len(passages), windows=len(texts)):
            scores = await self._model.ascores(query, texts)
        return self._ranked(passages, scores, query)

    def _passages(self, results: Sequence[ScoredNode], query: str) -> list[_Passage]:
        """Cut results into what the model reads of them."""
        if not results:
            return []
        asked = self.length(query) + self._model.special
        # A query that is as long as what the model reads is cut short by the model.
        room = max(self.max_tokens - asked, self.max_tokens // 4, 1)
        return [self._passage(result, room) for result in results]

    def _passage(self, result: ScoredNode, room: int) -> _Passage:
        prefix = self._prefix_of(result.node, self.max_tokens // 4)
        if prefix:
            room = max(1, room - self.length(prefix))
        overlap = default_overlap(room) if self.overlap is None else min(self.overlap, room // 2)
        text = result.node.text
        spans = passage_windows(text, room, overlap, self.length)
        return _Passage(result, spans, [prefix + text[begin:end] for begin, end in spans])

    def _prefix_of(self, node: Node, room: int) -> str:
        """Return what the model is told before the passage, with the line break behind it."""
        given: Any = self.prefix
        if isinstance(given, str):
            given = node.metadata.get(given)
        elif given is not None:
            given = given(node)
        parts = given if isinstance(given, list | tuple) else [given]
        parts = [str(part).strip() for part in parts if part is not None and str(part).strip()]
        while parts:
            prefix = " > ".join(parts) + "\n"
            if self.length(prefix) <= room:
                return prefix
            parts = parts[1:]
        return ""

    def _ranked(
        self, passages: Sequence[_Passage], scores: Sequence[float], query: str
    ) -> list[ScoredNode]:
        """Give each passage the score of its best window, the first of equal ones."""
        ranked, rest = [], iter(scores)
        for passage in passages:
            own = [next(rest) for _ in passage.spans]
            best = max(range(len(own)), key=own.__getitem__)
            node = passage.result.node
            read = node if len(own) == 1 else _window(node, passage.spans[best])
            proof = Evidence(read, own[best], self.name, query)
            ranked.append(ScoredNode(node, own[best], (proof, *passage.result.evidence)))
        return by_score(ranked)


@dataclass(frozen=True, slots=True)
class _Passage:
    """A result, and what the model reads of it."""

    result: ScoredNode
    spans: list[Span]
    texts: list[str]


def _window(node: Node, span: Span) -> Node:
    """Return a part of a node, which belongs to it and has no id of its own."""
    begin, end = span
    cut = node.start is not None
    return replace(
        node,
        text=node.text[begin:end],
        content=None,
        id="",
        parent_id=node.id or None,
        start=node.start + begin if node.start is not None else None,
        end=node.start + end if node.start is not None else None,
        offset=begin if cut else None,
    )


def _whole(name: str, number: int | None, least: int) -> int | None:
    if number is None:
        return None
    if isinstance(number, bool) or not isinstance(number, int):
        raise TypeError(f"{name} is a whole number, not {number!r:.80}")
    if number < least:
        raise ValueError(f"{name} must be {least} or more, not {number!r}")
    return number
