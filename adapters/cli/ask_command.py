"""``nodekin ask``: let a model answer from what is found, once or in a conversation."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from .errors import FOUND, MEANINGS, NOTHING, USAGE, CommandError, as_command_error, safe
from .models import chat_model
from .options import as_text, common_options, is_debugging, search_options
from .output import FORMAT, Places, mark, place, result_record
from .search_command import Searching, Wanted, searching
from .snippet import columns, cut, snippet, terminal_columns

if TYPE_CHECKING:
    from ...retrievers.answers import QueryEngine

NO_STRATEGY = "none"

MODES = ("stuff", "refine", "map_reduce", "map_rerank")


def make_engine(retriever: Any, llm: Any, strategy: str, mode: Any) -> QueryEngine:
    """Return a query engine whose retriever first lets the model say what to search for."""
    from ...retrievers.answers import QueryEngine
    from ...retrievers.strategies import make_strategy

    if strategy != NO_STRATEGY:
        retriever = make_strategy(strategy, retriever, llm)
    return QueryEngine(retriever, llm, mode=mode)


class StrategyOption(click.Option):
    """Offer the strategies by name; they are only imported when the command is used."""

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the option and what each strategy does."""
        from ...retrievers.strategies import simple_strategies

        lines = [f"{each.name}, to {each.description}" for each in simple_strategies().values()]
        self.help = f"What the model does before the search: {'; '.join(lines)}."
        return super().get_help_record(ctx)


class StrategyChoice(click.Choice):  # type: ignore[type-arg]
    """Accept the name of a strategy that needs nothing but a model, or none."""

    def __init__(self) -> None:
        self.case_sensitive = True

    @property
    def choices(self) -> tuple[str, ...]:  # type: ignore[override]
        """The names."""
        from ...retrievers.strategies import simple_strategies

        return (NO_STRATEGY, *simple_strategies())


JSON_FORM = """\b
With --json: {"format": 1, "command": "ask", "question", "searched", "answer",
  "found", "preset", "model", "sources": [{"number", "cited", "shown", ...}],
  "left_out": [{"document", "line", "reason"}], "notes": [...]}
where a source has what a result of "nodekin search --json" has, and "shown" is
what the model saw of it. With --json-lines, and in a conversation, a document
a line: {"type": "piece", "text"} as it comes, then {"type": "answer", ...}.

\b
The model: OPENAI_MODEL, OPENAI_BASE_URL and OPENAI_API_KEY, for any server that
speaks OpenAI's protocol. The key is only taken from there.
"""


