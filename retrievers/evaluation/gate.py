"""A regression check that compares an evaluation with a saved baseline, question by question."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, KeysView, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from ...nodegraph.errors import nearest_names
from ..validation import number
from .dataset import Dataset, Question
from .gold_places import LocatedGold
from .metrics import Judgment, Metric
from .records import Record, first_names
from .report import LEAST_DIFFERENT, Difference, Evaluation, escaped

Verdict: TypeAlias = Literal["lost", "ok", "can't tell", "not judged", "no limit"]
"""The result of a check. A check with the verdict ``"lost"`` or ``"not judged"`` fails the gate."""

_MAX_LISTED = 10  # the maximum number of questions in the summary of a check


@dataclass(frozen=True, slots=True)
class MetricCheck:
    """The comparison of one metric of one system with the baseline.

    Attributes:
        setup: The name of the system.
        metric: The metric.
        max_loss: The largest loss that is allowed. If None, the loss is not limited.
        difference: The paired difference between the new and the old value, with its 95 % interval.
        lost: The questions with a worse value than before, largest loss first. Each is a mapping
            with ``question_id``, ``question``, ``before`` and ``after``.

    Example:
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from nodekin.retrievers.evaluation import GoldPassage, Question, evaluate
        >>> texts = [f"Tea {n}" for n in range(40)]
        >>> data = Dataset([Question(text, text, (GoldPassage(text),)) for text in texts])
        >>> before = evaluate({"search": lambda query: [query]}, data, ["recall@1"])
        >>> now = evaluate({"search": lambda query: ["Rivers"]}, data, ["recall@1"])
        >>> with TemporaryDirectory() as folder:
        ...     before.save(Path(folder, "baseline.jsonl"))
        ...     gate = compare_with_baseline(now, Path(folder, "baseline.jsonl"), {"recall@1": 0.1})
        >>> (check,) = gate.checks
        >>> check.verdict, check.difference.value, len(check.lost), check.lost[0]["question_id"]
        ('lost', -1.0, 40, 'Tea 0')
    """

    setup: str
    metric: Metric
    max_loss: float | None
    difference: Difference
    lost: Sequence[Mapping[str, Any]] = ()

    @property
    def verdict(self) -> Verdict:
        """The result of the check.

        - ``"lost"``: The whole interval exceeds the allowed loss, and at least five questions
          differ.
        - ``"ok"``: No part of the interval exceeds the allowed loss.
        - ``"can't tell"``: Neither of these is the case, so the number of questions is too small.
        - ``"not judged"``: No question was judged both in this evaluation and in the baseline.
        - ``"no limit"``: The loss is not limited, because ``max_loss`` is None.
        """
        if self.max_loss is None:
            return "no limit"
        d = self.difference
        if d.value is None or d.low is None or d.high is None:
            return "not judged"
        worst, best = (d.low, d.high) if self.metric.higher_is_better else (-d.high, -d.low)
        if best < -self.max_loss and d.different >= LEAST_DIFFERENT:
            return "lost"
        if worst < -self.max_loss or d.questions < LEAST_DIFFERENT:
            return "can't tell"
        return "ok"

    def __str__(self) -> str:
        name = f"{self.metric.name} of {self.setup}"
        count = _questions(self.difference.questions)
        if self.difference.value is None:
            return f"{name}: no question is judged both now and in the baseline"
        value, low, high = self.difference.numbers()
        limit = f"{self.max_loss or 0:g}"
        conclusions = {
            "lost": f" on {count}: worse by more than the {limit} allowed",
            "ok": f" on {count}: no loss above {limit}",
            "can't tell": f": {count} can't tell whether the loss is above {limit}",
        }
        conclusion = conclusions.get(self.verdict, f" on {count}")
        return f"{name}: {value} ({low} to {high}){conclusion}"

    def as_dict(self) -> dict[str, Any]:
        """Convert the check to a dictionary of plain values, with the verdict and a sentence."""
        return {
            "setup": self.setup,
            "max_loss": self.max_loss,
            "lost": self.lost,
            "verdict": self.verdict,
            "metric": self.metric.name,
            "difference": asdict(self.difference),
            "sentence": str(self),
        }


@dataclass(frozen=True, slots=True)
class Gate:
    """The result of ``compare_with_baseline``, which can be printed.

    Attributes:
        checks: The checks of all metrics and systems.
        evaluation: Both evaluations, restricted to the questions that they have in common. The
            systems are named ``"NAME (baseline)"`` and ``"NAME"``.
        failures: The number of questions on which each system failed.
        notes: Notes on questions and systems that were not compared.
        lost_gold: The ids of questions with a relevant passage that was in the documents of the
            baseline and has disappeared.
        lost_questions: The ids of questions in the baseline that are now missing, or whose text or
            relevant passages have changed.

    Example:
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from nodekin.retrievers.evaluation import GoldPassage, Question, evaluate
        >>> texts = [f"Tea {n}" for n in range(40)]
        >>> data = Dataset([Question(text, text, (GoldPassage(text),)) for text in texts])
        >>> before = evaluate({"search": lambda query: [query]}, data, ["recall@1"])
        >>> now = evaluate({"search": lambda query: ["Rivers"]}, data, ["recall@1"])
        >>> with TemporaryDirectory() as folder:
        ...     before.save(Path(folder, "baseline.jsonl"))
        ...     gate = compare_with_baseline(now, Path(folder, "baseline.jsonl"), {"recall@1": 0.1})
        >>> gate.passed, gate.checks[0].verdict
        (False, 'lost')
    """

    checks: Sequence[MetricCheck]
    evaluation: Evaluation
    failures: Mapping[str, int]
    notes: Sequence[str]
    lost_gold: Sequence[str] = ()
    lost_questions: Sequence[str] = ()

    @property
    def passed(self) -> bool:
        """Whether the evaluation passed the check.

        This is the case if no loss exceeds its limit, no system failed, and all questions of the
        baseline were compared.
        """
        lost = any(check.verdict in ("lost", "not judged") for check in self.checks)
        return not (lost or self.lost_gold or self.lost_questions or self.failures)

    def __str__(self) -> str:
        return self.text()

    def text(self, *, translate: Callable[[str], str] = str) -> str:
        """Return the checks and the result as lines for a terminal.

        Args:
            translate: A function that translates each sentence. By default, they are in English.
        """
        return "\n".join([*self._lines("", "  ", translate), translate(self._result())])

    def to_markdown(self) -> str:
        """Return a summary for a pull request, in which the texts of questions are escaped."""
        head = [f"### Retrieval: {self._result()}", "", self.evaluation.markdown_table(), ""]
        return "\n".join([*head, *self._lines("- ", "  - ", escaped)]) + "\n"

    def _lines(self, bullet: str, nested: str, convert: Callable[[str], str]) -> Iterator[str]:
        """Yield the sentences on checks, failures, questions and systems as a list.

        Args:
            bullet: The beginning of each line.
            nested: The beginning of each line on a lost question.
            convert: A function that escapes or translates a sentence.
        """
        for check in self.checks:
            yield f"{bullet}{convert(str(check))}"
            for lost in check.lost[:_MAX_LISTED]:
                values = f"{lost['before']:.3f} -> {lost['after']:.3f}"
                sentence = f"lost {lost['question_id']}: {lost['question']} ({values})"
                yield f"{nested}{convert(sentence)}"
            more = len(check.lost) - _MAX_LISTED
            if more > 0:
                yield f"{nested}{convert(f'and {more} more')}"
        for setup, count in self.failures.items():
            yield f"{bullet}{convert(f'{setup} failed on {_questions(count)}')}"
        changes = {
            "no gold in any document any more": self.lost_gold,
            "been removed or changed since the baseline": self.lost_questions,
        }
        for change, ids in changes.items():
            if ids:
                have = "has" if len(ids) == 1 else "have"
                sentence = (
                    f"{_questions(len(ids))} {have} {change}: {first_names(ids, 5)}; if that is "
                    "right, save a new baseline"
                )
                yield f"{bullet}{convert(sentence)}"
        for note in self.notes:
            yield f"{bullet}{convert(note)}"

    def _result(self) -> str:
        if all(check.max_loss is None for check in self.checks) and self.passed:
            return "no limit was given, so no loss can fail: --max-loss recall@5=.02 sets one"
        return f"the gate {'passed' if self.passed else 'failed'}"

    def as_dict(self) -> dict[str, Any]:
        """Convert the checks to a dictionary of plain values."""
        names = ("passed", "failures", "lost_gold", "lost_questions", "notes")
        checks = [check.as_dict() for check in self.checks]
        return {**{name: getattr(self, name) for name in names}, "checks": checks}


def compare_with_baseline(
    evaluation: Evaluation,
    path: str | Path,
    max_loss: Mapping[str, float] | None = None,
) -> Gate:
    """Compare an evaluation with a saved one, and decide whether it passes.

    The saved values of the baseline are used; nothing is evaluated again. If the text, the relevant
    passages or the answers of a question have changed, the question is not compared, and the gate
    fails.

    Args:
        evaluation: The new evaluation.
        path: The path of the baseline, which was written by ``Evaluation.save``.
        max_loss: The largest loss that is allowed for each metric, such as ``{"recall@5": 0.02}``.
            The gate fails if the whole 95 % interval of the paired difference exceeds the allowed
            loss. If None, all metrics of the evaluation are compared without a limit.

    Returns:
        The checks of all metrics, and whether the gate is passed.

    Raises:
        FileNotFoundError: If the file does not exist.
        TypeError: If an allowed loss is not a number.
        ValueError: If the file has a different format, has no system or question in common with the
            evaluation, or lacks a metric. Also raised if a metric in ``max_loss`` is not measured,
            or a number is negative.

    Example:
        >>> from pathlib import Path
        >>> from tempfile import TemporaryDirectory
        >>> from nodekin.retrievers.evaluation import GoldPassage, Question, evaluate
        >>> texts = [f"Tea {n}" for n in range(40)]
        >>> data = Dataset([Question(text, text, (GoldPassage(text),)) for text in texts])
        >>> before = evaluate({"search": lambda query: [query]}, data, ["recall@2"])
        >>> now = evaluate({"search": lambda query: ["Rivers", query]}, data, ["recall@2"])
        >>> with TemporaryDirectory() as folder:
        ...     before.save(Path(folder, "baseline.jsonl"))
        ...     gate = compare_with_baseline(now, Path(folder, "baseline.jsonl"), {"recall@2": 0.1})
        >>> gate.passed, gate.checks[0].verdict
        (True, 'ok')
    """
    limits = dict(max_loss or {})
    metrics = _limited(evaluation, limits)
    baseline = _load(path)
    setups = [name for name in evaluation.records if name in baseline.records]
    asked = _asked(baseline.records)
    common = _unchanged_questions(evaluation, asked)
    if not setups or not common:
        raise ValueError(
            f"{path} has the set-ups {_quoted(baseline.records)}, and the evaluation "
            f"{_quoted(evaluation.records)}; compare set-ups of the same name on the same "
            "questions, or save a new baseline"
        )
    for metric in metrics:
        _check_measured(metric, baseline, path)
    both = _joined(evaluation, baseline, setups, metrics, common)
    checks: list[MetricCheck] = []
    for setup in setups:
        checks += [_check(both, setup, metric, limits.get(metric.name)) for metric in metrics]
    kept = {question.id for question in common}
    return Gate(
        checks,
        both,
        failures=_failures(evaluation),
        notes=[*_notes(evaluation, baseline.records.keys(), asked)],
        lost_gold=[key for key in _newly_missing(evaluation, baseline) if key in asked],
        lost_questions=[key for key in asked if key not in kept],
    )


def _limited(evaluation: Evaluation, limits: Mapping[str, float]) -> list[Metric]:
    """Return the metrics that have a limit. If no limit is given, all metrics are returned.

    Raises:
        TypeError: If a limit is not a number.
        ValueError: If a metric is not measured, or a limit is negative.
    """
    for name, limit in limits.items():
        if name not in evaluation.metrics:
            names = nearest_names(name, evaluation.metrics)
            raise ValueError(f"max_loss has {name!r}, which is not measured; measured: {names}")
        number(limit, f"max_loss of {name!r}")
    return [evaluation.metrics[name] for name in evaluation.metrics if not limits or name in limits]


class _Baseline(NamedTuple):
    """A saved evaluation.

    Attributes:
        metrics: The names of the metrics.
        missing_gold: The number of relevant items that were in no document, by question id.
        records: The records without results, by system and question id.
        values: The values of the metrics, by system and question id.
    """

    metrics: Sequence[str]
    missing_gold: Mapping[str, int]
    records: dict[str, dict[str, Record]]
    values: dict[str, dict[str, Mapping[str, float | None]]]


def _load(path: str | Path) -> _Baseline:
    """Read a baseline from a file.

    Raises:
        ValueError: If the file has a different format.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").strip().split("\n")
        header, *rows = [json.loads(line) for line in lines]
        baseline = _Baseline(header["metrics"], header["missing_gold"], {}, {})
        for row in rows:
            values = row.pop("values")
            record = Record(**{**row, "items": ()})
            baseline.records.setdefault(record.setup, {})[record.question_id] = record
            baseline.values.setdefault(record.setup, {})[record.question_id] = values
        return baseline
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(
            f"{path} must be a baseline of an evaluation, got {type(error).__name__}: {error}"
        ) from error


