"""Retrieval quality with embedding models: the tables of ``quality.py --models``.

Each system answers the same questions. The figures are the share of questions whose first result
is gold, and the share of questions with all gold among the first five results. Vectors are cached,
so that a run after an interruption continues.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from harness import EmbeddingModel, compare, e5_model, minilm_model, show
from model_sets import E5, MINILM, QuestionSet, selected
from model_systems import FAMILIES, TOP_K, Family

from nodekin.retrievers.evaluation import Dataset

FIRST, ALL = "hit_rate@1", "all_gold@5"

_MODELS = {E5: e5_model, MINILM: minilm_model}


class Record(NamedTuple):
    """The figures of a system on a set.

    Attributes:
        questions: The name of the set.
        model: The embedding model.
        passages: The number of documents.
        asked: The number of questions.
        system: The name of the system.
        first: The share of questions whose first result is gold.
        all_gold: The share of questions with all gold among the first five results.
        milliseconds: The median time per question. The vector of the question is cached.
    """

    questions: str
    model: str
    passages: int
    asked: int
    system: str
    first: float
    all_gold: float
    milliseconds: float


def records_of(
    name: str,
    model_name: str,
    dataset: Dataset,
    model: EmbeddingModel,
    families: Mapping[str, Family],
) -> Iterable[Record]:
    """Yield the figures of each system. Families whose package is missing are printed.

    Args:
        name: The name of the set.
        model_name: The short name of the model.
        dataset: The documents and questions.
        model: The embedding model.
        families: The systems.
    """
    queries = [question.text for question in dataset.questions]
    model.embed_queries(queries)
    for family, systems in families.items():
        try:
            for system, retriever in systems(dataset, model):
                measured = compare(dataset, {system: retriever}, (FIRST, ALL), top_k=TOP_K)
                figures = measured.figures[system]
                yield Record(
                    name,
                    model_name,
                    len(dataset.documents),
                    len(dataset),
                    system,
                    round(float(figures[FIRST].value), 4),
                    round(float(figures[ALL].value), 4),
                    round(1000 * measured.costs(system)["median_seconds"], 2),
                )
        except ImportError as error:
            print(f"{name}: {family} skipped, no {error.name}", file=sys.stderr, flush=True)


def table(records: Sequence[Record]) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of a table: a row for each set, a column for each system."""
    systems = [*dict.fromkeys(record.system for record in records)]
    sets = [*dict.fromkeys(record.questions for record in records)]
    cells = {
        (record.questions, record.system): f"{record.first:.3f} / {record.all_gold:.2f}"
        for record in records
    }
    sizes = {
        record.questions: [record.model, f"{record.passages:,}", f"{record.asked:,}"]
        for record in records
    }
    header = ["set", "model", "passages", "questions", *systems]
    rows = [
        [name, *sizes[name], *(cells.get((name, system), "") for system in systems)]
        for name in sets
    ]
    return header, rows


def read_records(path: Path | None) -> list[Record]:
    """Read the records of earlier runs. A missing file has none."""
    if path is None or not path.exists():
        return []
    return [Record(**fields) for fields in json.loads(path.read_text(encoding="utf-8"))]


def merged(old: Sequence[Record], new: Sequence[Record]) -> list[Record]:
    """Return all records. A new record replaces the old record of its set and system."""
    by_place = {(record.questions, record.system): record for record in old}
    by_place.update(((record.questions, record.system), record) for record in new)
    return [*by_place.values()]


def write_records(path: Path, records: Sequence[Record]) -> None:
    """Write records as JSON."""
    fields = [record._asdict() for record in records]
    path.write_text(json.dumps(fields, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def selected_families(names: Sequence[str]) -> dict[str, Family]:
    """Return systems by the names of their families.

    Raises:
        ValueError: If a name is unknown.
    """
    for name in names:
        if name not in FAMILIES:
            raise ValueError(f"systems must be some of {', '.join(FAMILIES)}; got {name!r}")
    return {name: FAMILIES[name] for name in names}


def read_set(question_set: QuestionSet, options: Namespace) -> Dataset | None:
    """Read a set. If its data is missing, this is printed."""
    try:
        return question_set.read(options.data, options.questions)
    except FileNotFoundError as error:
        print(f"{question_set.name}: skipped, no {error.filename}", file=sys.stderr, flush=True)
    except SystemExit as error:  # CMRC 2018 is missing
        print(f"{question_set.name}: {error}", file=sys.stderr, flush=True)
    return None


def add_model_options(parser: ArgumentParser) -> None:
    """Add the options of ``--models``."""
    group = parser.add_argument_group("with --models")
    group.add_argument("--sets", nargs="+", default=["*"], help="names or patterns of sets")
    families = ", ".join(FAMILIES)
    group.add_argument("--systems", nargs="+", default=[*FAMILIES], help=f"some of: {families}")
    group.add_argument("--questions", type=int, default=300, help="questions per set")
    group.add_argument("--json", type=Path, help="file to which the figures are added")


def model_tables(options: Namespace) -> None:
    """Measure the selected sets and systems, and print the table."""
    logging.disable(logging.WARNING)  # nodekin measures the vectors of each set, and logs this
    sets = selected(options.sets)
    families = selected_families(options.systems)
    models: dict[str, EmbeddingModel] = {}
    old = read_records(options.json)
    new: list[Record] = []
    for question_set in sets:
        start = time.perf_counter()
        dataset = read_set(question_set, options)
        if dataset is None:
            continue
        try:
            if question_set.model not in models:
                models[question_set.model] = _MODELS[question_set.model](options.cache)
        except ImportError as error:
            print(f"{question_set.name}: skipped, no {error.name}", file=sys.stderr, flush=True)
            continue
        model = models[question_set.model]
        for record in records_of(question_set.name, question_set.model, dataset, model, families):
            new.append(record)
            print(f"{record.questions}: {record.system}: {record.first:.3f}", file=sys.stderr)
            if options.json is not None:
                write_records(options.json, merged(old, new))
        taken = time.perf_counter() - start
        print(f"{question_set.name}: {taken:.0f} s", file=sys.stderr, flush=True)
    header, rows = table(merged(old, new))
    show("With embedding models", header, rows, "First result correct / all gold in the first 5.")
