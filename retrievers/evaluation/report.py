"""The results of an evaluation: mean values, differences, and reports in several formats."""

from __future__ import annotations

import csv
import io
import json
import re
import statistics
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from ...nodegraph.errors import nearest_names
from .gold_places import LocatedGold
from .metrics import Judgment, Metric
from .records import Record, first_names

RESAMPLES = 2000

LEAST_DIFFERENT = 5
"""The number of questions that must differ before a system is called better or a metric lost.

If all five questions differ in the same direction, the p-value of the exact one-sided sign test is
0.031.
"""


@dataclass(frozen=True, slots=True)
class Figure:
    """The mean value of a metric over the judged questions, as returned by ``Evaluation.figure``.

    Attributes:
        value: The mean, or None if no question was judged.
        low: The lower end of the 95 % interval.
        high: The upper end of the 95 % interval.
        judged: The number of judged questions.
        not_judged: The number of questions without a value.

    Example:
        >>> from nodekin.retrievers.evaluation import Dataset, GoldPassage, Question, evaluate
        >>> data = Dataset([Question("1", "Which tea is green?", (GoldPassage("Green tea"),))])
        >>> systems = {"search": lambda query: ["Rivers", "Green tea"]}
        >>> figure = evaluate(systems, data, ["mrr@2"]).figure("search", "mrr@2")
        >>> figure.value, figure.judged
        (0.5, 1)
    """

    value: float | None
    low: float | None
    high: float | None
    judged: int
    not_judged: int

    def __str__(self) -> str:
        if self.value is None or self.low is None or self.high is None:
            return "not judged"
        digits = 4 if abs(self.value) < 10 else 1
        return f"{self.value:.{digits}f} ({self.low:.3f} to {self.high:.3f})"


@dataclass(frozen=True, slots=True)
class Difference:
    """The paired difference of a metric between two systems.

    Attributes:
        metric: The name of the metric.
        first: The name of the first system.
        second: The name of the second system.
        value: The value of the second system minus the value of the first, over the questions that
            were judged for both. It is None if no question was judged for both.
        low: The lower end of the 95 % interval.
        high: The upper end of the 95 % interval.
        questions: The number of questions that were judged for both systems.
        different: The number of questions with different values.
        better: The name of the better system, or None if the difference is not significant.
    """

    metric: str
    first: str
    second: str
    value: float | None
    low: float | None
    high: float | None
    questions: int
    different: int
    better: str | None

    def numbers(self, sign: str = "+") -> tuple[str, str, str]:
        """Return the value and its interval as strings, either with signs or as absolute values."""
        value = self.value or 0.0
        low = self.low or 0.0
        high = self.high or 0.0
        if not sign:
            value = abs(value)
            low, high = sorted((abs(low), abs(high)))
        form = f"{sign}.{3 if abs(value) < 10 else 1}f"
        return f"{value:{form}}", f"{low:{form}}", f"{high:{form}}"

    def __str__(self) -> str:
        if self.value is None:
            return f"{self.metric}: no question is judged for both {self.first} and {self.second}"
        if self.better is None:
            noun = "question" if self.questions == 1 else "questions"
            value, low, high = self.numbers()
            return (
                f"{self.metric}: no difference between {self.first} and {self.second} that "
                f"{self.questions} {noun} could show ({value}, {low} to {high})"
            )
        worse = self.first if self.better == self.second else self.second
        value, low, high = self.numbers(sign="")
        return f"{self.metric}: {self.better} is better than {worse} by {value}, {low} to {high}"


