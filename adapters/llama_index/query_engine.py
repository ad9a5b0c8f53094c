"""Let a nodekin retriever, with a strategy, be a LlamaIndex query engine."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from functools import partial
from typing import Any, Literal

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.response.schema import RESPONSE_TYPE
from llama_index.core.callbacks import CallbackManager, CBEventType, EventPayload
from llama_index.core.llms import LLM
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.prompts.mixin import PromptMixinType
from llama_index.core.response_synthesizers import BaseSynthesizer
from llama_index.core.schema import NodeWithScore, QueryBundle, QueryType
from llama_index.core.settings import Settings
from llama_index.core.tools import QueryEngineTool
from llama_index.core.vector_stores.types import MetadataFilters

from ...retrievers.answers.engine import QueryEngine
from ...retrievers.filters import Filters
from ...retrievers.foreign.coercion import as_retriever
from ...retrievers.plans.effects import Compute
from ...retrievers.plans.plan import Plan, arun, run
from ...retrievers.protocols import RetrieverLike
from ...retrievers.strategies.outcome import without_answers
from ...retrievers.strategies.strategy_registry import StrategyName, make_strategy
from ...retrievers.strategies.transform_retriever import is_tools
from .prompt_templates import llm_or_settings
from .retriever import NodeGraphRetriever, undecorated
from .synthesizers import (
    SYNTHESIS_OPTIONS,
    LlamaIndexSynthesizer,
    QueryEngineSynthesizer,
    RecordingRetriever,
    RetrievalRecord,
    Retrieve,
    Synthesizer,
)


class NodeGraphQueryEngine(BaseQueryEngine):
    """Answer questions in LlamaIndex with a nodekin retriever, by a strategy or none.

    The answer is made by LlamaIndex's response synthesizer, or by nodekin's ``QueryEngine``, which
    numbers its sources and cites them, keeps to a context window, and answers from
    question-answer pairs without a model: pass that instead of a retriever.

    ``retrieve`` retrieves only, by the strategy, without answers to sub-questions.
    ``response.source_nodes`` are nodes of the graph. ``response.metadata`` has their metadata by
    their ids, and these fields:

    - ``"sub_qa"``: with sub-questions and steps, a list of ``(question, response)``, each response
      with the short answer (None if there is none) and its source nodes;
    - ``"errors"``: if something failed and the rest went on, a list of dicts of ``question`` and
      ``error``. If no search succeeds, the error is raised;
    - ``"ended"``: with steps, why no further question was searched for;
    - of nodekin's ``QueryEngine``: ``"found"``, ``"cited"`` (numbers, ``[1]`` is the first source
      node), ``"calls"``, ``"preset"``, ``"notes"``, ``"left_out"``. A streamed response has them
      when it has been read to its end.

    Prompts are read and replaced as in LlamaIndex: ``get_prompts()``; their names begin with
    ``retriever:`` (the strategy's, ``retriever:rewrite_en``, and with their path those of the
    strategies within, ``retriever:inner.rewrite_en``) and ``response_synthesizer:``.

    Args:
        source: A nodekin retriever, or what ``as_retriever`` takes for one, a ``NodeGraph`` for
            example; nodekin's ``QueryEngine``; or, with
            ``strategy="sub_question"``, tools: a list of ``QueryEngineTool``, or a mapping from
            names to retrievers and query engines.
        llm: The model, for the strategy and the answer. None for ``Settings.llm``, read at each
            query, or for that of the ``QueryEngine``. A strategy takes it in any form; to answer
            with a model that is not LlamaIndex's, a synthesizer is required.
        strategy: ``"none"``, ``"rewrite"``, ``"multi_query"``, ``"hyde"``, ``"sub_question"``, or
            ``"multi_step"``.
        response_synthesizer: LlamaIndex's. None for its default one with the model.
        similarity_top_k: How many nodes to retrieve. None for the retriever's own number.
        filters: Conditions on metadata, as for ``NodeGraphRetriever``.
        node_postprocessors: Are applied to the retrieved nodes, one after the other.
        streaming: Whether answers are streamed.
        callback_manager: As everywhere in LlamaIndex.
        **options: Those of LlamaIndex's response synthesizers: ``response_mode``,
            ``text_qa_template``, ``refine_template``, ``output_cls``, and so on; those of the
            strategy: ``max_steps``, ``limit``, ``answers``, ``prompt``; ``verbose=True``, which
            prints each retrieval's stages and why its results were found; and ``num_workers``, see
            ``NodeGraphRetriever``.

    Raises:
        TypeError: If an argument has the wrong type, or there is no such option.
        ValueError: If there is no such strategy, or a synthesizer would not be used.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> from nodekin.retrievers import Retriever
        >>> graph = NodeGraph()
        >>> ids = graph.add(["The Nile is 6,650 km long.", "Tea is a drink."])
        >>> answers = QueryEngine(Retriever(graph, "ROOT"), lambda prompt: "6,650 km [1].")
        >>> engine = NodeGraphQueryEngine(answers)
        >>> response = engine.query("How long is the Nile?")
        >>> print(response, response.metadata["cited"], response.source_nodes[0].text)
        6,650 km [1]. [1] The Nile is 6,650 km long.
    """

    def __init__(
        self,
        source: RetrieverLike | QueryEngine,
        llm: object = None,
        *,
        strategy: StrategyName | Literal["none"] = "none",
        response_synthesizer: BaseSynthesizer | None = None,
        similarity_top_k: int | None = None,
        filters: MetadataFilters | Filters | None = None,
        node_postprocessors: Sequence[BaseNodePostprocessor] | None = None,
        streaming: bool = False,
        callback_manager: CallbackManager | None = None,
        **options: object,
    ) -> None:
        engine = source if isinstance(source, QueryEngine) else None
        _check_synthesizer(response_synthesizer, llm, engine, streaming)
        if callback_manager is None:
            own = response_synthesizer and response_synthesizer.callback_manager
            callback_manager = own or Settings.callback_manager
        super().__init__(callback_manager)
        retrieval: Any = {name: options.pop(name) for name in _RETRIEVAL & options.keys()}
        synthesis = {name: options.pop(name) for name in SYNTHESIS_OPTIONS & options.keys()}
        if synthesis and (engine is not None or response_synthesizer is not None):
            other = "QueryEngine" if engine is not None else "response_synthesizer"
            raise ValueError(
                f"{sorted(synthesis)} would not be used: the {other} makes the answers; set them "
                "there, or leave it out"
            )
        inner: RetrieverLike
        self._synthesizer: Synthesizer
        if isinstance(source, QueryEngine):
            self._synthesizer = QueryEngineSynthesizer(
                source, streaming=streaming, callback_manager=callback_manager
            )
            inner, llm = source.retriever, source.llm if llm is None else llm
            similarity_top_k = source.top_k if similarity_top_k is None else similarity_top_k
        else:
            self._synthesizer = LlamaIndexSynthesizer(
                response_synthesizer,
                llm if isinstance(llm, LLM) else None,
                streaming=streaming,
                callback_manager=callback_manager,
                options=synthesis,
            )
            if is_tools(source) and strategy == "sub_question":
                inner = source
            else:
                inner = as_retriever(source, "source")
        if strategy == "sub_question":
            options.setdefault("answers", engine is None)
        if strategy != "none":
            inner = make_strategy(strategy, inner, llm_or_settings(llm), **options)
        elif options:
            raise TypeError(
                f"{sorted(options)} are no arguments of a query engine; if they are those of a "
                "strategy, name it: strategy='rewrite'"
            )
        self._retriever = NodeGraphRetriever(
            inner,
            similarity_top_k=similarity_top_k,
            filters=filters,
            callback_manager=callback_manager,
            **retrieval,
        )
        self._postprocessors = list(node_postprocessors or [])
        for postprocessor in self._postprocessors:
            postprocessor.callback_manager = callback_manager

    def __repr__(self) -> str:
        return f"NodeGraphQueryEngine({self._retriever!r})"

    @classmethod
    def from_args(
        cls, retriever: RetrieverLike | QueryEngine, llm: object = None, **options: Any
    ) -> NodeGraphQueryEngine:
        """Make one as ``RetrieverQueryEngine.from_args`` does; the arguments are the class's."""
        return cls(retriever, llm, **options)

    @classmethod
    def from_defaults(
        cls, query_engine_tools: Sequence[QueryEngineTool], llm: object = None, **options: Any
    ) -> NodeGraphQueryEngine:
        """Make one as ``SubQuestionQueryEngine.from_defaults`` does.

        Args:
            query_engine_tools: The tools, of which the model chooses one for each sub-question.
            llm: The model. None for ``Settings.llm``.
            **options: The class's other arguments, and those of the strategy.
        """
        tools: Any = [*query_engine_tools]
        return cls(tools, llm, strategy="sub_question", **options)

    @property
    def retriever(self) -> NodeGraphRetriever:
        """The retriever, with its strategy."""
        return self._retriever

    def query(
        self, str_or_query_bundle: QueryType, filters: MetadataFilters | Filters | None = None
    ) -> RESPONSE_TYPE:
        """Return the answer to a question.

        Args:
            str_or_query_bundle: The question.
            filters: Conditions of this call alone, in addition to the engine's: those of a user
                of an engine that many share.
        """
        return undecorated(BaseQueryEngine.query)(self._narrowed(filters), str_or_query_bundle)

    async def aquery(
        self, str_or_query_bundle: QueryType, filters: MetadataFilters | Filters | None = None
    ) -> RESPONSE_TYPE:
        """Async version of ``query``."""
        call = undecorated(BaseQueryEngine.aquery)
        return await call(self._narrowed(filters), str_or_query_bundle)

    def _narrowed(self, filters: MetadataFilters | Filters | None) -> NodeGraphQueryEngine:
        if filters is None:
            return self
        other = copy.copy(self)
        other._retriever = self._retriever.narrowed(filters)
        return other

    def retrieve(self, query_bundle: QueryType) -> list[NodeWithScore]:
        """Return the nodes that an answer would be made from, best first."""
        return run(self._retrieve_only(_bundle(query_bundle)))

    async def aretrieve(self, query_bundle: QueryType) -> list[NodeWithScore]:
        """Async version of ``retrieve``."""
        return await arun(self._retrieve_only(_bundle(query_bundle)))

    def synthesize(
        self,
        query_bundle: QueryType,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
    ) -> RESPONSE_TYPE:
        """Return the answer to a question from nodes."""
        retrieve = partial(_return_nodes, nodes)
        return run(self._respond(_bundle(query_bundle), retrieve, additional_source_nodes))

    async def asynthesize(
        self,
        query_bundle: QueryType,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
    ) -> RESPONSE_TYPE:
        """Async version of ``synthesize``."""
        retrieve = partial(_return_nodes, nodes)
        return await arun(self._respond(_bundle(query_bundle), retrieve, additional_source_nodes))

    def _query(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        return run(self._answer(query_bundle))

    async def _aquery(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        return await arun(self._answer(query_bundle))

    def _get_prompt_modules(self) -> PromptMixinType:
        return {"retriever": self._retriever, "response_synthesizer": self._synthesizer}

    # Plans

    def _answer(self, bundle: QueryBundle) -> Plan[RESPONSE_TYPE]:
        payload: dict[str, Any] = {EventPayload.QUERY_STR: bundle.query_str}
        with self.callback_manager.event(CBEventType.QUERY, payload=payload) as event:
            response = yield from self._respond(bundle, self._retrieve)
            event.on_end(payload={EventPayload.RESPONSE: response})
        return response

    def _respond(
        self,
        bundle: QueryBundle,
        retrieve: Retrieve,
        more_sources: Sequence[NodeWithScore] | None = None,
    ) -> Plan[RESPONSE_TYPE]:
        """Return the response, with the metadata of its sources and of the retrieval."""
        response, record = yield from self._synthesizer.respond(
            bundle, retrieve, self._retriever.filters
        )
        response.source_nodes = [*response.source_nodes, *(more_sources or ())]
        response.metadata.update(
            {source.node.node_id: source.node.metadata for source in response.source_nodes}
        )
        response.metadata.update(record.metadata())
        complete: RESPONSE_TYPE = response
        return complete

    def _retrieve(self, bundle: QueryBundle) -> Plan[tuple[list[NodeWithScore], RetrievalRecord]]:
        recorder = RecordingRetriever(self._retriever.search_for(bundle))
        nodes = yield from self._nodes(self._retriever.with_retriever(recorder), bundle)
        return nodes, recorder.record

    def _retrieve_only(self, bundle: QueryBundle) -> Plan[list[NodeWithScore]]:
        with without_answers():
            return (yield from self._nodes(self._retriever, bundle))

    def _nodes(
        self, retriever: NodeGraphRetriever, bundle: QueryBundle
    ) -> Plan[list[NodeWithScore]]:
        """Retrieve nodes and apply the postprocessors."""
        nodes = yield from Compute.of(retriever.retrieve, retriever.aretrieve, bundle)
        for processor in self._postprocessors:
            nodes = yield from Compute.of(
                processor.postprocess_nodes, processor.apostprocess_nodes, nodes, bundle
            )
        return nodes


_RETRIEVAL = frozenset({"num_workers", "verbose"})
"""The options that are those of the ``NodeGraphRetriever``."""


def _return_nodes(
    nodes: list[NodeWithScore], bundle: QueryBundle
) -> Plan[tuple[list[NodeWithScore], RetrievalRecord]]:
    """Return nodes that were retrieved before, as a plan."""
    yield from ()
    return nodes, RetrievalRecord()


def _check_synthesizer(
    synthesizer: BaseSynthesizer | None, llm: object, engine: QueryEngine | None, streaming: bool
) -> None:
    if synthesizer is not None and not isinstance(synthesizer, BaseSynthesizer):
        raise TypeError(
            f"response_synthesizer is LlamaIndex's, not {synthesizer!r:.80}; to answer by nodekin, "
            "give its QueryEngine(retriever, llm) instead of a retriever"
        )
    if synthesizer is not None and engine is not None:
        raise ValueError(
            "a QueryEngine answers by itself; leave response_synthesizer out, or give its retriever"
        )
    if synthesizer is not None and streaming:
        raise ValueError(
            "a response_synthesizer decides itself whether it streams; give "
            "get_response_synthesizer(streaming=True), and leave streaming out"
        )
    if synthesizer is None and engine is None and llm is not None and not isinstance(llm, LLM):
        raise TypeError(
            f"LlamaIndex answers with a LlamaIndex LLM, not {llm!r:.80}; give such a one, a "
            "response_synthesizer, or nodekin's QueryEngine(retriever, llm), which takes any model"
        )


def _bundle(query: QueryType) -> QueryBundle:
    return QueryBundle(query) if isinstance(query, str) else query
