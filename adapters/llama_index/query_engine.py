"""Let a nodekin retriever, with a strategy, be a LlamaIndex query engine."""

from __future__ import annotations

import copy
import inspect
from abc import abstractmethod
from collections.abc import (
    AsyncGenerator,
    Callable,
    Collection,
    Coroutine,
    Generator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.response.schema import (
    RESPONSE_TYPE,
    AsyncStreamingResponse,
    Response,
    StreamingResponse,
)
from llama_index.core.bridge.pydantic import BaseModel
from llama_index.core.callbacks import CallbackManager, CBEventType, EventPayload
from llama_index.core.indices.prompt_helper import PromptHelper
from llama_index.core.llms import LLM, MockLLM
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.prompts.mixin import PromptMixin, PromptMixinType
from llama_index.core.response_synthesizers import (
    BaseSynthesizer,
    ResponseMode,
    get_response_synthesizer,
)
from llama_index.core.response_synthesizers.context_only import ContextOnly
from llama_index.core.response_synthesizers.no_text import NoText
from llama_index.core.schema import NodeWithScore, QueryBundle, QueryType, TextNode
from llama_index.core.settings import Settings
from llama_index.core.tools import QueryEngineTool
from llama_index.core.vector_stores.types import MetadataFilters

from ...nodegraph.models.templates import language_of
from ...retrievers.answers.answer import Answer
from ...retrievers.answers.engine import QueryEngine
from ...retrievers.filters import Filters
from ...retrievers.foreign.coercion import as_retriever
from ...retrievers.foreign.outputs import ForeignNode, is_answer
from ...retrievers.planned_retriever import PlannedRetriever
from ...retrievers.plans.effects import find_all
from ...retrievers.plans.plan import Do, arun, run
from ...retrievers.plans.prompting import PromptReplacement
from ...retrievers.protocols import RetrieverLike, RetrieverProtocol
from ...retrievers.ranking import Mode
from ...retrievers.results import ScoredNode
from ...retrievers.strategies.model_prompt import QueryTransformOptions
from ...retrievers.strategies.multi_step import MultiStepRetriever
from ...retrievers.strategies.outcome import (
    OutcomeObserver,
    SubResults,
    answer_texts,
)
from ...retrievers.strategies.strategy_registry import (
    StrategyName,
    make_strategy,
)
from ...retrievers.strategies.sub_question import SubQuestionRetriever, without_answers
from ...retrievers.strategies.transform_retriever import is_tools
from ...retrievers.tracing import observe
from .instrumentation import report_spans
from .nodes import id_in_llama_index, to_node_with_score, to_nodes_with_scores, to_scored_node
from .prompt_templates import NativePrompts, default_llm, llm_or_settings
from .retriever import NodeGraphRetriever, as_bundle, undecorated

if TYPE_CHECKING:
    from typing_extensions import Unpack


class NamedStrategyOptions(QueryTransformOptions, total=False):
    """The options of strategies, to type ``**options``. See the class of the strategy."""

    max_queries: int | None
    mode: Mode
    query_weight: float
    answers: bool
    answer_llm: object
    answer_prompt: PromptReplacement | None
    max_steps: int
    max_calls: int
    total_timeout: float | None
    fetch_k: int
    max_tokens: int
    length: Callable[[str], int]


class EngineOptions(NamedStrategyOptions, total=False):
    """The options of a ``NodeGraphQueryEngine``, to type ``**options``. See there.

    Templates and those after them are LlamaIndex's, of its response synthesizers.
    """

    strategy: StrategyName | Literal["none"]
    response_synthesizer: BaseSynthesizer | None
    similarity_top_k: int | None
    filters: MetadataFilters | Filters | None
    node_postprocessors: Sequence[BaseNodePostprocessor] | None
    streaming: bool
    callback_manager: CallbackManager | None
    verbose: bool
    num_workers: int | None
    response_mode: ResponseMode | str
    text_qa_template: BasePromptTemplate | None
    refine_template: BasePromptTemplate | None
    summary_template: BasePromptTemplate | None
    simple_template: BasePromptTemplate | None
    prompt_helper: PromptHelper | None
    use_async: bool
    structured_answer_filtering: bool
    output_cls: type[BaseModel] | None
    program_factory: Callable[[BasePromptTemplate], Any] | None


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
            ``strategy="sub_question"``, tools: a mapping from names to retrievers and functions.
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
        cls,
        retriever: RetrieverLike | QueryEngine,
        llm: object = None,
        **options: Unpack[EngineOptions],
    ) -> NodeGraphQueryEngine:
        """Make one as ``RetrieverQueryEngine.from_args`` does; the arguments are the class's."""
        return cls(retriever, llm, **options)

    @classmethod
    def from_defaults(
        cls,
        query_engine_tools: Sequence[QueryEngineTool],
        llm: object = None,
        **options: Unpack[EngineOptions],
    ) -> NodeGraphQueryEngine:
        """Make one as ``SubQuestionQueryEngine.from_defaults`` does.

        Args:
            query_engine_tools: The tools, of which the model chooses one for each sub-question.
            llm: The model. None for ``Settings.llm``.
            **options: The class's other arguments, and those of the strategy.
        """
        tools: dict[str, Any] = {
            str(tool.metadata.name): (tool.metadata.description, _searched(tool.query_engine))
            for tool in query_engine_tools
        }
        options["strategy"] = "sub_question"
        return cls(tools, llm, **options)

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
        return run(partial(self._retrieve_only, as_bundle(query_bundle)))

    async def aretrieve(self, query_bundle: QueryType) -> list[NodeWithScore]:
        """Async version of ``retrieve``."""
        return await arun(partial(self._retrieve_only, as_bundle(query_bundle)))

    def synthesize(
        self,
        query_bundle: QueryType,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
    ) -> RESPONSE_TYPE:
        """Return the answer to a question from nodes."""
        retrieve = partial(_return_nodes, nodes)
        return run(
            partial(self._respond, as_bundle(query_bundle), retrieve, additional_source_nodes)
        )

    async def asynthesize(
        self,
        query_bundle: QueryType,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
    ) -> RESPONSE_TYPE:
        """Async version of ``synthesize``."""
        retrieve = partial(_return_nodes, nodes)
        return await arun(
            partial(self._respond, as_bundle(query_bundle), retrieve, additional_source_nodes)
        )

    def _query(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        return run(partial(self._answer, query_bundle))

    async def _aquery(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        return await arun(partial(self._answer, query_bundle))

    def _get_prompt_modules(self) -> PromptMixinType:
        return {"retriever": self._retriever, "response_synthesizer": self._synthesizer}

    # Plans

    async def _answer(self, bundle: QueryBundle) -> RESPONSE_TYPE:
        payload: dict[str, Any] = {EventPayload.QUERY_STR: bundle.query_str}
        with self.callback_manager.event(CBEventType.QUERY, payload=payload) as event:
            response = await self._respond(bundle, self._retrieve)
            event.on_end(payload={EventPayload.RESPONSE: response})
        return response

    async def _respond(
        self,
        bundle: QueryBundle,
        retrieve: Retrieve,
        more_sources: Sequence[NodeWithScore] | None = None,
    ) -> RESPONSE_TYPE:
        """Return the response, with the metadata of its sources and of the retrieval."""
        response, record = await self._synthesizer.respond(
            bundle, retrieve, self._retriever.filters
        )
        response.source_nodes = [*response.source_nodes, *(more_sources or ())]
        response.metadata.update(
            {source.node.node_id: source.node.metadata for source in response.source_nodes}
        )
        response.metadata.update(await Do(record.metadata, kind="work"))
        complete: RESPONSE_TYPE = response
        return complete

    async def _retrieve(self, bundle: QueryBundle) -> tuple[list[NodeWithScore], RetrievalRecord]:
        recorder = RecordingRetriever(self._retriever.search_for(bundle))
        nodes = await self._nodes(self._retriever.with_retriever(recorder), bundle)
        return nodes, recorder.record

    async def _retrieve_only(self, bundle: QueryBundle) -> list[NodeWithScore]:
        inner = without_answers(self._retriever.retriever)
        return await self._nodes(self._retriever.with_retriever(inner), bundle)

    async def _nodes(
        self, retriever: NodeGraphRetriever, bundle: QueryBundle
    ) -> list[NodeWithScore]:
        """Retrieve nodes and apply the postprocessors."""
        nodes = await Do(
            partial(retriever.retrieve, bundle),
            partial(retriever.aretrieve, bundle),
        )
        for processor in self._postprocessors:
            nodes = await Do(
                partial(processor.postprocess_nodes, nodes, bundle),
                partial(processor.apostprocess_nodes, nodes, bundle),
            )
        return nodes


_RETRIEVAL = frozenset({"num_workers", "verbose"})
"""The options that are those of the ``NodeGraphRetriever``."""


async def _return_nodes(
    nodes: list[NodeWithScore], bundle: QueryBundle
) -> tuple[list[NodeWithScore], RetrievalRecord]:
    """Return nodes that were retrieved before."""
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


_WITH_PARTS = (SubQuestionRetriever.variant_name, MultiStepRetriever.name)

_ANSWER = "answer: "  # how the note of a partial answer begins


@dataclass(frozen=True, slots=True)
class RetrievalRecord:
    """Hold the results of a retrieval, and how they were reached.

    Attributes:
        results: Best first.
        parts: The questions that were searched for besides the question itself. None if the
            retriever is no strategy with further questions.
        errors: Pairs of a question and what went wrong with it.
        ended: Why a search in steps has no further step.
    """

    results: list[ScoredNode] = field(default_factory=list)
    parts: tuple[SubResults, ...] | None = None
    errors: tuple[tuple[str, str], ...] = ()
    ended: str | None = None

    def metadata(self) -> dict[str, Any]:
        """Return the fields ``sub_qa``, ``errors`` and ``ended`` of a response's metadata."""
        parts = self.parts or ()
        answers = [(part.question, Response(part.answer, _sources(part))) for part in parts]
        errors = [{"question": question, "error": error} for question, error in self.errors]
        return {
            **({} if self.parts is None else {"sub_qa": answers}),
            **({"errors": errors} if errors else {}),
            **({} if self.ended is None else {"ended": self.ended}),
        }

    def sources(self, nodes: Sequence[NodeWithScore]) -> list[NodeWithScore]:
        """Return the source nodes of a response that was made from nodes, each once.

        What a query engine answered from replaces its answer, which is among the evidence. After
        the nodes comes the best passage of each answer to a sub-question: the number of nodes
        holds for the whole question, and these answers are part of the prompt.
        """
        answers = {hit.node.id: hit for hit in self.results if is_answer(hit)}
        best = [part.results[0] for part in self.parts or () if part.answer and part.results]
        sources: dict[str, NodeWithScore] = {}
        for node in [*nodes, *to_nodes_with_scores(best)]:
            for source in _answered_from(answers.get(node.node_id)) or [node]:
                sources.setdefault(source.node_id, source)
        return [*sources.values()]

    def answer_nodes(self, query: str) -> list[NodeWithScore]:
        """Return the answers to sub-questions as nodes, the only thing that a synthesizer reads.

        An answer of a query engine is among the results already.
        """
        texts = answer_texts(self.parts or (), language_of(query))
        return [NodeWithScore(node=TextNode(text=text)) for text in texts]


def _sources(part: SubResults) -> list[NodeWithScore]:
    return RetrievalRecord([*part.results]).sources([*to_nodes_with_scores(part.results)])


def _answered_from(answer: ScoredNode | None) -> list[NodeWithScore]:
    """Return what an answer was made from, with the answer as evidence; nothing if unknown."""
    if answer is None or not isinstance(answer.node, ForeignNode):
        return []
    return [
        result
        for source in answer.node.sources
        for result in _answered_from(source)
        or [to_node_with_score(replace(source, evidence=(*source.evidence, *answer.evidence[:1])))]
    ]


class RecordingRetriever(PlannedRetriever):
    """Retrieve for one query, and record how.

    Args:
        inner: Any nodekin retriever.

    Attributes:
        record: Of the last retrieval.
    """

    name = "recording"

    def __init__(self, inner: RetrieverProtocol) -> None:
        super().__init__()
        self.inner = inner
        self.record = RetrievalRecord()

    async def search_all(
        self, queries: Sequence[str], limit: int | None, filters: Filters | None
    ) -> list[list[ScoredNode]]:
        """Return the results of each query."""
        results = []
        for query in queries:
            self.record = await self._plan(query, limit, filters)
            results.append(self.record.results)
        return results

    async def _plan(
        self, query: str, limit: int | None, filters: Filters | None
    ) -> RetrievalRecord:
        observer = OutcomeObserver()
        with observe(observer):
            (results,) = await find_all(self.inner, [query], limit, filters)
        outcome = observer.outcome
        if outcome is None:
            return RetrievalRecord(results, errors=_noted_errors(results))
        errors = dict.fromkeys((*outcome.errors, *_noted_errors(results, _WITH_PARTS)))
        return RetrievalRecord(results, outcome.parts, tuple(errors), outcome.ended)


def _noted_errors(
    results: Sequence[ScoredNode], but_of: Collection[str] = ()
) -> tuple[tuple[str, str], ...]:
    """Return the errors that the evidence notes, each once; a note can be an answer instead.

    Args:
        results: The results.
        but_of: The strategies whose errors are known otherwise, in other words.
    """
    variants = (v for result in results for match in result.evidence for v in match.variants)
    notes = dict.fromkeys(
        (v.query, v.note)
        for v in variants
        if v.note is not None and not v.strategy.startswith(tuple(but_of))
    )
    return tuple(note for note in notes if not note[1].startswith(_ANSWER))


Retrieve = Callable[[QueryBundle], Coroutine[Any, Any, tuple[list[NodeWithScore], RetrievalRecord]]]
"""Retrieves through LlamaIndex, with its events and postprocessors."""

SYNTHESIS_OPTIONS = frozenset(inspect.signature(get_response_synthesizer).parameters) - {
    "llm",
    "callback_manager",
    "streaming",
    "verbose",
}
"""Arguments of LlamaIndex's response synthesizers, as query engines take them."""

_WITHOUT_MODEL = {ResponseMode.NO_TEXT: NoText, ResponseMode.CONTEXT_ONLY: ContextOnly}
"""LlamaIndex's own factory reads ``Settings.llm`` for these and fails without it."""


class Synthesizer(PromptMixin):
    """Make the response to a query, with its source nodes and its metadata so far."""

    @abstractmethod
    async def respond(
        self, query_bundle: QueryBundle, retrieve: Retrieve, filters: Filters | None
    ) -> tuple[Any, RetrievalRecord]:
        """Return the response, and the record of its retrieval.

        Args:
            query_bundle: The query.
            retrieve: Retrieves nodes for a bundle.
            filters: The conditions of the retrieval, for what is answered without it.
        """

    def _get_prompt_modules(self) -> PromptMixinType:
        return {}


class LlamaIndexSynthesizer(Synthesizer):
    """Answer by LlamaIndex's response synthesizer, whose prompts can be read without a model.

    Args:
        synthesizer: The synthesizer. None to create the default one when it is needed.
        llm: The model to create it with. None for ``Settings.llm`` at the time of each query.
        streaming: Whether it streams.
        callback_manager: Its callback manager.
        options: More arguments of ``get_response_synthesizer``, by ``SYNTHESIS_OPTIONS``.

    Raises:
        ValueError: If there is no such ``response_mode``.
    """

    def __init__(
        self,
        synthesizer: BaseSynthesizer | None,
        llm: LLM | None,
        *,
        streaming: bool,
        callback_manager: CallbackManager,
        options: Mapping[str, object] | None = None,
    ) -> None:
        self._synthesizer = synthesizer
        self._llm = llm
        passed: Any = dict(options or {})
        if "response_mode" in passed:
            passed["response_mode"] = _response_mode(passed["response_mode"])
        self._options = {**passed, "streaming": streaming, "callback_manager": callback_manager}
        without_model = _WITHOUT_MODEL.get(passed.get("response_mode"))
        if synthesizer is None and without_model is not None:
            self._synthesizer = without_model(
                MockLLM(), callback_manager=callback_manager, streaming=streaming
            )
        self._prompt_holder = self._synthesizer or get_response_synthesizer(
            llm=MockLLM(), callback_manager=CallbackManager([]), **passed
        )

    async def respond(
        self, query_bundle: QueryBundle, retrieve: Retrieve, filters: Filters | None
    ) -> tuple[Any, RetrievalRecord]:
        """Retrieve and answer, also from the answers to sub-questions.

        Raises:
            ImportError: If there is neither a model nor one in LlamaIndex's settings.
        """
        nodes, record = await retrieve(query_bundle)
        synthesizer = self._with_model()
        texts = [*record.answer_nodes(query_bundle.query_str), *nodes]
        response: Any = await Do(
            partial(synthesizer.synthesize, query_bundle, texts),
            partial(synthesizer.asynthesize, query_bundle, texts),
        )
        response.source_nodes = await Do(partial(record.sources, nodes), kind="work")
        response.metadata = {}
        return response, record

    def _with_model(self) -> BaseSynthesizer:
        if self._synthesizer is not None:
            return self._synthesizer
        llm = self._llm
        if llm is None:
            llm = (
                MockLLM() if self._options.get("response_mode") in _WITHOUT_MODEL else default_llm()
            )
        synthesizer = get_response_synthesizer(llm=llm, **self._options)
        synthesizer.update_prompts(self._prompt_holder.get_prompts())
        return synthesizer

    def _get_prompts(self) -> dict[str, BasePromptTemplate]:
        return self._prompt_holder.get_prompts()

    def _update_prompts(self, prompts_dict: dict[str, BasePromptTemplate]) -> None:
        self._prompt_holder.update_prompts(prompts_dict)


def _response_mode(value: object) -> ResponseMode:
    try:
        return ResponseMode(value)
    except ValueError:
        modes = [mode.value for mode in ResponseMode]
        raise ValueError(f"response_mode is one of {modes}, not {value!r:.80}") from None


class QueryEngineSynthesizer(NativePrompts, Synthesizer):
    """Answer by nodekin's query engine, from passages that LlamaIndex retrieves.

    Args:
        engine: The query engine; its own retriever is not used.
        streaming: Whether answers are streamed.
        callback_manager: Gets an event for each span.
    """

    def __init__(
        self, engine: QueryEngine, *, streaming: bool, callback_manager: CallbackManager
    ) -> None:
        self._native = engine
        self._streaming = streaming
        self._report_spans = partial(report_spans, callback_manager)

    async def respond(
        self, query_bundle: QueryBundle, retrieve: Retrieve, filters: Filters | None
    ) -> tuple[Any, RetrievalRecord]:
        """Answer, and retrieve where the engine needs passages."""
        passages = PassageRetriever(query_bundle, retrieve)
        engine = copy.copy(self._native)
        engine.retriever = passages
        question = query_bundle.query_str
        with self._report_spans():
            if self._streaming:  # the rest of a stream runs in the context of its first text
                response = await Do(
                    partial(_stream, engine, question, passages, filters),
                    partial(_astream, engine, question, passages, filters),
                )
            else:
                answer: Answer = await Do(
                    partial(engine.query, question, filters=filters),
                    partial(engine.aquery, question, filters=filters),
                )
                response = Response(answer.text, passages.sources(answer), _metadata(answer))
        return response, passages.record


class PassageRetriever(PlannedRetriever):
    """Retrieve the passages of one answer through LlamaIndex, as a retriever of nodekin.

    The retriever of LlamaIndex adds the filters, which are those of the call.

    Args:
        query_bundle: The query.
        retrieve: Retrieves nodes for a bundle.

    Attributes:
        record: Of the last retrieval.
    """

    name = "passages"

    def __init__(self, query_bundle: QueryBundle, retrieve: Retrieve) -> None:
        super().__init__()
        self._bundle = query_bundle
        self._retrieve = retrieve
        self._nodes: dict[str, NodeWithScore] = {}  # by the node's id in nodekin
        self.record = RetrievalRecord()

    async def search_all(
        self, queries: Sequence[str], limit: int | None, filters: Filters | None
    ) -> list[list[ScoredNode]]:
        """Return the results of each query."""
        results = []
        for query in queries:
            bundle = self._bundle if query == self._bundle.query_str else QueryBundle(query)
            nodes, self.record = await self._retrieve(bundle)
            results.append(self._results(nodes))
        return results

    def _results(self, nodes: Sequence[NodeWithScore]) -> list[ScoredNode]:
        """Return nodekin's results of LlamaIndex nodes, those of the record where they are."""
        by_id = {id_in_llama_index(hit.node): hit for hit in self.record.results}
        results = []
        for node in nodes:
            hit = by_id.get(node.node.node_id)
            score = 0.0 if node.score is None else float(node.score)
            result = to_scored_node(node) if hit is None else replace(hit, score=score)
            self._nodes[result.node.id] = node
            results.append(result)
        return results

    def sources(self, answer: Answer) -> list[NodeWithScore]:
        """Return an answer's sources as LlamaIndex nodes: ``[1]`` cites the first of them."""
        results = [source.result for source in answer.sources]
        results += [result for source in answer.sources for result in source.merged]
        return [self._nodes.get(r.node.id) or to_node_with_score(r) for r in results]


def _stream(
    engine: QueryEngine, question: str, passages: PassageRetriever, filters: Filters | None
) -> StreamingResponse:
    """Return the answer as the model writes it; its metadata is complete at the end."""
    stream = engine.stream(question, filters=filters)
    first = next(stream, "")  # the sources are known from now on
    metadata: dict[str, Any] = {}

    def texts() -> Generator[str, None, None]:
        with stream:
            yield first
            yield from stream
            metadata.update(_metadata(stream.answer))

    return StreamingResponse(texts(), passages.sources(stream.answer), metadata)


async def _astream(
    engine: QueryEngine, question: str, passages: PassageRetriever, filters: Filters | None
) -> AsyncStreamingResponse:
    """Async version of ``texts``."""
    stream = engine.astream(question, filters=filters)
    first = await anext(stream, "")
    metadata: dict[str, Any] = {}

    async def texts() -> AsyncGenerator[str, None]:
        async with stream:
            yield first
            async for text in stream:
                yield text
            metadata.update(_metadata(stream.answer))

    return AsyncStreamingResponse(texts(), passages.sources(stream.answer), metadata)


def _metadata(answer: Answer) -> dict[str, Any]:
    """Return an answer's fields of a response's metadata."""
    omitted = [{"node_id": o.result.node.id, "reason": o.reason} for o in answer.omitted]
    notes = {"preset": answer.preset is not None, "notes": list(answer.notes), "left_out": omitted}
    notes["quotes"] = [quote.to_dict() for quote in answer.quotes]
    return {
        "found": answer.answered,
        "cited": [source.number for source in answer.cited],
        "calls": answer.calls,
        **{name: value for name, value in notes.items() if value},
    }


def _searched(engine: BaseQueryEngine) -> Any:
    """Return an engine of this package, which takes conditions, or another engine's function."""
    return engine if isinstance(engine, NodeGraphQueryEngine) else engine.query
