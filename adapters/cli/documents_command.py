"""``nodekin list``, ``show``, ``remove`` and ``groups``: what an index has."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import Any

import click

from ...nodegraph.errors import ReadError, nearest_names
from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import Node
from ...nodegraph.readers.text import PAGE_BREAK
from .exit_status import EXIT_STATUSES, CommandError, ExitStatus, printable
from .options import common_options, folders_option, store_option
from .output import FORMAT, LineNumbers, columns, document_name, echo, pad, to_json
from .workspace import IndexSettings, find_index, open_graph

LIST_FORMAT = """\b
With --json: {"format": 1, "command": "list", "count", "documents": [{"id",
  "path", "characters", "metadata"}]}
"""

_AT_ONCE = 200  # documents whose texts are in memory


@click.command("list", epilog=f"{LIST_FORMAT}\n{EXIT_STATUSES}")
@click.argument("patterns", nargs=-1, metavar="[FOLDER|PATTERN]...")
@folders_option("What a folder would give, read into memory.")
@store_option
@common_options
def list_documents(
    patterns: tuple[str, ...],
    folders: tuple[Path, ...],
    store: Path | None,
    as_json: bool,
    quiet: bool,
) -> int:
    """List the documents of an index, or those in a FOLDER or that a PATTERN fits, with their
    length in characters.

    \b
    nodekin list
    nodekin list docs/guides "*.md"
    """
    home, settings = find_index(store, folders)
    records = []
    with open_graph(home, settings, folders, quiet=quiet) as graph:
        for document in documents_of(graph):
            name = document_name(document)
            if patterns and not any(_fits(name, pattern) for pattern in patterns):
                continue
            records.append(
                {
                    "id": document.id,
                    "path": document.metadata.get("file_path"),
                    "characters": len(document.text),
                    "metadata": document.metadata,
                }
            )
            if not as_json:
                echo(f"{len(document.text):>11,}  {name}")
    if not (records or quiet):
        fits = f"fits {' '.join(map(repr, patterns))[:200]}" if patterns else "is in the index"
        click.echo(printable(f"no document {fits}"), err=True)
    if as_json:
        header = {"format": FORMAT, "command": "list", "count": len(records)}
        echo(to_json({**header, "documents": records}))
    return ExitStatus.SUCCESS if records else ExitStatus.NO_RESULTS


def documents_of(graph: NodeGraph) -> Iterator[Node]:
    """Yield the documents of a graph; few of their texts are in memory at a time."""
    ids = iter(graph.reader.document_ids())
    while batch := list(islice(ids, _AT_ONCE)):
        yield from graph.reader.nodes_by_id(batch)


def _fits(name: str, pattern: str) -> bool:
    """Return whether a document is what a pattern names, fits it, or lies in the folder."""
    below = pattern.rstrip("/\\") + "/"
    return name == pattern or name.startswith(below) or fnmatchcase(name, pattern)


SHOW_FORMAT = """\b
With --json: {"format": 1, "command": "show", "id", "path", "text", "metadata",
  "nodes": [{"id", "line", "start", "end", "text"}] of the group}
With --page or --quote: {..., "id", "path", "picture": its path or null,
  "locations": [{"page", "rectangle", "lines", "cells"}]}
