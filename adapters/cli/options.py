"""The options that several commands have."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from pathlib import Path
from typing import Any, TypeVar

import click

from .exit_status import CommandError, ExitStatus
from .trust import Unread, find_upwards, require_folder, with_origin

CommandT = TypeVar("CommandT", bound=Callable[..., Any])

_DEBUGGING = "nodekin.debug"


def is_debugging(ctx: click.Context) -> bool:
    """Tell whether ``--debug`` was given, before or behind the command's name."""
    return bool(ctx.meta.get(_DEBUGGING))


def _set_debugging(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    if value:
        ctx.meta[_DEBUGGING] = True


debug_option = click.option(
    "--debug",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_set_debugging,
    help="Show the traceback of an error.",
)

store_option = click.option(
    "--store",
    type=click.Path(path_type=Path, file_okay=False),
    envvar="NODEKIN_STORE",
    metavar="FOLDER",
    help="Where the index is; .nodekin here or in the nearest folder above by default.",
)

embed_url_option = click.option(
    "--embed-base-url",
    envvar="NODEKIN_EMBED_BASE_URL",
    metavar="URL",
    callback=with_origin,
    help="The server of an OpenAI-compatible embedding model; OPENAI_BASE_URL by default.",
)


base_url_option = click.option(
    "--base-url",
    metavar="URL",
    callback=with_origin,
    help="The model's server; OPENAI_BASE_URL by default.",
)


def folders_option(help: str) -> Callable[[Any], Any]:
    """Return the option ``--in``, for folders that are read into memory."""
    path = click.Path(path_type=Path)
    return click.option("--in", "folders", multiple=True, type=path, metavar="PATH", help=help)


_SEARCHING = (
    click.option(
        "--setups",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Search by a set-up of this file, as 'nodekin eval' measures and 'nodekin tune' "
        "writes it; its [graph] says where, unless --in does.",
    ),
    click.option("--setup", metavar="NAME", help="Which of its set-ups; its default one without."),
    folders_option("Search this folder or file at once, in memory, without an index. Repeatable."),
    store_option,
    click.option(
        "-g",
        "--group",
        "groups",
        multiple=True,
        metavar="NAME",
        help="The group to search, as 'nodekin groups' lists them; several are one pool.",
    ),
    click.option(
        "-t",
        "--target",
        metavar="NAME",
        help="The group to answer with: what is found is lifted to it. ROOT is whole documents.",
    ),
    click.option(
        "-s",
        "--similarity",
        "similarities",
        multiple=True,
        metavar="NAME",
        help="bm25 (words), cosine (embeddings), exact (whole texts); several are fused. Both "
        "words and embeddings by default where the index has embeddings.",
    ),
    click.option(
        "-k",
        "--top-k",
        type=click.IntRange(min=1),
        help="How many results at most; 6 by default, or the set-up's own number.",
    ),
    click.option(
        "-f",
        "--filter",
        "filters",
        multiple=True,
        metavar="FIELD=VALUE",
        help="Only documents whose metadata fit: also !=, >=, <=, >, <, ~ (a part of the text). "
        "FIELD=VALUE again allows another value. 'FIELD OPERATOR VALUE' takes every operator of "
        "filters: 'tags any tea,ice'. The field document.id is the file.",
    ),
    click.option(
        "--embed",
        metavar="MODEL",
        callback=with_origin,
        help="With --in: the embedding model, as for 'nodekin index'.",
    ),
    embed_url_option,
    click.option(
        "--encoding",
        metavar="NAME",
        help="With --in: what files are that are not UTF-8, such as gb18030.",
    ),
)


_QUESTIONS = (
    click.option(
        "--data",
        required=True,
        type=click.Path(path_type=Path),
        metavar="PATH",
        help="The questions with what should be found for them: a file or a folder.",
    ),
    click.option(
        "--docs",
        multiple=True,
        type=click.Path(path_type=Path),
        metavar="PATH",
        help="Search this folder or file, in memory, in place of what the set-ups name. Without "
        "either, the documents that come with the questions, or else the index. Repeatable.",
    ),
    click.option(
        "--store",
        type=click.Path(path_type=Path, file_okay=False),
        metavar="FOLDER",
        help="Search the index in this folder, whose groups set-ups may name; where there are no "
        "other documents .nodekin here or in the nearest folder above.",
    ),
    click.option(
        "--field",
        "fields",
        multiple=True,
        metavar="NAME=COLUMN",
        help="What a column or field is called in the file: question=Frage. Repeatable.",
    ),
    click.option(
        "--match",
        type=click.Choice(("edit", "contains", "place")),
        default="edit",
        show_default=True,
        help="When a result is a gold passage: it resembles it by edit distance, one contains "
        "the other, or it overlaps the passage in its document, however that is split.",
    ),
    click.option(
        "--document-key",
        metavar="FIELD",
        help="The metadata field with the document's id, as gold documents have it.",
    ),
)


_COMMON = (
    click.option(
        "--json", "as_json", is_flag=True, help="Print one JSON document instead of text."
    ),
    click.option("-q", "--quiet", is_flag=True, help="No progress bars, no warnings; errors only."),
    debug_option,
)


def search_options(command: CommandT) -> CommandT:
    """Give a command the options that say where and how to search."""
    return reduce(lambda decorated, option: option(decorated), reversed(_SEARCHING), command)


def question_options(command: CommandT) -> CommandT:
    """Give a command the options that say what questions there are, and when a result is right."""
    return reduce(lambda decorated, option: option(decorated), reversed(_QUESTIONS), command)


def common_options(command: CommandT) -> CommandT:
    """Give a command what all have: ``--json``, ``--quiet``, ``--debug``."""
    return reduce(lambda decorated, option: option(decorated), reversed(_COMMON), command)


def as_text(query: str) -> str:
    """Return a query as text; one dash reads it from standard input."""
    if query == "-":
        query = sys.stdin.read()
    return query.encode("utf-8", "surrogateescape").decode("utf-8", "replace").strip()


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
        CommandError: If it can't be read, or, given the commands, has a table that is none of
            them, or a value that no option has.
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
        if names and not isinstance(value, Mapping) and name in names:
            raise CommandError(
                f"{path} has {name} = {value!r:.80}; write its options below a line [{name}]",
                ExitStatus.USAGE_ERROR,
            )
        for option, given in (value if isinstance(value, Mapping) else {name: value}).items():
            if names and not all(isinstance(item, str | int | float) for item in _listed(given)):
                raise CommandError(
                    f"{path} has {option} = {given!r:.80}, but an option is a text, a number, true "
                    "or false, or a list of them",
                    ExitStatus.USAGE_ERROR,
                )
    return tables


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


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
    values = _listed(value)
    needed = ""
    if len(values) != 1 and not option.multiple:
        needed = "has one value"
    elif option.is_flag and not isinstance(value, bool):
        needed = "is true or false"
    if needed:
        raise CommandError(
            f"{file} has {option.name} = {value!r:.80}, but it {needed}", ExitStatus.USAGE_ERROR
        )
    if isinstance(option.type, click.Path):
        paths = [file.parent / Path(str(item)).expanduser() for item in values]
        for path in paths:
            require_folder(file, file.parent, path)
        values = [str(path) for path in paths]
    return values if option.multiple else values[0]
