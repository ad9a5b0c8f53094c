"""A gate: compare an evaluation with a saved baseline, question by question."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from ...nodegraph.errors import nearest_names
from .dataset import Dataset
from .gold_places import DocumentTexts, LocatedGold
from .intervals import Difference
from .matching import RetrievedItem
from .metrics import Metric
from .records import Record, RecordFile, document_changes, first_names
from .report import Evaluation, escaped

Verdict: TypeAlias = Literal["lost", "ok", "can't tell", "not judged", "no limit"]
"""The verdict of a check. ``"lost"`` and ``"not judged"`` fail the gate."""

FEWEST_DIFFERENT = 5
"""The number of differing questions that a loss requires: with five, all worse, the exact one-sided
sign test is at 0.031."""

_MAX_LISTED = 10  # questions


@dataclass(frozen=True, slots=True)
class Change:
    """A question whose value has changed.

    Attributes:
        question_id: The id.
        question: The text.
        before: The value of the baseline.
        after: The value now.
    """

    question_id: str
    question: str
    before: float
    after: float

    def __str__(self) -> str:
        return f"{self.question_id}: {self.question} ({self.before:.3f} -> {self.after:.3f})"


@dataclass(frozen=True, slots=True)
class MetricCheck:
    """The comparison of a metric of a system with the baseline.

    Attributes:
        setup: The name of the system.
        metric: The metric.
        max_loss: The allowed loss. None: no limit.
        difference: The paired difference, now minus before, with its 95 % interval.
        lost: The questions that are worse, the largest loss first.
    """

    setup: str
    metric: Metric
    max_loss: float | None
    difference: Difference
    lost: Sequence[Change] = ()

    @property
    def _gain(self) -> tuple[float, float, float]:
        """The gain and its interval. Positive is better."""
        d = self.difference
        value, low, high = d.value or 0.0, d.low or 0.0, d.high or 0.0
        return (value, low, high) if self.metric.higher_is_better else (-value, -high, -low)

    @property
    def verdict(self) -> Verdict:
        """Whether the interval excludes the allowed loss. Else: can't tell."""
        if self.max_loss is None:
            return "no limit"
        if self.difference.value is None:
            return "not judged"
        _, low, high = self._gain
        if high < -self.max_loss and self.difference.different >= FEWEST_DIFFERENT:
            return "lost"
        few = self.difference.questions < FEWEST_DIFFERENT
        return "can't tell" if few or low < -self.max_loss else "ok"

    def __str__(self) -> str:
        name, count = f"{self.metric.name} of {self.setup}", _questions(self.difference.questions)
        if self.difference.value is None:
            return f"{name}: no question is judged both now and in the baseline"
        value, low, high = self.difference.numbers()
        numbers = f"{name}: {value} ({low} to {high})"
        if self.max_loss is None:
            return f"{numbers} on {count}"
        limit = f"{self.max_loss:g}"
        if self.verdict == "lost":
            return f"{numbers} on {count}: worse by more than the {limit} allowed"
        if self.verdict == "ok":
            return f"{numbers} on {count}: no loss above {limit}"
        return f"{numbers}: {count} can't tell whether the loss is above {limit}"


