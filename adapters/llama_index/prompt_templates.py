"""Convert prompts between nodekin and LlamaIndex, and find the default language model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar, get_args

from llama_index.core.prompts import BasePromptTemplate, PromptTemplate
from llama_index.core.settings import Settings

from ...nodegraph.models.templates import Language
from ...retrievers.plans.prompting import Prompt

T = TypeVar("T")


def to_templates(owner: object) -> dict[str, BasePromptTemplate]:
    """Return the prompts of a nodekin object as LlamaIndex templates.

    The keys are names such as ``rewrite_en``. The templates contain nodekin's placeholders, such as
    ``{query}``. All other braces are doubled.

    Example:
        >>> from nodekin.retrievers import QueryRewrite
        >>> sorted(to_templates(QueryRewrite(str.upper)))
        ['rewrite_en', 'rewrite_zh']
    """
    return {
        key: PromptTemplate(_template(prompt, language))
        for key, _, prompt, language in _prompts(owner)
    }


def with_templates(owner: T, templates: Mapping[str, BasePromptTemplate]) -> T:
    """Return a copy of a nodekin object in which prompts are replaced. Unknown names are ignored.

    Raises:
        ValueError: If a placeholder is missing from a template, or is unknown.
    """
    changed: dict[str, Prompt] = {}
    for key, name, prompt, language in _prompts(owner):
        if key in templates:
            text = templates[key].get_template().replace("{{", "{").replace("}}", "}")
            changed[name] = changed.get(name, prompt).replaced({language: text})
    if not changed:
        return owner
    copy: T = owner.with_prompts(changed)  # type: ignore[attr-defined]
    return copy


def _prompts(owner: object) -> Iterator[tuple[str, str, Prompt, Language]]:
    prompts: Mapping[str, Prompt] = getattr(owner, "prompts", {})
    for name, prompt in prompts.items():
        for language in get_args(Language):
            yield f"{name.replace(' ', '_')}_{language}", name, prompt, language


def _template(prompt: Prompt, language: Language) -> str:
    """Return the text of a prompt. All braces that do not belong to placeholders are doubled."""
    names = "|".join((*prompt.required, *prompt.optional))
    pattern = rf"(\{{(?:{names})\}})|[{{}}]"
    return re.sub(pattern, lambda match: match[1] or match[0] * 2, prompt.of(language))


def default_llm() -> Any:
    """Return the language model that is set as ``Settings.llm``.

    Raises:
        ImportError: If no model is set, and the package of LlamaIndex's default model is not
            installed.
    """
    try:
        return Settings.llm
    except ImportError as error:
        raise ImportError(
            "a language model is required: pass llm=... or set Settings.llm; LlamaIndex's default "
            "model requires the package llama-index-llms-openai"
        ) from error
