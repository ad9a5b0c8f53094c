"""Measure the retrieval quality with embedding models, for the tables of ``quality.py --models``.

All systems answer the same questions. The figures are the share of questions whose first result is
correct, and the share of questions for which all correct passages are among the first five results.
Vectors are cached, so that an interrupted run can be continued.
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
from model_sets import E5, LANGUAGES, MINILM, QuestionSet, selected
from model_systems import FAMILIES, TOP_K, Family

from nodekin.retrievers.evaluation import Dataset

FIRST, ALL = "hit_rate@1", "all_gold@5"

_MODELS = {E5: e5_model, MINILM: minilm_model}

ROWS = {
    **{f"XQuAD, {name}": f"xquad.{name}" for name in LANGUAGES},
    "XQuAD, German about Russian passages": "de-ru",
    "XQuAD, about another language (12 pairs)": "??-??",
    "CMRC 2018": "cmrc",
    "JSQuAD": "jsquad",
    "HotpotQA": "hotpotqa",
    "MuSiQue": "musique",
    "Chroma": "chroma",
    "Help center, English": "faq",
    "Help center, English, among 300 passages": "faq+300",
    "Help center, English, among 1,500 passages": "faq+1500",
    "Help center, English, e5": "faq.e5",
    "Help center, English, e5, among 300 passages": "faq+300.e5",
    "Help center, English, its words in wrong answers": "faqwrong",
    "Help center, Chinese": "faqzh",
    "Help center, Chinese, among 300 passages": "faqzh+300",
    "Help center, Chinese, among 1,104 passages": "faqzh+1104",
    "Help center, Chinese, its words in wrong answers": "faqzhwrong",
    "House, English": "house",
    "House, English, among 1,500 passages": "house+1500",
    "House, Chinese": "housezh",
    "House, Chinese, among 1,104 passages": "housezh+1104",
    "House, German": "housede",
    "House, German, among 240 passages": "housede+240",
}
"""The data sets in each row of the summary. If there are several, their figures are averaged."""

COLUMNS = {
    "**nodekin**, default": "nodekin, default",
    "words": "nodekin, words",
    "vectors of sentences": "nodekin, vectors of sentences",
    "vectors of passages": "nodekin, vectors of passages",
    "LangChain, Ensemble": "LangChain, EnsembleRetriever",
    "LangChain, parents": "LangChain, ParentDocumentRetriever",
    "LlamaIndex, ranks": "LlamaIndex, QueryFusionRetriever, reciprocal_rerank",
    "LlamaIndex, relative": "LlamaIndex, QueryFusionRetriever, relative_score",
    "LlamaIndex, distribution": "LlamaIndex, QueryFusionRetriever, dist_based_score",
    "haystack, ranks": "haystack, reciprocal_rank_fusion",
    "haystack, distribution": "haystack, distribution_based_rank_fusion",
}
"""The system in each column of the summary."""

NOTE = (
    "First result correct / all gold among the first five; 300 questions per set, 100 of HotpotQA "
    "and MuSiQue. The help center and the house have 20 to 40 questions in other words than their "
    "answers. The same texts, vectors and `top_k` "
    "of 10 for all systems, with their default settings otherwise. Models: multilingual-e5-small "
    "(4 bit) for XQuAD, CMRC, JSQuAD, Chinese and German; all-MiniLM-L6-v2 otherwise. Empty cells "
    "are not measured."
)


class Record(NamedTuple):
    """The metrics of one system on one data set.

    Attributes:
        questions: The name of the data set.
        model: The name of the embedding model.
        passages: The number of documents.
        asked: The number of questions that were asked.
        system: The name of the system.
        first: The share of questions whose first result is correct.
        all_gold: The share of questions for which all correct passages are among the first five
            results.
        milliseconds: The median time per question, without embedding the question.
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
    """Measure each system and yield its metrics. Systems whose package is missing are reported.

    Args:
        name: The name of the data set.
        model_name: The short name of the model.
        dataset: The documents and questions.
        model: The embedding model.
        families: Functions that create the systems, keyed by family.
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
    """Return the header and rows of a table with one row per data set and one column per system."""
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


def summary(records: Sequence[Record]) -> tuple[list[str], list[list[str]]]:
    """Return the header and rows of the summary for the README.

    Rows without any results are left out. A cell is empty if a data set was not measured.
    """
    rows = []
    for row, pattern in ROWS.items():
        sets = [each.name for each in selected([pattern])]
        of_row = [record for record in records if record.questions in sets]
        cells = [_mean_cell(of_row, system, len(sets)) for system in COLUMNS.values()]
        if any(cells):
            rows.append([row, *cells])
    return ["questions", *COLUMNS], rows


def _mean_cell(records: Sequence[Record], system: str, sets: int) -> str:
    """Format the average metrics of a system, provided that it was measured on all data sets."""
    found = [record for record in records if record.system == system]
    if len(found) < sets:
        return ""
    first = sum(record.first for record in found) / len(found)
    all_gold = sum(record.all_gold for record in found) / len(found)
    return f"{first:.3f} / {all_gold:.2f}"


def read_records(path: Path | None) -> list[Record]:
    """Read the results of earlier runs from a file. If the file is missing, the list is empty."""
    if path is None or not path.exists():
        return []
    return [Record(**fields) for fields in json.loads(path.read_text(encoding="utf-8"))]


def merged(old: Sequence[Record], new: Sequence[Record]) -> list[Record]:
    """Combine old and new results.

    New results replace old results of the same system and data set.
    """
    by_place = {(record.questions, record.system): record for record in old}
    by_place.update(((record.questions, record.system), record) for record in new)
    return [*by_place.values()]


def write_records(path: Path, records: Sequence[Record]) -> None:
    """Write results to a file as JSON."""
    fields = [record._asdict() for record in records]
    path.write_text(json.dumps(fields, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def selected_families(names: Sequence[str]) -> dict[str, Family]:
    """Return the families of systems with the given names.

    Raises:
        ValueError: If a name is unknown.
    """
    for name in names:
        if name not in FAMILIES:
            raise ValueError(f"systems must be some of {', '.join(FAMILIES)}; got {name!r}")
    return {name: FAMILIES[name] for name in names}


def read_set(question_set: QuestionSet, options: Namespace) -> Dataset | None:
    """Read a data set. If its data is missing, print a message and return None."""
    try:
        return question_set.read(options.data, options.questions)
    except FileNotFoundError as error:
        print(f"{question_set.name}: skipped, no {error.filename}", file=sys.stderr, flush=True)
    except SystemExit as error:  # The data of CMRC 2018 is missing.
        print(f"{question_set.name}: {error}", file=sys.stderr, flush=True)
    return None


def add_model_options(parser: ArgumentParser) -> None:
    """Add the command-line options that belong to ``--models``."""
    group = parser.add_argument_group("with --models")
    group.add_argument("--sets", nargs="+", default=["*"], help="names or patterns of sets")
    families = ", ".join(FAMILIES)
    group.add_argument("--systems", nargs="+", default=[*FAMILIES], help=f"some of: {families}")
    group.add_argument("--questions", type=int, default=300, help="questions per set")
    group.add_argument("--json", type=Path, help="file to which the figures are added")


def model_tables(options: Namespace) -> None:
    """Measure the selected systems on the selected data sets, and print the tables."""
    # nodekin evaluates the vectors of each data set and logs the result.
    logging.disable(logging.WARNING)
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
    records = merged(old, new)
    header, rows = table(records)
    print_table("All sets", header, rows)
    header, rows = summary(records)
    show("With embedding models", header, rows, NOTE)


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a Markdown table."""
    print(f"\n### {title}\n")
    for row in (header, ["---"] * len(header), *rows):
        print("| " + " | ".join(row) + " |")