def _check_measured(metric: Metric, baseline: _Baseline, path: str | Path) -> None:
    """Raise a ValueError if a baseline does not contain a metric."""
    if metric.name not in baseline.metrics:
        names = nearest_names(metric.name, baseline.metrics)
        raise ValueError(
            f"{path} has the metrics {names}, not {metric.name!r}; save a new baseline"
        )


def _unchanged_questions(evaluation: Evaluation, asked: Mapping[str, str]) -> list[Question]:
    """Return the questions whose text, relevant passages and answers are equal to a baseline's.

    Args:
        evaluation: The new evaluation.
        asked: The hashes of the baseline's questions, by question id.
    """
    now = _asked(evaluation.records)
    questions = evaluation.dataset.questions
    return [question for question in questions if asked.get(question.id) == now[question.id]]


def _newly_missing(evaluation: Evaluation, baseline: _Baseline) -> list[str]:
    """Return the ids of questions for which more relevant items are missing than in a baseline."""
    missing = Counter(change.question_id for change in evaluation.missing_gold)
    before = baseline.missing_gold
    return [key for key, count in missing.items() if count > before.get(key, 0)]


def _failures(evaluation: Evaluation) -> dict[str, int]:
    """Return the number of failed questions for each system with failures."""
    failed = {setup: int(evaluation.costs(setup)["failed"] or 0) for setup in evaluation.records}
    return {setup: count for setup, count in failed.items() if count}


