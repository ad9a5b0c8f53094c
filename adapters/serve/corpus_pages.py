"""The JSON records of the page. Their size is limited for graphs of any size."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import ROOT, Node
from ...nodegraph.search_text import file_name_of, source_title
from ...retrievers.corpus_tools.reading_tools import CorpusView
from ...retrievers.filters import Filters
from ...retrievers.protocols import RetrieverProtocol
from ...retrievers.results import Evidence, ScoredNode
from ...retrievers.tracing import Span, trace
from .markdown import passage_elements

_TEXT = 2_400  # characters of a result

_HIT = 400  # characters of a match

_CONTEXT = 200  # maximum number of characters before a match


def result_records(results: Sequence[ScoredNode]) -> list[dict[str, Any]]:
    """Return the records of results: place, text and evidence.

    ``text`` has three parts: the text before the best match, the match, and the text after the
    match. The first two are empty if the node of the result matched itself. ``blocks`` is this
    text as elements.
    """
    return [
        {
            "rank": rank,
            "score": plain_number(result.score),
            "text": (text := _parts(result)),
            "blocks": passage_elements(*text, file_name(result.node)),
            "cut": len(result.node.text) > _TEXT,
            "matches": [_match_record(match, result.node) for match in result.evidence],
            **node_record(result.node),
            "place": place_in(result.best_match),
        }
        for rank, result in enumerate(results, 1)
    ]


def node_record(node: Node) -> dict[str, Any]:
    """Return the id, group, document and position of a node."""
    return {
        "id": node.id,
        "group": node.group,
        "document": node.document_id or node.id,
        "title": title_of(node),
        "folder": folder_of(node),
        "place": place_in(node),
        "start": node.start,
        "end": node.end,
    }


def hit_in(result: ScoredNode) -> dict[str, int | None] | None:
    """Return the span of the best match. None: the node of the result matched itself."""
    node = result.node
    for match in result.evidence[:1]:
        hit = match.node
        if hit.id != node.id and hit.document_id == node.document_id and hit.start is not None:
            return {"start": hit.start, "end": hit.end}
    return None


def _parts(result: ScoredNode) -> tuple[str, str, str]:
    node = result.node
    text = node.text
    for match in result.evidence[:1]:
        hit = match.node
        if hit.id == node.id or hit.start is None or node.start is None:
            continue
        start, end = hit.start - node.start, (hit.end or 0) - node.start
        if hit.document_id == node.document_id and 0 <= start < end <= len(text):
            first = _display_start(text, start)
            before = ("…\n\n" if first else "") + text[first:start]
            return before, text[start:end][:_TEXT], text[end : first + _TEXT]
    return "", "", text[:_TEXT]


def _display_start(text: str, hit: int) -> int:
    """Return the first displayed position of a text, so that the match is in the first lines."""
    if hit <= _CONTEXT:
        return 0
    start = text.rfind("\n", 0, hit) + 1
    while text.startswith("|", start) and hit - start < _TEXT:  # a row needs the table header
        above = text.rfind("\n", 0, start - 1) + 1
        if not text.startswith("|", above):
            return start
        start = above
    return max(start, hit - _CONTEXT)


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
            {"query": item.query, "strategy": item.strategy, "note": item.note}
            for item in match.variants
        ],
    }


def plain_number(number: float | None) -> float | None:
    """Return a number as a float. None: JSON cannot represent the number."""
    return None if number is None or not math.isfinite(number) else float(number)


def stage_record(span: Span) -> dict[str, Any]:
    """Return the record of a search stage, including its inner stages."""
    return {
        "name": span.name,
        "attributes": {key: str(value)[:200] for key, value in span.attributes.items()},
        "milliseconds": plain_number(None if span.seconds is None else 1000 * span.seconds),
        "error": None if span.error is None else f"{type(span.error).__name__}: {span.error}",
        "children": [stage_record(child) for child in span.children],
    }


AT_ONCE = 50  # documents per list page

_REACH = 3_000  # characters around a passage

_MAX_REACH = 500_000

_FAILURES = 20


class CorpusPages:
    """A read-only view of a graph for the page. It never builds a group.

    Args:
        graph: The node graph.
        restriction: The required conditions of documents and nodes. Other documents and nodes are
            invisible on the page.
    """

    def __init__(self, graph: NodeGraph, restriction: Filters | None = None) -> None:
        self.graph = graph
        self.view = CorpusView(graph, ROOT, restriction)
        self._is_restricted = restriction is not None

    def failures(self) -> dict[str, Any]:
        """Return the number of failed documents, and the first of them with reasons.

        Empty with a restriction: a failed document has no metadata to check.
        """
        failures = [] if self._is_restricted else self.graph.failures
        first = [{"document": item.document, "reason": str(item.error)} for item in failures]
        return {"count": len(failures), "first": first[:_FAILURES]}

    def documents(self, skip: int = 0, like: str = "") -> dict[str, Any]:
        """Return one list page of the documents with ``like`` in their ids."""
        ids: Sequence[str] = self.graph.reader.document_ids()
        if self._is_restricted:
            ids = [node.id for node in self.view.documents()]
        if like := like.strip().casefold():
            ids = [i for i in ids if like in i.casefold()]
        nodes = self.graph.reader.nodes_by_id(ids[skip : skip + AT_ONCE])
        return {
            "total": len(ids),
            "skip": skip,
            "documents": [
                {"id": n.id, "title": title_of(n), "characters": len(n.text)} for n in nodes
            ],
        }

    def _node(self, node_id: str) -> Node:
        """Return a node if the node and its document are visible.

        Raises:
            LookupError: If the node is unknown or invisible.
        """
        node = self.graph.node(node_id)
        if not (self.view.allows(node) and self.view.allows(node.root)):
            raise LookupError(
                f"no node {node_id!r} in the graph; it may have been removed or changed"
            )
        return node

    def picture(
        self, node_id: str, page: int | None = None, span: tuple[int, int] | None = None
    ) -> bytes:
        """Return a PDF page as a PNG, with the node or another span of its document marked.

        Raises:
            LookupError: If the node or page is unknown.
            ValueError: If the file cannot be displayed, or the span is invalid.
        """
        from ..files.page_images import page_image

        return page_image(self._node(node_id), page, span)

    def passage(
        self, node_id: str, reach: int = _REACH, span: tuple[int, int] | None = None
    ) -> dict[str, Any]:
        """Return a node's text with the surrounding text of its document.

        The text is cut on the server: offsets count characters, but JavaScript counts UTF-16 units.

        Args:
            node_id: The id of a node or document.
            reach: The number of characters before and after the node.
            span: A span of the document to mark instead of the node.

        Raises:
            LookupError: If the node is unknown or invisible.
        """
        reach = min(max(reach, 0), _MAX_REACH)
        node = self._node(node_id)
        root = node.root
        text = root.text
        if span is not None and node.start is not None:
            start, end = max(0, min(span)), min(max(span), len(text))
            node = replace(node, text=text[start:end], start=start, end=end)
        record = {
            "document": root.id,
            "title": title_of(root),
            "folder": folder_of(root),
            "place": place_in(node),
            "group": node.group,
            "size": len(text),
            "page": node.pages[0] if node.pages else 1,
            "pages": _count_pictures(root),
        }
        start = end = 0
        before, content, after = "", node.text, ""
        if node.group == ROOT:
            content = text[: 2 * reach]
            end = len(text) - len(content)
        elif node.start is None or node.end is None:  # generated text without a span
            record["generated"] = True
        else:
            start, last = max(0, node.start - reach), min(len(text), node.end + reach)
            before, content = text[start : node.start], text[node.start : node.end]
            after, end = text[node.end : last], len(text) - last
        marked = ("", "", content) if node.group == ROOT else (before, content, after)
        return {
            **record,
            "before": before,
            "text": content,
            "after": after,
            "blocks": passage_elements(*marked, file_name(root)),
            "more_before": start,
            "more_after": end,
        }


def _count_pictures(document: Node) -> int:
    """Return the number of pages available as pictures. 0 unless the document is a PDF."""
    is_pdf = document.metadata.get("page_unit") == "page"
    return int(document.metadata.get("page_count", 1)) if is_pdf else 0


def place_in(node: Node) -> str:
    """Return the place of a node in its document, without the name of the document."""
    name = " ".join((file_name_of(node.metadata) or title_of(node)).split())
    return node.place.removeprefix(name).removeprefix(", ")


def title_of(node: Node) -> str:
    """Return the title of a document. Defaults to its id."""
    return source_title(node.metadata) or node.document_id or node.id


def folder_of(node: Node) -> str:
    """Return the folder or the path of a document, which distinguishes equal titles.

    Empty if the title is the path, or the document is not a file.
    """
    path, title = node.document_id or node.id, title_of(node)
    if title == path or file_name_of(node.metadata) is None:
        return ""
    folder, _, name = path.rpartition("/")
    return folder if name == title else path


def file_name(node: Node) -> str:
    """Return the file name of a node. Defaults to the id of its document."""
    return file_name_of(node.metadata) or node.document_id or node.id


MAX_RESULTS = 50


def explained_search(
    graph: NodeGraph, retriever: RetrieverProtocol, query: str, top_k: int | None
) -> dict[str, Any]:
    """Return the results and stages of a search."""
    start = time.perf_counter()
    with trace("search") as traced:
        results: list[ScoredNode] = retriever.retrieve(query, top_k=top_k)
    milliseconds = 1000 * (time.perf_counter() - start)
    with graph.reader.reading():  # one snapshot for all places
        records = result_records(results)
    stages = [stage_record(child) for child in traced.children]
    return {"milliseconds": milliseconds, "results": records, "stages": stages}
