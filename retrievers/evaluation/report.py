"""The outcome of an evaluation: figures, differences, and reports in several formats."""

from __future__ import annotations

import csv
import io
import re
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from ...nodegraph.errors import nearest_names
from .gold_places import DocumentTexts, LocatedGold
from .intervals import Difference, Figure, make_difference, make_figure
from .matching import Matching, RetrievalCase
from .metrics import Judgement, Metric
from .records import Record, RecordFile, first_names
from .running import run_all

_FONTS = ("DejaVu Sans", "Noto Sans CJK SC", "PingFang SC", "Hiragino Sans GB", "Microsoft YaHei")


class Evaluation:
    """The results of each system for each question, and their judgements by metrics.

    ``print(evaluation)`` shows the table and the differences.

    Attributes:
        dataset: The questions.
        metrics: The metrics by name.
        records: The results by system and question id.
        judgements: The judgements by metric, system and question id.
        matching: Decides whether a result is gold.
        missing_gold: Gold that is in no document, if the documents are given. It does not count.
        moved_gold: Gold that was found at another place.
        texts: The documents, if they are given.
        described: The description of each system by name.
    """

    def __init__(
        self,
        gold: LocatedGold,
        metrics: Sequence[Metric],
        records: Mapping[str, Mapping[str, Record]],
        matching: Matching,
        texts: DocumentTexts,
        described: Mapping[str, str],
        *,
        num_workers: int = 1,
        progress: bool | None = False,
    ) -> None:
        self.dataset = gold.dataset
        self.metrics = {metric.name: metric for metric in metrics}
        self.records = records
        self.matching = matching
        self.missing_gold = list(gold.missing)
        self.moved_gold = list(gold.moved)
        self.texts = texts
        self.described = described
        self.judgements: dict[str, dict[str, dict[str, Judgement]]] = {m: {} for m in self.metrics}
        if not any(metric.asks_model for metric in metrics):
            num_workers, progress = 1, False
        missing = {(item.question_id, item.gold) for item in gold.missing}
        for setup, of in records.items():
            has_items = any(record.items for record in of.values())
            work = []
            for q in gold.dataset.questions:
                record = of[q.id]
                question = replace(q, gold=tuple([g for g in q.gold if (q.id, g) not in missing]))
                answer_only = bool(record.answer) and not has_items
                case = RetrievalCase(question, record.items, matching, record.answer, answer_only)
                work.append(partial(_judged, metrics, case, record.error))
            rows = run_all(work, "judge", num_workers, progress)
            for name, column in zip(self.metrics, zip(*rows, strict=True), strict=True):
                self.judgements[name][setup] = dict(zip(of, column, strict=True))

    def __repr__(self) -> str:
        return f"Evaluation({list(self.records)}, {len(self.dataset)} questions)"

    def __str__(self) -> str:
        return "\n".join([self.table(), *map(str, self.differences()), *self.notes()])

    @cached_property
    def figures(self) -> dict[str, dict[str, Figure]]:
        """The figures with their intervals, by system and metric."""
        return {
            setup: {
                name: make_figure(metric, list(self.judgements[name][setup].values()))
                for name, metric in self.metrics.items()
            }
            for setup in self.records
        }

    def figure(self, setup: str, metric: str) -> Figure:
        """Return the figure of a metric for a system.

        Raises:
            ValueError: If the system or metric is unknown.
        """
        _check(setup, self.records, "set-up")
        _check(metric, self.metrics, "metric")
        return self.figures[setup][metric]

    def difference(self, metric: str, first: str, second: str) -> Difference:
        """Return the difference of a second system to a first, on the same questions.

        Raises:
            ValueError: If the system or metric is unknown.
        """
        _check(metric, self.metrics, "metric")
        for setup in (first, second):
            _check(setup, self.records, "set-up")
        return make_difference(self.metrics[metric], first, second, self.judgements[metric])

    def differences(self) -> list[Difference]:
        """Return the differences of all systems to the first, by each metric."""
        first, *others = self.records
        return [self.difference(name, first, other) for other in others for name in self.metrics]

    def notes(self) -> list[str]:
        """Return notes on failures and on questions that are not judged."""
        notes = [note for setup in self.records for note in self._notes_on(setup)]
        costs = [self.costs(setup) for setup in self.records]
        calls = sum(cost["judge_calls"] for cost in costs)
        if calls:
            tokens = sum(cost["judge_tokens"] for cost in costs)
            notes.append(f"the judge gave {calls:,.0f} answers ({tokens:,.0f} tokens)")
        if self.missing_gold:
            count = _gold(len(self.missing_gold))
            notes.append(f"{count} in no document and not counted; {self.missing_gold[0]}")
        if self.moved_gold:
            notes.append(f"{_gold(len(self.moved_gold))} moved; {self.moved_gold[0]}")
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
                reasons = {
                    key: judgement.reason
                    for key, judgement in self.judgements[name][setup].items()
                    if judgement.value is None and not records[key].error
                }
                yield (
                    f"{setup}, {name}: {figure.not_judged} of {len(records)} questions are not "
                    f"judged ({first_names([*reasons], 3)}); {next(iter(reasons.values())):.200}"
                )

    def table(self) -> str:
        """Return the figures as a table for a terminal."""
        from rich.cells import cell_len, set_cell_size

        rows = self._rows()
        widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
        return "\n".join("  ".join(map(set_cell_size, row, widths)).rstrip() for row in rows)

    def markdown_table(self) -> str:
        """Return the figures as a Markdown table."""
        header, *rows = self._rows()
        lines = [header, ["---"] * len(header), *rows]
        return "\n".join("| " + " | ".join(map(escaped, line)) + " |" for line in lines)

    def to_markdown(self) -> str:
        """Return the table, the differences and the notes as Markdown."""
        notes = [f"- {escaped(line)}\n" for line in (*self.differences(), *self.notes())]
        return "\n".join([self.markdown_table(), "", "".join(notes)])

    def to_csv(self) -> str:
        """Return each judgement as a line of CSV."""
        output = io.StringIO()
        writer = csv.writer(output, lineterminator="\n")
        columns = ("metric", "value", "judged", "reason", "evidence")
        writer.writerow(["setup", "question_id", "question", *columns])
        for setup, records in self.records.items():
            for key, record in records.items():
                for name in self.metrics:
                    j = self.judgements[name][setup][key]
                    cells = (name, j.value, j.value is not None, j.reason, j.evidence)
                    writer.writerow([setup, key, record.question, *cells])
        return output.getvalue()

    def as_dict(self) -> dict[str, Any]:
        """Return figures, differences, notes and the results of each question as JSON values."""
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
                setup: [
                    {
                        **asdict(record),
                        "judgements": {
                            name: asdict(self.judgements[name][setup][key]) for name in self.metrics
                        },
                    }
                    for key, record in records.items()
                ]
                for setup, records in self.records.items()
            },
        }

    def save(self, path: str | Path) -> None:
        """Write the results to a file, as a baseline for ``compare_with_baseline``.

        An existing file is replaced. Explanations are left out.
        """
        new = Path(f"{path}.new")
        new.unlink(missing_ok=True)
        missing = Counter(item.question_id for item in self.missing_gold)
        file = RecordFile(new, self.described, self.texts.hashes, missing)
        for records in self.records.values():
            for record in records.values():
                items = tuple([replace(item, explanation="") for item in record.items])
                file.add(replace(record, items=items))
        new.replace(path)

    def save_figure(self, path: str | Path) -> None:
        """Draw the figures with their intervals to a file ``.png`` or ``.svg``.

        Each metric has a panel, with a point and an interval for each system.

        Raises:
            ImportError: If matplotlib is not installed.
            ValueError: If the file has another suffix.
        """
        path = check_figure_path(path)
        try:
            from matplotlib import rc_context
            from matplotlib.figure import Figure as Canvas
            from matplotlib.font_manager import fontManager
        except ImportError as error:
            raise ImportError('figures need matplotlib: pip install "nodekin[eval]"') from error
        fonts = {font.name for font in fontManager.ttflist}.intersection(_FONTS)
        style = {"font.family": sorted(fonts, key=_FONTS.index), "text.parse_math": False}
        height = (0.3 * len(self.figures) + 0.8) * len(self.metrics)  # inches
        with rc_context(style):
            canvas = Canvas(figsize=(7.5, height), layout="constrained")
            panels = canvas.subplots(len(self.metrics), squeeze=False)[:, 0]
            for metric, panel in zip(self.metrics, panels, strict=True):
                labels = []
                for row, (setup, figures) in enumerate(self.figures.items()):
                    figure = figures[metric]
                    labels.append(setup if figure.judged else f"{setup} (not judged)")
                    if figure.value is not None:
                        panel.hlines(row, figure.low, figure.high, linewidth=2)
                        panel.plot(figure.value, row, "o", color="C0")
                panel.set_yticks(range(len(labels)), labels)
                panel.set_ylim(len(labels) - 0.5, -0.5)
                panel.set_title(metric, loc="left", fontsize=10)
                panel.grid(axis="x", alpha=0.3)
            canvas.savefig(path, dpi=150)

    def costs(self, setup: str) -> dict[str, float]:
        """Return the costs of a system.

        ``seconds`` is the total duration, ``median_seconds`` the duration of a question: the first
        question may build indexes. ``tokens`` is the mean number of tokens of a question's
        results, without failures. ``judge_calls`` and ``judge_tokens`` are the costs of judging
        this system.

        Raises:
            ValueError: If the system is unknown.
        """
        _check(setup, self.records, "set-up")
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
        costs = {setup: self.costs(setup) for setup in self.records}
        rows = [["set-up", *self.metrics, "judged", "failed", "ms", "tokens", "model calls"]]
        has_calls = any(cost["model_calls"] for cost in costs.values())
        rows[0] += ["their tokens"] * has_calls
        for setup, figures in self.figures.items():
            cost = costs[setup]
            judged = sorted({figure.judged for figure in figures.values()})
            row = [setup, *map(_cell, figures.values())]
            row.append(f"{judged[0]}" if len(judged) == 1 else f"{judged[0]} to {judged[-1]}")
            row += [f"{cost['failed']:.0f}", f"{1000 * cost['median_seconds']:.1f}"]
            row += [f"{cost[name]:.0f}" for name in ("tokens", "model_calls")]
            rows.append(row + [f"{cost['model_tokens']:.0f}"] * has_calls)
        return rows


