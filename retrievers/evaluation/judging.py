"""Judge all results with all metrics, in threads where a model is waited for."""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from typing import TypeAlias, TypeVar

from ...nodegraph.splitters.tokens import count_tokens
from ..tracing import Span
from .dataset import Dataset, Question
from .matching import Matching, RetrievalCase
from .metrics import Judgement, Metric
from .records import Record

T = TypeVar("T")

Judgements: TypeAlias = dict[str, dict[str, dict[str, Judgement]]]
"""What each metric says of each question, by metric, set-up and question id."""


def judge_records(
    dataset: Dataset,
    metrics: Sequence[Metric],
    records: Mapping[str, Mapping[str, Record]],
    matching: Matching,
    *,
    max_workers: int = 1,
    progress: bool | None = False,
) -> Judgements:
    """Return what each metric says of each record.

    Args:
        dataset: The questions.
        metrics: The metrics.
        records: What was returned, by set-up and question id.
        matching: When a result is gold.
        max_workers: How many questions are judged at once where a metric asks a model.
        progress: True draws a bar in any case, False never, None where a person can see it. Only
            where a metric asks a model.
    """
    slow = any(metric.asks_model for metric in metrics)
    work = [
        partial(_judged, metrics, setup, question, of[question.id], matching)
        for setup, of in records.items()
        for question in dataset.questions
    ]
    done = run_all(work, max_workers if slow else 1)
    judged: dict[tuple[str, str], dict[str, Judgement]] = {}
    for key, judgements in with_progress(done, "judge", len(work), progress if slow else False):
        judged[key] = judgements
    return {
        metric.name: {
            setup: {q.id: judged[setup, q.id][metric.name] for q in dataset.questions}
            for setup in records
        }
        for metric in metrics
    }


def with_progress(done: Iterable[T], name: str, total: int, progress: bool | None) -> Iterable[T]:
    """Return results with a bar: True draws it, False does not, None if a person can see it."""
    from tqdm import tqdm

    hidden = None if progress is None else not progress
    bar: Iterable[T] = tqdm(done, name, total, unit="question", disable=hidden)
    return bar


def run_all(work: Sequence[Callable[[], T]], workers: int) -> Iterator[T]:
    """Yield what functions return as it is ready.

    When one raises, or all is interrupted, nothing more starts, and what has been returned by then
    comes before the error.
    """
    if workers == 1:
        for task in work:
            yield task()
        return
    with ThreadPoolExecutor(workers, "nodekin-evaluate") as pool:
        waiting = {pool.submit(contextvars.copy_context().run, task) for task in work}
        try:
            for future in as_completed(tuple(waiting)):
                waiting.discard(future)
                yield future.result()
        except GeneratorExit:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        except BaseException:
            pool.shutdown(cancel_futures=True)
            for future in waiting:
                if not future.cancelled() and future.exception() is None:
                    yield future.result()
            raise


def model_cost(span: Span) -> tuple[int, int]:
    """Return how many answers a model gave within a span, and the tokens of them and prompts."""
    model_spans = [item for item in _spans(span) if item.name == "ask"]
    return len(model_spans), model_tokens(model_spans)


def model_tokens(model_spans: Sequence[Span]) -> int:
    """Return how many tokens the prompts and answers of model calls have together."""
    texts = (
        str(item.attributes.get(name, "")) for item in model_spans for name in ("prompt", "answer")
    )
    return sum(map(count_tokens, texts))


def _spans(span: Span) -> Iterator[Span]:
    yield span
    for child in span.children:
        yield from _spans(child)


def _judged(
    metrics: Sequence[Metric], setup: str, question: Question, record: Record, matching: Matching
) -> tuple[tuple[str, str], dict[str, Judgement]]:
    if record.error:
        failed = Judgement(None, reason=f"the set-up failed: {record.error}")
        return (setup, question.id), {metric.name: failed for metric in metrics}
    case = RetrievalCase(question, record.items, matching, record.answer)
    return (setup, question.id), {metric.name: metric.judge(case) for metric in metrics}
