"""What a retrieval did, stage by stage: to be printed as a tree, or told to an observer."""

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
    """One step of a retrieval.

    Attributes:
        name: What was done: ``"search"``, ``"fuse"``, ``"rerank"``, ``"model"``.
        attributes: What it was done with and what came of it, as plain values.
        seconds: How long it took, None while it runs.
        error: What it failed of, None where it did not.
        children: The steps within, in the order they began.
        outcome: What came of it as the object it is, None for most: a ``StrategyOutcome``, the
            ``SubResults`` of a sub-question.
        queries: What was searched for, where the step is a whole retrieval; none of a part of it.
        results: What a retrieval found, the scored nodes of each query; None while it runs.
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
        """Set what a retrieval found, and how many that are as the attribute ``"results"``."""
        self.results = results
        self.attributes["results"] = sum(map(len, results))

    def __str__(self) -> str:
        return "\n".join(self._lines("", ""))

    def _lines(self, first: str, remaining: str) -> Iterator[str]:
        attributes = "".join(f" {key}={_short(value)}" for key, value in self.attributes.items())
        duration = "" if self.seconds is None else f" ({1000 * self.seconds:.1f} ms)"
        failed = "" if self.error is None else f" failed: {type(self.error).__name__}: {self.error}"
        yield f"{first}{self.name}{attributes}{duration}{failed}"
        for number, span in enumerate(self.children, 1):
            last = number == len(self.children)
            yield from span._lines(
                remaining + ("└─ " if last else "├─ "), remaining + ("   " if last else "│  ")
            )


class Observer(Protocol):
    """Is told of each stage as it begins and ends, in the thread or task that does the work."""

    def begin(self, span: Span, parent: Span | None) -> None:
        """A stage begins, within another one or none."""

    def end(self, span: Span) -> None:
        """A stage has ended; its seconds, attributes and error are set."""


_current: ContextVar[Span | None] = ContextVar("stage", default=None)

_observers: ContextVar[tuple[Observer, ...]] = ContextVar("observers", default=())

ASKS: ContextVar[list[Span] | None] = ContextVar("asks", default=None)
"""Where the model calls of this context are listed as they begin; None for nowhere."""


def is_observed() -> bool:
    """Return whether anybody wants to know of the stages of what is retrieved now."""
    return _current.get() is not None or bool(_observers.get())


def start_span(
    name: str, /, *, queries: Sequence[str] = (), **attributes: object
) -> AbstractContextManager[Span]:
    """Take what is done in the block as a stage; add the outcome to its ``attributes``.

    With ``queries`` it is a retrieval, whose outcome is given to ``set_results``; they are the
    attribute ``"query"`` in a few words.

    Costs next to nothing where nobody is tracing. Whoever hands work to threads of a pool hands
    over the context as well (``contextvars.copy_context().run``); ``asyncio.to_thread`` does.
    """
    if not is_observed():
        return nullcontext(Span(name, attributes, queries=queries))
    if queries:
        attributes = {"query": summarize_queries(queries), **attributes}
    return _observed(Span(name, attributes, queries=queries))


@contextmanager
def _observed(span: Span) -> Iterator[Span]:
    """Tell those who are tracing of a stage."""
    parent, observers = _current.get(), _observers.get()
    if parent is not None:
        parent.children.append(span)
    for observer in observers:
        observer.begin(span, parent)
    token = _current.set(span)
    start = time.perf_counter()
    try:
        yield span
    except BaseException as error:
        span.error = error
        raise
    finally:
        span.seconds = time.perf_counter() - start
        _current.reset(token)
        for observer in observers:
            observer.end(span)


@contextmanager
def trace(name: str = "trace") -> Iterator[Span]:
    """Record the stages of what is retrieved in the block; print what it gives to see the tree.

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
    token = _current.set(root)
    start = time.perf_counter()
    try:
        yield root
    finally:
        root.seconds = time.perf_counter() - start
        _current.reset(token)


def observe(observer: Observer) -> AbstractContextManager[object]:
    """Report the stages of the retrievals in the block to an observer, once if blocks nest."""
    observers = _observers.get()
    added = () if observer in observers else (observer,)
    return context_value(_observers, (*observers, *added))


def summarize_queries(queries: Sequence[str]) -> str:
    """Return the queries of a span in a few words."""
    return queries[0] if len(queries) == 1 else f"{len(queries)} queries"


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    text = text if len(text) <= 60 else f"{text[:57]}..."
    return repr(text) if isinstance(value, str) and " " in text else text
