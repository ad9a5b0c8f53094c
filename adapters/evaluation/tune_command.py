"""Choose the set-up that answers your questions best."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from ...nodegraph.document import Document
from ...nodegraph.graph import NodeGraph
from ...retrievers.composite.default_settings import default_target, set_default_target
from ...retrievers.evaluation.dataset_forms import load_dataset
from ...retrievers.evaluation.matching import Matching
from ...retrievers.evaluation.metrics import get_metric
from ...retrievers.evaluation.setups.setup_file import SetupFile
from ...retrievers.evaluation.tuning import Tuning, tune
from ..cli.exit_status import EXIT_STATUSES, printable
from ..cli.options import common_options, question_options
from ..cli.output import FORMAT, echo, to_json
from ..cli.trust import allow_folder, copy_permissions
from .eval_command import (
    check_replaceable,
    exit_status,
    parse_fields,
    print_missing_gold,
    says_how_to_go_on,
    write_text,
)
from .setup_session import open_setups, refuse_unless_typed, trust_code_option

JSON_FORMAT = """\b
FILE is a file of set-ups, as in docs/evaluation.md: [graph] has the documents
and the embeddings, each of [models] with rerank is tried on the default's
results, and [setups] are tried beside the built-in ones.

\b
With --json: {"format": 1, "command": "tune", "changed", "chosen": name,
  "setup": the TOML, "metric", "tried", "chosen_on": number of questions, "seconds",
  "notes", "report": what "nodekin eval --json" prints, without its results}
"""


@click.command("tune", epilog=f"{JSON_FORMAT}\n{EXIT_STATUSES}")
@click.argument("file", required=False, type=click.Path(path_type=Path, dir_okay=False))
@question_options
@click.option(
    "--seconds",
    type=click.FloatRange(min=0, min_open=True),
    default=300.0,
    show_default=True,
    help="How long set-ups are tried.",
)
@click.option(
    "-m",
    "--metric",
    metavar="NAME@K",
    help="What is chosen by: ndcg@5 by default, answer_in_context@5 where no question has gold; "
    "others are reported beside it.",
)
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    default=Path("tuned.toml"),
    show_default=True,
    metavar="FILE",
    help="Where the chosen set-up is written. What all returned is kept beside it, in "
    "tuned.trials.jsonl: the same command goes on where it was interrupted, or has more time.",
)
@click.option("--force", is_flag=True, help="Replace the file that is there.")
@trust_code_option
@common_options
def tune_command(
    file: Path | None,
    data: Path,
    docs: tuple[Path, ...],
    store: Path | None,
    fields: tuple[str, ...],
    match: Any,
    document_key: str | None,
    seconds: float,
    metric: str | None,
    out: Path,
    force: bool,
    trust_code: bool,
    as_json: bool,
    quiet: bool,
) -> int:
    """Choose the set-up that answers your questions best, and write it to a file.

    One half of the questions chooses, the other half reports, beside the default.

    \b
    nodekin tune --data questions.jsonl --docs docs --seconds 300
    nodekin tune models.toml --data questions.csv -m recall@5
    """
    check_replaceable(out, force)
    refuse_unless_typed("trust_code", "--trust-code")
    if metric is not None:
        get_metric(metric)  # says which there are
    dataset = load_dataset(data, parse_fields(fields))
    declared = SetupFile() if file is None else SetupFile.read(file, trust_code=trust_code)
    trials = None if out == Path("-") else out.with_suffix(".trials.jsonl")
    with (
        open_setups(declared, docs, store, quiet=quiet, documents=dataset.documents) as opened,
        says_how_to_go_on(trials),
    ):
        lasts = "store" in declared.graph or opened.graph.reader.index_file("tune") is not None
        tuning = tune(
            _in_memory(opened.graph, quiet) if lasts else opened.graph,
            dataset,
            setups=declared,
            metric=metric,
            seconds=seconds,
            models=opened.models,
            matching=Matching(match, document_key=document_key),
            path=trials,
            progress=False if quiet else None,
        )
    graph = _graph_table(declared, docs, out)
    setups = replace(tuning.setups, graph=graph, models=declared.models)
    text = "".join(f"# {line}\n" for line in _comment(tuning)) + "\n" + setups.to_toml()
    write_text(out, text)
    if out != Path("-"):
        _allow_written(out, declared, docs)
    if as_json:
        echo(to_json({"format": FORMAT, "command": "tune", **_record(tuning, text)}))
    elif out != Path("-"):
        echo(printable(str(tuning)))
        echo(f"written to {out}; open it with load_setup, measure it with nodekin eval {out}")
    if not quiet:
        print_missing_gold(tuning.evaluation)
    return exit_status(tuning.evaluation)


def _in_memory(graph: NodeGraph, quiet: bool) -> NodeGraph:
    """Return a graph of the same documents and groups: those that are tried are not stored."""
    embed = dict(graph.embeddings.embedders) or None
    copy = NodeGraph(embed=embed, on_error="skip", progress=False if quiet else None)
    copy.add([Document(n.text, n.metadata, id=n.id) for n in graph.nodes("ROOT")])
    for name in graph.reader.group_names():
        copy.reader.declare(graph.reader.lineage(name)[-1], replace=False)
    set_default_target(copy, default_target(graph))
    return copy


def _graph_table(file: SetupFile, docs: Sequence[Path], out: Path) -> dict[str, Any]:
    """Return ``[graph]`` for the file that is written: its paths begin where that file is."""
    table = dict(file.graph)
    folder = Path() if out == Path("-") else out.parent
    old = Path() if file.path is None else file.path.parent
    sources = table.get("source", [])
    paths = list(docs) or [old / p for p in ([sources] if isinstance(sources, str) else sources)]
    if paths:
        table["source"] = [Path(os.path.relpath(path, folder)).as_posix() for path in paths]
    if "store" in table:
        table["store"] = Path(os.path.relpath(old / table["store"], folder)).as_posix()
    return table


def _allow_written(out: Path, declared: SetupFile, docs: Sequence[Path]) -> None:
    """Allow the written file what the person has named, or has allowed the one it was made of."""
    if declared.path is not None:
        copy_permissions(declared.path, out)
    for path in docs:
        allow_folder(out, out.parent, path)


def _comment(tuning: Tuning) -> list[str]:
    """Return what the written file says of how it was chosen."""
    figures = [
        f"{name}: {figure.value:.4f} ({figure.low:.3f} to {figure.high:.3f})"
        for name, metrics in tuning.evaluation.figures.items()
        for figure in [metrics[tuning.metric]]
        if figure.value is not None
    ]
    return [
        f"Chosen by nodekin tune: by {tuning.metric}, on {len(tuning.trials.dataset)} questions.",
        f"On {len(tuning.evaluation.dataset)} others: {', '.join(figures) or 'not judged'}.",
        *tuning.notes,
    ]


def _record(tuning: Tuning, text: str) -> dict[str, Any]:
    report = tuning.evaluation.as_dict()
    del report["results"]
    return {
        "changed": tuning.changed,
        "chosen": tuning.setups.default,
        "setup": text,
        "metric": tuning.metric,
        "tried": len(tuning.trials.records),
        "chosen_on": len(tuning.trials.dataset),
        "seconds": tuning.seconds,
        "notes": list(tuning.notes),
        "report": report,
    }
