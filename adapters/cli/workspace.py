"""Where an index is kept, and how it was made."""

from __future__ import annotations

import codecs
import json
import logging
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .errors import INDEX_ERROR, CommandError, printable, shell_message
from .group_rules import DEFAULT_RULES, GroupRule
from .models import embedding_model

if TYPE_CHECKING:
    from ...nodegraph import Failure, NodeGraph

FOLDER = ".nodekin"

_SETTINGS = "index.json"

_GRAPH = "graph.sqlite"

_VERSION = 1


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """Say how an index is made.

    Attributes:
        groups: Its groups, parents first; the first is what is searched unless told otherwise.
        embed: The embedding model, as ``--embed`` names it; empty where there is none.
        encoding: What text files are that are not UTF-8; empty for none.
        sources: The folders and files that were indexed.
    """

    groups: tuple[GroupRule, ...] = DEFAULT_RULES
    embed: str = ""
    encoding: str = ""
    sources: tuple[Path, ...] = ()

    @property
    def main_group(self) -> str:
        """The group that is searched unless told otherwise."""
        return self.groups[0].name

    def to_json(self) -> str:
        """Return the settings as they are kept."""
        record = {
            "version": _VERSION,
            "groups": [rule.to_dict() for rule in self.groups],
            "embed": self.embed,
            "encoding": self.encoding,
            "sources": [str(source) for source in self.sources],
        }
        return json.dumps(record, ensure_ascii=False, indent=2) + "\n"

    @classmethod
    def from_json(cls, text: str) -> IndexSettings:
        """Return the settings that were kept.

        Raises:
            ValueError: If they are damaged, or of a newer nodekin.
        """
        try:
            record: Any = json.loads(text)
            version = int(record["version"])
            groups = tuple(GroupRule(**item) for item in record["groups"])
            embed, encoding = str(record["embed"]), str(record.get("encoding", ""))
            sources = tuple(Path(item) for item in record["sources"])
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"it is damaged ({type(error).__name__}: {error})") from error
        if version > _VERSION or not groups:
            raise ValueError("it was written by a newer nodekin")
        return cls(groups, embed, encoding, sources)


@dataclass(frozen=True, slots=True)
class Workspace:
    """Stand for the folder of an index: its settings, and the file of its graph."""

    folder: Path

    @classmethod
    def find(cls, store: Path | None) -> Workspace:
        """Return the index that was named, or the nearest one from here upwards.

        Raises:
            CommandError: If there is none.
        """
        if store is not None:
            home = cls(store)
            if not home.exists:
                raise CommandError(
                    f"there is no index in {store}; make one with: nodekin index FOLDER --store "
                    f"{store}",
                    INDEX_ERROR,
                )
            return home
        start = Path.cwd()
        for folder in (start, *start.parents):
            home = cls(folder / FOLDER)
            if home.exists:
                return home
        raise CommandError(
            f"there is no index ({FOLDER}) in {start} or above; make one with: nodekin index "
            "FOLDER, or search a folder at once with: --in FOLDER",
            INDEX_ERROR,
        )

    @property
    def exists(self) -> bool:
        """Whether there is an index."""
        return (self.folder / _SETTINGS).is_file()

    @property
    def graph_file(self) -> Path:
        """The file that the graph is kept in."""
        return self.folder / _GRAPH

    def load(self) -> IndexSettings:
        """Return the settings.

        Raises:
            CommandError: If they can't be read.
        """
        file = self.folder / _SETTINGS
        try:
            return IndexSettings.from_json(file.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise CommandError(
                f"can't use {file}: {error}; make the index anew with: nodekin index FOLDER "
                "--rebuild",
                INDEX_ERROR,
            ) from error

    def save(self, settings: IndexSettings) -> None:
        """Keep the settings, whole or not at all."""
        self.folder.mkdir(parents=True, exist_ok=True)
        new = self.folder / f"{_SETTINGS}.{os.getpid()}.new"
        new.write_text(settings.to_json(), encoding="utf-8")
        new.replace(self.folder / _SETTINGS)

    def clear(self) -> None:
        """Remove what belongs to the index, and nothing else that may be in the folder."""
        for path in (self.folder / _SETTINGS, *self.folder.glob(f"{_GRAPH}*")):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)


_NOT_TEXT = frozenset({".jsonl", ".ndjson"})  # JSON is UTF-8 by its definition


def check_encoding(name: str) -> str:
    """Return the name of an encoding.

    Raises:
        ValueError: If there is none of that name.
    """
    try:
        codecs.lookup(name)
    except LookupError as error:
        raise ValueError(
            f"no encoding {name!r}; for Chinese there is gb18030 and big5, for others such as "
            "latin-1, cp1252, shift_jis, utf-16"
        ) from error
    return name


@contextmanager
def fallback_encoding(encoding: str) -> Iterator[None]:
    """Read files that are not UTF-8 by an encoding, until the block ends; empty for none.

    Raises:
        ValueError: If there is no such encoding.
    """
    if not encoding:
        yield
        return
    from ...nodegraph import register_reader
    from ...nodegraph.readers import read_text, supported_suffixes

    check_encoding(encoding)
    suffixes = [suffix for suffix in supported_suffixes() if suffix not in _NOT_TEXT]

    def read(path: Path) -> Any:
        data = path.read_bytes()
        try:
            data.decode("utf-8-sig")
        except UnicodeDecodeError:
            return data.decode(encoding).replace("\r\n", "\n").replace("\r", "\n")
        return read_text(path)

    register_reader(*suffixes)(read)
    try:
        yield
    finally:
        register_reader(*suffixes)(read_text)


@dataclass(frozen=True, slots=True)
class Corpus:
    """Hold a graph with its groups declared, and how it was made."""

    graph: NodeGraph
    settings: IndexSettings
    home: Workspace | None = None


@contextmanager
def open_corpus(
    store: Path | None,
    folders: Sequence[Path],
    *,
    quiet: bool,
    embeds: bool = False,
    embed: str | None = None,
    embed_base_url: str | None = None,
    encoding: str | None = None,
) -> Iterator[Corpus]:
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
        check_exists(folder)
    from ...nodegraph import NodeGraph

    with warnings_to_stderr(quiet), fallback_encoding(encoding or ""):
        home = None if folders else Workspace.find(store)
        settings = IndexSettings(embed=embed or "") if home is None else home.load()
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
                raise CommandError(_nothing_read(folders, graph.failures), INDEX_ERROR)
            print_failures(graph.failures, quiet)
            yield Corpus(graph, settings, home)


def check_exists(path: Path) -> None:
    """Check that there is a file or folder.

    Raises:
        CommandError: If there is none.
    """
    if not path.expanduser().exists():
        raise CommandError(f"there is no file or folder {str(path)!r}", INDEX_ERROR)


def _nothing_read(folders: Sequence[Path], failures: Sequence[Failure]) -> str:
    named = ", ".join(map(str, folders))
    if failures:
        return f"nothing in {named} could be read: {shell_message(failures[0].error)}"
    from ...nodegraph.readers import supported_suffixes

    return (
        f"there is no file in {named} that can be read; known are {', '.join(supported_suffixes())}"
    )


def print_failures(failures: Sequence[Failure], quiet: bool) -> None:
    """Say on stderr what was left out, a line for each."""
    for failure in () if quiet else failures:
        click.echo(f"nodekin: left out: {printable(shell_message(failure.error))}", err=True)


class _ToStderr(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        """Write a warning as one line."""
        click.echo(f"nodekin: {printable(shell_message(record.getMessage()))}", err=True)


@contextmanager
def warnings_to_stderr(quiet: bool) -> Iterator[None]:
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
