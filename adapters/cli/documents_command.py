"""The commands ``nodekin list``, ``show``, ``remove`` and ``status``, which manage documents."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import click
from rich.cells import cell_len

from ...nodegraph.errors import ModelError, nearest_names
from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import ROOT, Node
from ...nodegraph.readers.source_files import file_id_of
from ...nodegraph.storage.sqlite import faults_of
from ...nodegraph.text_forms import composed, stored_path
from ...retrievers.corpus_tools.corpus_view import CorpusView
from ...retrievers.corpus_tools.tool_output import ToolError
from ..changed_files import newer_files
from . import workspace
from .messages import (
    CommandError,
    ExitStatus,
    group_sizes,
    message,
    printable,
    translated,
    with_short_paths,
)
from .options import common_options, store_option
from .output import containing_file, document_name, echo_json, node_record

_NAMED = 2_000  # maximum number of documents whose names are compared with an unknown name

_AROUND = 10  # number of lines to print before and after the requested line


@click.command("list")
@store_option
@common_options
def list_command(store: Path | None, json: bool, quiet: bool) -> int:
    """List the documents of an index with their number of characters.

    All records of a file are listed in one line.
    """
    records = []
    files: dict[str, list[int]] = {}  # the lengths of the documents in each file
    with workspace.open_graph(workspace.find_index(store), quiet=quiet) as graph:
        for document in CorpusView(graph, ROOT).documents():
            length = len(document.text)
            record = {
                "id": document.id,
                "path": document.metadata.get("file_path"),
                "characters": length,
                "metadata": document.metadata,
            }
            records.append(record)
            files.setdefault(containing_file(document), []).append(length)
    if json:
        echo_json("list", {"count": len(records), "documents": records})
    else:
        for name, lengths in files.items():
            line = f"{sum(lengths):>11,}  {name}"
            if len(lengths) > 1:
                line += message("records", count=len(lengths))
            click.echo(line)
    return ExitStatus.SUCCESS if records else ExitStatus.NO_RESULTS


@click.command("show")
@click.argument("document", metavar="DOCUMENT[:LINE]")
@store_option
@common_options
def show_command(document: str, store: Path | None, json: bool, quiet: bool) -> None:
    """Show the text of a DOCUMENT, or the lines around LINE.

    \b
    nodekin show docs/tea.md
    nodekin show docs/tea.md:12
    """
    numbered = re.fullmatch(r"(.+):([1-9][0-9]{0,8})", document)
    with workspace.open_graph(workspace.find_index(store), quiet=quiet) as graph:
        if records := _records_of(graph, document):
            return _show_records(document, records, json=json)
        node = _find_document(graph, numbered[1] if numbered else document)
        nodes = [node_record(passage) for passage in graph.find("passage")(node)]
    if json:
        record = {"id": node.id, "path": node.metadata.get("file_path"), "text": node.text}
        return echo_json("show", {**record, "metadata": node.metadata, "nodes": nodes})
    rows = lines = printable(node.text).split("\n")
    if numbered:
        at = min(int(numbered[2]), len(lines))
        numbers = range(max(1, at - _AROUND), min(len(lines), at + _AROUND) + 1)
        rows = [click.style(f"{n:>5}  ", dim=n != at) + lines[n - 1] for n in numbers]
    click.echo("\n".join(rows))


def _records_of(graph: NodeGraph, name: str) -> list[Node]:
    """Return the records of a file by its path or name, such as the lines of a JSON Lines file."""
    view = CorpusView(graph, ROOT)
    name = composed(name)
    path = Path(name).absolute().as_posix()
    ids = [composed(i) for i in graph.reader.document_ids() if "#" in i]
    # the part of each id before each "#", because file names may contain "#" as well
    starts: set[str] = set()
    for document_id in ids:
        starts.update(document_id[: sign.start()] for sign in re.finditer("#", document_id))
    for file in sorted(starts):
        is_named = file == name or file.endswith(f"/{name}") or path.endswith(f"/{file}")
        if is_named and (records := view.records(file)):
            return records
    return []


def _show_records(name: str, records: Sequence[Node], *, json: bool) -> None:
    """Print the records of a file. Each record is preceded by its id."""
    if json:
        rows = [{"id": record.id, "text": record.text} for record in records]
        path = records[0].metadata.get("file_path")
        return echo_json("show", {"id": name, "path": path, "records": rows})
    for record in records:
        click.echo(click.style(document_name(record), bold=True))
        click.echo(f"{printable(record.text)}\n")


def _find_document(graph: NodeGraph, name: str) -> Node:
    """Find a document by its path, id, title or file name.

    Raises:
        CommandError: If the name is unknown or ambiguous.
    """
    path = composed(Path(name).absolute().as_posix())
    below = [i for i in graph.reader.document_ids() if path.endswith(f"/{composed(i)}")]
    view = CorpusView(graph, ROOT)
    try:
        return view.document(max(below, key=len, default=name))
    except ToolError as error:
        message = str(error).partition(". outline")[0]
        if message.startswith("unknown document"):
            names = [document_name(node) for node in islice(view.documents(), _NAMED)]
            message = f"unknown document {name!r:.200}; known: {nearest_names(name, names)}"
        raise CommandError(message) from error


@click.command("remove")
@click.argument("names", nargs=-1, required=True, metavar="DOCUMENT|FOLDER...")
@store_option
@common_options
def remove_command(names: tuple[str, ...], store: Path | None, json: bool, quiet: bool) -> None:
    """Remove documents or folders from an index. The files are not deleted.

    After that, 'nodekin index' adds these files again only if you name them.

    \b
    nodekin remove docs/drafts docs/old.md
    """
    with workspace.open_graph(workspace.find_index(store), quiet=quiet) as graph:
        before = graph.groups[ROOT].size
        graph.remove([_removable(graph, name) for name in names])
        rest = graph.groups[ROOT].size
    if json:
        echo_json("remove", {"removed": before - rest, "documents": rest})
    elif not quiet:
        click.echo(message("removed documents", count=before - rest, rest=rest))


def _removable(graph: NodeGraph, name: str) -> Path | str:
    """Return the file or folder with a name, or the id of a document that has no file."""
    path = Path(name).absolute()
    documents = CorpusView(graph, ROOT).documents()
    files = (Path(str(file)) for node in documents if (file := node.metadata.get("file_path")))
    stored = stored_path(path, (*graph.sources, *files))
    if stored is not None:
        return stored
    node = _find_document(graph, name)
    file = node.metadata.get("file_path")
    is_record = file_id_of(node.id, str(file or "")) != node.id
    if not file or is_record:
        return node.id
    return Path(str(file))


@click.command("status")
@store_option
@click.option("--check", is_flag=True, help="Check the file for damage.")
@common_options
def status_command(store: Path | None, check: bool, json: bool, quiet: bool) -> None:
    """Show the size of an index, missing embeddings, newer files, and failures."""
    index = workspace.find_index(store)
    if check:
        _check_file(index.graph_file)
    model: Any = None
    problem = ""
    try:
        model = workspace.model_of(index)
    except (CommandError, ImportError, ModelError) as error:
        problem = str(error)
    with workspace.open_graph(index, quiet=True, model=model) as graph:
        facts = _facts(graph, index)
        problems = _problems(graph, index, problem)
        reasons = [workspace.reason_of(failure) for failure in graph.failures]
    if json:
        return echo_json("status", {**facts, **problems})
    for line in _status_lines(facts, problems, reasons):
        click.echo(printable(with_short_paths(line)))


def _check_file(file: Path) -> None:
    """Check whether the file of a graph is damaged.

    Raises:
        CommandError: If the file is damaged.
    """
    if faults := "; ".join(faults_of(file)):
        raise CommandError(
            f"{file} is damaged: {faults}; restore a backup, or read the sources "
            "again: nodekin index FOLDER --rebuild",
            ExitStatus.INDEX_ERROR,
        )


def _facts(graph: NodeGraph, index: workspace.Workspace) -> dict[str, Any]:
    """Return the locations and sizes of an index."""
    documents = list(CorpusView(graph, ROOT).documents())
    encodings = Counter(str(each.metadata.get("encoding", "utf-8")) for each in documents)
    return {
        "store": str(index.folder.absolute()),
        "sources": [str(source) for source in graph.sources],
        "documents": len(documents),
        "encodings": dict(encodings.most_common()),
        "groups": {group.name: group.size for group in graph.groups.values() if group.built},
        "embeddings": index.embed or None,
        "bytes": sum(file.stat().st_size for file in index.folder.iterdir() if file.is_file()),
    }


def _problems(graph: NodeGraph, index: workspace.Workspace, problem: str) -> dict[str, Any]:
    """Describe everything that is missing from an index, and the notes on its documents."""
    failed: list[str] = []
    unread: list[str] = []
    for failure in graph.failures:
        kind = failed if workspace.is_read_error(failure) else unread
        kind.append(str(failure.error))
    is_copy = graph.reader.is_read_only
    return {
        "embeddings_error": problem or None,
        "missing_embeddings": workspace.missing_vectors(graph),
        "newer_files": newer_files(graph.sources, index.updated, is_copy=is_copy),
        "failures": len(failed),
        "notes": _notes(graph),
        "unread": unread,
        "left_out": failed,
    }


def _notes(graph: NodeGraph) -> list[str]:
    """Return the notes on documents, each preceded by the path of the file."""
    notes = []
    for document in CorpusView(graph, ROOT).documents():
        path = document.metadata.get("file_path", document.id)
        for note in document.metadata.get("read_notes", ()):
            notes.append(f"{path}: {translated(workspace.with_options(note), 'note')}")
    return notes


def _status_lines(
    facts: Mapping[str, Any], problems: Mapping[str, Any], reasons: Sequence[str]
) -> Iterator[str]:
    """Yield a line for each fact about an index and for each problem."""
    for name, value in facts.items():
        label = message(f"fact {name}")
        yield label + " " * (12 - cell_len(label)) + _in_words(name, value)
    if problem := problems["embeddings_error"]:
        yield message("model problem", reason=problem)
    if missing := problems["missing_embeddings"]:
        yield message("words only", count=missing)
    if newer := problems["newer_files"]:
        yield message("stale", count=newer)
    yield from problems["notes"]
    for reason in reasons:
        yield message("left out", reason=translated(reason))


def _in_words(name: str, value: Any) -> str:
    if name == "groups":
        sizes = {group: size for group, size in value.items() if group != ROOT}
        return group_sizes(sizes) or message("not built")
    if name == "encodings":
        value = [f"{count:,} {encoding}" for encoding, count in value.items()]
    if isinstance(value, list):
        value = message("comma").join(value)
    if isinstance(value, int):
        return f"{value:,}"
    return str(value or message("none"))
