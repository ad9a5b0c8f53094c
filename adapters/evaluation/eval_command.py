"""Measure retrievers on questions, and compare them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from ...nodegraph.document import Document
from ...nodegraph.graph import NodeGraph
from ...retrievers.evaluation.dataset import Dataset
from ...retrievers.evaluation.dataset_forms import load_dataset
from ...retrievers.evaluation.figure import check_path
from ...retrievers.evaluation.gate import compare_with_baseline
from ...retrievers.evaluation.hidden_failures import graphs_of
from ...retrievers.evaluation.judges import Judge
from ...retrievers.evaluation.matching import Matching
from ...retrievers.evaluation.metrics import JUDGED_METRICS, Metric, get_metric
from ...retrievers.evaluation.report import Evaluation
from ...retrievers.evaluation.runner import default_metrics, evaluate
from ...retrievers.protocols import RetrieverLike
from ..cli.exit_status import EXIT_STATUSES, CommandError, ExitStatus, printable
from ..cli.options import common_options, question_options
from ..cli.output import FORMAT, echo, to_json
from ..cli.workspace import build_if_outdated, find_index, model_of, open_graph
from ..named_models import chat_model
from .named_retrievers import load_retriever

JSON_FORMAT = """\b
RETRIEVER is MODULE:NAME, from the current directory: a retriever of nodekin,
LangChain or LlamaIndex, a function that returns one, or a function from a
question to texts. A function may have the argument documents. "default" is
nodekin's default retriever. Questions: lines of {"id", "question", "passages" or
"document_ids" or "spans", "answers"}, a CSV file with such columns, a SQuAD file,
a BEIR folder.

\b
With --json: {"format": 1, "command": "eval", "dataset", "questions", "figures":
  {name: {metric: {"value", "low", "high", "judged", "not_judged"}}},
  "costs", "differences": [{..., "sentence"}], "notes", "missing_gold",
  "results": {name: [{"question_id", "items", "judgements", ...}]}}
With --baseline also "gate": {"passed", "checks": [{"setup", "metric", "verdict",
  "difference", "lost", "won", "sentence", ...}], "failures", "lost_gold",
  "lost_questions", "notes"}

