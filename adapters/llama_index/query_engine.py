"""A LlamaIndex query engine with nodekin's strategies."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from llama_index.core.base.response.schema import RESPONSE_TYPE, Response
from llama_index.core.callbacks import CallbackManager
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.prompts.mixin import PromptMixinType
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import BaseSynthesizer, get_response_synthesizer
from llama_index.core.schema import NodeWithScore, QueryBundle, QueryType, TextNode
from llama_index.core.tools import QueryEngineTool
from llama_index.core.vector_stores.types import MetadataFilters

from ...nodegraph.concurrency import in_thread
from ...nodegraph.models.templates import language_of
from ...retrievers.base_retriever import BaseRetriever, Phrases
from ...retrievers.filters import Filters
from ...retrievers.foreign.outputs import is_answer
from ...retrievers.protocols import RetrieverLike
from ...retrievers.strategies.outcome import (
    OutcomeObserver,
    StrategyOutcome,
    answer_texts,
    result_key,
)
from ...retrievers.strategies.strategy_registry import StrategyName, make_strategy
from ...retrievers.strategies.sub_question import without_answers
from ...retrievers.tracing import observe
from .engine_tools import EngineSubQuestions, tools_of_engines
from .nodes import to_results
from .postprocessed_retriever import PassedResults, with_postprocessors
from .prompt_templates import default_llm
from .retriever import NodeGraphRetriever, as_bundle

_SYNTHESIS = frozenset(inspect.signature(get_response_synthesizer).parameters)

ENGINE_OPTIONS = (_SYNTHESIS - {"llm", "callback_manager", "verbose"}) | {
    "node_postprocessors",
    "response_synthesizer",
    "strategy",
}
"""The options of a query engine within a chat engine."""


class NodeGraphQueryEngine(RetrieverQueryEngine):
    """A LlamaIndex query engine over a nodekin retriever, with an optional strategy.

    LlamaIndex's response synthesizer writes the answer. ``response.metadata`` contains the metadata
    of the source nodes by id, and:

    - ``"sub_qa"``: pairs of a sub-question or step and its response;
    - ``"errors"``: failed sub-questions, dicts of ``question`` and ``error``. If all fail, the
      error is raised;
    - ``"ended"``: why a search in steps ended.

    ``retrieve`` uses the strategy, without answers to sub-questions.

    Args:
        source: A ``NodeGraphRetriever``, a nodekin retriever or graph, or, with
            ``strategy="sub_question"``, retrievers by tool name.
        llm: The model for the strategy and the answer. None: ``Settings.llm``.
        strategy: ``"none"``, ``"rewrite"``, ``"multi_query"``, ``"hyde"``, ``"sub_question"``,
            ``"multi_step"`` or ``"self_query"``.
        response_synthesizer: LlamaIndex's synthesizer. None: the default one with ``llm``.
        similarity_top_k: As for ``NodeGraphRetriever``.
        filters: As for ``NodeGraphRetriever``.
        max_tokens: As for ``NodeGraphRetriever``. With a strategy, for all its results together.
        min_score: As for ``NodeGraphRetriever``.
        phrases: As for ``NodeGraphRetriever``.
        node_postprocessors: Postprocessors, in this order. They apply to the result, and to each
            retrieval whose passages the model of a strategy reads, for each sub-question or step.
        callback_manager: As in LlamaIndex.
        **options: Arguments of ``get_response_synthesizer``, such as ``response_mode``,
            ``streaming`` and ``text_qa_template``, and options of the strategy, such as
            ``max_steps``.

    Raises:
        TypeError: If an argument has the wrong type or an option is unknown.
        ValueError: If the strategy is unknown, or an option has no effect.
        ImportError: If the model is missing.

    Example:
        >>> from llama_index.core.llms import MockLLM
        >>> from nodekin.nodegraph import NodeGraph
        >>> graph = NodeGraph()
        >>> ids = graph.add(["The Nile is 6,650 km long.", "Tea is a drink."])
        >>> engine = NodeGraphQueryEngine(graph, MockLLM())
        >>> engine.query("How long is the Nile?").source_nodes[0].text
        'The Nile is 6,650 km long.'
    """

    def __init__(
        self,
        source: RetrieverLike | NodeGraphRetriever,
        llm: Any = None,
        *,
        strategy: StrategyName | Literal["none"] = "none",
        response_synthesizer: BaseSynthesizer | None = None,
        similarity_top_k: int | None = None,
        filters: MetadataFilters | Filters | None = None,
        max_tokens: int | None = None,
        min_score: float | None = None,
        phrases: Phrases | None = None,
        node_postprocessors: Sequence[BaseNodePostprocessor] | None = None,
        callback_manager: CallbackManager | None = None,
        **options: Any,
    ) -> None:
        synthesis = {name: options.pop(name) for name in _SYNTHESIS & options.keys()}
        if llm is None and (strategy != "none" or response_synthesizer is None):
            llm = default_llm()
        if response_synthesizer is None:
            response_synthesizer = get_response_synthesizer(llm=llm, **synthesis)
        elif synthesis:
            raise ValueError(f"pass {sorted(synthesis)} to the response_synthesizer")
        inner: Any = source
        if strategy != "none":
            inner = _strategy(strategy, source, llm, options)
        elif options:
            raise TypeError(
                f"unknown arguments: {sorted(options)}; options of a strategy require strategy=..."
            )
        if isinstance(inner, NodeGraphRetriever):
            retriever = copy.copy(inner.narrowed(filters))
        else:
            objects = getattr(source, "object_map", None)
            retriever = NodeGraphRetriever(inner, filters=filters, object_map=objects)
        if similarity_top_k is not None:
            retriever.similarity_top_k = similarity_top_k
        if max_tokens is None:
            max_tokens = getattr(source, "max_tokens", None)
        retriever = retriever.with_settings(max_tokens, min_score, phrases)
        processors = list(node_postprocessors or ())
        retriever.retriever = with_postprocessors(retriever.retriever, processors)
        super().__init__(retriever, response_synthesizer, processors, callback_manager)
        retriever.callback_manager = self.callback_manager
        self._retriever: NodeGraphRetriever = retriever

    @classmethod
    def from_args(  # type: ignore[override]
        cls, retriever: RetrieverLike, llm: object = None, **options: Any
    ) -> NodeGraphQueryEngine:
        """Return an engine. Same as the constructor, as in ``RetrieverQueryEngine``."""
        return cls(retriever, llm, **options)

    @classmethod
    def from_defaults(
        cls, query_engine_tools: Sequence[QueryEngineTool], llm: object = None, **options: Any
    ) -> NodeGraphQueryEngine:
        """Return an engine for sub-questions over tools, as in ``SubQuestionQueryEngine``.

        Args:
            query_engine_tools: The tools. The engine of a tool answers the sub-questions for this
                tool, with its own model, prompts and postprocessors. Its source nodes are among
                the sources of the response. The final answer is written from the answers.
            llm: The model. None: ``Settings.llm``.
            **options: Arguments of the constructor.

        Raises:
            ValueError: If two tools have one name, or the tools are empty.
        """
        tools = tools_of_engines(query_engine_tools)
        return cls(tools, llm, strategy="sub_question", **options)

    def retrieve(self, query_bundle: QueryType) -> list[NodeWithScore]:
        """Return the nodes for an answer, best first."""
        return RetrieverQueryEngine.retrieve(self._searching(), as_bundle(query_bundle))

    async def aretrieve(self, query_bundle: QueryType) -> list[NodeWithScore]:
        """Async version of ``retrieve``."""
        engine = self._searching()
        return await RetrieverQueryEngine.aretrieve(engine, as_bundle(query_bundle))

    def _searching(self) -> NodeGraphQueryEngine:
        """Return a copy that answers no sub-questions."""
        other = copy.copy(self)
        other._retriever = copy.copy(self._retriever)
        other._retriever.retriever = without_answers(self._retriever.retriever)
        return other

    def _query(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        observer = OutcomeObserver()
        passed = PassedResults()
        with observe(observer), observe(passed):
            nodes = super().retrieve(query_bundle)
        outcome = self._displayed(observer.outcome, passed, nodes)
        passages = _passages(nodes, outcome, query_bundle)
        response = self._response_synthesizer.synthesize(query=query_bundle, nodes=passages)
        return _completed(response, nodes, outcome)

    async def _aquery(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        observer = OutcomeObserver()
        passed = PassedResults()
        with observe(observer), observe(passed):
            nodes = await super().aretrieve(query_bundle)
        outcome = self._displayed(observer.outcome, passed, nodes)
        passages = _passages(nodes, outcome, query_bundle)
        response = await self._response_synthesizer.asynthesize(query=query_bundle, nodes=passages)
        return await in_thread(_completed, response, nodes, outcome)

    def _displayed(
        self,
        outcome: StrategyOutcome | None,
        passed: PassedResults,
        nodes: Sequence[NodeWithScore],
    ) -> StrategyOutcome | None:
        """Return an outcome without the results that did not pass the postprocessors."""
        if outcome is None or not self._node_postprocessors:
            return outcome
        keys = passed.keys
        keys.update((node.node_id, node.node.get_content()) for node in nodes)
        parts = [
            replace(part, results=tuple(r for r in part.results if result_key(r) in keys))
            for part in outcome.parts
        ]
        return replace(outcome, parts=tuple(parts))

    def _get_prompt_modules(self) -> PromptMixinType:
        return {"retriever": self._retriever, "response_synthesizer": self._response_synthesizer}


def _strategy(
    strategy: StrategyName, source: Any, llm: Any, options: dict[str, Any]
) -> BaseRetriever:
    """Return the retriever of a strategy. Sub-questions are answered by default."""
    if strategy != "sub_question":
        return make_strategy(strategy, source, llm, **options)
    return EngineSubQuestions(source, llm, **{"answers": True, **options})


def _passages(
    nodes: Sequence[NodeWithScore], outcome: StrategyOutcome | None, bundle: QueryBundle
) -> list[NodeWithScore]:
    """Return the answers to sub-questions, then the nodes.

    The sources of engines are left out: only the engine's own model reads them.
    """
    parts = () if outcome is None else outcome.parts
    texts = answer_texts(parts, language_of(bundle.query_str))
    answers = [NodeWithScore(node=TextNode(text=text)) for text in texts]
    read_by_engines: set[str] = set()
    others: set[str] = set()
    for part in parts:
        ids = {result.node.id for result in part.results}
        has_sources = part.is_from_engine and not any(map(is_answer, part.results))
        if has_sources:
            read_by_engines |= ids
        else:
            others |= ids
    hidden = read_by_engines - others
    return [*answers, *(node for node in nodes if node.node_id not in hidden)]


def _completed(
    response: RESPONSE_TYPE, nodes: Sequence[NodeWithScore], outcome: StrategyOutcome | None
) -> RESPONSE_TYPE:
    """Set the sources and the metadata of a response.

    The best passage of each answered sub-question is added to the sources.
    """
    parts = () if outcome is None else outcome.parts
    best = [part.results[0] for part in parts if part.answer and part.results]
    # Two tools may give one id to different nodes.
    sources: dict[tuple[str, str], NodeWithScore] = {}
    for source in [*nodes, *to_results(best)]:
        sources.setdefault((source.node_id, source.node.get_content()), source)
    metadata: dict[str, Any] = {node_id: each.metadata for (node_id, _), each in sources.items()}
    if outcome is not None:
        metadata["sub_qa"] = [
            (part.question, Response(part.answer, [*to_results(part.results)])) for part in parts
        ]
        if outcome.errors:
            metadata["errors"] = [{"question": q, "error": error} for q, error in outcome.errors]
        if outcome.ended:
            metadata["ended"] = outcome.ended
    response.source_nodes = [*sources.values()]
    response.metadata = metadata
    return response
