"""Rerank results by a model that reads query and passage together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ...nodegraph import Node, count_tokens
from ...nodegraph.splitters import Length, Span
from ..plans import Compute, Plan, arun, run
from ..protocols import by_score
from ..results import Evidence, Results, ScoredNode
from ..tracing import start_span
from ..validation import whole
from .cross_encoder import as_cross_encoder
from .passage_windows import default_overlap, passage_windows

Prefix = Callable[[Node], str]

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
        prefix: Text before each window that only the model reads: a metadata key, whose value is
            a text or a list of them (``MarkdownSplitter`` writes ``"headings"``), a function of
            the node, or None. It gets at most a quarter of ``max_tokens``; the first of a list
            are left out for that.

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
        prefix: str | Prefix | None = "headings",
    ) -> None:
        self._model = as_cross_encoder(model)
        limit = self._model.max_tokens if length is None else None
        self.max_tokens = limit or ESTIMATED_LIMIT
        if max_tokens is not None:
            self.max_tokens = whole(max_tokens, "max_tokens", 1)
        self.overlap = None if overlap is None else whole(overlap, "overlap", 0)
        if not (length is None or callable(length)):
            raise TypeError(f"length is a function, not {length!r:.80}; leave it out for None")
        if not (prefix is None or callable(prefix) or isinstance(prefix, str)):
            raise TypeError(f"prefix is a metadata key, a function or None, not {prefix!r:.80}")
        self.length = length or self._model.length or count_tokens
        self.prefix = prefix

    def __repr__(self) -> str:
        return f"CrossEncoderReranker(max_tokens={self.max_tokens}, prefix={self.prefix!r})"

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
            text, prefix = result.node.text, self._prefix_of(result.node, self.max_tokens // 4)
            room = max(1, limit - self.length(prefix)) if prefix else limit
            overlap = (
                default_overlap(room) if self.overlap is None else min(self.overlap, room // 2)
            )
            spans = passage_windows(text, room, overlap, self.length)
            passages.append(_Passage(result, spans, [prefix + text[a:b] for a, b in spans]))
        return passages

    def _prefix_of(self, node: Node, limit: int) -> str:
        """Return the text before each window of a node, with a line break at its end."""
        value: Any = None
        if isinstance(self.prefix, str):
            value = node.metadata.get(self.prefix)
        elif self.prefix is not None:
            value = self.prefix(node)
        parts = value if isinstance(value, list | tuple) else [value]
        parts = [str(part).strip() for part in parts if part is not None and str(part).strip()]
        while parts:
            prefix = " > ".join(parts) + "\n"
            if self.length(prefix) <= limit:
                return prefix
            parts = parts[1:]
        return ""

    def _ranked(self, passages: Sequence[_Passage], scores: Sequence[float], query: str) -> Results:
        """Rank passages by the score of their best window, the first of equal ones."""
        ranked, remaining = [], iter(scores)
        for passage in passages:
            own = [next(remaining) for _ in passage.spans]
            best = max(range(len(own)), key=own.__getitem__)
            node = passage.result.node
            match = node if len(own) == 1 else _window(node, passage.spans[best])
            evidence = Evidence(match, own[best], self.name, query)
            ranked.append(ScoredNode(node, own[best], (evidence, *passage.result.evidence)))
        return by_score(ranked)


@dataclass(frozen=True, slots=True)
class _Passage:
    """A result, its windows, and what the model reads of them."""

    result: ScoredNode
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
