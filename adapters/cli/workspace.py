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
"""The settings that are saved with an index, and their types."""


@dataclass(frozen=True, slots=True)
class Workspace:
    """An index with its settings, or a set of folders that are read into memory.

    Attributes:
        folder: The folder that contains the index.
        in_memory: The folders to read into memory. If empty, the index in ``folder`` is opened.
        embed: The name of the embedding model. If empty, no model is used.
        encoding: The encoding of files that are not encoded as UTF-8.
        ocr: Whether to recognize text in scanned pages.
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
        """The path of the file that contains the graph."""
        return self.folder / "graph.sqlite"

    @property
    def exists(self) -> bool:
        """Whether the folder contains the settings of an index."""
        return (self.folder / _FILE).is_file()

    def save(self) -> None:
        """Save the settings of the index."""
        record = {"version": 1, **{name: getattr(self, name) for name in _SETTINGS}}
        new = self.folder / f"{_FILE}.{os.getpid()}.new"
        with _explaining(self.folder):
            new.write_text(json.dumps(record), encoding="utf-8")
            new.replace(self.folder / _FILE)

    def clear(self) -> None:
        """Delete the files of the index. Other files in the folder are not deleted."""
        for file in (self.folder / _FILE, *self.folder.glob(f"{self.graph_file.name}*")):
            with _explaining(self.folder):
                file.unlink(missing_ok=True)


@contextmanager
def _explaining(folder: Path) -> Iterator[None]:
    """Explain errors that occur because the user cannot write to the folder of an index."""
    try:
        yield
    except PermissionError as error:
        raise CommandError(
            f"can't write to the index {folder} ({error.strerror}); run this command as its owner, "
            "or make another index: --store DIRECTORY",
            ExitStatus.INDEX_ERROR,
        ) from error


def load_index(folder: Path) -> Workspace:
    """Load the settings of the index in a folder.

    Raises:
        CommandError: If the index does not exist, is damaged, or has a different version.
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
        # this raises an error if the encoding is unknown
        ReadOptions(encoding=record["encoding"] or None)
        return Workspace(folder, **{name: record[name] for name in _SETTINGS})
    except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
        raise CommandError(
            f"can't use the index {folder} ({type(error).__name__}: {error}); make it: "
            f"nodekin index FOLDER --store {folder} --rebuild",
            ExitStatus.INDEX_ERROR,
        ) from error


def find_index(store: Path | None, folders: Sequence[Path] = ()) -> Workspace:
    """Return the given index, the nearest index, or folders that will be read into memory.

    The nearest index is searched for in the current folder and its parent folders.

    Raises:
        CommandError: If no index is found.
    """
    if folders:
        return Workspace(Path(), folders)
    return load_index(store or _nearest_folder())


def _nearest_folder() -> Path:
    """Find the folder of the nearest index inside the same repository or home directory.

    Raises:
        CommandError: If no index is found.
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
    """Check that opening an index from a different person does not load a model with foreign code.

    Args:
        index: The index.
        embed: The name of the embedding model if the user gave one in this command.

    Raises:
        CommandError: If the model is a folder inside the parent directory of the index, and the
            user did not name it.
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
    """Return the embedding model of an index, or None if the index has no model.

    The address of a model server is never stored in an index. Otherwise, an index from a different
    person could send the user's API key to any server.

    Args:
        index: The index.
        embed: The name of the embedding model if the user gave one in this command.

    Raises:
        CommandError: If the model is a folder inside the parent directory of the index, and the
            user did not name it.
        ImportError: If the package of the model is not installed.
        ModelError: If the address of the server is unknown.
    """
    check_model(index, embed)
    if not index.embed:
        return None
    return named_models.embedding_model(index.embed)


