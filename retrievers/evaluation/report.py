"""What an evaluation says: figures, differences, and tables of them in several formats."""

from __future__ import annotations

import csv
import io
import json
import statistics
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from ...nodegraph.errors import nearest_names
from .dataset import Dataset, GoldPassage, MissingGold, Question
from .figure import save_figure
from .gold_places import DocumentTexts, MovedGold
from .intervals import Difference, Figure, make_difference, make_figure
from .judges import Judgements, judge_records
from .matching import Matching
from .metrics import Metric
from .records import Record, RecordFile


class Evaluation:
    """Hold what every set-up returned for every question, and what metrics say of it.

    ``print(evaluation)`` shows the table and the differences.

    Attributes:
        dataset: The questions.
        metrics: The metrics.
        records: What was returned, by set-up and question id.
        matching: When a result is gold.
        missing_gold: Gold that is in no document, where the documents are known. It is listed,
            and not counted.
        moved_gold: Gold that was found elsewhere than the questions say.
        texts: The documents, as far as they are known.
        described: What each set-up is, in words, by name.
    """

    def __init__(
        self,
        dataset: Dataset,
        metrics: Sequence[Metric],
        records: Mapping[str, Mapping[str, Record]],
        matching: Matching,
        missing_gold: Sequence[MissingGold] = (),
        *,
        moved_gold: Sequence[MovedGold] = (),
        texts: DocumentTexts | None = None,
        described: Mapping[str, str] | None = None,
    ) -> None:
        self.dataset = dataset
        self.metrics = {metric.name: metric for metric in metrics}
        self.records = records
        self.matching = matching
        self.missing_gold = list(missing_gold)
        self.moved_gold = list(moved_gold)
        self.texts = texts or DocumentTexts(())
        self.described = described or {}

    def __repr__(self) -> str:
        return f"Evaluation({list(self.records)}, {len(self.dataset)} questions)"

    def __str__(self) -> str:
        lines = [self.table(), *map(str, self.differences()), *self.notes()]
        return "\n".join(line for line in lines if line)

    @cached_property
    def judgements(self) -> Judgements:
        """What each metric says of each question, by metric, set-up and question id."""
        return judge_records(
            self._judged_dataset, [*self.metrics.values()], self.records, self.matching
        )

    @cached_property
    def _judged_dataset(self) -> Dataset:
        """The questions without gold that is in no document."""
        missing = {(item.question_id, item.gold) for item in self.missing_gold}
        if not missing:
            return self.dataset
        questions = [
            replace(q, gold=tuple([gold for gold in q.gold if (q.id, gold) not in missing]))
            for q in self.dataset.questions
        ]
        return Dataset(questions, self.dataset.documents, self.dataset.name)

    def judge(self, max_workers: int = 1, progress: bool | None = None) -> None:
        """Judge all questions now, in threads where a metric asks a model."""
        self.judgements = judge_records(
            *(self._judged_dataset, [*self.metrics.values()], self.records, self.matching),
            max_workers=max_workers,
            progress=progress,
        )

    @cached_property
    def figures(self) -> dict[str, dict[str, Figure]]:
        """The figures with their intervals, by set-up and metric."""
        return {
            setup: {
                name: make_figure(metric, list(self.judgements[name][setup].values()))
                for name, metric in self.metrics.items()
            }
            for setup in self.records
        }

    def figure(self, setup: str, metric: str) -> Figure:
        """Return the figure of a metric for a set-up.

        Raises:
            ValueError: If there is no such set-up or metric.
        """
        self._check(setup, self.records, "set-up")
        self._check(metric, self.metrics, "metric")
        return self.figures[setup][metric]

    def difference(self, metric: str, first: str, second: str) -> Difference:
        """Return by how much a second set-up differs from a first, on the same questions.

        Raises:
            ValueError: If there is no such set-up or metric.
        """
        self._check(metric, self.metrics, "metric")
        for setup in (first, second):
            self._check(setup, self.records, "set-up")
        return make_difference(self.metrics[metric], first, second, self.judgements[metric])

    def differences(self) -> list[Difference]:
        """Return how every other set-up differs from the first, by every metric."""
        first, *others = self.records
        return [self.difference(name, first, other) for other in others for name in self.metrics]

    def notes(self) -> list[str]:
        """Return what a reader of the table has to know: failures, and what is not judged."""
        notes = [note for setup in self.records for note in self._notes_on(setup)]
        calls, tokens = (
            sum(int(costs[name]) for costs in self._costs.values())
            for name in ("judge_calls", "judge_tokens")
        )
        if tokens:
            notes.append(
                f"judged with {calls:,} answer{'s' * (calls != 1)} of a model ({tokens:,} tokens)"
            )
        if blank := [q.id for q in self.dataset.questions if not q.text.strip()]:
            have = "question has no text and counts" if len(blank) == 1 else None
            have = f"{len(blank)} {have or 'questions have no text and count'}"
            notes.append(f"{have} like all others: {', '.join(map(repr, blank[:5]))}")
        if count := len(self.missing_gold):
            items = "1 gold item is" if count == 1 else f"{count} gold items are"
            notes.append(f"{items} in no document, and not counted; {self.missing_gold[0]}")
        if count := len(self.moved_gold):
            items = "1 gold item was" if count == 1 else f"{count} gold items were"
            notes.append(f"{items} found again elsewhere; {self.moved_gold[0]}")
        return notes

    def _notes_on(self, setup: str) -> Iterator[str]:
        records = self.records[setup]
        failed = [record for record in records.values() if record.error]
        if failed:
            yield (
                f"{setup} failed on {len(failed)} of {len(records)} questions; question "
                f"{failed[0].question_id!r}: {failed[0].error:.200}"
            )
        for name, figure in self.figures[setup].items():
            if figure.not_judged > len(failed):
                judgements = self.judgements[name][setup].items()
                reasons = {q: j.reason for q, j in judgements if not (j.judged or records[q].error)}
                some = ", ".join(map(repr, islice(reasons, 3))) + ", ..." * (len(reasons) > 3)
                yield (
                    f"{setup}, {name}: {figure.not_judged} of {len(records)} questions are not "
                    f"judged ({some}); {next(iter(reasons.values())):.200}"
                )
        uncounted = sum(self._is_uncounted(q, records[q.id]) for q in self.dataset.questions)
        if 10 * uncounted >= len(records) and any(map(_counts_gold, self.metrics)):
            yield (
                f"{setup}: for {uncounted} of {len(records)} questions a result has the gold "
                "passage in it, or is a part of it, and does not count, since one is more than "
                'twice as long: --match place, Matching("place"), counts it'
            )

    def _is_uncounted(self, question: Question, record: Record) -> bool:
        """Return whether gold passages are in results, or these in them, and only size differs."""
        passages = [gold for gold in question.gold if isinstance(gold, GoldPassage)]
        if self.matching.passages != "edit" or not passages or not record.items:
            return False
        contains = replace(self.matching, passages="contains")
        pairs = [(gold, item) for gold in passages for item in record.items]
        return not any(self.matching.matches(*pair) for pair in pairs) and any(
            contains.matches(*pair) for pair in pairs
        )

    def table(self) -> str:
        """Return the figures as a table for a terminal."""
        header, *rows = self._rows()
        widths = [max(map(_width, column)) for column in zip(header, *rows, strict=True)]
        return "\n".join(
            "  ".join(
                cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True)
            ).rstrip()
            for row in (header, *rows)
        )

    def to_markdown(self) -> str:
        """Return the table, the differences and the notes as Markdown."""
        header, *rows = self._rows()
        lines = [header, ["---"] * len(header), *rows]
        table = ["| " + " | ".join(c.replace("|", "\\|") for c in row) + " |" for row in lines]
        message = [f"- {line}" for line in (*map(str, self.differences()), *self.notes())]
        return "\n".join([*table, "", *message] if message else table) + "\n"

    def save(self, path: str | Path) -> None:
        """Write what was returned to a file, as a baseline for ``compare_with_baseline``.

        Explanations are left out. A file that is there is replaced.
        """
        new = Path(f"{path}.new")
        new.unlink(missing_ok=True)
        described = {name: self.described.get(name, name) for name in self.records}
        missing = Counter(item.question_id for item in self.missing_gold)
        file = RecordFile(new, described, self.texts.hashes, missing, len(self.dataset))
        for records in self.records.values():
            for record in records.values():
                items = tuple([replace(item, explanation="") for item in record.items])
                file.add(replace(record, items=items))
        new.replace(path)

    def to_csv(self) -> str:
        """Return every judgement in a line: set-up, question, metric, value, reason, evidence."""
        output = io.StringIO()
        writer = csv.writer(output, lineterminator="\n")
        columns = ("metric", "value", "judged", "reason", "evidence")
        writer.writerow(["setup", "question_id", "question", *columns])
        for setup, records in self.records.items():
            for identity, record in records.items():
                for name in self.metrics:
                    j = self.judgements[name][setup][identity]
                    value = "" if j.value is None else j.value
                    cells = (setup, identity, record.question, name, value)
                    writer.writerow([*cells, j.judged, j.reason, j.evidence])
        return output.getvalue()

    def to_json(self) -> str:
        """Return figures, differences, notes and every question with its results as JSON."""
        return json.dumps(self.as_dict(), ensure_ascii=False, indent=1, allow_nan=False)

    def as_dict(self) -> dict[str, Any]:
        """Return the same as plain values."""
        return {
            "dataset": self.dataset.name,
            "questions": len(self.dataset),
            "figures": {
                setup: {name: asdict(figure) for name, figure in figures.items()}
                for setup, figures in self.figures.items()
            },
            "costs": {setup: self.costs(setup) for setup in self.records},
            "differences": [{**asdict(d), "sentence": str(d)} for d in self.differences()],
            "notes": self.notes(),
            "moved_gold": [{**asdict(m), "sentence": str(m)} for m in self.moved_gold],
            "missing_gold": [{**asdict(m), "sentence": str(m)} for m in self.missing_gold],
            "results": {
                setup: [self._result(setup, record) for record in records.values()]
                for setup, records in self.records.items()
            },
        }

    def _result(self, setup: str, record: Record) -> dict[str, Any]:
        judged = {n: asdict(self.judgements[n][setup][record.question_id]) for n in self.metrics}
        return {**asdict(record), "judgements": judged}

    def save_figure(self, path: str | Path) -> None:
        """Draw the figures and the differences to the first set-up, each with its interval.

        Args:
            path: A file whose name ends in ``.png`` or ``.svg``.

        Raises:
            ImportError: If matplotlib is not installed.
            ValueError: If the name has another suffix.
        """
        save_figure(path, self.metrics, self.figures, self.differences())

    def costs(self, setup: str) -> dict[str, float]:
        """Return what a set-up took: seconds, tokens, model calls and their tokens, failures.

        ``median_seconds`` is a question's, ``seconds`` their sum: the first question may build what
        the others use, which the median leaves out. ``tokens`` is the mean of the tokens of a
        question's results, over the questions on which it did not fail. ``judge_calls`` and
        ``judge_tokens`` are what judging this set-up takes by itself.

        Raises:
            ValueError: If there is no such set-up.
        """
        self._check(setup, self.records, "set-up")
        return dict(self._costs[setup])

    @cached_property
    def _costs(self) -> dict[str, dict[str, float]]:
        return {setup: self._costs_of(setup) for setup in self.records}

    def _costs_of(self, setup: str) -> dict[str, float]:
        records = list(self.records[setup].values())
        judged = [j for of in self.judgements.values() for j in of[setup].values()]
        return {
            "median_seconds": statistics.median(record.seconds for record in records),
            "seconds": sum(record.seconds for record in records),
            "tokens": statistics.fmean([r.tokens for r in records if not r.error] or [0]),
            "model_calls": sum(record.model_calls for record in records),
            "model_tokens": sum(record.model_tokens for record in records),
            "failed": sum(bool(record.error) for record in records),
            "judge_calls": sum(judgement.model_calls for judgement in judged),
            "judge_tokens": sum(judgement.tokens for judgement in judged),
        }

    def _rows(self) -> list[list[str]]:
        rows = [["set-up", *self.metrics, "judged", "failed", "ms", "tokens", "model calls"]]
        requested = any(costs["model_calls"] for costs in self._costs.values())
        rows[0] += ["their tokens"] * requested
        for setup, figures in self.figures.items():
            costs = self.costs(setup)
            judged = sorted({figure.judged for figure in figures.values()})
            counts = " to ".join(map(str, dict.fromkeys([judged[0], judged[-1]])))
            cells = [f"{costs[name]:.0f}" for name in ("failed", "tokens", "model_calls")]
            cells.insert(1, f"{1000 * costs['median_seconds']:.1f}")
            cells += [f"{costs['model_tokens']:.0f}"] * requested
            rows.append([setup, *map(_cell, figures.values()), counts, *cells])
        return rows

    @staticmethod
    def _check(name: str, existing: Mapping[str, object], what: str) -> None:
        if name not in existing:
            raise ValueError(
                f"there is no {what} {name!r}; there are {nearest_names(name, existing)}"
            )


def _counts_gold(metric: str) -> bool:
    names = ("recall", "precision", "hit", "all_gold", "mrr", "ndcg", "map", "tokens_")
    return metric.startswith(names)


def _cell(figure: Figure) -> str:
    if figure.value is None or figure.low is None or figure.high is None:
        return "not judged"
    digits = 4 if abs(figure.value) < 10 else 1
    return f"{figure.value:.{digits}f} ({figure.low:.3f} to {figure.high:.3f})"


def _width(text: str) -> int:
    """Return how many columns a text takes in a terminal. Wide characters take two."""
    return sum(1 + (unicodedata.east_asian_width(letter) in "WF") for letter in text)