def make_figure(metric: Metric, judgments: Sequence[Judgment]) -> Figure:
    """Return the mean of a metric with a bootstrap percentile interval over questions.

    Questions are drawn with replacement and a fixed seed (Efron, 1979; for retrieval: Sakai, 2006).
    If a bounded metric has the same value for all questions, the bootstrap has no variance. The
    interval is then extended by 3 / n, following the rule of three (Hanley and Lippman-Hand, 1983).
    """
    values = [judgment.value for judgment in judgments if judgment.value is not None]
    missing = len(judgments) - len(values)
    if not values:
        return Figure(None, None, None, 0, missing)
    value = sum(values) / len(values)
    low, high = bootstrap([(value,) for value in values])
    if metric.bounded and len(set(values)) == 1:
        low = max(0.0, value - 3 / len(values))
        high = min(1.0, value + 3 / len(values))
    return Figure(value, low, high, len(values), missing)


def make_difference(
    metric: Metric,
    first: str,
    second: str,
    judgments: Mapping[str, Mapping[str, Judgment]],
) -> Difference:
    """Return the paired difference between two systems, over the questions judged for both.

    A system is called better only if the interval of a paired bootstrap excludes 0 and at least
    five questions differ.

    Args:
        metric: The metric.
        first: The name of the first system.
        second: The name of the second system.
        judgments: The judgments of each system, by question id.
    """
    after = judgments[second]
    pairs = [
        (before.value, other.value)
        for key, before in judgments[first].items()
        if before.value is not None and (other := after.get(key)) and other.value is not None
    ]
    if not pairs:
        return Difference(metric.name, first, second, None, None, None, 0, 0, None)
    count = len(pairs)
    value = sum(new for _, new in pairs) / count - sum(old for old, _ in pairs) / count
    low, high = bootstrap(pairs)
    different = sum(old != new for old, new in pairs)
    better = None
    if different >= LEAST_DIFFERENT and not low <= 0 <= high:
        better = second if (value > 0) == metric.higher_is_better else first
    return Difference(metric.name, first, second, value, low, high, count, different, better)


