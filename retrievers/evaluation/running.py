"""Run searches and judgements in threads, and count model calls."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

from ...nodegraph.concurrency import ProgressBar, run_in_threads
from ...nodegraph.splitters.chunking import count_tokens
from ..tracing import Span

T = TypeVar("T")


def run_all(
    work: Sequence[Callable[[], T]],
    name: str,
    num_workers: int,
    progress: bool | None,
    keep: Callable[[T], object] = lambda result: None,
) -> list[T]:
    """Return the results of functions, in threads, with a bar. An exception ends all.

    Args:
        work: The functions.
        name: The label of the bar.
        num_workers: Number of threads.
        progress: Whether to draw the bar. None: only in a terminal.
        keep: Called with each result immediately, one at a time.
    """
    lock = threading.Lock()
    with ProgressBar(" questions", progress) as bar:
        bar.start(len(work), name)

        def run_one(task: Callable[[], T]) -> T:
            result = task()
            with lock:
                keep(result)
                bar.advance(1)
            return result

        return run_in_threads([partial(run_one, task) for task in work], num_workers)


class ModelCalls(list[Span]):
    """An observer that collects the spans of model calls."""

    def begin(self, span: Span, parent: Span | None) -> None:
        """Keep the span of a model call."""
        if span.name == "ask":
            self.append(span)

    def end(self, span: Span) -> None:
        """Do nothing: the span contains the prompt and the answer."""


def model_tokens(calls: Sequence[Span]) -> int:
    """Return the number of tokens of the prompts and answers of model calls."""
    parts = (call.attributes.get(name, "") for call in calls for name in ("prompt", "answer"))
    return sum(count_tokens(str(part)) for part in parts)
