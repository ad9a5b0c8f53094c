"""Options that several commands have."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

CommandT = TypeVar("CommandT", bound=Callable[..., Any])

store_option = click.option(
    "--store",
    type=click.Path(path_type=Path, file_okay=False),
    envvar="NODEKIN_STORE",
    metavar="FOLDER",
    help="The index. Default: .nodekin here or in a folder above.",
)

embed_url_option = click.option(
    "--embed-base-url",
    envvar="NODEKIN_EMBED_BASE_URL",
    metavar="URL",
    help="The server of the embedding model. Default: OPENAI_BASE_URL.",
)

model_option = click.option(
    "-m", "--model", metavar="NAME", help="The language model. Default: OPENAI_MODEL."
)

base_url_option = click.option(
    "--base-url", metavar="URL", help="The server of the language model. Default: OPENAI_BASE_URL."
)

min_score_option = click.option(
    "--min-score",
    type=float,
    metavar="SCORE",
    help="Ignore results below this score, from 0 to 1. If none remains, nothing was found, and no "
    "model is asked. 0.4 is a good choice.",
)

folders_option = click.option(
    "--in",
    "folders",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Read this folder or file into memory, without an index. Repeatable.",
)

_TOP_K = click.option(
    *("-k", "--top-k"),
    type=click.IntRange(min=1),
    default=6,
    show_default=True,
    help="The number of results.",
)

_FILTER = click.option(
    *("-f", "--filter", "filters"),
    multiple=True,
    metavar="FIELD=VALUE",
    help="Only documents with this metadata, or a filter as JSON. FIELD=VALUE again allows another "
    "value.",
)

_EMBED = click.option("--embed", metavar="MODEL", help="With --in: the embedding model.")

_ENCODING = click.option(
    "--encoding", metavar="NAME", help="With --in: the encoding of non-UTF-8 files."
)

_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")

_QUIET = click.option("-q", "--quiet", is_flag=True, help="Print no progress and no warnings.")


def search_options(command: CommandT) -> CommandT:
    """Add the options of searches to a command."""
    command = _EMBED(embed_url_option(_ENCODING(command)))
    return _TOP_K(folders_option(_FILTER(store_option(command))))


def common_options(command: CommandT) -> CommandT:
    """Add ``--json`` and ``--quiet`` to a command."""
    return _JSON(_QUIET(command))


def as_text(query: str) -> str:
    """Return a query as text. A dash reads standard input."""
    if query == "-":
        query = sys.stdin.read()
    return query.encode("utf-8", "surrogateescape").decode("utf-8", "replace").strip()
