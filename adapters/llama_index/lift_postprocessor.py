"""Replace results by the related nodes of a larger or smaller group, after any retrieval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.callbacks import CallbackManager
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle

from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import Node
from ...retrievers.ranking import lifted_score
from ...retrievers.results import Evidence
from ..frameworks import evidence_dicts
from .node_lookup import find_node
from .nodes import NamedByClass, NodeWithEvidence, to_text_node
from .reranker import copy_result, evidence_of, to_scored_node

Lift = Literal["max", "sum", "mean"]


class LiftPostprocessor(NamedByClass, BaseNodePostprocessor):
    """Replace hits by their nodes in a target group of a graph: sentences by their paragraphs.

    Choose it after a retriever that is not nodekin's, over nodes of ``export_nodes``, such as a
    vector store that LlamaIndex fills. ``Retriever(..., target=...)`` lifts before it limits the
    results to ``top_k``, and so returns as many targets as are requested; this one lifts its input.

    Results are ordered best first, each once, with the evidence of all their hits. A hit that is
    no node of the graph, or has no related node in the target group, stays as it is. The input is
    not changed.

    Args:
        graph: The node graph. LlamaIndex's ``to_dict()`` and pickling leave it out: ``rebind``
            sets it again.
        target: The group of the results.
        lift: What a target scores: its best hit's score (``"max"``), the ``"sum"`` of the best
            and half of the second best, or the ``"mean"`` over its hits.
        top_n: How many results at most; None for all.
        callback_manager: As everywhere in LlamaIndex.

    Raises:
        UnknownGroupError: If the graph has no such group.

    Example:
        >>> from llama_index.core.schema import NodeWithScore
        >>> graph = NodeGraph()
        >>> ids = graph.add("Green tea. Black tea.")
        >>> graph.create_node_group("sentence", lambda text: text.split(". "))
        >>> hits = [NodeWithScore(node=to_text_node(n), score=2.0) for n in graph.nodes("sentence")]
        >>> lifting = LiftPostprocessor(graph, "ROOT", lift="sum")
        >>> [(result.text, result.score) for result in lifting.postprocess_nodes(hits)]
        [('Green tea. Black tea.', 3.0)]
    """

    target: str = Field(description="The group of the results.")
    lift: Lift = Field(default="max", description="How a target is scored.")
    top_n: int | None = Field(default=None, ge=1, description="How many results at most.")
    _graph: NodeGraph | None = PrivateAttr(default=None)

    def __init__(
        self,
        graph: NodeGraph | None = None,
        target: str = "ROOT",
        *,
        lift: Lift = "max",
        top_n: int | None = None,
        callback_manager: CallbackManager | None = None,
        class_name: str | None = None,
    ) -> None:
        manager = callback_manager or CallbackManager([])
        super().__init__(callback_manager=manager, target=target, lift=lift, top_n=top_n)  # type: ignore[call-arg]
        if graph is not None:
            self.rebind(graph)

    def rebind(self, graph: NodeGraph) -> LiftPostprocessor:
        """Set the graph, also after ``to_dict()`` or pickling, and return this object.

        Raises:
            TypeError: If it is no graph.
            UnknownGroupError: If the graph has no group of the target's name.
        """
        if not isinstance(graph, NodeGraph):
            raise TypeError(f"graph is a NodeGraph, not {graph!r:.80}")
        graph.ancestry(self.target)
        self._graph = graph
        return self

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if self._graph is None:
            raise ValueError(
                "this LiftPostprocessor has no graph, which to_dict() and pickling leave out; "
                "give it one: postprocessor.rebind(graph)"
            )
        graph = self._graph
        query = "" if query_bundle is None else query_bundle.query_str
        find = graph.find(self.target)
        lifted: dict[str, tuple[Node | None, list[NodeWithScore]]] = {}
        with graph.reading(self.target):
            for hit in nodes:
                node = find_node(graph, hit.node)
                targets: Sequence[Node | None] = () if node is None else find(node)
                for target in targets or [None]:
                    key = hit.node.node_id if target is None else target.id
                    lifted.setdefault(key, (target, []))[1].append(hit)
        results = [self._result(*target_and_hits, query) for target_and_hits in lifted.values()]
        return sorted(results, key=_negative_score)[: self.top_n]

    def _result(self, target: Node | None, hits: list[NodeWithScore], query: str) -> NodeWithScore:
        """Return a target with the score and evidence of its hits; without one, the best hit."""
        hits = sorted(hits, key=_negative_score)
        if target is None:
            return copy_result(hits[0])
        return NodeWithEvidence(
            node=to_text_node(target),
            score=lifted_score([float(hit.score or 0.0) for hit in hits], self.lift),
            evidence=[match for hit in hits for match in evidence_of(hit) or [_match(hit, query)]],
        )


def _negative_score(result: NodeWithScore) -> float:
    return -(result.score or 0.0)


def _match(hit: NodeWithScore, query: str) -> dict[str, Any]:
    """Return the evidence of a hit that has none."""
    result = to_scored_node(hit)
    match = Evidence(result.node, result.score, "", query)
    return evidence_dicts(replace(result, evidence=(match,)))[0]