@dataclass(frozen=True, slots=True)
class Gate:
    """A comparison with a baseline. ``print(gate)`` shows it.

    Attributes:
        checks: The check of each metric of each system.
        evaluation: Both evaluations, on their common questions: ``"NAME (baseline)"`` and
            ``"NAME"``.
        failures: The number of failed questions by system.
        notes: Other differences: questions, documents, systems.
        lost_gold: The ids of questions whose gold was in the documents of the baseline and is in
            none now.
        lost_questions: The ids of questions of the baseline that are missing, or have another text.
    """

    checks: Sequence[MetricCheck]
    evaluation: Evaluation
    failures: Mapping[str, int]
    notes: Sequence[str]
    lost_gold: Sequence[str] = ()
    lost_questions: Sequence[str] = ()

    @property
    def passed(self) -> bool:
        """Whether no loss exceeds its limit, no system failed, and all questions were compared."""
        lost = any(check.verdict in ("lost", "not judged") for check in self.checks)
        if lost or self.lost_gold or self.lost_questions:
            return False
        return not self.failures

    def __str__(self) -> str:
        return "\n".join([*self._lines("", "  ", str), self._result()])

    def to_markdown(self) -> str:
        """Return a summary for a pull request. The texts of questions are escaped."""
        head = [f"### Retrieval: {self._result()}", "", self.evaluation.markdown_table(), ""]
        return "\n".join([*head, *self._lines("- ", "  - ", escaped)]) + "\n"

    def _lines(self, bullet: str, nested: str, clean: Callable[[object], str]) -> list[str]:
        lines = []
        for check in self.checks:
            lines.append(f"{bullet}{clean(check)}")
            lines += [f"{nested}lost {clean(change)}" for change in check.lost[:_MAX_LISTED]]
            if (more := len(check.lost) - _MAX_LISTED) > 0:
                lines.append(f"{nested}and {more} more")
        return lines + [f"{bullet}{clean(reason)}" for reason in self._reasons()]

    def _result(self) -> str:
        if all(check.max_loss is None for check in self.checks) and self.passed:
            return "no limit was given, so no loss can fail: --max-loss recall@5=.02 sets one"
        return f"the gate {'passed' if self.passed else 'failed'}"

    def _reasons(self) -> Iterator[str]:
        for setup, count in self.failures.items():
            yield f"{setup} failed on {_questions(count)}"
        for ids, change in (
            (self.lost_gold, "no gold in any document any more"),
            (self.lost_questions, "been removed or changed since the baseline"),
        ):
            if ids:
                have = "has" if len(ids) == 1 else "have"
                yield (
                    f"{_questions(len(ids))} {have} {change}: {first_names(ids, 5)}; if that is "
                    "right, save a new baseline"
                )
        yield from self.notes

    def as_dict(self) -> dict[str, Any]:
        """Return the checks as plain values."""
        checks = []
        for check in self.checks:
            row = {field.name: getattr(check, field.name) for field in fields(check)}
            row |= {"metric": check.metric.name, "difference": asdict(check.difference)}
            row |= {"lost": [*map(asdict, check.lost)], "verdict": check.verdict}
            checks.append({**row, "sentence": str(check)})
        names = ("passed", "failures", "lost_gold", "lost_questions", "notes")
        return {**{name: getattr(self, name) for name in names}, "checks": checks}


def compare_with_baseline(
    evaluation: Evaluation,
    path: str | Path,
    max_loss: Mapping[str, float] | None = None,
) -> Gate:
    """Compare an evaluation with a saved one, and decide whether it passes.

    The results of the baseline are judged again, by the current gold: any metric can be compared,
    and documents may have been split differently.

    Args:
        evaluation: The evaluation.
        path: The file of the baseline: ``Evaluation.save``, or ``path=`` of ``evaluate``.
        max_loss: The allowed loss of metrics: ``{"recall@5": 0.02}``. The gate fails if the
            complete 95 % interval of the paired difference is beyond it.

    Raises:
        FileNotFoundError: If the file is missing.
        ValueError: If the file has no common system or question, or too few results, a metric of
            ``max_loss`` is not measured, or a number is negative.
    """
    limits = dict(max_loss or {})
    for name, limit in limits.items():
        if name not in evaluation.metrics:
            names = nearest_names(name, evaluation.metrics)
            raise ValueError(f"max_loss has {name!r}, which is not measured; measured: {names}")
        if isinstance(limit, bool) or not 0 <= limit < math.inf:
            raise ValueError(f"max_loss of {name!r} must be a number from 0, got {limit!r}")
    if not Path(path).exists():
        raise FileNotFoundError(f"there is no baseline {str(path)!r}; save one first")
    file = RecordFile(path, {})
    setups = [name for name in evaluation.records if name in file.described]
    if not file.described:
        raise ValueError(f"{path} has no results of an evaluation; save a new baseline")
    if not setups:
        raise ValueError(
            f"{path} has the set-ups {', '.join(map(repr, file.described))}, and the evaluation "
            f"{', '.join(map(repr, evaluation.records))}; compare set-ups of the same name"
        )
    both = _joined(evaluation, file, setups)
    checks = [
        _check(both, setup, metric, limits.get(metric.name))
        for setup in setups
        for metric in both.metrics.values()
        if not limits or metric.name in limits
    ]
    failures = {setup: int(evaluation.costs(setup)["failed"]) for setup in evaluation.records}
    before = {key: r.question for (name, key), r in file.records.items() if name in setups}
    now = {question.id: question.text for question in evaluation.dataset.questions}
    missing = Counter(item.question_id for item in evaluation.missing_gold)
    return Gate(
        checks,
        both,
        {setup: count for setup, count in failures.items() if count},
        list(_notes(evaluation, file, both)),
        [key for key in missing if key in before and missing[key] > file.missing.get(key, 0)],
        [key for key, text in before.items() if now.get(key) != text],
    )


