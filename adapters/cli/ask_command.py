"""``nodekin ask``: let a model answer from what is found, once or in a conversation."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, TextIO

import click

from ...retrievers.answers.answer import Answer
from ...retrievers.answers.engine import QueryEngine
from ...retrievers.answers.quotes import check_quotes
from ...retrievers.strategies.strategy_registry import make_strategy, simple_strategies
from .exit_status import EXIT_STATUSES, CommandError, ExitStatus, as_command_error, printable
from .models import chat_model
from .options import as_text, base_url_option, common_options, is_debugging, search_options
from .output import (
    FORMAT,
    LineNumbers,
    columns,
    cut,
    echo,
    hangs_over,
    mark,
    place,
    result_record,
    snippet,
    terminal_columns,
    to_json,
    unbroken,
)
from .search_command import SearchSession, open_search


class AnswerOutput:
    """Write pieces of text to standard output as they come.

    On a terminal lines are broken at spaces, and anywhere in Chinese, and until the first piece
    comes the last line says what is awaited. Elsewhere the pieces are written as they are.

    Args:
        waiting_for: What is awaited.

    Example:
        >>> with AnswerOutput("the model") as output:
        ...     output.write("Green tea ")
        ...     output.write("is steamed.")
        Green tea is steamed.
    """

    def __init__(self, waiting_for: str) -> None:
        self._wraps = self.is_terminal(sys.stdout)
        self._notice = f"waiting for {waiting_for} ..." if self.is_terminal(sys.stderr) else ""
        self._width = terminal_columns()
        self._used = 0
        self._begun = ""  # a word of which more may come
        self.is_empty = True

    def is_terminal(self, stream: TextIO) -> bool:
        """Return whether a person reads a stream as it comes."""
        return stream.isatty()

    def __enter__(self) -> AnswerOutput:
        if self._notice:
            click.echo(click.style(self._notice, dim=True), nl=False, err=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._clear_notice()
        self._write(self._begun)
        if not self.is_empty:
            click.echo()

    def write(self, piece: str) -> None:
        """Write a piece; the word it ends with may wait for the next one."""
        self._clear_notice()
        self.is_empty = self.is_empty and not piece
        text = printable(piece)
        if not self._wraps:
            click.echo(text, nl=False)
            return
        *full, self._begun = unbroken(self._begun + text) or [""]
        for token in full:
            self._write(token)

    def _write(self, token: str) -> None:
        size = columns(token)
        fits = self._used + size <= self._width or not self._used
        hangs = hangs_over(token) and self._used <= self._width
        if token == "\n":
            self._used, size = 0, 0
        elif not fits and not hangs:
            click.echo()
            token = token.lstrip(" ")
            self._used, size = 0, columns(token)
        click.echo(token, nl=False)
        self._used += size

    def _clear_notice(self) -> None:
        if self._notice:
            click.echo(f"\r{' ' * columns(self._notice)}\r", nl=False, err=True)
            self._notice = ""


NO_STRATEGY = "none"

MODES = ("stuff", "refine", "map_reduce", "map_rerank")


def _strategy_help() -> str:
    lines = [f"{entry.name}, to {entry.description}" for entry in simple_strategies().values()]
    return f"What the model does before the search: {'; '.join(lines)}."


JSON_FORMAT = """\b
With --json: {"format": 1, "command": "ask", "question", "searched", "answer",
  "found", "preset", "model", "sources": [{"number", "cited", "shown", ...}],
  "left_out": [{"document", "line", "reason"}], "notes": [...],
  "quotes": [{"text", "status", "quoted", "cited", "source", "spans", ...}]}
where a source has what a result of "nodekin search --json" has, and "shown" is
what the model saw of it. The status of a quotation is exact, same_letters,
other_source (not in the cited one) or not_found. With --json-lines, and in a
conversation, a document a line: {"type": "piece", "text"} as it comes, then
{"type": "answer", ...}.

