"""Command line options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

CommandT = TypeVar("CommandT", bound=Callable[..., Any])

_EXISTING = click.Path(exists=True, path_type=Path)

folders_argument = click.argument("folders", nargs=-1, type=_EXISTING, metavar="[FOLDER]...")

store_option = click.option(
    "--store",
    type=click.Path(path_type=Path, file_okay=False),
    envvar="NODEKIN_STORE",
    help="The index. By default, the nearest .nodekin is used.",
)


def _options(*options: Callable[[Any], Any]) -> Callable[[CommandT], CommandT]:
    """Return a decorator that adds several options to a command."""

    def add(command: CommandT) -> CommandT:
        for option in reversed(options):
            command = option(command)
        return command

    return add


search_options = _options(
    click.option(
        "-k",
        "--top-k",
        type=click.IntRange(1),
        default=6,
        help="The number of results. The default is 6.",
    ),
    click.option(
        "-f",
        "--filter",
        multiple=True,
        metavar="FIELD=VALUE",
        help=(
            "Search only documents with this value. Several values of a field are alternatives. "
            "A filter can also be JSON."
        ),
    ),
    click.option("--in", multiple=True, type=_EXISTING, help="Search a folder without an index."),
    store_option,
)

model_options = _options(
    click.option(
        "-m",
        "--model",
        envvar="OPENAI_MODEL",
        help="The language model. The default is OPENAI_MODEL.",
    ),
    click.option(
        "--min-score",
        type=click.FloatRange(0, 1),
        help="Ignore lower scores. 0.4 is a good choice.",
    ),
)

common_options = _options(
    click.option("--json", is_flag=True, help="Print JSON."),
    click.option("-q", "--quiet", is_flag=True, help="Print no progress and no warnings."),
)
