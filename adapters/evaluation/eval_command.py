"""Measure set-ups on questions, and compare them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from ...nodegraph.document import Document
from ...retrievers.evaluation.dataset_forms import load_dataset
from ...retrievers.evaluation.gate import compare_with_baseline
from ...retrievers.evaluation.judges import Judge
from ...retrievers.evaluation.matching import Matching
from ...retrievers.evaluation.metrics import JUDGED_METRICS, Metric, get_metric
from ...retrievers.evaluation.report import Evaluation
from ...retrievers.evaluation.runner import default_metrics, evaluate
from ...retrievers.evaluation.setups.setup_file import ENGINES, SetupFile
from ..cli.exit_status import EXIT_STATUSES, CommandError, ExitStatus, printable
from ..cli.options import common_options, question_options
from ..cli.output import FORMAT, echo, to_json
from ..named_models import chat_model as named_chat
from .setup_session import (
    declared_models,
    load_retriever,
    open_setups,
    refuse_unless_typed,
    trust_code_option,
)

JSON_FORMAT = """\b
SETUPS is a file of set-ups in TOML, as in docs/evaluation.md; without one the
default retriever is measured. Questions: lines of {"id", "question", "passages"
or "document_ids" or "spans", "answers"}, a CSV file with such columns, a file
in the form of SQuAD, a folder in the form of BEIR.

\b
With --json: {"format": 1, "command": "eval", "dataset", "questions", "figures":
  {set-up: {metric: {"value", "low", "high", "judged", "not_judged"}}},
  "costs", "differences": [{..., "sentence"}], "notes", "missing_gold",
  "results": {set-up: [{"question_id", "items", "judgements", ...}]}}
With --baseline also "gate": {"passed", "checks": [{"setup", "metric", "verdict",
  "difference", "lost", "won", "sentence", ...}], "failures", "lost_gold",
  "lost_questions", "notes"}

