"""``nodekin list``, ``show`` and ``remove``: the documents of an index."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import click

from ...nodegraph.errors import nearest_names
from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import Node
from .exit_status import CommandError, ExitStatus, printable
from .messages import message
from .options import common_options, store_option
from .output import document_name, echo_json, line_of
from .workspace import find_index, open_graph, warn

_BATCH = 200  # documents in memory

_AROUND = 10  # lines before and after the requested line


@click.command("list")
@store_option
@common_options
def list_documents(store: Path | None, as_json: bool, quiet: bool) -> int:
    """List the documents of an index with their number of characters.

    The records of a file are one line.
    """
    home, settings = find_index(store)
    records = []
    files: dict[str, list[int]] = {}  # the lengths of the documents of a file
    with open_graph(home, settings, quiet=quiet) as graph:
        for document in documents_of(graph):
            name = document_name(document)
            path, length = document.metadata.get("file_path"), len(document.text)
            record = {"id": document.id, "path": path, "characters": length}
            records.append({**record, "metadata": document.metadata})
            files.setdefault(name.partition("#")[0], []).append(length)
    if as_json:
        echo_json("list", {"count": len(records), "documents": records})
    for name, lengths in () if as_json else files.items():
        number = f" ({len(lengths):,} records)" if len(lengths) > 1 else ""
        click.echo(f"{sum(lengths):>11,}  {name}{number}")
    if not records and not quiet:
        warn("the index is empty")
    return ExitStatus.SUCCESS if records else ExitStatus.NO_RESULTS


def documents_of(graph: NodeGraph) -> Iterator[Node]:
    """Yield the documents of a graph in batches."""
    ids = iter(graph.reader.document_ids())
    while batch := list(islice(ids, _BATCH)):
        yield from graph.reader.nodes_by_id(batch)


@click.command()
@click.argument("document", metavar="DOCUMENT[:LINE]")
@store_option
@common_options
def show(document: str, store: Path | None, as_json: bool, quiet: bool) -> int:
    """Show the text of a DOCUMENT, or the lines around LINE.

    \b
    nodekin show docs/tea.md
    nodekin show docs/tea.md:12
    """
    home, settings = find_index(store)
    with open_graph(home, settings, quiet=quiet) as graph:
        node, line = find_document(graph, document)
        if as_json:
            nodes = [
                {"id": n.id, "line": line_of(n), "start": n.start, "end": n.end, "text": n.text}
                for n in graph.find("passage")(node)
            ]
            path = node.metadata.get("file_path")
            record = {"id": node.id, "path": path, "text": node.text, "metadata": node.metadata}
            echo_json("show", {**record, "nodes": nodes})
        else:
            for text in _lines(node.text, line):
                click.echo(text)
    return ExitStatus.SUCCESS


def find_document(graph: NodeGraph, name: str) -> tuple[Node, int | None]:
    """Return the document of an id or path, and the line after it.

    Raises:
        CommandError: If the name is unknown or ambiguous.
    """
    numbered = re.fullmatch(r"(.+):([0-9]{1,9})", name)
    requested = [(name, None), (numbered[1], int(numbered[2]))] if numbered else [(name, None)]
    ids = graph.reader.document_ids()
    for text, line in requested:
        path = Path(text).expanduser().absolute().as_posix()
        found = [text] if text in ids else []
        found = found or [i for i in ids if Path(i).name == text or path.endswith(f"/{i}")]
        if len(found) > 1:
            names = ", ".join(sorted(found)[:8])
            raise CommandError(f"{text!r} is ambiguous: {names}; give the complete name")
        if found:
            return graph.node(found[0]), line
    raise CommandError(
        f"the index has no document {name!r:.200}; it has {nearest_names(name, ids)}"
    )


def _lines(text: str, line: int | None) -> Sequence[str]:
    """Return the lines of a text, or the lines around a line with their numbers."""
    lines = [printable(entry) for entry in text.split("\n")]
    if line is None:
        return lines
    if not 1 <= line <= len(lines):
        raise CommandError(f"the line must be from 1 to {len(lines):,}, got {line}")
    first, last = max(1, line - _AROUND), min(len(lines), line + _AROUND)
    width = len(str(last))
    return [
        click.style(f"{number:>{width}}  ", fg="green" if number == line else None, dim=True)
        + lines[number - 1]
        for number in range(first, last + 1)
    ]


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="DOCUMENT|FOLDER...")
@store_option
@common_options
def remove(names: tuple[str, ...], store: Path | None, as_json: bool, quiet: bool) -> int:
    """Remove documents or folders from an index. The files stay.

    'nodekin index' adds them again only if they are named.

    \b
    nodekin remove docs/drafts docs/old.md
    """
    home, settings = find_index(store)
    assert home is not None
    with open_graph(home, settings, quiet=quiet) as graph:
        before = len(graph.reader.document_ids())
        items = [_removable(graph, settings.sources, name) for name in names]
        graph.remove(items)
        gone = [item for item in items if isinstance(item, Path)]
        kept = [s for s in settings.sources if not any(s.is_relative_to(path) for path in gone)]
        home.save(replace(settings, sources=tuple(kept)))
        rest = len(graph.reader.document_ids())
    if as_json:
        echo_json("remove", {"removed": before - rest, "documents": rest})
    elif not quiet:
        click.echo(message("removed", count=before - rest, rest=rest))
    return ExitStatus.SUCCESS


def _removable(graph: NodeGraph, sources: Sequence[Path], name: str) -> Path | str:
    """Return a file or folder, or the id of a document without a file."""
    path = Path(name).expanduser().absolute()
    if any(source.is_relative_to(path) for source in sources):
        return path
    is_inside = any(path.is_relative_to(source) for source in sources)
    if is_inside and (path.is_dir() or not path.exists()):
        files = (str(node.metadata.get("file_path", "")) for node in documents_of(graph))
        if any(file.startswith(f"{path}/") for file in files):
            return path
    node, _ = find_document(graph, name)
    file = node.metadata.get("file_path")
    return Path(str(file)) if file and "#" not in node.id else node.id
