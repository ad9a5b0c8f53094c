"""Tune: choose a set-up on one half of the questions, and say on the other what it is worth."""

from __future__ import annotations

import hashlib
import random
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ....nodegraph.graph import NodeGraph
from ...validation import seconds as check_seconds
from ...validation import whole
from ..dataset import Dataset, Question
from ..matching import Matching
from ..metrics import Metric, get_metric
from ..report import Evaluation
from ..runner import default_metrics, evaluate
from ..setups.opening import SetupOpener
from ..setups.setup_file import SetupFile
from .setup_search import DEFAULT, SetupSearch, Trial, TrialFile
from .sharing import SharingOpener
from .space import Space

MAX_CHOOSING = 500
"""On how many questions at most is chosen. All others report."""


@dataclass(frozen=True)
class Tuning:
    """Hold what was chosen, and what it is worth on questions that had no say in it.

    ``print(tuning)`` shows the table, the sentences and the notes.

    Attributes:
        setups: The chosen set-up, ``"tuned"``, beside the ``"default"``. The default alone where
            nothing was better on the questions for choosing.
        evaluation: Both on the questions that were held back.
        metric: What was chosen by.
        trials: All that was tried, the default first.
        questions: How many questions it was chosen on.
        seconds: How long it took, the report included.
        model_calls: How often reranking models were called for choosing.
        notes: What a reader has to know.
    """

    setups: SetupFile
    evaluation: Evaluation
    metric: str
    trials: Sequence[Trial]
    questions: int
    seconds: float
    model_calls: int
    notes: Sequence[str]

    @property
    def changed(self) -> bool:
        """Whether another set-up than the default was chosen."""
        return "tuned" in self.setups.setups

    def to_toml(self) -> str:
        """Return the chosen set-up as a file, which ``load_setup`` opens."""
        return self.setups.to_toml()

    def __str__(self) -> str:
        tried = (
            f"{len(self.trials)} set-ups tried in {self.seconds:.0f} s; chosen by {self.metric} on "
            f"{self.questions} questions, reported on {len(self.evaluation.dataset)} others"
        )
        return "\n".join([str(self.evaluation), tried, *self.notes])


def tune(
    source: object,
    dataset: Dataset,
    *,
    space: Space | None = None,
    metric: Metric | str | None = None,
    metrics: Sequence[Metric | str] | None = None,
    seconds: float = 300.0,
    model_calls: int | None = None,
    models: Mapping[str, Any] | None = None,
    matching: Matching | None = None,
    top_k: int = 6,
    path: str | Path | None = None,
    progress: bool | None = None,
) -> Tuning:
    """Choose a set-up for documents by questions, and report what it is worth.

    One half of the questions, drawn with a fixed seed, chooses, by successive halving around the
    best so far. The other half reports, beside the default. A set-up takes the default's place
    only if it is ahead on the choosing half by more than the best of as many equal ones would be,
    once in twenty searches (White, "A reality check for data snooping", 2000). Everything is
    searched on one graph: a group is built, a text embedded, an inner ranking searched and a
    passage scored by a model only once.

    Args:
        source: What is searched: a graph, on which groups are declared, or documents, as
            ``NodeGraph.add`` takes them.
        dataset: The questions.
        space: What is tried. None for ``Space()``.
        metric: What is chosen by. None for ``"ndcg@5"``, or ``"answer_in_context@5"`` where no
            question has gold.
        metrics: What is reported besides. None for ``default_metrics``.
        seconds: How long it may take. A group that is being built is finished.
        model_calls: How often reranking models may be called for choosing. None for no limit.
        models: Reranking models by name, each anything that ``CrossEncoderReranker`` takes.
        matching: When a result is gold. None for ``Matching()``.
        top_k: How many results the chosen set-up returns.
        path: A file of JSON lines to which scores are written as they are measured. With the same
            file a search that was interrupted, or had too little time, goes on where it was.
        progress: True draws a bar in any case, False never, None where a person can see it.

    Raises:
        ValueError: If a number is out of range, a name unknown, or there are fewer than two
            questions. If the file has something else in it.
        KeyboardInterrupt: When interrupted. What was measured is in the file.

    Example:
        >>> from nodekin.retrievers.evaluation import GoldDocument
        >>> from nodekin.nodegraph import Document
        >>> teas = [Document(f"The tea of {name} is good.", id=name) for name in ("Bo", "An")]
        >>> data = Dataset([Question(n, f"What of {n}?", (GoldDocument(n),)) for n in ("Bo", "An")])
        >>> tuning = tune(teas, data, space=Space(k1=[1.5], b=[0.75]), progress=False)
        >>> tuning.changed, list(tuning.setups.setups)
        (False, ['default'])
    """
    started = time.monotonic()
    limit = check_seconds(seconds, "seconds")
    assert limit is not None
    if model_calls is not None:
        whole(model_calls, "model_calls", 0)
    if len(dataset) < 2:
        raise ValueError(f"{dataset.name} has one question; one half chooses, the other reports")
    others = [get_metric(m) for m in (default_metrics(dataset) if metrics is None else metrics)]
    if metric is None:
        gold = any(question.gold for question in dataset.questions)
        metric = "ndcg@5" if gold else "answer_in_context@5"
    measure = get_metric(metric)
    matching = matching or Matching()
    if isinstance(source, NodeGraph):
        graph = source
    else:
        graph = NodeGraph(progress=progress)
        graph.add(source)
    choosing, reporting = _halves(dataset)
    search = SetupSearch(
        graph,
        space or Space(),
        SharingOpener(graph, models),
        choosing,
        measure,
        matching,
        top_k,
        started + limit,
        model_calls,
        TrialFile(path, _about(graph, choosing, measure, matching, top_k, models or {})),
    )
    best = search.run(progress)
    setups = DEFAULT
    if best is not search.default:
        both = {**DEFAULT.setups, **best.file.setups}
        setups = SetupFile(both, best.file.groups, default="tuned")
    opener = SetupOpener(setups, graph, models)
    measures = {m.name: m for m in (measure, *others)}
    evaluation = evaluate(
        {name: opener.open(name) for name in setups.setups},
        Dataset(reporting, name=dataset.name),
        list(measures.values()),
        matching=matching,
        documents=graph,
        progress=progress,
    )
    return Tuning(
        setups,
        evaluation,
        measure.name,
        search.trials,
        len(choosing),
        time.monotonic() - started,
        search.opener.model_calls,
        search.notes(dataset, best),
    )


def _about(
    graph: NodeGraph,
    questions: Sequence[Question],
    metric: Metric,
    matching: Matching,
    top_k: int,
    models: Mapping[str, Any],
) -> dict[str, Any]:
    """Return what scores depend on beside the set-up."""
    named = {name: re.sub(r" at 0x[0-9a-f]+", "", repr(model)) for name, model in models.items()}
    embedders = [graph.embeddings.key(name) for name in graph.embeddings.embedders]
    searched = hashlib.sha256(repr((questions, named, embedders)).encode("utf-8", "replace"))
    for node in graph.nodes("ROOT"):
        searched.update(repr((node.id, node.text, node.metadata)).encode("utf-8", "replace"))
    return {
        "metric": metric.name,
        "matching": asdict(matching),
        "top_k": top_k,
        "searched": searched.hexdigest(),
    }


def _halves(dataset: Dataset) -> tuple[list[Question], list[Question]]:
    """Return the questions that choose, and those that report."""
    questions = sorted(dataset.questions, key=lambda question: question.id)
    random.Random(0).shuffle(questions)
    half = min(len(questions) // 2, MAX_CHOOSING)
    return questions[:half], questions[half:]