"""

_AROUND = 10  # lines before and after the one that is named


@click.command(epilog=f"{SHOW_FORMAT}\n{EXIT_STATUSES}")
@click.argument("document", metavar="DOCUMENT[:LINE]")
@click.option("-g", "--group", metavar="NAME", help="Show its nodes in this group, one by one.")
@click.option(
    "--page",
    type=click.IntRange(1),
    help="Make a picture of this page of a PDF; of others print it.",
)
@click.option("--quote", metavar="TEXT", help="Mark a text: on its page, in its lines, its cells.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="File for the picture.")
@folders_option("Read this folder or file into memory in place of an index.")
@store_option
@common_options
def show(
    document: str,
    group: str | None,
    page: int | None,
    quote: str | None,
    output: Path | None,
    folders: tuple[Path, ...],
    store: Path | None,
    as_json: bool,
    quiet: bool,
) -> int:
    """Show the text of a DOCUMENT as it was read, or the lines around one LINE of it.

    \b
    nodekin show docs/tea.md
    nodekin show docs/tea.md:12
    nodekin show docs/tea.md --group sentence
    nodekin show docs/tea.pdf --page 3
    nodekin show docs/tea.pdf --quote "green tea is steamed" -o page.png
    """
    is_page = page is not None or quote is not None
    if quote is not None and not re.search(r"\w", quote):
        message = f"--quote {quote!r:.80} has no word; give a text of the document, or leave it out"
        raise CommandError(message, ExitStatus.USAGE_ERROR)
    if group and is_page:
        message = f"--group {group!r:.80} lists nodes; leave it out, or --page and --quote"
        raise CommandError(message, ExitStatus.USAGE_ERROR)
    if output is not None and not is_page:
        message = f"--output {str(output)!r:.80} is for a picture; give --page or --quote, too"
        raise CommandError(message, ExitStatus.USAGE_ERROR)
    home, settings = find_index(store, folders)
    with open_graph(home, settings, folders, quiet=quiet) as graph:
        node, line = _find(graph, document)
        if is_page:
            if line is not None:
                message = f"{document!r:.200} names a line; with --page and --quote leave it out"
                raise CommandError(message, ExitStatus.USAGE_ERROR)
            return _show_page(node, page, quote, output, as_json)
        line_numbers = LineNumbers()
        nodes = graph.find(group or settings.main_group)(node) if group or as_json else []
        if as_json:
            records = [
                {
                    "id": part.id,
                    "line": line_numbers.line(part),
                    "start": part.start,
                    "end": part.end,
                    "text": part.text,
                }
                for part in nodes
            ]
            header = {"format": FORMAT, "command": "show", "id": node.id}
            path = node.metadata.get("file_path")
            content = {"path": path, "text": node.text, "metadata": node.metadata}
            echo(to_json({**header, **content, "nodes": records}))
        elif group:
            for number, part in enumerate(nodes):
                if number:
                    echo()
                at = line_numbers.line(part)
                position = document_name(node) if at is None else f"{document_name(node)}:{at}"
                echo(click.style(f"{position}  {part.group}", fg="green"))
                echo(printable(part.text))
        else:
            for text in _lines(node.text, line):
                echo(text)
    return ExitStatus.SUCCESS


def _show_page(
    document: Node, page: int | None, quote: str | None, output: Path | None, as_json: bool
) -> int:
    """Make a picture of a page with a quotation marked; show the text where there is none."""
    from ...retrievers.answers.quote_matching import QuoteIndex  # of no other command here

    node, span = document, None
    if quote:
        searched, first, where = document.text, 0, ""
        if page and document.metadata.get("page_unit"):
            pages = document.text.split(PAGE_BREAK)
            searched, where = "".join(pages[page - 1 : page]), f"page {page} of "
            first = sum(len(text) + len(PAGE_BREAK) for text in pages[: page - 1])
        match = QuoteIndex([searched]).find(quote)
        if match is None:
            message = f"{where}{document_name(document)} does not have the text {quote!r:.80}"
            raise CommandError(message, ExitStatus.NO_RESULTS)
        span = start, end = match.spans[0][0] + first, match.spans[0][1] + first
        node = replace(document, text=document.text[start:end], start=start, end=end)
    locations = node.locations if quote else []
    number = page or next((location.page for location in locations), None)
    texts: list[str] = []
    problem = ""
    try:
        from ..files.page_images import page_image

        image = page_image(document, page, span)
    except (ImportError, LookupError, ReadError) as error:
        texts = list(_at_locations(node, number, quote))
        is_text = texts and output is None and document.metadata.get("page_unit") != "page"
        output, problem = None, "" if is_text else str(error)
    else:
        output = output or Path(f"{Path(document_name(document)).stem}-page-{number}.png")
        output.write_bytes(image)
    if as_json:
        header = {"format": FORMAT, "command": "show", "id": document.id}
        path, picture = document.metadata.get("file_path"), output and str(output)
        records = [asdict(location) for location in locations]
        echo(to_json({**header, "path": path, "picture": picture, "locations": records}))
    else:
        for text in texts if output is None else [str(output)]:
            echo(text)
    if problem:
        raise CommandError(f"no picture: {problem}", ExitStatus.INDEX_ERROR)
    return ExitStatus.SUCCESS


def _at_locations(node: Node, page: int | None, quote: str | None) -> Iterator[str]:
    """Yield the page, or else the cells or the lines, where a quotation stands."""
    document = node.root
    text, unit = document.text, document.metadata.get("page_unit")
    pages = text.split(PAGE_BREAK)
    if quote and unit != "page" and node.start is not None and node.end is not None:
        cells = [location for location in node.locations if location.cells]
        for location in cells:
            sheet = f"{unit} {location.page}, " if location.page else ""
            yield f"{document_name(document)}: {sheet}{location.cells}"
        if cells:
            last = text.find("\n", node.end)
            row = text[text.rfind("\n", 0, node.start) + 1 : last if last >= 0 else len(text)]
            yield printable(row)
        else:
            yield from _lines(text, text.count("\n", 0, node.start) + 1)
    elif unit and page and page <= len(pages):
        yield printable(pages[page - 1].strip())
    elif unit and page and unit != "page":
        message = f"{document_name(document)} has the {unit}s 1 to {len(pages)}, not {page}"
        raise CommandError(message, ExitStatus.INDEX_ERROR)


def _find(graph: NodeGraph, name: str) -> tuple[Node, int | None]:
    """Return the document of this id or path, and the line that is named behind it.

    Raises:
        CommandError: If there is none, or several; with those that are like it.
    """
    numbered = re.fullmatch(r"(.+):([0-9]{1,9})", name)
    requested = [(name, None), (numbered[1], int(numbered[2]))] if numbered else [(name, None)]
    ids = graph.reader.document_ids()
    existing = set(ids)
    for text, line in requested:
        path = Path(text).expanduser().absolute()
        matching = [text] if text in existing else []
        if not matching:
            matching = [i for i in ids if Path(i).name == text or path.as_posix().endswith(f"/{i}")]
        if len(matching) > 1:
            listed = ", ".join(sorted(matching)[:8])
            raise CommandError(
                f"{text!r} is several documents: {listed}; name one whole", ExitStatus.USAGE_ERROR
            )
        if matching:
            return graph.node(matching[0]), line
    raise CommandError(
        f"the index has no document {name!r:.200}; it has {nearest_names(name, ids)}",
        ExitStatus.USAGE_ERROR,
    )


def _lines(text: str, line: int | None) -> Sequence[str]:
    """Return the lines of a text, or those around one, with their numbers."""
    lines = text.split("\n")
    if line is None:
        return [printable(entry) for entry in lines]
    if not 1 <= line <= len(lines):
        raise CommandError(
            f"there is no line {line}; the document has {len(lines):,}", ExitStatus.USAGE_ERROR
        )
    first, last = max(1, line - _AROUND), min(len(lines), line + _AROUND)
    width = len(str(last))
    return [
        click.style(f"{number:>{width}}  ", fg="green" if number == line else None, dim=True)
        + printable(lines[number - 1])
        for number in range(first, last + 1)
    ]


REMOVE_FORMAT = """\b
With --json: {"format": 1, "command": "remove", "removed": number of documents,
  "documents": number of those left}
