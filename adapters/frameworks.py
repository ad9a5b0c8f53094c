"""Helpers for the LangChain and LlamaIndex adapters.

They convert nodes and results and check arguments.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict
from functools import wraps
from typing import Any, TypeVar

from ..nodegraph.document import Document
from ..nodegraph.errors import nearest_names
from ..nodegraph.foreign_names import advice, native_name
from ..nodegraph.node import Node
from ..retrievers.filters import Filters
from ..retrievers.results import Evidence, ScoredNode

R = TypeVar("R")


def node_of(document: Document) -> Node:
    """Convert a document that does not belong to a graph to a node, including its search text."""
    search_text = document.search_text
    return Node(document.text, document.metadata, id=document.id, search_text=search_text)


def evidence_dicts(result: ScoredNode) -> list[dict[str, Any]]:
    """Return the matches that explain a result as JSON-compatible dictionaries, best match first.

    Each dictionary contains the ``id``, ``group``, ``text``, ``start`` and ``end`` of the matching
    node, and the ``score``, ``similarity`` and ``query`` of the match. Some keys are optional:
    ``embed_key`` is present if vectors were compared, ``share`` if the results of several
    retrievers were fused, and ``searched_with`` if metadata fields were compared together with the
    text. If a strategy changed the query, ``variants`` lists the ``query``, ``strategy`` and
    ``note`` of each change.
    """
    return [_match(evidence) for evidence in result.evidence]


def _match(evidence: Evidence) -> dict[str, Any]:
    node = evidence.node
    optional: dict[str, Any] = {
        "embed_key": evidence.embed_key,
        "share": None if evidence.share is None else float(evidence.share),
        "searched_with": [*evidence.searched_with] or None,
        "variants": [asdict(form) for form in evidence.variants] or None,
    }
    return {
        "id": node.id,
        "group": node.group,
        "text": node.text,
        "start": node.start,
        "end": node.end,
        **page_fields(node),
        "score": float(evidence.score),
        "similarity": evidence.similarity,
        "query": evidence.query,
        **{name: value for name, value in optional.items() if value is not None},
    }


def copied_metadata(node: Node, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Copy metadata, and add the page fields of the node."""
    return {**page_fields(node), **deepcopy(dict(metadata))}


def page_fields(node: Node) -> dict[str, str]:
    """Return the ``page_label`` and ``place`` fields of a node whose file has pages.

    The label is a page or a range, such as ``"12"`` or ``"12-13"``. The place describes the
    position for readers, such as ``"report.pdf, page 12, 3.2 Results"``. Nodes of files without
    pages have neither field.
    """
    pages = node.pages
    if pages is None:
        return {}
    first, last = pages
    label = str(first)
    if last != first:
        label = f"{first}-{last}"
    return {"page_label": label, "place": node.place}


def own_metadata(metadata: Mapping[str, Any], inherited: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata fields of a chunk that differ from the fields of its parent.

    Values are compared together with their types, so 1 and True are different.
    """
    own = dict(metadata)
    for name, value in metadata.items():
        if name not in inherited:
            continue
        above = inherited[name]
        if above == value and repr(above) == repr(value):
            del own[name]
    return own


def in_thread(method: Callable[..., R]) -> Callable[..., Coroutine[Any, Any, R]]:
    """Return an async version of a method, which runs the method in a thread."""

    @wraps(method)
    async def call(self: object, *args: Any, **kwargs: Any) -> R:
        overridden: Callable[..., R] = getattr(self, method.__name__)
        return await asyncio.to_thread(overridden, *args, **kwargs)

    call.__doc__ = f"Async version of ``{method.__name__}``, in a thread."
    return call


def joined(operator: str, conditions: Sequence[Filters]) -> Filters:
    """Join conditions with "and", "or" or "not". A "not" holds if none of the conditions holds."""
    if operator == "not":
        return {"not": joined("or", conditions)}
    if len(conditions) == 1:
        return conditions[0]
    return {operator: [*conditions]}


def check_names(owner: str, given: Iterable[str], allowed: Collection[str]) -> None:
    """Check that the names of keyword arguments are valid.

    Args:
        owner: The function or class that received the arguments, for the error message.
        given: The names that were passed.
        allowed: The valid names.

    Raises:
        TypeError: If a name is invalid. The message suggests the correct name.
    """
    for name in given:
        if name in allowed:
            continue
        native = native_name(name, allowed)
        if native is not None:
            hint = f"use {native}="
        else:
            hint = advice(name, allowed) or f"it has {nearest_names(name, allowed, limit=20)}"
        raise TypeError(f"{owner} has no argument {name!r}; {hint}")
