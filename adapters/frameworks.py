"""Functions for both framework adapters that convert nodes and results and check arguments."""

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
    """Return a node for a document that is not in a graph, with the document's search text."""
    search_text = document.search_text
    return Node(document.text, document.metadata, id=document.id, search_text=search_text)


def evidence_dicts(result: ScoredNode) -> list[dict[str, Any]]:
    """Return the evidence of a result as JSON values, best match first.

    A match contains the node's ``id``, ``group``, ``text``, ``start`` and ``end``, and the
    ``score``, ``similarity`` and ``query`` of the match. It also contains ``embed_key`` if vectors
    were compared, ``share`` if retrievers were fused, ``searched_with`` (metadata fields that were
    compared together with the text), and ``variants`` (``query``, ``strategy``, ``note``) if a
    strategy changed the query.
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
    """Return a copy of metadata, including the page fields of the node."""
    return {**page_fields(node), **deepcopy(dict(metadata))}


def page_fields(node: Node) -> dict[str, str]:
    """Return the ``page_label`` and ``place`` of a node, if its file has pages.

    Examples: ``"12"`` or ``"12-13"``, and ``"report.pdf, page 12, 3.2 Results"``.
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
    """Return the metadata of a chunk without the fields of its parent.

    Fields are compared by value and type: 1 is not True.
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
    """Return an async version of a method that runs in a thread."""

    @wraps(method)
    async def call(self: object, *args: Any, **kwargs: Any) -> R:
        overridden: Callable[..., R] = getattr(self, method.__name__)
        return await asyncio.to_thread(overridden, *args, **kwargs)

    call.__doc__ = f"Async version of ``{method.__name__}``, in a thread."
    return call


def joined(operator: str, conditions: Sequence[Filters]) -> Filters:
    """Join conditions with "and", "or" or "not". "not" holds if none of the conditions holds."""
    if operator == "not":
        return {"not": joined("or", conditions)}
    if len(conditions) == 1:
        return conditions[0]
    return {operator: [*conditions]}


def check_names(owner: str, given: Iterable[str], allowed: Collection[str]) -> None:
    """Check the names of keyword arguments.

    Args:
        owner: The function or class, for the error.
        given: The names.
        allowed: The valid names.

    Raises:
        TypeError: If a name is invalid. The message says what to write instead.
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