"""


@click.command(epilog=f"{REMOVE_FORMAT}\n{EXIT_STATUSES}")
@click.argument("names", nargs=-1, required=True, metavar="DOCUMENT|FOLDER...")
@store_option
@common_options
def remove(names: tuple[str, ...], store: Path | None, as_json: bool, quiet: bool) -> int:
    """Take documents or folders out of an index; the files stay.

    They stay out when 'nodekin index' brings the index up to date, until they are named to it.

    \b
    nodekin remove docs/drafts
    nodekin remove docs/old.md notes.txt
    """
    home, settings = find_index(store, ())
    assert home is not None  # without folders there is one, or an error
    with open_graph(home, settings, quiet=quiet) as graph:
        before = graph.reader.document_ids()
        items = [_removable(graph, settings.sources, name) for name in names]
        graph.remove(items)
        gone = [item for item in items if isinstance(item, Path)]
        sources = tuple(
            source
            for source in settings.sources
            if not any(path == source or path in source.parents for path in gone)
        )
        home.save(replace(settings, sources=sources))
        remaining = len(graph.reader.document_ids())
    removed = len(before) - remaining
    if as_json:
        header = {"format": FORMAT, "command": "remove"}
        echo(to_json({**header, "removed": removed, "documents": remaining}))
    elif not quiet:
        echo(f"removed {counted(removed, 'document')}; {remaining:,} left in {home.folder}")
    return ExitStatus.SUCCESS


def _removable(graph: NodeGraph, sources: Sequence[Path], name: str) -> Path | str:
    """Return the file or folder of that name, or the id of a document that has no file."""
    path = Path(name).expanduser().absolute()
    if path in sources or any(path in source.parents for source in sources):
        return path
    within = any(source in path.parents for source in sources)
    if within and (path.is_dir() or not path.exists()):
        prefix = f"{path}/"
        files = (str(node.metadata.get("file_path", "")) for node in documents_of(graph))
        if any(file.startswith(prefix) for file in files):
            return path
    node, _ = _find(graph, name)
    file = node.metadata.get("file_path")
    return Path(str(file)) if file and "#" not in node.id else node.id


def counted(number: int, what: str) -> str:
    """Return a number with its noun: "1 document", "2 documents"."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


