"""Evaluate a step of a multi-step search with separate prompts to answer, judge and rewrite."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar

from ...nodegraph.models.output.free_text import parse_partial_answer
from ...nodegraph.models.output.queries import parse_query
from ...nodegraph.models.output.verdict_words import is_yes
from ...nodegraph.models.templates import Language
from ...nodegraph.splitters.chunking import count_tokens
from ..plans.prompting import Prompt, PromptReplacement, replace_prompts
from ..prompts.step_prompts import STEP_ANSWER, STEP_JUDGE, STEP_QUESTION
from ..validation import whole
from .model_prompt import ModelPrompt, OnError
from .outcome import StepReading, SubResults, result_key
from .passages import fit_passages, neutralize

T = TypeVar("T")

_NO_ANSWER = {"zh": "（尚无答案）", "en": "(no answer yet)"}

_NOTHING = {"zh": "（无）", "en": "(none)"}

ROLES: Mapping[str, Prompt] = MappingProxyType(
    {"rewrite": STEP_QUESTION, "answer": STEP_ANSWER, "judge": STEP_JUDGE}
)
"""The built-in prompt of each role."""


class RoleReader(ModelPrompt):
    """A reader that evaluates a step of a multi-step search with up to three model calls.

    The first call answers the question of the step, the second judges whether this answers the
    original question, and the third writes the next question.

    Args:
        llm: The language model, in any form that ``LLM`` accepts.
        prompts: Prompts that replace the built-in prompts in ``ROLES``, by role.
        max_tokens: The maximum total length of the passages in a prompt.
        length: The function that measures the length of a passage.
        language: See ``ModelPrompt``.
        retries: See ``ModelPrompt``.
        timeout: See ``ModelPrompt``.
        on_error: See ``ModelPrompt``.
    """

    name = "answer"
    subject = "question"
    PROMPT = STEP_ANSWER

    def __init__(
        self,
        llm: object,
        prompts: Mapping[str, PromptReplacement],
        *,
        max_tokens: int,
        length: Callable[[str], int] = count_tokens,
        language: Language | None = None,
        retries: int = 1,
        timeout: float | None = None,
        on_error: OnError = "keep",
    ) -> None:
        super().__init__(
            llm, language=language, retries=retries, timeout=timeout, on_error=on_error
        )
        self.max_tokens = whole(max_tokens, "max_tokens", 1)
        if not callable(length):
            raise TypeError(f"length must be a function, got {length!r:.80}")
        self.length = length
        self._prompts = replace_prompts(ROLES, prompts)

    async def read(self, question: str, steps: Sequence[SubResults]) -> StepReading:
        """Return the model's conclusions from the results of the last step.

        See ``StepReader.read``.
        """
        language = self.prompt_language(question)
        values = {"steps": self._lines(question, steps), "passages": self._passages(steps)}
        last = steps[-1]
        answer = await self._ask(last.question, "answer", parse_partial_answer, values)
        values["answer"] = neutralize(answer or _NO_ANSWER[language])
        is_answered = False
        if answer is not None:
            is_answered = await self._ask(question, "judge", _verdict, values)
        if is_answered:
            return StepReading(answer, True, None)
        if answer is not None:
            answered = SubResults(last.question, last.results, answer)
            values["steps"] = self._lines(question, [*steps[:-1], answered])
        parse = partial(parse_query, query=question)
        further = await self._ask(question, "rewrite", parse, values)
        return StepReading(answer, False, further)

    async def _ask(
        self, text: str, role: str, parse: Callable[[str], T], values: Mapping[str, Any]
    ) -> T:
        return await self.ask(text, parse, prompt=self._prompts[role], **values)

    def _lines(self, question: str, steps: Sequence[SubResults]) -> str:
        """Format the earlier questions with their answers, one per line."""
        language = self.prompt_language(question)
        lines = [
            f"{number}. {' '.join(step.question.split())} -> {step.answer or _NO_ANSWER[language]}"
            for number, step in enumerate(steps, 1)
            if step.question != question
        ]
        return neutralize("\n".join(lines)) or _NOTHING[language]

    def _passages(self, steps: Sequence[SubResults]) -> str:
        """Format the passages of all steps, beginning with the last step."""
        texts: dict[Any, str] = {}
        for step in reversed(steps):
            for result in step.results:
                texts[result_key(result)] = result.node.text
        passages, _ = fit_passages(texts.values(), self.max_tokens, self.length)
        return passages or _NOTHING[self.prompt_language(steps[0].question)]


def _verdict(answer: str) -> bool:
    """Return whether a reply is a clear yes.

    For example, "True" counts as yes, but "True or False" does not.
    """
    return is_yes(answer.strip())
