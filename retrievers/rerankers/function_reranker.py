"""Rerank results by a function."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...nodegraph.node import Node
from ..protocols import RerankError, by_score
from ..results import Evidence, Results, ScoredNode
from ..validation import check_settings, takes_any_keyword


@dataclass(frozen=True)
class FunctionReranker:
    """Rerank by a function; ``register_reranker`` documents its arguments and return values.

    Args:
        function: Gets nodes, the query, and the settings.
        batch: Whether it gets all nodes in one call.
        name: The name in evidence.
        settings: Further arguments of the function.

    Raises:
        TypeError: If the function has no such argument.
    """

    function: Callable[..., Any]
    batch: bool
    name: str
    settings: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._check(self.settings)

    def rerank(self, results: Sequence[ScoredNode], query: str, **settings: object) -> Results:
        """Return the results that the function selects, best first.

        Args:
            results: The results to rerank.
            query: What they were retrieved for.
            **settings: For this call, in place of the reranker's own.

        Raises:
            TypeError: If the function has no such argument.
            RerankError: If it raises, or returns something that it may not.
        """
        self._check(settings)
        if not results:
            return []
        rerank = self._rerank_together if self.batch else self._rerank_separately
        try:
            return rerank(results, query, {**self.settings, **settings})
        except RerankError:
            raise
        except Exception as error:
            raise RerankError(f"{self.name!r} failed: {type(error).__name__}: {error}") from error

    def _rerank_separately(
        self, results: Sequence[ScoredNode], query: str, settings: Mapping[str, object]
    ) -> Results:
        """Call the function for one node at a time."""
        outputs = [self._call(result.node, query, settings) for result in results]
        pairs = list(zip(results, outputs, strict=True))
        if any(map(_is_score, outputs)):
            return self._scored([pair for pair in pairs if pair[1] is not None], query)
        selected = []
        for result, output in pairs:
            if not (output is None or isinstance(output, bool | Node)):
                raise self._error(output, "a score, the node, True or False, or None")
            if isinstance(output, Node):
                selected.append(ScoredNode(output, result.score, result.evidence))
            elif output:
                selected.append(result)
        return selected

    def _rerank_together(
        self, results: Sequence[ScoredNode], query: str, settings: Mapping[str, object]
    ) -> Results:
        """Call the function once, for all nodes."""
        output = self._call([result.node for result in results], query, settings)
        values = output.tolist() if hasattr(output, "tolist") else output
        if values is None or isinstance(values, str) or not hasattr(values, "__iter__"):
            raise self._error(output, "a list of scores, of nodes, or of (node, score)")
        items = list(values)
        by_identity = {id(result.node): result for result in results}
        by_id = {result.node.id: result for result in results if result.node.id}

        def result_of(node: object) -> ScoredNode:
            result = by_identity.get(id(node))
            if result is None and isinstance(node, Node):
                result = by_id.get(node.id)
            if result is None or not isinstance(node, Node):
                raise self._error(node, "one of the nodes that it was given")
            return ScoredNode(node, result.score, result.evidence)

        if items and all(isinstance(item, Node) for item in items):
            scores = [1 / rank for rank in range(1, len(items) + 1)]
            return self._scored(list(zip(map(result_of, items), scores, strict=True)), query)
        if items and all(isinstance(item, tuple) and len(item) == 2 for item in items):
            return self._scored([(result_of(node), score) for node, score in items], query)
        if items and len(items) != len(results):
            raise self._error(output, f"a score for each of {len(results)} nodes")
        pairs = zip(results, items, strict=False)
        return self._scored([pair for pair in pairs if pair[1] is not None], query)

    def _call(self, nodes: Node | list[Node], query: str, settings: Mapping[str, object]) -> Any:
        signature = inspect.signature(self.function)
        if "query" in signature.parameters or takes_any_keyword(self.function):
            return self.function(nodes, query=query, **settings)
        try:
            signature.bind(nodes, **settings)
        except TypeError:  # the query is what is missing
            return self.function(nodes, query, **settings)
        return self.function(nodes, **settings)

    def _scored(self, pairs: Sequence[tuple[ScoredNode, Any]], query: str) -> Results:
        scored = []
        for result, score in pairs:
            if not _is_score(score) or not math.isfinite(score):
                raise self._error(score, "a finite number as a score")
            evidence = Evidence(result.node, float(score), self.name, query)
            scored.append(ScoredNode(result.node, float(score), (evidence, *result.evidence)))
        return by_score(scored)

    def _error(self, output: object, expected: str) -> RerankError:
        nodes = "all nodes in one call" if self.batch else "one node"
        return RerankError(
            f"{self.name!r} returned {output!r:.80}; for {nodes} it returns {expected}"
        )

    def _check(self, settings: Mapping[str, object]) -> None:
        first = next(iter(inspect.signature(self.function).parameters), "")
        check_settings(settings, self.function, repr(self.name), first, "query")


def _is_score(value: object) -> bool:
    if isinstance(value, bool):
        return False
    return isinstance(value, int | float) or hasattr(value, "__float__")
