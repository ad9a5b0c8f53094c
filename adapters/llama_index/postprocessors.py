"""Use rerankers and target groups as LlamaIndex node postprocessors."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.callbacks import CallbackManager, CBEventType, EventPayload
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle

from ...nodegraph.graph import NodeGraph
from ...nodegraph.node import Node
from ...retrievers.plans.plan import Do, arun, run
from ...retrievers.protocols import RerankerProtocol
from ...retrievers.ranking import lifted_score
from ...retrievers.rerankers.keyword_filter import KeywordFilter
from ...retrievers.rerankers.reranker import Reranker
from ...retrievers.results import Evidence, ScoredNode
from ..frameworks import evidence_dicts, input_positions
from .instrumentation import report_spans
from .nodes import (
    NamedByClass,
    NodeWithEvidence,
    copy_result,
    evidence_of,
    find_node,
    to_node_with_score,
    to_scored_node,
    to_text_node,
)

dispatcher = get_dispatcher(__name__)

logger = logging.getLogger(__name__)

OnError = Literal["keep", "raise"]


class NodeGraphReranker(NamedByClass, BaseNodePostprocessor):
    """Rerank or filter the results of any LlamaIndex retriever, by any nodekin reranker.

    Choose nodekin's ``RerankRetriever`` inside a ``NodeGraphRetriever`` to fetch more candidates
    than are returned; this one reranks its input. The input is not changed. Results are
    ``NodeWithEvidence``: the reranker's score comes first in their evidence.

    Without a query a filter still filters; other rerankers have nothing to compare with, and the
    results stay in their order.

    Args:
        reranker: A name (``"ModuleReranker"``, ``"KeywordFilter"``), a ``Reranker``, or what that
            takes. LlamaIndex's ``to_dict()`` and pickling leave it out: ``rebind`` sets it again.
        top_n: How many results at most. None for the reranker's own number.
        on_error: What to do if the reranker fails: ``"keep"`` the order of the input, with a note
            in the evidence, or ``"raise"``.
        callback_manager: As everywhere in LlamaIndex.
        **options: Those of a reranker by name: ``model=...``, ``required=[...]``.

    Raises:
        TypeError: If it is no reranker, or lacks an option.
        ValueError: If a name is unknown or a number out of range.

    Example:
        >>> from llama_index.core.schema import NodeWithScore, TextNode
        >>> longest = NodeGraphReranker(
        ...     "ModuleReranker", model=lambda query, texts: [len(text) for text in texts], top_n=1
        ... )
        >>> nodes = [NodeWithScore(node=TextNode(text=text), score=0.5) for text in ("a", "tea")]
        >>> [(r.text, r.score) for r in longest.postprocess_nodes(nodes, query_str="tea?")]
        [('tea', 3.0)]
    """

    top_n: int | None = Field(default=None, ge=1, description="How many results at most.")
    on_error: OnError = Field(default="keep", description="What to do if the reranker fails.")
    _reranker: Reranker | None = PrivateAttr(default=None)

    def __init__(
        self,
        reranker: Reranker | str | RerankerProtocol | Callable[..., Any] | None = None,
        *,
        top_n: int | None = None,
        on_error: OnError = "keep",
        callback_manager: CallbackManager | None = None,
        **options: Any,
    ) -> None:
        options.pop("class_name", None)  # what to_dict() adds
        manager = callback_manager or CallbackManager([])
        super().__init__(callback_manager=manager, top_n=top_n, on_error=on_error)  # type: ignore[call-arg]
        if reranker is not None or options:
            self.rebind(reranker, **options)

    def rebind(self, reranker: Any, **options: Any) -> NodeGraphReranker:
        """Set the reranker, also after ``to_dict()`` or pickling, and return this object.

        Raises:
            TypeError: If it is no reranker.
        """
        ready = isinstance(reranker, Reranker) and not options
        self._reranker = reranker if ready else Reranker(reranker, **options)
        return self

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return run(partial(self._plan, nodes, query_bundle))

    @dispatcher.span
    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        return await arun(partial(self._plan, nodes, query_bundle))

    async def _plan(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None
    ) -> list[NodeWithScore]:
        if self._reranker is None:
            raise ValueError(
                "this NodeGraphReranker has no reranker, which to_dict() and pickling leave out; "
                "give it one: reranker.rebind('ModuleReranker', model=...)"
            )
        reranker = self._reranker
        query = "" if query_bundle is None else query_bundle.query_str
        comparable = query.strip() or isinstance(reranker.reranker, KeywordFilter)
        if not nodes or not comparable:
            return await Do(lambda: [*map(copy_result, nodes[: self.top_n])])
        candidates = await Do(lambda: [*map(to_scored_node, nodes)])
        top_n = len(nodes) if self.top_n is None else self.top_n
        payload: dict[str, Any] = {
            EventPayload.NODES: nodes,
            EventPayload.MODEL_NAME: reranker.name,
            EventPayload.QUERY_STR: query,
            EventPayload.TOP_K: top_n,
        }
        dispatcher.event(
            ReRankStartEvent(query=query_bundle, nodes=nodes, top_n=top_n, model_name=reranker.name)
        )
        with self.callback_manager.event(CBEventType.RERANKING, payload) as event:
            try:
                with report_spans(None):
                    ranking = await Do(
                        partial(reranker.rerank, candidates, query, top_k=self.top_n),
                        partial(reranker.arerank, candidates, query, top_k=self.top_n),
                    )
            except Exception as error:
                if self.on_error == "raise":
                    raise
                ranking = _with_error(candidates[: self.top_n], query, reranker.name, error)
            results = await Do(partial(_rescored, ranking, candidates, nodes))
            event.on_end(payload={EventPayload.NODES: results})
        dispatcher.event(ReRankEndEvent(nodes=results))
        return results


def _with_error(
    candidates: Sequence[ScoredNode], query: str, name: str, error: Exception
) -> list[ScoredNode]:
    """Return the candidates in their order, with evidence of the failure."""
    message = f"{type(error).__name__}: {error}"
    logger.warning("%s failed for %r, which keeps its order: %s", name, query[:80], message)
    failure = f"rerank failed: {name}: {message}"
    return [
        replace(candidate, evidence=(Evidence(candidate.node, candidate.score, failure, query),))
        for candidate in candidates
    ]


def _rescored(
    ranking: Sequence[ScoredNode], candidates: Sequence[ScoredNode], nodes: Sequence[NodeWithScore]
) -> list[NodeWithScore]:
    """Return copies of LlamaIndex results in a reranker's order, with its scores and evidence.

    Args:
        ranking: The reranker's output.
        candidates: Its input, one for each of the nodes.
        nodes: The LlamaIndex results.
    """
    results: list[NodeWithScore] = []
    for hit, position in zip(ranking, input_positions(ranking, candidates), strict=True):
        if position is None:
            results.append(to_node_with_score(hit))
            continue
        evidence = evidence_dicts(hit) + evidence_of(nodes[position])
        node = nodes[position].node.model_copy(deep=True)
        results.append(NodeWithEvidence(node=node, score=float(hit.score), evidence=evidence))
    return results


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
        top_n: How many results at most. None for all.
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
        graph.reader.lineage(self.target)
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
        with graph.reader.reading(self.target):
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
