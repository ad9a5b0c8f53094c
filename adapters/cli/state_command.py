"""``nodekin status``: the size of an index, and whether its file is damaged."""

from __future__ import annotations

from collections import Counter
from pathlib import Path, PurePath

import click

from ...nodegraph.errors import UnsupportedFilesError
from ...nodegraph.storage.sqlite import faults_of
from .documents_command import documents_of
from .exit_status import EXIT_STATUSES, CommandError, ExitStatus, printable, shell_message
from .options import common_options, store_option
from .output import FORMAT, echo, to_json
from .workspace import Workspace, failures_of, find_index, open_graph

STATUS_FORMAT = """\b
With --json: {"format": 1, "command": "status", "store", "sources": [paths],
  "documents", "characters", "kinds": {suffix: documents}, "groups": {name:
  nodes}, "embeddings": the model or null, "bytes", "failures": how many
  were left out, "left_out": [why], "unread": [what has no reader]}
"""


@click.command(epilog=f"{STATUS_FORMAT}\n{EXIT_STATUSES}")
@store_option
@click.option(
    "--check",
    is_flag=True,
    help="Let SQLite check the index's file first (PRAGMA integrity_check); a damaged file has the "
    "exit status 3.",
)
@common_options
def status(store: Path | None, check: bool, as_json: bool, quiet: bool) -> int:
    """Show the size of an index: documents and their kinds, nodes, bytes on disk."""
    if check:
        check_file(Workspace.find(store))
    home, settings = find_index(store, ())
    assert home is not None  # without folders there is one, or an error
    characters, kinds = 0, Counter[str]()
    with open_graph(home, settings, quiet=True) as graph:
        for document in documents_of(graph):
            characters += len(document.text)
            path = PurePath(str(document.metadata.get("file_path", document.id)))
            kinds[path.suffix.lower() or "no suffix"] += 1
        groups = {name: group.size for name, group in graph.groups.items() if group.built}
        unread = [f for f in graph.failures if isinstance(f.error, UnsupportedFilesError)]
        left_out = failures_of(graph)
    size = sum(file.stat().st_size for file in home.folder.rglob("*") if file.is_file())
    record = {
        "format": FORMAT,
        "command": "status",
        "store": str(home.folder.absolute()),
        "sources": [str(source) for source in settings.sources],
        "documents": kinds.total(),
        "characters": characters,
        "kinds": dict(kinds.most_common()),
        "groups": groups,
        "embeddings": settings.embed or None,
        "bytes": size,
        "failures": len(left_out),
        "unread": [shell_message(f.error) for f in unread],
        "left_out": [shell_message(f.error) for f in left_out],
    }
    if as_json:
        echo(to_json(record))
        return ExitStatus.SUCCESS
    kinds_text = ", ".join(f"{count:,} {kind}" for kind, count in kinds.most_common())
    nodes = ", ".join(f"{n:,} {name}" for name, n in groups.items() if name != "ROOT")
    for name, value in {
        "index": home.folder,
        "sources": ", ".join(map(str, settings.sources)),
        "documents": f"{kinds.total():,} ({kinds_text or 'none'})",
        "text": f"{characters:,} characters",
        "nodes": nodes or "none",
        "embeddings": settings.embed or "none",
        "on disk": f"{size / 1e6:,.1f} MB",
    }.items():
        echo(f"{name:<11} {printable(str(value))}")
    for reason in map(shell_message, (f.error for f in (*left_out, *unread))):
        echo(f"{'left out':<11} {printable(reason)}")
    return ExitStatus.SUCCESS


def check_file(home: Workspace) -> None:
    """Let SQLite check the file of an index.

    Raises:
        CommandError: If the file is damaged.
    """
    if "not a database" in " ".join(faults := faults_of(home.graph_file)):
        raise CommandError(
            f"{home.graph_file} is not a nodekin graph; choose another folder with --store",
            ExitStatus.INDEX_ERROR,
        )
    if faults:
        raise CommandError(
            f"{home.graph_file} is damaged: {'; '.join(faults)}; restore a backup, or let nodekin "
            "index --rebuild read the sources again",
            ExitStatus.INDEX_ERROR,
        )