\b
With --baseline and --max-loss the exit status is 1 if the gate failed, else 0.
"""

_MAX_LISTED = 10  # how much missing gold is listed

_FILE = click.Path(path_type=Path, dir_okay=False, allow_dash=True)


@click.command("eval", epilog=f"{JSON_FORMAT}\n{EXIT_STATUSES}")
@click.argument("setups", required=False, type=click.Path(path_type=Path, dir_okay=False))
@question_options
@click.option(
    "--setup",
    "names",
    multiple=True,
    metavar="NAME",
    help="Measure only this set-up. Repeatable; the first is what others are compared with.",
)
@click.option(
    "--retriever",
    "retrievers",
    multiple=True,
    metavar="MODULE:NAME",
    help="Measure a retriever of your own: a retriever, chain or query engine of LangChain or "
    "LlamaIndex, a function from a question to texts, or a function that makes one, perhaps of the "
    "argument documents. Its set-up is called NAME. Repeatable.",
)
@trust_code_option
@click.option(
    "-m",
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAME@K",
    help="What is measured, such as recall@5, mrr@5, answer_in_context@5, tokens_per_gold; without "
    "it what the questions have gold or answers for. Repeatable.",
)
@click.option(
    "--judge",
    metavar="MODEL",
    help="The language model of metrics by a judge, such as judged_context_relevance@5: the name "
    "of one in [models], or of OPENAI_BASE_URL's server. Without -m it judges results. "
    "What it decides is kept beside --results.",
)
@click.option(
    "--results",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write each question's results to this file of JSON lines as they come. The same command "
    "goes on where it was interrupted; other metrics search nothing again.",
)
@click.option(
    "--baseline",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Compare with what --save-baseline or --results wrote, question by question.",
)
@click.option(
    "--max-loss",
    "max_losses",
    multiple=True,
    metavar="NAME@K=NUMBER",
    help="With --baseline: how much worse a metric may be, such as recall@5=.02. With a loss that "
    "is surely larger the exit status is 1. Repeatable.",
)
@click.option(
    "--max-failures",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="With --baseline: for how many questions a set-up may raise an error.",
)
@click.option(
    "--max-missing",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="With --baseline: how many of its questions may be gone, or have gold that is in no "
    "document any more.",
)
@click.option(
    "--save-baseline",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the results to this file, to compare with later. Not if the gate failed.",
)
@click.option("--markdown", type=_FILE, metavar="FILE", help="Write the table as Markdown.")
@click.option("--csv", type=_FILE, metavar="FILE", help="Write every judgement in a line.")
@click.option("--html", type=_FILE, metavar="FILE", help="Write a page to look into questions.")
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="How many questions are searched at once, where a model is waited for.",
)
@common_options
def eval_command(
    setups: Path | None,
    data: Path,
    docs: tuple[Path, ...],
    store: Path | None,
    fields: tuple[str, ...],
    match: Any,
    document_key: str | None,
    names: tuple[str, ...],
    retrievers: tuple[str, ...],
    trust_code: bool,
    metrics: tuple[str, ...],
    judge: str | None,
    results: Path | None,
    baseline: Path | None,
    max_losses: tuple[str, ...],
    max_failures: int,
    max_missing: int,
    save_baseline: Path | None,
    markdown: Path | None,
    csv: Path | None,
    html: Path | None,
    workers: int,
    as_json: bool,
    quiet: bool,
) -> int:
    """Measure the set-ups of SETUPS on questions with gold, and compare them with the first.

    \b
    nodekin eval setups.toml --data questions.jsonl
    nodekin eval --data q.jsonl --docs docs --retriever search:make_retriever
    nodekin eval --data q.jsonl --docs docs --save-baseline baseline.jsonl
    nodekin eval --data q.jsonl --docs docs --baseline baseline.jsonl --max-loss recall@5=.02
    """
    limits = _parse_limits(max_losses, baseline)
    files = {"results": results, "save-baseline": save_baseline}
    for option, path in {**files, "markdown": markdown, "csv": csv, "html": html}.items():
        check_folder(path, f"--{option}")
    refuse_unless_typed("retrievers", "--retriever")
    refuse_unless_typed("trust_code", "--trust-code")
    file = SetupFile() if setups is None else SetupFile.read(setups, trust_code=trust_code)
    given = {retriever.rpartition(":")[2]: retriever for retriever in retrievers}
    chosen = list(names or [*given, *file.setups])
    if len(given) < len(retrievers) or given.keys() & file.setups.keys():
        raise CommandError(
            f"two set-ups have one name among {', '.join([*retrievers, *file.setups])}; give each "
            "another one",
            ExitStatus.USAGE_ERROR,
        )
    engines = [n for n in chosen if n not in given and file.table(n)["type"] in ENGINES]
    for name in (*metrics, *limits):  # what there is not is said before anything is read
        if name.partition("@")[0] not in JUDGED_METRICS:
            get_metric(name)
    dataset = load_dataset(data, parse_fields(fields))
    if judge is not None and not metrics:
        triad = ("groundedness@5", "answer_relevance", "judged_context_relevance@5")
        metrics = (*default_metrics(dataset), *(triad if engines else triad[-1:]))
    if limits:
        metrics = tuple(dict.fromkeys((*(metrics or default_metrics(dataset)), *limits)))
    measures = _measures(metrics, judge, file, results)
    with (
        says_how_to_go_on(results),
        open_setups(file, docs, store, quiet=quiet, documents=dataset.documents) as opened,
    ):
        graph = opened.graph

        def documents() -> list[Document]:
            return [Document(n.text, n.metadata, id=n.id) for n in graph.nodes("ROOT")]

        result = evaluate(
            {
                name: load_retriever(given[name], documents) if name in given else opened.open(name)
                for name in chosen
            },
            dataset,
            measures or None,
            matching=Matching(match, document_key=document_key),
            documents=opened.graph,
            path=results,
            descriptions={n: given.get(n) or file.describe(n) for n in chosen},
            max_workers=workers,
            progress=False if quiet else None,
        )
    gate = None
    if baseline is not None:
        gate = compare_with_baseline(
            result, baseline, limits, max_failures=max_failures, max_missing=max_missing
        )
    table = result if gate is None else gate.evaluation
    if markdown is not None:
        write_text(markdown, (gate or result).to_markdown())
    if csv is not None:
        write_text(csv, table.to_csv())
    if html is not None:
        write_text(html, table.to_html())
    if as_json:
        compared = {} if gate is None else {"gate": gate.as_dict()}
        echo(to_json({"format": FORMAT, "command": "eval", **result.as_dict(), **compared}))
    elif Path("-") not in (markdown, csv, html):
        echo(printable(str(result) if gate is None else f"{table.table()}\n{gate}"))
    if not quiet:
        print_missing_gold(result)
    passed = gate is None or gate.passed
    if save_baseline is not None and passed:
        result.save(save_baseline)
    return exit_status(result) if gate is None else ExitStatus(0 if passed else 1)


def _parse_limits(limits: Sequence[str], baseline: Path | None) -> dict[str, float]:
    """Return how much metrics may lose, from ``recall@5=.02``.

    Raises:
        CommandError: If one is not of the form, or there is no baseline.
    """
    parsed = {}
    for limit in limits:
        name, _, number = limit.partition("=")
        try:
            parsed[name] = float(number)
        except ValueError:
            raise CommandError(
                f"--max-loss {limit!r} is not of the form recall@5=.02", ExitStatus.USAGE_ERROR
            ) from None
    if parsed and baseline is None:
        raise CommandError(
            "--max-loss needs what to compare with: --baseline FILE, which --save-baseline writes",
            ExitStatus.USAGE_ERROR,
        )
    if baseline is not None and not baseline.exists():
        raise CommandError(
            f"there is no baseline {str(baseline)!r}; write one with --save-baseline",
            ExitStatus.INDEX_ERROR,
        )
    return parsed


def _measures(
    names: Sequence[str], judge: str | None, file: SetupFile, results: Path | None
) -> list[Metric]:
    """Return the metrics of these names, those by a judge with the model that judges.

    Raises:
        CommandError: If one is by a judge, and there is none.
    """
    judged = [name for name in names if name.partition("@")[0] in JUDGED_METRICS]
    if not judged:
        return [get_metric(name) for name in names]
    if judge is None:
        raise CommandError(
            f"{judged[0]} is decided by a language model; name it with --judge MODEL",
            ExitStatus.USAGE_ERROR,
        )
    model = declared_models(file)[judge] if judge in file.models else named_chat(judge)
    saved = None if results is None else results.with_suffix(".judge.db")
    measure = Judge(model, store=saved).metric
    return [measure(name) if name in judged else get_metric(name) for name in names]


@contextmanager
def says_how_to_go_on(path: Path | None, more: str = "") -> Iterator[None]:
    """Say on Ctrl-C which file has what was done."""
    try:
        yield
    except KeyboardInterrupt:
        if path is not None and path.exists():
            click.echo(
                f"nodekin: {path} has what is done; the same command goes on{more}", err=True
            )
        raise


def check_folder(path: Path | None, option: str) -> None:
    """Check that there is the folder of a file to write, before there is anything to lose.

    Raises:
        CommandError: If there is none.
    """
    if path is not None and not path.parent.is_dir():
        raise CommandError(
            f"{option} {path}: there is no folder {str(path.parent)!r}; make it first",
            ExitStatus.USAGE_ERROR,
        )


def check_replaceable(path: Path, force: bool) -> None:
    """Check that a file of ``--out`` may be written.

    Raises:
        CommandError: If it is there, and ``--force`` is not given, or its folder is not there.
    """
    check_folder(path, "--out")
    if path.exists() and not force and path != Path("-"):
        raise CommandError(
            f"{path} is there already; name another file with --out, or replace it with --force",
            ExitStatus.USAGE_ERROR,
        )


def parse_fields(fields: tuple[str, ...]) -> dict[str, str] | None:
    """Return what columns are called, from ``question=Frage``.

    Raises:
        CommandError: If one is not of the form.
    """
    pairs = [field.partition("=") for field in fields]
    for field, (name, _, column) in zip(fields, pairs, strict=True):
        if not name or not column:
            raise CommandError(
                f"--field {field!r} is not of the form question=COLUMN", ExitStatus.USAGE_ERROR
            )
    return {name: column for name, _, column in pairs} or None


def write_text(path: Path, text: str) -> None:
    """Write a text to a file, to standard output for a dash."""
    if path == Path("-"):
        click.echo(text, nl=False)
    else:
        path.write_text(text, encoding="utf-8", newline="\n")


def print_missing_gold(result: Evaluation) -> None:
    """List on stderr the gold that is in no document."""
    missing = result.missing_gold
    if len(missing) <= 1:
        return  # the notes name it
    for gold in missing[:_MAX_LISTED]:
        click.echo(f"nodekin: {printable(' '.join(str(gold).split()))}", err=True)
    if len(missing) > _MAX_LISTED:
        more = len(missing) - _MAX_LISTED
        click.echo(f"nodekin: and {more} more in no document; --json lists all", err=True)


def exit_status(result: Evaluation) -> ExitStatus:
    """Return the exit status of an evaluation: NO_RESULTS if a system has no figure."""
    for figures in result.figures.values():
        if not any(figure.judged for figure in figures.values()):
            return ExitStatus.NO_RESULTS
    failed = any(result.costs(setup)["failed"] for setup in result.records)
    return ExitStatus.PARTIAL_SUCCESS if failed else ExitStatus.SUCCESS
