"""Prompts in Chinese and English, and functions that parse the answers of models."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, TypeVar, get_args

from ...nodegraph.errors import ModelError, ModelTimeoutError, nearest_names
from ...nodegraph.models.templates import (
    PLACEHOLDER,
    Language,
    PromptTemplate,
    fill_template,
    prompt_text,
    retry_note,
)
from ..validation import choice
from .effects import ask
from .plan import work

if TYPE_CHECKING:
    from typing_extensions import Self

    from ...nodegraph.models.llm import LLM


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt in Chinese and English, with placeholders such as ``{name}``.

    Braces that do not form a placeholder are left unchanged, and placeholders within inserted
    values are not replaced.

    Args:
        zh: The prompt for questions in Chinese.
        en: The prompt for all other questions.
        required: The names of the required placeholders.
        optional: The names of the optional placeholders.

    Raises:
        TypeError: If a prompt is not a string.
        ValueError: If a placeholder is missing or unknown.

    Example:
        >>> prompt = Prompt("问题：{query}", "Question: {query}", ("query",))
        >>> prompt.fill("en", query="What is {tea}?")
        'Question: What is {tea}?'
    """

    zh: str
    en: str
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names = (*self.required, *self.optional)
        for language in get_args(Language):
            text = self.of(language)
            if not isinstance(text, str):
                raise TypeError(f"a prompt must be a string, got {text!r:.80}")
            placeholders = dict.fromkeys(PLACEHOLDER.findall(text))
            for name in self.required:
                if name not in placeholders:
                    raise ValueError(f"the prompt {text!r:.80} must contain {{{name}}}")
            for name in placeholders:
                if name not in names:
                    raise ValueError(
                        f"the prompt {text!r:.80} has an unknown placeholder {name!r}; known: "
                        f"{nearest_names(name, names)}"
                    )

    def of(self, language: Language) -> str:
        """Return the prompt in one language."""
        if language == "zh":
            return self.zh
        return self.en

    def fill(self, language: Language, **values: object) -> str:
        """Return the prompt in one language, with its placeholders replaced by values."""
        return fill_template(self.of(language), **values)

    def replaced(self, replacement: PromptReplacement | None) -> Prompt:
        """Return a copy of the prompt with other texts.

        Args:
            replacement: The new prompt. A text or a prompt template of LangChain or LlamaIndex is
                used for both languages; a mapping from ``"zh"`` and ``"en"`` replaces one or both.
                A ``Prompt`` is accepted as well. The frameworks' placeholders are converted
                (``{question}`` to ``{query}``, ``{context}`` to ``{passages}``), and chat messages
                are preserved for chat models. If None, the prompt is returned unchanged.

        Raises:
            TypeError: If the replacement has any other type.
            ValueError: If a language is unknown, or a placeholder is missing or unknown.
        """
        if replacement is None:
            return self
        if isinstance(replacement, Prompt):
            replacement = {"zh": replacement.zh, "en": replacement.en}
        elif not isinstance(replacement, Mapping):
            replacement = {"zh": replacement, "en": replacement}
        texts = {"zh": self.zh, "en": self.en}
        for language, text in replacement.items():
            choice(language, "the language of a prompt", texts)
            texts[language] = prompt_text(text, (*self.required, *self.optional))
        return Prompt(texts["zh"], texts["en"], self.required, self.optional)


PromptText: TypeAlias = str | PromptTemplate

PromptReplacement: TypeAlias = PromptText | Mapping[Language, PromptText] | Prompt
"""A text for both languages, texts by language, or a prompt. See ``Prompt.replaced``."""


def replace_prompts(
    prompts: Mapping[str, Prompt], replacements: Mapping[str, PromptReplacement]
) -> dict[str, Prompt]:
    """Return a copy of a mapping of prompts in which some prompts are replaced.

    Raises:
        TypeError: If ``replacements`` is not a mapping, or a replacement is not a prompt.
        ValueError: If a name is unknown, or a placeholder is missing or unknown.
    """
    if not isinstance(replacements, Mapping):
        raise TypeError(f"prompts must be a mapping of prompts by name, got {replacements!r:.80}")
    replaced = dict(prompts)
    for name, replacement in replacements.items():
        if name not in prompts:
            raise ValueError(f"unknown prompt {name!r}; known: {nearest_names(str(name), prompts)}")
        replaced[name] = prompts[name].replaced(replacement)
    return replaced