def _joined(evaluation: Evaluation, file: RecordFile, setups: Sequence[str]) -> Evaluation:
    """Return both evaluations as one, on their common questions."""
    before, data = file.records, evaluation.dataset
    texts = {(name, key): record.question for (name, key), record in before.items()}
    common = [q for q in data.questions if all(texts.get((s, q.id)) == q.text for s in setups)]
    if not common:
        raise ValueError(f"{file.path} has none of the {len(data)} questions; save a new baseline")
    records = {}
    for setup in setups:
        now = evaluation.records[setup]
        count = max(now[question.id].top_k for question in common)
        fewest = min(before[setup, question.id].top_k for question in common)
        if fewest < count:
            raise ValueError(
                f"{file.path} has {fewest} results of a question, and {count} are compared; save "
                "a new baseline, or compare metrics of fewer results"
            )
        was = f"{setup} (baseline)"
        records[was] = {
            key: _placed(replace(record, setup=was), file, evaluation.texts)
            for key, record in file.of(setup, common, count).items()
        }
        records[setup] = {question.id: now[question.id] for question in common}
    ids = {question.id for question in common}
    gold = LocatedGold(
        Dataset(common, data.documents, data.name),
        [item for item in evaluation.moved_gold if item.question_id in ids],
        [item for item in evaluation.missing_gold if item.question_id in ids],
    )
    metrics = [*evaluation.metrics.values()]
    return Evaluation(gold, metrics, records, evaluation.matching, evaluation.texts, {})


def _placed(record: Record, file: RecordFile, texts: DocumentTexts) -> Record:
    """Return a record of the baseline with the positions of results in the current documents.

    The position of a text that is in none of them is empty, so that it matches no gold.
    """

    def place(item: RetrievedItem) -> RetrievedItem:
        before = file.documents.get(item.document_id)
        if item.start is None or before == texts.hashes.get(item.document_id):
            return item
        placed = texts.place(replace(item, start=None, end=None))
        return placed if placed.start is not None else replace(placed, start=0, end=0)

    return replace(record, items=tuple(map(place, record.items))) if texts.documents else record


def _check(both: Evaluation, setup: str, metric: Metric, limit: float | None) -> MetricCheck:
    """Compare a metric of a system with its baseline."""
    baseline = f"{setup} (baseline)"
    before, now = (both.judgements[metric.name][name] for name in (baseline, setup))
    sign = 1 if metric.higher_is_better else -1
    lost: list[Change] = []
    for question in both.dataset.questions:
        old, new = before[question.id].value, now[question.id].value
        if old is not None and new is not None and sign * new < sign * old:
            lost.append(Change(question.id, question.text, old, new))
    lost.sort(key=lambda change: -abs(change.after - change.before))
    difference = both.difference(metric.name, baseline, setup)
    return MetricCheck(setup, metric, limit, difference, lost)


def _notes(evaluation: Evaluation, file: RecordFile, both: Evaluation) -> Iterator[str]:
    """Describe other differences from the baseline: questions, systems, documents and gold."""
    known = {key for _, key in file.records}
    if new := [q for q in evaluation.dataset.questions if q.id not in known]:
        yield f"{_questions(len(new))} not in the baseline, and not compared"
    for name in dict.fromkeys([*file.described, *evaluation.records]):
        if name not in both.records:
            where = "only in" if name in file.described else "not in"
            yield f"{name} is {where} the baseline, and not compared"
        elif (was := file.described[name]) != (now := evaluation.described.get(name, was)):
            yield f"{name} has changed: {was:.200} in the baseline, now {now:.200}"
    hashes = evaluation.texts.hashes
    if file.documents and hashes and (changes := document_changes(file.documents, hashes)):
        yield f"documents since the baseline: {changes}"


def _questions(count: int) -> str:
    return f"{count} question{'s' * (count != 1)}"
