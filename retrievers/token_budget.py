"""Select the best results that fit into a token budget, without repeating text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Literal, get_args

from ..nodegraph.node import ROOT, Node
from ..nodegraph.splitters.chunking import count_tokens, shorten
from .ranking import joined_span, merge
from .results import ResultList, ScoredNode
from .validation import check_top_k, choice, whole

Order = Literal["score", "document"]

_ORDERS = get_args(Order)

CANDIDATES = 50
"""The minimum number of results that are retrieved for a token budget."""

# The minimum number of tokens of a candidate; larger budgets retrieve more candidates.
_LEAST_TOKENS = 40

_MAX_GAP = 200  # the maximum number of white space characters between merged results


class BudgetResults(ResultList):
    """The best results within ``max_tokens``, and the results that did not fit.

    A result that does not fit is skipped. Only the first result is truncated, between two words, if
    it exceeds the budget, and ``notes`` reports this. Adjacent or overlapping results of the same
    document are merged, so that no text is repeated. If a merged result is larger than any node of
    the graph, its ``node`` is new.

    These results are returned by ``retriever.retrieve(query, max_tokens=...)``.

    Args:
        results: The results.

    Attributes:
        tokens: The total number of tokens of the results.
        omitted: The retrieved results that did not fit, best first.
        notes: Warnings, for example about a truncated text.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> from nodekin.retrievers import Retriever
        >>> graph = NodeGraph()
        >>> ids = graph.add(["Green tea is not fermented.", "Black tea is fermented, then dried."])
        >>> results = Retriever(graph, "ROOT").retrieve("green tea", max_tokens=10)
        >>> [r.text for r in results], results.tokens, [r.text for r in results.omitted]
        (['Green tea is not fermented.'], 7, ['Black tea is fermented, then dried.'])
    """

    def __init__(self, results: Sequence[ScoredNode] = ()) -> None:
        super().__init__(results)
        self.tokens = 0
        self.omitted: tuple[ScoredNode, ...] = ()
        self.notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TokenBudget:
    """The maximum total size of results, and their order.

    Args:
        max_tokens: The maximum total number of tokens, as counted by ``count_tokens``. If None, the
            size is not limited.
        order: ``"score"`` places the best results first. With ``"document"``, the results of a
            document are adjacent and in document order, and the documents are sorted by their best
            result.
        top_k: The maximum number of results. If None, all results that fit are returned.
        pages: The minimum number of results of the default search, regardless of their tokens, so
            that several pages of ``max_tokens`` can be filled. If 0, twice as many results are
            returned as fit into the budget.

    Raises:
        TypeError: If a number is not an integer.
        ValueError: If a number is below 1, or the order is unknown.
    """

    max_tokens: int | None = None
    order: Order = "score"
    top_k: int | None = None
    pages: int = 0

    def __post_init__(self) -> None:
        if self.max_tokens is not None:
            whole(self.max_tokens, "max_tokens", 1)
        choice(self.order, "order", _ORDERS)
        if self.top_k is not None:
            check_top_k(self.top_k)

    def __bool__(self) -> bool:
        return self.max_tokens is not None or self.order != "score"

    def candidates(self, retriever: object) -> int | None:
        """Return the ``top_k`` to pass to a retriever, or None for the default of the retriever.

        More candidates than necessary are retrieved, unless they require model calls.
        """
        if self.max_tokens is None or not getattr(retriever, "is_free", True):
            return self.top_k
        return max(CANDIDATES, self.max_tokens // _LEAST_TOKENS, self.top_k or 0)

    def fit(self, results: Sequence[ScoredNode]) -> BudgetResults:
        """Select the best results that fit into the budget. See ``BudgetResults``.

        Args:
            results: The results, best first.
        """
        fitting = BudgetResults()
        if self.max_tokens is None:
            parts = [_Stretch.of(result) for result in results[: self.top_k]]
        else:
            parts = self._fill(fitting, results, self.max_tokens)
        if self.order == "document":
            first = {part.document: -rank for rank, part in reversed([*enumerate(parts)])}
            parts.sort(key=lambda part: (-first[part.document], part.start))
        fitting += [part.result() for part in parts]
        return fitting

    def _fill(
        self, fitting: BudgetResults, results: Sequence[ScoredNode], max_tokens: int
    ) -> list[_Stretch]:
        """Return the parts that fit, and set the tokens, notes and omitted results."""
        parts: list[_Stretch] = []
        for rank, result in enumerate(results):
            if rank == 0:
                result = _cut(fitting, result, max_tokens)
            part = _Stretch.of(result)
            near = [other for other in parts if other.joins(part)]
            new = sum([count_tokens(text) for text in part.without(near)])
            is_one_more = not near and len(parts) == self.top_k
            if is_one_more or fitting.tokens + new > max_tokens:
                fitting.omitted += (result,)
                continue
            fitting.tokens += new
            first = parts.index(near[0]) if near else len(parts)
            parts = [other for other in parts if other not in near]
            parts.insert(first, _Stretch.joined([*near, part]))
        return parts


def _cut(fitting: BudgetResults, result: ScoredNode, max_tokens: int) -> ScoredNode:
    """Truncate the first result if it exceeds the budget, and set a note."""
    node = result.node
    size = count_tokens(node.text)
    if size <= max_tokens:
        return result
    fitting.notes = (
        f"the first result, of {size:,} tokens, was cut to fit max_tokens={max_tokens}",
    )
    text = shorten(node.text, max_tokens).rstrip()
    end = None if node.start is None else node.start + len(text)
    cut = replace(node, text=text, content=text, end=end, id=f"{node.id}..{len(text)}")
    return replace(result, node=cut)


@dataclass(frozen=True, slots=True, eq=False)
class _Stretch:
    """A part of a document, with the results that it contains.

    Attributes:
        document: The id of the graph object, and the id of the document.
        start: The start in the document, or -1 if the part is not a span of the document.
        end: The end in the document.
        results: The results, best first.
    """

    document: tuple[int, str]
    start: int
    end: int
    results: tuple[ScoredNode, ...]

    @classmethod
    def of(cls, result: ScoredNode) -> _Stretch:
        node = result.node
        document = (id(node.graph), node.document_id or node.id)
        size = len(node.text)
        if node.group == ROOT:
            return cls(document, 0, size, (result,))
        if node.start is None or node.end is None or node.end - node.start != size:
            return cls(document, -1, -1, (result,))
        return cls(document, node.start, node.end, (result,))

    @classmethod
    def joined(cls, parts: Sequence[_Stretch]) -> _Stretch:
        start = min([part.start for part in parts])
        end = max([part.end for part in parts])
        results = chain.from_iterable(part.results for part in parts)
        return cls(parts[0].document, start, end, tuple(results))

    def joins(self, other: _Stretch) -> bool:
        """Return whether two parts overlap or are separated only by white space."""
        if self.document != other.document or -1 in (self.start, other.start):
            return False
        early, late = sorted((self, other), key=lambda part: part.start)
        if late.start <= early.end:
            return True
        if late.start - early.end > _MAX_GAP:
            return False
        return _document_text(early.results[0].node, early.end, late.start).isspace()

    def without(self, others: Sequence[_Stretch]) -> Iterator[str]:
        """Yield the text of the part without the texts of other parts."""
        text = self.results[0].node.text
        at = self.start
        for other in sorted(others, key=lambda other: other.start):
            yield text[at - self.start : max(at, other.start) - self.start]
            at = max(at, min(other.end, self.end))
        yield text[at - self.start :]

    def result(self) -> ScoredNode:
        """Convert the part to a result."""
        best = self.results[0]
        if len(self.results) == 1:
            return best
        node = max((result.node for result in self.results), key=lambda node: len(node.text))
        if len(node.text) >= self.end - self.start:
            return merge(node, self.results, best.score)
        parts = [_Stretch.of(result) for result in self.results]
        parts.sort(key=lambda part: (part.start, -part.end))
        text = ""
        at = self.start
        for part in parts:
            node = part.results[0].node
            text += _document_text(node, at, part.start) + node.text[max(0, at - part.start) :]
            at = max(at, part.end)
        last = max(parts, key=lambda part: part.end).results[0].node
        first = parts[0].results[0].node
        span = joined_span(first, last, best.node, text, text)
        ids = first.id.partition("..")[0], last.id.rpartition("..")[2]
        joined = replace(span, start=self.start, end=self.end, id="..".join(ids))
        return merge(joined, self.results, best.score)


def _document_text(node: Node, start: int, end: int) -> str:
    """Return a span of a node's document, or an empty string if the document was removed."""
    if start >= end or node.graph is None:
        return ""
    try:
        return node.root.text[start:end]
    except LookupError:  # the document was removed after the retrieval
        return ""
