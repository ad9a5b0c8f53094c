"""Find an index, and open its graph and its models."""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from ...nodegraph.errors import Failure, UnsupportedFilesError
from ...nodegraph.graph import NodeGraph
from ...nodegraph.hashing import digest
from ...nodegraph.node import ROOT
from ...nodegraph.readers.skipped_files import REMEDIES, describe_skipped
from ...nodegraph.readers.source_files import (
    INDEX_FOLDER,
    WITHOUT_READER,
    ReadOptions,
    ReadReport,
)
from ...nodegraph.splitters.passage_splitter import PassageSplitter
from ...nodegraph.splitters.sentences import split_sentences
from .. import named_models
from .messages import CommandError, ExitStatus, message, translated, warn

_FILE = "index.json"

_SETTINGS: Mapping[str, Any] = {
    "embed": str,
    "encoding": str,
    "ocr": bool,
    "updated": float | int,
}
"""The stored settings and their types."""


@dataclass(frozen=True, slots=True)
class Workspace:
    """An index with its settings, or folders that are read into memory.

    Attributes:
        folder: The folder of the index.
        in_memory: The folders that are read into memory. If empty, the index is opened.
        embed: The name of the embedding model. If empty, no model is used.
        encoding: The encoding of files that are not UTF-8.
        ocr: Whether to read scans.
        updated: The time of the last update, in seconds since 1970.
    """

    folder: Path
    in_memory: Sequence[Path] = ()
    embed: str = ""
    encoding: str = ""
    ocr: bool = False
    updated: float = 0.0

    @property
    def graph_file(self) -> Path:
        """The file of the graph."""
        return self.folder / "graph.sqlite"

    @property
    def exists(self) -> bool:
        """Whether the folder has settings."""
        return (self.folder / _FILE).is_file()

    def save(self) -> None:
        """Write the settings."""
        record = {"version": 1, **{name: getattr(self, name) for name in _SETTINGS}}
        new = self.folder / f"{_FILE}.{os.getpid()}.new"
        with _explaining(self.folder):
            new.write_text(json.dumps(record), encoding="utf-8")
            new.replace(self.folder / _FILE)

    def clear(self) -> None:
        """Remove the files of the index, and no other files of the folder."""
        for file in (self.folder / _FILE, *self.folder.glob(f"{self.graph_file.name}*")):
            with _explaining(self.folder):
                file.unlink(missing_ok=True)


@contextmanager
def _explaining(folder: Path) -> Iterator[None]:
    """Explain the error of an index folder that this user cannot write to."""
    try:
        yield
    except PermissionError as error:
        raise CommandError(
            f"can't write to the index {folder} ({error.strerror}); run this command as its owner, "
            "or make another index: --store DIRECTORY",
            ExitStatus.INDEX_ERROR,
        ) from error


def load_index(folder: Path) -> Workspace:
    """Return the index in a folder.

    Raises:
        CommandError: If the index is missing, damaged, or of another version.
    """
    if not (folder / _FILE).exists():
        raise CommandError(message("no index here", folder=folder), ExitStatus.INDEX_ERROR)
    try:
        record = {**json.loads((folder / _FILE).read_text(encoding="utf-8"))}
        if record["version"] != 1:
            raise ValueError(f"its version must be 1, got {record['version']!r:.20}")
        for name, kinds in _SETTINGS.items():
            if not isinstance(record[name], kinds):
                raise ValueError(f"{name} must be {kinds}, got {record[name]!r:.40}")
        ReadOptions(encoding=record["encoding"] or None)  # an unknown encoding raises
        return Workspace(folder, **{name: record[name] for name in _SETTINGS})
    except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
        raise CommandError(
            f"can't use the index {folder} ({type(error).__name__}: {error}); make it: "
            f"nodekin index FOLDER --store {folder} --rebuild",
            ExitStatus.INDEX_ERROR,
        ) from error


