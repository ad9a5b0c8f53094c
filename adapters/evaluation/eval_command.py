"""Measure retrievers on questions, and compare them."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import click

from ...nodegraph.document import Document
from ...nodegraph.graph import NodeGraph
from ...retrievers.evaluation.dataset import Dataset, load_dataset
from ...retrievers.evaluation.gate import compare_with_baseline
from ...retrievers.evaluation.metrics import get_metric
from ...retrievers.evaluation.runner import default_metrics, evaluate
from ...retrievers.foreign.foreign_retriever import as_retriever
from ...retrievers.group_failures import graphs_of
from ..cli.messages import CommandError, ExitStatus, printable
from ..cli.options import common_options, store_option
from ..cli.output import echo_json
from ..cli.workspace import find_index, model_of, open_graph, printed_warnings

_DEFAULT = "default"

_PATH = click.Path(path_type=Path)

_FILE = click.Path(path_type=Path, dir_okay=False)

_EXISTING = click.Path(path_type=Path, dir_okay=False, exists=True)


@click.command("eval")
@click.argument("retrievers", nargs=-1, metavar="[RETRIEVER]...")
@click.option("--data", required=True, type=_PATH, help="The questions.")
@click.option("--docs", multiple=True, type=_PATH, help="Documents, read into memory.")
@store_option
@click.option("--field", multiple=True, metavar="NAME=COLUMN", help="question=Frage.")
@click.option("-m", "--metric", multiple=True, metavar="NAME@K", help="recall@5, mrr@5.")
@click.option("--baseline", type=_EXISTING, help="Compare with the values in this file.")
@click.option("--max-loss", multiple=True, metavar="NAME@K=NUMBER", help="The allowed loss.")
@click.option("--save-baseline", type=_FILE, help="Store the values, unless the gate failed.")
@click.option("--markdown", type=_FILE, help="Write the table as Markdown.")
@click.option("--figure", type=_FILE, help="Draw the figures to a file .png or .svg.")
@common_options
def eval_command(retrievers: tuple[str, ...], quiet: bool, json: bool, **options: Any) -> int:
    """Measure RETRIEVERs on questions with gold, and compare each with the first.

    RETRIEVER is MODULE:NAME from the current directory: a retriever of nodekin, LangChain or
    LlamaIndex, a function that returns one, or a function from a question to texts. "default" is
    nodekin's default retriever. Questions are .jsonl, .csv, SQuAD or BEIR.

    \b
    nodekin eval my_module:make_retriever default --data questions.jsonl --docs docs
    nodekin eval --data q.jsonl --docs docs --baseline baseline.jsonl --max-loss recall@5=.02

    The exit status is 1 if a retriever has no figure, or the gate failed.
    """
    losses = _pairs(options["max_loss"], "--max-loss", "recall@5=.02")
    limits = {name: float(loss) for name, loss in losses.items()}
    baseline = options["baseline"]
    if limits and baseline is None:
        raise CommandError("--max-loss needs --baseline FILE, written by --save-baseline")
    dataset = load_dataset(options["data"], _pairs(options["field"], "--field", "question=COLUMN"))
    measured = (*(options["metric"] or default_metrics(dataset)), *limits)
    metrics = [get_metric(metric) for metric in dict.fromkeys(measured)]
    sources = retrievers or (_DEFAULT,)
    names = [source.rpartition(":")[2] for source in sources]
    if len(set(names)) < len(names):
        raise CommandError(f"the names of retrievers must be different, got {', '.join(sources)}")
    with _documents(sources, dataset, options["docs"], options["store"], quiet) as graph:
        opened = {
            name: graph if source == _DEFAULT else load_retriever(source, graph)
            for name, source in zip(names, sources, strict=True)
        }
        searched = [g for r in opened.values() for g in graphs_of(r)]
        result = evaluate(
            opened,
            dataset,
            metrics,
            documents=graph if graph.groups["ROOT"].size else next(iter(searched), None),
            progress=False if quiet else None,
        )
    gate = None if baseline is None else compare_with_baseline(result, baseline, limits)
    if json:
        echo_json("eval", {**result.as_dict(), **({"gate": gate.as_dict()} if gate else {})})
    else:
        click.echo(printable(f"{gate.evaluation.table()}\n{gate}" if gate else str(result)))
    if options["markdown"] is not None:
        options["markdown"].write_text((gate or result).to_markdown(), encoding="utf-8")
    if options["figure"] is not None:
        (gate.evaluation if gate else result).save_figure(options["figure"])
    if result.id_problems:
        if options["save_baseline"] is not None:
            unknown = ", ".join(result.id_problems)
            click.echo(printable(f"no baseline was saved: {unknown} is not judged"), err=True)
        return ExitStatus.NO_RESULTS
    if options["save_baseline"] is not None and (gate is None or gate.passed):
        result.save(options["save_baseline"])
    if gate is not None:
        return ExitStatus.SUCCESS if gate.passed else ExitStatus.NO_RESULTS
    if not all(any(f.judged for f in figures.values()) for figures in result.figures.values()):
        return ExitStatus.NO_RESULTS
    failed = any(result.costs(setup)["failed"] for setup in result.records)
    return ExitStatus.PARTIAL_SUCCESS if failed else ExitStatus.SUCCESS


@contextmanager
def _documents(
    sources: Sequence[str], dataset: Dataset, docs: Sequence[Path], store: Path | None, quiet: bool
) -> Iterator[NodeGraph]:
    """Open the graph of folders, of the questions' documents, or of an index.

    The index is opened only for the default retriever or ``--store``.
    """
    if docs or store or (_DEFAULT in sources and not dataset.documents):
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
    """Return the names and values of ``NAME=VALUE``.

    Raises:
        CommandError: If a text has another form.
    """
    pairs = [text.split("=", 1) for text in texts]
    if wrong := [text for text, pair in zip(texts, pairs, strict=True) if len(pair) < 2]:
        raise CommandError(f"{option} must have the form {form}, got {wrong[0]!r}")
    return dict(pairs)


def load_retriever(name: str, graph: NodeGraph) -> object:
    """Return the retriever that ``module:name`` names.

    The object is a retriever of nodekin, LangChain or LlamaIndex, a function from a question to
    texts, or a factory: a class or function without required arguments, or with the required
    argument ``documents``.

    Args:
        name: The name of the object.
        graph: The documents that are searched.

    Raises:
        CommandError: If the object is missing, is not a retriever, or raises.
    """
    if (folder := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, folder)
    try:
        source = EntryPoint(name, name, "").load()
        required = None  # of a factory: the names of its required arguments
        if inspect.isclass(source) or inspect.isroutine(source):
            parameters = inspect.signature(source).parameters.values()
            positional = (p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD))
            required = [p.name for p in positional if p.default is p.empty]
        if required == []:
            source = source()
        elif required == ["documents"]:
            if not (nodes := graph.nodes("ROOT")):
                raise ValueError("there are no documents: name a folder with --docs")
            source = source([Document(n.text, n.metadata, id=n.id) for n in nodes])
        return as_retriever(source, name)
    except Exception as error:  # any error of the user's code
        raise CommandError(f"{name}: {type(error).__name__}: {error}") from error
