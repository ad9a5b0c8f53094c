"""What a model is asked, in Chinese and English, with named places for what changes."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar, get_args

from ...nodegraph import LLM, ModelError, ModelTimeoutError, nearest_names
from ...nodegraph.models import Language, fill_template, retry_note
from .effects import Ask
from .plan import Plan

PromptMixinT = TypeVar("PromptMixinT", bound="PromptMixin")

_PLACE = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")


@dataclass(frozen=True, slots=True)
class Prompt:
    """Hold a prompt in two languages; ``{name}`` in it is the place of a value.

    Other braces stay as they are, and what is put in is never read as a prompt.

    Args:
        zh: For questions in Chinese.
        en: For all others.
        required: The names that both must have.
        optional: Names that they may have.

    Raises:
        TypeError: If a prompt is no text.
        ValueError: If one lacks a required name, or has one that is not known.

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
        known = (*self.required, *self.optional)
        for language in get_args(Language):
            text = self.of(language)
            if not isinstance(text, str):
                raise TypeError(f"a prompt is a text, not {text!r:.80}")
            places = dict.fromkeys(_PLACE.findall(text))
            for name in self.required:
                if name not in places:
                    raise ValueError(
                        f"the prompt {text!r:.80} has no place for {name!r}; write {{{name}}} in it"
                    )
            for name in places:
                if name not in known:
                    raise ValueError(
                        f"the prompt {text!r:.80} has a place for {name!r}, which nothing fills; "
                        f"there is {nearest_names(name, known)}"
                    )

    def of(self, language: Language) -> str:
        """Return the prompt in a language."""
        return self.zh if language == "zh" else self.en

    def fill(self, language: Language, **values: object) -> str:
        """Return the prompt in a language with values in their places."""
        return fill_template(self.of(language), **values)

    def replaced(self, given: str | Mapping[Language, str] | Prompt | None) -> Prompt:
        """Return the prompt with what a user gives in place of it.

        Args:
            given: A text, for both languages; ``{"zh": ...}`` or ``{"en": ...}`` or both; a
                ``Prompt``; None for no change.

        Raises:
            TypeError: If it is none of these.
            ValueError: If a language is unknown, or the text lacks a name or has an unknown one.
        """
        if given is None:
            return self
        if isinstance(given, Prompt):
            given = {"zh": given.zh, "en": given.en}
        if isinstance(given, str):
            given = {"zh": given, "en": given}
        if not isinstance(given, Mapping):
            raise TypeError(
                f'a prompt is a text, or texts by language {{"zh": ..., "en": ...}}, '
                f"not {given!r:.80}"
            )
        for language in given:
            if language not in get_args(Language):
                raise ValueError(
                    f"no prompts in the language {language!r}; there is "
                    f"{nearest_names(str(language), get_args(Language))}"
                )
        texts = {"zh": self.zh, "en": self.en, **given}
        return Prompt(texts["zh"], texts["en"], self.required, self.optional)


class PromptMixin:
    """Let the prompts of what asks models be read, and be replaced in a copy of it.

    Example:
        >>> from nodekin.retrievers.strategies import QueryRewrite
        >>> rewrite = QueryRewrite(lambda prompt: prompt)
        >>> list(rewrite.prompts)
        ['rewrite']
        >>> mine = rewrite.with_prompts({"rewrite": {"en": "Mend the spelling: {query}"}})
        >>> mine.prompts["rewrite"].en
        'Mend the spelling: {query}'
    """

    calls_model: ClassVar[bool] = True

    _prompts: Mapping[str, Prompt] = MappingProxyType({})

    @property
    def prompts(self) -> Mapping[str, Prompt]:
        """The prompts by their names."""
        return MappingProxyType(dict(self._prompts))

    def with_prompts(
        self: PromptMixinT, given: Mapping[str, str | Mapping[Language, str] | Prompt]
    ) -> PromptMixinT:
        """Return a copy in which some prompts are others.

        Args:
            given: By their names, what ``Prompt.replaced`` takes.

        Raises:
            TypeError: If one is no prompt.
            ValueError: If a name is unknown, or a prompt lacks a name or has an unknown one.
        """
        prompts = dict(self.prompts)
        for name, prompt in given.items():
            if name not in prompts:
                raise ValueError(
                    f"no prompt {name!r}; there is {nearest_names(str(name), prompts)}"
                )
            prompts[name] = prompts[name].replaced(prompt)
        made = copy.copy(self)
        made._replace_prompts(prompts)
        return made

    def _replace_prompts(self, prompts: Mapping[str, Prompt]) -> None:
        """Take the prompts, all by their names, that a copy is to have."""
        self._prompts = dict(prompts)


T = TypeVar("T")

_IN_JSON = {
    "zh": "\n\n（请用 JSON 输出，格式为：{form}）",
    "en": "\n\n(Answer in JSON, in this form: {form})",
}


def ask_and_parse(
    llm: LLM,
    prompt: str,
    read: Callable[[str], T],
    language: Language,
    *,
    schema: Mapping[str, Any] | None = None,
    retries: int = 1,
    timeout: float | None = None,
) -> Plan[T]:
    """Ask a model, and return what is read out of its answer.

    Args:
        llm: The model.
        prompt: What it is asked; it describes the form of the answer, also where there is a schema.
        read: Reads an answer, in JSON or as the model writes it; raises ValueError where there is
            nothing to be read.
        language: Of the prompt.
        schema: A JSON schema the model is held to, where it offers that.
        retries: How often it is asked again, in its own words, where its answer can't be read.
        timeout: Seconds to wait for each answer.

    Raises:
        ModelTimeoutError: If an answer takes too long; the model is not asked again.
        ModelError: If the model fails, or none of its answers can be read.
    """
    why, answer = "", ""
    wanted = schema if llm.structured else None
    tries = 1 + retries
    while tries:
        asked = prompt + (retry_note(language, why) if why else "")
        try:
            answer = yield from Ask(llm, asked, wanted, timeout)
            return read(strip_prompt(answer, asked))
        except ValueError as error:
            why = str(error)
            tries -= 1
        except ModelTimeoutError:
            raise  # to ask again would be to wait as long again
        except ModelError:
            if wanted is None:
                raise  # a model that can't be held to a schema may still answer; this one failed
        wanted = None  # the next answer is in its own words
    raise ModelError(
        f"no answer of the language model {llm.name!r} can be used: {why}; it answered "
        f"{answer!r:.300}"
    )


def json_instruction(form: str, language: Language) -> str:
    """Return what a prompt ends with where the answer is to be JSON of a form.

    Example:
        >>> json_instruction('{"query": "..."}', "en").strip()
        '(Answer in JSON, in this form: {"query": "..."})'
    """
    return _IN_JSON[language].replace("{form}", form)


def strip_prompt(answer: str, prompt: str) -> str:
    """Return an answer without the prompt, where a model says that first.

    Example:
        >>> strip_prompt("Question: Why? Answer: So it is.", "Question: Why? Answer:")
        ' So it is.'
    """
    asked = prompt.strip()
    at = answer.find(asked) if asked else -1
    return answer if at < 0 else answer[at + len(asked) :]
