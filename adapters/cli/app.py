"""The group of commands: help, errors, and encodings."""

from __future__ import annotations

import difflib
import importlib
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Any

import click

from ...nodegraph.plugins import COMMANDS, load_plugin, plugins
from .exit_status import CommandError, ExitStatus, as_command_error, printable

_OWN = {  # the object of each command, so that --help imports no command
    "index": "index_command:index",
    "search": "search_command:search",
    "ask": "ask_command:ask",
    "list": "documents_command:list_documents",
    "show": "documents_command:show",
    "remove": "documents_command:remove",
    "status": "status_command:status",
}

_HELP = {
    "index": "Make an index of folders, or update it.",
    "search": "Find passages.",
    "ask": "Answer a question, with sources.",
    "list": "List the documents of an index.",
    "show": "Show a document, or some of its lines.",
    "remove": "Remove documents or folders from an index.",
    "status": "Show the size and the failures of an index.",
    "serve": "Open the documents in a browser, to search and ask.",
    "mcp": "Serve the documents to agents (Model Context Protocol).",
    "eval": "Measure retrievers on questions, and compare them.",
}

_SECTIONS = {"Documents": list(_OWN), "Servers": ["serve", "mcp"], "Quality": ["eval"]}


class App(click.Group):
    """The group of commands. Each error is one line on stderr and an exit status."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        return [*_OWN, *sorted(plugins(COMMANDS))]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command. Its options get environment variables: NODEKIN_SEARCH_TOP_K."""
        if cmd_name in _OWN:
            module, _, name = _OWN[cmd_name].partition(":")
            command = getattr(importlib.import_module(f".{module}", __package__), name)
        elif cmd_name in plugins(COMMANDS):
            command = load_plugin(COMMANDS, cmd_name)
        else:
            return None
        for option in command.params:
            if isinstance(option, click.Option) and option.envvar is None and option.expose_value:
                flag = max(option.opts, key=len).lstrip("-")
                option.envvar = f"NODEKIN_{command.name}_{flag}".upper().replace("-", "_")
        return command  # type: ignore[no-any-return]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command. The error for an unknown name suggests the nearest name."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            near = difflib.get_close_matches(args[0], self.list_commands(ctx), n=1)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            raise click.UsageError(f"{error.message}{hint}", ctx) from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands in sections. The last section has commands of other packages."""
        names = self.list_commands(ctx)
        others = [name for name in names if name not in _HELP]
        for title, section in {**_SECTIONS, "Others": others}.items():
            found = [name for name in section if name in names]
            if found:
                with formatter.section(title):
                    formatter.write_dl([(name, self._help(ctx, name)) for name in found])

    def _help(self, ctx: click.Context, name: str) -> str:
        if name in _HELP:
            return _HELP[name]
        command = self.get_command(ctx, name)
        return command.get_short_help_str(80) if command else ""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command, and convert its errors."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:  # the reader of the output ended, such as head
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return ExitStatus.PIPE_CLOSED
        except (click.ClickException, click.Abort, click.exceptions.Exit):
            raise
        except Exception as error:
            raise as_command_error(error) from error
        return result

    def main(  # type: ignore[override]
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> None:
        """Run with these arguments, or with the arguments of the process, and exit."""
        for stream in (sys.stdin, sys.stdout, sys.stderr):
            _accept_any_text(stream)
        status: Any = 0
        try:
            extra["standalone_mode"] = False
            status = super().main(args, prog_name or self.name, **extra)
        except click.ClickException as error:
            _print_error(error)
            status = error.exit_code
        except (click.Abort, KeyboardInterrupt):
            click.echo("nodekin: interrupted", err=True)
            status = ExitStatus.INTERRUPTED
        except Exception:
            traceback.print_exc()
            click.echo("nodekin: this is a bug: report it with the lines above", err=True)
            status = ExitStatus.INTERNAL_ERROR
        sys.exit(status if isinstance(status, int) else 0)


@click.group(
    "nodekin",
    cls=App,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(package_name="nodekin")
@click.pass_context
def app(ctx: click.Context) -> None:
    """Search small nodes, answer with their kin.

    \b
    nodekin index docs                make an index of a folder, or update it
    nodekin search green tea          find passages
    nodekin search --in docs tea      find passages without an index
    nodekin ask "Who drank tea?"      answer with a language model

    An index is the folder .nodekin. It is found from the folders below, inside the same repository
    or home directory. Each option has an environment variable: NODEKIN_ASK_MODEL is --model of ask.
    Only "ask" needs a language model. The exit status is 0, 1 (nothing found), 2 (wrong options),
    3 (index or files), 4 (models) or 5 (some files failed).
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def _accept_any_text(stream: Any) -> None:
    """Use the encoding of a terminal, and UTF-8 elsewhere. Replace other characters."""
    if not hasattr(stream, "reconfigure"):
        return
    is_ascii = (stream.encoding or "").lower().replace("_", "-") in ("ascii", "us-ascii")
    keeps = stream.isatty() or "PYTHONIOENCODING" in os.environ
    stream.reconfigure(encoding=None if keeps and not is_ascii else "utf-8", errors="replace")


def _print_error(error: click.ClickException) -> None:
    """Print an error in one line, with a hint for wrong options."""
    name, hint = "nodekin", ""
    if isinstance(error, click.UsageError) and error.ctx is not None:
        name = error.ctx.command_path
        hint = f"see {name} --help"
        if isinstance(error, click.NoSuchOption):
            dashed = (arg for arg in sys.argv[2:] if arg.startswith("-") and " " in arg)
            text = next(dashed, "-...")
            hint += f'; a text that starts with a dash: {name} -- "{text}"'
        hint = f" ({hint})"
    text = error.message if isinstance(error, CommandError) else error.format_message()
    click.echo(f"{name}: {printable(' '.join(text.split()))}{hint}", err=True)
