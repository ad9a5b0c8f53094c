"""Try the set-ups of a space on questions, and choose one by them."""

from __future__ import annotations

import logging
import math
import random
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from ....nodegraph.extractors.entity_extractor import has_title
from ....nodegraph.graph import NodeGraph
from ....nodegraph.splitters.passage_splitter import PassageSplitter
from ...results import ScoredNode
from ..dataset import Dataset, GoldPassage, Question
from ..matching import Matching, RetrievalCase, RetrievedItem
from ..metrics import Metric
from ..records import JsonLines
from ..setups.opening import SetupOpener
from ..setups.setup_file import SetupFile
from .halving import BudgetSpentError, chance_limit, climb, rungs, standard_error
from .sharing import SharingOpener
from .space import Choice, Space, compose, drawn, embedded_groups, neighbours

_logger = logging.getLogger("nodekin")

Score: TypeAlias = tuple[float, float] | None
"""Numerator and denominator of a question, None where it is not judged."""

FEWEST_QUESTIONS = 30
"""With fewer questions a choice says little."""

_DRAWN = 8  # random choices beside the neighbours, in each round

_BATCH = 64  # texts that are embedded at once, before it is seen whether there is time for all

_LINK_LIMIT = 2_000  # documents up to which links are followed

DEFAULT = SetupFile({"default": {"type": "DefaultRetriever"}})
"""What a set-up has to be better than."""


@dataclass(slots=True, eq=False)
class Trial:
    """Hold a set-up that was tried, and its scores on the questions for choosing.

    Attributes:
        file: The set-up.
        choice: What it is in the space. Empty for the default.
        scores: Numerator and denominator of each question that was judged, in the order of
            choosing. None for one that is not judged.
        error: What it raised. It is out of the running then.
        left_out: Whether there was no time to build its groups, or no call left for its model.
    """

    file: SetupFile
    choice: Choice = field(default_factory=dict)
    scores: list[Score] = field(default_factory=list)
    error: str = ""
    left_out: bool = False

    @property
    def description(self) -> str:
        """All that decides what it returns, as one text."""
        return self.file.describe(self.file.default)

    def mean(self, count: int | None = None) -> float:
        """Return the figure over the first questions. Minus infinity where there is none."""
        rows = [row for row in self.scores[:count] if row is not None]
        total = sum(denominator for _, denominator in rows)
        if self.error or self.left_out or not total:
            return -math.inf
        return sum(numerator for numerator, _ in rows) / total


class TrialFile:
    """Append what set-ups scored to a file, and read what it has, so that a search goes on.

    The first line says what was measured: other questions, documents or another metric start the
    file again.

    Args:
        path: The file. None for none.
        about: What all scores depend on, as JSON has it.

    Raises:
        ValueError: If the file has something else in it.
    """

    def __init__(self, path: str | Path | None, about: Mapping[str, Any]) -> None:
        self._file = JsonLines(path)
        self._scores: dict[str, list[Score]] = {}
        self.path = self._file.path
        if self.path is not None and not self._read({"tune": 1, **about}):
            self.path.write_text("", encoding="utf-8")
            self._file.append({"tune": 1, **about})

    def scores(self, setup: str) -> Sequence[Score]:
        """Return what a set-up scored before, in the order of the questions."""
        return self._scores.get(setup, ())

    def add(self, setup: str, scores: Sequence[Score]) -> None:
        """Append what a set-up scored on further questions."""
        self._file.append({"setup": setup, "scores": scores})

    def _read(self, header: Mapping[str, Any]) -> bool:
        """Read the file. Return whether it is about the same."""
        first: Any = None
        try:
            for row in self._file.read():
                if first is None:
                    first = row
                    if not row.get("tune"):
                        raise ValueError("its first line says something else")
                    if row != header:
                        _logger.warning("%s is of another search, and starts again", self.path)
                        return False
                else:
                    scores = self._scores.setdefault(row["setup"], [])
                    scores += [
                        None if item is None else (item[0], item[1]) for item in row["scores"]
                    ]
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ValueError(
                f"{self.path} is no file of nodekin tune ({error}); give another path"
            ) from error
        return first is not None


