"""``nodekin groups``: what an index holds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ...retrievers.composite.default_retriever import DefaultRetriever
from .exit_status import EXIT_STATUSES, ExitStatus
from .options import common_options, folders_option, store_option
from .output import FORMAT, echo, to_json
from .snippet import columns, pad
from .workspace import IndexSettings, find_index, open_graph

JSON_FORMAT = """\b
With --json: {"format": 1, "command": "groups", "store", "documents",
  "embeddings": the model or null, "groups": [{"name", "parent", "transform",
  "nodes", "built", "main", "searched", "embedded"}]}
Results are of the main group unless --group says otherwise; searched are its
words and those of its sentences, which are what is embedded.
"""


@click.command(epilog=f"{JSON_FORMAT}\n{EXIT_STATUSES}")
@folders_option("What a folder would give, read into memory and built.")
@store_option
@common_options
def groups(folders: tuple[Path, ...], store: Path | None, as_json: bool, quiet: bool) -> int:
    """List the groups of an index: how many nodes, made by what, of what, built or not."""
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
