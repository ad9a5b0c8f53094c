"""Tune: choose a set-up on one half of the questions, and say on the other what it is worth."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from ...nodegraph.graph import NodeGraph
from ..foreign.coercion import as_retriever
from ..rerankers.rerank_retriever import FAILED
from ..validation import seconds as check_seconds
from .dataset import Dataset, GoldPassage, MissingGold, Question
from .gold_places import DocumentTexts, locate_gold
from .intervals import make_difference
from .matching import Matching
from .metrics import Judgement, Metric, get_metric
from .records import Record, RecordFile
from .report import Evaluation
from .runner import default_metrics, evaluate, result_count, search
from .setups.opening import SetupOpener
from .setups.setup_file import SetupFile, Table

MAX_CHOOSING = 500
"""On how many questions at most is chosen. All others report."""

MIN_QUESTIONS = 30
"""With fewer questions a choice says little."""

EARLY_QUESTIONS = 50
"""A set-up that is worse than the default on so many questions is not tried on the others."""

MAX_FALSE_ALARMS = 0.05
"""How often one of several equal set-ups may take the default's place."""

DEFAULT = "default"
"""The name of the set-up that others have to be better than."""


@dataclass(frozen=True)
class Tuning:
    """Hold what was chosen, and what it is worth on questions that had no say in it.

    ``print(tuning)`` shows the table, the sentences and the notes.

    Attributes:
        setups: The ``"default"``, and beside it the chosen set-up, which is the file's default.
            The default alone where nothing was better on the questions for choosing.
        evaluation: Both on the questions that were held back.
        trials: All that were tried on all questions that choose.
        metric: What was chosen by.
        seconds: How long it took, the report included.
        notes: What a reader has to know.
    """

    setups: SetupFile
    evaluation: Evaluation
    trials: Evaluation
    metric: str
    seconds: float
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


def tune(
    source: object,
    dataset: Dataset,
    *,
    setups: SetupFile | None = None,
    metric: Metric | str | None = None,
    seconds: float = 300.0,
    models: Mapping[str, Any] | None = None,
    matching: Matching | None = None,
    top_k: int = 6,
    path: str | Path | None = None,
    progress: bool | None = None,
) -> Tuning:
    """Choose a set-up for documents by questions, and report what it is worth.

    One half of the questions, drawn with a fixed seed, chooses among the set-ups of
    ``tuning.toml``, the default reranked by each model, and set-ups of your own. The other half
    reports, beside the default. A set-up takes the default's place only if it is better on the
    choosing half beyond chance, all set-ups that were tried taken into account.

    Args:
        source: What is searched: a graph, on which groups are declared, or documents, as
            ``NodeGraph.add`` takes them.
        dataset: The questions.
        setups: Set-ups that are tried, too. One called ``"default"`` is what all others have to
            be better than.
        metric: What is chosen by. None for ``"ndcg@5"``, or ``"answer_in_context@5"`` where no
            question has gold. ``default_metrics`` are reported besides.
        seconds: How long set-ups are tried. A group that is being built is finished.
        models: The models of set-ups by name. All that ``[models]`` of ``setups`` does not declare
            as others are tried as reranking models: anything that ``CrossEncoderReranker`` takes.
        matching: When a result is gold. None for ``Matching()``.
        top_k: How many results the set-ups of ``tuning.toml`` return.
        path: A file of JSON lines to which results are written as they come. With the same file a
            search that was interrupted, or had too little time, goes on where it was.
        progress: True draws a bar in any case, False never, None where a person can see it.

    Raises:
        ValueError: If a number is out of range, a name unknown, or there are fewer than two
            questions. If the file has results of other documents or set-ups, or something else.
        KeyboardInterrupt: When interrupted. What was returned is in the file.

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
    if len(dataset) < 2:
        raise ValueError(f"{dataset.name} has one question; one half chooses, the other reports")
    if metric is None:
        has_gold = any(question.gold for question in dataset.questions)
        metric = "ndcg@5" if has_gold else "answer_in_context@5"
    measure = get_metric(metric)
    matching, models, declared = matching or Matching(), models or {}, setups or SetupFile()
    if isinstance(source, NodeGraph):
        graph = source
    else:
        graph = NodeGraph(progress=progress)
        graph.add(source)
    texts = DocumentTexts(graph, matching.document_key)
    located = locate_gold(dataset, texts, as_spans=matching.passages == "place")
    choosing, reporting = _halves(located.dataset)
    file = _all_setups(graph, declared, models, top_k)
    described = {
        name: f"{file.describe(name)} {models.get(name.removeprefix(_RERANKED), '')!r} "
        f"{matching.document_key or ''}"
        for name in file.setups
    }
    trying = _Trying(
        SetupOpener(file, graph, models),
        Dataset(choosing, name=dataset.name),
        measure,
        matching,
        result_count([measure]),
        RecordFile(path, described, texts.hashes),
        started + limit,
        located.missing,
    )
    trials = trying.run(progress)
    best = choose(measure, trials.judgements[measure.name])
    tables = {name: file.resolved(name) for name in dict.fromkeys((DEFAULT, best))}
    groups = _needed_groups(tables, file, declared)
    chosen = SetupFile(tables, groups, default=best, trust_code=declared.trust_code)
    measures = {m.name: m for m in (measure, *map(get_metric, default_metrics(dataset)))}
    evaluation = evaluate(
        SetupOpener(chosen, graph, models).open_all(),
        Dataset(reporting, name=dataset.name),
        list(measures.values()),
        matching=matching,
        documents=graph,
        progress=progress,
    )
    notes = _notes(dataset, trials, best, trying)
    return Tuning(chosen, evaluation, trials, measure.name, time.monotonic() - started, notes)


def choose(metric: Metric, judgements: Mapping[str, Mapping[str, Judgement]]) -> str:
    """Return the best set-up that is better than the first beyond chance.

    The best of many is always ahead on the questions that it was the best on. So the interval of
    its difference has to exclude 0 at a level that all set-ups share (Bonferroni), and six
    questions have to differ. Set-ups that answer alike count as one.

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
    answers = [judgements[name].values() for name in others]
    different = {tuple([(j.numerator, j.denominator) for j in row]) for row in answers}
    tail = MAX_FALSE_ALARMS / max(1, len(different))
    differences = [make_difference(metric, first, name, judgements, tail) for name in others]
    better = [d for d in differences if d.better == d.second]
    return max(better, key=lambda d: abs(d.value or 0.0)).second if better else first