@dataclass
class SetupSearch:
    """Try set-ups on questions until nothing is better, or the budget is spent.

    Args:
        graph: What is searched.
        space: What is tried.
        opener: Opens set-ups, with the reranking models.
        questions: Those that choose.
        metric: What is chosen by.
        matching: When a result is gold.
        top_k: How many results a set-up returns.
        deadline: When the budget is spent, by ``time.monotonic``.
        model_calls: How often reranking models may be called. None for no limit.
        kept: What set-ups scored before.
    """

    graph: NodeGraph
    space: Space
    opener: SharingOpener
    questions: Sequence[Question]
    metric: Metric
    matching: Matching
    top_k: int
    deadline: float
    model_calls: int | None
    saved: TrialFile = field(default_factory=lambda: TrialFile(None, {}))

    def __post_init__(self) -> None:
        self.default = Trial(DEFAULT)
        self.trials = [self.default]
        self.spent = False
        self.left_out = 0
        self.build_seconds = 0.0
        self._built: set[object] = set()  # groups, and those embedded with the key of the model
        self.count = self.metric.k or max(10, self.top_k)
        self._by_table: dict[str, Trial] = {}
        self._dice = random.Random(0)
        self._tick: Callable[[], object] = lambda: None

    def run(self, progress: bool | None) -> Trial:
        """Return the chosen trial: the default, unless one is better beyond chance."""
        from tqdm import tqdm

        default = SetupOpener(DEFAULT, self.graph).open_retriever()
        started = time.monotonic()
        default.retrieve(self.questions[0].text)
        self.build_seconds = time.monotonic() - started
        started = time.monotonic()
        self._judge(self.default, len(self.questions), default)
        self.deadline -= 3 * (time.monotonic() - started)  # the report takes about as long
        axes = self._axes()
        start = self._trial({name: values[0] for name, values in axes.items()})
        hidden = None if progress is None else not progress
        with tqdm(desc="tune", unit="set-up", disable=hidden) as bar:
            self._tick = bar.update
            if start is not None:
                for _ in climb(start, self._near(axes), self._score, rungs(len(self.questions))):
                    pass
        return self.choose()

    def choose(self) -> Trial:
        """Return the best trial that is ahead of the default by more than chance would have it."""
        differences = {
            at: self._differences(trial)
            for at, trial in enumerate(self.trials)
            if at and not trial.error and trial.scores
        }
        limit = chance_limit(list(differences.values()))
        better = []
        for at, parts in differences.items():
            trial = self.trials[at]
            gain = self._signed(trial) - self._signed(self.default)
            is_complete = len(trial.scores) == len(self.questions)
            if is_complete and math.isfinite(gain) and gain > limit * standard_error(parts) > 0:
                better.append(trial)
        return max(better, key=self._signed, default=self.default)

    def _axes(self) -> dict[str, Sequence[Any]]:
        """Return the alternatives that this graph and these models have."""
        axes = self.space.axes()
        names = [*self.opener.models]
        axes.setdefault("rerankers", ["", *names])
        for name in axes["rerankers"]:
            if name:
                self.opener.model(name)  # says which there are
        if not any(axes["rerankers"]):
            axes["fetch"] = axes["fetch"][:1]
        if not self.graph.embeddings.embedders:
            axes.update(word_weight=(1.0,), vector_weight=(0.0,), vector_group=("parts",))
        axes["chunk_size"] = self._distinct(axes["chunk_size"])
        if len(axes["links"]) > 1:
            documents = list(self.graph.nodes("ROOT")) if self._is_small() else []
            titled = sum(map(has_title, documents)) * 2 >= len(documents) > 0
            axes["links"] = (titled, not titled) if documents else (False,)
        return axes

    def _distinct(self, sizes: Sequence[int]) -> Sequence[int]:
        """Return the sizes of passages that make different passages of these documents."""
        if len(sizes) < 2:
            return sizes
        distinct: dict[tuple[str, ...], int] = {}
        for size in sizes:
            group = f"passage {size}" if size else "ROOT"
            if size:
                self.graph.create_node_group(group, PassageSplitter(size))
            distinct.setdefault(tuple(node.text for node in self.graph.nodes(group)), size)
        return [*distinct.values()]

    def _is_small(self) -> bool:
        return (self.graph.groups["ROOT"].size or 0) <= _LINK_LIMIT

    def _near(self, axes: Mapping[str, Sequence[Any]]) -> Callable[[Trial], Iterator[Trial]]:
        def near(best: Trial) -> Iterator[Trial]:
            choices = [*neighbours(best.choice, axes)]
            choices += [drawn(best.choice, axes, self._dice) for _ in range(_DRAWN)]
            trials = dict.fromkeys(self._trial(choice) for choice in choices)
            for trial in trials:
                if trial and not (trial.scores or trial.error or trial.left_out):
                    yield trial

        return near

    def _trial(self, choice: Choice) -> Trial | None:
        """Return the trial of a choice. The same one for choices that are the same set-up."""
        file = compose(choice, [*self.graph.embeddings.embedders], self.top_k)
        if file is None:
            return None
        trial = Trial(file, choice)
        return self._by_table.setdefault(trial.description, trial)

    def _score(self, trial: Trial, count: int) -> float:
        """Return what a trial scores on the first questions, more being better.

        Raises:
            BudgetSpentError: If there is no time to find out.
        """
        self._load_saved(trial, count)
        if len(trial.scores) < count and not trial.error and not trial.left_out:
            if time.monotonic() > self.deadline:
                self.spent = True
                raise BudgetSpentError
            if self._is_too_dear(trial):
                trial.left_out = True
                self.left_out += 1
                return -math.inf
            self._note(trial)
            try:
                self._judge(trial, count, self.opener.open_file(trial.file))
            except Exception as error:  # a set-up that fails is none to choose
                trial.error = f"{type(error).__name__}: {error}"
        return self._signed(trial, count)

    def _load_saved(self, trial: Trial, count: int) -> None:
        """Give a trial the scores that it had in an earlier run, which cost no search."""
        if existing := self.saved.scores(trial.description)[len(trial.scores) : count]:
            trial.scores += existing
            self._note(trial)

    def _note(self, trial: Trial) -> None:
        if trial not in self.trials:
            self.trials.append(trial)
            self._tick()

    def _is_too_dear(self, trial: Trial) -> bool:
        """Return whether there is no call left for a trial's model, or no time for its groups."""
        limit = self.model_calls
        if limit is not None and trial.choice["rerankers"] and self.opener.model_calls >= limit:
            return True
        table = trial.file.setups["tuned"]
        new = {*trial.file.groups, *embedded_groups(table)} - self._built
        if new and not self._builds_in(trial, (self.deadline - time.monotonic()) / 2):
            return True
        self._built |= new
        return False

    def _builds_in(self, trial: Trial, seconds: float) -> bool:
        """Return whether what a trial searches can be built and embedded in so many seconds.

        Where nothing is embedded the default says how long that takes, which has groups of its
        own. Else they are embedded as far as it seems to be in time. None of it is done again.
        """
        if not self.graph.embeddings.embedders:
            return self.build_seconds <= seconds
        self.opener.declare(trial.file.groups)
        started = time.monotonic()
        for group, key in sorted(embedded_groups(trial.file.setups["tuned"])):
            nodes = list(self.graph.nodes(group))
            for done in range(0, len(nodes), _BATCH):
                texts = [node.searched_text for node in nodes[done : done + _BATCH]]
                self.graph.embeddings.vectors(texts, key)
                spent = time.monotonic() - started
                if spent > seconds / 10 and spent * len(nodes) / (done + len(texts)) > seconds:
                    return False
        return True

    def _judge(self, trial: Trial, count: int, retriever: Any) -> None:
        """Search for the questions that a trial has not had yet, up to a number, and judge."""
        self._load_saved(trial, count)
        questions = self.questions[len(trial.scores) : count]
        if not questions:
            return
        self.opener.failure = None
        matches = retriever.batch([q.text for q in questions], top_k=self.count)
        if self.opener.failure is not None:
            raise self.opener.failure
        for question, results in zip(questions, matches, strict=True):
            visible = (ScoredNode(result.node, 0.0) for result in results[: self.count])
            items = tuple(RetrievedItem.of(r, self.matching.document_key) for r in visible)
            judgement = self.metric.judge(RetrievalCase(question, items, self.matching))
            numerator = judgement.numerator
            trial.scores.append(None if numerator is None else (numerator, judgement.denominator))
        self.saved.add(trial.description, trial.scores[-len(questions) :])

    def _signed(self, trial: Trial, count: int | None = None) -> float:
        value = trial.mean(count)
        return value if self.metric.higher_is_better or value == -math.inf else -value

    def _differences(self, trial: Trial) -> list[float]:
        """Return what each question adds to a trial's difference from the default.

        Of a figure that is a ratio of sums by its first derivatives. Where all weigh 1 plain
        differences.
        """
        count = len(trial.scores)
        pairs = zip(trial.scores, self.default.scores[:count], strict=True)
        both = [(item, other) for item, other in pairs if item is not None and other is not None]
        weight = statistics.fmean(item[1] for item, _ in both) if both else 0.0
        if not weight:
            return []
        value, default = trial.mean(), self.default.mean(count)
        sign = 1 if self.metric.higher_is_better else -1
        gain = value - default
        return [
            sign * (gain + ((n - value * d) - (m - default * e)) / weight)
            for (n, d), (m, e) in both
        ]

    def notes(self, dataset: Dataset, best: Trial) -> list[str]:
        """Return what a reader has to know of a choice."""
        failed = [trial for trial in self.trials if trial.error]
        left_out = "1 set-up was" if self.left_out == 1 else f"{self.left_out} set-ups were"
        on = f"; the same search goes on from {self.saved.path}" if self.saved.path else ""
        passages = any(isinstance(g, GoldPassage) for q in self.questions for g in q.gold)
        notes = [
            (
                best is self.default,
                "no set-up was better than the default on the questions for choosing by more than "
                "chance would have it: the default stays",
            ),
            (
                best is not self.default
                and passages
                and self.matching.passages == "edit"
                and best.choice["chunk_size"] != self.space.chunk_size[0],
                "gold passages are compared by edit distance, which prefers passages of their own "
                'size; Matching("contains") (--match contains) and answer_in_context do not',
            ),
            (
                len(dataset) < FEWEST_QUESTIONS,
                f"{len(dataset)} questions are too few to choose by; with {FEWEST_QUESTIONS} or "
                "more a choice begins to say something",
            ),
            (self.spent, f"the budget was spent before the search was at its end{on}"),
            (
                self.left_out > 0,
                f"{left_out} left out: there were no model calls left, or not the time to build "
                "and embed their groups",
            ),
            (
                bool(failed),
                f"{len(failed)} set-ups failed and were left out; the first: "
                f"{failed[0].error if failed else '':.200}",
            ),
            (
                all(score is None for score in self.default.scores),
                f"no question for choosing has a value of {self.metric.name}; choose by another "
                "metric, or give the questions gold",
            ),
        ]
        return [note for applies, note in notes if applies]
