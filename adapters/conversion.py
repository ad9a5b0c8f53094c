"""Convert nodes and results to another framework's and back: what all adapters share."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict
from typing import Any

from ..nodegraph.document import Document
from ..nodegraph.node import Node
from ..retrievers.results import Evidence, ScoredNode


def node_of(document: Document) -> Node:
    """Make a node of a document that is in no graph, searched as its framework would."""
    search_text = document.search_text
    return Node(document.text, document.metadata, id=document.id, search_text=search_text)


def evidence_dicts(result: ScoredNode) -> list[dict[str, Any]]:
    """Return a result's evidence as dicts that JSON can hold, the best match first.

    Each has the matching node's ``id``, ``group``, ``text``, ``start`` and ``end``, the ``score``
    and ``similarity`` of the match, and the form of the ``query`` that was searched for;
    ``embed_key`` where embeddings were compared, ``share`` where retrievers were fused,
    ``searched_with`` (names of metadata fields) where these were compared with the text,
    ``variants`` (dicts of ``query``, ``strategy``, ``note``) where strategies changed the query.
    """
    return [*map(_evidence_dict, result.evidence)]


def _evidence_dict(match: Evidence) -> dict[str, Any]:
    node = match.node
    fields: dict[str, Any] = {
        "id": node.id,
        "group": node.group,
        "text": node.text,
        "start": node.start,
        "end": node.end,
        **place_fields(node),
        "score": float(match.score),
        "similarity": match.similarity,
        "query": match.query,
    }
    if match.embed_key is not None:
        fields["embed_key"] = match.embed_key
    if match.share is not None:
        fields["share"] = float(match.share)
    if searched := match.searched_with:
        fields["searched_with"] = [*searched]
    if match.variants:
        fields["variants"] = [asdict(form) for form in match.variants]
    return fields


def place_fields(node: Node) -> dict[str, str]:
    """Return metadata that says where a node stands, where its file has pages.

    ``page_label`` (``"12"``, ``"12-13"``; from 1, as both frameworks' readers of PDF write it) and
    ``place`` (``report.pdf, page 12, 3.2 Results``).
    """
    pages = node.pages
    if pages is None:
        return {}
    first, last = pages
    return {"page_label": f"{first}" if first == last else f"{first}-{last}", "place": node.place}


def explain_match(match: Mapping[str, Any]) -> list[str]:
    """Return in words what one of ``evidence_dicts`` says: a line, and one for each variant."""
    key = "" if match.get("embed_key") is None else f" ({match['embed_key']})"
    share = "" if match.get("share") is None else f", which gave {match['share']:.4f}"
    lines = [
        f"  {match['score']:.4f}  {match['group']}  {match['similarity']}{key} for "
        f"{shorten(match['query'])}: {shorten(match['text'])}{share}"
    ]
    for variant in reversed(match.get("variants", [])):
        note = "" if variant["note"] is None else f" ({variant['note']})"
        lines.append(f"    {variant['strategy']} of {shorten(variant['query'])}{note}")
    return lines


def shorten(text: str) -> str:
    """Return a text in quotation marks on one line, cut after 60 characters."""
    line = " ".join(text.split())
    return f'"{line}"' if len(line) <= 60 else f'"{line[:57]}..."'


def input_positions(
    reranked: Iterable[ScoredNode], candidates: Sequence[ScoredNode]
) -> list[int | None]:
    """Return where each result of a reranker was among the candidates; None for a new one.

    Candidates are known by their node object, so that one node can be there twice, or else by
    the node's id.
    """
    by_id = {candidate.node.id: at for at, candidate in enumerate(candidates)}
    by_object = {id(candidate.node): at for at, candidate in enumerate(candidates)}
    return [by_object.get(id(result.node), by_id.get(result.node.id)) for result in reranked]


def inherited_fields(node: Node) -> tuple[list[str], dict[str, Any]]:
    """Return which metadata a node inherits, for ``restore_inherited``.

    Returns:
        The names of the inherited fields, and copies of the inherited values that fields of the
        node's own override.
    """
    own = node.own_metadata
    names = [field for field in node.inherited if field not in own]
    overridden = {field: value for field, value in node.inherited.items() if field in own}
    return names, deepcopy(overridden)


def restore_inherited(
    metadata: dict[str, Any], names: Iterable[str], overridden: Mapping[str, Any]
) -> dict[str, Any]:
    """Take the inherited fields out of a node's metadata; return all that the node inherited."""
    inherited = {field: metadata.pop(field) for field in names if field in metadata}
    return {**inherited, **overridden}


def different_text(node: Node, content: str) -> dict[str, Any]:
    """Return what ``content``, a node's content as a text, loses: ``text`` and ``content``."""
    text = {} if node.text == content else {"text": node.text}
    return text if isinstance(node.content, str) else {**text, "content": deepcopy(node.content)}


def own_metadata(metadata: Mapping[str, Any], inherited: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata that a splitter's part does not have from the node it was split from.

    Values are the same if they are equal and of the same type: 1 is not True.
    """
    return {
        name: value
        for name, value in metadata.items()
        if name not in inherited or inherited[name] != value or repr(inherited[name]) != repr(value)
    }


def is_start(start: Any, part: str, text: str) -> bool:
    """Return whether a part of a text starts where a splitter says."""
    return isinstance(start, int) and start >= 0 and text.startswith(part, start)


def pattern_within(text: str) -> str:
    """Return the pattern of ``like`` for texts that have this text anywhere in them.

    Example:
        >>> pattern_within("100%")
        '%100\\\\%%'
    """
    return "%" + re.sub(r"([%_\\])", r"\\\1", text) + "%"
