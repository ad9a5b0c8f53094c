"""The command line application, with its help, error handling and text encodings."""

from __future__ import annotations

import difflib
import importlib
import io
import os
import sys
from collections.abc import Sequence
from typing import Any

import click

from ...nodegraph.lazy_names import COMMANDS, plugins
from .help_texts import HelpContext
from .interrupts import raise_on_interrupt
from .messages import (
    CommandError,
    ExitStatus,
    as_command_error,
    message,
    printable,
    translated,
    with_short_paths,
)

_MODULES = {  # the modules of the commands, which are not imported for --help
    "index": "index_command",
    "search": "search_command",
    "ask": "ask_command",
    **dict.fromkeys(("list", "show", "remove", "status"), "documents_command"),
}

_NAMES_OF_COMMANDS = {
    "ask": "answer qa",
    "ask --chat": "chat repl talk",
    "eval": "bench benchmark evaluate measure test",
    "index": "add build ingest init load refresh reindex sync update",
    "list": "docs documents files ls",
    "mcp": "agent agents",
    "remove": "del delete forget rm",
    "search": "find grep lookup query retrieve",
    "serve": "browse gui page server ui web",
    "show": "cat get open read view",
    "status": "check doctor info stat stats",
}
"""For each command, the names of similar commands in other programs."""

_OTHER_NAMES = {name: ours for ours, names in _NAMES_OF_COMMANDS.items() for name in names.split()}


class App(click.Group):
    """A group of commands in which each error is printed as one line and sets the exit status."""

    context_class = HelpContext

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return [*_MODULES, *sorted(plugins(COMMANDS))]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command:
        """Import a command. If the name is unknown, the error message suggests similar commands."""
        if module := _MODULES.get(cmd_name):
            loaded = importlib.import_module(f".{module}", __package__)
            command: click.Command = getattr(loaded, f"{cmd_name}_command")
        elif plugin := plugins(COMMANDS).get(cmd_name):
            command = plugin.load()
        else:
            allowed = _nearest_commands(cmd_name, self.list_commands(ctx))
            raise click.UsageError(f"the command must be {allowed}, got {cmd_name!r:.80}", ctx)
        command.context_class = HelpContext
        raise_on_interrupt()
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands of other packages.

        The help text already lists the built-in commands.
        """
        if names := sorted(plugins(COMMANDS).keys() - {"serve", "mcp", "eval"}):
            formatter.write_text(f"Commands of other packages: {', '.join(names)}.")

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command.

        If the reader of the output stops early, as head does, no error is raised.
        """
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return ExitStatus.PIPE_CLOSED
        return result

    def main(  # type: ignore[override]
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> None:
        """Run a command with the given arguments or the arguments of the process, and exit."""
        try:
            _open_streams()
            for stream in (sys.stdin, sys.stdout, sys.stderr):
                _accept_any_text(stream)
            status: Any = super().main(args, prog_name or self.name, standalone_mode=False, **extra)
        except (click.Abort, KeyboardInterrupt):
            click.echo(f"nodekin: {translated('interrupted')}", err=True)
            status = ExitStatus.INTERRUPTED
        except Exception as error:
            status = _print_error(error)
        sys.exit(status if isinstance(status, int) else 0)


def _nearest_commands(name: str, commands: Sequence[str]) -> str:
    """Return the commands that are similar to an unknown name, or all commands."""
    if meant := _OTHER_NAMES.get(name.lower()):
        return meant
    *first, last = difflib.get_close_matches(name, commands) or commands
    if not first:
        return last
    return f"{', '.join(first)} or {last}"


@click.group(
    "nodekin",
    cls=App,
    invoke_without_command=True,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
        "auto_envvar_prefix": "NODEKIN",
    },
)
@click.version_option(package_name="nodekin", allow_from_autoenv=False)
@click.pass_context
def app(ctx: click.Context) -> None:
    """Search small nodes, answer with their kin.

    \b
    Documents:
      index   Make an index of folders, or update it.
      search  Find passages, also in a folder without an index: --in.
      ask     Answer a question with a language model, with sources.
      list    List the documents of an index.
      show    Show a document, or some of its lines.
      remove  Remove documents or folders from an index.
      status  Show the size and the failures of an index.
    \b
    Servers:
      serve   Open the documents in a browser, to search and ask.
      mcp     Serve the documents to agents (Model Context Protocol).
    \b
    Quality:
      eval    Measure retrievers on questions, and compare them.

    An index is the folder .nodekin. It is found from the folders below, inside the same repository
    or home directory. Each option has an environment variable: NODEKIN_ASK_TOP_K is --top-k of ask.
    Only "ask" needs a language model. The exit status is 0, 1 (nothing found), 2 (wrong options),
    3 (index or files), 4 (models) or 5 (some files failed).
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def _open_streams() -> None:
    """Replace closed input and error streams with empty streams.

    Raises:
        CommandError: If standard output is closed.
    """
    if sys.stdin is None:
        sys.stdin = io.StringIO()
    if sys.stderr is None:
        sys.stderr = io.StringIO()
    if sys.stdout is None:
        raise CommandError(
            "standard output is closed; send it to a file, or to /dev/null",
            ExitStatus.PIPE_CLOSED,
        )


def _accept_any_text(stream: Any) -> None:
    """Configure a stream so that any text can be printed.

    A terminal keeps its encoding, and all other streams use UTF-8. Characters that cannot be
    encoded are replaced.
    """
    if hasattr(stream, "reconfigure"):
        keeps = stream.isatty() or "PYTHONIOENCODING" in os.environ
        stream.reconfigure(encoding=None if keeps else "utf-8", errors="replace")


def _print_error(error: Exception) -> int:
    """Print an error in one line, with a hint if options are wrong, and return the exit status."""
    shown = error if isinstance(error, click.ClickException) else as_command_error(error)
    name = "nodekin"
    hint = ""
    if isinstance(shown, click.UsageError) and shown.ctx is not None:
        name = shown.ctx.command_path
        hint = message("see help", command=name)
        texts = [arg for arg in sys.argv[2:] if arg.startswith("-") and " " in arg]
        similar = getattr(shown, "possibilities", None) or []
        if "--help" in similar:
            similar.remove("--help")  # the hint names this option
        if isinstance(shown, click.NoSuchOption) and texts:
            hint = message("dash", command=name, text=texts[0])
    text = translated(printable(" ".join(shown.format_message().split())).rstrip("."))
    text = with_short_paths(text)
    click.echo(f"{name}: {text}{hint}", err=True)
    return shown.exit_code
