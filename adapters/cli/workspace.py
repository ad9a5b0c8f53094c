"""Where an index is stored, how it was made, and the rules of the groups it has."""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from ...nodegraph.builder import Failure
from ...nodegraph.errors import UnsupportedFilesError
from ...nodegraph.graph import NodeGraph
from ...nodegraph.readers.formats import supported_suffixes
from ...nodegraph.readers.source_files import (
    INDEX_FOLDER,
    Ocr,
    ReadOptions,
    ReadReport,
    check_encoding,
)
from ...nodegraph.splitters.headings import MarkdownSplitter
from ...nodegraph.splitters.passage_splitter import PassageSplitter
from ...nodegraph.splitters.sentences import SentenceSplitter, split_paragraphs, split_sentences
from ...retrievers.composite.default_settings import set_default_target
from ...retrievers.group_failures import describe_failures, group_failures
from .exit_status import CommandError, ExitStatus, printable, shell_message
from .models import embedding_model

TRANSFORMS = {
    "passages": "what belongs together, paragraphs packed up to SIZE tokens (320)",
    "paragraphs": "paragraphs as they are",
    "sentences": "single sentences",
    "lines": "single lines",
    "sections": "what stands below each Markdown heading, in parts of SIZE tokens if given",
    "chunks": "whole sentences up to SIZE tokens, OVERLAP of them repeated (256:25)",
}

_SIZED = frozenset({"passages", "sections", "chunks"})

_SYNTAX = "NAME=TRANSFORM[:SIZE[:OVERLAP]][@PARENT]"

_RULE = re.compile(r"([^=@:\s]+)=([a-z]+)(?::(\d+)(?::(\d+))?)?(?:@([^=@:\s]+))?")


@dataclass(frozen=True, slots=True)
class GroupRule:
    """Say how one group of an index is made.

    Raises:
        ValueError: If there is no such transform, or a size is out of range.
    """

    name: str
    transform: str
    size: int | None = None
    overlap: int | None = None
    parent: str = "ROOT"

    def __post_init__(self) -> None:
        numbers = [n for n in (self.size, self.overlap) if n is not None]
        if not all(isinstance(text, str) for text in (self.name, self.parent)) or not all(
            isinstance(number, int) for number in numbers
        ):
            raise ValueError(
                "a group has texts as name and parent, and whole numbers as size and overlap, not "
                f"{(self.name, self.parent, self.size, self.overlap)!r:.80}"
            )
        if self.transform not in TRANSFORMS:
            raise ValueError(
                f"no transform {self.transform!r} for the group {self.name!r}; there is "
                f"{', '.join(TRANSFORMS)}"
            )
        if self.size is not None and self.transform not in _SIZED:
            raise ValueError(
                f"the transform {self.transform!r} takes no size; {', '.join(sorted(_SIZED))} do"
            )
        if self.size == 0 or (self.overlap or 0) >= (self.size or 256):
            raise ValueError(
                f"the group {self.name!r} has size {self.size} and overlap {self.overlap}; the "
                "size has to be 1 or more, and the overlap less than it"
            )
        if self.overlap and self.transform == "passages":
            raise ValueError(f"passages don't overlap; leave {self.overlap} out, or take chunks")

    def __str__(self) -> str:
        parent = "" if self.parent == "ROOT" else f"@{self.parent}"
        return f"{self.name}={self.transform_spec}{parent}"

    @property
    def transform_spec(self) -> str:
        """The transform with its sizes: ``chunks:256:25``."""
        sizes = "".join(f":{item}" for item in (self.size, self.overlap) if item is not None)
        return f"{self.transform}{sizes}"

    def declare(self, graph: NodeGraph) -> None:
        """Declare the group on a graph, where a group of that name gives way.

        It has the rule that it has in Python, so that a default retriever finds it there.
        """
        graph.create_node_group(self.name, self._transform(), self.parent, replace=True)

    def _transform(self) -> Any:
        if self.transform == "passages":
            return PassageSplitter if self.size is None else PassageSplitter(self.size)
        if self.transform == "chunks":
            overlap = 25 if self.size is None and self.overlap is None else self.overlap or 0
            return SentenceSplitter(self.size or 256, overlap)
        if self.transform == "sections":
            return MarkdownSplitter(chunk_size=self.size, chunk_overlap=self.overlap or 0)
        plain: dict[str, Any] = {"paragraphs": split_paragraphs, "sentences": split_sentences}
        return plain.get(self.transform, split_lines)


