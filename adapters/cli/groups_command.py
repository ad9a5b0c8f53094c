"""``nodekin groups``: what an index holds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .errors import EXIT_STATUSES, SUCCESS
from .options import common_options, folders_option, store_option
from .output import FORMAT, echo, to_json
from .snippet import columns, pad
from .workspace import Corpus, open_corpus

if TYPE_CHECKING:
    from ...nodegraph import GroupSummary

JSON_FORMAT = """\b
With --json: {"format": 1, "command": "groups", "store", "documents",
  "embeddings": the model or null, "groups": [{"name", "parent", "transform",
  "nodes", "built", "main"}]}
The main group is searched unless --group says otherwise, and is the one embedded.
"""


@click.command(epilog=f"{JSON_FORMAT}\n{EXIT_STATUSES}")
@folders_option("What a folder would give, read into memory and built.")
@store_option
@common_options
def groups(folders: tuple[Path, ...], store: Path | None, as_json: bool, quiet: bool) -> int:
    """List the groups of an index: how many nodes, made by what, of what, built or not."""
    with open_corpus(store, folders, quiet=quiet) as corpus:
        if folders:
            corpus.graph.build(*(rule.name for rule in corpus.settings.groups), on_error="skip")
        records = [_record(corpus, summary) for summary in corpus.graph.groups.values()]
        where = None if corpus.home is None else str(corpus.home.folder.absolute())
        if as_json:
            header = {"format": FORMAT, "command": "groups", "store": where}
            counts = {"documents": records[0]["nodes"], "embeddings": corpus.settings.embed or None}
            echo(to_json({**header, **counts, "groups": records}))
        else:
            for line in _table(records, corpus.settings.embed):
                echo(line)
    return SUCCESS


_PREDEFINED = {"CoarseChunk": "chunks:1024:100", "MediumChunk": "chunks:256:25"}

_PREDEFINED["FineChunk"] = "chunks:128:12"


def _record(corpus: Corpus, summary: GroupSummary) -> dict[str, Any]:
    transforms = {
        **_PREDEFINED,
        **{rule.name: rule.transform_spec for rule in corpus.settings.groups},
    }
    return {
        "name": summary.name,
        "parent": summary.parent,
        "transform": transforms.get(summary.name),
        "nodes": summary.size,
        "built": summary.built,
        "main": summary.name == corpus.settings.main_group,
    }


def _table(records: Sequence[dict[str, Any]], embed: str) -> list[str]:
    head = ("group", "parent", "nodes", "transform", "")
    rows = [
        (
            record["name"],
            record["parent"] or "",
            str(record["nodes"]) if record["built"] else "-",
            record["transform"] or "documents",
            _remark(record, embed),
        )
        for record in records
    ]
    widths = [max(columns(row[at]) for row in (head, *rows)) for at in range(5)]
    return [
        "  ".join(
            " " * (width - columns(cell)) + cell if at == 2 else pad(cell, width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in (head, *rows)
    ]


def _remark(record: dict[str, Any], embed: str) -> str:
    if record["main"]:
        return f"searched by default{f', embedded by {embed}' if embed else ''}"
    return "" if record["built"] else "built when it is first searched"
