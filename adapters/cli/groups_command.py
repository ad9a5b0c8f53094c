"""``nodekin groups``: what an index holds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .errors import FOUND, MEANINGS
from .options import common_options, store_option
from .workspace import Opened, opened

if TYPE_CHECKING:
    from ...nodegraph import GroupSummary

JSON_FORM = """\b
With --json: {"format": 1, "command": "groups", "store", "documents",
  "embeddings": the model or null, "groups": [{"name", "parent", "transform",
  "nodes", "built", "main"}]}
The main group is searched unless --group says otherwise, and is the one embedded.
"""


@click.command(short_help="List what an index holds.", epilog=f"{JSON_FORM}\n{MEANINGS}")
@click.option(
    "--in",
    "folders",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="What a folder would give, read into memory and built.",
)
@store_option
@common_options
def groups(folders: tuple[Path, ...], store: Path | None, as_json: bool, quiet: bool) -> int:
    """List the groups of an index: how many nodes, made by what, of what, built or not."""
    from .output import FORMAT, echo, to_json

    with opened(store, folders, quiet=quiet) as corpus:
        if folders:
            corpus.graph.build(*(rule.name for rule in corpus.settings.groups), on_error="skip")
        records = [_record(corpus, summary) for summary in corpus.graph.groups.values()]
        where = None if corpus.home is None else str(corpus.home.folder.absolute())
        if as_json:
            form = {"format": FORMAT, "command": "groups", "store": where}
            told = {"documents": records[0]["nodes"], "embeddings": corpus.settings.embed or None}
            echo(to_json({**form, **told, "groups": records}))
        else:
            for line in _table(records, corpus.settings.embed):
                echo(line)
    return FOUND


_PREDEFINED = {"CoarseChunk": "chunks:1024:100", "MediumChunk": "chunks:256:25"}

_PREDEFINED["FineChunk"] = "chunks:128:12"


def _record(corpus: Opened, summary: GroupSummary) -> dict[str, Any]:
    made_by = {
        **_PREDEFINED,
        **{rule.name: rule.made_by for rule in corpus.settings.groups},
    }
    return {
        "name": summary.name,
        "parent": summary.parent,
        "transform": made_by.get(summary.name),
        "nodes": summary.size,
        "built": summary.built,
        "main": summary.name == corpus.settings.main_group,
    }


def _table(records: Sequence[dict[str, Any]], embed: str) -> list[str]:
    from .snippet import columns, pad

    head = ("group", "parent", "nodes", "transform", "")
    rows = [
        (
            each["name"],
            each["parent"] or "",
            str(each["nodes"]) if each["built"] else "-",
            each["transform"] or "documents",
            _remark(each, embed),
        )
        for each in records
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