DEFAULT_RULES = (
    GroupRule("passage", "passages"),
    GroupRule("sentence", "sentences", parent="passage"),
)


def split_lines(text: str) -> list[str]:
    """Split a text into its lines, blank ones left out.

    Example:
        >>> split_lines("one\\n\\n 二 \\n")
        ['one', '二']
    """
    return [line.strip() for line in text.split("\n") if line.strip()]


def parse_rules(definitions: Iterable[str], base: Iterable[GroupRule]) -> tuple[GroupRule, ...]:
    """Put the rules that were given into those there are, parents before what is made of them.

    Raises:
        ValueError: If one is not of the form, or its parent is unknown.

    Example:
        >>> [str(rule) for rule in parse_rules(["part=chunks:64:8@passage"], DEFAULT_RULES)]
        ['passage=passages', 'sentence=sentences@passage', 'part=chunks:64:8@passage']
    """
    rules = {rule.name: rule for rule in base}
    for item in definitions:
        match = _RULE.fullmatch(item.strip())
        if match is None:
            raise ValueError(f"the group {item!r} is not of the form {_SYNTAX}")
        name, transform, *sizes, parent = match.groups()
        size, overlap = (None if number is None else int(number) for number in sizes)
        rules[name] = GroupRule(name, transform, size, overlap, parent or "ROOT")
    return _in_order(rules)


_PREDEFINED = ("ROOT", "CoarseChunk", "MediumChunk", "FineChunk")


def _in_order(rules: dict[str, GroupRule]) -> tuple[GroupRule, ...]:
    done: dict[str, GroupRule] = {}
    waiting = dict(rules)
    while waiting:
        ready = [
            name
            for name, rule in waiting.items()
            if rule.parent in _PREDEFINED or rule.parent in done
        ]
        if not ready:
            rule = next(iter(waiting.values()))
            names = ", ".join([*_PREDEFINED, *rules])
            raise ValueError(
                f"the group {str(rule)!r} has no parent {rule.parent!r} that is made before it; "
                f"there is {names}"
            )
        done.update((name, waiting.pop(name)) for name in ready)
    return tuple(done.values())


