"""Convert nodekin's prompts to LlamaIndex's prompt templates and back; the default model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

from llama_index.core.prompts import BasePromptTemplate, PromptTemplate
from llama_index.core.settings import Settings

from ...nodegraph import LLM
from ...nodegraph.models import Language, as_llm
from ...retrievers import Prompt


def to_templates(prompts: Mapping[str, Prompt]) -> dict[str, BasePromptTemplate]:
    """Return a template for each prompt and language, by names such as ``rewrite_en``.

    The placeholders are nodekin's (``{query}``, ``{passages}``); all other braces are doubled, as
    in any LlamaIndex template.

    Example:
        >>> from nodekin.retrievers.strategies import QueryRewrite
        >>> sorted(to_templates(QueryRewrite(str.upper).prompts))
        ['rewrite_en', 'rewrite_zh']
    """
    return {
        key: PromptTemplate(_template(prompt.of(language), (*prompt.required, *prompt.optional)))
        for key, (name, language) in _keys(prompts)
        for prompt in [prompts[name]]
    }


def changed_prompts(
    prompts: Mapping[str, Prompt], templates: Mapping[str, BasePromptTemplate]
) -> dict[str, Prompt]:
    """Return the prompts that the templates change, by nodekin's names.

    Templates of other names are ignored: LlamaIndex passes a component those of its parts, too.

    Raises:
        ValueError: If a template lacks a placeholder, or has an unknown one.
    """
    changed: dict[str, Prompt] = {}
    for key, (name, language) in _keys(prompts):
        if key in templates:
            text = templates[key].get_template().replace("{{", "{").replace("}}", "}")
            changed[name] = changed.get(name, prompts[name]).replaced({language: text})
    return changed


def _keys(prompts: Mapping[str, Prompt]) -> Iterator[tuple[str, tuple[str, Language]]]:
    for name in prompts:
        for language in get_args(Language):
            yield f"{name.replace(' ', '_')}_{language}", (name, language)


def _template(text: str, placeholders: Sequence[str]) -> str:
    """Double all braces but those of the placeholders."""
    pattern = rf"(\{{(?:{'|'.join(placeholders)})\}})|[{{}}]"
    return re.sub(pattern, lambda match: match[1] or match[0] * 2, text)


def default_llm() -> Any:
    """Return ``Settings.llm``.

    Raises:
        ImportError: If no model was set, and LlamaIndex's default one is not installed.
    """
    try:
        return Settings.llm
    except ImportError as error:
        raise ImportError(
            "there is no language model: give one, llm=..., or set Settings.llm; LlamaIndex's "
            "default is OpenAI's, whose package llama-index-llms-openai is not installed"
        ) from error


class SettingsLLM:
    """Call ``Settings.llm``, whichever model that is at the time of the call.

    Reading ``Settings.llm`` when no model was set loads OpenAI's package, or raises.
    """

    def complete(self, prompt: str) -> Any:
        """Return the model's answer."""
        return default_llm().complete(prompt)

    async def acomplete(self, prompt: str) -> Any:
        """Return the same without blocking the event loop."""
        return await default_llm().acomplete(prompt)

    def stream_complete(self, prompt: str) -> Any:
        """Return the answer as a stream."""
        return default_llm().stream_complete(prompt)

    async def astream_complete(self, prompt: str) -> Any:
        """Return the same without blocking the event loop."""
        return await default_llm().astream_complete(prompt)


def llm_or_settings(llm: object) -> LLM:
    """Return a model in any form that ``LLM`` takes, ``Settings.llm`` for None.

    Raises:
        TypeError: If it is no model.
    """
    return LLM(SettingsLLM(), "LlamaIndex Settings.llm") if llm is None else as_llm(llm)
