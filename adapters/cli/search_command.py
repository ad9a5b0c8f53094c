"""``nodekin search`` and ``ask``: find passages, and answer questions from them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from ...nodegraph.readers.folder_scan import scan_files
from ...retrievers.analysis.phrases import quoted_phrases
from ...retrievers.answers.answer import Answer
from ...retrievers.answers.engine import AnswerStream, QueryEngine
from ...retrievers.answers.quotes import check_quotes
from ...retrievers.composite.default_retriever import MISSING, DefaultRetriever
from ...retrievers.filters import Filters, all_of, metadata_key, parse_filters
from ...retrievers.group_failures import describe_failures, group_failures
from ...retrievers.strategies.strategy_registry import STRATEGIES, make_strategy
from ..source_refresh import visible_files
from . import output
from .exit_status import CommandError, ExitStatus, as_command_error
from .messages import message, printable, warn
from .options import common_options, model_options, search_options
from .workspace import chat_model, find_index, missing_vectors, model_of, open_graph

if TYPE_CHECKING:
    from rich.text import Text


@click.command("search")
@click.argument("query", nargs=-1, required=True)
@click.option("--explain", is_flag=True, help="Print how each result was found.")
@click.option("--exact", is_flag=True, help="Print only passages with the phrase.")
@search_options
@common_options
def search_command(
    query: tuple[str, ...], explain: bool, exact: bool, as_json: bool, quiet: bool, **options: Any
) -> int:
    """Find passages for QUERY ("-" reads standard input).

    \b
    nodekin search green tea
    nodekin search 绿茶 --in docs -k 3
    nodekin search tea --filter author=Lu --explain
    nodekin search --exact green tea

    Phrases in quotation marks rank first; with --exact, other passages are left out, and a QUERY
    without quotation marks is one phrase.
    """
    text = _as_text(" ".join(query))
    with open_search(quiet=quiet, exact=exact, **options) as (retriever, filters):
        phrase = f'"{text}"' if exact and not quoted_phrases(text) else text
        results = retriever.retrieve(phrase, filters=filters)
        if as_json:
            records = [output.result_record(rank, result) for rank, result in enumerate(results, 1)]
            output.echo_json("search", {"query": text, "count": len(records), "results": records})
        else:
            output.print_rows(output.result_rows(results, text, explain=explain))
        if failures := group_failures(retriever.graph):
            warn(describe_failures(failures))
        if not results and not quiet:
            count = retriever.graph.groups["ROOT"].size
            name = "nothing found" if text else "empty query"
            warn(message(name, query=text, count=count))
        return ExitStatus.SUCCESS if results else ExitStatus.NO_RESULTS


def _as_text(query: str) -> str:
    """Return a query as text. A dash reads standard input."""
    if query == "-":
        query = sys.stdin.read()
    return query.encode("utf-8", "surrogateescape").decode("utf-8", "replace").strip()


@contextmanager
def open_search(
    *, quiet: bool, exact: bool = False, **options: Any
) -> Iterator[tuple[DefaultRetriever, Filters]]:
    """Open an index, or folders in memory. Yield the default retriever and the filters.

    While more than 200 vectors are missing, only words are compared.

    Raises:
        CommandError: If the index is missing.
        ValueError: If a filter is invalid.
    """
    conditions = parse_conditions(options["filters"])
    folders, embed, top_k = options["folders"], options["embed"], options["top_k"]
    index = find_index(options["store"], folders, embed, options["encoding"])
    model = model_of(index, embed, options["embed_base_url"])
    with open_graph(index, folders, quiet=quiet, model=model) as graph:
        if index.folder and not quiet and (newer := newer_files(graph.sources, index.updated)):
            warn(message("stale", count=newer))
        embed_keys = None
        missing = missing_vectors(graph) if index.is_embedding else 0
        if missing > MISSING:
            embed_keys = list[str]()
            warn(message("words only", count=missing))
        phrases: Literal["first", "required"] = "required" if exact else "first"
        retriever = DefaultRetriever(graph, top_k=top_k, embed_keys=embed_keys, phrases=phrases)
        yield retriever, conditions


def newer_files(sources: Iterable[Path], updated: float) -> int:
    """Return the number of files that were changed, added or moved after the last update."""
    files = visible_files(sources)
    newer = {Path(path) for path, stat in files if max(stat.st_mtime, stat.st_ctime) > updated}
    if not newer:  # usually; the scan takes longer
        return 0
    scans = (scan_files(source).files.values() for source in sources if source.exists())
    return len(newer.intersection(chain.from_iterable(scans)))


def parse_conditions(conditions: Iterable[str]) -> Filters:
    """Parse filters: FIELD=VALUE, or a filter as JSON.

    All must hold, but the same field again allows another value. A value that looks like a number
    or a truth value matches that value and the text.

    Raises:
        ValueError: If a condition is invalid.

    Example:
        >>> parse_conditions(["author=Lu Yu", "author=Li Bai"])
        {'author': ['Lu Yu', 'Li Bai']}
        >>> parse_conditions(['{"year": {"gte": 1990}}'])
        {'year': {'gte': 1990}}
    """
    equal: dict[str, list[Any]] = {}
    others: list[Mapping[str, Any]] = []
    for condition in map(str.strip, conditions):
        if condition.startswith("{"):
            others.append(json.loads(condition))
            continue
        field, _, text = map(str.strip, condition.partition("="))
        if not field or not text:
            raise ValueError(f"a filter must be FIELD=VALUE, or JSON, got {condition!r:.80}")
        if not field.startswith(("document.id", "metadata.")):
            field = metadata_key(field)
        equal.setdefault(field, []).extend(_values(text))
    filters = all_of(*({field: values} for field, values in equal.items()), *others)
    parse_filters(filters)
    return filters or {}


def _values(text: str) -> list[Any]:
    """Return the possible values of a text, the most likely first."""
    try:
        value = json.loads(text.lower())
    except ValueError:
        return [text]
    return [value, text] if isinstance(value, int | float) else [text]


@click.command("ask")
@click.argument("words", nargs=-1, metavar="[QUESTION]")
@click.option("--chat", is_flag=True, help="Continue asking; earlier questions are remembered.")
@model_options
@search_options
@click.option(
    "--strategy", type=click.Choice([*STRATEGIES]), help="What the model does before the search."
)
@common_options
def ask_command(
    words: tuple[str, ...],
    chat: bool,
    model: str | None,
    base_url: str | None,
    min_score: float | None,
    strategy: str | None,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> int:
    """Answer QUESTION from an index or a folder, with sources ("-" reads standard input).

    The key of the server is read from OPENAI_API_KEY only.

    \b
    nodekin ask "Who brought tea to Japan?"
    nodekin ask 谁把茶带到日本 --in docs --strategy multi_query
    nodekin ask --chat
    """
    if not words and not chat:
        raise CommandError("ask needs a question, or --chat")
    with open_search(quiet=quiet, **options) as (retriever, filters):
        llm = chat_model(model, base_url)
        inner = make_strategy(strategy, retriever, llm) if strategy else retriever
        conversation = QueryEngine(inner, llm, min_score=min_score).conversation()
        status: int = ExitStatus.NO_RESULTS
        for question in _questions(" ".join(words), chat=chat):
            try:
                answers = conversation.stream(question, top_k=options["top_k"], filters=filters)
                is_answered = _print_answer(answers, str(llm.model), as_json, quiet)
                status = ExitStatus.SUCCESS if is_answered else ExitStatus.NO_RESULTS
            except Exception as error:
                if not chat or isinstance(error, BrokenPipeError):
                    raise
                command_error = as_command_error(error)
                warn(command_error.message)
                status = command_error.exit_code
        return status


def _questions(first: str, *, chat: bool) -> Iterator[str]:
    """Yield the first question, and with ``--chat`` all lines of standard input."""
    if first and (first != "-" or not chat):
        question = _as_text(first)
        if not question:
            raise CommandError(message("empty query"))
        yield question
    while chat:
        try:
            question = _as_text(input("> " if sys.stdin.isatty() else ""))
        except EOFError:
            return
        if question:
            yield question


def _print_answer(streaming: AnswerStream, model: str, as_json: bool, quiet: bool) -> bool:
    """Print an answer while it arrives. Return whether the question is answered."""
    from rich.console import Console

    waiting = Console(stderr=True, quiet=quiet, markup=False).status(f"waiting for {model}")
    is_empty = True
    with waiting, streaming as stream:
        for piece in stream:
            waiting.stop()
            is_empty = is_empty and not piece
            if not as_json:
                click.echo(printable(piece), nl=False)
                sys.stdout.flush()
    answer = check_quotes(stream.answer)
    if as_json:
        output.echo_json("ask", _record(answer, model))
        return answer.answered
    click.echo(printable(answer.text) if is_empty else "")
    output.print_rows(_source_rows(answer))
    for note in () if quiet else answer.notes:
        warn(note)
    return answer.answered


def _record(answer: Answer, model: str) -> dict[str, Any]:
    """Return an answer as JSON values."""
    sources = [
        {
            "number": source.number,
            "cited": source.cited,
            "shown": source.text,
            **output.result_record(source.number, source.result),
        }
        for source in answer.sources
    ]
    omitted = [(omission.result.node, omission.reason) for omission in answer.omitted]
    return {
        "question": answer.question,
        "searched": answer.searched,
        "answer": answer.text,
        "found": answer.answered,
        "preset": answer.preset is not None,
        "model": model,
        "sources": sources,
        "left_out": [
            {"document": node.document_id or None, "line": output.line_of(node), "reason": reason}
            for node, reason in omitted
        ],
        "quotes": [quote.to_dict() for quote in answer.quotes],
        "notes": list(answer.notes),
    }


def _source_rows(answer: Answer) -> Iterator[Text]:
    """Yield rows of the cited sources (else all sources), of the number of others, of quotes."""
    from rich.text import Text

    shown = answer.cited or answer.sources
    query, width = answer.searched or answer.question, min(output.console().width, 120) - 4
    if shown:
        yield Text()
    for source in shown:
        match = source.result.best_match
        number = (f"[{source.number}] ", "bold")
        yield Text.assemble(number, (output.place(match, query), "green"))
        text = printable(" ".join(match.text.split()))
        for row in output.excerpt(text, output.best_start(text, query), query, width):
            yield Text("    ") + row
    if others := len(answer.sources) - len(shown):
        yield Text(message("more sources", count=others))
    for quote in (quote for quote in answer.quotes if quote.quoted):
        text, status = printable(" ".join(quote.text.split())), quote.status.replace("_", " ")
        places = [(f"  {output.place(span)}", "green") for span in quote.spans[:1]]
        yield Text.assemble(f"“{text}”  ", (status, "bold"), *places)
