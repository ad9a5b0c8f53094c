"""``nodekin status``: the size and the failures of an index."""

from __future__ import annotations

from collections import Counter
from pathlib import Path, PurePath

import click

from ...nodegraph.errors import UnsupportedFilesError
from ...nodegraph.storage.sqlite import faults_of
from .documents_command import documents_of
from .exit_status import CommandError, ExitStatus, printable
from .messages import message
from .models import embedding_model
from .options import common_options, store_option
from .output import echo_json
from .search_command import newer_files
from .workspace import (
    Workspace,
    failures_of,
    find_index,
    missing_vectors,
    open_graph,
    reason_of,
)


@click.command()
@store_option
@click.option("--check", is_flag=True, help="Check the file for damage (PRAGMA integrity_check).")
@common_options
def status(store: Path | None, check: bool, as_json: bool, quiet: bool) -> int:
    """Show the size of an index, missing embeddings, newer files, and failures."""
    if check:
        check_file(Workspace.find(store))
    home, settings = find_index(store)
    assert home is not None
    model = embedding_model(settings.embed) if settings.is_embedding and settings.embed else None
    characters, kinds = 0, Counter[str]()
    with open_graph(home, settings, quiet=True, model=model) as graph:
        for document in documents_of(graph):
            characters += len(document.text)
            path = PurePath(str(document.metadata.get("file_path", document.id)))
            kinds[path.suffix.lower() or "no suffix"] += 1
        groups = {name: group.size for name, group in graph.groups.items() if group.built}
        unread = [f for f in graph.failures if isinstance(f.error, UnsupportedFilesError)]
        left_out = failures_of(graph)
        missing = missing_vectors(graph) if model is not None else 0
    size = sum(file.stat().st_size for file in home.folder.rglob("*") if file.is_file())
    newer = newer_files(settings)
    if as_json:
        record = {
            "store": str(home.folder.absolute()),
            "sources": [str(source) for source in settings.sources],
            "documents": kinds.total(),
            "characters": characters,
            "kinds": dict(kinds.most_common()),
            "groups": groups,
            "embeddings": settings.embed or None,
            "missing_embeddings": missing,
            "newer_files": newer,
            "bytes": size,
            "failures": len(left_out),
            "unread": [str(f.error) for f in unread],
            "left_out": [str(f.error) for f in left_out],
        }
        echo_json("status", record)
        return ExitStatus.SUCCESS
    kinds_text = ", ".join(f"{count:,} {kind}" for kind, count in kinds.most_common())
    nodes = ", ".join(f"{n:,} {name}" for name, n in groups.items() if name != "ROOT")
    rows = {
        "index": home.folder,
        "sources": ", ".join(map(str, settings.sources)),
        "documents": f"{kinds.total():,} ({kinds_text or 'none'})",
        "text": f"{characters:,} characters",
        "nodes": nodes or "none",
        "embeddings": settings.embed or "none",
        "on disk": f"{size / 1e6:,.1f} MB",
    }
    for name, value in rows.items():
        click.echo(f"{name:<11} {printable(str(value))}")
    if missing:
        click.echo(message("words only", count=missing))
    if newer:
        click.echo(message("stale", count=newer))
    for failure in (*left_out, *unread):
        click.echo(printable(message("left out", reason=reason_of(failure))))
    return ExitStatus.SUCCESS


def check_file(home: Workspace) -> None:
    """Check the file of an index with SQLite.

    Raises:
        CommandError: If the file is damaged.
    """
    faults = faults_of(home.graph_file)
    if "not a database" in " ".join(faults):
        raise CommandError(
            f"{home.graph_file} is not a nodekin graph; choose another folder with --store",
            ExitStatus.INDEX_ERROR,
        )
    if faults:
        raise CommandError(
            f"{home.graph_file} is damaged: {'; '.join(faults)}; restore a backup, or read the "
            "sources again: nodekin index --rebuild",
            ExitStatus.INDEX_ERROR,
        )
