"""``nodekin status``: the size and the failures of an index."""

from __future__ import annotations

from collections import Counter
from pathlib import Path, PurePath
from typing import Any

import click

from ...nodegraph.errors import EmbeddingError, UnsupportedFilesError
from ...nodegraph.graph import NodeGraph
from ...nodegraph.storage.sqlite import faults_of
from .documents_command import documents_of
from .exit_status import CommandError, ExitStatus, printable
from .messages import message
from .options import common_options, store_option
from .output import echo_json
from .search_command import newer_files
from .workspace import Workspace, find_index, missing_vectors, model_of, open_graph, reason_of


@click.command()
@store_option
@click.option("--check", is_flag=True, help="Check the file for damage, and call the model once.")
@common_options
def status(store: Path | None, check: bool, as_json: bool, quiet: bool) -> int:
    """Show the size of an index, missing embeddings, newer files, and failures."""
    if check:
        check_file(Workspace.find(store))
    home, settings = find_index(store)
    assert home is not None
    model, problem = None, ""
    try:
        model = model_of(home, settings)
    except CommandError as error:
        problem = error.message
    characters, kinds, encodings = 0, Counter[str](), Counter[str]()
    notes: list[str] = []
    with open_graph(home, settings, quiet=True, model=model) as graph:
        for document in documents_of(graph):
            characters += len(document.text)
            path = PurePath(str(document.metadata.get("file_path", document.id)))
            kinds[path.suffix.lower() or "no suffix"] += 1
            encodings[str(document.metadata.get("encoding", "utf-8"))] += 1
            changes = document.metadata.get("read_notes", ())
            notes += [f"{path}: {change}" for change in changes]
        groups = {name: group.size for name, group in graph.groups.items() if group.built}
        left_out = [f for f in graph.failures if not isinstance(f.error, UnsupportedFilesError)]
        unread = [f for f in graph.failures if isinstance(f.error, UnsupportedFilesError)]
        missing = missing_vectors(graph)
        problem = problem or model_problem(graph, call=check)
    record: dict[str, Any] = {
        "store": str(home.folder.absolute()),
        "sources": [str(source) for source in settings.sources],
        "documents": kinds.total(),
        "characters": characters,
        "kinds": dict(kinds.most_common()),
        "encodings": dict(encodings.most_common()),
        "groups": groups,
        "embeddings": settings.embed or None,
        "embeddings_error": problem or None,
        "missing_embeddings": missing,
        "newer_files": newer_files(settings),
        "bytes": sum(file.stat().st_size for file in home.folder.rglob("*") if file.is_file()),
        "failures": len(left_out),
        "notes": notes,
        "unread": [str(f.error) for f in unread],
        "left_out": [str(f.error) for f in left_out],
    }
    if as_json:
        echo_json("status", record)
        return ExitStatus.SUCCESS
    kinds_text = ", ".join(f"{count:,} {kind}" for kind, count in kinds.most_common())
    rows = {
        "index": home.folder,
        "sources": ", ".join(record["sources"]),
        "documents": f"{kinds.total():,} ({kinds_text or 'none'})",
        "text": f"{characters:,} characters",
        "encodings": ", ".join(f"{count:,} {name}" for name, count in encodings.most_common()),
        "nodes": ", ".join(f"{n:,} {name}" for name, n in groups.items() if name != "ROOT"),
        "embeddings": settings.embed,
        "on disk": f"{record['bytes'] / 1e6:,.1f} MB",
    }
    for name, value in rows.items():
        click.echo(f"{name:<11} {printable(str(value or 'none'))}")
    if problem:
        click.echo(message("model problem", reason=printable(problem)))
    if missing:
        click.echo(message("words only", count=missing))
    if record["newer_files"]:
        click.echo(message("stale", count=record["newer_files"]))
    for note in notes:
        click.echo(printable(note))
    for failure in (*left_out, *unread):
        click.echo(printable(message("left out", reason=reason_of(failure))))
    return ExitStatus.SUCCESS


def model_problem(graph: NodeGraph, *, call: bool) -> str:
    """Return the difference of the embedding model to the stored vectors. Empty: none.

    Args:
        graph: The graph with its model.
        call: Whether to embed a word, which finds unreachable servers and other dimensions.
    """
    for key, embedder in graph.embeddings.embedders.items():
        names = [kind.partition(" ")[2] for kind in graph.embeddings.stored()]
        if names and embedder.name not in names:
            return f"the vectors are of {', '.join(names)}, and the model is {embedder.name}"
        try:
            if call:
                graph.embeddings.query_vectors(["tea"], key)
        except EmbeddingError as error:
            return str(error)
    return ""


def check_file(home: Workspace) -> None:
    """Check the file of an index with SQLite.

    Raises:
        CommandError: If the file is damaged.
    """
    faults = "; ".join(faults_of(home.graph_file))
    if "not a database" in faults:
        raise CommandError(
            f"{home.graph_file} is not a nodekin graph; choose another folder with --store",
            ExitStatus.INDEX_ERROR,
        )
    if faults:
        raise CommandError(
            f"{home.graph_file} is damaged: {faults}; restore a backup, or read the sources again: "
            "nodekin index --rebuild",
            ExitStatus.INDEX_ERROR,
        )
