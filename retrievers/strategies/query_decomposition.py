"""Decompose a question into sub-questions, each optionally assigned to a tool."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from functools import partial

from ...nodegraph.models.output.queries import (
    parse_sub_questions,
)
from ...nodegraph.models.output.tool_questions import ToolQuestions, parse_tool_questions
from ...nodegraph.models.templates import Language
from ..plans.prompting import Prompt, PromptReplacement
from ..prompts.question_prompts import DECOMPOSITION, TOOL_QUESTIONS_PROMPT
from ..validation import whole
from .model_prompt import OnError, QueryTransform, QueryVariants
from .outcome import same_question

TOOL_QUESTIONS = "tool questions"


_TOOL_FORM = '{"questions": [{"tool": "...", "question": "..."}]}'


class QueryDecomposition(QueryTransform):
    """A query transform that splits a question into simpler questions, which can name tools.

    A simple question is left unchanged. If the model names an unknown tool, the call is repeated
    with an error message. If the tool is still unknown, the question is kept, so that the search
    reports the error. If only one tool is given, it receives all questions. If the model fails,
    every tool receives the original question.

    The prompt has the placeholders ``{query}``, ``{tools}`` (if tools are given) and optionally
    ``{limit}``. Without tools, the original question comes first unless ``include_query=False``.

    Args:
        llm: The language model, in any form that ``LLM`` accepts.
        max_queries: The maximum number of sub-questions.
        tools: The descriptions of the tools, by name. If None, no tools are used.
        include_query: See ``QueryTransform``.
        prompt: See ``ModelPrompt``.
        language: See ``ModelPrompt``.
        retries: See ``ModelPrompt``.
        timeout: See ``ModelPrompt``.
        on_error: See ``ModelPrompt``.

    Raises:
        TypeError: If the model is missing, or an option has the wrong type.
        ValueError: If ``max_queries`` is below 1, or an option is invalid.

    Example:
        >>> model = lambda prompt: "1. How long is the Nile?\\n2. How long is the Amazon?"
        >>> QueryDecomposition(model)("Which is longer?")
        ['Which is longer?', 'How long is the Nile?', 'How long is the Amazon?']
        >>> model = lambda prompt: "rivers: How long is the Nile?\\ntea: Is green tea fermented?"
        >>> decomposition = QueryDecomposition(model, tools={"rivers": "Rivers", "tea": "Teas"})
        >>> decomposition("How long is the Nile, and is green tea fermented?")
        ['rivers: How long is the Nile?', 'tea: Is green tea fermented?']
    """

    name = "decompose"
    supplements = True
    PROMPT = DECOMPOSITION
    FORM = '{"questions": ["...", "..."]}, {"questions": []}'

    def __init__(
        self,
        llm: object,
        *,
        max_queries: int = 5,
        tools: Mapping[str, str] | None = None,
        include_query: bool | None = None,
        prompt: PromptReplacement | None = None,
        language: Language | None = None,
        retries: int = 1,
        timeout: float | None = None,
        on_error: OnError = "keep",
    ) -> None:
        super().__init__(
            llm,
            include_query=include_query,
            prompt=prompt if tools is None else None,
            language=language,
            retries=retries,
            timeout=timeout,
            on_error=on_error,
        )
        self.max_queries = whole(max_queries, "max_queries", 1)
        self.tools: Mapping[str, str] | None = None
        if tools is not None:
            self._set_tools(tools, TOOL_QUESTIONS_PROMPT.replaced(prompt))

    def with_tools(self, tools: Mapping[str, str]) -> QueryDecomposition:
        """Return a copy that uses other tools, given as a mapping from names to descriptions."""
        other = copy.copy(self)
        other._set_tools(tools, self._prompts.get(TOOL_QUESTIONS, TOOL_QUESTIONS_PROMPT))
        return other

    def _set_tools(self, tools: Mapping[str, str], prompt: Prompt) -> None:
        self.tools = dict(tools)
        self.name = TOOL_QUESTIONS
        self._prompts = {**self._prompts, TOOL_QUESTIONS: prompt}

    def fallback(self, query: str) -> QueryVariants:
        """Return the original question for every tool."""
        tools = tuple(self.tools or ())
        return QueryVariants((query,) * max(1, len(tools)), tools=tools)

    async def variants(self, query: str) -> QueryVariants:
        """Return the sub-questions of a query, with their tools."""
        if self.tools is not None and len(self.tools) > 1:
            pairs = await self._tool_questions(query, self.tools)
            tools = tuple(tool for tool, _ in pairs)
            questions = tuple(question for _, question in pairs)
            if not pairs:
                return self.fallback(query)
            return QueryVariants(questions, tools=tools)
        parse = partial(parse_sub_questions, query=query, limit=self.max_queries)
        prompt = self._prompts["decompose"]
        answers = await self.ask(query, parse, prompt=prompt, limit=self.max_queries)
        questions = tuple(text for text in answers if not same_question(text, query))
        if not questions:
            return self.fallback(query)
        return QueryVariants(questions, tools=(*(self.tools or ()),) * len(questions))

    async def _tool_questions(self, query: str, tools: Mapping[str, str]) -> ToolQuestions:
        """Return pairs of a tool and a sub-question. Pairs with an unknown tool come last."""
        attempts: list[tuple[ToolQuestions, ToolQuestions]] = []
        lines = (f"- {name}: {' '.join(text.split())}".rstrip() for name, text in tools.items())

        def parse(answer: str) -> ToolQuestions:
            questions, unknown = parse_tool_questions(answer, list(tools), query)
            attempts.append((questions[: self.max_queries], unknown))
            if unknown:
                raise ValueError(
                    f"unknown tool {unknown[0][0]!r}; the tools are {', '.join(tools)}"
                )
            return questions[: self.max_queries]

        try:
            return await self.ask(
                query,
                parse,
                form=_TOOL_FORM,
                limit=self.max_queries,
                tools="\n".join(lines),
            )
        except Exception:
            if not attempts or self.on_error == "raise":
                raise
            questions, unknown = max(attempts, key=lambda attempt: len(attempt[0]))
            return [*questions, *unknown]