\b
The exit status is 1 if a retriever has no figure, since a model or a group
failed, or nothing is judged; with --baseline if the gate failed.
"""

DEFAULT = "default"
"""The name of the default retriever on the command line."""

_MAX_LISTED = 10  # missing gold items

_FILE = click.Path(path_type=Path, dir_okay=False, allow_dash=True)

_PATH = click.Path(path_type=Path, dir_okay=False)


@click.command("eval", epilog=f"{JSON_FORMAT}\n{EXIT_STATUSES}")
@click.argument("retrievers", nargs=-1, metavar="[RETRIEVER]...")
@question_options
@click.option(
    "-m",
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAME@K",
    help="A metric: recall@5, mrr@5, answer_in_context@5, tokens_per_gold. By default all that the "
    "questions have gold or answers for. Repeatable.",
)
@click.option(
    "--judge",
    metavar="MODEL",
    help="The language model of judged metrics, such as judged_context_relevance@5, on the server "
    "OPENAI_BASE_URL. Without -m, the model judges the results. Decisions are cached beside "
    "--results.",
)
@click.option(
    "--results",
    type=_PATH,
    metavar="FILE",
    help="Write the results of each question to this JSON lines file. The same command continues "
    "after an interrupt; other metrics search nothing again.",
)
@click.option(
    "--baseline",
    type=_PATH,
    metavar="FILE",
    help="Compare with a file of --save-baseline or --results, question by question.",
)
@click.option(
    "--max-loss",
    "max_losses",
    multiple=True,
    metavar="NAME@K=NUMBER",
    help="With --baseline: the allowed loss of a metric, such as recall@5=.02. Repeatable.",
)
@click.option(
    "--max-failures",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="With --baseline: the number of questions on which a retriever may fail.",
)
@click.option(
    "--save-baseline",
    type=_PATH,
    metavar="FILE",
    help="Write the results to this file as a baseline, unless the gate failed.",
)
@click.option("--markdown", type=_FILE, metavar="FILE", help="Write the table as Markdown.")
@click.option("--csv", type=_FILE, metavar="FILE", help="Write each judgement as a line of CSV.")
@click.option(
    "--figure", type=_PATH, metavar="FILE", help="Draw the figures to a file .png or .svg."
)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="The number of questions that are searched concurrently.",
)
@common_options
def eval_command(
    retrievers: tuple[str, ...],
    data: Path,
    docs: tuple[Path, ...],
    store: Path | None,
    fields: tuple[str, ...],
    match: Any,
    document_key: str | None,
    metrics: tuple[str, ...],
    judge: str | None,
    results: Path | None,
    baseline: Path | None,
    max_losses: tuple[str, ...],
    max_failures: int,
    save_baseline: Path | None,
    markdown: Path | None,
    csv: Path | None,
    figure: Path | None,
    workers: int,
    as_json: bool,
    quiet: bool,
) -> int:
    """Measure RETRIEVERs on questions with gold, and compare the others with the first.

    \b
    nodekin eval my_module:make_retriever --data questions.jsonl
    nodekin eval default my_module:search --data questions.jsonl --docs docs
    nodekin eval --data questions.jsonl --docs docs --save-baseline baseline.jsonl
    nodekin eval --data q.jsonl --docs docs --baseline baseline.jsonl --max-loss recall@5=.02
    """
    limits = _parse_limits(max_losses, baseline)
    files = {"results": results, "save-baseline": save_baseline, "figure": figure}
    for option, path in {**files, "markdown": markdown, "csv": csv}.items():
        _check_folder(path, f"--{option}")
    if figure is not None:
        check_path(figure)
    named = _by_name(retrievers or (DEFAULT,))
    for name in (*metrics, *limits):  # unknown names are reported before anything is read
        if name.partition("@")[0] not in JUDGED_METRICS:
            get_metric(name)
    dataset = load_dataset(data, _parse_fields(fields))
    with (
        _says_how_to_continue(results),
        _documents(named, dataset, docs, store, quiet=quiet) as graph,
    ):

        def documents() -> list[Document]:
            if graph is None:
                raise _usage_error("there are no documents: name a folder with --docs")
            return [Document(n.text, n.metadata, id=n.id) for n in graph.nodes("ROOT")]

        opened: dict[str, RetrieverLike] = {
            name: graph if source == DEFAULT else load_retriever(source, documents)
            for name, source in named.items()
        }
        graphs = (
            [graph] if graph is not None else [g for r in opened.values() for g in graphs_of(r)]
        )
        if judge is not None and not metrics:
            engines = any(hasattr(getattr(r, "source", r), "query") for r in opened.values())
            triad = ("groundedness@5", "answer_relevance", "judged_context_relevance@5")
            metrics = (*default_metrics(dataset), *(triad if engines else triad[-1:]))
        if limits:
            metrics = tuple(dict.fromkeys((*(metrics or default_metrics(dataset)), *limits)))
        result = evaluate(
            opened,
            dataset,
            _measures(metrics, judge, results) or None,
            matching=Matching(match, document_key=document_key),
            documents=graphs[0] if graphs else None,
            path=results,
            descriptions={DEFAULT: DEFAULT},
            num_workers=workers,
            progress=False if quiet else None,
        )
    gate = None
    if baseline is not None:
        gate = compare_with_baseline(result, baseline, limits, max_failures=max_failures)
    table = result if gate is None else gate.evaluation
    if markdown is not None:
        _write_text(markdown, (gate or result).to_markdown())
    if csv is not None:
        _write_text(csv, table.to_csv())
    if figure is not None:
        table.save_figure(figure)
    if as_json:
        compared = {} if gate is None else {"gate": gate.as_dict()}
        echo(to_json({"format": FORMAT, "command": "eval", **result.as_dict(), **compared}))
    elif Path("-") not in (markdown, csv):
        echo(printable(str(result) if gate is None else f"{table.table()}\n{gate}"))
    if not quiet:
        _print_missing_gold(result)
    passed = gate is None or gate.passed
    if save_baseline is not None and passed:
        result.save(save_baseline)
    return _exit_status(result) if gate is None else ExitStatus(0 if passed else 1)


def _by_name(sources: Sequence[str]) -> dict[str, str]:
    """Return the sources of retrievers by name: NAME, or MODULE:NAME if two modules have NAME.

    Raises:
        CommandError: If a source is named twice.
    """
    short = [source.rpartition(":")[2] for source in sources]
    names = [name if short.count(name) == 1 else s for name, s in zip(short, sources, strict=True)]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise _usage_error(f"{twice!r} is named twice; name each retriever once")
    return dict(zip(names, sources, strict=True))


@contextmanager
def _documents(
    named: Mapping[str, str],
    dataset: Dataset,
    folders: Sequence[Path],
    store: Path | None,
    *,
    quiet: bool,
) -> Iterator[NodeGraph | None]:
    """Open the graph of folders, of an index, or of the questions' documents, until the block ends.

    Without these, the index is opened if the default retriever is measured. Else there is none.

    Raises:
        CommandError: If there is no such folder or index.
    """
    if not folders and store is None and dataset.documents:
        with NodeGraph(progress=False if quiet else None) as graph:
            graph.add(dataset.documents)
            yield graph
        return
    if not folders and store is None and DEFAULT not in named:
        yield None
        return
    home, settings = find_index(store, folders)
    model = model_of(home, settings)
    with open_graph(home, settings, folders, quiet=quiet, model=model) as graph:
        if home is not None:
            build_if_outdated(graph, quiet)
        yield graph


def _parse_limits(limits: Sequence[str], baseline: Path | None) -> dict[str, float]:
    """Return the allowed losses of metrics, from ``recall@5=.02``.

    Raises:
        CommandError: If one is not of the form, or there is no baseline.
    """
    parsed = {}
    for limit in limits:
        name, _, number = limit.partition("=")
        try:
            parsed[name] = float(number)
        except ValueError:
            raise _usage_error(f"--max-loss {limit!r} is not of the form recall@5=.02") from None
    if parsed and baseline is None:
        raise _usage_error("--max-loss needs --baseline FILE, which --save-baseline writes")
    if baseline is not None and not baseline.exists():
        raise CommandError(
            f"there is no baseline {str(baseline)!r}; write one with --save-baseline",
            ExitStatus.INDEX_ERROR,
        )
    return parsed


def _measures(names: Sequence[str], judge: str | None, results: Path | None) -> list[Metric]:
    """Return the metrics of these names.

    Raises:
        CommandError: If a metric needs a judge, and there is none.
    """
    judged = [name for name in names if name.partition("@")[0] in JUDGED_METRICS]
    if not judged:
        return [get_metric(name) for name in names]
    if judge is None:
        raise _usage_error(f"{judged[0]} needs a language model; name it with --judge MODEL")
    saved = None if results is None else results.with_suffix(".judge.db")
    measure = Judge(chat_model(judge), store=saved).metric
    return [measure(name) if name in judged else get_metric(name) for name in names]


@contextmanager
def _says_how_to_continue(path: Path | None) -> Iterator[None]:
    """Print on Ctrl-C which file has the finished questions."""
    try:
        yield
    except KeyboardInterrupt:
        if path is not None and path.exists():
            click.echo(f"nodekin: {path} has what is done; the same command goes on", err=True)
        raise


def _check_folder(path: Path | None, option: str) -> None:
    """Check the folder of a file to write.

    Raises:
        CommandError: If the folder does not exist.
    """
    if path is not None and not path.parent.is_dir():
        raise _usage_error(
            f"{option} {path}: there is no folder {str(path.parent)!r}; make it first"
        )


def _parse_fields(fields: tuple[str, ...]) -> dict[str, str] | None:
    """Return the names of columns, from ``question=Frage``.

    Raises:
        CommandError: If one is not of the form.
    """
    pairs = [field.partition("=") for field in fields]
    for field, (name, _, column) in zip(fields, pairs, strict=True):
        if not name or not column:
            raise _usage_error(f"--field {field!r} is not of the form question=COLUMN")
    return {name: column for name, _, column in pairs} or None


def _write_text(path: Path, text: str) -> None:
    """Write a text to a file, to standard output for a dash."""
    if path == Path("-"):
        click.echo(text, nl=False)
    else:
        path.write_text(text, encoding="utf-8", newline="\n")


def _print_missing_gold(result: Evaluation) -> None:
    """List missing gold on stderr."""
    missing = result.missing_gold
    if len(missing) <= 1:
        return  # the notes name it
    for gold in missing[:_MAX_LISTED]:
        click.echo(f"nodekin: {printable(' '.join(str(gold).split()))}", err=True)
    if len(missing) > _MAX_LISTED:
        more = len(missing) - _MAX_LISTED
        click.echo(f"nodekin: and {more} more in no document; --json lists all", err=True)


def _exit_status(result: Evaluation) -> ExitStatus:
    """Return the exit status of an evaluation: NO_RESULTS if a system has no figure."""
    for figures in result.figures.values():
        if not any(figure.judged for figure in figures.values()):
            return ExitStatus.NO_RESULTS
    failed = any(result.costs(setup)["failed"] for setup in result.records)
    return ExitStatus.PARTIAL_SUCCESS if failed else ExitStatus.SUCCESS


def _usage_error(message: str) -> CommandError:
    return CommandError(message, ExitStatus.USAGE_ERROR)
