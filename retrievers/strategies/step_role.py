"""What a model does in a step of a search: the next question, the answer, the judgement."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from ...nodegraph import LLM, count_tokens
from ...nodegraph.llm.answers import clean
from ...nodegraph.llm.language import Language, language_of
from ...nodegraph.llm.model import as_llm
from ..asking import answered, in_json
from ..checks import seconds, whole
from ..plan import Plan, arun, run
from ..prompt import Prompt, Prompted
from .budget import Call
from .query_transform import check_language
from .steps import Step, told_passages, told_steps

T = TypeVar("T")
LONGEST = 4000
"""Characters of an answer that are read, thoughts left out; a step takes a few lines."""
MAX_TOKENS = 1500
"""Of what was found, in a prompt."""


class StepRole(Prompted, Generic[T]):
    """Ask a model for one thing in each step; what the roles share.

    A subclass has a ``name``, a ``PROMPT``, a ``SCHEMA`` with an example of it, ``FORM``, and
    ``read``.

    Args:
        llm: The model, in any form that ``LLM`` takes.
        prompt: In place of the built-in one: a text with the same names in braces, or texts by
            language, ``{"zh": ..., "en": ...}``, or a ``Prompt``.
        language: Of the prompt; None for that of each question.
        retries: How often the model is asked again where its answer can't be used.
        timeout: Seconds to wait for each of the model's answers; None leaves it to its client.
        max_tokens: How much of what was found it is shown at most, in tokens.
        length: Counts them: ``count_tokens``, or a model's own counter.

    Raises:
        TypeError: If the model is none, or a number is not one, or a prompt is no text.
        ValueError: If a number is out of range, or a prompt lacks a name or has an unknown one.
    """

    name: ClassVar[str]
    PROMPT: ClassVar[Prompt]
    SCHEMA: ClassVar[Mapping[str, Any]]
    FORM: ClassVar[str]

    def __init__(
        self,
        llm: object,
        *,
        prompt: str | Mapping[Language, str] | Prompt | None = None,
        language: Language | None = None,
        retries: int = 1,
        timeout: float | None = None,
        max_tokens: int = MAX_TOKENS,
        length: Callable[[str], int] = count_tokens,
    ) -> None:
        self.llm: LLM = as_llm(llm)
        self._prompts = {self.name: self.PROMPT.replaced(prompt)}
        self.language = check_language(language)
        self.retries = whole(retries, "retries", 0)
        self.timeout = seconds(timeout, "timeout")
        self.max_tokens = whole(max_tokens, "max_tokens", 1)
        if not callable(length):
            raise TypeError(f"length is a callable from a text to a number, not {length!r:.80}")
        self.length = length

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.llm.name!r})"

    def __call__(self, question: str, steps: Sequence[Step] = ()) -> T:
        """Return what the model says.

        Args:
            question: What is to be answered in the end.
            steps: What was searched for so far.

        Raises:
            ModelError: If the model fails, or none of its answers can be used.
        """
        return run(self.plan(question, steps))

    async def acall(self, question: str, steps: Sequence[Step] = ()) -> T:
        """Return the same without blocking the event loop."""
        return await arun(self.plan(question, steps))

    def plan(self, question: str, steps: Sequence[Step] = ()) -> Plan[T]:
        """Return the same as a plan."""
        language = language_of(question) if self.language is None else self.language
        prompt = self._prompts[self.name].fill(
            language,
            question=question,
            steps=told_steps(question, steps, language),
            passages=told_passages(steps, language, self.max_tokens, self.length),
        )
        if self.llm.structured:
            prompt += in_json(self.FORM, language)
        told = yield from answered(
            *(self.llm, prompt, lambda answer: self.read(_short(answer)), language),
            schema=self.SCHEMA,
            retries=self.retries,
            timeout=self.timeout,
        )
        return told

    def read(self, answer: str) -> T:
        """Read an answer.

        Raises:
            ValueError: If it can't be used.
        """
        raise NotImplementedError


def _short(answer: str) -> str:
    return (clean(answer) or answer)[:LONGEST]


Planned = Callable[[str, Sequence[Step]], Plan[Any]]


def planned(role: Any, what: str) -> Planned:
    """Return the plan of a role, which may be a user's function of the same arguments.

    Raises:
        TypeError: If it is neither.
    """
    if isinstance(role, StepRole):
        return role.plan
    if not callable(role):
        raise TypeError(f"{what} is a function of a question and steps, not {role!r:.80}")

    def called(question: str, steps: Sequence[Step]) -> Plan[Any]:
        return (yield Call(role, (question, tuple(steps))))

    return called


def object_of(**properties: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the JSON schema of an object that has these and no other properties."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
