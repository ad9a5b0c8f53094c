"""Find, open and describe an index."""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import click

from ...nodegraph.builder import Failure
from ...nodegraph.errors import UnsupportedFilesError
from ...nodegraph.graph import NodeGraph
from ...nodegraph.readers.formats import supported_suffixes
from ...nodegraph.readers.source_files import INDEX_FOLDER, ReadOptions, check_encoding
from ...nodegraph.splitters.passage_splitter import PassageSplitter
from ...nodegraph.splitters.sentences import split_sentences
from .exit_status import CommandError, ExitStatus, printable
from .messages import message
from .models import embedding_model

_SETTINGS, _GRAPH = "index.json", "graph.sqlite"

_VERSION = 1

MAX_MISSING_VECTORS = 200
"""With more missing vectors, searches compare words only instead of embedding first."""


@dataclass(frozen=True, slots=True)
class IndexSettings:
    """The settings of an index.

    Attributes:
        embed: The name of the embedding model. Empty: none.
        encoding: The encoding of files that are not UTF-8.
        sources: The indexed files and folders.
        ocr: Whether to read scans.
        updated: The time of the last update, in seconds since 1970.
        is_embedding: Whether the last update has not finished embedding.
    """

    embed: str = ""
    encoding: str = ""
    sources: tuple[Path, ...] = ()
    ocr: bool = False
    updated: float = 0.0
    is_embedding: bool = False


