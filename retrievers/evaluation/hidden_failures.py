"""Detect failures that a search hides: documents left out of a group, a failed embedding model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...nodegraph.builder import Failure
from ...nodegraph.graph import NodeGraph
from ..base_retriever import with_all_inner
from ..foreign.foreign_retriever import ForeignRetriever
from ..group_failures import describe_failures, group_failures
from ..results import ScoredNode

_GROUP_ATTRIBUTES = ("group_name", "target", "groups", "via")

_WORDS_ALONE = "words alone were compared"  # the note of a DefaultRetriever


def hidden_failure(retriever: object, results: Sequence[ScoredNode]) -> str:
    """Return the hidden failures of a retriever as a sentence. Empty if nothing failed.

    Args:
        retriever: The retriever that was used.
        results: The results of a query.
    """
    failures = [f for graph in graphs_of(retriever) for f in _failures(graph, retriever)]
    if failures:
        return describe_failures(failures)
    notes = (v.note for r in results for match in r.evidence for v in match.variants)
    return next((note for note in notes if note and note.startswith(_WORDS_ALONE)), "")


def graphs_of(retriever: object) -> Iterator[NodeGraph]:
    """Yield the graphs of a retriever and of its inner retrievers."""
    graphs: dict[int, NodeGraph] = {}
    for item in _parts(retriever):
        for graph in (*getattr(item, "graphs", ()), getattr(item, "graph", None), item):
            if isinstance(graph, NodeGraph):
                graphs[id(graph)] = graph
    yield from graphs.values()


def _parts(retriever: object) -> Iterator[object]:
    """Yield a retriever and its inner retrievers, or the retrievers of a query engine."""
    if isinstance(retriever, ForeignRetriever):
        retriever = getattr(retriever.source, "retriever", retriever.source)
    return with_all_inner(retriever)


def _failures(graph: NodeGraph, retriever: object) -> list[Failure]:
    """Return the failures of the groups that a retriever searches, and of their ancestors."""
    failures = group_failures(graph)
    if not failures:
        return []
    summaries = graph.groups
    searched: set[str] = set()
    for item in _parts(retriever):
        values = [getattr(item, name, None) or () for name in _GROUP_ATTRIBUTES]
        names = [n for value in values for n in ([value] if isinstance(value, str) else value)]
        for name in filter(summaries.__contains__, names):
            searched.update(group.name for group in graph.reader.lineage(name))
    return [failure for failure in failures if failure.group in searched]
