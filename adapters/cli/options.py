"""The options that several commands have."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any, TypeVar

import click

CommandT = TypeVar("CommandT", bound=Callable[..., Any])

TOP_K = 6

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
    help="The server of an OpenAI-compatible embedding model; OPENAI_BASE_URL by default.",
)


base_url_option = click.option(
    "--base-url",
    metavar="URL",
    help="The model's server; OPENAI_BASE_URL by default.",
)


def folders_option(help: str) -> Callable[[Any], Any]:
    """Return the option ``--in``, for folders that are read into memory."""
    path = click.Path(path_type=Path)
    return click.option("--in", "folders", multiple=True, type=path, metavar="PATH", help=help)


_SEARCHING = (
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
        default=TOP_K,
        show_default=True,
        help="How many results at most.",
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
        help="Read this folder or file into memory for the default retriever, and to find gold in. "
        "Otherwise the documents of the questions, or the index. Repeatable.",
    ),
    click.option(
        "--store",
        type=click.Path(path_type=Path, file_okay=False),
        metavar="FOLDER",
        help="Use the index in this folder in place of documents.",
    ),
    click.option(
        "--field",
        "fields",
        multiple=True,
        metavar="NAME=COLUMN",
        help="The name of a column or field in the file: question=Frage. Repeatable.",
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
