"""Judge the results of systems by metrics."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeAlias, TypeVar

from ...nodegraph.concurrency import ProgressBar, run_in_threads
from ...nodegraph.splitters.chunking import count_tokens
from ..tracing import Span
from .dataset import Dataset, Question
from .matching import Matching, RetrievalCase
from .metrics import Judgement, Metric
from .records import Record

T = TypeVar("T")

Judgements: TypeAlias = dict[str, dict[str, dict[str, Judgement]]]
"""Judgements by metric, system and question id."""


def judge_records(
    dataset: Dataset,
    metrics: Sequence[Metric],
    records: Mapping[str, Mapping[str, Record]],
    matching: Matching,
    *,
    num_workers: int = 1,
    progress: bool | None = False,
) -> Judgements:
    """Return the judgement of each record by each metric.

    Args:
        dataset: The questions.
        metrics: The metrics.
        records: The records by system and question id.
        matching: Decides whether a result is gold.
        num_workers: Number of threads, if a metric calls a model.
        progress: Whether to draw a bar, if a metric calls a model. None: only in a terminal.
    """
    asks_model = any(metric.asks_model for metric in metrics)
    judgements: Judgements = {metric.name: {} for metric in metrics}
    for setup, of in records.items():
        has_items = any(record.items for record in of.values())
        work = [
            partial(_judged, metrics, question, of[question.id], matching, has_items)
            for question in dataset.questions
        ]
        rows = run_all(work, "judge", num_workers, progress) if asks_model else [f() for f in work]
        for metric, column in zip(metrics, zip(*rows, strict=True), strict=True):
            keys = (question.id for question in dataset.questions)
            judgements[metric.name][setup] = dict(zip(keys, column, strict=True))
    return judgements


def _judged(
    metrics: Sequence[Metric],
    question: Question,
    record: Record,
    matching: Matching,
    has_items: bool,
) -> list[Judgement]:
    """Return the judgement of a record by each metric."""
    if record.error:
        return [Judgement(None, f"the system failed: {record.error}") for _ in metrics]
    answer_only = bool(record.answer) and not has_items
    case = RetrievalCase(question, record.items, matching, record.answer, answer_only)
    return [metric.judge(case) for metric in metrics]


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
