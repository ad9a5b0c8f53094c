"""Let any nodekin reranker be a LlamaIndex node postprocessor."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, Literal

from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.callbacks import CallbackManager, CBEventType, EventPayload
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from ...nodegraph import Node
from ...retrievers import Evidence, KeywordFilter, Reranker, ScoredNode
from ...retrievers.protocols import RerankerProtocol
from ..conversion import evidence_dicts
from .instrumentation import telling
from .nodes import NodeWithEvidence, from_text_node, to_node_with_score

dispatcher = get_dispatcher(__name__)

logger = logging.getLogger(__name__)

OnError = Literal["keep", "raise"]


class NodeGraphReranker(BaseNodePostprocessor):
    """Rerank or filter what any LlamaIndex retriever found, by any nodekin reranker.

    Choose nodekin's ``RerankRetriever`` inside a ``NodeGraphRetriever`` to fetch more candidates
    than are returned; this one takes what it is given. Nothing that is given is changed. Results
    are ``NodeWithEvidence``: the reranker's score stands first in their evidence.

    Where there is no query a filter still filters; other rerankers have nothing to compare with,
    and what was found keeps its order.

    Args:
        reranker: A name (``"ModuleReranker"``, ``"KeywordFilter"``), a ``Reranker``, or what that
            takes. LlamaIndex's ``to_dict()`` and pickling leave it out: ``rebind`` gives it again.
        top_n: How many results at most; None for the reranker's own number.
        on_error: What a reranker that fails does: ``"keep"`` the order in which results came, and
            say so in their evidence, or ``"raise"``.
        callback_manager: As everywhere in LlamaIndex.
        **settings: Settings of a reranker that was named: ``model=...``, ``required=[...]``.

    Raises:
        TypeError: If it is no reranker, or lacks a setting.
        ValueError: If a name is unknown or a number out of range.

    Example:
        >>> from llama_index.core.schema import NodeWithScore, TextNode
        >>> longest = NodeGraphReranker(
        ...     "ModuleReranker", model=lambda query, texts: [len(text) for text in texts], top_n=1
        ... )
        >>> found = [NodeWithScore(node=TextNode(text=text), score=0.5) for text in ("a", "tea")]
        >>> [(r.text, r.score) for r in longest.postprocess_nodes(found, query_str="tea?")]
        [('tea', 3.0)]
    """

    top_n: int | None = Field(default=None, ge=1, description="How many results at most.")
    on_error: OnError = Field(default="keep", description="What a failing reranker does.")
    _reranker: Reranker | None = PrivateAttr(default=None)

    def __init__(
        self,
        reranker: Reranker | str | RerankerProtocol | Callable[..., Any] | None = None,
        *,
        top_n: int | None = None,
        on_error: OnError = "keep",
        callback_manager: CallbackManager | None = None,
        **settings: Any,
    ) -> None:
        settings.pop("class_name", None)  # what to_dict() adds
        manager = CallbackManager([]) if callback_manager is None else callback_manager
        fields: dict[str, Any] = {"top_n": top_n, "on_error": on_error}
        super().__init__(callback_manager=manager, **fields)
        if reranker is not None or settings:
            self.rebind(reranker, **settings)

    @classmethod
    def class_name(cls) -> str:
        """Return the name that LlamaIndex serialises it under."""
        return "NodeGraphReranker"

    def rebind(self, reranker: Any, **settings: Any) -> NodeGraphReranker:
        """Give it a reranker, in place of its own or of one that was lost on the way; return it.

        Raises:
            TypeError: If it is no reranker.
        """
        own = isinstance(reranker, Reranker) and not settings
        self._reranker = reranker if own else Reranker(reranker, **settings)
        return self

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        reranker, query = self._asked(query_bundle)
        if not nodes or query is None:
            return self._unranked(nodes)
        event_id = self._begin(nodes, query_bundle, query)
        given = [scored(each) for each in nodes]
        try:
            with telling(None, self):
                made = reranker.rerank(given, query, top_k=self.top_n)
        except Exception as error:
            made = self._kept(given, query, error, event_id)
        return self._end(back(made, given, nodes), event_id)

    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        reranker, query = self._asked(query_bundle)
        if not nodes or query is None:
            return await asyncio.to_thread(self._unranked, nodes)
        event_id = self._begin(nodes, query_bundle, query)
        given = await asyncio.to_thread(lambda: [scored(each) for each in nodes])
        try:
            with telling(None, self):
                made = await reranker.arerank(given, query, top_k=self.top_n)
        except Exception as error:
            made = self._kept(given, query, error, event_id)
        return self._end(await asyncio.to_thread(back, made, given, nodes), event_id)

    def _asked(self, query_bundle: QueryBundle | None) -> tuple[Reranker, str | None]:
        """Return the reranker and the query, None where there is nothing to rerank by."""
        if self._reranker is None:
            raise ValueError(
                "this NodeGraphReranker has no reranker, which to_dict() and pickling leave out; "
                "give it one: reranker.rebind('ModuleReranker', model=...)"
            )
        query = "" if query_bundle is None else query_bundle.query_str
        if not query.strip() and not isinstance(self._reranker.reranker, KeywordFilter):
            return self._reranker, None
        return self._reranker, query

    def _unranked(self, nodes: list[NodeWithScore]) -> list[NodeWithScore]:
        return [copied(each) for each in nodes[: self.top_n]]

    def _begin(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None, query: str
    ) -> str:
        name = self._reranker.name if self._reranker else ""
        top_n = len(nodes) if self.top_n is None else self.top_n
        dispatcher.event(
            ReRankStartEvent(query=query_bundle, nodes=nodes, top_n=top_n, model_name=name)
        )
        payload: dict[str, Any] = {
            EventPayload.NODES: nodes,
            EventPayload.MODEL_NAME: name,
            EventPayload.QUERY_STR: query,
            EventPayload.TOP_K: top_n,
        }
        return self.callback_manager.on_event_start(CBEventType.RERANKING, payload)

    def _end(self, results: list[NodeWithScore], event_id: str) -> list[NodeWithScore]:
        payload: dict[str, Any] = {EventPayload.NODES: results}
        self.callback_manager.on_event_end(CBEventType.RERANKING, payload, event_id)
        dispatcher.event(ReRankEndEvent(nodes=results))
        return results

    def _kept(
        self, given: list[ScoredNode], query: str, error: Exception, event_id: str
    ) -> list[ScoredNode]:
        """Return what was given in its own order, with evidence of the failure."""
        name = self._reranker.name if self._reranker else ""
        told = f"{type(error).__name__}: {error}"
        if self.on_error == "raise":
            payload: dict[str, Any] = {EventPayload.EXCEPTION: error}
            self.callback_manager.on_event_end(CBEventType.RERANKING, payload, event_id)
            raise error
        logger.warning("%s failed for %r, which keeps its order: %s", name, query[:80], told)
        failed = f"rerank failed: {name}: {told}"
        return [
            replace(each, evidence=(Evidence(each.node, each.score, failed, query),))
            for each in given[: self.top_n]
        ]


def scored(result: NodeWithScore) -> ScoredNode:
    """Make a nodekin result of a LlamaIndex one; a score that is missing counts as 0.

    Any node will do: one that no graph knows is a node with its text, metadata and id.
    """
    made = from_text_node(result.node) if isinstance(result.node, TextNode) else None
    if not isinstance(made, Node):
        text = result.node.get_content()
        made = Node(text, deepcopy(result.node.metadata), id=result.node.node_id)
    return ScoredNode(made, 0.0 if result.score is None else float(result.score))


def evidence_of(result: NodeWithScore) -> list[dict[str, Any]]:
    """Return a copy of a result's evidence; nothing where it has none."""
    return deepcopy(result.evidence) if isinstance(result, NodeWithEvidence) else []


def copied(result: NodeWithScore) -> NodeWithEvidence:
    """Return a copy that shares nothing with the result."""
    return NodeWithEvidence(
        node=result.node.model_copy(deep=True), score=result.score, evidence=evidence_of(result)
    )


def back(
    made: Sequence[ScoredNode], given: Sequence[ScoredNode], results: Sequence[NodeWithScore]
) -> list[NodeWithScore]:
    """Return LlamaIndex results with their new scores, what was known of them before kept.

    Args:
        made: What a reranker made of what it was given.
        given: What it was given: for each result what ``scored`` made of it.
        results: The results.
    """
    known = {id(each.node): result for each, result in zip(given, results, strict=True)}
    returned: list[NodeWithScore] = []
    for each in made:
        before = known.get(id(each.node))
        if before is None:
            returned.append(to_node_with_score(each))
            continue
        result = copied(before)
        result.score = float(each.score)
        result.evidence = evidence_dicts(each) + result.evidence
        returned.append(result)
    return returned