def bootstrap(rows: Sequence[tuple[float, ...]]) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of a mean, or of the difference between two means.

    Args:
        rows: For each question, a tuple with one value, or with the values of both systems.
    """
    import numpy as np

    kinds = Counter(rows)  # questions with equal values are drawn together
    count = len(rows)
    shares = np.array([*kinds.values()]) / count
    draws = np.random.default_rng(0).multinomial(count, shares, RESAMPLES)
    means = draws @ np.array([*kinds], float) / count
    values = means[:, 0] if len(rows[0]) == 1 else means[:, 1] - means[:, 0]
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)


class Evaluation:
    """The results of several systems for the questions of a data set, with their metrics.

    An evaluation is returned by ``evaluate``. ``print(evaluation)`` displays a table and the
    differences between the systems.

    Args:
        gold: The questions, with the relevant items that were moved or are missing.
        metrics: The metrics.
        records: The results, by system and question id.
        judgments: The judgments, by metric, system and question id.
        id_problems: The reason for each system whose document ids cannot be compared with the ids
            of the relevant items.

    Attributes:
        dataset: The questions.
        metrics: The metrics, by name.
        records: The results, by system and question id.
        judgments: The judgments, by metric, system and question id.
        missing_gold: The relevant items that no document contains, if documents are given. They are
            not counted.
        moved_gold: The relevant items that were found at a different location.
        id_problems: The reason for each system whose document ids cannot be compared with the ids
            of the relevant items. For such a system, items that are identified by an id are not
            judged.

    Example:
        >>> from nodekin.retrievers.evaluation import Dataset, GoldPassage, Question, evaluate
        >>> data = Dataset([Question("1", "What is green?", (GoldPassage("Tea"),))])
        >>> systems = {"old": lambda query: ["Rivers", "Tea"], "new": lambda query: ["Tea"]}
        >>> evaluation = evaluate(systems, data, ["mrr@2"])
        >>> [evaluation.figure(name, "mrr@2").value for name in systems]
        [0.5, 1.0]
    """

    def __init__(
        self,
        gold: LocatedGold,
        metrics: Sequence[Metric],
        records: Mapping[str, Mapping[str, Record]],
        judgments: Mapping[str, Mapping[str, Mapping[str, Judgment]]],
        id_problems: Mapping[str, str] | None = None,
    ) -> None:
        self.dataset = gold.dataset
        self.id_problems = dict(id_problems or {})
        self.missing_gold = gold.missing
        self.moved_gold = gold.moved
        self.metrics = {metric.name: metric for metric in metrics}
        self.records = records
        self.judgments = judgments

    def __repr__(self) -> str:
        return f"Evaluation({list(self.records)}, {len(self.dataset)} questions)"

    def __str__(self) -> str:
        differences = [str(difference) for difference in self.differences()]
        return "\n".join([self.table(), *differences, *self.notes()])

    @cached_property
    def figures(self) -> dict[str, dict[str, Figure]]:
        """The mean values with their intervals, by system and metric."""
        return {setup: self._figures_of(setup) for setup in self.records}

    def _figures_of(self, setup: str) -> dict[str, Figure]:
        figures = {}
        for name, metric in self.metrics.items():
            figures[name] = make_figure(metric, [*self.judgments[name][setup].values()])
        return figures

    def figure(self, setup: str, metric: str) -> Figure:
        """Return the mean value of a metric for a system.

        Raises:
            ValueError: If the system or the metric is unknown.
        """
        self._check(metric, setup)
        return self.figures[setup][metric]

    def difference(self, metric: str, first: str, second: str) -> Difference:
        """Return the difference between two systems on the same questions.

        Raises:
            ValueError: If a system or the metric is unknown.
        """
        self._check(metric, first, second)
        return make_difference(self.metrics[metric], first, second, self.judgments[metric])

    def differences(self) -> list[Difference]:
        """Return the difference of each metric between the first system and each other system."""
        first, *others = self.records
        differences: list[Difference] = []
        for other in others:
            differences += [self.difference(name, first, other) for name in self.metrics]
        return differences

    def _check(self, metric: str, *setups: str) -> None:
        """Raise a ValueError if a metric or a system is unknown."""
        _check_name("metric", metric, self.metrics)
        for setup in setups:
            _check_name("set-up", setup, self.records)

    def notes(self) -> list[str]:
        """Return notes on failures and on questions that were not judged."""
        notes: list[str] = []
        for setup in self.records:
            notes += self._notes_on(setup)
        for changes, what in (
            (self.missing_gold, "in no document and not counted"),
            (self.moved_gold, "moved"),
        ):
            if changes:
                items = "item is" if len(changes) == 1 else "items are"
                notes.append(f"{len(changes)} gold {items} {what}; {changes[0]}")
        return notes

    def _notes_on(self, setup: str) -> list[str]:
        """Return notes on the failures of one system and on questions it was not judged for."""
        notes = []
        records = self.records[setup]
        failed = [record for record in records.values() if record.error]
        if failed:
            notes.append(
                f"{setup} failed on {len(failed)} of {len(records)} questions; question "
                f"{failed[0].question_id!r}: {failed[0].error:.200}"
            )
        problem = self.id_problems.get(setup)
        if problem:
            notes.append(f"{setup} is not judged: {problem}")
        for name in self.metrics:
            judged = self.judgments[name][setup].items()
            reasons = {key: judgment.reason for key, judgment in judged if judgment.value is None}
            others = [
                key
                for key, reason in reasons.items()
                if reason != problem and not records[key].error
            ]
            if others:
                notes.append(
                    f"{setup}, {name}: {len(reasons)} of {len(records)} questions are not "
                    f"judged ({first_names(others, 3)}); {reasons[others[0]]:.200}"
                )
        return notes

    def costs(self, setup: str) -> dict[str, float | None]:
        """Return the costs of a system.

        ``median_seconds`` is the median duration of a question. The first question may take longer,
        because indexes are built. ``tokens`` is the mean number of tokens in the results of a
        question, without failed questions. ``prompt_tokens`` and ``completion_tokens`` are mean
        numbers per question, or None if a model call did not report its tokens.
        """
        records = self.records[setup].values()
        tokens = [record.tokens for record in records if not record.error]
        return {
            "median_seconds": statistics.median(record.seconds for record in records),
            "tokens": statistics.fmean(tokens or [0]),
            "model_calls": sum(record.model_calls for record in records),
            "cached_calls": sum(record.cached_calls for record in records),
            "prompt_tokens": _mean_tokens([record.prompt_tokens for record in records]),
            "completion_tokens": _mean_tokens([record.completion_tokens for record in records]),
            "failed": sum(bool(record.error) for record in records),
        }

    def _rows(self, translate: Callable[[str], str] = str) -> list[list[str]]:
        costs = ["judged", "failed", "ms", "tokens", "model calls"]
        has_tokens = any(self.costs(setup)["prompt_tokens"] for setup in self.figures)
        if has_tokens:
            costs.append("model tokens")
        rows = [[translate("set-up"), *self.metrics, *[translate(name) for name in costs]]]
        for setup, figures in self.figures.items():
            cost = self.costs(setup)
            judged = [figure.judged for figure in figures.values()]
            fewest = min(judged)
            most = max(judged)
            row = [setup, *[translate(str(figure)) for figure in figures.values()]]
            row += [f"{fewest}" if fewest == most else translate(f"{fewest} to {most}")]
            seconds = cost["median_seconds"] or 0
            row += [f"{cost['failed']:.0f}", f"{1000 * seconds:.1f}"]
            row += [f"{cost[name]:.0f}" for name in ("tokens", "model_calls")]
            if has_tokens:
                row.append(_sum_of_tokens(cost["prompt_tokens"], cost["completion_tokens"]))
            rows.append(row)
        return rows

    def table(self, *, translate: Callable[[str], str] = str) -> str:
        """Return the values as a table for a terminal.

        Args:
            translate: A function that translates the headings and values of the table, but not the
                names of systems and metrics. By default, they are in English.
        """
        from rich.cells import cell_len, set_cell_size

        columns = []
        for column in zip(*self._rows(translate), strict=True):
            width = max([cell_len(cell) for cell in column])
            columns.append([set_cell_size(cell, width) for cell in column])
        return "\n".join(["  ".join(row).rstrip() for row in zip(*columns, strict=True)])

    def markdown_table(self) -> str:
        """Return the values as a Markdown table."""
        header, *rows = self._rows()
        lines = []
        for row in (header, ["---"] * len(header), *rows):
            cells = [escaped(cell) for cell in row]
            lines.append(f"| {' | '.join(cells)} |")
        return "\n".join(lines)

    def to_markdown(self) -> str:
        """Return the table, the differences and the notes as Markdown."""
        notes = [f"- {escaped(line)}\n" for line in (*self.differences(), *self.notes())]
        return "\n".join([self.markdown_table(), "", "".join(notes)])

    def to_csv(self) -> str:
        """Return the judgments as CSV, with one line per judgment."""
        output = io.StringIO()
        writer = csv.writer(output, lineterminator="\n")
        columns = ("metric", "value", "judged", "reason", "evidence")
        writer.writerow(["setup", "question_id", "question", *columns])
        for setup, records in self.records.items():
            for key, record in records.items():
                for name in self.metrics:
                    j = self.judgments[name][setup][key]
                    cells = (name, j.value, j.value is not None, j.reason, j.evidence)
                    writer.writerow([setup, key, record.question, *cells])
        return output.getvalue()

    def as_dict(self) -> dict[str, Any]:
        """Convert the evaluation to JSON values, including the results of each question."""
        figures: dict[str, Any] = {}
        results: dict[str, Any] = {}
        for setup, records in self.records.items():
            of_setup = self.figures[setup].items()
            figures[setup] = {name: asdict(figure) for name, figure in of_setup}
            results[setup] = [self._result(setup, key, record) for key, record in records.items()]
        return {
            "dataset": self.dataset.name,
            "questions": len(self.dataset),
            "figures": figures,
            "costs": {setup: self.costs(setup) for setup in self.records},
            "differences": [{**asdict(d), "sentence": str(d)} for d in self.differences()],
            "notes": self.notes(),
            "moved_gold": [{**asdict(m), "sentence": str(m)} for m in self.moved_gold],
            "missing_gold": [{**asdict(m), "sentence": str(m)} for m in self.missing_gold],
            "results": results,
        }

    def _result(self, setup: str, key: str, record: Record) -> dict[str, Any]:
        judgments = {name: asdict(judged[setup][key]) for name, judged in self.judgments.items()}
        return {**asdict(record), "judgments": judgments}

    def save(self, path: str | Path) -> None:
        """Write the values of all questions to a file that ``compare_with_baseline`` can read.

        An existing file is replaced. The texts of the results are not written.

        Raises:
            ValueError: If a system was not judged because its document ids cannot be compared.
        """
        for setup, problem in self.id_problems.items():
            raise ValueError(f"a baseline must have judged systems: {setup}: {problem}")
        missing = Counter(change.question_id for change in self.missing_gold)
        rows: list[object] = [{"metrics": [*self.metrics], "missing_gold": missing}]
        for setup, records in self.records.items():
            for key, record in records.items():
                values = {name: j[setup][key].value for name, j in self.judgments.items()}
                rows.append({**asdict(replace(record, items=(), answer=None)), "values": values})
        lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
        Path(path).write_text("".join(lines), encoding="utf-8", newline="\n")

    def save_figure(self, path: str | Path) -> None:
        """Save a plot of the values and their intervals to a file, such as ``.png`` or ``.svg``.

        Each metric has its own panel, which contains a point and an interval for each judged
        system.

        Raises:
            ImportError: If matplotlib is not installed.
            ValueError: If matplotlib does not support the suffix.
        """
        try:
            from matplotlib import rc_context
            from matplotlib.figure import Figure as Canvas
        except ImportError as error:
            raise ImportError('figures need matplotlib: pip install "nodekin[eval]"') from error
        height = (0.3 * len(self.figures) + 0.8) * len(self.metrics)  # the height in inches
        with rc_context({"text.parse_math": False}):
            canvas = Canvas(figsize=(7.5, height), layout="constrained")
            panels = canvas.subplots(len(self.metrics), squeeze=False)[:, 0]
            for metric, panel in zip(self.metrics, panels, strict=True):
                for setup, figures in reversed(self.figures.items()):
                    if (figure := figures[metric]).judged:
                        panel.plot([figure.low, figure.high], [setup] * 2, "C0", linewidth=2)
                        panel.plot(figure.value, setup, "C0o")
                panel.set_title(metric, loc="left", fontsize=10)
                panel.margins(y=0.2)
                panel.grid(axis="x", alpha=0.3)
            canvas.savefig(path, dpi=150)


def escaped(text: object) -> str:
    """Convert a text to one line of Markdown, in which markup and mentions of users are escaped."""
    line = " ".join(str(text).split()).replace("&", "&amp;").replace("<", "&lt;")
    line = re.sub(r"(?<!\w)@", "&#64;", line)
    return line.replace("|", "\\|").replace("`", "&#96;").replace("[", "&#91;")


def _check_name(kind: str, name: str, known: Collection[str]) -> None:
    """Raise a ValueError if a name is unknown."""
    if name not in known:
        raise ValueError(f"a {kind} must be {nearest_names(name, known)}, got {name!r}")


def _sum_of_tokens(prompt: float | None, completion: float | None) -> str:
    """Format the number of tokens per question."""
    if prompt is None or completion is None:
        return "unknown"
    return f"{prompt + completion:.0f}"


def _mean_tokens(counts: Sequence[int | None]) -> float | None:
    """Return the mean of token counts, or None if a count is unknown."""
    known = [count for count in counts if count is not None]
    if len(known) < len(counts):
        return None
    return statistics.fmean(known or [0])
