"""What a page and a plot need of an evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from ..dataset import Dataset, MissingGold
from ..intervals import Difference, Figure
from ..matching import Matching
from ..metrics import Judgement, Metric
from ..records import Record


class EvaluationLike(Protocol):
    """Describe an evaluation: records, what metrics say of them, and what they took."""

    @property
    def dataset(self) -> Dataset:
        """The questions."""

    @property
    def metrics(self) -> Mapping[str, Metric]:
        """The metrics by name."""

    @property
    def records(self) -> Mapping[str, Mapping[str, Record]]:
        """What was returned, by set-up and question id."""

    @property
    def matching(self) -> Matching:
        """When a result is gold."""

    @property
    def missing_gold(self) -> Sequence[MissingGold]:
        """Gold that is in no document."""

    @property
    def judgements(self) -> Mapping[str, Mapping[str, Mapping[str, Judgement]]]:
        """Judgements by metric, set-up and question id."""

    @property
    def figures(self) -> Mapping[str, Mapping[str, Figure]]:
        """Figures by set-up and metric."""

    def difference(self, metric: str, first: str, second: str) -> Difference:
        """Return by how much a second set-up differs from a first."""

    def costs(self, setup: str) -> Mapping[str, float]:
        """Return what a set-up took."""

    def notes(self) -> list[str]:
        """Return what a reader has to know."""
