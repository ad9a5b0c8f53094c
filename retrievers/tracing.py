"""Traces of searches: trees of spans for printing and for observers."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from ..nodegraph.concurrency import context_value

if TYPE_CHECKING:
    from .results import ScoredNode


@dataclass(slots=True)
class Span:
    """One step of a search.

    Attributes:
        name: The kind of step: ``"search"``, ``"fuse"``, ``"rerank"``, ``"model"``.
        attributes: Inputs and outputs as plain values.
        seconds: The duration. None while the step is running.
        error: The exception. None means no exception.
        children: The nested steps, in the order of their start.
        outcome: The result as an object: a ``StrategyOutcome``, or the ``SubResults`` of a
            sub-question. None for most steps.
        queries: The queries of a whole search. Empty for other steps.
        results: The scored nodes of each query. None while the step is running.
    """

    name: str
    attributes: dict[str, Any] = field(default_factory=dict)
    seconds: float | None = None
    error: BaseException | None = None
    children: list[Span] = field(default_factory=list)
    outcome: object = None
    queries: Sequence[str] = ()
    results: Sequence[Sequence[ScoredNode]] | None = None

    def set_results(self, results: Sequence[Sequence[ScoredNode]]) -> None:
        """Set the results of a search, and their number as the attribute ``"results"``."""
        self.results = results
        self.attributes["results"] = sum([len(ranking) for ranking in results])

    def __str__(self) -> str:
        return "\n".join(self._lines("", ""))

    def _lines(self, first: str, remaining: str) -> Iterator[str]:
        attributes = "".join(f" {key}={_short(value)}" for key, value in self.attributes.items())
        duration = "" if self.seconds is None else f" ({1000 * self.seconds:.1f} ms)"
        failed = "" if self.error is None else f" failed: {type(self.error).__name__}: {self.error}"
        yield f"{first}{self.name}{attributes}{duration}{failed}"
        for number, span in enumerate(self.children, 1):
            is_last = number == len(self.children)
            branch, bar = ("└─ ", "   ") if is_last else ("├─ ", "│  ")
            yield from span._lines(remaining + branch, remaining + bar)


class Observer(Protocol):
    """An object that is notified of spans, in the thread or task of the span."""

    def begin(self, span: Span, parent: Span | None) -> None:
        """Called at the start of a span, with its parent. None means no parent."""

    def end(self, span: Span) -> None:
        """Called at the end of a span, when its duration, attributes and error are set."""


_tracing: ContextVar[tuple[Span | None, tuple[Observer, ...]]] = ContextVar(
    "trace", default=(None, ())
)
"""The current span and the observers."""


def is_observed() -> bool:
    """Return whether spans are recorded or observed now."""
    return _tracing.get() != (None, ())


def start_span(
    name: str, /, *, queries: Sequence[str] = (), **attributes: object
) -> AbstractContextManager[Span]:
    """Start a span for a block. The block adds its outcome to the ``attributes``.

    A span with ``queries`` is a whole search. The block calls ``set_results`` with the results. The
    queries are summarized in the attribute ``"query"``.

    Without a trace or observers, the cost is negligible. Threads need a copy of the context
    (``contextvars.copy_context().run``), which ``asyncio.to_thread`` makes itself.
    """
    if not is_observed():
        return nullcontext(Span(name, attributes, queries=queries))
    if queries:
        attributes = {"query": summarize_queries(queries), **attributes}
    return _observed(Span(name, attributes, queries=queries))


@contextmanager
def _observed(span: Span) -> Iterator[Span]:
    """Record a span in its parent, and notify the observers."""
    parent, observers = _tracing.get()
    if parent is not None:
        parent.children.append(span)
    for observer in observers:
        observer.begin(span, parent)
    token = _tracing.set((span, observers))
    start = time.perf_counter()
    try:
        yield span
    except BaseException as error:
        span.error = error
        raise
    finally:
        span.seconds = time.perf_counter() - start
        _tracing.reset(token)
        for observer in observers:
            observer.end(span)


@contextmanager
def trace(name: str = "trace") -> Iterator[Span]:
    """Record the spans of a block as a tree. Print the yielded span to show the tree.

    Args:
        name: The name of the yielded span.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> from nodekin.retrievers import Retriever
        >>> graph = NodeGraph()
        >>> ids = graph.add(["Green tea.", "Black tea."])
        >>> with trace() as traced:
        ...     results = Retriever(graph, "ROOT", "bm25")("green")
        >>> [(span.name, span.attributes["results"]) for span in traced.children]
        [('search', 1)]
    """
    root = Span(name)
    start = time.perf_counter()
    try:
        with context_value(_tracing, (root, _tracing.get()[1])):
            yield root
    finally:
        root.seconds = time.perf_counter() - start


@contextmanager
def observe(observer: Observer) -> Iterator[None]:
    """Notify an observer of the spans of a block, only once even if its blocks are nested."""
    span, observers = _tracing.get()
    added = () if observer in observers else (observer,)
    with context_value(_tracing, (span, (*observers, *added))):
        yield


def summarize_queries(queries: Sequence[str]) -> str:
    """Return a short description of queries."""
    return queries[0] if len(queries) == 1 else f"{len(queries)} queries"


def _short(value: Any) -> str:
    is_text = isinstance(value, str)
    text = value if is_text else repr(value)
    if len(text) > 60:
        text = f"{text[:57]}..."
    return repr(text) if is_text and " " in text else text
