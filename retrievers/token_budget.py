"""Keep the best results within so many tokens, and no text twice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Literal, get_args

from ..nodegraph.concurrency import context_value
from ..nodegraph.node import ROOT, Node
from ..nodegraph.splitters.chunking import count_tokens, shorten
from .ranking import joined_span, merge
from .results import ScoredNode
from .validation import check_top_k, choice, whole

Order = Literal["score", "document"]

CANDIDATES = 50
"""How many results are retrieved for a budget, at least."""

_LEAST_TOKENS = 40  # of a candidate: for large budgets more are retrieved

_MAX_GAP = 200  # characters of white space between results that are joined

BUDGET: ContextVar[TokenBudget | None] = ContextVar("budget", default=None)
"""How much the results of what is retrieved now may be together. None for no budget.

Whoever has smaller parts than its usual results returns these where there is a budget.
"""


def without_budget() -> AbstractContextManager[object]:
    """Let no budget hold in the block: for those who go on from the usual results."""
    return context_value(BUDGET, None)


class BudgetResults(list[ScoredNode]):
    """Hold the best results within ``max_tokens``, and what did not fit.

    A result that does not fit is passed over for the next that does. Only the first one is cut at
    a word if it has more tokens by itself, and a note says so. Results of one document that
    overlap or stand next to each other are one result, so that no text is there twice; its
    ``node`` is new where it is more than a node of the graph.

    Attributes:
        tokens: How many tokens the results have together.
        omitted: The results that would have come next, best first, as far as they were looked at.
        notes: What else is to be known: that a text was cut.
    """

    def __init__(self, results: Sequence[ScoredNode] = ()) -> None:
        super().__init__(results)
        self.tokens = 0
        self.omitted: tuple[ScoredNode, ...] = ()
        self.notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TokenBudget:
    """Say how much of what is found is wanted, and in which order.

    Args:
        max_tokens: How many tokens all results may have together, by ``count_tokens``. None for
            no limit.
        order: ``"score"`` for the best first, ``"document"`` to put the results of one document,
            in the place of its best one, into its order.
        top_k: How many results at most. None for as many as fit.
        pages: How many results the default search looks for, at least, whatever their tokens: for
            pages of ``max_tokens`` each. 0 for those within the budget, and as many again.

    Raises:
        TypeError: If a number is no whole number.
        ValueError: If a number is below 1, or there is no such order.
    """

    max_tokens: int | None = None
    order: Order = "score"
    top_k: int | None = None
    pages: int = 0

    def __post_init__(self) -> None:
        if self.max_tokens is not None:
            whole(self.max_tokens, "max_tokens", 1)
        choice(self.order, "order", get_args(Order))
        if self.top_k is not None:
            check_top_k(self.top_k)

    def __bool__(self) -> bool:
        return self.max_tokens is not None or self.order != "score"

    def candidates(self, retriever: object) -> int | None:
        """Return the ``top_k`` to retrieve with. None for the retriever's own.

        It is more than are wanted, unless more candidates cost calls of a model.
        """
        if self.max_tokens is None or not getattr(retriever, "is_free", True):
            return self.top_k
        return max(CANDIDATES, self.max_tokens // _LEAST_TOKENS, self.top_k or 0)

    def holding(self) -> AbstractContextManager[object]:
        """Let the budget hold for all that is retrieved in the block."""
        # One without a number lets one around it hold.
        return context_value(BUDGET, BUDGET.get() if self.max_tokens is None else self)

    def fit(self, results: Sequence[ScoredNode]) -> BudgetResults:
        """Return the best results within the budget; see ``BudgetResults``.

        Args:
            results: Best first.
        """
        if self.max_tokens is None:
            parts = [_Stretch.of(result) for result in results[: self.top_k]]
            fitting = BudgetResults()
        else:
            parts, fitting = self._best(results, self.max_tokens)
        if self.order == "document":
            first = {part.document: -rank for rank, part in reversed([*enumerate(parts)])}
            parts.sort(key=lambda part: (-first[part.document], part.start))
        fitting += [part.result() for part in parts]
        return fitting

    def _best(
        self, results: Sequence[ScoredNode], max_tokens: int
    ) -> tuple[list[_Stretch], BudgetResults]:
        parts: list[_Stretch] = []
        omitted: list[ScoredNode] = []
        fitting = BudgetResults()
        if results and (size := count_tokens(results[0].node.text)) > max_tokens:
            node = results[0].node
            results = [replace(results[0], node=_cut(node, max_tokens)), *results[1:]]
            fitting.notes = (
                f"the first result, of {size:,} tokens, was cut to fit max_tokens={max_tokens}",
            )
        for result in results:
            part = _Stretch.of(result)
            near = [other for other in parts if other.joins(part)]
            new = sum(count_tokens(text) for text in part.without(near))
            is_one_more = not near and len(parts) == self.top_k
            if is_one_more or fitting.tokens + new > max_tokens:
                omitted.append(result)
                continue
            fitting.tokens += new
            rank = parts.index(near[0]) if near else len(parts)
            parts = [other for other in parts if other not in near]
            parts.insert(rank, _Stretch.joined([*near, part]))
        fitting.omitted = tuple(omitted)
        return parts, fitting


@dataclass(frozen=True, slots=True, eq=False)
class _Stretch:
    """A part of a document, and the results in it, best first.

    Attributes:
        document: The document, and its graph.
        start: Where the part starts in its document; -1 if it is no span of one.
        end: Where it ends.
        results: The results.
    """

    document: tuple[int, str]
    start: int
    end: int
    results: tuple[ScoredNode, ...]

    @classmethod
    def of(cls, result: ScoredNode) -> _Stretch:
        node = result.node
        start, end = (0, len(node.text)) if node.group == ROOT else (node.start, node.end)
        if start is None or end is None or end - start != len(node.text):
            start = end = -1
        return cls((id(node.graph), node.document_id or node.id), start, end, (result,))

    @classmethod
    def joined(cls, parts: Sequence[_Stretch]) -> _Stretch:
        start, end = min(part.start for part in parts), max(part.end for part in parts)
        results = tuple(result for part in parts for result in part.results)
        return cls(parts[0].document, start, end, results)

    def joins(self, other: _Stretch) -> bool:
        """Return whether two parts overlap, or have nothing but white space between them."""
        if self.document != other.document or -1 in (self.start, other.start):
            return False
        early, late = sorted((self, other), key=lambda part: part.start)
        if late.start <= early.end:
            return True
        if late.start - early.end > _MAX_GAP:
            return False
        return _document_text(early.results[0].node, early.end, late.start).isspace()

    def without(self, others: Sequence[_Stretch]) -> Iterator[str]:
        """Yield what of the part's text others do not have."""
        text, at = self.results[0].node.text, self.start
        for other in sorted(others, key=lambda other: other.start):
            yield text[at - self.start : max(at, other.start) - self.start]
            at = max(at, min(other.end, self.end))
        yield text[at - self.start :]

    def result(self) -> ScoredNode:
        """Return the part as one result."""
        best = self.results[0]
        if len(self.results) == 1:
            return best
        node = max((result.node for result in self.results), key=lambda node: len(node.text))
        if len(node.text) < self.end - self.start:
            node = self._joined_node()
        return merge(node, self.results, best.score)

    def _joined_node(self) -> Node:
        parts = sorted(map(_Stretch.of, self.results), key=lambda part: (part.start, -part.end))
        text, at = "", self.start
        for part in parts:
            node = part.results[0].node
            text += _document_text(node, at, part.start) + node.text[max(0, at - part.start) :]
            at = max(at, part.end)
        last = max(parts, key=lambda part: part.end).results[0].node
        node = joined_span(parts[0].results[0].node, last, self.results[0].node, text, text)
        ids = parts[0].results[0].node.id.partition("..")[0], last.id.rpartition("..")[2]
        return replace(node, start=self.start, end=self.end, id="..".join(ids))


def _document_text(node: Node, start: int, end: int) -> str:
    """Return a part of the document of a node. Nothing if that is not there (any more)."""
    if start >= end or node.graph is None:
        return ""
    try:
        return node.root.text[start:end]
    except LookupError:  # removed after the retrieval
        return ""


def _cut(node: Node, tokens: int) -> Node:
    """Return a node with the beginning of its text."""
    text = shorten(node.text, tokens).rstrip()
    end = None if node.start is None else node.start + len(text)
    return replace(node, text=text, content=text, end=end, id=f"{node.id}..{len(text)}")
