"""Find an index, and open its graph and its models."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from ...nodegraph.builder import Failure
from ...nodegraph.errors import UnsupportedFilesError
from ...nodegraph.graph import NodeGraph
from ...nodegraph.readers.formats import supported_suffixes
from ...nodegraph.readers.source_files import INDEX_FOLDER, ReadOptions, check_encoding
from ...nodegraph.splitters.passage_splitter import PassageSplitter
from ...nodegraph.splitters.sentences import split_sentences
from .. import named_models
from .exit_status import CommandError, ExitStatus
from .messages import message, warn

_SETTINGS = "index.json"

_VERSION = 1


@dataclass(frozen=True, slots=True)
class Workspace:
    """An index with its settings.

    Attributes:
        folder: The folder of the index. None: folders are read into memory.
        embed: The name of the embedding model. Empty: none.
        encoding: The encoding of files that are not UTF-8.
        ocr: Whether to read scans.
        updated: The time of the last update, in seconds since 1970.
    """

    folder: Path | None = None
    embed: str = ""
    encoding: str = ""
    ocr: bool = False
    updated: float = 0.0

    @property
    def place(self) -> Path:
        """The folder of an index that is not in memory."""
        assert self.folder is not None
        return self.folder

    @property
    def graph_file(self) -> Path:
        """The file of the graph."""
        return self.place / "graph.sqlite"

    @property
    def exists(self) -> bool:
        """Whether the folder has settings."""
        return (self.place / _SETTINGS).is_file()

    def save(self) -> None:
        """Write the settings."""
        record = {**asdict(self), "version": _VERSION}
        del record["folder"]
        new = self.place / f"{_SETTINGS}.{os.getpid()}.new"
        new.write_text(json.dumps(record), encoding="utf-8")
        new.replace(self.place / _SETTINGS)

    def clear(self) -> None:
        """Remove the files of the index, and no other files of the folder."""
        for file in (self.place / _SETTINGS, *self.place.glob(f"{self.graph_file.name}*")):
            file.unlink(missing_ok=True)


def load_index(folder: Path) -> Workspace:
    """Return the index in a folder.

    Raises:
        CommandError: If the index is missing, damaged, or of a newer version.
    """
    file = folder / _SETTINGS
    try:
        record: Any = json.loads(file.read_text(encoding="utf-8"))
        if int(record["version"]) > _VERSION:
            raise ValueError("it is of a newer nodekin")
        names = {field.name for field in fields(Workspace)}
        return Workspace(folder, **{name: record[name] for name in names.intersection(record)})
    except FileNotFoundError as error:
        raise CommandError(
            f"there is no index in {folder}; make one: nodekin index FOLDER --store {folder}",
            ExitStatus.INDEX_ERROR,
        ) from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CommandError(
            f"can't use {file} ({type(error).__name__}: {error}); make the index again: "
            "nodekin index FOLDER --rebuild",
            ExitStatus.INDEX_ERROR,
        ) from error


def find_index(
    store: Path | None,
    folders: Sequence[Path] = (),
    embed: str | None = None,
    encoding: str | None = None,
) -> Workspace:
    """Return the named index, the nearest one in this folder and above, or folders in memory.

    Raises:
        CommandError: If the index is missing, or has another model.
        ValueError: If the encoding is unknown.
    """
    if folders:
        return Workspace(None, embed or "", check_encoding(encoding) if encoding else "")
    index = load_index(store or _nearest_folder())
    if embed and embed != index.embed:
        raise CommandError(
            f"--embed {embed!r} needs --in; the index has its own embeddings "
            f"({index.embed or 'none'}), changed by: nodekin index --embed {embed}"
        )
    return index


def _nearest_folder() -> Path:
    """Return the folder of the nearest index inside the same repository or home directory.

    Raises:
        CommandError: If the index is missing.
    """
    folders = [Path.cwd(), *Path.cwd().parents]
    home = Path("~").expanduser().resolve()
    is_top = (f == home or (f / ".git").exists() or (f / ".hg").exists() for f in folders)
    top = next((count for count, found in enumerate(is_top, 1) if found), 1)
    for folder in folders[:top]:
        if Workspace(folder / INDEX_FOLDER).exists:
            return folder / INDEX_FOLDER
    raise CommandError(message("no index", folder=folders[0]), ExitStatus.INDEX_ERROR)


def chat_model(name: str | None, base_url: str | None) -> Any:
    """Return the language model of a name, or of the environment.

    Raises:
        CommandError: If no model or no server is named.
    """
    name = name or os.environ.get("OPENAI_MODEL")
    servers = (base_url, os.environ.get("OPENAI_BASE_URL"), os.environ.get("OPENAI_API_KEY"))
    if not name or not any(servers):
        raise CommandError(message("no model"), ExitStatus.MODEL_ERROR)
    return named_models.chat_model(name, base_url)


def check_model(index: Workspace, embed: str | None = None) -> None:
    """Check that an index of another person does not load code with a model.

    Args:
        index: The index.
        embed: The model that the user has named in this command.

    Raises:
        CommandError: If the model is a folder inside the index's parent directory, and not named.
    """
    kind, _, name = index.embed.partition(":")
    if index.folder is None or embed == index.embed or kind != "sentence-transformers":
        return
    folder = Path(name).expanduser()
    if folder.exists() and folder.resolve().is_relative_to(index.folder.resolve().parent):
        raise CommandError(
            f"{index.folder} names the model {name}, a folder beside the index that may contain "
            f"programs; if you trust it, pass --embed {index.embed}",
            ExitStatus.MODEL_ERROR,
        )


def model_of(index: Workspace, embed: str | None = None, base_url: str | None = None) -> Any:
    """Return the embedding model of an index or of folders, or None.

    The address of a server is not stored in an index: otherwise an index of another person could
    direct the user's key to any server.

    Args:
        index: The index.
        embed: The model that the user has named in this command.
        base_url: The server. Defaults to the environment's.

    Raises:
        CommandError: If the model is a folder next to the index.
        ImportError: If the package of the model is not installed.
        ModelError: If the server is unknown.
    """
    check_model(index, embed)
    return named_models.embedding_model(index.embed, base_url) if index.embed else None


@contextmanager
def open_graph(
    index: Workspace,
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
    if index.ocr:
        from ..files.ocr import tesseract

        ocr = tesseract()
    with (
        _warnings_to_stderr(quiet),
        NodeGraph(
            list(folders) or None,
            embed=model,
            store=None if index.folder is None else index.graph_file,
            on_error="skip",
            reading=ReadOptions(encoding=index.encoding or None, strict=strict, ocr=ocr),
            progress=False if quiet else None,
        ) as graph,
    ):
        graph.create_node_group("passage", PassageSplitter)
        graph.create_node_group("sentence", split_sentences, "passage")
        if folders and not graph.groups["ROOT"].size:
            reasons = "".join(f": {reason_of(failure)}" for failure in graph.failures[:1])
            raise CommandError(
                f"no file in {', '.join(map(str, folders))} can be read{reasons}; supported are "
                f"{', '.join(supported_suffixes())}",
                ExitStatus.INDEX_ERROR,
            )
        if index.folder is None and not quiet:
            print_failures(graph.failures)
        yield graph


def missing_vectors(graph: NodeGraph) -> int:
    """Return the number of sentences without an embedding."""
    sentences = [node.searched_text for node in graph.nodes("sentence")]
    keys = graph.embeddings.embedders
    return max((graph.embeddings.count_missing(sentences, key) for key in keys), default=0)


def is_read_error(failure: Failure) -> bool:
    """Return whether a document failed. Files without a reader are not failures."""
    return not isinstance(failure.error, UnsupportedFilesError)


def reason_of(failure: Failure) -> str:
    """Return the error of a failure in one line, without remedies in Python."""
    return " ".join(str(failure.error).split()).partition("; add one with register_reader")[0]


def print_failures(failures: Sequence[Failure]) -> None:
    """Print failures to stderr, without duplicates."""
    for reason in dict.fromkeys(map(reason_of, failures)):
        warn(message("left out", reason=reason))


class _ToStderr(logging.Handler):
    """A handler that prints warnings without remedies in Python.

    Repetitions, and warnings that commands print, are left out.
    """

    _last = ""

    def emit(self, record: logging.LogRecord) -> None:
        printed = ("nodekin.retrievers.answers", "nodekin.nodegraph.readers.folder_scan")
        text = record.getMessage().partition("; graph.")[0]
        if text != self._last and not record.name.startswith(printed):
            self._last = text
            warn(text)


@contextmanager
def _warnings_to_stderr(quiet: bool) -> Iterator[None]:
    logger = logging.getLogger("nodekin")
    handler: logging.Handler = logging.NullHandler() if quiet else _ToStderr(logging.WARNING)
    propagated, logger.propagate = logger.propagate, False
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.propagate = propagated
