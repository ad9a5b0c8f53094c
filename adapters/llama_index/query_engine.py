"""Let a nodekin retriever, with a strategy, be a LlamaIndex query engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.response.schema import RESPONSE_TYPE
from llama_index.core.callbacks import CallbackManager, CBEventType, EventPayload
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.llms import LLM
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.prompts.mixin import PromptMixinType
from llama_index.core.response_synthesizers import BaseSynthesizer
from llama_index.core.schema import NodeWithScore, QueryBundle, QueryType
from llama_index.core.settings import Settings
from llama_index.core.vector_stores.types import MetadataFilters

from ...nodegraph import NodeGraph
from ...retrievers import (
    Filters,
    QueryEngine,
    Retriever,
    RetrieverProtocol,
)
from ...retrievers.strategies import StrategyName, make_strategy
from .engine_responses import (
    EngineAnswers,
    LazySynthesizer,
    Passages,
    facts_of,
    tell_sub_questions,
    told_nodes,
)
from .instrumentation import telling
from .prompts import llm_or_settings
from .retriever import Found, NodeGraphRetriever

dispatcher = get_dispatcher(__name__)


class NodeGraphQueryEngine(BaseQueryEngine):
    """Answer questions in LlamaIndex from what a nodekin retriever finds, by a strategy or none.

    The answer is made by LlamaIndex's response synthesizer, or by nodekin's ``QueryEngine``, which
    numbers its sources and cites them, keeps to a budget of tokens, and answers from
    question-answer pairs without a model: give that in place of a retriever.

    ``retrieve`` retrieves only, by the strategy, and asks for no answers to sub-questions.
    ``response.source_nodes`` are nodes of the graph. ``response.metadata`` has their metadata by
    their ids, and besides:

    - ``"sub_qa"``: with sub-questions and steps, a list of ``(question, response)``, each response
      with the short answer (None where there is none) and the nodes it was drawn from;
    - ``"errors"``: where something failed and the rest went on, a list of dicts of ``question``
      and ``error``. Where nothing can be searched for, that is raised;
    - ``"ended"``: with steps, why no further question was searched for;
    - of nodekin's ``QueryEngine``: ``"found"``, ``"cited"`` (numbers, ``[1]`` is the first source
      node), ``"calls"``, ``"preset"``, ``"notes"``, ``"left_out"``. A streamed response has them
      when it is read to its end.

    Prompts are read and replaced as in LlamaIndex: ``get_prompts()``; their names begin with
    ``retriever:`` (the strategy's, ``retriever:rewrite_en``) and ``response_synthesizer:``.

    Args:
        source: A nodekin retriever; a ``NodeGraph``, of which ``group`` is searched; or nodekin's
            ``QueryEngine``.
        llm: The model, for the strategy and the answer; None for ``Settings.llm``, looked up at
            each question, or for that of the ``QueryEngine``. A strategy takes it in any form;
            a synthesizer has to be given to answer with a model that is not LlamaIndex's.
        strategy: ``"none"``, ``"rewrite"``, ``"multi_query"``, ``"hyde"``, ``"sub_question"``, or
            ``"multi_step"``.
        group: Which group of a ``NodeGraph`` is searched.
        response_synthesizer: LlamaIndex's; None for its default one with the model.
        similarity_top_k: How many nodes to retrieve; None for the retriever's own number.
        filters: Conditions on metadata, as for ``NodeGraphRetriever``.
        node_postprocessors: What is retrieved goes through them.
        streaming: Whether answers are streamed.
        callback_manager: As everywhere in LlamaIndex.
        **settings: Those of the strategy: ``max_steps``, ``limit``, ``answers``, ``prompt``.

    Raises:
        TypeError: If something is of the wrong type, or there is no such setting.
        ValueError: If there is no such strategy, or a synthesizer is given that is not used.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
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
        source: RetrieverProtocol | NodeGraph | QueryEngine,
        llm: object = None,
        *,
        strategy: StrategyName | Literal["none"] = "none",
        group: str = "MediumChunk",
        response_synthesizer: BaseSynthesizer | None = None,
        similarity_top_k: int | None = None,
        filters: MetadataFilters | Filters | None = None,
        node_postprocessors: Sequence[BaseNodePostprocessor] | None = None,
        streaming: bool = False,
        callback_manager: CallbackManager | None = None,
        **settings: Any,
    ) -> None:
        engine = source if isinstance(source, QueryEngine) else None
        _check_synthesizer(response_synthesizer, llm, engine, streaming)
        if callback_manager is None:
            own = response_synthesizer and response_synthesizer.callback_manager
            callback_manager = own or Settings.callback_manager
        super().__init__(callback_manager)
        if engine is not None:
            inner: Any = engine.retriever
            if similarity_top_k is None:
                similarity_top_k = engine.top_k
        else:
            inner = Retriever(source, group) if isinstance(source, NodeGraph) else source
        if llm is None and engine is not None:
            llm = engine.llm
        if strategy == "sub_question":
            settings.setdefault("answers", engine is None)
        self._retriever = NodeGraphRetriever(
            _by_strategy(inner, llm, strategy, settings),
            similarity_top_k=similarity_top_k,
            filters=filters,
            callback_manager=callback_manager,
        )
        self._postprocessors = list(node_postprocessors or [])
        for each in self._postprocessors:
            each.callback_manager = callback_manager
        self._streaming = streaming
        self._engine = None if engine is None else EngineAnswers(engine)
        self._synthesizer = LazySynthesizer(
            response_synthesizer,
            llm if isinstance(llm, LLM) else None,
            streaming=streaming,
            callback_manager=callback_manager,
        )

    @property
    def retriever(self) -> NodeGraphRetriever:
        """What nodes are retrieved with, the strategy included."""
        return self._retriever

    def retrieve(self, query_bundle: QueryType) -> list[NodeWithScore]:
        """Return the nodes that an answer would be made from, best first."""
        return self._find(_bundle(query_bundle), answers=False)[0]

    async def aretrieve(self, query_bundle: QueryType) -> list[NodeWithScore]:
        """Return the same without blocking the event loop."""
        return (await self._afind(_bundle(query_bundle), answers=False))[0]

    def synthesize(
        self,
        query_bundle: QueryType,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
    ) -> RESPONSE_TYPE:
        """Return the answer to a question from nodes."""
        more = list(additional_source_nodes or [])
        return self._answer(_bundle(query_bundle), nodes, Found(), more)

    async def asynthesize(
        self,
        query_bundle: QueryType,
        nodes: list[NodeWithScore],
        additional_source_nodes: Sequence[NodeWithScore] | None = None,
    ) -> RESPONSE_TYPE:
        """Return the same without blocking the event loop."""
        more = list(additional_source_nodes or [])
        return await self._aanswer(_bundle(query_bundle), nodes, Found(), more)

    @dispatcher.span
    def _query(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        payload: dict[str, Any] = {EventPayload.QUERY_STR: query_bundle.query_str}
        with self.callback_manager.event(CBEventType.QUERY, payload=payload) as event:
            if self._engine is None:
                nodes, found = self._find(query_bundle, answers=True)
                response = self._answer(query_bundle, nodes, found)
            else:
                response = self._answer(query_bundle)
            event.on_end(payload={EventPayload.RESPONSE: response})
        return response

    @dispatcher.span
    async def _aquery(self, query_bundle: QueryBundle) -> RESPONSE_TYPE:
        payload: dict[str, Any] = {EventPayload.QUERY_STR: query_bundle.query_str}
        with self.callback_manager.event(CBEventType.QUERY, payload=payload) as event:
            if self._engine is None:
                nodes, found = await self._afind(query_bundle, answers=True)
                response = await self._aanswer(query_bundle, nodes, found)
            else:
                response = await self._aanswer(query_bundle)
            event.on_end(payload={EventPayload.RESPONSE: response})
        return response

    def _get_prompts(self) -> dict[str, BasePromptTemplate]:
        return {}

    def _update_prompts(self, prompts_dict: dict[str, BasePromptTemplate]) -> None:
        pass

    def _get_prompt_modules(self) -> PromptMixinType:
        answers = self._synthesizer if self._engine is None else self._engine
        return {"retriever": self._retriever, "response_synthesizer": answers}

    # Finding

    def _find(self, bundle: QueryBundle, *, answers: bool) -> tuple[list[NodeWithScore], Found]:
        retriever, recorder = self._retriever.recorded(answers=answers)
        nodes = retriever.retrieve(bundle)
        for each in self._postprocessors:
            nodes = each.postprocess_nodes(nodes, query_bundle=bundle)
        return nodes, recorder.found

    async def _afind(
        self, bundle: QueryBundle, *, answers: bool
    ) -> tuple[list[NodeWithScore], Found]:
        retriever, recorder = self._retriever.recorded(answers=answers)
        nodes = await retriever.aretrieve(bundle)
        for each in self._postprocessors:
            nodes = await each.apostprocess_nodes(nodes, query_bundle=bundle)
        return nodes, recorder.found

    # Answering

    def _answer(
        self,
        bundle: QueryBundle,
        nodes: list[NodeWithScore] | None = None,
        found: Found | None = None,
        more: Sequence[NodeWithScore] = (),
    ) -> RESPONSE_TYPE:
        """Answer from nodes; None has nodekin's query engine retrieve them."""
        response: Any
        if self._engine is None:
            found = found or Found()
            told = told_nodes(bundle.query_str, found)
            response = self._synthesizer.get().synthesize(bundle, [*told, *(nodes or [])])
            return self._completed(response, found, [*(nodes or []), *more])
        passages, kept = self._passages(bundle, nodes)
        if self._streaming:
            response = self._engine.stream(bundle.query_str, passages, self._telling)
        else:
            with self._telling():
                response = self._engine.respond(bundle.query_str, passages)
        return self._completed(response, _last(kept), [*response.source_nodes, *more])

    async def _aanswer(
        self,
        bundle: QueryBundle,
        nodes: list[NodeWithScore] | None = None,
        found: Found | None = None,
        more: Sequence[NodeWithScore] = (),
    ) -> RESPONSE_TYPE:
        response: Any
        if self._engine is None:
            found = found or Found()
            told = told_nodes(bundle.query_str, found)
            synthesizer = self._synthesizer.get()
            response = await synthesizer.asynthesize(bundle, [*told, *(nodes or [])])
            return self._completed(response, found, [*(nodes or []), *more])
        passages, kept = self._passages(bundle, nodes)
        if self._streaming:
            response = await self._engine.astream(bundle.query_str, passages, self._telling)
        else:
            with self._telling():
                response = await self._engine.arespond(bundle.query_str, passages)
        return self._completed(response, _last(kept), [*response.source_nodes, *more])

    @property
    def _telling(self) -> Any:
        return partial(telling, self.callback_manager, self)

    def _passages(
        self, bundle: QueryBundle, nodes: list[NodeWithScore] | None
    ) -> tuple[Passages, list[Found]]:
        """Return the retriever of one question, and where it keeps what it found."""
        kept: list[Found] = []

        def find(query: str) -> tuple[list[NodeWithScore], Any]:
            if nodes is not None:
                return nodes, []
            made, found = self._find(_asked(bundle, query), answers=True)
            kept.append(found)
            return made, found.results

        async def afind(query: str) -> tuple[list[NodeWithScore], Any]:
            if nodes is not None:
                return nodes, []
            made, found = await self._afind(_asked(bundle, query), answers=True)
            kept.append(found)
            return made, found.results

        return Passages(find, afind), kept

    def _completed(
        self, response: Any, found: Found, nodes: Sequence[NodeWithScore]
    ) -> RESPONSE_TYPE:
        """Give a response its sources and all that is known of how they were found."""
        tell_sub_questions(self.callback_manager, found)
        known = {each.node.node_id: each.node.metadata for each in nodes} | facts_of(found)
        response.source_nodes = list(nodes)
        if self._engine is None or response.metadata is None:
            response.metadata = known
        else:
            response.metadata.update(known)  # a stream adds to it at its end
        made: RESPONSE_TYPE = response
        return made


def _by_strategy(inner: Any, llm: object, strategy: str, settings: Mapping[str, Any]) -> Any:
    if strategy != "none":
        return make_strategy(strategy, inner, llm_or_settings(llm), **settings)
    if settings:
        raise TypeError(
            f"settings {sorted(settings)} are those of a strategy, and strategy='none' has none; "
            "name one, or leave them out"
        )
    return inner


def _check_synthesizer(
    given: BaseSynthesizer | None, llm: object, engine: QueryEngine | None, streaming: bool
) -> None:
    if given is not None and not isinstance(given, BaseSynthesizer):
        raise TypeError(
            f"response_synthesizer is LlamaIndex's, not {given!r:.80}; to answer by nodekin, give "
            "its QueryEngine(retriever, llm) in place of a retriever"
        )
    if given is not None and engine is not None:
        raise ValueError(
            "a QueryEngine answers by itself; leave response_synthesizer out, or give its retriever"
        )
    if given is not None and streaming:
        raise ValueError(
            "whether answers are streamed is settled in the response_synthesizer that is given: "
            "get_response_synthesizer(streaming=True)"
        )
    if given is None and engine is None and llm is not None and not isinstance(llm, LLM):
        raise TypeError(
            f"LlamaIndex answers with a LlamaIndex LLM, not {llm!r:.80}; give such a one, a "
            "response_synthesizer, or nodekin's QueryEngine(retriever, llm), which takes any model"
        )


def _bundle(query: QueryType) -> QueryBundle:
    return QueryBundle(query) if isinstance(query, str) else query


def _asked(bundle: QueryBundle, query: str) -> QueryBundle:
    """Return the bundle, or one of the query that was made of its own."""
    return bundle if query == bundle.query_str else QueryBundle(query)


def _last(kept: Sequence[Found]) -> Found:
    return kept[-1] if kept else Found()