def _asked(records: Mapping[str, Mapping[str, Record]]) -> dict[str, str]:
    """Return a hash of each question, by question id."""
    asked: dict[str, str] = {}
    for of_setup in records.values():
        asked |= {key: record.asked for key, record in of_setup.items()}
    return asked


def _joined(
    evaluation: Evaluation,
    baseline: _Baseline,
    setups: Sequence[str],
    metrics: Sequence[Metric],
    questions: Sequence[Question],
) -> Evaluation:
    """Combine the records of the baseline and of the new evaluation into one evaluation."""
    records: dict[str, dict[str, Record]] = {}
    judgments: dict[str, dict[str, dict[str, Judgment]]] = {m.name: {} for m in metrics}
    for setup in setups:
        before = f"{setup} (baseline)"
        records[before] = {q.id: baseline.records[setup][q.id] for q in questions}
        records[setup] = {q.id: evaluation.records[setup][q.id] for q in questions}
        values = baseline.values[setup]
        for name, judged in judgments.items():
            now = evaluation.judgments[name][setup]
            judged[before] = {q.id: Judgment(values[q.id][name]) for q in questions}
            judged[setup] = {q.id: now[q.id] for q in questions}
    dataset = Dataset(questions, name=evaluation.dataset.name)
    return Evaluation(LocatedGold(dataset), metrics, records, judgments)