_RERANKED = "reranked by "


def _all_setups(
    graph: NodeGraph, declared: SetupFile, models: Mapping[str, Any], top_k: int
) -> SetupFile:
    """Return all set-ups that are tried: the default, those that this graph can have, one's own."""
    grid = SetupFile.parse(files(__package__).joinpath("tuning.toml").read_text("utf-8"))
    tables: dict[str, Table] = {DEFAULT: {"type": "DefaultRetriever"}}
    for name, table in grid.setups.items():
        if name not in ("words only", "vectors only") or graph.embeddings.embedders:
            tables[name] = {**table, "top_k": top_k}
    for name in models:
        if "rerank" in declared.models.get(name, {"rerank": name}):
            tables[_RERANKED + name] = {
                "type": "RerankRetriever",
                "inner": {"type": "DefaultRetriever", "top_k": 50},
                "reranker": {"name": "ModuleReranker", "model": name},
                "top_k": top_k,
            }
    return SetupFile(
        {**tables, **declared.setups},
        {**grid.groups, **declared.groups},
        models=declared.models,
        trust_code=declared.trust_code,
    )


def _needed_groups(tables: Mapping[str, Table], file: SetupFile, declared: SetupFile) -> Table:
    """Return one's own groups, and those of the others that some set-ups name, with parents."""
    text = json.dumps(tables)
    names = {name for name in file.groups if name in declared.groups or json.dumps(name) in text}
    names |= {str(file.groups[name].get("parent")) for name in names}
    return {name: table for name, table in file.groups.items() if name in names}


