"""Measure retrievers on questions, and compare them."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.metadata import EntryPoint
from itertools import chain
from pathlib import Path
from typing import Any

import click

from ...nodegraph.document import Document
from ...nodegraph.graph import NodeGraph
from ...retrievers.evaluation.dataset import Dataset, load_dataset
from ...retrievers.evaluation.gate import Gate, compare_with_baseline
from ...retrievers.evaluation.metrics import Metric, get_metric
from ...retrievers.evaluation.report import Evaluation
from ...retrievers.evaluation.runner import default_metrics, evaluate
from ...retrievers.foreign.foreign_retriever import as_retriever
from ...retrievers.group_failures import graphs_of
from ..cli.messages import CommandError, ExitStatus, printable, translated
from ..cli.options import common_options, store_option
from ..cli.output import echo_json
from ..cli.workspace import find_index, model_of, open_graph, printed_warnings

_DEFAULT = "default"

_PATH = click.Path(path_type=Path)

_FILE = click.Path(path_type=Path, dir_okay=False)

_EXISTING = click.Path(path_type=Path, dir_okay=False, exists=True)


@click.command("eval")
@click.argument("retrievers", nargs=-1, metavar="[RETRIEVER]...")
@click.option("--data", required=True, type=_PATH, help="The file or folder of the questions.")
@click.option("--docs", multiple=True, type=_PATH, help="Documents, which are read into memory.")
@store_option
@click.option(
    "--field", multiple=True, metavar="NAME=COLUMN", help="The name of a column: question=Frage."
)
@click.option(
    "-m", "--metric", multiple=True, metavar="NAME@K", help="A metric, such as recall@5 or mrr@5."
)
@click.option("--baseline", type=_EXISTING, help="Compare with the values in this file.")
@click.option(
    "--max-loss", multiple=True, metavar="NAME@K=NUMBER", help="The allowed loss of a metric."
)
@click.option("--save-baseline", type=_FILE, help="Store the values, unless the gate failed.")
@click.option("--markdown", type=_FILE, help="Write the table as Markdown.")
@click.option("--figure", type=_FILE, help="Draw the figures to a file .png or .svg.")
@common_options
def eval_command(retrievers: tuple[str, ...], quiet: bool, json: bool, **options: Any) -> int:
    """Measure RETRIEVERs on questions with known answers, and compare each with the first.

    RETRIEVER is written as MODULE:NAME and imported from the current directory. It is a retriever
    of nodekin, LangChain or LlamaIndex, a function that returns a retriever, or a function that
    takes a question and returns texts. "default" is nodekin's default retriever. Questions are
    loaded from .jsonl or .csv files, or in the format of SQuAD or BEIR.

    A question has the fields "question", "answers", "id", "answerable", and its correct results:
    "passages" (texts), "document_ids" or "spans" (document_id, start, end). If columns have other
    names, use --field. A difference is reported only if at least five questions differ.

    \b
    nodekin eval my_module:make_retriever default --data questions.jsonl --docs docs
    nodekin eval --data q.jsonl --docs docs --baseline baseline.jsonl --max-loss recall@5=.02

    The exit status is 1 if a retriever could not be measured, or if the gate failed.
    """
    baseline = options["baseline"]
    limits = _limits(options["max_loss"])
    if limits and baseline is None:
        raise CommandError("--max-loss needs --baseline FILE, written by --save-baseline")
    dataset = _questions(options["data"], _pairs(options["field"], "--field", "question=COLUMN"))
    names = [*(options["metric"] or default_metrics(dataset)), *limits]
    metrics = [get_metric(name) for name in dict.fromkeys(names)]
    sources = _by_name(retrievers or (_DEFAULT,))
    with _documents(sources, dataset, options["docs"], options["store"], quiet) as graph:
        result = _measure(sources, graph, dataset, metrics, quiet=quiet)
    gate = None
    if baseline is not None:
        gate = compare_with_baseline(result, baseline, limits)
    _write(result, gate, json, options)
    return _exit_status(result, gate)


def _limits(max_losses: Sequence[str]) -> dict[str, float]:
    """Parse the maximum allowed losses into a dictionary keyed by the name of the metric."""
    losses = _pairs(max_losses, "--max-loss", "recall@5=.02")
    return {name: float(loss) for name, loss in losses.items()}


def _measure(
    sources: Mapping[str, str],
    graph: NodeGraph,
    dataset: Dataset,
    metrics: Sequence[Metric],
    *,
    quiet: bool,
) -> Evaluation:
    """Measure retrievers on the documents of a graph.

    Args:
        sources: A mapping from displayed names to the names of retrievers for ``load_retriever``.
        graph: The graph that contains the documents.
        dataset: The questions and their correct answers.
        metrics: The metrics.
        quiet: Whether to hide the progress.
    """
    opened = {name: load_retriever(source, graph) for name, source in sources.items()}
    return evaluate(
        opened,
        dataset,
        metrics,
        documents=_searched_documents(graph, opened.values()),
        progress=False if quiet else None,
    )


def _questions(path: Path, fields: Mapping[str, str]) -> Dataset:
    """Load questions from a file.

    If a field is missing, the error message names the option to set.
    """
    try:
        return load_dataset(path, fields)
    except ValueError as error:
        said = str(error).replace("rename it by fields=", "name it: --field question=COLUMN")
        raise CommandError(said) from error


def _by_name(sources: Sequence[str]) -> dict[str, str]:
    by_name = {source.rpartition(":")[2]: source for source in sources}
    if len(by_name) < len(sources):
        raise CommandError(f"the names of retrievers must be different, got {', '.join(sources)}")
    return by_name


def _searched_documents(graph: NodeGraph, retrievers: Iterable[object]) -> NodeGraph | None:
    """Return the graph, or the first graph of a retriever if the given graph is empty."""
    if graph.groups["ROOT"].size:
        return graph
    searched = chain.from_iterable(graphs_of(retriever) for retriever in retrievers)
    return next(searched, None)


def _write(result: Evaluation, gate: Gate | None, json: bool, options: Mapping[str, Any]) -> None:
    """Print the results, and write the files that the options specify."""
    shown = result if gate is None else gate.evaluation
    if json:
        values = result.as_dict()
        if gate is not None:
            values["gate"] = gate.as_dict()
        echo_json("eval", values)
    elif gate is None:
        lines = [translated(str(difference)) for difference in result.differences()]
        lines += [translated(note, "evaluation") for note in result.notes()]
        click.echo(printable("\n".join([_table(result), *lines])))
    else:
        sentences = gate.text(translate=partial(translated, kind="gate"))
        click.echo(printable(f"{_table(shown)}\n{sentences}"))
    if options["markdown"] is not None:
        options["markdown"].write_text((gate or result).to_markdown(), encoding="utf-8")
    if options["figure"] is not None:
        shown.save_figure(options["figure"])
    if options["save_baseline"] is None:
        return
    if result.id_problems:
        unknown = ", ".join(result.id_problems)
        sentence = translated(f"no baseline was saved: {unknown} is not judged")
        click.echo(printable(sentence), err=True)
    elif gate is None or gate.passed:
        result.save(options["save_baseline"])


def _table(result: Evaluation) -> str:
    """Return the table of values in the language of the locale."""
    return result.table(translate=partial(translated, kind="cell"))


def _exit_status(result: Evaluation, gate: Gate | None) -> ExitStatus:
    if result.id_problems:
        return ExitStatus.NO_RESULTS
    if gate is not None:
        if gate.passed:
            return ExitStatus.SUCCESS
        return ExitStatus.NO_RESULTS
    for figures in result.figures.values():
        if not any(figure.judged for figure in figures.values()):
            return ExitStatus.NO_RESULTS
    if any(result.costs(setup)["failed"] for setup in result.records):
        return ExitStatus.PARTIAL_SUCCESS
    return ExitStatus.SUCCESS


@contextmanager
def _documents(
    sources: Mapping[str, str],
    dataset: Dataset,
    docs: Sequence[Path],
    store: Path | None,
    quiet: bool,
) -> Iterator[NodeGraph]:
    """Open a graph that contains the documents to search.

    These are the documents of the given folders, of the dataset, or of an index. The index is
    opened only if the default retriever is measured or ``--store`` is given.
    """
    if docs or store or (_DEFAULT in sources.values() and not dataset.documents):
        index = find_index(store, docs)
        with open_graph(index, quiet=quiet, model=model_of(index)) as graph:
            yield graph
    else:
        with (
            printed_warnings(quiet=quiet),
            NodeGraph(progress=False if quiet else None) as graph,
        ):
            graph.add(dataset.documents)
            yield graph


def _pairs(texts: Sequence[str], option: str, form: str) -> dict[str, str]:
    """Parse texts of the form ``NAME=VALUE`` into names and values.

    Raises:
        CommandError: If a text does not have this form.
    """
    for text in texts:
        if "=" not in text:
            raise CommandError(f"{option} must have the form {form}, got {text!r}")
    return dict([text.split("=", 1) for text in texts])


def load_retriever(name: str, graph: NodeGraph) -> Any:
    """Import the retriever that ``module:name`` refers to, or return the graph for ``"default"``.

    The object may be a retriever of nodekin, LangChain or LlamaIndex, a function that takes a
    question and returns texts, or a factory. A factory is a class or function that has no required
    arguments except optionally ``documents``.

    Args:
        name: The module and the name of the object.
        graph: The graph that contains the documents to search.

    Raises:
        CommandError: If the object does not exist, is not a retriever, or raises an error.
    """
    if name == _DEFAULT:
        return graph
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        source = EntryPoint(name, name, "").load()
        required = None
        if inspect.isclass(source) or inspect.isroutine(source):
            required = _required_arguments(source)
        if required == []:
            source = source()
        elif required == ["documents"]:
            nodes = graph.nodes("ROOT")
            if not nodes:
                raise ValueError("there are no documents: name a folder with --docs")
            source = source([Document(n.text, n.metadata, id=n.id) for n in nodes])
        return as_retriever(source, name)
    except Exception as error:  # the user's code may raise any error
        raise CommandError(f"{name}: {type(error).__name__}: {error}") from error


def _required_arguments(factory: Callable[..., object]) -> list[str]:
    """Return the names of all arguments that have no default value."""
    parameters = inspect.signature(factory).parameters.values()
    positional = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    return [p.name for p in positional if p.default is p.empty]