def find_index(store: Path | None, folders: Sequence[Path] = ()) -> Workspace:
    """Return the named index, the nearest one in this folder and above, or folders in memory.

    Raises:
        CommandError: If the index is missing.
    """
    if folders:
        return Workspace(Path(), folders)
    return load_index(store or _nearest_folder())


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


def check_model(index: Workspace, embed: str | None = None) -> None:
    """Check that an index of another person does not load code with a model.

    Args:
        index: The index.
        embed: The model that the user has named in this command.

    Raises:
        CommandError: If the model is a folder inside the index's parent directory, and not named.
    """
    kind, _, name = index.embed.partition(":")
    folder = Path(name).expanduser()
    is_folder = kind == "sentence-transformers" and embed != index.embed and folder.exists()
    if is_folder and folder.resolve().is_relative_to(index.folder.resolve().parent):
        raise CommandError(
            f"{index.folder} names the model {name}, a folder beside the index that may contain "
            f"programs; if you trust it, pass --embed {index.embed} to nodekin index",
            ExitStatus.MODEL_ERROR,
        )


def model_of(index: Workspace, embed: str | None = None) -> Any:
    """Return the embedding model of an index, or None.

    The address of a server is not stored in an index: otherwise an index of another person could
    direct the user's key to any server.

    Args:
        index: The index.
        embed: The model that the user has named in this command.

    Raises:
        CommandError: If the model is a folder inside the index's parent directory, and not named.
        ImportError: If the package of the model is not installed.
        ModelError: If the server is unknown.
    """
    check_model(index, embed)
    if not index.embed:
        return None
    return named_models.embedding_model(index.embed)


@contextmanager
def open_graph(
    index: Workspace, *, quiet: bool, model: Any = None, strict: bool = False
) -> Iterator[NodeGraph]:
    """Open the graph of an index, or of folders in memory.

    Raises:
        CommandError: If no file in the folders can be read.
        ImportError: If the index reads scans and the program tesseract is not installed.
    """
    ocr = None
    if index.ocr:
        from ..files.ocr import tesseract

        ocr = tesseract()
    with (
        printed_warnings(quiet=quiet) as handler,
        NodeGraph(
            [*index.in_memory] or None,
            embed=model,
            store=None if index.in_memory else index.graph_file,
            on_error="skip",
            reading=ReadOptions(encoding=index.encoding or None, strict=strict, ocr=ocr),
            progress=False if quiet else None,
        ) as graph,
    ):
        handler.graph = graph
        graph.create_node_group("passage", PassageSplitter)
        graph.create_node_group("sentence", split_sentences, "passage")
        if index.in_memory and not quiet:
            print_failures(graph.failures, are_stored=False)
        if index.in_memory and not graph.groups[ROOT].size:
            names = ", ".join(str(folder) for folder in index.in_memory)
            problem = f"no file in {names} can be read"
            if skipped := describe_skipped_files(graph):
                problem = f"{problem}; {skipped}"
            raise CommandError(problem, ExitStatus.INDEX_ERROR)
        yield graph


def missing_vectors(graph: NodeGraph) -> int:
    """Return the number of different passages and sentences without an embedding."""
    nodes = chain(graph.nodes("passage"), graph.nodes("sentence"))
    digests = {digest(node.searched_text) for node in nodes}
    keys = graph.embeddings.embedders
    return max((len(graph.embeddings.missing(digests, key)) for key in keys), default=0)


def is_read_error(failure: Failure) -> bool:
    """Return whether a document failed. Files without an installed reader are not failures."""
    return not (_needs_extra(failure) or isinstance(failure.error, UnsupportedFilesError))


def _needs_extra(failure: Failure) -> bool:
    return bool(getattr(failure.error, "needs_extra", False))


_REMEDIES = {**REMEDIES, "scanned": "read with: nodekin index --ocr", WITHOUT_READER: ""}
"""Remedies on the command line, by the start of a kind of skipped files."""


