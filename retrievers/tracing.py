"""Traces of searches, which are trees of spans that can be printed or observed."""

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
        name: The kind of the step, such as ``"search"``, ``"fuse"``, ``"rerank"`` or ``"model"``.
        attributes: Inputs and outputs of the step as plain values.
        seconds: The duration in seconds, or None while the step is running.
        error: The exception that the step raised, or None.
        children: The nested steps, in the order in which they started.
        outcome: The outcome as an object, such as a ``StrategyOutcome``, or the ``SubResults`` of a
            sub-question. It is None for most steps.
        queries: The queries, if the step is a whole search. Otherwise, it is empty.
        results: The scored nodes of each query, or None while the step is running.
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
        """Set the results of a search, and store their number as the attribute ``"results"``."""
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
    """An object that is notified when spans begin and end, in the thread or task of the span."""

    def begin(self, span: Span, parent: Span | None) -> None:
        """Handle the start of a span. Its parent is None if the span is not nested."""

    def end(self, span: Span) -> None:
        """Handle the end of a span, when its duration, attributes and error are set."""


_tracing: ContextVar[tuple[Span | None, tuple[Observer, ...]]] = ContextVar(
    "trace", default=(None, ())
)
"""The current span and the observers."""


def is_observed() -> bool:
    """Return whether spans are currently recorded or observed."""
    return _tracing.get() != (None, ())


def start_span(
    name: str, /, *, queries: Sequence[str] = (), **attributes: object
) -> AbstractContextManager[Span]:
    """Start a span for a ``with`` block. The block can add its outcome to the ``attributes``.

    If ``queries`` are given, the span represents a whole search, and the block calls
    ``set_results``. A summary of the queries is stored in the attribute ``"query"``.

    Without a trace or observers, the cost is negligible. A thread must run in a copy of the context
    (``contextvars.copy_context().run``), which ``asyncio.to_thread`` creates automatically.
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
    """Record the spans of a ``with`` block as a tree. Printing the yielded span displays the tree.

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
    """Notify an observer of all spans in a ``with`` block.

    If blocks are nested, the observer is notified only once.
    """
    span, observers = _tracing.get()
    added = () if observer in observers else (observer,)
    with context_value(_tracing, (span, (*observers, *added))):
        yield


def summarize_queries(queries: Sequence[str]) -> str:
    """Return the only query, or the number of queries if there are several."""
    return queries[0] if len(queries) == 1 else f"{len(queries)} queries"


def _short(value: Any) -> str:
    is_text = isinstance(value, str)
    text = value if is_text else repr(value)
    if len(text) > 60:
        text = f"{text[:57]}..."
    return repr(text) if is_text and " " in text else text
