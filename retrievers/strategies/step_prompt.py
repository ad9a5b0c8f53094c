"""Ask a model one thing about a question and the steps of its search; what such prompts share."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Generic, TypeVar

from ...nodegraph.models.language import Language
from ...nodegraph.models.output.cleaning import clean, is_no_answer
from ...nodegraph.models.output.free_text import is_unknown
from ...nodegraph.models.output.lines import strip_markup
from ...nodegraph.models.output.questions import MAX_QUERY_LENGTH
from ...nodegraph.splitters.tokens import count_tokens
from ..plans.passages import fit_passages, neutralize
from ..plans.plan import Plan, arun, run
from ..plans.prompting import Prompt
from ..validation import whole
from .model_prompt import ModelPrompt, PromptOptions
from .steps import Step

if TYPE_CHECKING:
    from typing_extensions import Unpack

T = TypeVar("T")

MAX_LENGTH = 4000
"""Characters of an answer that are read, thoughts not counted; a step takes a few lines."""

MAX_TOKENS = 1500
"""Of the passages in a prompt."""

MAX_ANSWER = 300
"""Characters of the answer of a step; a longer one is cut."""

_NO_ANSWER = {"zh": "（尚无答案）", "en": "(no answer yet)"}

_VERDICTS = {True: "Yes", False: "No"}

_NOTHING = {"zh": "（无）", "en": "(none)"}


class StepOptions(PromptOptions, total=False):
    """The options of every ``StepPrompt``, to type ``**options``."""

    max_tokens: int
    length: Callable[[str], int]


class StepPrompt(ModelPrompt, Generic[T]):
    """Ask a model one thing about a question and the steps of its search so far.

    A subclass has a ``name``, a ``PROMPT``, a ``SCHEMA`` with ``EXAMPLE``, JSON that fits it, and
    ``parse``.

    Args:
        llm: The model, in any form that ``LLM`` takes.
        max_tokens: How long the passages in the prompt are at most, in tokens.
        length: Counts them: ``count_tokens``, or a model's own counter.
        **options: ``prompt``, ``language``, ``retries``, ``timeout``; see ``ModelPrompt``.

    Raises:
        TypeError: If the model is none, or a number is not one, or a prompt is no text.
        ValueError: If a number is out of range, or a prompt lacks a name or has an unknown one.
    """

    subject = "question"

    def __init__(
        self,
        llm: object,
        *,
        max_tokens: int = MAX_TOKENS,
        length: Callable[[str], int] = count_tokens,
        **options: Unpack[PromptOptions],
    ) -> None:
        super().__init__(llm, **options)
        self.max_tokens = whole(max_tokens, "max_tokens", 1)
        if not callable(length):
            raise TypeError(f"length is a callable from a text to a number, not {length!r:.80}")
        self.length = length

    def __call__(self, question: str, steps: Sequence[Step] = ()) -> T:
        """Return the model's answer, parsed.

        Args:
            question: The question to be answered in the end.
            steps: The steps of the search so far.

        Raises:
            ModelError: If the model fails, or none of its answers can be used.
        """
        return run(self.plan(question, steps))

    async def acall(self, question: str, steps: Sequence[Step] = ()) -> T:
        """Return the same without blocking the event loop."""
        return await arun(self.plan(question, steps))

    def plan(self, question: str, steps: Sequence[Step] = ()) -> Plan[T]:
        """Return the same as a plan."""
        language = self.prompt_language(question)
        return self.ask(
            question,
            lambda answer: self.parse((clean(answer) or answer)[:MAX_LENGTH]),
            steps=list_steps(question, steps, language),
            passages=list_passages(steps, language, self.max_tokens, self.length),
        )

    def parse(self, answer: str) -> T:
        """Parse an answer.

        Raises:
            ValueError: If it can't be used.
        """
        raise NotImplementedError(f"{type(self).__name__} has to define parse(answer)")


def prompt_on_steps(
    *, zh: str, en: str, zh_label: str, en_label: str, required: tuple[str, ...] = ("question",)
) -> Prompt:
    """Return a prompt that ends with the question, the steps, the passages and a label."""
    names = ("question", "steps", "passages")
    return Prompt(
        zh=zh + _STEPS_ZH + zh_label,
        en=en + _STEPS_EN + en_label,
        required=required,
        optional=tuple(name for name in names if name not in required),
    )


_STEPS_ZH = """\
问题：{question}

已经问过的小问题和答案：
{steps}

资料：
<passages>
{passages}
</passages>

问题：{question}
"""

_STEPS_EN = """\
Question: {question}

Asked so far, with the answers:
{steps}

Passages:
<passages>
{passages}
</passages>

Question: {question}
"""


def list_steps(question: str, steps: Iterable[Step], language: Language) -> str:
    """Return the questions of steps and their answers, one a line."""
    lines = [
        f"{number}. {_line(step.question)} -> {_line(step.answer or _NO_ANSWER[language])}"
        for number, step in enumerate((step for step in steps if step.question != question), 1)
    ]
    return neutralize("\n".join(lines)) or _NOTHING[language]


def list_passages(
    steps: Sequence[Step], language: Language, max_tokens: int, length: Callable[[str], int]
) -> str:
    """Return the passages of steps that fit: those of the last step first, then of the others."""
    passages: dict[tuple[str, str], None] = {}
    for step in reversed(steps):
        passages |= dict.fromkeys((result.node.id, result.node.text) for result in step.results)
    text, _ = fit_passages((text for _, text in passages), max_tokens, length)
    return text or _NOTHING[language]


def as_question(value: object) -> str | None:
    """Return the question in what a model wrote, None if there is none.

    Raises:
        ValueError: If it is too long.
    """
    text = strip_markup(_line(value)) if isinstance(value, str) else ""
    if not re.search(r"\w", text) or is_no_answer(text):
        return None
    if len(text) > MAX_QUERY_LENGTH:
        raise ValueError(f"the question is longer than {MAX_QUERY_LENGTH} characters")
    return text


def as_answer(value: object) -> str | None:
    """Return the short answer in what a model wrote, None if it says that it does not know."""
    value = _VERDICTS[value] if isinstance(value, bool) else value
    is_answer = isinstance(value, str | int | float)
    text = strip_markup(_line(str(value))) if is_answer else ""
    if not re.search(r"\w", text) or is_unknown(text):
        return None
    return text if len(text) <= MAX_ANSWER else f"{text[: MAX_ANSWER - 4]} ..."


def _line(text: str) -> str:
    return " ".join(text.split())
