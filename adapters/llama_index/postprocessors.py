"""LlamaIndex node postprocessors that rerank results or replace them with larger nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.callbacks import CallbackManager
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle

from ...nodegraph.errors import explain_names
from ...nodegraph.foreign_documents import as_document
from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import Node
from ...retrievers.protocols import RerankerProtocol
from ...retrievers.ranking import Lift, lifted_score
from ...retrievers.rerankers.keyword_filter import KeywordFilter
from ...retrievers.rerankers.reranker import Reranker
from ...retrievers.results import Evidence, ScoredNode
from ..frameworks import evidence_dicts, node_of
from .nodes import NamedByClass, NodeWithEvidence, copy_result, evidence_of, to_results

dispatcher = get_dispatcher(__name__)

AnyReranker: TypeAlias = Reranker | RerankerProtocol | Callable[..., Any] | str
"""A reranker, the name of a reranker, or a function."""


class NodeGraphReranker(NamedByClass, BaseNodePostprocessor):
    """A LlamaIndex node postprocessor that applies a nodekin reranker or filter.

    The returned results are copies whose evidence starts with the score of the reranker. Without a
    query, filters are still applied, but rerankers do not change the order.

    Args:
        reranker: The name of a reranker, such as ``"ModuleReranker"``, a ``Reranker``, or another
            object that ``Reranker`` accepts. It is not included in ``to_dict()`` and pickles. After
            loading, set it with ``rebind``.
        top_n: The maximum number of results. Defaults to the setting of the reranker.
        callback_manager: The LlamaIndex callback manager.
        **options: Options for a reranker that is given by name.

    Raises:
        TypeError: If the reranker is invalid or an option is missing.
        ValueError: If the name is unknown or a number is out of range.

    Example:
        >>> from llama_index.core.schema import NodeWithScore, TextNode
        >>> longest = NodeGraphReranker(
        ...     "ModuleReranker", model=lambda query, texts: [len(text) for text in texts], top_n=1
        ... )
        >>> nodes = [NodeWithScore(node=TextNode(text=text), score=0.5) for text in ("a", "tea")]
        >>> [(r.text, r.score) for r in longest.postprocess_nodes(nodes, query_str="tea?")]
        [('tea', 3.0)]
    """

    top_n: int | None = Field(default=None, ge=1, description="The maximum number of results.")
    _reranker: Reranker | None = PrivateAttr(default=None)

    @explain_names
    def __init__(
        self,
        reranker: AnyReranker | None = None,
        *,
        top_n: int | None = None,
        callback_manager: CallbackManager | None = None,
        **options: Any,
    ) -> None:
        options.pop("class_name", None)  # added by to_dict()
        super().__init__(top_n=top_n)  # type: ignore[call-arg]
        if callback_manager is not None:
            self.callback_manager = callback_manager
        if reranker is not None or options:
            given: Any = reranker
            is_ready = isinstance(reranker, Reranker) and not options
            self.rebind(given if is_ready else Reranker(given, **options))

    def rebind(self, reranker: AnyReranker) -> NodeGraphReranker:
        """Set the reranker, and return this postprocessor.

        Raises:
            TypeError: If the reranker is invalid.
        """
        self._reranker = reranker if isinstance(reranker, Reranker) else Reranker(reranker)
        return self

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        reranker = self._reranker
        if reranker is None:
            raise ValueError(
                "the reranker is missing: to_dict() and pickles omit it; set it with "
                "rebind(Reranker('ModuleReranker', model=...))"
            )
        query = "" if query_bundle is None else query_bundle.query_str
        is_comparable = query.strip() or isinstance(reranker.reranker, KeywordFilter)
        if not nodes or not is_comparable:
            return [copy_result(node) for node in nodes[: self.top_n]]
        top_n = self.top_n or len(nodes)
        name = reranker.name
        dispatcher.event(
            ReRankStartEvent(query=query_bundle, nodes=nodes, top_n=top_n, model_name=name)
        )
        candidates = [
            ScoredNode(node_of(as_document(hit.node)), float(hit.score or 0.0)) for hit in nodes
        ]
        by_id = {hit.node_id: hit for hit in nodes}
        by_object = {id(given.node): hit for given, hit in zip(candidates, nodes, strict=True)}
        results: list[NodeWithScore] = []
        for ranked in reranker.rerank(candidates, query, top_k=self.top_n):
            # The same node can occur twice among the candidates, and rerankers may return copies or
            # new nodes.
            hit = by_object.get(id(ranked.node)) or by_id.get(ranked.node.id)
            if hit is None:
                results += to_results([ranked])
                continue
            evidence = evidence_dicts(ranked) + evidence_of(hit)
            node = hit.node.model_copy(deep=True)
            score = float(ranked.score)
            results.append(NodeWithEvidence(node=node, score=score, evidence=evidence))
        dispatcher.event(ReRankEndEvent(nodes=results))
        return results


class LiftPostprocessor(NamedByClass, BaseNodePostprocessor):
    """A LlamaIndex node postprocessor that replaces nodes with their ancestors in a larger group.

    For example, it can replace sentences with the paragraphs that contain them. Use it with
    retrievers of other libraries that search nodes from ``export_nodes``. A nodekin retriever with
    ``target=`` does the same before ``top_k`` is applied and therefore returns more results. Nodes
    that do not belong to the graph are not replaced.

    Args:
        graph: The node graph. It is not included in ``to_dict()`` and pickles. After loading, set
            it with ``rebind``.
        target: The group of the returned nodes.
        lift: How the scores of several matches in the same returned node are combined: ``"max"``,
            ``"sum"`` (the best score plus half of the second best) or ``"mean"``.
        top_n: The maximum number of results. If None, all results are returned.
        callback_manager: The LlamaIndex callback manager.
        class_name: Ignored. It is only accepted because ``to_dict()`` adds it.

    Raises:
        UnknownGroupError: If the group is unknown.

    Example:
        >>> from llama_index.core.schema import NodeWithScore
        >>> from nodekin.adapters.llama_index import export_nodes
        >>> from nodekin.nodegraph import NodeGraph
        >>> graph = NodeGraph()
        >>> ids = graph.add("Green tea. Black tea.")
        >>> graph.create_node_group("sentence", lambda text: text.split(". "))
        >>> hits = [NodeWithScore(node=n, score=2.0) for n in export_nodes(graph, "sentence")]
        >>> lifting = LiftPostprocessor(graph, "ROOT", lift="sum")
        >>> [(result.text, result.score) for result in lifting.postprocess_nodes(hits)]
        [('Green tea. Black tea.', 3.0)]
    """

    target: str = Field(default="ROOT", description="The group of the results.")
    lift: Literal["max", "sum", "mean"] = Field(default="max", description="The score of a target.")
    top_n: int | None = Field(default=None, ge=1, description="The maximum number of results.")
    _graph: NodeGraph | None = PrivateAttr(default=None)

    @explain_names
    def __init__(
        self,
        graph: NodeGraph | None = None,
        target: str = "ROOT",
        *,
        lift: Lift = "max",
        top_n: int | None = None,
        callback_manager: CallbackManager | None = None,
        class_name: str = "",
    ) -> None:
        super().__init__(target=target, lift=lift, top_n=top_n)  # type: ignore[call-arg]
        if callback_manager is not None:
            self.callback_manager = callback_manager
        if graph is not None:
            self.rebind(graph)

    def rebind(self, graph: NodeGraph) -> LiftPostprocessor:
        """Set the graph, and return this postprocessor.

        Raises:
            TypeError: If ``graph`` is not a ``NodeGraph``.
            UnknownGroupError: If the graph does not have the target group.
        """
        if not isinstance(graph, NodeGraph):
            raise TypeError(f"graph must be a NodeGraph, got {graph!r:.80}")
        graph.reader.lineage(self.target)
        self._graph = graph
        return self

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if self._graph is None:
            raise ValueError(
                "the graph is missing: to_dict() and pickles omit it; set it with rebind(graph)"
            )
        query = "" if query_bundle is None else query_bundle.query_str
        find = self._graph.find(self.target)
        ids = [hit.node_id for hit in nodes]
        found = {node.id: node for node in self._graph.reader.existing_nodes(ids)}
        results: list[NodeWithScore] = []
        lifted: dict[str, tuple[Node, list[NodeWithScore]]] = {}
        for hit in sorted(nodes, key=_negative_score):
            targets = find(found[hit.node_id]) if hit.node_id in found else ()
            for target in targets:
                lifted.setdefault(target.id, (target, []))[1].append(hit)
            if not targets:
                results.append(copy_result(hit))
        for target, hits in lifted.values():
            scores = [float(hit.score or 0.0) for hit in hits]
            (result,) = to_results([ScoredNode(target, lifted_score(scores, self.lift))])
            for hit, score in zip(hits, scores, strict=True):
                match = Evidence(found[hit.node_id], score, "", query)
                own = evidence_dicts(ScoredNode(match.node, score, (match,)))
                result.evidence += evidence_of(hit) or own
            results.append(result)
        return sorted(results, key=_negative_score)[: self.top_n]


def _negative_score(result: NodeWithScore) -> float:
    return -(result.score or 0.0)
