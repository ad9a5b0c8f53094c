"""Use query transforms in LlamaIndex: to rewrite, to expand, and to ask sub-questions."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from typing import Any, get_args

from llama_index.core.callbacks import CallbackManager
from llama_index.core.indices.query.query_transform.base import BaseQueryTransform
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.question_gen.types import BaseQuestionGenerator, SubQuestion
from llama_index.core.schema import QueryBundle, QueryType
from llama_index.core.tools import ToolMetadata

from ...retrievers.plans.plan import arun, run
from ...retrievers.strategies.model_prompt import QueryTransform
from ...retrievers.strategies.strategy_registry import TransformName, make_transform
from ...retrievers.strategies.sub_question import QueryDecomposition
from .instrumentation import report_spans
from .prompt_templates import NativePrompts, llm_or_settings

logger = logging.getLogger(__name__)

dispatcher = get_dispatcher(__name__)


class NodeGraphQueryTransform(NativePrompts, BaseQueryTransform):
    """Rewrite or expand queries in LlamaIndex, in ``TransformQueryEngine`` and elsewhere.

    A rewritten query replaces ``query_str``. Passages (HyDE) and other phrasings leave it as it
    is, for the answer, and become ``custom_embedding_strs``: vector retrievers, LlamaIndex's and a
    ``NodeGraphRetriever`` with a ``Retriever`` of embeddings, search for their mean. To let other
    retrievers search for them, use nodekin's ``HyDERetriever`` or ``MultiQueryRetriever`` in a
    ``NodeGraphRetriever``.

    The input bundle is not changed. If the model fails the query stays as it is, with a warning in
    the log, or an error is raised with ``on_error="raise"``. ``TransformQueryEngine`` calls any
    transform synchronously, also on an event loop; there await ``arun``, or use the strategy of a
    ``NodeGraphQueryEngine``.

    Args:
        transform: ``"rewrite"``, ``"hyde"``, ``"expand"``, ``"decompose"``; or a nodekin
            ``QueryTransform``.
        llm: The model, in any form that ``LLM`` takes. None for ``Settings.llm`` when it is needed.
        callback_manager: Gets an event for each call of the model.
        **options: Those of the transform: ``max_queries``, ``prompt``, ``on_error``.

    Raises:
        TypeError: If it is no transform, or there is no such option.
        ValueError: If there is no transform of that name.

    Example:
        >>> rewrite = NodeGraphQueryTransform("rewrite", lambda prompt: "How long is the Nile?")
        >>> rewrite.run("how logn is nile").query_str
        'How long is the Nile?'
        >>> hyde = NodeGraphQueryTransform("hyde", lambda prompt: "The Nile has 6,650 km.")
        >>> hyde.run("How long is the Nile?").embedding_strs
        ['How long is the Nile?', 'The Nile has 6,650 km.']
    """

    def __init__(
        self,
        transform: TransformName | QueryTransform = "rewrite",
        llm: object = None,
        *,
        callback_manager: CallbackManager | None = None,
        **options: object,
    ) -> None:
        super().__init__()
        self._callback_manager = callback_manager
        if isinstance(transform, QueryTransform):
            if llm is not None or options:
                raise TypeError(
                    "a QueryTransform has its model and settings; give them to "
                    f"{type(transform).__name__}(...) itself"
                )
            self._native = transform
            return
        if not isinstance(transform, str):
            raise TypeError(
                f"transform is a name ({', '.join(get_args(TransformName))}) or a nodekin "
                f"QueryTransform, not {transform!r:.80}"
            )
        self._native = make_transform(transform, llm_or_settings(llm), **options)

    def _run(self, query_bundle: QueryBundle, metadata: dict[str, Any]) -> QueryBundle:
        return run(partial(self._plan, query_bundle))

    @dispatcher.span
    async def arun(
        self, query_bundle_or_str: QueryType, metadata: dict[str, Any] | None = None
    ) -> QueryBundle:
        """Return what ``run`` returns, without blocking the event loop."""
        query = query_bundle_or_str
        return await arun(
            partial(self._plan, QueryBundle(query) if isinstance(query, str) else query)
        )

    async def _plan(self, bundle: QueryBundle) -> QueryBundle:
        """Return a new bundle without the vector of the old one, which is of another query."""
        query = bundle.query_str
        with report_spans(self._callback_manager):
            variants = list((await self._native.safe_variants(query)).queries)
        if len(variants) == 1 and not self._native.supplements:
            return QueryBundle(variants[0], image_path=bundle.image_path)
        texts = None if variants == [query] else variants or None
        return QueryBundle(query, image_path=bundle.image_path, custom_embedding_strs=texts)


class NodeGraphQuestionGenerator(NativePrompts, BaseQuestionGenerator):
    """Generate the questions of LlamaIndex's ``SubQuestionQueryEngine``, with any model.

    The model may answer in lines or in any JSON. With one tool all questions are for that; with
    several the model names one for each. If it names an unknown tool, it is asked again with that
    message; questions that still have an unknown tool are left out, with a warning in the log. If
    no question can be used, or the query is simple already, the query itself goes to all tools.

    ``SubQuestionQueryEngine`` itself drops sub-questions that fail, with a line in the log;
    ``NodeGraphQueryEngine(strategy="sub_question")`` reports them in the response.

    Args:
        llm: The model, in any form that ``LLM`` takes. None for ``Settings.llm`` when it is needed.
        max_queries: The maximum number of questions.
        callback_manager: Gets an event for each call of the model.
        **options: See ``ModelPrompt``: ``language``, ``on_error``, ``retries``,
            ``timeout``. Prompts are replaced with ``update_prompts``.

    Raises:
        TypeError: If it is no model, or there is no such option.
        ValueError: If a number is out of range.

    Example:
        >>> model = lambda prompt: "rivers: How long is the Nile?\\ntea: Is green tea fermented?"
        >>> tools = [ToolMetadata(name=name, description=name) for name in ("rivers", "tea")]
        >>> generator = NodeGraphQuestionGenerator(model)
        >>> for question in generator.generate(tools, QueryBundle("What of the Nile and tea?")):
        ...     print(question.tool_name, "|", question.sub_question)
        rivers | How long is the Nile?
        tea | Is green tea fermented?
    """

    def __init__(
        self,
        llm: object = None,
        *,
        max_queries: int = 5,
        callback_manager: CallbackManager | None = None,
        **options: Any,
    ) -> None:
        self._callback_manager = callback_manager
        self._native = QueryDecomposition(
            llm_or_settings(llm), max_queries=max_queries, tools={}, **options
        )

    def generate(self, tools: Sequence[ToolMetadata], query: QueryBundle) -> list[SubQuestion]:
        """Return the sub-questions, each with its tool.

        Raises:
            ValueError: If there are no tools.
            ModelError: If the model fails, with ``on_error="raise"``.
        """
        with report_spans(self._callback_manager):
            return run(partial(self._plan, tools, query))

    async def agenerate(
        self, tools: Sequence[ToolMetadata], query: QueryBundle
    ) -> list[SubQuestion]:
        """Async version of ``generate``."""
        with report_spans(self._callback_manager):
            return await arun(partial(self._plan, tools, query))

    async def _plan(self, tools: Sequence[ToolMetadata], bundle: QueryBundle) -> list[SubQuestion]:
        query = bundle.query_str if isinstance(bundle, QueryBundle) else bundle
        descriptions = {tool.get_name(): tool.description or "" for tool in tools}
        if not descriptions:
            raise ValueError("there are no tools to ask questions of; give at least one")
        variants = await self._native.with_tools(descriptions).safe_variants(query)
        pairs = list(zip(variants.tools, variants.queries, strict=True))
        unknown = "; ".join(f"{q!r} for {tool!r}" for tool, q in pairs if tool not in descriptions)
        if unknown:
            logger.warning(
                "of the query %r: left out, as there is no such tool: %s", query[:80], unknown
            )
        pairs = [pair for pair in pairs if pair[0] in descriptions]
        pairs = pairs or [(name, query) for name in descriptions]
        return [SubQuestion(sub_question=question, tool_name=tool) for tool, question in pairs]
