"""``nodekin ask``: answer a question with a language model, or a conversation."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from ...retrievers.answers.answer import Answer
from ...retrievers.answers.engine import AnswerStream, QueryEngine
from ...retrievers.answers.quotes import check_quotes
from ...retrievers.strategies.strategy_registry import STRATEGIES, make_strategy
from . import output
from .exit_status import CommandError, ExitStatus, as_command_error
from .messages import message, printable, warn
from .options import common_options, model_options, search_options
from .search_command import as_text, open_search
from .workspace import chat_model

if TYPE_CHECKING:
    from rich.text import Text


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
        llm = chat_model(model)
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
