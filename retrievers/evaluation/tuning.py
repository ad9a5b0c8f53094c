"""Tune: choose a set-up on one half of the questions, and say on the other what it is worth."""

from __future__ import annotations

import hashlib
import json
import logging
import random
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from ...nodegraph.graph import NodeGraph
from ..foreign.coercion import as_retriever
from ..rerankers.rerank_retriever import FAILED
from ..validation import seconds as check_seconds
from ..validation import whole
from .dataset import Dataset, GoldPassage, Question
from .gold_places import DocumentTexts, locate_gold
from .intervals import LEAST_DIFFERENT
from .matching import Matching
from .metrics import Judgement, Metric, get_metric
from .records import ChangedSetupError, Record, RecordFile
from .report import Evaluation
from .runner import default_metrics, evaluate, search
from .setups.opening import SetupOpener
from .setups.setup_file import SetupFile, Table

_logger = logging.getLogger("nodekin")

MAX_CHOOSING = 500
"""On how many questions at most is chosen. All others report."""

FEWEST_QUESTIONS = 30
"""With fewer questions a choice says little."""

_RESAMPLES = 1_000

_LEVEL = 0.95  # equal set-ups reach the limit once in twenty searches

_ABOUT = "tune "  # how the descriptions in a file of trials start


@dataclass(frozen=True)
class Tuning:
    """Hold what was chosen, and what it is worth on questions that had no say in it.

    ``print(tuning)`` shows the table, the sentences and the notes.

    Attributes:
        setups: The ``"default"``, and beside it the chosen set-up, which is the file's default.
            The default alone where nothing was better on the questions for choosing.
        evaluation: Both on the questions that were held back.
        trials: All that was tried, on the questions that choose.
        metric: What was chosen by.
        seconds: How long it took, the report included.
        model_calls: How often reranking models were called for choosing.
        notes: What a reader has to know.
    """

    setups: SetupFile
    evaluation: Evaluation
    trials: Evaluation
    metric: str
    seconds: float
    model_calls: int
    notes: Sequence[str]

    @property
    def changed(self) -> bool:
        """Whether another set-up than the default was chosen."""
        return self.setups.default != DEFAULT

    def to_toml(self) -> str:
        """Return the chosen set-up as a file, which ``load_setup`` opens."""
        return self.setups.to_toml()

    def __str__(self) -> str:
        tried = (
            f"{len(self.trials.records)} set-ups tried in {self.seconds:.0f} s; chosen by "
            f"{self.metric} on {len(self.trials.dataset)} questions, reported on "
            f"{len(self.evaluation.dataset)} others"
        )
        return "\n".join([str(self.evaluation), tried, *self.notes])


DEFAULT = "default"
"""The name of the set-up that others have to be better than."""


