"""Figures over questions with their bootstrap intervals, and differences between two set-ups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .metrics import Judgement, Metric

RESAMPLES = 2000
"""How often questions are resampled."""

LEAST_DIFFERENT = 6
"""On so many questions at least have two set-ups to differ: with five that all point one way an
exact sign test is at 0.06, whatever a bootstrap interval says of so few."""


@dataclass(frozen=True, slots=True)
class Figure:
    """Hold what a metric says over all questions.

    Attributes:
        value: Over the judged questions. None where there is none.
        low: Where the 95 % interval starts.
        high: Where it ends.
        judged: How many questions have a value.
        not_judged: How many have none.
    """

    value: float | None
    low: float | None
    high: float | None
    judged: int
    not_judged: int


@dataclass(frozen=True, slots=True)
class Difference:
    """Hold by how much a second set-up differs from a first.

    Attributes:
        metric: The name of the metric.
        first: The name of the set-up that is compared with.
        second: The name of the other.
        value: Figure of the second minus that of the first, over the questions that both have.
            None where there are none.
        low: Where its 95 % interval starts.
        high: Where it ends.
        questions: How many questions both have.
        different: On how many of them the two differ.
        better: The name of the better set-up, None where the data do not show one.
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

    @property
    def kind(self) -> str:
        """How the second set-up is: "better", "worse", "same", or "unknown" without questions."""
        if self.value is None:
            return "unknown"
        if self.better is None:
            return "same"
        return "better" if self.better == self.second else "worse"

    def numbers(self, signed: bool = False) -> list[str]:
        """Return value and interval as texts: signed, or how much better one is where one is."""
        value, low, high = self.value or 0.0, self.low or 0.0, self.high or 0.0
        if signed or self.better is None:
            return [format_value(number, sign=True) for number in (value, low, high)]
        low, high = sorted((abs(low), abs(high)))
        return [format_value(number) for number in (abs(value), low, high)]

    def __str__(self) -> str:
        """Return the difference as a sentence."""
        if self.kind == "unknown":
            return f"{self.metric}: no question is judged for both {self.first} and {self.second}"
        value, low, high = self.numbers()
        if self.better is None:
            noun = "question" if self.questions == 1 else "questions"
            return (
                f"{self.metric}: no difference between {self.first} and {self.second} that "
                f"{self.questions} {noun} could show ({value}, {low} to {high})"
            )
        other = self.first if self.better == self.second else self.second
        return f"{self.metric}: {self.better} is better than {other} by {value}, {low} to {high}"


def make_figure(metric: Metric, judgements: Sequence[Judgement]) -> Figure:
    """Return the figure of a metric, with the percentile interval of a bootstrap over questions.

    Questions are drawn with replacement (Efron, 1979. For retrieval: Sakai, 2006), with a fixed
    seed. Where all have one and the same bounded value the bootstrap knows no doubt: the interval
    then reaches 3 / n further (the rule of three: Hanley and Lippman-Hand, 1983).
    """
    rows = [(j.numerator, j.denominator) for j in judgements if j.numerator is not None]
    missing = len(judgements) - len(rows)
    value = _ratio(rows)
    if value is None:
        return Figure(None, None, None, len(rows), missing)
    low, high = _interval([rows])
    if metric.bounded and len({n / d for n, d in rows if d}) == 1:
        low, high = max(0.0, value - 3 / len(rows)), min(1.0, value + 3 / len(rows))
    return Figure(value, low, high, len(rows), missing)


def make_difference(
    metric: Metric,
    first: str,
    second: str,
    judgements: Mapping[str, Mapping[str, Judgement]],
    tail: float = 0.025,
) -> Difference:
    """Return the paired difference of two set-ups, over the questions judged for both.

    One is called better only where the interval of a paired bootstrap excludes 0 and the two
    differ on six questions or more.

    Args:
        metric: The metric.
        first: The name of a set-up.
        second: The name of another.
        judgements: Those of each set-up, by the id of the question.
        tail: The share of the resamples on each side of the interval.
    """
    item, other = judgements[first], judgements[second]
    pairs = [(item[q], other[q]) for q in item if item[q].judged and q in other and other[q].judged]
    rows = [
        [(j.numerator or 0.0, j.denominator) for j in column] for column in zip(*pairs, strict=True)
    ]
    values = [_ratio(column) for column in rows]
    if not pairs or values[0] is None or values[1] is None:
        return Difference(metric.name, first, second, None, None, None, len(pairs), 0, None)
    value = values[1] - values[0]
    low, high = _interval(rows, tail)
    different = sum(a != b for a, b in zip(*rows, strict=True))
    better = None
    if different >= LEAST_DIFFERENT and (low > 0 or high < 0):
        better = second if (value > 0) == metric.higher_is_better else first
    return Difference(metric.name, first, second, value, low, high, len(pairs), different, better)


def _ratio(rows: Sequence[tuple[float, float]]) -> float | None:
    total = sum(denominator for _, denominator in rows)
    return sum(numerator for numerator, _ in rows) / total if total else None


def _interval(
    columns: Sequence[Sequence[tuple[float, float]]], tail: float = 0.025
) -> tuple[float, float]:
    """Return the interval of a figure, or of the second's difference from the first; 95 %."""
    import numpy as np

    count = len(columns[0])
    kinds = Counter(sum(row, ()) for row in zip(*columns, strict=True))
    rows: Any = np.array([*kinds], float)  # numerator and denominator, of each column
    random = np.random.default_rng(0)
    if len(kinds) * 8 <= count:  # only how many of each kind are drawn makes a difference
        shares = np.fromiter(kinds.values(), float, len(kinds)) / count
        sums = random.multinomial(count, shares, RESAMPLES) @ rows
    else:
        sums = drawn_sums(rows.repeat([*kinds.values()], axis=0), random)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = sums[:, 0::2] / sums[:, 1::2]
    values = ratios[:, 0] if len(columns) == 1 else ratios[:, 1] - ratios[:, 0]
    values = values[np.isfinite(values)]  # a sample in which every weight is 0 has no ratio
    low, high = np.quantile(values, [tail, 1 - tail])
    return float(low), float(high)


def drawn_sums(rows: Any, random: Any) -> Any:
    """Return the sums of as many rows as there are, drawn with replacement, for each resample."""
    import numpy as np

    count = len(rows)
    batch = max(1, 1_000_000 // count)
    sums = []
    for start in range(0, RESAMPLES, batch):
        size = min(batch, RESAMPLES - start)
        drawn = random.integers(0, count, (size, count)) + count * np.arange(size)[:, None]
        times = np.bincount(drawn.ravel(), minlength=size * count).reshape(size, count)
        sums.append(times @ rows)
    return np.concatenate(sums)


def format_value(value: float, sign: bool = False) -> str:
    """Return a number as sentences have it, with its sign where that is what counts."""
    digits = 3 if abs(value) < 10 else 1
    return f"{value:+.{digits}f}" if sign else f"{value:.{digits}f}"