@click.command(short_help="Answer a question, with sources.", epilog=f"{JSON_FORM}\n{MEANINGS}")
@click.argument("question", required=False)
@search_options
@click.option("-m", "--model", metavar="NAME", help="The model; OPENAI_MODEL by default.")
@click.option("--base-url", metavar="URL", help="The model's server; OPENAI_BASE_URL by default.")
@click.option(
    "--strategy",
    cls=StrategyOption,
    type=StrategyChoice(),
    default=NO_STRATEGY,
    show_default=True,
)
@click.option(
    "--mode",
    type=click.Choice(MODES),
    default="stuff",
    show_default=True,
    help="How passages become an answer: all in one prompt, one after the other improving it, "
    "each alone and then joined, or the best of one from each.",
)
@click.option("--chat", is_flag=True, help="Go on asking; earlier questions are remembered.")
@click.option("--json-lines", is_flag=True, help="Print JSON while the answer comes, a line each.")
@common_options
def ask(
    question: str | None,
    model: str | None,
    base_url: str | None,
    strategy: str,
    mode: str,
    chat: bool,
    json_lines: bool,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> int:
    """Answer QUESTION from an index or a folder, with the sources ("-" reads standard input).

    \b
    nodekin ask "Who brought tea to Japan?"
    nodekin ask 谁把茶带到日本？ --in docs --strategy multi_query
    nodekin ask --chat
    """
    if question is None and not chat:
        raise CommandError("name a question, or ask several with --chat", USAGE)
    llm = chat_model(model, base_url)
    with searching(Wanted(**options), quiet=quiet) as search:
        engine = make_engine(search.retriever, llm, strategy, mode)
        form = "lines" if json_lines or (as_json and chat) else "json" if as_json else "text"
        asker = _Asker(engine, search, llm.model, form, quiet)
        if not chat:
            return asker.ask(as_text(question or ""))
        status = NOTHING
        for number, each in enumerate(_questions(question)):
            if number and form == "text":
                click.echo()
            try:
                status = asker.ask(each)
            except Exception as error:
                told = as_command_error(error)
                if is_debugging(click.get_current_context()) or isinstance(error, BrokenPipeError):
                    raise
                click.echo(f"nodekin: {safe(told.message)}", err=True)
                status = told.exit_code
        return status


@dataclass(slots=True)
class _Asker:
    """Ask the engine, show what it says, remember it for the next question."""

    engine: Any
    search: Searching
    model: str
    form: str
    quiet: bool
    history: list[tuple[str, str]] = field(default_factory=list)

    def ask(self, question: str) -> int:
        """Return the status that the answer gives."""
        if not question:
            raise CommandError("the question is empty", USAGE)
        asked = self.engine.stream(
            question,
            history=self.history or None,
            top_k=self.search.top_k,
            filters=self.search.filters or None,
        )
        with asked as stream:  # which ends the model's work where the reader goes away
            begun = self._show_pieces(stream)
        answer = stream.answer
        if not begun and self.form == "text":
            click.echo(safe(answer.text))
        self._show_answer(answer)
        self.history.append((question, answer.text))
        return FOUND if answer.found else NOTHING

    def _show_pieces(self, stream: Any) -> bool:
        begun = False
        try:
            for piece in stream:
                if self.form == "lines":
                    _write_line({"type": "piece", "text": piece})
                elif self.form == "text":
                    click.echo(safe(piece), nl=False)
                    sys.stdout.flush()
                begun = True
        finally:
            if begun and self.form == "text":
                click.echo()
        return begun

    def _show_answer(self, answer: Any) -> None:
        from .output import echo, to_json

        if self.form == "lines":
            _write_line({"type": "answer", **answer_record(answer, self.model)})
        elif self.form == "json":
            echo(to_json(answer_record(answer, self.model)))
        elif answer.sources:
            echo()
            for line in source_lines(answer):
                echo(line)
        for remark in () if self.quiet or self.form != "text" else remarks(answer):
            click.echo(f"nodekin: {safe(' '.join(remark.split()))}", err=True)


def _write_line(record: dict[str, Any]) -> None:
    from .output import to_json

    click.echo(to_json(record, indent=None))
    sys.stdout.flush()


def _questions(first: str | None) -> Iterator[str]:
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
        if question == "/exit":
            return
        if question:
            yield question


def answer_record(answer: Any, model: str) -> dict[str, Any]:
    """Return an answer with its sources, and what is to be known about it."""
    places = Places()
    sources = [
        {
            "number": source.number,
            "cited": source.cited,
            "shown": source.text,
            **result_record(source.number, source.result, places),
        }
        for source in answer.sources
    ]
    left_out = [
        {
            "document": each.result.node.document_id or None,
            "line": places.line(each.result.node),
            "reason": each.reason,
        }
        for each in answer.left_out
    ]
    return {
        **{"format": FORMAT, "command": "ask", "question": answer.question},
        **{"searched": answer.searched, "answer": answer.text, "found": answer.found},
        **{"preset": answer.preset is not None, "model": model, "sources": sources},
        **{"left_out": left_out, "notes": list(answer.notes)},
    }


def source_lines(answer: Any) -> Iterator[str]:
    """Yield the numbered sources, those that the answer does not cite in a lower voice."""
    places = Places()
    any_cited = any(source.cited for source in answer.sources)
    for source in answer.sources:
        node = source.result.node
        query = answer.searched or answer.question
        where = place(node, places, query)
        number = f"[{source.number}]"
        aside = "" if source.cited or not any_cited else "  (not cited)"
        room = terminal_columns() - columns(f"{number} {where}  {aside}")
        text = snippet(str(node.content), query, max(24, room), mark) if room > 24 else ""
        bare = click.unstyle(text)
        if columns(bare) > room:
            text = cut(bare, room)
        styled = f"{click.style(number, bold=source.cited)} {click.style(where, fg='green')}"
        yield f"{styled}{'  ' + text if text else ''}{click.style(aside, dim=True)}"


def remarks(answer: Any) -> Iterator[str]:
    """Yield what is to be known besides the answer."""
    yield from answer.notes
    reasons: dict[str, int] = {}
    for each in answer.left_out:
        reasons[each.reason] = reasons.get(each.reason, 0) + 1
    for reason, number in reasons.items():
        yield f"{number} result{'' if number == 1 else 's'} not shown to the model ({reason})"