@dataclass(frozen=True, slots=True)
class Workspace:
    """The folder of an index: its settings, and the file of its graph."""

    folder: Path

    @classmethod
    def find(cls, store: Path | None) -> Workspace:
        """Return the named index, or the nearest one in this folder and above.

        Raises:
            CommandError: If the index is missing.
        """
        if store is None and (named := os.environ.get("NODEKIN_STORE")):
            store = Path(named)
        if store is not None and not cls(store).exists:
            raise CommandError(
                f"there is no index in {store}; make one: nodekin index FOLDER --store {store}",
                ExitStatus.INDEX_ERROR,
            )
        if store is not None:
            return cls(store)
        for folder in searched_folders():
            if cls(folder / INDEX_FOLDER).exists:
                check_owner(folder / INDEX_FOLDER)
                return cls(folder / INDEX_FOLDER)
        raise CommandError(message("no index", folder=Path.cwd()), ExitStatus.INDEX_ERROR)

    @property
    def graph_file(self) -> Path:
        """The file of the graph."""
        return self.folder / _GRAPH

    @property
    def exists(self) -> bool:
        """Whether the index exists."""
        return (self.folder / _SETTINGS).is_file()

    def check_sources(self, sources: Iterable[Path], named: Iterable[Path]) -> None:
        """Check that an index of another person does not read any file of the user.

        Args:
            sources: The sources of the index.
            named: The sources that the user has named in this command.

        Raises:
            CommandError: If a source is outside of the index's parent directory, and not named.
        """
        allowed = [self.folder.resolve().parent, *(path.resolve() for path in named)]
        for source in sources:
            if not any(source.resolve().is_relative_to(folder) for folder in allowed):
                raise CommandError(
                    f"{self.folder} lists {source}, which is outside of {allowed[0]}; name it to "
                    f"read it again: nodekin index {source}",
                    ExitStatus.INDEX_ERROR,
                )

    def check_model(self, model: str) -> None:
        """Check that an index of another person does not load code with a model.

        Raises:
            CommandError: If the model is a folder inside the index's parent directory.
        """
        kind, _, name = model.partition(":")
        folder = Path(name).expanduser()
        is_local = kind == "sentence-transformers" and folder.exists()
        if is_local and folder.resolve().is_relative_to(self.folder.resolve().parent):
            raise CommandError(
                f"{self.folder} names the model {name}, a folder beside the index, which may "
                f"bring programs that run here; if you trust it, name it: --embed {model}",
                ExitStatus.MODEL_ERROR,
            )

    def load(self) -> IndexSettings:
        """Return the settings.

        Raises:
            CommandError: If they can't be read.
        """
        file = self.folder / _SETTINGS
        try:
            record: Any = json.loads(file.read_text(encoding="utf-8"))
            if int(record["version"]) > _VERSION:
                raise ValueError("it is of a newer nodekin")
            if not isinstance(record["sources"], list):
                raise TypeError("sources must be a list")
            os.fsencode(json.dumps(record, ensure_ascii=False))  # rejects surrogates
            values = {f.name: record[f.name] for f in fields(IndexSettings) if f.name in record}
            return IndexSettings(**{**values, "sources": tuple(map(Path, record["sources"]))})
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CommandError(
                f"can't use {file} ({type(error).__name__}: {error}); make the index again: "
                "nodekin index FOLDER --rebuild",
                ExitStatus.INDEX_ERROR,
            ) from error

    def save(self, settings: IndexSettings) -> None:
        """Replace the settings."""
        record = {"version": _VERSION, **asdict(settings)}
        new = self.folder / f"{_SETTINGS}.{os.getpid()}.new"
        new.write_text(json.dumps(record, ensure_ascii=False, default=str), encoding="utf-8")
        new.replace(self.folder / _SETTINGS)

    def make(self) -> None:
        """Make the folder.

        Raises:
            CommandError: If that fails.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CommandError(
                f"can't make an index in {self.folder} ({error.strerror}); choose another folder "
                "with --store",
                ExitStatus.INDEX_ERROR,
            ) from error

    def clear(self) -> None:
        """Remove the files of the index, and no other files of the folder."""
        for path in (self.folder / _SETTINGS, *self.folder.glob(f"{_GRAPH}*")):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)


def searched_folders() -> list[Path]:
    """Return this folder, and its parents up to its repository or the home directory.

    Folders above may be of other persons.
    """
    folders = [Path.cwd(), *Path.cwd().parents]
    home = Path(os.path.expanduser("~")).resolve()
    for count, folder in enumerate(folders, 1):
        if folder == home or any((folder / name).exists() for name in (".git", ".hg")):
            return folders[:count]
    return folders[:1]


def check_owner(folder: Path) -> None:
    """Check that an index belongs to the user. Windows has no such check.

    Raises:
        CommandError: If it belongs to another user.
    """
    paths = [path for path in (folder, folder / _SETTINGS) if path.exists()]
    if hasattr(os, "getuid") and any(
        {path.lstat().st_uid, path.stat().st_uid} != {os.getuid()} for path in paths
    ):
        raise CommandError(
            f"{folder} belongs to another user; if you trust it: --store {folder}",
            ExitStatus.INDEX_ERROR,
        )


def find_index(
    store: Path | None,
    folders: Sequence[Path] = (),
    embed: str | None = None,
    encoding: str | None = None,
) -> tuple[Workspace | None, IndexSettings]:
    """Return the index, or None for folders, and the settings.

    Raises:
        CommandError: If the index or a folder is missing, or the index has another model.
        ValueError: If the encoding is unknown.
    """
    encoding = check_encoding(encoding) if encoding else ""
    if folders:
        check_exist(folders)
        return None, IndexSettings(embed or "", encoding)
    home = Workspace.find(store)
    settings = home.load()
    if embed and embed != settings.embed:
        raise CommandError(
            f"--embed {embed!r} needs --in; the index has its own embeddings "
            f"({settings.embed or 'none'}), changed by: nodekin index --embed {embed}"
        )
    return home, settings


def model_of(
    home: Workspace | None,
    settings: IndexSettings,
    embed: str | None = None,
    base_url: str | None = None,
) -> Any:
    """Return the embedding model of an index or of folders, or None.

    Args:
        home: The index. None: folders.
        settings: The settings with the name of the model.
        embed: The model that the user has named in this command.
        base_url: The server. Defaults to the environment's.

    Raises:
        CommandError: If the model is not available, or is a folder next to the index.
    """
    if not settings.embed:
        return None
    if home is not None and embed != settings.embed:
        home.check_model(settings.embed)
    return embedding_model(settings.embed, base_url)


@contextmanager
def open_graph(
    home: Workspace | None,
    settings: IndexSettings,
    folders: Sequence[Path] = (),
    *,
    quiet: bool,
    model: Any = None,
    strict: bool = False,
) -> Iterator[NodeGraph]:
    """Open the graph of an index, or of folders in memory.

    Raises:
        CommandError: If no file in the folders can be read.
    """
    ocr = None
    if settings.ocr:
        from ..files.ocr import tesseract

        ocr = tesseract()
    with (
        warnings_to_stderr(quiet),
        NodeGraph(
            list(folders) or None,
            embed=model,
            store=None if home is None else home.graph_file,
            on_error="skip",
            reading=ReadOptions(encoding=settings.encoding or None, strict=strict, ocr=ocr),
            progress=False if quiet else None,
        ) as graph,
    ):
        graph.create_node_group("passage", PassageSplitter)
        graph.create_node_group("sentence", split_sentences, "passage")
        if folders and not graph.groups["ROOT"].size:
            failures = failures_of(graph)
            reason = f": {failures[0].error}" if failures else ""
            raise CommandError(
                f"no file in {', '.join(map(str, folders))} can be read{reason}; supported are "
                f"{', '.join(supported_suffixes())}",
                ExitStatus.INDEX_ERROR,
            )
        if home is None and not quiet:
            print_failures(graph.failures)
        yield graph


def build_if_outdated(graph: NodeGraph, quiet: bool) -> None:
    """Build the groups of a search that an interrupted or earlier version did not build."""
    from ...retrievers.composite.default_retriever import DefaultRetriever

    default = DefaultRetriever(graph)
    missing = [name for name in default.groups if not graph.groups[name].built]
    if missing:
        if not quiet:
            groups = " and ".join(missing)
            warn(f"building {groups}: the index is of an earlier version, or was interrupted")
        graph.build(*missing, on_error="skip")
        default.build()


def check_exist(paths: Sequence[Path]) -> None:
    """Check that files and folders exist.

    Raises:
        CommandError: If one is missing.
    """
    for path in paths:
        if not path.expanduser().exists():
            raise CommandError(f"there is no file or folder {str(path)!r}", ExitStatus.INDEX_ERROR)


def missing_vectors(graph: NodeGraph) -> int:
    """Return the number of sentences without an embedding."""
    sentences = [node.searched_text for node in graph.nodes("sentence")]
    keys = graph.embeddings.embedders
    return max((graph.embeddings.count_missing(sentences, key) for key in keys), default=0)


def failures_of(graph: NodeGraph) -> list[Failure]:
    """Return the failures, without files that have no reader."""
    return [f for f in graph.failures if not isinstance(f.error, UnsupportedFilesError)]


def reason_of(failure: Failure) -> str:
    """Return the error of a failure in one line, without remedies in Python."""
    return " ".join(str(failure.error).split()).partition("; add one with register_reader")[0]


def print_failures(failures: Iterable[Failure]) -> None:
    """Print failures to stderr, without duplicates."""
    for reason, count in Counter(map(reason_of, failures)).items():
        warn(message("left out", reason=reason) + (f" ({count:,} files)" if count > 1 else ""))


def warn(text: object) -> None:
    """Print a line to stderr."""
    click.echo(f"nodekin: {printable(' '.join(str(text).split()))}", err=True)


class _ToStderr(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._last = ""

    def filter(self, record: logging.LogRecord) -> bool:
        """Skip the notes of answers and files without a reader, which commands print."""
        printed = ("nodekin.retrievers.answers", "nodekin.nodegraph.readers.folder_scan")
        return not record.name.startswith(printed)

    def emit(self, record: logging.LogRecord) -> None:
        """Print a warning, unless it repeats the last one."""
        if record.getMessage() != self._last:
            self._last = record.getMessage()
            warn(self._last)


@contextmanager
def warnings_to_stderr(quiet: bool) -> Iterator[None]:
    """Print the log's warnings to stderr."""
    logger = logging.getLogger("nodekin")
    handler: logging.Handler = logging.NullHandler() if quiet else _ToStderr()
    propagated = logger.propagate
    logger.addHandler(handler)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagated
