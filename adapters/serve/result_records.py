"""What a search found, and how, as the page shows it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...nodegraph.node import Node
from ...retrievers.results import Evidence, ScoredNode
from ...retrievers.tracing import Span
from .corpus_pages import place_in, title_of

_TEXT = 2_400  # characters of a result

_HIT = 400  # characters of what matched


def result_records(results: Sequence[ScoredNode]) -> list[dict[str, Any]]:
    """Return results: where each stands, what it says, and every way it was found.

    ``text`` is three parts: before what matched best, that, and behind it; the first two are empty
    where the result itself matched.
    """
    return [
        {
            "rank": rank,
            "score": plain_number(result.score),
            "text": _parts(result),
            "cut": len(result.node.text) > _TEXT,
            "matches": [_match_record(match, result.node) for match in result.evidence],
            **node_record(result.node),
        }
        for rank, result in enumerate(results, 1)
    ]


def node_record(node: Node) -> dict[str, Any]:
    """Return where a node stands."""
    return {
        "id": node.id,
        "group": node.group,
        "document": node.document_id or node.id,
        "title": title_of(node),
        "place": place_in(node),
        "start": node.start,
        "end": node.end,
    }


def _parts(result: ScoredNode) -> tuple[str, str, str]:
    node = result.node
    text = node.text
    for match in result.evidence[:1]:
        hit = match.node
        if hit.id == node.id or hit.start is None or node.start is None:
            continue
        begin, end = hit.start - node.start, (hit.end or 0) - node.start
        if hit.document_id == node.document_id and 0 <= begin < end <= len(text):
            first = max(0, min(begin, end - _TEXT))
            before = ("… " if first else "") + text[first:begin]
            return before, text[begin:end][:_TEXT], text[end : first + _TEXT]
    return "", "", text[:_TEXT]


def _match_record(match: Evidence, result: Node) -> dict[str, Any]:
    return {
        "id": match.node.id,
        "group": match.group,
        "itself": match.node.id == result.id,
        "text": match.node.text[:_HIT],
        "score": plain_number(match.score),
        "similarity": match.similarity,
        "embed_key": match.embed_key,
        "share": plain_number(match.share),
        "query": match.query,
        "searched_with": list(match.searched_with),
        "variants": [
            {"query": one.query, "strategy": one.strategy, "note": one.note}
            for one in match.variants
        ],
    }


def plain_number(number: float | None) -> float | None:
    """Return a number that JSON has; None for those it has not."""
    return None if number is None or not math.isfinite(number) else float(number)


def stage_record(span: Span) -> dict[str, Any]:
    """Return what a stage of a search did, and the stages within it."""
    return {
        "name": span.name,
        "attributes": {key: str(value)[:200] for key, value in span.attributes.items()},
        "milliseconds": plain_number(None if span.seconds is None else 1000 * span.seconds),
        "error": None if span.error is None else f"{type(span.error).__name__}: {span.error}",
        "children": [stage_record(child) for child in span.children],
    }
