"""Defaults of options in one file, ``nodekin.toml``, here or in the nearest folder above."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click

from .exit_status import CommandError, ExitStatus
from .trust import Unread, find_upwards, require_folder

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE = "nodekin.toml"


def find_settings() -> tuple[Path | None, list[Unread]]:
    """Return the nearest settings file that may be read, and those before it that may not."""
    return find_upwards(FILE)


def read_settings(path: Path, commands: Iterable[str] | None = None) -> dict[str, Any]:
    """Return what a file holds: options of all commands, and a table for each command's own.

    Raises:
        CommandError: If it can't be read, or has a table that is none of the commands, if given.
    """
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CommandError(f"can't read {path}: {error}", ExitStatus.USAGE_ERROR) from error
    names = list(commands or ())
    for name, value in tables.items():
        if names and isinstance(value, Mapping) and name not in names:
            raise _unknown(
                f"{path} has a table [{name}], which is no command; there is", name, names
            )
    return tables


def option_defaults(
    path: Path, settings: Mapping[str, Any], command: click.Command
) -> dict[str, Any]:
    """Return the defaults that a file has for a command, by the names of click.

    Options outside of all tables are for every command that has them. Names are those of the
    command line without the dashes in front, with "-" or "_" between words; relative paths begin
    at the file's folder.

    Raises:
        CommandError: If the command's own table has an option that the command has not, or a path
            is outside of the file's folder and the person has not allowed it.
    """
    options = {
        name[2:].replace("-", "_"): option
        for option in command.params
        if isinstance(option, click.Option) and option.expose_value
        for name in option.opts
        if name.startswith("--")
    }
    shared = {name: v for name, v in settings.items() if not isinstance(v, Mapping)}
    own: Mapping[str, Any] = settings.get(command.name or "", {})
    defaults: dict[str, Any] = {}
    for name, value in [*shared.items(), *own.items()]:
        option = options.get(name.replace("-", "_"))
        if option is not None and option.name is not None:
            defaults[option.name] = _value(option, value, path)
        elif name in own:
            says = f"{path}: 'nodekin {command.name}' has no option {name!r}; it has"
            raise _unknown(says, name.replace("-", "_"), options)
    return defaults


def _unknown(says: str, name: str, names: Iterable[str]) -> CommandError:
    from ...nodegraph.errors import nearest_names

    return CommandError(f"{says} {nearest_names(name, names, limit=20)}", ExitStatus.USAGE_ERROR)


def _value(option: click.Option, value: Any, file: Path) -> Any:
    values = value if isinstance(value, list) else [value]
    if isinstance(option.type, click.Path):
        paths = [file.parent / Path(str(one)).expanduser() for one in values]
        for path in paths:
            require_folder(file, file.parent, path)
        values = [str(path) for path in paths]
    return values if option.multiple else values[0] if len(values) == 1 else value
