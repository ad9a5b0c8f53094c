"""A gate: compare an evaluation with a saved one, question by question, and say what was lost."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from ...nodegraph.errors import check_integer, nearest_names
from .dataset import Dataset
from .gold_places import DocumentTexts
from .intervals import Difference, format_value
from .matching import RetrievedItem
from .metrics import Metric
from .records import Record, RecordFile, document_changes
from .report import Evaluation

Verdict: TypeAlias = Literal["lost", "ok", "can't tell", "not judged", "no limit"]
"""What a check says. ``"lost"`` and ``"not judged"`` fail the gate."""

FEWEST_DIFFERENT = 5
"""On so many questions at least a loss shows: if five differ, and all are worse, the exact
one-sided sign test is at 0.031. Fewer questions can't tell."""

MAX_FACTOR = 100  # more than so many times the questions is no advice

MAX_LISTED = 10
"""How many questions that were lost or won are printed."""


@dataclass(frozen=True, slots=True)
class Change:
    """Hold a question of which a metric says something else than before.

    Attributes:
        question_id: Its id.
        question: Its text.
        before: The value in the baseline.
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
    """Hold what became of one metric of one set-up since the baseline.

    Attributes:
        setup: The name of the set-up.
        metric: The metric.
        max_loss: How much worse it may be. None without a limit.
        difference: The paired difference, now minus before, with its 95 % interval.
        before: The figure of the baseline, over the questions that both have.
        after: The figure now.
        lost: The questions that are worse, the largest loss first.
        won: The questions that are better, the largest gain first.
    """

    setup: str
    metric: Metric
    max_loss: float | None
    difference: Difference
    before: float | None
    after: float | None
    lost: Sequence[Change]
    won: Sequence[Change]

    @property
    def _gains(self) -> tuple[float, float, float] | None:
        """The difference and its interval, where more is better."""
        d = self.difference
        if d.value is None or d.low is None or d.high is None:
            return None
        if self.metric.higher_is_better:
            return d.value, d.low, d.high
        return -d.value, -d.high, -d.low

    @property
    def verdict(self) -> Verdict:
        """Whether the loss is above the limit: the interval of the difference excludes the limit.

        With an interval on both sides of the limit, the questions can't tell.
        """
        if self.max_loss is None:
            return "no limit"
        if self._gains is None:
            return "not judged"
        _, low, high = self._gains
        if high < -self.max_loss and self.difference.different >= FEWEST_DIFFERENT:
            return "lost"
        few = self.difference.questions < FEWEST_DIFFERENT
        return "can't tell" if few or low < -self.max_loss else "ok"

    @property
    def questions_needed(self) -> int | None:
        """About how many questions would tell, if the difference stays as it is.

        The width of an interval falls with the square root of the number of questions. None if the
        verdict is known, or if it would take more than a hundred times the questions.
        """
        if self.verdict != "can't tell" or self._gains is None or self.max_loss is None:
            return None
        value, low, high = self._gains
        distance, count = abs(value + self.max_loss), self.difference.questions
        half = high - value if value < -self.max_loss else value - low
        factor = (half / distance) ** 2 if distance > 1e-9 else math.inf
        factor = 0.0 if half == 0 else factor
        factor = max(factor, FEWEST_DIFFERENT / count)
        if value < -self.max_loss:
            factor = max(factor, FEWEST_DIFFERENT / max(1, self.difference.different))
        return _rounded_up(count * factor) if factor <= MAX_FACTOR else None

    def __str__(self) -> str:
        """Return the verdict as a sentence."""
        name, verdict = f"{self.metric.name} of {self.setup}", self.verdict
        if verdict == "not judged":
            return f"{name}: no question is judged both now and in the baseline"
        numbers = f"{name}: {format_difference(self.difference)}"
        count = _questions(self.difference.questions)
        if self.max_loss is None:
            return f"{numbers} on {count}"
        limit = f"{self.max_loss:g}"
        if verdict == "lost":
            return f"{numbers} on {count}: worse by more than the {limit} allowed"
        if verdict == "ok":
            return f"{numbers} on {count}: no loss above {limit}"
        needed = self.questions_needed
        more = f"about {needed:,} would" if needed else "no reasonable number would"
        return f"{numbers}: {count} can't tell whether the loss is above {limit}; {more}"


def format_difference(difference: Difference) -> str:
    """Return a difference and its interval as one text."""
    if difference.value is None or difference.low is None or difference.high is None:
        return "not judged"
    value, low, high = (
        format_value(n, sign=True) for n in (difference.value, difference.low, difference.high)
    )
    return f"{value} ({low} to {high})"


def _rounded_up(number: float) -> int:
    """Return a number of questions with two digits: 157.3 is 160."""
    unit: int = 10 ** max(0, math.ceil(math.log10(number)) - 2)
    return math.ceil(round(number / unit, 6)) * unit


@dataclass(frozen=True, slots=True)
class Gate:
    """Hold a comparison with a baseline. ``print(gate)`` shows it.

    Attributes:
        checks: What became of each metric of each set-up.
        evaluation: Both, on the questions that both have: each set-up as it was, under
            ``"NAME (baseline)"``, and as it is.
        failures: The set-ups that raised, and for how many questions.
        notes: What else differs: questions, documents, set-ups.
        max_failures: How many questions of a set-up may fail.
        lost_gold: The ids of the questions with gold that was in the documents of the baseline,
            and is in none now. It is not compared.
        lost_questions: The ids of the baseline's questions that are there no more, or have
            another text. They are not compared.
        max_missing: How many questions may be among these.
    """

    checks: Sequence[MetricCheck]
    evaluation: Evaluation
    failures: Mapping[str, int]
    notes: Sequence[str]
    max_failures: int
    lost_gold: Sequence[str] = ()
    lost_questions: Sequence[str] = ()
    max_missing: int = 0

    @property
    def passed(self) -> bool:
        """Whether nothing was lost beyond its limit, no set-up failed, and all was compared."""
        lost = any(check.verdict in ("lost", "not judged") for check in self.checks)
        if lost or self._missing_count > self.max_missing:
            return False
        return all(count <= self.max_failures for count in self.failures.values())

    @property
    def _missing_count(self) -> int:
        return len({*self.lost_gold, *self.lost_questions})

    def __str__(self) -> str:
        lines = []
        for check in self.checks:
            lines.append(str(check))
            for what, changes in (("lost", check.lost), ("won", check.won)):
                lines += [f"  {what} {change}" for change in changes[:MAX_LISTED]]
                if len(changes) > MAX_LISTED:
                    lines.append(f"  {what} {len(changes) - MAX_LISTED} more")
        return "\n".join([*lines, *self._reasons(), *self._costs(), *self.notes, self._result()])

    def _result(self) -> str:
        if all(check.max_loss is None for check in self.checks) and self.passed:
            return "no limit was given, so no loss can fail: --max-loss recall@5=.02 sets one"
        return f"the gate {'passed' if self.passed else 'failed'}"

    def _reasons(self) -> list[str]:
        reasons = [
            f"{setup} failed on {_questions(count)}, {self.max_failures} allowed"
            for setup, count in self.failures.items()
        ]
        if ids := self.lost_gold:
            verbs = "its gold and is" if len(ids) == 1 else "their gold and are"
            reasons.append(
                f"{_questions(len(ids))} lost {verbs} not compared by it, since no document has "
                f"it any more: {_listed(ids)}"
            )
        if count := self._missing_count:
            remedy = f"; save a new baseline if that is right, or allow it: --max-missing {count}"
            reasons.append(
                f"{_questions(count)} of the baseline can't be compared as before, "
                f"{self.max_missing} allowed{remedy * (count > self.max_missing)}"
            )
        return reasons

    def to_markdown(self) -> str:
        """Return a summary for a pull request. Texts of questions are escaped."""
        rows: list[tuple[str, ...]] = [
            ("set-up", "metric", "baseline", "now", "difference (95 %)", "allowed", "")
        ]
        rows += [("---",) * len(rows[0])]
        for check in self.checks:
            limit = "" if check.max_loss is None else f"{check.max_loss:g}"
            figures = ["" if f is None else f"{f:.4f}" for f in (check.before, check.after)]
            verdict: str = check.verdict
            if check.questions_needed:
                verdict = f"{verdict}; about {check.questions_needed:,} questions would"
            difference = format_difference(check.difference)
            rows.append((check.setup, check.metric.name, *figures, difference, limit, verdict))
        lines = ["| " + " | ".join(map(_escaped, row)) + " |" for row in rows]
        details = [line for check in self.checks for line in _details(check)]
        notes = [f"- {_escaped(note)}" for note in (*self._reasons(), *self.notes)]
        parts = [
            [f"### Retrieval: {_escaped(self._result())}"],
            lines,
            [_escaped(line) for line in self._costs()],
            notes,
            details,
        ]
        return "\n\n".join("\n".join(part) for part in parts if part) + "\n"

    def _costs(self) -> list[str]:
        """Return what a question costs, before and now."""
        lines = []
        for setup in dict.fromkeys(check.setup for check in self.checks):
            count = len(self.evaluation.dataset)
            pairs = []
            for name in (baseline_name(setup), setup):
                costs = self.evaluation.costs(name)
                calls, tokens = (costs[n] / count for n in ("model_calls", "model_tokens"))
                pairs.append((costs["tokens"], 1000 * costs["median_seconds"], calls, tokens))
            (before, after), units = (
                pairs,
                ("tokens of results", "ms", "model calls", "model tokens"),
            )
            shown = [
                f"{unit} {old:,.4g} -> {new:,.4g}"
                for unit, old, new in zip(units, before, after, strict=True)
                if old or new
            ]
            lines.append(f"a question of {setup} costs {', '.join(shown)}")
        return lines

    def as_dict(self) -> dict[str, Any]:
        """Return the checks as plain values."""
        return {
            "passed": self.passed,
            "checks": [
                {
                    "setup": check.setup,
                    "metric": check.metric.name,
                    "max_loss": check.max_loss,
                    "verdict": check.verdict,
                    "questions_needed": check.questions_needed,
                    "before": check.before,
                    "after": check.after,
                    "difference": asdict(check.difference),
                    "lost": [asdict(change) for change in check.lost],
                    "won": [asdict(change) for change in check.won],
                    "sentence": str(check),
                }
                for check in self.checks
            ],
            "failures": dict(self.failures),
            "lost_gold": list(self.lost_gold),
            "lost_questions": list(self.lost_questions),
            "notes": list(self.notes),
        }


def _questions(count: int) -> str:
    return f"{count} question{'s' * (count != 1)}"


def _listed(ids: Sequence[str]) -> str:
    return ", ".join(map(repr, ids[:5])) + ", ..." * (len(ids) > 5)


def _escaped(text: object) -> str:
    """Return text that is only text in a cell of Markdown, and mentions nobody."""
    line = " ".join(str(text).split()).replace("&", "&amp;").replace("<", "&lt;")
    line = re.sub(r"(?<!\w)@", "&#64;", line)
    return line.replace("|", "\\|").replace("`", "&#96;").replace("[", "&#91;")


def _details(check: MetricCheck) -> list[str]:
    lines = []
    for what, changes in (("lost", check.lost), ("won", check.won)):
        if changes:
            title = f"{len(changes)} {what} by {check.metric.name} of {check.setup}"
            lines += [f"<details><summary>{_escaped(title)}</summary>", ""]
            lines += [f"- {_escaped(change)}" for change in changes[: 5 * MAX_LISTED]]
            if len(changes) > 5 * MAX_LISTED:
                lines.append(f"- {len(changes) - 5 * MAX_LISTED} more")
            lines += ["", "</details>"]
    return lines


def baseline_name(setup: str) -> str:
    """Return what a set-up is called as it was."""
    return f"{setup} (baseline)"


def compare_with_baseline(
    evaluation: Evaluation,
    path: str | Path,
    max_loss: Mapping[str, float] | None = None,
    *,
    max_failures: int = 0,
    max_missing: int = 0,
) -> Gate:
    """Compare an evaluation with one that was saved, and say whether it may pass.

    What the baseline returned is judged again, by the questions' gold of today, so that any metric
    can be compared, and documents may have been split in another way since.

    Args:
        evaluation: The evaluation.
        path: The file of the earlier one: what ``Evaluation.save`` wrote, or ``path=`` of
            ``evaluate``.
        max_loss: How much worse a metric may be: ``{"recall@5": 0.02}``. It has failed if the 95 %
            interval of the paired difference is beyond that as a whole.
        max_failures: For how many questions a set-up may raise.
        max_missing: How many questions of the baseline may be gone, have another text, or have
            gold that is in no document any more.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If it has no set-up or question of these, or too few results, or was cut off.
            If a metric of ``max_loss`` is not measured, or a number is negative.
    """
    limits = dict(max_loss or {})
    check_integer(max_failures, "max_failures", 0)
    check_integer(max_missing, "max_missing", 0)
    for name, limit in limits.items():
        if name not in evaluation.metrics:
            names = nearest_names(name, evaluation.metrics)
            raise ValueError(f"max_loss has {name!r}, which is not measured; there is {names}")
        if isinstance(limit, bool) or not 0 <= limit < math.inf:
            raise ValueError(f"max_loss of {name!r} is a number from 0, not {limit!r}")
    if not Path(path).exists():
        raise FileNotFoundError(f"there is no baseline {str(path)!r}; save one first")
    file = RecordFile(path, {})
    if not file.described:
        raise ValueError(f"{path} has no results of an evaluation; save a new baseline")
    setups = [name for name in evaluation.records if name in file.described]
    if not setups:
        raise ValueError(
            f"{path} has the set-ups {', '.join(map(repr, file.described))}, and the "
            f"evaluation {', '.join(map(repr, evaluation.records))}; compare set-ups by one name"
        )
    _check_complete(file, setups)
    both = _joined(evaluation, file, setups)
    notes = [
        *_question_notes(evaluation, file, setups[0]),
        *_setup_notes(evaluation, file, setups),
        *_gold_notes(both),
    ]
    checks = [
        _check(both, setup, metric, limits.get(metric.name))
        for setup in setups
        for metric in both.metrics.values()
        if not limits or metric.name in limits
    ]
    failures = {
        setup: count
        for setup, records in evaluation.records.items()
        if (count := sum(bool(record.error) for record in records.values()))
    }
    now = {question.id: question.text for question in evaluation.dataset.questions}
    before = {key: r.question for (name, key), r in file.records.items() if name in setups}
    missing = Counter(item.question_id for item in evaluation.missing_gold)
    return Gate(
        *(checks, both, failures, notes, max_failures),
        [key for key in missing if key in before and missing[key] > file.missing.get(key, 0)],
        [key for key, text in before.items() if now.get(key) != text],
        max_missing,
    )


def _check_complete(file: RecordFile, setups: Sequence[str]) -> None:
    """Check that a baseline has as many results as were saved.

    Raises:
        ValueError: If it has fewer.
    """
    for setup in setups:
        count = sum(name == setup for name, _ in file.records)
        if file.count is not None and count < file.count:
            raise ValueError(
                f"{file.path} has the results of {count} of the {_questions(file.count)} that "
                f"were saved of {setup!r}: it was cut off; restore it, or save it again"
            )


def _joined(evaluation: Evaluation, file: RecordFile, setups: Sequence[str]) -> Evaluation:
    """Return both evaluations as one, on the questions that both have."""
    texts = {q.id: q.text for q in evaluation.dataset.questions}
    common = [
        question
        for question in evaluation.dataset.questions
        if all(
            (setup, question.id) in file.records
            and file.records[setup, question.id].question == question.text
            for setup in setups
        )
    ]
    if not common:
        before = next(iter(file.records.values()), None)
        first = f", but {before.question_id!r}: {before.question!r:.80}" if before else ""
        raise ValueError(
            f"{file.path} has none of the {len(texts)} questions{first}; give the baseline of "
            "these questions, or save a new one"
        )
    records = {}
    for setup in setups:
        now = evaluation.records[setup]
        count = max(now[question.id].top_k for question in common)
        fewer = min(file.records[setup, question.id].top_k for question in common)
        if fewer < count:
            raise ValueError(
                f"{file.path} has {fewer} results of a question, and {count} are compared; save "
                "a new baseline, or compare metrics that need fewer"
            )
        was = baseline_name(setup)
        records[was] = {
            identity: _placed(replace(record, setup=was), file, evaluation.texts)
            for identity, record in file.of(setup, common, count).items()
        }
        records[setup] = {question.id: now[question.id] for question in common}
    dataset = Dataset(common, evaluation.dataset.documents, evaluation.dataset.name)
    ids = {question.id for question in common}
    missing = [item for item in evaluation.missing_gold if item.question_id in ids]
    return Evaluation(
        *(dataset, [*evaluation.metrics.values()], records, evaluation.matching, missing),
        moved_gold=[item for item in evaluation.moved_gold if item.question_id in ids],
        texts=evaluation.texts,
    )


def _placed(record: Record, file: RecordFile, texts: DocumentTexts) -> Record:
    """Return a record of the baseline with results where they stand in the documents of today.

    What is in none of them any more stands nowhere, and is no gold.
    """
    if not texts.documents:
        return record

    def place(item: RetrievedItem) -> RetrievedItem:
        before = file.documents.get(item.document_id)
        if item.start is None or before == texts.hashes.get(item.document_id):
            return item
        placed = texts.place(replace(item, start=None, end=None))
        return placed if placed.start is not None else replace(placed, start=0, end=0)

    return replace(record, items=tuple(map(place, record.items)))


def _check(both: Evaluation, setup: str, metric: Metric, limit: float | None) -> MetricCheck:
    before, now = (both.judgements[metric.name][name] for name in (baseline_name(setup), setup))
    changes = [
        Change(question.id, question.text, old, new)
        for question in both.dataset.questions
        if (old := before[question.id].value) is not None
        and (new := now[question.id].value) is not None
        and old != new
    ]
    sign = 1 if metric.higher_is_better else -1
    changes.sort(key=lambda change: -abs(change.after - change.before))
    worse = [change for change in changes if sign * (change.after - change.before) < 0]
    better = [change for change in changes if sign * (change.after - change.before) > 0]
    return MetricCheck(
        *(setup, metric, limit),
        both.difference(metric.name, baseline_name(setup), setup),
        both.figures[baseline_name(setup)][metric.name].value,
        both.figures[setup][metric.name].value,
        *(worse, better),
    )


def _question_notes(evaluation: Evaluation, file: RecordFile, setup: str) -> Iterable[str]:
    """Say which questions are not compared."""
    before = {key: r.question for (name, key), r in file.records.items() if name == setup}
    now = {question.id: question.text for question in evaluation.dataset.questions}
    for ids, verbs, what in (
        ([key for key in now if key not in before], ("is", "are"), "not in the baseline"),
        ([key for key in before if key not in now], ("is", "are"), "only in the baseline"),
        (
            [key for key in now if key in before and before[key] != now[key]],
            ("has", "have"),
            "another text in the baseline",
        ),
    ):
        if ids:
            verb = verbs[len(ids) > 1]
            yield f"{_questions(len(ids))} {verb} {what}, and not compared: {_listed(ids)}"


def _setup_notes(evaluation: Evaluation, file: RecordFile, setups: Sequence[str]) -> Iterable[str]:
    """Say what else has changed: documents, and what set-ups are."""
    hashes = evaluation.texts.hashes
    if file.documents and hashes and (changes := document_changes(file.documents, hashes)):
        yield f"documents since the baseline: {changes}"
    for name in file.described:
        if name not in setups:
            yield f"{name} is only in the baseline, and not compared"
    for name in evaluation.records:
        if name not in setups:
            yield f"{name} is not in the baseline, and not compared"
        elif (was := file.described[name]) != (described := evaluation.described.get(name, was)):
            pairs = enumerate(zip(was, described, strict=False))
            first = next((n for n, (a, b) in pairs if a != b), 0)
            start = was.rfind(" ", 0, first) + 1 if first > 20 else 0
            before, now = (_part(text, start) for text in (was, described))
            yield f"{name} is not what it was: {before} in the baseline, now {now}"


def _part(text: str, start: int) -> str:
    """Return a hundred characters of a text, with dots where some are left out."""
    return "..." * (start > 0) + text[start : start + 100] + "..." * (len(text) > start + 100)


def _gold_notes(both: Evaluation) -> Iterable[str]:
    """Say which gold was found elsewhere than the questions say, and list what was edited."""
    if count := len(both.moved_gold):
        items = "gold item was" if count == 1 else "gold items were"
        yield f"{count} {items} found again elsewhere"
    edited = [moved for moved in both.moved_gold if moved.is_edited]
    yield from (f"found again with another text: {moved}" for moved in edited[:MAX_LISTED])
    if len(edited) > MAX_LISTED:
        yield f"{len(edited) - MAX_LISTED} more were found again with another text"
