"""A prompt and the model that answers it: languages, JSON schemas, retries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypedDict, TypeVar, get_args

from ...nodegraph.errors import nearest_names
from ...nodegraph.models.language import Language, language_of
from ...nodegraph.models.llm import LLM, as_llm
from ..plans.plan import Plan
from ..plans.prompting import (
    Prompt,
    PromptMixin,
    PromptReplacement,
    ask_and_parse,
    json_instruction,
)
from ..validation import seconds, whole

T = TypeVar("T")


class PromptOptions(TypedDict, total=False):
    """The options of every ``ModelPrompt``, to type ``**options``."""

    prompt: PromptReplacement | None
    language: Language | None
    retries: int
    timeout: float | None


class ModelPrompt(PromptMixin):
    """Ask a model with one prompt; the base class of query transforms and of prompts on steps.

    Args:
        llm: The model, in any form that ``LLM`` takes.
        prompt: In place of the built-in one: a text with the same names in braces, a prompt
            template of LangChain or LlamaIndex, either of them by language, ``{"zh": ...,
            "en": ...}``, or a ``Prompt``.
        language: Of the prompt: ``"zh"`` or ``"en"``; None for that of each query.
        retries: How often to repeat a call whose answer can't be used.
        timeout: Seconds to wait for each answer of the model; None leaves it to its client.

    Raises:
        TypeError: If the model is none, or a number is not one, or a prompt is no text.
        ValueError: If there is no such language, or a number is out of range, or a prompt lacks a
            name or has an unknown one.
    """

    name: ClassVar[str]
    """What traces call it, and ``prompts`` its prompt."""

    PROMPT: ClassVar[Prompt]
    """The built-in prompt."""

    SCHEMA: ClassVar[Mapping[str, Any] | None] = None
    """A JSON schema for models that support one."""

    EXAMPLE: ClassVar[str] = ""
    """JSON that fits the schema, for the prompt."""

    subject: ClassVar[str] = "query"
    """The place in the prompt for the text that it is about."""

    def __init__(
        self,
        llm: object,
        *,
        prompt: PromptReplacement | None = None,
        language: Language | None = None,
        retries: int = 1,
        timeout: float | None = None,
    ) -> None:
        self.llm: LLM = as_llm(llm)
        self._prompts = {self.name: self.PROMPT.replaced(prompt)}
        if language is not None and language not in get_args(Language):
            choices = nearest_names(str(language), get_args(Language))
            raise ValueError(
                f"no prompts in the language {language!r}; there is {choices}, or None for that of "
                "each query"
            )
        self.language = language
        self.retries = whole(retries, "retries", 0)
        self.timeout = seconds(timeout, "timeout")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.llm.name!r})"

    @property
    def prompt(self) -> Prompt:
        """The prompt of the model."""
        return self._prompts[self.name]

    def prompt_language(self, text: str) -> Language:
        """Return the language of the prompt for a text."""
        return language_of(text) if self.language is None else self.language

    def ask(
        self,
        text: str,
        parse: Callable[[str], T],
        *,
        schema: Mapping[str, Any] | None = None,
        example: str = "",
        **values: object,
    ) -> Plan[T]:
        """Ask the model with the prompt filled for a text; return what ``parse`` makes of it.

        Args:
            text: The query, or question, that the prompt is about.
            parse: Parses an answer; raises ValueError if it can't be used, and the model is asked
                again as often as ``retries`` says, with that message.
            schema: In place of ``SCHEMA``.
            example: In place of ``EXAMPLE``.
            **values: For the other places of the prompt.

        Raises:
            ModelError: If the model fails, or none of its answers can be parsed.
        """
        language = self.prompt_language(text)
        schema = self.SCHEMA if schema is None else schema
        prompt = self.prompt.fill(language, **{self.subject: text}, **values)
        if schema is not None and self.llm.structured:
            prompt += json_instruction(example or self.EXAMPLE, language)
        return ask_and_parse(
            *(self.llm, prompt, parse, language),
            schema=schema,
            retries=self.retries,
            timeout=self.timeout,
        )


def model_or(
    value: Any, kinds: type | tuple[type, ...], create: Callable[..., T], options: Mapping[str, Any]
) -> T:
    """Return a value of some kinds as it is, or create one from a model and options.

    Raises:
        TypeError: If there are options beside a value that has its own.
    """
    is_model = not isinstance(value, kinds)
    if options and not is_model:
        raise TypeError(
            f"settings {sorted(options)} go with a model; give them to {type(value).__name__}(...) "
            "itself"
        )
    return create(value, **options) if is_model else value


def object_schema(*heading: str, **properties: object) -> Mapping[str, Any]:
    """Return the JSON schema of an object that has these and no other properties.

    Args:
        *heading: Its title and description, for models that want them.
        **properties: Their schemas by name.
    """
    return {
        **dict(zip(("title", "description"), heading, strict=False)),
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


TEXTS_SCHEMA: Mapping[str, Any] = {"type": "array", "items": {"type": "string"}}
"""The schema of a list of texts."""