def tune(
    source: object,
    dataset: Dataset,
    *,
    setups: SetupFile | None = None,
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

    One half of the questions, drawn with a fixed seed, chooses among the set-ups of
    ``tuning.toml``, the default reranked by each model, and set-ups of your own. The other half
    reports, beside the default. A set-up takes the default's place only if it is ahead on the
    choosing half by more than the best of as many equal ones would be, once in twenty searches
    (White, "A reality check for data snooping", 2000).

    Args:
        source: What is searched: a graph, on which groups are declared, or documents, as
            ``NodeGraph.add`` takes them.
        dataset: The questions.
        setups: Set-ups that are tried, too. One called ``"default"`` is what all others have to
            be better than.
        metric: What is chosen by. None for ``"ndcg@5"``, or ``"answer_in_context@5"`` where no
            question has gold.
        metrics: What is reported besides. None for ``default_metrics``.
        seconds: How long set-ups are tried. A group that is being built is finished.
        model_calls: How often reranking models may be called for choosing. None for no limit.
        models: The models of set-ups by name. All that ``[models]`` of ``setups`` does not declare
            as others are tried as reranking models: anything that ``CrossEncoderReranker`` takes.
        matching: When a result is gold. None for ``Matching()``.
        top_k: How many results the set-ups of ``tuning.toml`` return.
        path: A file of JSON lines to which results are written as they come. With the same file a
            search that was interrupted, or had too little time, goes on where it was.
        progress: True draws a bar in any case, False never, None where a person can see it.

    Raises:
        ValueError: If a number is out of range, a name unknown, or there are fewer than two
            questions. If the file has something else in it.
        KeyboardInterrupt: When interrupted. What was found is in the file.

    Example:
        >>> from nodekin.retrievers.evaluation import GoldDocument
        >>> from nodekin.nodegraph import Document
        >>> teas = [Document(f"The tea of {name} is good.", id=name) for name in ("Bo", "An")]
        >>> data = Dataset([Question(n, f"What of {n}?", (GoldDocument(n),)) for n in ("Bo", "An")])
        >>> tuning = tune(teas, data, progress=False)
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
    matching, models = matching or Matching(), models or {}
    if isinstance(source, NodeGraph):
        graph = source
    else:
        graph = NodeGraph(progress=progress)
        graph.add(source)
    texts = DocumentTexts(graph, matching.document_key)
    located = locate_gold(dataset, texts, as_spans=matching.passages == "place")
    choosing, reporting = _halves(located.dataset)
    own = setups or SetupFile()
    file = _all_setups(graph, own, models, top_k)
    undeclared = {name: models[name] for name in models if name not in own.models}
    attempts = _Attempts(
        SetupOpener(file, graph, models),
        choosing,
        matching,
        measure.k or max(10, top_k),
        _open_records(path, _about(graph, choosing, matching, undeclared), file),
        started + limit,
        model_calls,
    )
    tried = attempts.run(progress)
    trials = Evaluation(
        Dataset(choosing, name=dataset.name), [measure], tried, matching, located.missing
    )
    best = choose(measure, trials.judgements[measure.name])
    tables = {name: file.resolved(name) for name in dict.fromkeys((DEFAULT, best))}
    groups = _needed_groups(tables, file, own)
    chosen = SetupFile(tables, groups, default=best, trust_code=own.trust_code)
    measures = {m.name: m for m in (measure, *others)}
    evaluation = evaluate(
        SetupOpener(chosen, graph, models).open_all(),
        Dataset(reporting, name=dataset.name),
        list(measures.values()),
        matching=matching,
        documents=graph,
        progress=progress,
    )
    return Tuning(
        chosen,
        evaluation,
        trials,
        measure.name,
        time.monotonic() - started,
        attempts.calls,
        _notes(dataset, trials, best, attempts),
    )


def choose(metric: Metric, judgements: Mapping[str, Mapping[str, Judgement]]) -> str:
    """Return the best set-up that is ahead of the first by more than chance would have it.

    The best of many is always ahead on the questions that it was the best on. Questions are
    resampled, the same for all, from gains whose means are taken away. A set-up has to be further
    ahead than the 95th percentile of the best, in standard errors of the sample (White, 2000, as
    Romano and Wolf, 2005, have it), and to differ on six questions or more, since no resampling
    doubts two that point the same way. Set-ups that answer alike count little more than one.

    Args:
        metric: The metric.
        judgements: Of each set-up, by question. The first is what others have to be better than.

    Returns:
        The name of the set-up, the first one's where none is better.

    Example:
        >>> of = lambda *values: {str(n): Judgement(value) for n, value in enumerate(values)}
        >>> choose(get_metric("mrr"), {"one": of(*[0.5] * 9), "other": of(*[1.0, 0.9, 0.8] * 3)})
        'other'
    """
    first, *others = judgements
    gains = np.array([_gains(metric, judgements[first], judgements[name]) for name in others])
    count = len(judgements[first])
    if not others or count < 2:
        return first
    means, errors = gains.mean(1), gains.std(1, ddof=1) / np.sqrt(count)
    differs = (errors > 1e-9) & ((abs(gains) > 1e-9).sum(1) >= LEAST_DIFFERENT)
    if not differs.any():
        return first
    centred = (gains - means[:, None])[differs].T
    drawn = np.random.default_rng(0).multinomial(count, np.full(count, 1 / count), _RESAMPLES)
    ahead = drawn @ centred / count
    variance = (drawn @ centred**2 / count - ahead**2) / (count - 1)
    spread = np.sqrt(np.maximum(variance, (errors[differs] / 2) ** 2))
    limit = np.quantile((ahead / spread).max(1), _LEVEL)
    better = [at for at in np.flatnonzero(differs) if means[at] > limit * errors[at]]
    return others[max(better, key=lambda at: means[at])] if better else first


def _gains(
    metric: Metric, first: Mapping[str, Judgement], second: Mapping[str, Judgement]
) -> list[float]:
    """Return what each question adds to the difference of two set-ups, more being better.

    Of a figure that is a ratio of sums by its first derivatives. Where all weigh 1 plain
    differences. Nothing where a question is not judged for both.
    """
    both = [(first[q], second[q]) for q in first if first[q].judged and second[q].judged]
    (n1, d1), (n2, d2) = (
        (sum(j.numerator or 0.0 for j in column), sum(j.denominator for j in column))
        for column in (zip(*both, strict=True) if both else ((), ()))
    )
    if not d1 or not d2:
        return [0.0] * len(first)
    sign = 1 if metric.higher_is_better else -1
    old, new = n1 / d1, n2 / d2

    def gain(before: Judgement, after: Judgement) -> float:
        if before.numerator is None or after.numerator is None:
            return 0.0
        change = (after.numerator - new * after.denominator) / d2
        change -= (before.numerator - old * before.denominator) / d1
        return float(sign * (new - old + len(both) * change))

    return [gain(first[question], second[question]) for question in first]


def _all_setups(
    graph: NodeGraph, own: SetupFile, models: Mapping[str, Any], top_k: int
) -> SetupFile:
    """Return all set-ups that are tried: the default, those that this graph can have, one's own."""
    grid = SetupFile.parse(files(__package__).joinpath("tuning.toml").read_text("utf-8"))
    tables: dict[str, Table] = {DEFAULT: {"type": "DefaultRetriever"}}
    for name, table in grid.setups.items():
        of_vectors = name in ("words only", "vectors only")
        if of_vectors and not graph.embeddings.embedders:
            continue
        tables[name] = {**table, "top_k": top_k}
    for name in models:
        if "rerank" in own.models.get(name, {"rerank": name}):
            tables[f"reranked by {name}"] = {
                "type": "RerankRetriever",
                "inner": {"type": "DefaultRetriever", "top_k": 50},
                "reranker": {"name": "ModuleReranker", "model": name},
                "top_k": top_k,
            }
    return SetupFile(
        {**tables, **own.setups},
        {**grid.groups, **own.groups},
        models=own.models,
        trust_code=own.trust_code,
    )


def _needed_groups(tables: Mapping[str, Table], file: SetupFile, own: SetupFile) -> Table:
    """Return one's own groups, and those of the others that some set-ups name, with parents."""
    text = json.dumps(tables)
    names = {name for name in file.groups if name in own.groups or json.dumps(name) in text}
    names |= {str(file.groups[name].get("parent")) for name in names}
    return {name: table for name, table in file.groups.items() if name in names}


def _open_records(path: str | Path | None, about: str, file: SetupFile) -> RecordFile:
    """Return the file of results, without those of another search.

    Raises:
        ValueError: If the file has something else in it.
    """
    described = {name: f"{about} {file.describe(name)}" for name in file.setups}
    try:
        return RecordFile(path, described)
    except ChangedSetupError as error:
        if path is None or not error.before.startswith(_ABOUT):
            raise
        _logger.warning("%s is of another search, and starts again", path)
        Path(path).unlink()
        return RecordFile(path, described)


def _about(
    graph: NodeGraph, questions: Sequence[Question], matching: Matching, models: Mapping[str, Any]
) -> str:
    """Return what results depend on beside the set-up, as a hash."""
    named = {name: re.sub(r" at 0x[0-9a-f]+", "", repr(model)) for name, model in models.items()}
    embedders = [graph.embeddings.key(name) for name in graph.embeddings.embedders]
    about = (questions, named, embedders, matching.document_key)
    searched = hashlib.sha256(repr(about).encode("utf-8", "replace"))
    for node in graph.nodes("ROOT"):
        searched.update(repr((node.id, node.text, node.metadata)).encode("utf-8", "replace"))
    return _ABOUT + searched.hexdigest()


def _halves(dataset: Dataset) -> tuple[list[Question], list[Question]]:
    """Return the questions that choose, and those that report."""
    questions = sorted(dataset.questions, key=lambda question: question.id)
    random.Random(0).shuffle(questions)
    half = min(len(questions) // 2, MAX_CHOOSING)
    return questions[:half], questions[half:]


@dataclass
class _Attempts:
    """Search with set-ups for the questions that choose, until the budget is spent.

    Attributes:
        opener: Opens the set-ups.
        questions: Those that choose.
        matching: When a result is gold.
        count: How many results are requested.
        saved: What was returned, now and in earlier searches.
        deadline: Until when a set-up is tried, by ``time.monotonic``. The default always is.
        model_calls: How often reranking models may be called. None for no limit.
        calls: How often they were.
        left_out: The set-ups for which there was no time, or no call.
        failures: What others raised. They are out of the running.
    """

    opener: SetupOpener
    questions: Sequence[Question]
    matching: Matching
    count: int
    saved: RecordFile
    deadline: float
    model_calls: int | None
    calls: int = 0
    left_out: list[str] = field(default_factory=list)
    failures: dict[str, str] = field(default_factory=dict)

    def run(self, progress: bool | None) -> dict[str, dict[str, Record]]:
        """Return what each set-up returned that was tried on all questions."""
        from tqdm import tqdm

        hidden = None if progress is None else not progress
        tried = {}
        for name in tqdm(self.opener.file.setups, "tune", unit="set-up", disable=hidden):
            if self._try(name):
                tried[name] = self.saved.of(name, self.questions, self.count)
        return tried

    def _try(self, name: str) -> bool:
        """Search for the questions that a set-up has not had yet. Return whether it had all."""
        missing = [q for q in self.questions if not self.saved.done(name, q, self.count)]
        if not missing:
            return True
        table = json.dumps(self.opener.file.resolved(name))
        asks = any(f'"model": {json.dumps(model)}' in table for model in self.opener.models)
        limit = self.model_calls
        if asks and limit is not None and self.calls + len(missing) > limit:
            self.left_out.append(name)
            return False
        retriever = as_retriever(self.opener.open(name), repr(name))
        if name == DEFAULT:
            retriever.retrieve(missing[0].text)  # raises what makes everything impossible
        for question in missing:
            if name != DEFAULT and time.monotonic() > self.deadline:
                self.left_out.append(name)
                return False
            record = search(retriever, name, question, self.count, self.matching)
            self.calls += asks
            if failure := _failure(record):
                self.failures[name] = failure
                return name == DEFAULT
            self.saved.add(record)
        return True


def _failure(record: Record) -> str:
    """Return what a set-up raised, or its reranker, which it would survive when deployed."""
    lines = [line for item in record.items[:1] for line in item.explanation.splitlines()]
    return record.error or next((line.strip() for line in lines if FAILED in line), "")


def _notes(dataset: Dataset, trials: Evaluation, best: str, attempts: _Attempts) -> list[str]:
    """Return what a reader has to know of a choice."""
    passages = any(isinstance(g, GoldPassage) for q in trials.dataset.questions for g in q.gold)
    by_distance = passages and attempts.matching.passages == "edit"
    left_out, failures = attempts.left_out, attempts.failures
    path = attempts.saved.path
    on = f"; the same search goes on from {path}" if path else ""
    (metric,) = trials.metrics
    notes = [
        (
            best == DEFAULT,
            "no set-up was better than the default on the questions for choosing by more than "
            "chance would have it: the default stays",
        ),
        (
            best != DEFAULT and by_distance,
            "gold passages are compared by edit distance, which prefers passages of their own "
            'size; Matching("contains") (--match contains) and answer_in_context do not',
        ),
        (
            len(dataset) < FEWEST_QUESTIONS,
            f"{len(dataset)} questions are too few to choose by; with {FEWEST_QUESTIONS} or "
            "more a choice begins to say something",
        ),
        (
            bool(left_out),
            f"left out: {', '.join(left_out)}; the time or the calls of models were spent{on}",
        ),
        (
            bool(failures),
            f"failed, and left out: {'; '.join(f'{n}: {e:.200}' for n, e in failures.items())}",
        ),
        (
            not trials.figure(DEFAULT, metric).judged,
            f"no question for choosing has a value of {metric}; choose by another metric, or "
            "give the questions gold",
        ),
    ]
    return [note for applies, note in notes if applies]
