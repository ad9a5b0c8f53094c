"""Open what a command works on: an index, or folders read into memory."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .embed_models import embedding_model
from .encodings import reading_also
from .exits import CORPUS, CommandError
from .hints import for_the_command_line
from .home import Home, Settings
from .safe import safe

if TYPE_CHECKING:
    from ...nodegraph import Failure, NodeGraph


@dataclass(frozen=True, slots=True)
class Opened:
    """Hold a graph with its groups declared, and how it was made."""

    graph: NodeGraph
    settings: Settings
    home: Home | None = None


@contextmanager
def opened(
    store: Path | None,
    folders: Sequence[Path],
    *,
    quiet: bool,
    embeds: bool = False,
    embed: str | None = None,
    embed_base_url: str | None = None,
    encoding: str | None = None,
) -> Iterator[Opened]:
    """Open the index, or the folders in memory where there are any, until the block ends.

    Args:
        store: Where the index is; None to look for it.
        folders: Read into memory in place of an index.
        quiet: Whether progress and warnings are kept back.
        embeds: Whether the embedding model is needed; loading it takes a while.
        embed: The embedding model for folders; an index has its own.
        embed_base_url: The server of an embedding model that is asked over HTTP.
        encoding: What text files in folders are that are not UTF-8.

    Raises:
        CommandError: If there is no index, or nothing to read in the folders.
    """
    for folder in folders:
        check_there(folder)
    from ...nodegraph import NodeGraph

    with warnings_told(quiet), reading_also(encoding or ""):
        home = None if folders else Home.find(store)
        settings = Settings(embed=embed or "") if home is None else home.load()
        model = None
        if embeds and settings.embed:
            model = embedding_model(settings.embed, embed_base_url)
        with NodeGraph(
            list(folders) or None,
            embed=model,
            store=None if home is None else home.graph_file,
            on_error="skip",
            progress=False if quiet else None,
        ) as graph:
            for rule in settings.groups:
                rule.declare(graph)
            if folders and not graph.groups["ROOT"].size:
                raise CommandError(_nothing_read(folders, graph.failures), CORPUS)
            tell_failures(graph.failures, quiet)
            yield Opened(graph, settings, home)


def check_there(path: Path) -> None:
    """Check that there is a file or folder.

    Raises:
        CommandError: If there is none.
    """
    if not path.expanduser().exists():
        raise CommandError(f"there is no file or folder {str(path)!r}", CORPUS)


def _nothing_read(folders: Sequence[Path], failures: Sequence[Failure]) -> str:
    named = ", ".join(map(str, folders))
    if failures:
        return f"nothing in {named} could be read: {for_the_command_line(failures[0].error)}"
    from ...nodegraph.readers import known_suffixes

    return f"there is no file in {named} that can be read; known are {', '.join(known_suffixes())}"


def tell_failures(failures: Sequence[Failure], quiet: bool) -> None:
    """Say on stderr what was left out, a line for each."""
    for failure in () if quiet else failures:
        click.echo(f"nodekin: left out: {safe(for_the_command_line(failure.error))}", err=True)


class _ToStderr(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        """Write a warning as one line."""
        click.echo(f"nodekin: {safe(for_the_command_line(record.getMessage()))}", err=True)


@contextmanager
def warnings_told(quiet: bool) -> Iterator[None]:
    """Write what the package logs as warnings to stderr, until the block ends."""
    logger = logging.getLogger("nodekin")
    handler: logging.Handler = logging.NullHandler() if quiet else _ToStderr(logging.WARNING)
    propagated = logger.propagate
    logger.addHandler(handler)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagated
