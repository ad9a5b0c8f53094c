"""Query transforms and question generators for LlamaIndex query engines."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from llama_index.core.indices.query.query_transform.base import BaseQueryTransform
from llama_index.core.instrumentation import get_dispatcher  # type: ignore[attr-defined]
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.question_gen.types import BaseQuestionGenerator, SubQuestion
from llama_index.core.schema import QueryBundle, QueryType
from llama_index.core.tools import ToolMetadata

from ...nodegraph.errors import explain_names
from ...nodegraph.models.templates import Language
from ...retrievers.plans.prompting import PromptReplacement
from ...retrievers.strategies.model_prompt import OnError
from ...retrievers.strategies.strategy_registry import TransformName, make_transform
from ..argument_types import LanguageModel
from .engine_options import EngineStrategyOptions, options_of
from .prompt_templates import default_llm, to_templates, with_templates
from .retriever import as_bundle

logger = logging.getLogger(__name__)

dispatcher = get_dispatcher(__name__)


class _NativePrompts:
    """A LlamaIndex component that uses the prompts of a nodekin transform."""

    _native: Any

    def _get_prompts(self) -> dict[str, BasePromptTemplate]:
        return to_templates(self._native)

    def _update_prompts(self, prompts_dict: Mapping[str, BasePromptTemplate]) -> None:
        self._native = with_templates(self._native, prompts_dict)


class NodeGraphQueryTransform(_NativePrompts, BaseQueryTransform):
    """A LlamaIndex query transform that rewrites, expands or decomposes queries, or uses HyDE.

    Use it with ``TransformQueryEngine``. Rewriting replaces ``query_str``. In all other cases,
    ``query_str`` is not changed, and the generated texts are added as ``custom_embedding_strs``. If
    the model fails, a warning is logged and the query is not changed. ``TransformQueryEngine``
    calls transforms synchronously. In async code, await ``arun`` instead.

    Args:
        transform: ``"rewrite"``, ``"hyde"``, ``"expand"`` or ``"decompose"``.
        llm: A language model that ``nodekin.nodegraph.LLM`` accepts. Defaults to ``Settings.llm``.
        max_queries: The maximum number of queries that the model writes.
        include_query: Whether the original query is searched as well. If None, the default of the
            transform is used.
        prompt: A prompt that replaces the built-in prompt.
        language: The language of the prompt. Defaults to the language of the query.
        retries: How many times the model is called again if its answer cannot be parsed.
        timeout: The time limit for each model call in seconds.
        on_error: What to do if the model fails: ``"keep"`` to use the original query, or
            ``"raise"`` to raise the error.

    Raises:
        TypeError: If an argument has the wrong type or an option is unknown.
        ValueError: If the transform is unknown.
        ImportError: If the package of the default language model is not installed.

    Example:
        >>> rewrite = NodeGraphQueryTransform("rewrite", lambda prompt: "How long is the Nile?")
        >>> rewrite.run("how logn is nile").query_str
        'How long is the Nile?'
        >>> hyde = NodeGraphQueryTransform("hyde", lambda prompt: "The Nile has 6,650 km.")
        >>> hyde.run("How long is the Nile?").embedding_strs
        ['How long is the Nile?', 'The Nile has 6,650 km.']
    """

    @explain_names
    def __init__(
        self,
        transform: TransformName = "rewrite",
        llm: LanguageModel | None = None,
        *,
        max_queries: int | None = None,
        include_query: bool | None = None,
        prompt: PromptReplacement | None = None,
        language: Language | None = None,
        retries: int | None = None,
        timeout: float | None = None,
        on_error: OnError | None = None,
    ) -> None:
        super().__init__()
        options = options_of(EngineStrategyOptions, dict(locals()))
        model = default_llm() if llm is None else llm
        self._native = make_transform(transform, model, **options)

    def _run(self, query_bundle: QueryBundle, metadata: dict[str, Any]) -> QueryBundle:
        query = query_bundle.query_str
        return self._bundle(query, self._native(query))

    @dispatcher.span
    async def arun(
        self, query_bundle_or_str: QueryType, metadata: dict[str, Any] | None = None
    ) -> QueryBundle:
        """Async version of ``run``."""
        query = as_bundle(query_bundle_or_str).query_str
        return self._bundle(query, await self._native.acall(query))

    def _bundle(self, query: str, variants: Sequence[str]) -> QueryBundle:
        """Create a new query bundle. The vector of the original query is not copied."""
        if len(variants) == 1 and not self._native.supplements:
            return QueryBundle(variants[0])
        if [*variants] == [query]:
            return QueryBundle(query)
        return QueryBundle(query, custom_embedding_strs=[*variants] or None)


class NodeGraphQuestionGenerator(_NativePrompts, BaseQuestionGenerator):
    """A question generator for ``SubQuestionQueryEngine`` that works with any language model.

    The model may answer in plain lines or in JSON. If it assigns a question to an unknown tool, it
    is called once more. Questions that still have an invalid tool are then ignored, and a warning
    is logged. If no usable questions remain, the original query is sent to all tools.

    Args:
        llm: A language model that ``nodekin.nodegraph.LLM`` accepts. Defaults to ``Settings.llm``.
        max_queries: The maximum number of questions.
        prompt: A prompt that replaces the built-in prompt.
        language: The language of the prompt. Defaults to the language of the query.
        retries: How many times the model is called again if its answer cannot be parsed.
        timeout: The time limit for each model call in seconds.
        on_error: What to do if the model fails: ``"keep"`` to use the original query, or
            ``"raise"`` to raise the error.

    Raises:
        TypeError: If an argument has the wrong type or an option is unknown.
        ValueError: If a number is out of range.
        ImportError: If the package of the default language model is not installed.

    Example:
        >>> from llama_index.core.schema import QueryBundle
        >>> from llama_index.core.tools import ToolMetadata
        >>> model = lambda prompt: "rivers: How long is the Nile?\\ntea: Is green tea fermented?"
        >>> tools = [ToolMetadata(name=name, description=name) for name in ("rivers", "tea")]
        >>> generator = NodeGraphQuestionGenerator(model)
        >>> for question in generator.generate(tools, QueryBundle("What of the Nile and tea?")):
        ...     print(question.tool_name, "|", question.sub_question)
        rivers | How long is the Nile?
        tea | Is green tea fermented?
    """

    @explain_names
    def __init__(
        self,
        llm: LanguageModel | None = None,
        *,
        max_queries: int = 5,
        prompt: PromptReplacement | None = None,
        language: Language | None = None,
        retries: int | None = None,
        timeout: float | None = None,
        on_error: OnError | None = None,
    ) -> None:
        options = options_of(EngineStrategyOptions, dict(locals()))
        model = default_llm() if llm is None else llm
        self._native: Any = make_transform("decompose", model, tools={}, **options)

    def generate(self, tools: Sequence[ToolMetadata], query: QueryBundle) -> list[SubQuestion]:
        """Generate sub-questions for a query, and assign each of them to a tool.

        Raises:
            ValueError: If the list of tools is empty.
            ModelError: If the model fails and ``on_error`` is ``"raise"``.
        """
        query_str = as_bundle(query).query_str
        descriptions = _descriptions(tools)
        found = self._native.with_tools(descriptions)(query_str)
        return _sub_questions(found, descriptions, query_str)

    async def agenerate(
        self, tools: Sequence[ToolMetadata], query: QueryBundle
    ) -> list[SubQuestion]:
        """Async version of ``generate``."""
        query_str = as_bundle(query).query_str
        descriptions = _descriptions(tools)
        found = await self._native.with_tools(descriptions).acall(query_str)
        return _sub_questions(found, descriptions, query_str)


def _descriptions(tools: Sequence[ToolMetadata]) -> dict[str, str]:
    if not tools:
        raise ValueError("tools must contain at least one tool, got none")
    return {tool.get_name(): tool.description or "" for tool in tools}


def _sub_questions(found: Sequence[str], tools: Mapping[str, str], query: str) -> list[SubQuestion]:
    """Return the questions for existing tools.

    Each given text must start with the name of a tool.
    """
    questions: list[SubQuestion] = []
    for text in found:
        name = max((tool for tool in tools if text.startswith(f"{tool}: ")), key=len, default=None)
        if name is None:
            logger.warning("a sub-question of %r is omitted, unknown tool: %s", query[:80], text)
        else:
            question = text.removeprefix(f"{name}: ")
            questions.append(SubQuestion(sub_question=question, tool_name=name))
    return questions or [SubQuestion(sub_question=query, tool_name=name) for name in tools]