def _halves(dataset: Dataset) -> tuple[list[Question], list[Question]]:
    """Return the questions that choose, and those that report."""
    questions = sorted(dataset.questions, key=lambda question: question.id)
    random.Random(0).shuffle(questions)
    half = min(len(questions) // 2, MAX_CHOOSING)
    return questions[:half], questions[half:]


@dataclass
class _Trying:
    """Search with set-ups for the questions that choose.

    Attributes:
        opener: Opens the set-ups.
        dataset: The questions.
        metric: What is chosen by.
        matching: When a result is gold.
        count: How many results are requested.
        saved: What was returned, now and in earlier searches.
        deadline: Until when a set-up is tried, by ``time.monotonic``. The default always is.
        missing: Gold that is in no document, and is not counted.
        left_out: Why set-ups were not tried on all questions, by name.
    """

    opener: SetupOpener
    dataset: Dataset
    metric: Metric
    matching: Matching
    count: int
    saved: RecordFile
    deadline: float
    missing: Sequence[MissingGold]
    left_out: dict[str, str] = field(default_factory=dict)

    def run(self, progress: bool | None) -> Evaluation:
        """Return what each set-up returned that was tried on all questions."""
        from tqdm import tqdm

        names = list(self.opener.file.setups)
        hidden = None if progress is None else not progress
        for name in tqdm(names, "tune", unit="set-up", disable=hidden):
            if reason := self._try(name):
                self.left_out[name] = reason
        tried = [name for name in names if name not in self.left_out]
        return self._evaluation(tried, self.dataset.questions)

    def _try(self, name: str) -> str:
        """Search for the questions. Return why the set-up was left out, if it was."""
        retriever = as_retriever(self.opener.open(name), repr(name))
        if name == DEFAULT:  # raises what makes everything impossible
            retriever.retrieve(self.dataset.questions[0].text)
        for number, question in enumerate(self.dataset.questions, 1):
            if not self.saved.done(name, question, self.count):
                if name != DEFAULT and time.monotonic() > self.deadline:
                    return "no time was left"
                record = search(retriever, name, question, self.count, self.matching)
                if name != DEFAULT and (failure := _failure(record)):
                    return f"failed: {failure:.200}"
                self.saved.add(record)
            if number == EARLY_QUESTIONS and name != DEFAULT and self._is_worse(name, number):
                return f"worse than the default on the first {number} questions"
        return ""

    def _is_worse(self, name: str, count: int) -> bool:
        evaluation = self._evaluation([DEFAULT, name], self.dataset.questions[:count])
        return evaluation.difference(self.metric.name, DEFAULT, name).kind == "worse"

    def _evaluation(self, names: Sequence[str], questions: Sequence[Question]) -> Evaluation:
        records = {name: self.saved.of(name, questions, self.count) for name in names}
        dataset = Dataset(questions, name=self.dataset.name)
        return Evaluation(dataset, [self.metric], records, self.matching, self.missing)


def _failure(record: Record) -> str:
    """Return what a set-up raised, or its reranker, which it would survive when deployed."""
    lines = [line for item in record.items[:1] for line in item.explanation.splitlines()]
    return record.error or next((line.strip() for line in lines if FAILED in line), "")


def _notes(dataset: Dataset, trials: Evaluation, best: str, trying: _Trying) -> list[str]:
    """Return what a reader has to know of a choice."""
    passages = any(isinstance(g, GoldPassage) for q in trials.dataset.questions for g in q.gold)
    path = trying.saved.path
    on = f"; with more seconds the same search goes on from {path}" if path else ""
    reasons = [f"{name} ({reason})" for name, reason in trying.left_out.items()]
    (metric,) = trials.metrics
    notes = [
        (
            best == DEFAULT,
            "no set-up was better than the default on the questions for choosing by more than "
            "chance would have it: the default stays",
        ),
        (
            best != DEFAULT and passages and trying.matching.passages == "edit",
            "gold passages are compared by edit distance, which prefers passages of their own "
            'size; Matching("contains") (--match contains) and answer_in_context do not',
        ),
        (
            len(dataset) < MIN_QUESTIONS,
            f"{len(dataset)} questions are too few to choose by; with {MIN_QUESTIONS} or "
            "more a choice begins to say something",
        ),
        (bool(reasons), f"left out: {', '.join(reasons)}{on}"),
        (
            not trials.figure(DEFAULT, metric).judged,
            f"no question for choosing has a value of {metric}; choose by another metric, or "
            "give the questions gold",
        ),
    ]
    return [note for applies, note in notes if applies]
