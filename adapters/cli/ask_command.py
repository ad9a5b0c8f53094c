"""``nodekin ask``: answer a question with a language model, or a conversation."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

import click

from ...retrievers.answers.answer import Answer
from ...retrievers.answers.engine import QueryEngine
from ...retrievers.answers.quotes import check_quotes
from ...retrievers.strategies.strategy_registry import STRATEGIES, make_strategy
from .exit_status import CommandError, ExitStatus, as_command_error, printable
from .messages import message
from .models import chat_model
from .options import (
    as_text,
    base_url_option,
    common_options,
    min_score_option,
    model_option,
    search_options,
)
from .output import best_sentence, console, echo_json, excerpt, line_of, place, result_record
from .search_command import SearchSession, open_search
from .workspace import warn


@click.command()
@click.argument("words", nargs=-1, metavar="[QUESTION]")
@click.option(
    "--chat",
    is_flag=True,
    help="Continue asking; earlier questions are remembered.",
)
@model_option
@search_options
@base_url_option
@click.option(
    "--strategy", type=click.Choice([*STRATEGIES]), help="What the model does before the search."
)
@min_score_option
@common_options
def ask(
    words: tuple[str, ...],
    chat: bool,
    model: str | None,
    base_url: str | None,
    strategy: str | None,
    min_score: float | None,
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
    with open_search(quiet=quiet, **options) as search:
        llm = chat_model(model, base_url)
        retriever: Any = search.retriever
        if strategy is not None:
            retriever = make_strategy(strategy, retriever, llm)
        engine = QueryEngine(retriever, llm, min_score=min_score)
        history: list[tuple[str, str]] = []
        status: int = ExitStatus.NO_RESULTS
        for question in _questions(" ".join(words), chat=chat):
            try:
                answer = _answer(engine, search, question, history, as_json, quiet)
                history.append((answer.question, answer.text))
                status = ExitStatus.SUCCESS if answer.answered else ExitStatus.NO_RESULTS
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
        question = as_text(first)
        if not question:
            raise CommandError(message("empty query"))
        yield question
    while chat:
        try:
            question = as_text(input("> " if sys.stdin.isatty() else ""))
        except EOFError:
            return
        if question:
            yield question


def _answer(
    engine: QueryEngine,
    search: SearchSession,
    question: str,
    history: list[tuple[str, str]],
    as_json: bool,
    quiet: bool,
) -> Answer:
    """Ask the engine, and print the answer while it arrives."""
    from rich.console import Console

    name = str(getattr(engine.llm.model, "model", engine.llm.name))
    waiting = Console(stderr=True, quiet=quiet, markup=False).status(f"waiting for {name}")
    streaming = engine.stream(
        question, history=history or None, top_k=search.top_k, filters=search.filters or None
    )
    is_empty = True
    with waiting, streaming as stream:  # ends the model's work if the reader ends
        for piece in stream:
            waiting.stop()
            if not as_json:
                click.echo(printable(piece), nl=False)
                sys.stdout.flush()
            is_empty = is_empty and not piece
    answer = check_quotes(stream.answer)
    if as_json:
        echo_json("ask", answer_record(answer, name))
        return answer
    click.echo(printable(answer.text) if is_empty else "")
    print_sources(answer)
    if not quiet:
        for note in answer.notes:
            warn(note)
        for reason, count in Counter(omission.reason for omission in answer.omitted).items():
            results = "1 result" if count == 1 else f"{count} results"
            warn(f"{results} not shown to the model ({reason.replace('_', ' ')})")
    return answer


def answer_record(answer: Answer, model: str) -> dict[str, Any]:
    """Return an answer as JSON values."""
    return {
        "question": answer.question,
        "searched": answer.searched,
        "answer": answer.text,
        "found": answer.answered,
        "preset": answer.preset is not None,
        "model": model,
        "sources": [
            {
                "number": source.number,
                "cited": source.cited,
                "shown": source.text,
                **result_record(source.number, source.result),
            }
            for source in answer.sources
        ],
        "left_out": [
            {
                "document": omission.result.node.document_id or None,
                "line": line_of(omission.result.node),
                "reason": omission.reason,
            }
            for omission in answer.omitted
        ],
        "quotes": [quote.to_dict() for quote in answer.quotes],
        "notes": list(answer.notes),
    }


def print_sources(answer: Answer) -> None:
    """Print the cited sources and quotations, and the number of the other sources.

    Without citations, all sources are printed.
    """
    from rich.text import Text

    out = console()
    width = min(out.width, 120) - 4
    shown = answer.cited or answer.sources
    query = answer.searched or answer.question
    if shown:
        out.print()
    for source in shown:
        match = source.result.best_match
        number = (f"[{source.number}] ", "bold")
        out.print(Text.assemble(number, (place(match, query), "green")), soft_wrap=True)
        text = printable(" ".join(match.text.split()))
        start, _ = best_sentence(text, query)
        for row in excerpt(text, start, len(text), query, width).wrap(out, width):
            out.print(Text("    ") + row, soft_wrap=True)
    if others := len(answer.sources) - len(shown):
        out.print(message("more sources", count=others))
    for quote in answer.quotes:
        if quote.quoted:
            line = Text(f"“{printable(' '.join(quote.text.split()))}”  ")
            line.append(quote.status.replace("_", " "), "bold")
            if quote.spans:
                line.append(f"  {place(quote.spans[0])}", "green")
            out.print(line, soft_wrap=True)