class PromptMixin:
    """A base class for objects whose prompts can be replaced.

    Example:
        >>> from nodekin.retrievers import QueryRewrite
        >>> rewrite = QueryRewrite(lambda prompt: prompt)
        >>> list(rewrite.prompts)
        ['rewrite']
        >>> spelling = rewrite.with_prompts({"rewrite": {"en": "Mend the spelling: {query}"}})
        >>> spelling.prompts["rewrite"].en
        'Mend the spelling: {query}'
    """

    calls_model: ClassVar[bool] = True

    prompt_owner: ClassVar[str | None] = None
    """The name of an attribute whose object has further prompts, which are included."""

    _prompts: Mapping[str, Prompt] = MappingProxyType({})

    @property
    def prompts(self) -> Mapping[str, Prompt]:
        """The prompts, by name."""
        owner = self.prompt_owner and getattr(self, self.prompt_owner)
        return MappingProxyType({**(owner.prompts if owner else {}), **self._prompts})

    def with_prompts(self, replacements: Mapping[str, PromptReplacement]) -> Self:
        """Return a copy of the object with replaced prompts.

        Args:
            replacements: The new prompts by name. See ``Prompt.replaced`` for the accepted types.

        Raises:
            TypeError: If a replacement is not a prompt.
            ValueError: If a name is unknown, or a placeholder is missing or unknown.
        """
        changed = copy.copy(self)
        changed._replace_prompts(replace_prompts(self.prompts, replacements))
        return changed

    def _replace_prompts(self, prompts: Mapping[str, Prompt]) -> None:
        """Set all prompts of a new copy."""
        if self.prompt_owner:
            owner = getattr(self, self.prompt_owner)
            others = {name: prompts[name] for name in owner.prompts}
            setattr(self, self.prompt_owner, owner.with_prompts(others))
        self._prompts = {name: prompts[name] for name in self._prompts}


T = TypeVar("T")


async def ask_and_parse(
    llm: LLM,
    prompt: str,
    parse: Callable[[str], T],
    language: Language,
    *,
    schema: Mapping[str, Any] | None = None,
    retries: int = 1,
    timeout: float | None = None,
) -> T:
    """Send a prompt to a language model, and return the parsed answer.

    Args:
        llm: The language model.
        prompt: The prompt. It must describe the format of the answer even if a schema is given.
        parse: A function that parses an answer in JSON or free text. It raises ValueError if the
            answer is not usable.
        language: The language of the prompt.
        schema: The JSON schema of the answer, for models that support structured output.
        retries: The number of times the call is repeated if the answer is not usable. Repeated
            calls do not use the schema, and their prompt contains the error message.
        timeout: The time limit of each call in seconds.

    Raises:
        ModelTimeoutError: If an answer takes longer than the time limit. The call is not repeated.
        ModelError: If the model fails, or none of its answers is usable.
    """
    why = ""
    answer = ""
    json_schema = schema if llm.structured else None
    while retries >= 0:
        text = prompt
        if why:
            text = prompt + retry_note(language, why)
        try:
            answer = await ask(llm, text, json_schema, timeout)
            return await work(parse, strip_prompt(answer, text))
        except ValueError as error:
            why = str(error)
            retries -= 1
        except ModelError as error:
            # A call that timed out would take just as long again. In contrast, a model that fails
            # with a schema may succeed without it.
            if json_schema is None or isinstance(error, ModelTimeoutError):
                raise
        json_schema = None  # the next answer is free text
    raise ModelError(
        f"no answer of the language model {llm.name!r} can be used: {why}; it answered "
        f"{answer!r:.300}"
    )


def strip_prompt(answer: str, prompt: str) -> str:
    """Remove the prompt from an answer that repeats it.

    Example:
        >>> strip_prompt("Question: Why? Answer: So it is.", "Question: Why? Answer:")
        ' So it is.'
    """
    echo = prompt.strip()
    if not echo:
        return answer
    _, found, rest = answer.partition(echo)
    if not found:
        return answer
    return rest
