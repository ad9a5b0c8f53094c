"""Show nodekin's prompts as LlamaIndex prompt templates, and take them back."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import get_args

from llama_index.core.prompts import BasePromptTemplate, PromptTemplate

from ...nodegraph.llm.language import Language
from ...retrievers.prompt import Prompt

_PLACE = re.compile(r"\{(\w+)\}")


def templates_of(prompts: Mapping[str, Prompt]) -> dict[str, BasePromptTemplate]:
    """Return a template for each prompt and language, by names such as ``rewrite_en``.

    Places are nodekin's (``{query}``, ``{passages}``); all other braces are doubled, as LlamaIndex
    templates have them.

    Example:
        >>> from nodekin.retrievers import QueryRewrite
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
