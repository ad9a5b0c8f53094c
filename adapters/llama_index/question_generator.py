"""Generate sub-questions for LlamaIndex's ``SubQuestionQueryEngine``, with any model."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from llama_index.core.callbacks import CallbackManager
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.question_gen.types import BaseQuestionGenerator, SubQuestion
from llama_index.core.schema import QueryBundle
from llama_index.core.tools import ToolMetadata

from ...retrievers.plans.plan import Plan, arun, run
from ...retrievers.strategies.query_transform import TransformOptions
from ...retrievers.strategies.sub_question import QueryDecomposition
from ...retrievers.strategies.tool_decomposition import ToolDecomposition
from .instrumentation import report_spans
from .prompt_templates import changed_prompts, llm_or_settings, to_templates

if TYPE_CHECKING:
    from typing_extensions import Unpack

logger = logging.getLogger(__name__)


class NodeGraphQuestionGenerator(BaseQuestionGenerator):
    """Generate the questions of LlamaIndex's ``SubQuestionQueryEngine``, with any model.

    The model may answer in lines or in any JSON. With one tool all questions are for that; with
    several the model names one for each. If it names an unknown tool, it is asked again with that
    message; questions that still have an unknown tool are left out, with a warning in the log. If
    no question can be used, or the query is simple already, the query itself goes to all tools.

    ``SubQuestionQueryEngine`` itself drops sub-questions that fail, with a line in the log;
    ``NodeGraphQueryEngine(strategy="sub_question")`` reports them in the response.

    Args:
        llm: The model, in any form that ``LLM`` takes; None for ``Settings.llm`` when it is needed.
        limit: How many questions at most.
        callback_manager: Gets an event for each call of the model.
        **options: ``language``, ``on_error`` (``"keep"`` or ``"raise"``), ``retries``,
            ``timeout``; see ``QueryTransform``. Prompts are replaced with ``update_prompts``.

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
        limit: int = 5,
        callback_manager: CallbackManager | None = None,
        **options: Unpack[TransformOptions],
    ) -> None:
        model = llm_or_settings(llm)
        self._callback_manager = callback_manager
        self._one = QueryDecomposition(model, limit=limit, include_query=False, **options)
        self._several = ToolDecomposition(model, {}, limit=limit, **options)

    def generate(self, tools: Sequence[ToolMetadata], query: QueryBundle) -> list[SubQuestion]:
        """Return the sub-questions, each with its tool.

        Raises:
            ValueError: If there are no tools.
            ModelError: If the model fails, with ``on_error="raise"``.
        """
        with report_spans(self._callback_manager):
            return run(self._plan(tools, query))

    async def agenerate(
        self, tools: Sequence[ToolMetadata], query: QueryBundle
    ) -> list[SubQuestion]:
        """Return the same without blocking the event loop."""
        with report_spans(self._callback_manager):
            return await arun(self._plan(tools, query))

    def _plan(self, tools: Sequence[ToolMetadata], bundle: QueryBundle) -> Plan[list[SubQuestion]]:
        query = bundle.query_str if isinstance(bundle, QueryBundle) else bundle
        names = [tool.get_name() for tool in tools]
        if not names:
            raise ValueError("there are no tools to ask questions of; give at least one")
        if len(names) == 1:
            variants = yield from self._one.plan(query)
            questions = [(names[0], question) for question in variants.queries]
        else:
            questions = yield from self._tool_questions(query, tools)
        questions = questions or [(name, query) for name in names]
        return [SubQuestion(sub_question=question, tool_name=name) for name, question in questions]

    def _tool_questions(
        self, query: str, tools: Sequence[ToolMetadata]
    ) -> Plan[list[tuple[str, str]]]:
        """Return pairs of a tool and a question; what goes wrong is logged, or raised."""
        descriptions = {tool.get_name(): tool.description or "" for tool in tools}
        try:
            questions, unknown = yield from self._several.tool_questions(query, descriptions)
        except Exception as error:
            if self._several.on_error == "raise":
                raise
            reason = f"all tools are asked the question: {type(error).__name__}: {error}"
            logger.warning("of the query %r: %s", query[:80], reason)
            return []
        if unknown:
            names = "; ".join(f"{question!r} for {tool!r}" for tool, question in unknown)
            logger.warning(
                "of the query %r: left out, as there is no such tool: %s", query[:80], names
            )
        return questions

    def _get_prompts(self) -> dict[str, BasePromptTemplate]:
        return {**to_templates(self._one.prompts), **to_templates(self._several.prompts)}

    def _update_prompts(self, prompts_dict: dict[str, BasePromptTemplate]) -> None:
        for name in ("_one", "_several"):
            transform = getattr(self, name)
            if changed := changed_prompts(transform.prompts, prompts_dict):
                setattr(self, name, transform.with_prompts(changed))
