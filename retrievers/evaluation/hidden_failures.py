"""Detect failures that a search hides: documents left out of a group, a failed embedding model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ...nodegraph.build_writer import Failure
from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import ROOT
from ..base_retriever import with_all_inner
from ..foreign.foreign_retriever import ForeignRetriever
from ..results import ScoredNode

_GROUP_ATTRIBUTES = ("group_name", "target", "groups", "via")

_WORDS_ALONE = "words alone were compared"  # the note of a DefaultRetriever


def hidden_failure(retriever: object, results: Sequence[ScoredNode]) -> str:
    """Return what the figures of a retriever must not hide, as a sentence. Empty if nothing failed.

    Args:
        retriever: The retriever that was used.
        results: The results of a query.
    """
    if isinstance(retriever, ForeignRetriever):  # a query engine around our own retriever
        retriever = getattr(retriever.source, "retriever", retriever.source)
    failures = [failure for graph in _graphs(retriever) for failure in _failures(graph, retriever)]
    if failures:
        return describe_failures(failures)
    notes = (v.note for r in results for match in r.evidence for v in match.variants)
    return next((note for note in notes if note and note.startswith(_WORDS_ALONE)), "")


def describe_failures(failures: Sequence[Failure]) -> str:
    """Return the number of failures of each group, and the first error, as a sentence."""
    counts = Counter(failure.group for failure in failures)
    numbers = ", ".join(
        f"{count} document{'s' * (count != 1)} failed in the group {group!r}"
        for group, count in counts.items()
    )
    return f"{numbers}; the first error: {failures[0].error}"


def group_failures(graph: NodeGraph) -> list[Failure]:
    """Return the failures of groups. Failures of files are not among them."""
    return [failure for failure in graph.failures if failure.group != ROOT]


def _graphs(retriever: object) -> Iterator[NodeGraph]:
    graphs: dict[int, NodeGraph] = {}
    for item in with_all_inner(retriever):
        for graph in (*getattr(item, "graphs", ()), getattr(item, "graph", None)):
            if isinstance(graph, NodeGraph):
                graphs[id(graph)] = graph
    yield from graphs.values()


def _failures(graph: NodeGraph, retriever: object) -> list[Failure]:
    """Return the failures of the groups that a retriever searches, and of their ancestors."""
    failures = group_failures(graph)
    if not failures:
        return []
    summaries = graph.groups
    searched: set[str] = set()
    for item in with_all_inner(retriever):
        values = [getattr(item, name, ()) for name in _GROUP_ATTRIBUTES]
        names = [n for value in values for n in ([value] if isinstance(value, str) else value)]
        for name in filter(summaries.__contains__, names):
            searched.update(group.name for group in graph.reader.lineage(name))
    return [failure for failure in failures if failure.group in searched]