GROUPS_FORMAT = """\b
With --json: {"format": 1, "command": "groups", "store", "documents",
  "embeddings": the model or null, "groups": [{"name", "parent", "transform",
  "nodes", "built", "main", "searched", "embedded"}]}
Results are of the main group unless --group says otherwise; searched are its
words and those of its sentences, which are what is embedded.
"""


@click.command(epilog=f"{GROUPS_FORMAT}\n{EXIT_STATUSES}")
@folders_option("What a folder would give, read into memory and built.")
@store_option
@common_options
def groups(folders: tuple[Path, ...], store: Path | None, as_json: bool, quiet: bool) -> int:
    """List the groups of an index: how many nodes, made by what, of what, built or not."""
    from ...retrievers.composite.default_retriever import DefaultRetriever  # of no other command

    home, settings = find_index(store, folders)
    with open_graph(home, settings, folders, quiet=quiet) as graph:
        if folders:
            graph.build(*(rule.name for rule in settings.groups), on_error="skip")
        default = DefaultRetriever(graph)
        rules = {rule.name: rule.transform_spec for rule in settings.groups}
        transforms = {**_PREDEFINED, default.sentences: "sentences", **rules}
        records = [
            {
                "name": group.name,
                "parent": group.parent,
                "transform": transforms.get(group.name),
                "nodes": group.size,
                "built": group.built,
                "main": group.name == settings.main_group,
                "searched": group.name in (default.target, default.sentences),
                "embedded": bool(settings.embed) and group.name == default.sentences,
            }
            for group in graph.groups.values()
        ]
    if as_json:
        where = None if home is None else str(home.folder.absolute())
        header = {"format": FORMAT, "command": "groups", "store": where}
        counts = {"documents": records[0]["nodes"], "embeddings": settings.embed or None}
        echo(to_json({**header, **counts, "groups": records}))
    else:
        for line in _table(records, settings):
            echo(line)
    return ExitStatus.SUCCESS


_PREDEFINED = {
    "CoarseChunk": "chunks:1024:100",
    "MediumChunk": "chunks:256:25",
    "FineChunk": "chunks:128:12",
}


def _table(records: Sequence[dict[str, Any]], settings: IndexSettings) -> list[str]:
    rows = [("group", "parent", "nodes", "transform", "")]
    for record in records:
        remark = "" if record["built"] else "built when it is first searched"
        if record["searched"]:
            remark = "searched by default"
        if record["embedded"]:
            remark += f", embedded by {settings.embed}"
        nodes = str(record["nodes"]) if record["built"] else "-"
        transform = record["transform"] or "documents"
        rows.append((record["name"], record["parent"] or "", nodes, transform, remark))
    name, parent, number, made_by, _ = (
        max(map(columns, column)) for column in zip(*rows, strict=True)
    )
    return [
        f"{pad(row[0], name)}  {pad(row[1], parent)}  {row[2]:>{number}}  "
        f"{pad(row[3], made_by)}  {row[4]}".rstrip()
        for row in rows
    ]
