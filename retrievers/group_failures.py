"""Failures in groups of nodes: documents for which a transform or its model failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from ..nodegraph.errors import Failure
from ..nodegraph.graph import NodeGraph
from ..nodegraph.node import ROOT
from .base_retriever import with_all_inner
from .foreign.foreign_retriever import ForeignRetriever

_GROUP_ATTRIBUTES = ("group", "target", "groups", "via")


def group_failures(graph: NodeGraph) -> list[Failure]:
    """Return the failures in groups, without failures in reading files."""
    return [failure for failure in graph.failures if failure.group != ROOT]


def describe_failures(failures: Sequence[Failure]) -> str:
    """Return a sentence that states the number of failures in each group and the first error."""
    counts = Counter(failure.group for failure in failures)
    numbers = ", ".join(
        f"{count} document{'s' * (count != 1)} failed in the group {group!r}"
        for group, count in counts.items()
    )
    return f"{numbers}; the first error: {failures[0].error}"


def graphs_of(retriever: object) -> list[NodeGraph]:
    """Return the graphs that a retriever and its inner retrievers search."""
    graphs: dict[int, NodeGraph] = {}
    for item in _parts(retriever):
        for part in (*getattr(item, "graphs", ()), getattr(item, "graph", None), item):
            if isinstance(part, NodeGraph):
                graphs[id(part)] = part
    return [*graphs.values()]


def _parts(retriever: object) -> Iterator[object]:
    """Yield a retriever and its inner retrievers. A query engine is replaced by its retriever."""
    if isinstance(retriever, ForeignRetriever):
        retriever = getattr(retriever.source, "retriever", retriever.source)
    return with_all_inner(retriever)


def searched_failures(retriever: object) -> list[Failure]:
    """Return the failures in the groups that a retriever searches, and in their ancestors."""
    searched: list[Failure] = []
    for graph in graphs_of(retriever):
        failures = group_failures(graph)
        if failures:
            groups = _searched_groups(retriever, graph)
            searched += [failure for failure in failures if failure.group in groups]
    return searched


def _searched_groups(retriever: object, graph: NodeGraph) -> set[str]:
    """Return the names of the groups in a graph that a retriever searches, and their ancestors."""
    names: set[str] = set()
    for item in _parts(retriever):
        for attribute in _GROUP_ATTRIBUTES:
            value = getattr(item, attribute, None) or ()
            names.update([value] if isinstance(value, str) else value)
    groups: set[str] = set()
    for name in names & {*graph.groups}:
        groups.update(group.name for group in graph.reader.lineage(name))
    return groups
