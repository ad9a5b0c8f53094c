"""A reranker made of a function."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...nodegraph import Node, nearest_names
from ..protocols import RerankError, by_score
from ..results import Evidence, ScoredNode


@dataclass(frozen=True)
class FunctionReranker:
    """Rerank by a function; ``register_reranker`` says what it is given and may return.

    Args:
        function: Is given nodes, the query, and the settings.
        batch: Whether it is given all nodes at once.
        name: What evidence calls it.
        settings: Further arguments of the function.

    Raises:
        TypeError: If the function has no such argument.
    """

    function: Callable[..., Any]
    batch: bool
    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._check(self.settings)

    def rerank(
        self, results: Sequence[ScoredNode], query: str, **settings: Any
    ) -> list[ScoredNode]:
        """Return the results that the function keeps, best first; settings of a call come first.

        Raises:
            TypeError: If the function has no such argument.
            RerankError: If it raises, or returns something else than it may.
        """
        self._check(settings)
        if not results:
            return []
        given = {**self.settings, **settings}
        try:
            return (self._at_once if self.batch else self._one_by_one)(results, query, given)
        except RerankError:
            raise
        except Exception as error:
            raise RerankError(f"{self.name!r} failed: {type(error).__name__}: {error}") from error

    def _one_by_one(
        self, results: Sequence[ScoredNode], query: str, settings: Mapping[str, Any]
    ) -> list[ScoredNode]:
        made = [(each, self._call(each.node, query, settings)) for each in results]
        if any(_is_score(verdict) for _, verdict in made):
            kept = [(each, verdict) for each, verdict in made if verdict is not None]
            return self._scored(kept, query)
        filtered = []
        for each, verdict in made:
            if not (verdict is None or isinstance(verdict, bool | Node)):
                raise self._unusable(verdict, "a score, the node, True or False, or None")
            if isinstance(verdict, Node) or verdict:
                node = verdict if isinstance(verdict, Node) else each.node
                filtered.append(ScoredNode(node, each.score, each.evidence))
        return filtered

    def _at_once(
        self, results: Sequence[ScoredNode], query: str, settings: Mapping[str, Any]
    ) -> list[ScoredNode]:
        made = self._call([each.node for each in results], query, settings)
        plain = made.tolist() if hasattr(made, "tolist") else made
        if plain is None or isinstance(plain, str) or not hasattr(plain, "__iter__"):
            raise self._unusable(made, "a list of scores, of nodes, or of (node, score)")
        items = list(plain)
        known = {id(each.node): each for each in results}
        known_ids = {each.node.id: each for each in results if each.node.id}

        def result_of(node: Any) -> ScoredNode:
            if not isinstance(node, Node):
                raise self._unusable(node, "one of the nodes that it was given")
            result = known.get(id(node)) or known_ids.get(node.id)
            if result is None:
                raise self._unusable(node, "one of the nodes that it was given")
            return ScoredNode(node, result.score, result.evidence)

        if items and all(isinstance(item, Node) for item in items):
            places = [1 / place for place in range(1, len(items) + 1)]
            return self._scored(list(zip(map(result_of, items), places, strict=True)), query)
        if items and all(isinstance(item, tuple) and len(item) == 2 for item in items):
            return self._scored([(result_of(node), score) for node, score in items], query)
        if items and len(items) != len(results):
            raise self._unusable(made, f"a score for each of {len(results)} nodes")
        paired = zip(results, items, strict=False)
        return self._scored([(each, score) for each, score in paired if score is not None], query)

    def _call(self, nodes: Any, query: str, settings: Mapping[str, Any]) -> Any:
        named, places, rest = self._parameters()
        if "query" in named or rest:
            return self.function(nodes, query=query, **settings)
        if any(name not in settings for name in places[1:]):
            return self.function(nodes, query, **settings)
        return self.function(nodes, **settings)

    def _scored(self, scored: Sequence[tuple[ScoredNode, Any]], query: str) -> list[ScoredNode]:
        made = []
        for each, score in scored:
            if not _is_score(score) or not math.isfinite(score):
                raise self._unusable(score, "a finite number as a score")
            proof = Evidence(each.node, float(score), self.name, query)
            made.append(ScoredNode(each.node, float(score), (proof, *each.evidence)))
        return by_score(made)

    def _unusable(self, made: Any, wanted: str) -> RerankError:
        kind = "all nodes at once" if self.batch else "one node"
        return RerankError(f"{self.name!r} returned {made!r:.80}; for {kind} it returns {wanted}")

    def _check(self, settings: Mapping[str, Any]) -> None:
        named, _, rest = self._parameters()
        own = [name for name in named[1:] if name != "query"]
        for name in settings:
            if name not in own and not rest:
                raise TypeError(
                    f"{self.name!r} has no setting {name!r}; it has {nearest_names(name, own)}"
                )

    def _parameters(self) -> tuple[list[str], list[str], bool]:
        """Return the arguments' names, which it has to get, and whether it takes any name."""
        parameters = inspect.signature(self.function).parameters.values()
        by_place = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        places = [p.name for p in parameters if p.kind in by_place and p.default is p.empty]
        rest = any(p.kind is p.VAR_KEYWORD for p in parameters)
        named = [p.name for p in parameters if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
        return named, places, rest


def _is_score(value: Any) -> bool:
    if isinstance(value, bool):
        return False
    return isinstance(value, int | float) or hasattr(value, "__float__")
