"""Figures over questions with bootstrap intervals, and paired differences of two systems."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .metrics import Judgement, Metric

RESAMPLES = 2000

LEAST_DIFFERENT = 6
"""The number of differing questions that "better" requires: with five in one direction, an exact
sign test is at 0.06, whatever the bootstrap interval of so few."""


@dataclass(frozen=True, slots=True)
class Figure:
    """The mean of a metric over the judged questions.

    Attributes:
        value: The mean. None: no question is judged.
        low: The start of the 95 % interval.
        high: The end of the interval.
        judged: The number of judged questions.
        not_judged: The number of questions without a value.
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
        value: The second figure minus the first, over the questions judged for both. None: no
            question is judged for both.
        low: The start of the 95 % interval.
        high: The end of the interval.
        questions: The number of questions judged for both.
        different: The number of questions with different values.
        better: The name of the better system. None: the difference is not significant.
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
        """Return the value and its interval as texts, with signs or as absolute values."""
        value, low, high = self.value or 0.0, self.low or 0.0, self.high or 0.0
        if not sign:
            low, high = sorted((abs(low), abs(high)))
            value = abs(value)
        digits = 3 if abs(value) < 10 else 1
        return f"{value:{sign}.{digits}f}", f"{low:{sign}.{digits}f}", f"{high:{sign}.{digits}f}"

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


def make_figure(metric: Metric, judgements: Sequence[Judgement]) -> Figure:
    """Return the mean of a metric with the percentile interval of a bootstrap over questions.

    Questions are drawn with replacement (Efron, 1979; for retrieval: Sakai, 2006), with a fixed
    seed. If all have the same bounded value, the bootstrap has no variance, and the interval
    is extended by 3 / n (the rule of three: Hanley and Lippman-Hand, 1983).
    """
    values = [judgement.value for judgement in judgements if judgement.value is not None]
    missing = len(judgements) - len(values)
    if not values:
        return Figure(None, None, None, 0, missing)
    value = sum(values) / len(values)
    low, high = bootstrap([(value,) for value in values])
    if metric.bounded and len(set(values)) == 1:
        low, high = max(0.0, value - 3 / len(values)), min(1.0, value + 3 / len(values))
    return Figure(value, low, high, len(values), missing)


def make_difference(
    metric: Metric,
    first: str,
    second: str,
    judgements: Mapping[str, Mapping[str, Judgement]],
) -> Difference:
    """Return the paired difference of two systems, over the questions judged for both.

    A system is better only if the interval of a paired bootstrap excludes 0 and the systems
    differ on six questions or more.

    Args:
        metric: The metric.
        first: The name of a system.
        second: The name of another system.
        judgements: The judgements of each system by question id.
    """
    after = judgements[second]
    pairs = [
        (before.value, other.value)
        for key, before in judgements[first].items()
        if before.value is not None and (other := after.get(key)) and other.value is not None
    ]
    if not pairs:
        return Difference(metric.name, first, second, None, None, None, 0, 0, None)
    count = len(pairs)
    value = sum(new for _, new in pairs) / count - sum(old for old, _ in pairs) / count
    low, high = bootstrap(pairs)
    different = sum(old != new for old, new in pairs)
    better = None
    if different >= LEAST_DIFFERENT and (low > 0 or high < 0):
        better = second if (value > 0) == metric.higher_is_better else first
    return Difference(metric.name, first, second, value, low, high, count, different, better)


def bootstrap(rows: Sequence[tuple[float, ...]]) -> tuple[float, float]:
    """Return the 95 % interval of a mean, or of the difference of two means.

    Args:
        rows: A value for each question, or a pair of values.
    """
    import numpy as np

    kinds = Counter(rows)  # the questions with equal values are drawn together
    count = len(rows)
    shares = np.array([*kinds.values()]) / count
    draws = np.random.default_rng(0).multinomial(count, shares, RESAMPLES)
    means = draws @ np.array([*kinds], float) / count
    values = means[:, 0] if len(rows[0]) == 1 else means[:, 1] - means[:, 0]
    low, high = np.quantile(values, [0.025, 0.975])
    return float(low), float(high)