@contextmanager
def open_graph(
    index: Workspace, *, quiet: bool, model: Any = None, strict: bool = False
) -> Iterator[NodeGraph]:
    """Open the graph of an index, or read folders into a graph in memory.

    Raises:
        CommandError: If none of the files in the folders can be read.
        ImportError: If scanned pages are recognized, but Tesseract is not installed.
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
    """Count the different passages and sentences that have no vector."""
    nodes = chain(graph.nodes("passage"), graph.nodes("sentence"))
    digests = {digest(node.searched_text) for node in nodes}
    keys = graph.embeddings.embedders
    return max((len(graph.embeddings.missing(digests, key)) for key in keys), default=0)


def is_read_error(failure: Failure) -> bool:
    """Return whether reading a document failed.

    Files for which no reader is installed are not counted as failures.
    """
    return not (_needs_extra(failure) or isinstance(failure.error, UnsupportedFilesError))


def _needs_extra(failure: Failure) -> bool:
    return bool(getattr(failure.error, "needs_extra", False))


_REMEDIES = {**REMEDIES, "scanned": "read with: nodekin index --ocr", WITHOUT_READER: ""}
"""Suggestions for skipped files on the command line, keyed by the start of the reason."""


def describe_skipped_files(graph: NodeGraph) -> str:
    """Describe how many files were skipped, why, and what to do about it.

    The result is empty if no files were skipped.
    """
    return describe_skipped(graph.failures, _REMEDIES)


def reason_of(failure: Failure) -> str:
    """Return the error message of a failure in one line, without suggestions for Python code."""
    reason = " ".join(str(failure.error).split())
    reason = reason.partition("; add one with register_reader")[0]
    return with_options(reason.partition(", or register a reader")[0])


def with_options(text: str) -> str:
    """Replace Python options in a text with the corresponding command line options.

    Example:
        >>> with_options("set its encoding: ReadOptions(encoding='big5')")
        'set its encoding: --encoding big5'
    """
    text = text.replace(", such as tesseract() of nodekin.adapters.files.ocr", "")
    text = text.replace("ReadOptions(ocr=...)", "--ocr")
    return re.sub(r"ReadOptions\(encoding='([\w-]+)'\)", r"--encoding \1", text)


def print_notes(read: ReadReport) -> None:
    """Print notes about files to stderr.

    For a single file, all notes are printed. Otherwise, there is one line for each category.
    """
    if len(read.notes) == 1:
        for note in read.notes.values():
            warn(with_options(note))
        return
    for kind, count in read.note_kinds.most_common():
        said = re.sub(r" left out$", " were left out", translated(with_options(kind), "kind"))
        warn(message("files with notes", kind=said, count=count))


def print_failures(failures: Sequence[Failure], *, are_stored: bool) -> None:
    """Print a line to stderr for each category of failures.

    The line contains the first failure and the number of further failures.

    Args:
        failures: The failures.
        are_stored: Whether ``nodekin status`` lists all failures.
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
    """Return the category of a failure to read a file.

    It is empty for files without a reader, and for failures of groups.
    """
    error = failure.error
    if isinstance(error, UnsupportedFilesError) or failure.group != ROOT:
        return ""
    return getattr(error, "kind", "")


class _ToStderr(logging.Handler):
    """A logging handler that prints each warning once.

    Warnings that commands print themselves are ignored.

    Args:
        level: The minimum level of messages to print.

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
        """Return the text of a warning without suggestions for Python code."""
        text = record.getMessage()
        if self.graph is not None and re.match(r"searches use words only: [\d,]+ vectors", text):
            return message("words only", count=missing_vectors(self.graph))
        text = text.partition("; graph.")[0]
        if "; known fields: none like it" in text:
            return message("fields by list", text=translated(text))
        return text


@contextmanager
def printed_warnings(*, quiet: bool) -> Iterator[_ToStderr]:
    """Print the warnings of this package inside a ``with`` block, unless ``quiet`` is True."""
    handler = _ToStderr(logging.CRITICAL if quiet else logging.WARNING)
    logger = logging.getLogger("nodekin")
    logger.addHandler(handler)
    try:
        yield handler
    finally:
        logger.removeHandler(handler)
