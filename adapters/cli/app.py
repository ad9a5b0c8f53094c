"""The command line as a whole: the commands, what errors look like, how output is written."""

from __future__ import annotations

import ast
import contextlib
import difflib
import gc
import importlib.util
import io
import os
import sys
from collections.abc import Sequence
from typing import Any

import click

from ...nodegraph.plugins import COMMANDS, load_plugin, plugins
from .exit_status import EXIT_STATUSES, CommandError, ExitStatus, as_command_error, printable
from .options import debug_option, is_debugging

_COMMANDS = {  # in the order in which one needs them
    "index": ("index_command", "Make an index of folders, or bring it up to date."),
    "search": ("search_command", "Find passages."),
    "ask": ("ask_command", "Answer a question, with sources."),
    "list": ("documents_command", "List the documents of an index."),
    "show": ("documents_command", "Show a document, or some lines of it."),
    "remove": ("documents_command", "Take documents or folders out of an index."),
    "status": ("state_command", "Show the size of an index, and check its file."),
    "groups": ("documents_command", "List what an index holds."),
    "explain": ("search_command", "Show how results were found."),
}
"""The module of each command, imported when the command is used, and its one-line help.

Other packages, and the parts of this one that can be left out, register theirs as entry points.
"""


class _PipeClosed(Exception):
    """The reader of the output went away, such as ``head``."""


class App(click.Group):
    """Run a command; whatever goes wrong is one line on stderr and an exit status."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        return [*_COMMANDS, *sorted(plugins(COMMANDS))]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        if cmd_name in _COMMANDS:
            module = importlib.import_module(f".{_COMMANDS[cmd_name][0]}", __package__)
            commands = vars(module).values()
            found = (c for c in commands if isinstance(c, click.Command) and c.name == cmd_name)
            return _with_variables(next(found))
        if cmd_name not in plugins(COMMANDS):
            return None
        command: click.Command = load_plugin(COMMANDS, cmd_name)
        return _with_variables(command)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that is named first; an unknown one is told with the nearest."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            near = difflib.get_close_matches(args[0], self.list_commands(ctx), n=1)
            if not near:
                raise
            message = f"{error.message} Did you mean '{near[0]}'?"
            raise click.UsageError(message, ctx) from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing them."""
        rows = [(name, text) for name, (_, text) in _COMMANDS.items()]
        for name, entry in sorted(plugins(COMMANDS).items()):
            rows.append((name, _first_line(entry.module)))
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, and turn what it raises into a message and an exit status."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError as error:
            raise _PipeClosed from error
        except (click.ClickException, click.Abort, click.exceptions.Exit):
            raise
        except Exception as error:
            if is_debugging(ctx):
                raise
            raise as_command_error(error) from error
        return result

    def main(  # type: ignore[override]
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> None:
        """Run with these arguments, or the process's, and exit."""
        _accept_any_text()
        extra["standalone_mode"] = False
        status: Any = 0
        try:
            if sys.stdout is None or sys.stdin is None:
                _open_streams()
            status = super().main(args, prog_name or self.name, **extra)
        except click.ClickException as error:
            _print_error(error)
            status = error.exit_code
        except (click.Abort, KeyboardInterrupt):
            click.echo("nodekin: interrupted", err=True)
            status = ExitStatus.INTERRUPTED
        except _PipeClosed:
            _discard_output()
            status = ExitStatus.PIPE_CLOSED
        sys.exit(status if isinstance(status, int) else 0)


@click.group(
    "nodekin",
    cls=App,
    epilog=EXIT_STATUSES,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="nodekin")
@debug_option
@click.pass_context
def app(ctx: click.Context) -> None:
    """Search small nodes, answer with their kin.

    \b
    nodekin index docs                make an index of a folder, or bring it up to date
    nodekin search green tea          find passages in it
    nodekin search --in docs tea      the same without an index
    nodekin ask Who drank tea         let a model answer from it

    An index lies in the folder .nodekin where the command is run. It is found from the folders
    below, inside the same repository or home directory. Every option has an environment variable:
    NODEKIN_ASK_MODEL is the --model of ask. Only "ask" needs a language model.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def _with_variables(command: click.Command) -> click.Command:
    """Return a command whose options have environment variables: NODEKIN_SEARCH_TOP_K."""
    for option in command.params:
        if isinstance(option, click.Option) and option.envvar is None and option.expose_value:
            flag = max(option.opts, key=len).lstrip("-")
            option.envvar = f"NODEKIN_{command.name}_{flag}".upper().replace("-", "_")
    return command


def _first_line(module: str) -> str:
    """Return the first line of a module's docstring, without importing the module."""
    spec = importlib.util.find_spec(module)
    source = getattr(spec and spec.loader, "get_source", lambda name: None)(module)
    return (ast.get_docstring(ast.parse(source or "")) or "").partition("\n")[0]


def run() -> None:
    """Run the command line of this process."""
    # Most objects live as long as the command; looking for garbage was a quarter of a refresh.
    gc.set_threshold(100_000)
    app()


def _open_streams() -> None:
    """Open what the shell has closed: an empty input. Output that nobody reads is an error.

    Raises:
        CommandError: If standard output is closed.
    """
    if sys.stdin is None:
        sys.stdin = io.StringIO()
    if sys.stdout is None:
        raise CommandError(
            "standard output is closed; send it to a file, or to /dev/null",
            ExitStatus.PIPE_CLOSED,
        )


def _accept_any_text() -> None:
    """Let every text be read and written: as a terminal has it, as UTF-8 elsewhere."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if not hasattr(stream, "reconfigure"):
            continue
        ascii_only = (stream.encoding or "").lower().replace("_", "-") in ("ascii", "us-ascii")
        keeps = stream.isatty() or "PYTHONIOENCODING" in os.environ
        encoding = None if keeps and not ascii_only else "utf-8"
        stream.reconfigure(encoding=encoding, errors="replace")


def _print_error(error: click.ClickException) -> None:
    """Write an error in one line, for a wrong command line with where to read on."""
    name, hint = "nodekin", ""
    if isinstance(error, click.UsageError) and error.ctx is not None:
        name = error.ctx.command_path
        hint = f" (see {name} --help)"
    message = error.message if isinstance(error, CommandError) else error.format_message()
    click.echo(f"{name}: {printable(' '.join(message.split()))}{hint}", err=True)


def _discard_output() -> None:
    """Send what is still to be flushed nowhere, so that Python does not complain at its end."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
