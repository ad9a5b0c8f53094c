"""Show nodekin's prompts as LlamaIndex prompt templates, and take them back."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, get_args

from llama_index.core.prompts import BasePromptTemplate, PromptTemplate
from llama_index.core.settings import Settings

from ...nodegraph import LLM
from ...nodegraph.models import Language, as_llm
from ...retrievers.plans import Prompt

_PLACE = re.compile(r"\{(\w+)\}")


def templates_of(prompts: Mapping[str, Prompt]) -> dict[str, BasePromptTemplate]:
    """Return a template for each prompt and language, by names such as ``rewrite_en``.

    Places are nodekin's (``{query}``, ``{passages}``); all other braces are doubled, as LlamaIndex
    templates have them.

    Example:
        >>> from nodekin.retrievers.strategies import QueryRewrite
        >>> sorted(templates_of(QueryRewrite(str.upper).prompts))
        ['rewrite_en', 'rewrite_zh']
    """
    return {
        key: PromptTemplate(_doubled(prompt.of(language), (*prompt.required, *prompt.optional)))
        for key, prompt, language in _named(prompts)
    }


def prompts_given(
    prompts: Mapping[str, Prompt], given: Mapping[str, BasePromptTemplate]
) -> dict[str, Prompt]:
    """Return the prompts that templates of these names change, by nodekin's names.

    Names of other templates are left out: LlamaIndex gives a component those of its parts, too.

    Raises:
        ValueError: If a template lacks a place, or has one that nothing fills.
    """
    changed: dict[str, Prompt] = {}
    for key, prompt, language in _named(prompts):
        if key in given:
            name = next(name for name, each in prompts.items() if each is prompt)
            text = given[key].get_template()
            text = text.replace("{{", "{").replace("}}", "}")
            changed[name] = changed.get(name, prompt).replaced({language: text})
    return changed


def _named(prompts: Mapping[str, Prompt]) -> Iterator[tuple[str, Prompt, Language]]:
    for name, prompt in prompts.items():
        for language in get_args(Language):
            yield f"{name.replace(' ', '_')}_{language}", prompt, language


def _doubled(text: str, places: tuple[str, ...]) -> str:
    kept: list[str] = []
    end = 0
    for found in _PLACE.finditer(text):
        if found[1] in places:
            kept += [_escaped(text[end : found.start()]), found[0]]
            end = found.end()
    return "".join([*kept, _escaped(text[end:])])


def _escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


class SettingsLLM:
    """Be whichever model ``Settings.llm`` is at the time of the question.

    Touching ``Settings.llm`` where none was set loads OpenAI's package, or raises.
    """

    def complete(self, prompt: str) -> Any:
        """Return the model's answer."""
        return Settings.llm.complete(prompt)

    async def acomplete(self, prompt: str) -> Any:
        """Return the same without blocking the event loop."""
        return await Settings.llm.acomplete(prompt)

    def stream_complete(self, prompt: str) -> Any:
        """Return the answer as it comes."""
        return Settings.llm.stream_complete(prompt)

    async def astream_complete(self, prompt: str) -> Any:
        """Return the same without blocking the event loop."""
        return await Settings.llm.astream_complete(prompt)


def llm_or_settings(llm: object) -> LLM:
    """Take a model in any of the forms people have; None is that of LlamaIndex's settings.

    Raises:
        TypeError: If it is no model.
    """
    return LLM(SettingsLLM(), "LlamaIndex Settings.llm") if llm is None else as_llm(llm)