def describe_skipped_files(graph: NodeGraph) -> str:
    """Return the number, kinds and remedies of the skipped files.

    The result is empty if no file was skipped.
    """
    return describe_skipped(graph.failures, _REMEDIES)


def reason_of(failure: Failure) -> str:
    """Return the error of a failure in one line, without remedies in Python."""
    reason = " ".join(str(failure.error).split())
    reason = reason.partition("; add one with register_reader")[0]
    return with_options(reason.partition(", or register a reader")[0])


def with_options(text: str) -> str:
    """Replace options of Python by options of the command line.

    Example:
        >>> with_options("set its encoding: ReadOptions(encoding='big5')")
        'set its encoding: --encoding big5'
    """
    text = text.replace(", such as tesseract() of nodekin.adapters.files.ocr", "")
    text = text.replace("ReadOptions(ocr=...)", "--ocr")
    return re.sub(r"ReadOptions\(encoding='([\w-]+)'\)", r"--encoding \1", text)


def print_notes(read: ReadReport) -> None:
    """Print the notes of a single file, or one line per kind of note, to stderr."""
    if len(read.notes) == 1:
        for note in read.notes.values():
            warn(with_options(note))
        return
    for kind, count in read.note_kinds.most_common():
        said = re.sub(r" left out$", " were left out", translated(with_options(kind), "kind"))
        warn(message("files with notes", kind=said, count=count))


def print_failures(failures: Sequence[Failure], *, are_stored: bool) -> None:
    """Print a line for each kind of failures to stderr: the first reason, and how many follow.

    Args:
        failures: The failures.
        are_stored: Whether ``nodekin status`` lists all of them.
    """
    needing_extras = [failure for failure in failures if _needs_extra(failure)]
    if needing_extras:
        warn(describe_skipped(needing_extras, _REMEDIES))
    kinds: dict[str, dict[str, None]] = {}
    for failure in failures:
        if not _needs_extra(failure):
            reason = reason_of(failure)
            kinds.setdefault(_kind_of(failure) or reason, {})[reason] = None
    for first, *others in kinds.values():
        line = message("left out", reason=translated(first))
        if others:
            line = message("and", first=line, second=message("similar", count=len(others)))
            if are_stored:
                line += message("see status")
        warn(line)


def _kind_of(failure: Failure) -> str:
    """Return the kind of a file's failure. It is empty for files without a reader and groups."""
    error = failure.error
    if isinstance(error, UnsupportedFilesError) or failure.group != ROOT:
        return ""
    return getattr(error, "kind", "")


class _ToStderr(logging.Handler):
    """A handler that prints each warning once, except for warnings that commands print.

    Args:
        level: The lowest printed level.

    Attributes:
        graph: The open graph, whose missing vectors are counted.
    """

    def __init__(self, level: int) -> None:
        super().__init__(level)
        self.graph: NodeGraph | None = None
        self._printed: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        by_commands = ("nodekin.retrievers.answers", "nodekin.nodegraph.corpus")
        if record.name.startswith(by_commands):
            return
        text = self._text_of(record)
        if text not in self._printed:
            self._printed.add(text)
            warn(text)

    def _text_of(self, record: logging.LogRecord) -> str:
        """Return a warning without remedies in Python."""
        text = record.getMessage()
        if self.graph is not None and re.match(r"searches use words only: [\d,]+ vectors", text):
            return message("words only", count=missing_vectors(self.graph))
        text = text.partition("; graph.")[0]
        if "; known fields: none like it" in text:
            return message("fields by list", text=translated(text))
        return text


@contextmanager
def printed_warnings(*, quiet: bool) -> Iterator[_ToStderr]:
    """Print the package's warnings, unless ``quiet``, while the context is open."""
    handler = _ToStderr(logging.CRITICAL if quiet else logging.WARNING)
    logger = logging.getLogger("nodekin")
    logger.addHandler(handler)
    try:
        yield handler
    finally:
        logger.removeHandler(handler)
