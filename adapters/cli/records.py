"""The plain values that ``--json`` prints; their names and meaning stay."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ...nodegraph import Node
    from ...retrievers import Evidence, ScoredNode, Stage

FORMAT = 1
"""The number of the form, told in every document; fields may come, none goes or changes."""


def to_json(record: Mapping[str, Any], *, indent: int | None = 2) -> str:
    """Write a record; what JSON has no form for becomes its text."""
    return json.dumps(record, ensure_ascii=False, indent=indent, default=str)


class Places:
    """Tell where nodes stand in their documents; read each document once."""

    def __init__(self) -> None:
        self._breaks: dict[str, list[int]] = {}

    def line(self, node: Node, offset: int = 0) -> int | None:
        """Return the line of a node in its document, from 1; None where it was not cut out."""
        if node.start is None or not node.document_id or node.graph is None:
            return None
        if node.document_id not in self._breaks:
            text = node.root.text
            self._breaks[node.document_id] = [at for at, c in enumerate(text) if c == "\n"]
        return bisect_right(self._breaks[node.document_id], node.start + offset - 1) + 1


def result_record(rank: int, result: ScoredNode, places: Places) -> dict[str, Any]:
    """Return one result: where it is, what it says, how it was found."""
    node = result.node
    return {
        "rank": rank,
        "score": result.score,
        **_node_record(node, places),
        "path": node.metadata.get("file_path"),
        "text": _text(node),
        "metadata": node.metadata,
        "matches": [_match_record(match, places) for match in result.evidence],
    }


def _node_record(node: Node, places: Places) -> dict[str, Any]:
    return {
        "id": node.id,
        "group": node.group,
        "document": node.document_id or None,
        "line": places.line(node),
        "start": node.start,
        "end": node.end,
    }


def _match_record(match: Evidence, places: Places) -> dict[str, Any]:
    return {
        **_node_record(match.node, places),
        "score": match.score,
        "similarity": match.similarity,
        "query": match.query,
        "embed_key": match.embed_key,
        "share": match.share,
        "forms": [
            {"strategy": form.strategy, "query": form.query, "note": form.note}
            for form in match.forms
        ],
        "text": match.node.text,
    }


def _text(node: Node) -> str:
    return node.content if isinstance(node.content, str) else node.text


def stage_record(stage: Stage) -> dict[str, Any]:
    """Return what a stage of a retrieval did, and the stages within it."""
    return {
        "name": stage.name,
        "facts": {key: _plain(value) for key, value in stage.facts.items()},
        "seconds": stage.seconds,
        "error": None if stage.error is None else f"{type(stage.error).__name__}: {stage.error}",
        "stages": [stage_record(each) for each in stage.stages],
    }


def _plain(value: Any) -> Any:
    plain = str | int | float | bool | None
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value if isinstance(value, plain) else repr(value)
