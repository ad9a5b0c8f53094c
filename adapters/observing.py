"""Let one observer of a framework see a retrieval, however deep its own calls are nested."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from ..retrievers.tracing import Observer, observe

ObserverT = TypeVar("ObserverT", bound=Observer)


@contextmanager
def observe_once(
    current: ContextVar[ObserverT | None], create: Callable[[], ObserverT]
) -> Iterator[ObserverT]:
    """Observe the spans of the block, unless an outer block does so already.

    A query engine and the retriever in it both observe; each span is reported once.

    Args:
        current: Holds the observer of the outermost block, None outside of such blocks.
        create: Creates the observer, in the outermost block only.

    Yields:
        The observer of the outermost block.
    """
    observer = current.get()
    if observer is not None:
        yield observer
        return
    observer = create()
    token = current.set(observer)
    try:
        with observe(observer):
            yield observer
    finally:
        current.reset(token)