def _check(both: Evaluation, setup: str, metric: Metric, limit: float | None) -> MetricCheck:
    """Compare one metric of a system with its baseline."""
    baseline = f"{setup} (baseline)"
    before = both.judgments[metric.name][baseline]
    now = both.judgments[metric.name][setup]
    sign = 1 if metric.higher_is_better else -1
    lost: list[dict[str, Any]] = []
    for question in both.dataset.questions:
        old = before[question.id].value
        new = now[question.id].value
        if old is not None and new is not None and sign * new < sign * old:
            row = {"question_id": question.id, "question": question.text}
            lost.append({**row, "before": old, "after": new})
    lost.sort(key=lambda row: -abs(row["after"] - row["before"]))
    difference = both.difference(metric.name, baseline, setup)
    return MetricCheck(setup, metric, limit, difference, lost)


def _notes(evaluation: Evaluation, baseline: KeysView[str], asked: Container[str]) -> Iterator[str]:
    """Describe the questions and systems that only one of the two evaluations contains."""
    new = [question for question in evaluation.dataset.questions if question.id not in asked]
    if new:
        yield f"{_questions(len(new))} not in the baseline, and not compared"
    for name in sorted(baseline - evaluation.records.keys()):
        yield f"{name} is only in the baseline, and not compared"
    for name in sorted(evaluation.records.keys() - baseline):
        yield f"{name} is not in the baseline, and not compared"


def _quoted(names: Iterable[str]) -> str:
    return ", ".join([repr(name) for name in names])


def _questions(count: int) -> str:
    return f"{count} question{'s' * (count != 1)}"