def escaped(text: object) -> str:
    """Return a text for a line of Markdown, without markup and mentions of users."""
    line = " ".join(str(text).split()).replace("&", "&amp;").replace("<", "&lt;")
    line = re.sub(r"(?<!\w)@", "&#64;", line)
    return line.replace("|", "\\|").replace("`", "&#96;").replace("[", "&#91;")


def _judged(metrics: Sequence[Metric], case: RetrievalCase, error: str) -> list[Judgement]:
    if error:
        return [Judgement(None, f"the system failed: {error}") for _ in metrics]
    return [metric.judge(case) for metric in metrics]


def check_figure_path(path: str | Path) -> Path:
    """Return the path of a figure, or raise a ValueError if the suffix is unsupported."""
    if Path(path).suffix not in (".png", ".svg"):
        raise ValueError(f"a figure must be a file .png or .svg, got {str(path)!r}")
    return Path(path)


def _check(name: str, existing: Mapping[str, object], kind: str) -> None:
    if name not in existing:
        raise ValueError(f"a {kind} must be {nearest_names(name, existing)}, got {name!r}")


def _gold(count: int) -> str:
    return "1 gold item is" if count == 1 else f"{count} gold items are"


def _cell(figure: Figure) -> str:
    if figure.value is None or figure.low is None or figure.high is None:
        return "not judged"
    digits = 4 if abs(figure.value) < 10 else 1
    return f"{figure.value:.{digits}f} ({figure.low:.3f} to {figure.high:.3f})"
