"""What a model is asked, in Chinese and English, with named places for what changes."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeVar, get_args

from ..nodegraph.errors import nearest
from ..nodegraph.llm.language import Language
from ..nodegraph.llm.prompts import fill

PromptedT = TypeVar("PromptedT", bound="Prompted")
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
                        f"there is {nearest(name, known)}"
                    )

    def of(self, language: Language) -> str:
        """Return the prompt in a language."""
        return self.zh if language == "zh" else self.en

    def fill(self, language: Language, **values: object) -> str:
        """Return the prompt in a language with values in their places."""
        return fill(self.of(language), **values)

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
                    f"{nearest(str(language), get_args(Language))}"
                )
        texts = {"zh": self.zh, "en": self.en, **given}
        return Prompt(texts["zh"], texts["en"], self.required, self.optional)


class Prompted:
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

    _prompts: Mapping[str, Prompt] = MappingProxyType({})

    @property
    def prompts(self) -> Mapping[str, Prompt]:
        """The prompts by their names."""
        return MappingProxyType(dict(self._prompts))

    def with_prompts(
        self: PromptedT, given: Mapping[str, str | Mapping[Language, str] | Prompt]
    ) -> PromptedT:
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
                raise ValueError(f"no prompt {name!r}; there is {nearest(str(name), prompts)}")
            prompts[name] = prompts[name].replaced(prompt)
        made = copy.copy(self)
        made._replace_prompts(prompts)
        return made

    def _replace_prompts(self, prompts: Mapping[str, Prompt]) -> None:
        """Take the prompts, all by their names, that a copy is to have."""
        self._prompts = dict(prompts)