\b
The model: OPENAI_MODEL, OPENAI_BASE_URL and OPENAI_API_KEY, for any server that
speaks OpenAI's protocol. The key is only taken from there.
"""


min_score_option = click.option(
    "--min-score",
    type=float,
    metavar="SCORE",
    help="Leave out what scores less, from 0 to 1: where nothing is left, say that nothing was "
    "found, and ask no model. 0.5 is a good choice.",
)


@click.command(epilog=f"{JSON_FORMAT}\n{EXIT_STATUSES}")
@click.argument("words", nargs=-1, metavar="[QUESTION]")
@search_options
@click.option("-m", "--model", metavar="NAME", help="The model; OPENAI_MODEL by default.")
@base_url_option
@click.option(
    "--strategy",
    type=click.Choice((NO_STRATEGY, *simple_strategies())),
    default=NO_STRATEGY,
    show_default=True,
    help=_strategy_help(),
)
@click.option(
    "--mode",
    type=click.Choice(MODES),
    show_default="stuff",
    help="How passages become an answer: all in one prompt, one after the other improving it, "
    "each alone and then joined, or the best of one from each.",
)
@min_score_option
@click.option("--chat", is_flag=True, help="Go on asking; earlier questions are remembered.")
@click.option("--json-lines", is_flag=True, help="Print JSON while the answer comes, a line each.")
@common_options
def ask(
    words: tuple[str, ...],
    model: str | None,
    base_url: str | None,
    strategy: str,
    mode: Any,
    min_score: float | None,
    chat: bool,
    json_lines: bool,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> int:
    """Answer QUESTION from an index or a folder, with the sources ("-" reads standard input).

    \b
    nodekin ask Who brought tea to Japan
    nodekin ask 谁把茶带到日本？ --in docs --strategy multi_query
    nodekin ask --chat
    """
    question = " ".join(words) or None
    if question is None and not chat:
        raise CommandError("name a question, or ask several with --chat", ExitStatus.USAGE_ERROR)
    with open_search(quiet=quiet, **options) as search:
        engine = engine_of(search, model, base_url, strategy, mode, min_score)
        lines = json_lines or (as_json and chat)
        output_format = "lines" if lines else "json" if as_json else "text"
        name = getattr(engine.llm.model, "model", engine.llm.name)
        asker = _Session(engine, search, name, output_format, quiet)
        if not chat:
            return asker.ask(as_text(question or ""))
        status: int = ExitStatus.NO_RESULTS
        if sys.stdin.isatty() and output_format == "text" and not quiet:
            count = search.graph.groups["ROOT"].size
            documents = "1 document" if count == 1 else f"{count:,} documents"
            click.echo(f"Ask {name} about {documents}. /help shows what else can be typed.")
        for number, next_question in enumerate(_questions(question, asker)):
            if number and output_format == "text":
                click.echo()
            try:
                status = asker.ask(next_question)
            except Exception as error:
                command_error = as_command_error(error)
                if is_debugging(click.get_current_context()) or isinstance(error, BrokenPipeError):
                    raise
                click.echo(f"nodekin: {printable(command_error.message)}", err=True)
                status = command_error.exit_code
        return status


def engine_of(
    search: SearchSession,
    model: str | None,
    base_url: str | None,
    strategy: str,
    mode: Any,
    min_score: float | None,
) -> QueryEngine:
    """Return the query engine around the retriever of a search."""
    llm = chat_model(model, base_url)
    retriever: Any = search.retriever
    if strategy != NO_STRATEGY:
        retriever = make_strategy(strategy, retriever, llm)
    return QueryEngine(retriever, llm, mode=mode or "stuff", min_score=min_score)


@dataclass(slots=True)
class _Session:
    """Ask the engine, show what it says, remember it for the next question."""

    engine: Any
    search: SearchSession
    model: str
    output_format: str
    quiet: bool
    history: list[tuple[str, str]] = field(default_factory=list)

    def ask(self, question: str) -> int:
        """Return the status that the answer gives."""
        if not question:
            raise CommandError("the question is empty", ExitStatus.USAGE_ERROR)
        conditions = {"top_k": self.search.top_k, "filters": self.search.filters or None}
        streaming = self.engine.stream(question, history=self.history or None, **conditions)
        with streaming as stream:  # which ends the model's work where the reader goes away
            if self.output_format == "text":
                with AnswerOutput(self.model) as output:
                    for piece in stream:
                        output.write(piece)
                    if output.is_empty:
                        output.write(stream.answer.text)
            else:
                for piece in stream:
                    if self.output_format == "lines":
                        _print_json_line({"type": "piece", "text": piece})
        return self._show_answer(stream.answer)

    def _show_answer(self, unchecked: Answer) -> int:
        """Show the answer, and remember it. Return the status that it gives."""
        answer = check_quotes(unchecked)
        if self.output_format == "lines":
            _print_json_line({"type": "answer", **answer_record(answer, self.model)})
        elif self.output_format == "json":
            echo(to_json(answer_record(answer, self.model)))
        elif answer.sources:
            echo()
            for line in (*source_lines(answer), *quote_lines(answer)):
                echo(line)
        for remark in () if self.quiet or self.output_format != "text" else warnings_of(answer):
            click.echo(f"nodekin: {printable(' '.join(remark.split()))}", err=True)
        self.history.append((answer.question, answer.text))
        return ExitStatus.SUCCESS if answer.answered else ExitStatus.NO_RESULTS


def _print_json_line(record: dict[str, Any]) -> None:
    click.echo(to_json(record, indent=None))


_HELP = """\
/new      forget the conversation, and begin another one
/exit     end, as Ctrl-D does
/help     show this
All else is a question."""


def _questions(first: str | None, asker: _Session) -> Iterator[str]:
    """Yield the first question, and what is typed or piped in until its end or ``/exit``."""
    if first and first != "-":
        yield as_text(first)
    talking = sys.stdin.isatty()
    while True:
        try:
            line = input("> ") if talking else next(sys.stdin)
        except (EOFError, StopIteration):
            return
        question = as_text(line.strip()) if line.strip() != "-" else ""
        if question in ("/exit", "/quit"):
            return
        if question == "/help":
            click.echo(_HELP, err=True)
        elif question == "/new":
            asker.history.clear()
            click.echo("What was said before is forgotten.", err=True)
        elif re.fullmatch(r"/[a-z]+", question):
            click.echo(f"There is no {question}; /help shows what there is.", err=True)
        elif question:
            yield question


def answer_record(answer: Any, model: str) -> dict[str, Any]:
    """Return an answer with its sources, and what is to be known about it."""
    line_numbers = LineNumbers()
    return {
        "format": FORMAT,
        "command": "ask",
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
                **result_record(source.number, source.result, line_numbers),
            }
            for source in answer.sources
        ],
        "left_out": [
            {
                "document": omission.result.node.document_id or None,
                "line": line_numbers.line(omission.result.node),
                "reason": omission.reason,
            }
            for omission in answer.omitted
        ],
        "quotes": [quote.to_dict() for quote in answer.quotes],
        "notes": list(answer.notes),
    }


def source_lines(answer: Any) -> Iterator[str]:
    """Yield the numbered sources, those that the answer does not cite in a lower voice."""
    line_numbers = LineNumbers()
    any_cited = any(source.cited for source in answer.sources)
    for source in answer.sources:
        node = source.result.node
        query = answer.searched or answer.question
        where = place(node, line_numbers, query)
        number = f"[{source.number}]"
        aside = "" if source.cited or not any_cited else "  (not cited)"
        capacity = terminal_columns() - columns(f"{number} {where}  {aside}")
        text = snippet(str(node.content), query, max(24, capacity), mark) if capacity > 24 else ""
        plain_text = click.unstyle(text)
        if columns(plain_text) > capacity:
            text = cut(plain_text, capacity)
        styled = f"{click.style(number, bold=source.cited)} {click.style(where, fg='green')}"
        yield f"{styled}{'  ' + text if text else ''}{click.style(aside, dim=True)}"


_STATUS_COLORS = {"not_found": "red", "other_source": "yellow"}


def quote_lines(answer: Answer) -> Iterator[str]:
    """Yield the quotations of an answer: where each stands, or that it does not."""
    line_numbers = LineNumbers()
    for quote in answer.quotes:
        if quote.quoted:
            where = place(quote.spans[0], line_numbers) if quote.spans else ""
            status = click.style(
                quote.status.replace("_", " "), fg=_STATUS_COLORS.get(quote.status)
            )
            line = f"“{printable(' '.join(quote.text.split()))}”  {status}"
            yield f"{line}  {click.style(where, fg='green')}" if where else line


def warnings_of(answer: Any) -> Iterator[str]:
    """Yield what is to be known besides the answer."""
    yield from answer.notes
    for reason, number in Counter(omission.reason for omission in answer.omitted).items():
        results = "1 result" if number == 1 else f"{number} results"
        yield f"{results} not shown to the model ({reason.replace('_', ' ')})"
