"""Records of evaluated systems, and a function that runs tasks in threads with a progress bar."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
        asked: A hash of the question with its relevant items and answers.
        items: The results, best first. For a query engine, these are the sources of the answer.
        answer: The answer of a query engine, or None for a retriever.
        seconds: The duration in seconds.
        error: The error message, or an empty string if the system succeeded.
        tokens: The number of tokens of the results.
        model_calls: The number of calls to language models that were made through this package.
        cached_calls: The number of these calls that were answered from a cache.
        prompt_tokens: The number of tokens in prompts, or None if a call did not report it.
        completion_tokens: The number of tokens in answers, or None if a call did not report it.
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
    """Join the first ``count`` names, and append an ellipsis if there are more."""
    listed = [repr(name) for name in names[:count]]
    if len(names) > count:
        listed.append("...")
    return ", ".join(listed)


def run_all(
    work: Sequence[Callable[[], T]], name: str, num_workers: int, progress: bool | None
) -> list[T]:
    """Call functions in several threads, display a progress bar, and return the results.

    If a function raises an exception, the exception is raised and no further functions are called.

    Args:
        work: The functions.
        name: The label of the progress bar.
        num_workers: The number of threads.
        progress: Whether to display the progress bar. If None, it is displayed only in a terminal.
    """
    with ProgressBar(" questions", progress) as bar:
        bar.start(len(work), name)

        def run_one(task: Callable[[], T]) -> T:
            result = task()
            bar.advance(1)
            return result

        return run_in_threads(run_one, work, num_workers)