STORE_VARIABLE = "NODEKIN_STORE"

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
        ocr: Whether scans are read, by Tesseract.
    """

    groups: tuple[GroupRule, ...] = DEFAULT_RULES
    embed: str = ""
    encoding: str = ""
    sources: tuple[Path, ...] = ()
    ocr: bool = False

    @property
    def main_group(self) -> str:
        """The group that is searched unless told otherwise."""
        return self.groups[0].name

    def to_json(self) -> str:
        """Return the settings as they are stored."""
        record = {"version": _VERSION, **asdict(self)}
        return json.dumps(record, ensure_ascii=False, indent=2, default=str) + "\n"

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
            if not isinstance(record["sources"], list):
                raise TypeError("sources is no list")
            sources = tuple(Path(item) for item in record["sources"])
            os.fsencode(json.dumps(record, ensure_ascii=False))  # no half characters
            ocr = bool(record.get("ocr", False))
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"it is damaged ({type(error).__name__}: {error})") from error
        if version > _VERSION or not groups:
            raise ValueError("it was written by a newer nodekin")
        return cls(groups, embed, encoding, sources, ocr)


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
        named = os.environ.get(STORE_VARIABLE)
        store = Path(named) if store is None and named else store
        if store is not None:
            if cls(store).exists:
                return cls(store)
            raise CommandError(
                f"there is no index in {store}; make one with: nodekin index FOLDER --store "
                f"{store}",
                ExitStatus.INDEX_ERROR,
            )
        for folder in searched_folders():
            if cls(folder / INDEX_FOLDER).exists:
                check_owner(folder / INDEX_FOLDER)
                return cls(folder / INDEX_FOLDER)
        raise CommandError(
            f"there is no index ({INDEX_FOLDER}) in {Path.cwd()} or, inside its repository or your "
            "home directory, above; make one with: "
            "nodekin index FOLDER, or search a folder at once with: --in FOLDER",
            ExitStatus.INDEX_ERROR,
        )

    @classmethod
    def here(cls) -> Workspace:
        """Return the index of this folder, which may not exist yet.

        Raises:
            CommandError: If it belongs to another user.
        """
        folder = Path(INDEX_FOLDER)
        if folder.exists():
            check_owner(folder)
        return cls(folder)

    @property
    def graph_file(self) -> Path:
        """The file of the graph."""
        return self.folder / _GRAPH

    @property
    def exists(self) -> bool:
        """Whether there is an index."""
        return (self.folder / _SETTINGS).is_file()

    def check_sources(self, sources: Iterable[Path], named: Iterable[Path]) -> None:
        """Check sources before they are read again: an index may come from another person.

        Args:
            sources: The sources that the index lists.
            named: The sources that the person has named in this command.

        Raises:
            CommandError: If a source lies outside the index's parent directory, and is not named.
        """
        allowed = [self.folder.resolve().parent, *(path.resolve() for path in named)]
        for source in sources:
            if not any(_is_in(source.resolve(), folder) for folder in allowed):
                raise CommandError(
                    printable(
                        f"{self.folder} lists {source}, which is outside of {allowed[0]}; name it "
                        f"to read it again: nodekin index {source}"
                    ),
                    ExitStatus.INDEX_ERROR,
                )

    def check_model(self, model: str) -> None:
        """Check the embedding model that an index names: a folder may bring code that would run.

        Raises:
            CommandError: If the model is a folder inside the index's parent directory.
        """
        kind, _, name = model.partition(":")
        folder = Path(name).expanduser()
        is_local = kind == "sentence-transformers" and folder.exists()
        if is_local and _is_in(folder.resolve(), self.folder.resolve().parent):
            raise CommandError(
                printable(
                    f"{self.folder} names the model {name}, a folder beside the index, which may "
                    f"bring programs that run here; if you trust it, name it: --embed {model}"
                ),
                ExitStatus.MODEL_ERROR,
            )

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
                ExitStatus.INDEX_ERROR,
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


def searched_folders() -> list[Path]:
    """Return this folder, and its parents up to its repository or the home directory.

    A folder that lies in neither is searched alone: what lies above may come from anybody.
    """
    folders = [Path.cwd(), *Path.cwd().parents]
    home = Path(os.path.expanduser("~")).resolve()
    for count, folder in enumerate(folders, 1):
        if folder == home or any((folder / name).exists() for name in (".git", ".hg")):
            return folders[:count]
    return folders[:1]


def check_owner(folder: Path) -> None:
    """Check that an index that was found belongs to the user. Windows has no such check.

    Raises:
        CommandError: If it belongs to another user.
    """
    paths = [path for path in (folder, folder / _SETTINGS) if path.exists()]
    if hasattr(os, "getuid") and any(
        {path.lstat().st_uid, path.stat().st_uid} != {os.getuid()} for path in paths
    ):
        raise CommandError(
            printable(f"{folder} belongs to another user; if you trust it: --store {folder}"),
            ExitStatus.INDEX_ERROR,
        )


def _is_in(path: Path, folder: Path) -> bool:
    return path == folder or folder in path.parents


def model_of(
    home: Workspace | None,
    settings: IndexSettings,
    embed: str | None = None,
    base_url: str | None = None,
    requests: int = 1,
) -> Any:
    """Return the embedding model of an index, or of folders. None if there is none.

    Args:
        home: The index; None for folders.
        settings: The settings with the model.
        embed: The model that the person has named in this command.
        base_url: The server; None for the environment's.
        requests: The number of concurrent requests to a server.

    Raises:
        CommandError: If the model is not available, or the index names a folder beside it.
    """
    if not settings.embed:
        return None
    if home is not None and embed != settings.embed:
        home.check_model(settings.embed)
    return embedding_model(settings.embed, base_url, requests)


def find_index(
    store: Path | None,
    folders: Sequence[Path],
    embed: str | None = None,
    encoding: str | None = None,
) -> tuple[Workspace | None, IndexSettings]:
    """Return the index, or none where there are folders to search in its place; how it is made.

    Args:
        store: Where the index is; None to look for it.
        folders: Read into memory in place of an index.
        embed: The embedding model for folders; an index has its own.
        encoding: What text files in folders are that are not UTF-8.

    Raises:
        CommandError: If there is no index or no such folder, or the index has another model.
        ValueError: If there is no such encoding.
    """
    encoding = check_encoding(encoding) if encoding else ""
    if folders:
        check_exist(folders)
        return None, IndexSettings(embed=embed or "", encoding=encoding)
    home = Workspace.find(store)
    settings = home.load()
    if embed and embed != settings.embed:
        raise CommandError(
            f"--embed {embed!r} goes with --in; the index has its own embeddings "
            f"({settings.embed or 'none'}), changed by: nodekin index --embed {embed}",
            ExitStatus.USAGE_ERROR,
        )
    return home, settings


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
    """Open the graph of an index, or of folders in memory, until the block ends.

    Args:
        home: The index; None for folders.
        settings: Which groups are declared, and the encoding of files.
        folders: What is read into memory.
        quiet: Whether progress and warnings are left out.
        model: The embedding model, where one is used.
        strict: Whether files are errors that are passed over otherwise.

    Raises:
        CommandError: If there is nothing to read in the folders.
    """
    with (
        warnings_to_stderr(quiet),
        NodeGraph(
            list(folders) or None,
            embed=model,
            store=None if home is None else home.graph_file,
            on_error="skip",
            reading=ReadOptions(
                encoding=settings.encoding or None, strict=strict, ocr=_ocr(settings)
            ),
            progress=False if quiet else None,
        ) as graph,
    ):
        for rule in settings.groups:
            rule.declare(graph)
        set_default_target(graph, settings.main_group)
        if folders and not graph.groups["ROOT"].size:
            paths, failures = ", ".join(map(str, folders)), failures_of(graph)
            raise CommandError(
                f"nothing in {paths} could be read: {shell_message(failures[0].error)}"
                if failures
                else f"there is no file in {paths} that can be read; known are "
                f"{', '.join(supported_suffixes())}",
                ExitStatus.INDEX_ERROR,
            )
        if home is None:
            print_failures(failures_of(graph), quiet)
        yield graph


def _ocr(settings: IndexSettings) -> Ocr | None:
    """Return what reads scans where they are to be read.

    Raises:
        ImportError: If it is not installed.
    """
    if not settings.ocr:
        return None
    from ..files.ocr import tesseract

    return tesseract()


def build_if_outdated(graph: NodeGraph, quiet: bool) -> None:
    """Build what a search of an index needs, and an earlier version did not make. Say so."""
    from ...retrievers.composite.default_retriever import DefaultRetriever

    default = DefaultRetriever(graph)
    names = default.groups
    groups = graph.groups
    missing = [name for name in names if not groups[name].built]
    if not missing:
        return
    if not quiet:
        count = groups["ROOT"].size
        documents = "1 document" if count == 1 else f"{count:,} documents"
        what = f"building {' and '.join(missing)} of {documents}"
        reason = "the index is of an earlier version, or was interrupted"
        click.echo(f"nodekin: {what}: {reason}", err=True)
    graph.build(*missing, on_error="skip")
    default.build()


def check_exist(paths: Sequence[Path]) -> None:
    """Check that there are these files and folders.

    Raises:
        CommandError: If one is missing.
    """
    for path in paths:
        if not path.expanduser().exists():
            raise CommandError(f"there is no file or folder {str(path)!r}", ExitStatus.INDEX_ERROR)


def failures_of(graph: NodeGraph) -> list[Failure]:
    """Return what failed; not what has no reader, of which a warning tells."""
    return [f for f in graph.failures if not isinstance(f.error, UnsupportedFilesError)]


def print_failures(failures: Sequence[Failure], quiet: bool) -> None:
    """Write to stderr what was left out, a line for each, and the same once."""
    messages = Counter(shell_message(failure.error) for failure in failures)
    for message, count in () if quiet else messages.items():
        files = f" ({count:,} files)" if count > 1 else ""
        click.echo(f"nodekin: left out: {printable(message)}{files}", err=True)


def print_group_failures(graph: NodeGraph) -> None:
    """Write to stderr how many documents failed in which group, and the first error."""
    if failures := group_failures(graph):
        click.echo(f"nodekin: {printable(shell_message(describe_failures(failures)))}", err=True)


def print_notes(report: ReadReport, quiet: bool) -> None:
    """Write to stderr what is to be known of files that were read."""
    for note in () if quiet else report.notes.values():
        click.echo(f"nodekin: {printable(shell_message(note))}", err=True)


_TOLD_WITH_ANSWERS = "nodekin.retrievers.answers"


class _ToStderr(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._last = ""

    def filter(self, record: logging.LogRecord) -> bool:
        """Leave out what an answer has among its notes."""
        return not record.name.startswith(_TOLD_WITH_ANSWERS)

    def emit(self, record: logging.LogRecord) -> None:
        """Write a warning as one line, unless it repeats the last: each group searched has it."""
        message = record.getMessage()
        if message != self._last:
            click.echo(f"nodekin: {printable(shell_message(message))}", err=True)
        self._last = message


@contextmanager
def warnings_to_stderr(quiet: bool) -> Iterator[None]:
    """Write what the package logs as warnings to stderr, until the block ends."""
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
