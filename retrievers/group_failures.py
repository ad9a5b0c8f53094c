"""Failures of node groups: documents that a transform or its model failed on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ..nodegraph.builder import Failure
from ..nodegraph.graph import NodeGraph
from ..nodegraph.node import ROOT


def group_failures(graph: NodeGraph) -> list[Failure]:
    """Return the failures of groups. Failures of files are not among them."""
    return [failure for failure in graph.failures if failure.group != ROOT]


def describe_failures(failures: Sequence[Failure]) -> str:
    """Return the number of failures of each group, and the first error, as a sentence."""
    counts = Counter(failure.group for failure in failures)
    numbers = ", ".join(
        f"{count} document{'s' * (count != 1)} failed in the group {group!r}"
        for group, count in counts.items()
    )
    return f"{numbers}; the first error: {failures[0].error}"
