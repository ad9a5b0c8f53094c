"""A similarity that a user writes as a function."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import Node
from ..validation import check_settings, choice

if TYPE_CHECKING:
    from ..indexes.exact_index import ScanIndex

Scores = list[float | None]


@dataclass(frozen=True, eq=False)
class CustomSimilarity:
    """Score nodes by a function, one at a time or all at once.

    Every node that meets the filters is scored for every query: fine for thousands of nodes.

    Args:
        function: Its first parameter is the query. Others are passed by their names: ``node``, or
            in batches ``nodes`` (a list), and for embeddings also ``vector`` (dimension,) or
            ``vectors`` (nodes, dimension). Returns a number; None where the node does not match
            at all. In batches, a number for each node, or pairs of a node and a number.
        name: Its name in evidence.
        mode: Whether the query is a text, or a vector of an embedding of the graph.
        batch: Whether the function takes all nodes at once.
        higher_is_better: False for distances: scores are negated, so that higher is always better
            in results.
        settings: Passed to the function with each call.

    Raises:
        TypeError: If the function's parameters don't fit, or it has not these settings.
    """

    function: Callable[..., Any]
    name: str
    mode: Literal["text", "embedding"] = "text"
    batch: bool = False
    higher_is_better: bool = True
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        choice(self.mode, "mode", ("text", "embedding"))
        names = list(inspect.signature(self.function).parameters)
        if len(names) < 2 or not (self._inputs & set(names) or len(names) == 2):
            raise TypeError(
                f"similarity {self.name!r} takes {names}; its first parameter is the query, others "
                f"are called {' or '.join(sorted(self._inputs))}"
            )
        check_settings(self.settings, self.function, f"similarity {self.name!r}")

    @property
    def _inputs(self) -> set[str]:
        """The names of parameters that get nodes or vectors."""
        nodes, vectors = ("nodes", "vectors") if self.batch else ("node", "vector")
        return {nodes, vectors} if self.mode == "embedding" else {nodes}

    def open(self, graph: NodeGraph, group: str, key: str | None = None) -> ScanIndex:
        """Return the index of a group's nodes, shared by all custom similarities."""
        from ..indexes.exact_index import ScanIndex

        return graph.reader.shared(("nodes", group, key), lambda: ScanIndex(graph, group, key))

    def prepare(
        self, query: Any, indexes: Sequence[ScanIndex]
    ) -> Callable[[Sequence[Node], Any], Scores]:
        """Return a function that scores nodes, and their vectors, for the query."""
        return lambda nodes, vectors: self._scores(query, nodes, vectors)

    def _scores(self, query: Any, nodes: Sequence[Node], vectors: Any) -> Scores:
        parameters = list(inspect.signature(self.function).parameters)
        names = [name for name in parameters[1:] if name in self._inputs] or parameters[1:2]
        if self.batch:
            inputs = {n: vectors if n == "vectors" else list(nodes) for n in names}
            scores = _aligned(self.function(query, **inputs, **self.settings), nodes, self.name)
        else:
            scores = [
                self.function(
                    query,
                    **{n: vectors[at] if n == "vector" else node for n in names},
                    **self.settings,
                )
                for at, node in enumerate(nodes)
            ]
        return [self._checked(score, node) for score, node in zip(scores, nodes, strict=True)]

    def _checked(self, score: Any, node: Node) -> float | None:
        if score is None:
            return None
        number = float(score)
        if math.isnan(number):
            raise ValueError(
                f"similarity {self.name!r} gave NaN for {node!r}; give a number, or None for no "
                "match"
            )
        return number if self.higher_is_better else -number


def _aligned(scored: Any, nodes: Sequence[Node], name: str) -> list[Any]:
    """Return one score a node, None for no match, from such scores or from pairs with nodes."""
    rows = list(scored)
    if rows and all(isinstance(row, tuple) and len(row) == 2 for row in rows):
        scores = {node.id: score for node, score in rows}
        return [scores.get(node.id) for node in nodes]
    if rows and len(rows) != len(nodes):
        raise ValueError(
            f"similarity {name!r} gave {len(rows)} scores for {len(nodes)} nodes; give one for "
            "each, or pairs of a node and its score"
        )
    return rows or [None] * len(nodes)
