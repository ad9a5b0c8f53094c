"""The results of evaluated systems, and functions that run in threads with a bar."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from ...nodegraph.concurrency import ProgressBar, run_in_threads
from .metrics import RetrievedItem

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Record:
    """The results of one system for one question.

    Attributes:
        setup: The name of the system.
        question_id: The id of the question.
        question: The text of the question.
        asked: The hash of the question with its gold and answers.
        items: The results, best first. For a query engine the sources of the answer.
        answer: The answer of a query engine. None means a retriever.
        seconds: The duration.
        error: The exception. It is empty after a success.
        tokens: The number of tokens of the results.
        model_calls: The number of language model calls of this package.
        cached_calls: The number of these calls that a cache answered.
        prompt_tokens: The number of tokens of the prompts. If None, a call reports no tokens.
        completion_tokens: The number of tokens of the model's answers. None means the same.
    """

    setup: str
    question_id: str
    question: str
    asked: str
    items: tuple[RetrievedItem, ...] = ()
    answer: str | None = None
    seconds: float = 0.0
    error: str = ""
    tokens: int = 0
    model_calls: int = 0
    cached_calls: int = 0
    prompt_tokens: int | None = 0
    completion_tokens: int | None = 0


def first_names(names: Sequence[str], count: int) -> str:
    """Return the first names, with an ellipsis if there are more."""
    listed = [repr(name) for name in names[:count]]
    if len(names) > count:
        listed.append("...")
    return ", ".join(listed)


def run_all(
    work: Sequence[Callable[[], T]], name: str, num_workers: int, progress: bool | None
) -> list[T]:
    """Return the results of functions, in threads, with a bar. An exception ends all.

    Args:
        work: The functions.
        name: The label of the bar.
        num_workers: Number of threads.
        progress: Whether to draw the bar. If None, it is drawn only in a terminal.
    """
    with ProgressBar(" questions", progress) as bar:
        bar.start(len(work), name)

        def run_one(task: Callable[[], T]) -> T:
            result = task()
            bar.advance(1)
            return result

        return run_in_threads([partial(run_one, task) for task in work], num_workers)
