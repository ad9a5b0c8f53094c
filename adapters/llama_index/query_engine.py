"""A LlamaIndex query engine that supports nodekin's retrieval strategies."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from llama_index.core.base.response.schema import RESPONSE_TYPE, Response
from llama_index.core.bridge.pydantic import BaseModel
from llama_index.core.callbacks import CallbackManager
from llama_index.core.indices.prompt_helper import PromptHelper
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.prompts.mixin import PromptMixinType
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import (
    BaseSynthesizer,
    ResponseMode,
    get_response_synthesizer,
)
from llama_index.core.schema import NodeWithScore, QueryBundle, QueryType, TextNode
from llama_index.core.settings import Settings
from llama_index.core.tools import QueryEngineTool
from llama_index.core.vector_stores.types import MetadataFilters
from typing_extensions import Unpack

from ...nodegraph.concurrency import in_thread
from ...nodegraph.errors import explain_names
from ...nodegraph.models.templates import Language, language_of
from ...retrievers.base_retriever import Phrases
from ...retrievers.filters import Filters
from ...retrievers.foreign.outputs import is_answer
from ...retrievers.plans.prompting import PromptReplacement
from ...retrievers.ranking import Mode
from ...retrievers.strategies.model_prompt import OnError
from ...retrievers.strategies.outcome import (
    OutcomeObserver,
    StrategyOutcome,
    answer_texts,
    result_key,
)
from ...retrievers.strategies.self_query import Now
from ...retrievers.strategies.strategy_registry import StrategyName, make_strategy
from ...retrievers.strategies.sub_question import without_answers
from ...retrievers.tracing import observe
from ..argument_types import LanguageModel
from .engine_options import (
    EngineOptions,
    EngineStrategyOptions,
    FilterFields,
    OptionalCount,
    OptionalFlag,
    OptionalNumber,
    OptionalPrompt,
    OptionalTemplate,
    ProgramFactory,
    RetrieverSource,
    SynthesisOptions,
    options_of,
)
from .engine_tools import EngineSubQuestions, tools_of_engines
from .nodes import to_results
from .postprocessed_retriever import PassedResults, with_postprocessors
from .prompt_templates import default_llm
from .retrieval_events import query_event
from .retriever import NodeGraphRetriever, as_bundle

ENGINE_OPTIONS = frozenset(SynthesisOptions.__annotations__) - {"verbose"} | {
    "node_postprocessors",
    "response_synthesizer",
    "strategy",
}
"""The options that a query engine accepts if it is part of a chat engine."""


class NodeGraphQueryEngine(RetrieverQueryEngine):
    """A LlamaIndex query engine that uses a nodekin retriever and optionally a strategy.

    The answer is written by LlamaIndex's response synthesizer. ``response.metadata`` contains the
    metadata of each source node under its id, and the following entries:

    - ``"sub_qa"``: pairs of a sub-question or step and its response;
    - ``"errors"``: failed sub-questions, as dicts of ``question`` and ``error``. If all fail, the
      error is raised;
    - ``"ended"``: the reason why a search in steps ended.

    The method ``retrieve`` uses the strategy as well, but does not answer sub-questions.

    Args:
        source: A ``NodeGraphRetriever``, a nodekin retriever or graph, or, with
            ``strategy="sub_question"``, retrievers by tool name.
        llm: The language model for the strategy and the answer. Defaults to ``Settings.llm``.
        strategy: ``"none"``, ``"rewrite"``, ``"multi_query"``, ``"hyde"``, ``"sub_question"``,
            ``"multi_step"`` or ``"self_query"``.
        response_synthesizer: A LlamaIndex response synthesizer. If None, the default synthesizer is
            created with ``llm``.
        similarity_top_k: The maximum number of retrieved nodes.
        filters: Conditions on metadata, as for ``NodeGraphRetriever``.
        max_tokens: The maximum total number of tokens of the retrieved texts, as for
            ``NodeGraphRetriever``. If a strategy performs several searches, the limit applies to
            the total.
        min_score: The minimum score of retrieved nodes.
        phrases: How quoted phrases in the query are handled, as for ``NodeGraphRetriever``.
        weights: The weights of words and vectors, as for ``NodeGraphRetriever``.
        node_postprocessors: Postprocessors that are applied to the results in this order. If the
            strategy lets a model read passages, they are also applied in each sub-question or step.
        callback_manager: The LlamaIndex callback manager.
        verbose: Whether to print verbose output.
        text_qa_template: An argument of LlamaIndex's ``get_response_synthesizer``. Its other
            arguments are accepted as well: ``refine_template``, ``summary_template``,
            ``simple_template``, ``chat_content_qa_template``, ``chat_content_refine_template``,
            ``chat_summary_template``, ``response_mode``, ``output_cls``, ``use_async``,
            ``streaming``, ``structured_answer_filtering``, ``program_factory``, ``prompt_helper``,
            ``chat_prompt_helper`` and ``multimodal``.
        max_queries: An option of the strategy. The other options of strategies are accepted as
            well: ``include_query``, ``max_steps``, ``max_calls``, ``total_timeout``, ``fetch_k``,
            ``mode``, ``answers``, ``answer_prompt``, ``prompt``, ``language``, ``retries``,
            ``timeout``, ``on_error``, ``fields``, ``now``, ``prompts`` and ``length``. They are
            described in the class of each strategy, such as ``MultiQueryRetriever``.

    Raises:
        TypeError: If an argument has the wrong type or an option is unknown.
        ValueError: If the strategy is unknown, or an option has no effect.
        ImportError: If the package of the default language model is not installed.

    Example:
        >>> from llama_index.core.llms import MockLLM
        >>> from nodekin.nodegraph import NodeGraph
        >>> graph = NodeGraph()
        >>> ids = graph.add(["The Nile is 6,650 km long.", "Tea is a drink."])
        >>> engine = NodeGraphQueryEngine(graph, MockLLM())
        >>> engine.query("How long is the Nile?").source_nodes[0].text
        'The Nile is 6,650 km long.'
    """

    @explain_names
    def __init__(
        self,
        source: RetrieverSource,
        llm: LanguageModel | None = None,
        *,
        strategy: StrategyName | Literal["none"] = "none",
        response_synthesizer: BaseSynthesizer | None = None,
        similarity_top_k: OptionalCount = None,
        filters: MetadataFilters | Filters | None = None,
        max_tokens: OptionalCount = None,
        min_score: OptionalNumber = None,
        phrases: Phrases | None = None,
        weights: Mapping[str, float] | None = None,
        node_postprocessors: Sequence[BaseNodePostprocessor] | None = None,
        callback_manager: CallbackManager | None = None,
        verbose: OptionalFlag = None,
        text_qa_template: OptionalTemplate = None,
        refine_template: OptionalTemplate = None,
        summary_template: OptionalTemplate = None,
        simple_template: OptionalTemplate = None,
        chat_content_qa_template: OptionalTemplate = None,
        chat_content_refine_template: OptionalTemplate = None,
        chat_summary_template: OptionalTemplate = None,
        response_mode: ResponseMode | str | None = None,
        output_cls: type[BaseModel] | None = None,
        use_async: OptionalFlag = None,
        streaming: OptionalFlag = None,
        structured_answer_filtering: OptionalFlag = None,
        program_factory: ProgramFactory | None = None,
        prompt_helper: PromptHelper | None = None,
        chat_prompt_helper: PromptHelper | None = None,
        multimodal: OptionalFlag = None,
        max_queries: OptionalCount = None,
        include_query: OptionalFlag = None,
        max_steps: OptionalCount = None,
        max_calls: OptionalCount = None,
        total_timeout: OptionalNumber = None,
        fetch_k: OptionalCount = None,
        mode: Mode | None = None,
        answers: OptionalFlag = None,
        answer_prompt: OptionalPrompt = None,
        prompt: OptionalPrompt = None,
        language: Language | None = None,
        retries: OptionalCount = None,
        timeout: OptionalNumber = None,
        on_error: OnError | None = None,
        fields: FilterFields | None = None,
        now: Now | None = None,
        prompts: Mapping[str, PromptReplacement] | None = None,
        length: Callable[[str], int] | None = None,
    ) -> None:
        arguments = dict(locals())
        synthesis = options_of(SynthesisOptions, arguments)
        of_strategy = options_of(EngineStrategyOptions, arguments)
        if llm is None and (strategy != "none" or response_synthesizer is None):
            llm = default_llm()
        synthesizer = _synthesizer(response_synthesizer, llm, synthesis)
        inner = _strategy(strategy, source, llm, of_strategy)
        processors = list(node_postprocessors or ())
        manager = callback_manager or Settings.callback_manager
        retriever = _retriever_of(inner, arguments, manager)
        retriever.retriever = with_postprocessors(retriever.retriever, processors)
        super().__init__(retriever, synthesizer, processors, manager)
        self._retriever: NodeGraphRetriever = retriever

    @classmethod
    def from_args(  # type: ignore[override]
        cls,
        retriever: RetrieverSource,
        llm: LanguageModel | None = None,
        **kwargs: Unpack[EngineOptions],
    ) -> NodeGraphQueryEngine:
        """Create a query engine with the same arguments as the constructor.

        This method exists for compatibility with ``RetrieverQueryEngine``.
        """
        return cls(retriever, llm, **kwargs)

    @classmethod
    @explain_names
    def from_defaults(
        cls,
        query_engine_tools: Sequence[QueryEngineTool],
        llm: LanguageModel | None = None,
        *,
        response_synthesizer: BaseSynthesizer | None = None,
        verbose: OptionalFlag = None,
        use_async: OptionalFlag = None,
        similarity_top_k: OptionalCount = None,
        filters: MetadataFilters | Filters | None = None,
        max_tokens: OptionalCount = None,
        min_score: OptionalNumber = None,
        node_postprocessors: Sequence[BaseNodePostprocessor] | None = None,
        callback_manager: CallbackManager | None = None,
        text_qa_template: OptionalTemplate = None,
        refine_template: OptionalTemplate = None,
        summary_template: OptionalTemplate = None,
        simple_template: OptionalTemplate = None,
        chat_content_qa_template: OptionalTemplate = None,
        chat_content_refine_template: OptionalTemplate = None,
        response_mode: ResponseMode | str | None = None,
        output_cls: type[BaseModel] | None = None,
        streaming: OptionalFlag = None,
        multimodal: OptionalFlag = None,
        max_queries: OptionalCount = None,
        include_query: OptionalFlag = None,
        mode: Mode | None = None,
        answers: OptionalFlag = None,
        answer_prompt: OptionalPrompt = None,
        prompt: OptionalPrompt = None,
        language: Language | None = None,
        retries: OptionalCount = None,
        timeout: OptionalNumber = None,
        on_error: OnError | None = None,
    ) -> NodeGraphQueryEngine:
        """Create an engine that answers sub-questions with tools, like ``SubQuestionQueryEngine``.

        Each sub-question is answered by the query engine of its tool, with the engine's own model,
        prompts and postprocessors. The final answer is written from these answers, and the response
        contains the source nodes of all engines. The class describes the remaining arguments.

        Raises:
            ValueError: If two tools have the same name, or the list of tools is empty.
        """
        return cls(
            tools_of_engines(query_engine_tools),
            llm,
            strategy="sub_question",
            response_synthesizer=response_synthesizer,
            verbose=verbose,
            use_async=use_async,
            similarity_top_k=similarity_top_k,
            filters=filters,
            max_tokens=max_tokens,
            min_score=min_score,
            node_postprocessors=node_postprocessors,
            callback_manager=callback_manager,
            text_qa_template=text_qa_template,
            refine_template=refine_template,
            summary_template=summary_template,
            simple_template=simple_template,
            chat_content_qa_template=chat_content_qa_template,
            chat_content_refine_template=chat_content_refine_template,
            response_mode=response_mode,
            output_cls=output_cls,
            streaming=streaming,
            multimodal=multimodal,
            max_queries=max_queries,
            include_query=include_query,
            mode=mode,
            answers=answers,
            answer_prompt=answer_prompt,
            prompt=prompt,
            language=language,
            retries=retries,
            timeout=timeout,
            on_error=on_error,
        )

    def retrieve(self, query_bundle: QueryType) -> list[NodeWithScore]:
        """Return the nodes from which an answer would be written, best first."""
        return RetrieverQueryEngine.retrieve(self._searching(), as_bundle(query_bundle))

    async def aretrieve(self, query_bundle: QueryType) -> list[NodeWithScore]:
        """Async version of ``retrieve``."""
        engine = self._searching()
        return await RetrieverQueryEngine.aretrieve(engine, as_bundle(query_bundle))

    def _searching(self) -> NodeGraphQueryEngine:
        """Return a copy of the engine that does not answer sub-questions."""
        other = copy.copy(self)
        other._retriever = copy.copy(self._retriever)
        other._retriever.retriever = without_answers(self._retriever.retriever)
        return other

    def _query(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        with query_event(self.callback_manager, query_bundle) as responses:
            observer = OutcomeObserver()
            passed = PassedResults()
            with observe(observer), observe(passed):
                nodes = super().retrieve(query_bundle)
            outcome = self._displayed(observer.outcome, passed, nodes)
            passages = _passages(nodes, outcome, query_bundle)
            response = self._response_synthesizer.synthesize(query=query_bundle, nodes=passages)
            responses.append(_completed(response, nodes, outcome))
        return responses[0]

    async def _aquery(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        with query_event(self.callback_manager, query_bundle) as responses:
            observer = OutcomeObserver()
            passed = PassedResults()
            with observe(observer), observe(passed):
                nodes = await super().aretrieve(query_bundle)
            outcome = self._displayed(observer.outcome, passed, nodes)
            passages = _passages(nodes, outcome, query_bundle)
            response = await self._response_synthesizer.asynthesize(
                query=query_bundle, nodes=passages
            )
            responses.append(await in_thread(_completed, response, nodes, outcome))
        return responses[0]

    def _displayed(
        self,
        outcome: StrategyOutcome | None,
        passed: PassedResults,
        nodes: Sequence[NodeWithScore],
    ) -> StrategyOutcome | None:
        """Return the outcome of a strategy without the results that the postprocessors removed."""
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


def _synthesizer(
    given: BaseSynthesizer | None, llm: LanguageModel | None, options: dict[str, Any]
) -> BaseSynthesizer:
    """Return the given response synthesizer, or create one with the given options."""
    if given is None:
        model: Any = llm
        return get_response_synthesizer(llm=model, **options)
    if options:
        raise ValueError(f"pass {sorted(options)} to the response_synthesizer")
    return given


def _strategy(
    strategy: StrategyName | Literal["none"],
    source: RetrieverSource,
    llm: LanguageModel | None,
    options: dict[str, Any],
) -> Any:
    """Return a retriever that applies a strategy. Sub-questions are answered by default."""
    if strategy == "none":
        if options:
            raise TypeError(
                f"{sorted(options)} are options of a strategy; write strategy=... as well"
            )
        return source
    if strategy != "sub_question":
        return make_strategy(strategy, source, llm, **options)
    return EngineSubQuestions(source, llm, **{"answers": True, **options})


def _retriever_of(
    inner: Any, arguments: Mapping[str, Any], manager: CallbackManager
) -> NodeGraphRetriever:
    """Create the retriever of a query engine. It is always a new object that may be modified.

    Args:
        inner: The retriever, including the strategy.
        arguments: The arguments of the query engine.
        manager: The callback manager. If a ``NodeGraphRetriever`` is given, its own callback
            manager is used instead.
    """
    source = arguments["source"]
    filters = arguments["filters"]
    if isinstance(inner, NodeGraphRetriever):
        retriever = copy.copy(inner.narrowed(filters))
    else:
        retriever = NodeGraphRetriever(
            inner,
            filters=filters,
            object_map=getattr(source, "object_map", None),
            callback_manager=getattr(source, "callback_manager", manager),
        )
    if arguments["similarity_top_k"] is not None:
        retriever.similarity_top_k = arguments["similarity_top_k"]
    max_tokens = arguments["max_tokens"]
    if max_tokens is None:
        max_tokens = getattr(source, "max_tokens", None)
    return retriever.with_settings(
        max_tokens=max_tokens,
        min_score=arguments["min_score"],
        phrases=arguments["phrases"],
        weights=arguments["weights"],
    )


def _passages(
    nodes: Sequence[NodeWithScore], outcome: StrategyOutcome | None, bundle: QueryBundle
) -> list[NodeWithScore]:
    """Return the answers to sub-questions, followed by the retrieved nodes.

    If a tool's engine has answered a sub-question, the sources of the answer are left out, because
    only the engine itself needs to read them.
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
    """Add the source nodes and the metadata to a response.

    The best passage of each answered sub-question is one of the source nodes.
    """
    parts = () if outcome is None else outcome.parts
    best = [part.results[0] for part in parts if part.answer and part.results]
    # Different tools may use the same id for different nodes.
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
