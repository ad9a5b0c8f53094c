"""The command ``nodekin ask``, which answers questions with a language model."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain
from typing import Any

import click
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from ...retrievers.answers.answer import Answer
from ...retrievers.answers.engine import QueryEngine
from ...retrievers.answers.quotes import check_quotes
from ...retrievers.answers.stream import AnswerStream
from ...retrievers.strategies.strategy_registry import STRATEGIES, make_strategy
from ..named_models import chat_model
from . import output
from .messages import CommandError, ExitStatus, as_command_error, message, printable, warn
from .options import common_options, model_options, search_options
from .search_command import as_text, open_search
from .workspace import describe_skipped_files


@click.command("ask")
@click.argument("words", nargs=-1, metavar="[QUESTION]")
@click.option("--chat", is_flag=True, help="Continue asking. Earlier questions are remembered.")
@model_options
@search_options
@click.option(
    "--strategy", type=click.Choice([*STRATEGIES]), help="What the model does before the search."
)
@common_options
def ask_command(words: tuple[str, ...], json: bool, quiet: bool, **options: Any) -> int:
    """Answer QUESTION from an index or a folder, with sources ("-" reads standard input).

    The key of the server is read from OPENAI_API_KEY only.

    \b
    nodekin ask "Who brought tea to Japan?"
    nodekin ask 谁把茶带到日本 --in docs --strategy multi_query
    nodekin ask --chat
    """
    first = as_text(" ".join(words))
    chat = options["chat"]
    strategy = options["strategy"]
    if not first and not chat:
        raise CommandError("ask needs a question, or --chat")
    if not options["model"]:
        raise CommandError(message("no model"), ExitStatus.MODEL_ERROR)
    with open_search(quiet=quiet, **options) as (retriever, filters):
        llm = chat_model(options["model"])
        inner = make_strategy(strategy, retriever, llm) if strategy else retriever
        engine = QueryEngine(inner, llm, min_score=options["min_score"])
        history: list[Any] = []
        status: int = ExitStatus.NO_RESULTS
        for question in _questions(first, chat=chat, quiet=quiet):
            try:
                search = {"top_k": options["top_k"], "filters": filters}
                stream = engine.stream(question, history=history, **search)
                answer = _print_answer(stream, str(llm.model), json, quiet)
                history.append((question, answer.text))
                skipped = describe_skipped_files(retriever.graph)
                if skipped and not (quiet or answer.answered):
                    warn(skipped)
                status = ExitStatus.SUCCESS if answer.answered else ExitStatus.NO_RESULTS
            except Exception as error:
                if not chat or isinstance(error, BrokenPipeError):
                    raise
                command_error = as_command_error(error)
                warn(command_error.message)
                status = command_error.exit_code
        return status


_HELP = ("/help", "/?", "/h")

_QUIT = ("/quit", "/exit", "/q", "quit", "exit", "退出")


def _questions(first: str, *, chat: bool, quiet: bool) -> Iterator[str]:
    """Yield the first question.

    In a conversation, further questions are read from standard input.
    """
    if chat and not quiet:
        warn(message("chat starts"))
    if first:
        yield first
    if not chat:
        return
    for line in _lines():
        command = line.lower()
        if command in _QUIT:
            return
        if command in _HELP:
            warn(message("chat help"))
        elif re.fullmatch(r"/\w+", command):
            warn(message("chat command", command=line))
        elif line:
            yield line


def _lines() -> Iterator[str]:
    """Yield the lines of standard input."""
    prompt = "> " if sys.stdin.isatty() else ""
    with suppress(EOFError):
        while True:
            yield as_text(input(prompt))


def _print_answer(streaming: AnswerStream, model: str, json: bool, quiet: bool) -> Answer:
    """Print an answer while it is being generated, and return it."""
    waiting = Console(stderr=True, quiet=quiet, markup=False).status(f"waiting for {model}")
    is_empty = True
    with waiting, streaming as stream:
        for piece in wrapped(stream, _width()):
            waiting.stop()
            is_empty = is_empty and not piece
            if not json:
                click.echo(printable(piece), nl=False)
                sys.stdout.flush()
    answer = check_quotes(stream.answer)
    if json:
        output.echo_json("ask", _record(answer, model))
        return answer
    click.echo(printable(answer.text) if is_empty else "")
    output.print_rows(_source_rows(answer))
    if not quiet:
        for note in answer.notes:
            warn(_in_options(note))
    return answer


def _width() -> int | None:
    """Return the width of the terminal in columns.

    Return None if the output is a file or a pipe, because its lines are not wrapped.
    """
    if not sys.stdout.isatty():
        return None
    return Console().width


def wrapped(pieces: Iterable[str], width: int | None) -> Iterator[str]:
    """Wrap a text that arrives in pieces, by replacing spaces with line breaks.

    Text without spaces, such as Chinese, is not wrapped, because the terminal does this.

    Args:
        pieces: The pieces of the text. A piece may end in the middle of a word.
        width: The maximum number of columns in a line. If None, the text is not wrapped.

    Example:
        >>> "".join(wrapped(["Green tea is ste", "amed. It keeps."], 12)).split("\\n")
        ['Green tea is', 'steamed. It', 'keeps.']
    """
    if width is None:
        yield from pieces
        return
    column = 0
    space = ""
    word = ""
    for char in chain.from_iterable(pieces):
        if char not in " \n":
            word += char
            continue
        text, column = _placed(space, word, column, width)
        yield text
        space = char
        word = ""
    yield _placed(space, word, column, width)[0]


def _placed(space: str, word: str, column: int, width: int) -> tuple[str, int]:
    """Return a word with a preceding space or line break, and the column at which the word ends."""
    length = cell_len(word)
    is_full = column + 1 + length > width
    if space == " " and word and is_full and length <= width:
        space = "\n"
    if space == "\n":
        column = 0
    column += len(space.strip("\n")) + length
    if column > width:
        column %= width
    return space + word, column


def _in_options(note: str) -> str:
    """Replace the names of Python arguments in a note with the names of command line options."""
    found = re.fullmatch(r"no result reaches min_score=(.+); the best score is (.+)", note)
    if found is None:
        return note
    return message("below min score", least=float(found[1]), best=float(found[2]))


def _record(answer: Answer, model: str) -> dict[str, Any]:
    """Convert an answer to JSON-compatible values."""
    return {
        "question": answer.question,
        "searched": answer.searched,
        "answer": answer.text,
        "found": answer.answered,
        "preset": answer.preset is not None,
        "model": model,
        "sources": [
            output.result_record(
                s.result, rank=s.number, number=s.number, cited=s.cited, shown=s.text
            )
            for s in answer.sources
        ],
        "left_out": [
            {"document": item.result.node.document_id, "reason": item.reason}
            for item in answer.omitted
        ],
        "quotes": [quote.to_dict() for quote in answer.quotes],
        "notes": list(answer.notes),
        "usage": answer.usage.to_dict(),
    }


def _source_rows(answer: Answer) -> Iterator[Text]:
    """Yield one row for each cited source, and a row with the number of the other sources.

    If no sources are cited, all sources are listed.
    """
    shown = answer.cited or answer.sources
    query = answer.searched or answer.question
    if shown:
        yield Text()
    for source in shown:
        place = output.place(source.result.best_match, query)
        yield Text.assemble((f"[{source.number}] ", "bold"), (place, "green"))
        yield from (Text("    ") + row for row in output.snippet(source.result, query))
    if others := len(answer.sources) - len(shown):
        yield Text(message("more sources", count=others))
