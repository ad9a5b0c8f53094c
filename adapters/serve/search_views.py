"""A search with everything that explains it, and why a document is not among its results."""

from __future__ import annotations

import time
from typing import Any

from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import Node
from ...retrievers.analysis.text_analyzer import TextAnalyzer
from ...retrievers.base_retriever import BaseRetriever
from ...retrievers.corpus_tools.corpus_view import CorpusView
from ...retrievers.results import ScoredNode
from ...retrievers.tracing import trace
from .result_records import plain_number, result_records, stage_record

MOST_RESULTS = 50

_DEEP = 1_000  # results among which a missing document is looked for


def explained_search(
    graph: NodeGraph, retriever: BaseRetriever, query: str, top_k: int | None
) -> dict[str, Any]:
    """Return the results of a search with their evidence, and its stages."""
    start = time.perf_counter()
    with trace("search") as traced:
        results: list[ScoredNode] = retriever.retrieve(query, top_k=top_k)
    milliseconds = 1000 * (time.perf_counter() - start)
    with graph.reader.reading():  # one state for all places
        records = result_records(results)
    stages = [stage_record(child) for child in traced.children]
    return {"milliseconds": milliseconds, "results": records, "stages": stages}


def why_missing(
    view: CorpusView, retriever: BaseRetriever, query: str, wanted: str, top_k: int | None
) -> dict[str, Any]:
    """Say where a document stands behind the results, or why it is not found at all.

    Args:
        view: Finds the document.
        retriever: What searched.
        query: The query.
        wanted: The document's id, path or file name.
        top_k: How many results were shown; None for as many as the set-up says.

    Raises:
        ToolError: If there is no such document, or there are several; it names the nearest.
    """
    document = view.document(wanted.strip())
    shown: list[ScoredNode] = retriever.retrieve(query, top_k=top_k)
    results: list[ScoredNode] = retriever.retrieve(query, top_k=_DEEP)
    shared, lacking = _words(query, document)
    answer: dict[str, Any] = {
        "document": document.id,
        "looked_at": len(results),
        "words": shared,
        "words_lacking": lacking,
        "last": plain_number(shown[-1].score) if shown else None,
    }
    for rank, result in enumerate(results, 1):
        if (result.node.document_id or result.node.id) == document.id:
            (record,) = result_records([result])
            return {**answer, "result": {**record, "rank": rank}}
    return {**answer, "result": None}


def _words(query: str, document: Node) -> tuple[list[str], list[str]]:
    """Return the terms of a query that a document has, and those that it lacks."""
    analyzer = TextAnalyzer()
    present = set(analyzer(document.searched_text))
    terms = list(dict.fromkeys(analyzer.query(query)))
    return [t for t in terms if t in present], [t for t in terms if t not in present]
