"""Replace what was found by its kin in a larger or smaller group, after any retrieval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.callbacks import CallbackManager
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle

from ...nodegraph import Node, NodeGraph
from .node_lookup import graph_ids
from .nodes import NodeWithEvidence, to_text_node
from .reranker import copy_result, evidence_of, to_scored_node

Lift = Literal["max", "sum", "mean"]


class LiftPostprocessor(BaseNodePostprocessor):
    """Replace hits by their nodes in a target group of a graph: sentences by their paragraphs.

    Choose it after a retriever that is not nodekin's, over nodes that ``export_nodes`` made, such
    as a vector store that LlamaIndex fills. ``Retriever(..., target=...)`` lifts before it cuts to
    ``top_k``, and so finds as many targets as are wanted; this one has only what it is given.

    Results come best first, each once, with the evidence of all the hits that led to it. What is
    no node of the graph, and what has no kin in the target group, stays as it is. Nothing that is
    given is changed.

    Args:
        graph: The node graph. LlamaIndex's ``to_dict()`` and pickling leave it out: ``rebind``
            gives it again.
        target: The group to answer with.
        lift: What a target scores: its best hit's score (``"max"``), or the ``"sum"`` or
            ``"mean"`` over its hits.
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
        [('Green tea. Black tea.', 4.0)]
    """

    target: str = Field(description="The group to answer with.")
    lift: Lift = Field(default="max", description="What a target scores.")
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
        manager = CallbackManager([]) if callback_manager is None else callback_manager
        fields: dict[str, Any] = {"target": target, "lift": lift, "top_n": top_n}
        super().__init__(callback_manager=manager, **fields)
        if graph is not None:
            self.rebind(graph)

    @classmethod
    def class_name(cls) -> str:
        """Return the name that LlamaIndex serialises it under."""
        return "LiftPostprocessor"

    def rebind(self, graph: NodeGraph) -> LiftPostprocessor:
        """Give it a graph, in place of its own or of one that was lost on the way; return it.

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
        lifted: dict[str, _Lifted] = {}
        with graph.reading(self.target):
            places = graph_ids(graph, [each.node for each in nodes])
            for result, place in zip(nodes, places, strict=True):
                kin: list[Node | None] = [None]
                if place is not None:
                    kin = [*find(graph.node(place))] or kin
                for node in kin:
                    key = result.node.node_id if node is None else node.id
                    lifted.setdefault(key, _Lifted(node)).hits.append(result)
        made = [each.result(self.lift, query) for each in lifted.values()]
        return sorted(made, key=lambda each: -(each.score or 0.0))[: self.top_n]


class _Lifted:
    """A target, or a hit that stays, and the hits that led to it."""

    __slots__ = ("hits", "node")

    def __init__(self, node: Node | None) -> None:
        self.node = node
        self.hits: list[NodeWithScore] = []

    def result(self, how: Lift, query: str) -> NodeWithScore:
        hits = sorted(self.hits, key=lambda hit: -(hit.score or 0.0))
        if self.node is None:
            return copy_result(hits[0])
        evidence = [match for hit in hits for match in evidence_of(hit) or [_match(hit, query)]]
        return NodeWithEvidence(
            node=to_text_node(self.node), score=_score(hits, how), evidence=evidence
        )


def _score(hits: Sequence[NodeWithScore], how: Lift) -> float:
    scores = [float(hit.score or 0.0) for hit in hits]
    if how == "max":
        return max(scores)
    return sum(scores) / (len(scores) if how == "mean" else 1)


def _match(hit: NodeWithScore, query: str) -> dict[str, Any]:
    """Tell of a hit that came without evidence what is known."""
    made = to_scored_node(hit)
    node = made.node
    return {
        "id": node.id,
        "group": node.group,
        "text": node.text,
        "start": node.start,
        "end": node.end,
        "score": made.score,
        "similarity": "",
        "query": query,
    }
