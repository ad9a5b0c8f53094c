"""Convert nodekin's prompts to LlamaIndex's prompt templates and back; the default model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar, get_args

from llama_index.core.prompts import BasePromptTemplate, PromptTemplate
from llama_index.core.settings import Settings

from ...nodegraph.models.llm import LLM, as_llm
from ...nodegraph.models.templates import Language
from ...retrievers.base_retriever import BaseRetriever
from ...retrievers.plans.prompting import Prompt, PromptMixin
from ...retrievers.protocols import RetrieverProtocol

R = TypeVar("R")


def to_templates(prompts: Mapping[str, Prompt]) -> dict[str, BasePromptTemplate]:
    """Return a template for each prompt and language, by names such as ``rewrite_en``.

    The placeholders are nodekin's (``{query}``, ``{passages}``); all other braces are doubled, as
    in any LlamaIndex template.

    Example:
        >>> from nodekin.retrievers import QueryRewrite
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


class NativePrompts:
    """Show and replace the prompts of what an object of LlamaIndex holds of this package."""

    _native: Any

    def _get_prompts(self) -> dict[str, BasePromptTemplate]:
        return to_templates(self._native.prompts)

    def _update_prompts(self, prompts_dict: Mapping[str, BasePromptTemplate]) -> None:
        if changed := changed_prompts(self._native.prompts, prompts_dict):
            self._native = self._native.with_prompts(changed)


def retriever_templates(retriever: object) -> dict[str, BasePromptTemplate]:
    """Return the templates of a retriever and of all that it queries.

    The names of inner ones begin with their path, ``inner.rewrite_en``, ``0.inner.hyde_zh``: the
    names in ``inner_retrievers``, with dots. A colon or a dot in such a name is ``%3A``, ``%2E``.
    """
    return {
        f"{path}{key}": template
        for path, item in _retrievers(retriever)
        if isinstance(item, PromptMixin)
        for key, template in to_templates(item.prompts).items()
    }


def replace_templates(retriever: R, templates: Mapping[str, BasePromptTemplate]) -> R:
    """Return a copy of a retriever with other prompts, by the names in ``retriever_templates``.

    Copied is what queries the changed one, too. It is the same retriever if nothing changes.

    Raises:
        ValueError: If a template lacks a placeholder, or has an unknown one.
        TypeError: If a class holds the changed retriever and does not say how it is replaced.
    """
    return _replaced(retriever, templates, "", ())


def _retrievers(
    retriever: object, path: str = "", above: tuple[int, ...] = ()
) -> Iterator[tuple[str, object]]:
    """Yield a retriever and all that it queries, with their paths; none below itself."""
    yield path, retriever
    for name, inner in _replaceable(retriever, (*above, id(retriever))):
        yield from _retrievers(inner, _below(path, name), (*above, id(retriever)))


def _replaced(
    retriever: R, templates: Mapping[str, BasePromptTemplate], path: str, above: tuple[int, ...]
) -> R:
    changed: Any = retriever
    if isinstance(changed, PromptMixin):
        own = {key[len(path) :]: value for key, value in templates.items() if key.startswith(path)}
        if prompts := changed_prompts(changed.prompts, own):
            changed = changed.with_prompts(prompts)
    above = (*above, id(retriever))
    others = {
        name: other
        for name, inner in _replaceable(retriever, above)
        if (other := _replaced(inner, templates, _below(path, name), above)) is not inner
    }
    result: R = changed.with_inner_retrievers(others) if others else changed
    return result


def _replaceable(
    retriever: object, above: tuple[int, ...]
) -> Iterator[tuple[str, RetrieverProtocol]]:
    if isinstance(retriever, BaseRetriever):
        for name, inner in retriever.inner_retrievers:
            if id(inner) not in above:
                yield name, inner


def _below(path: str, name: str) -> str:
    """Return the path of an inner retriever; LlamaIndex splits names at colons."""
    quoted = name.replace("%", "%25").replace(":", "%3A").replace(".", "%2E")
    return f"{path}{quoted}."


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
        """Async version of ``complete``."""
        return await default_llm().acomplete(prompt)

    def stream_complete(self, prompt: str) -> Any:
        """Return the answer as a stream."""
        return default_llm().stream_complete(prompt)

    async def astream_complete(self, prompt: str) -> Any:
        """Async version of ``stream_complete``."""
        return await default_llm().astream_complete(prompt)


def llm_or_settings(llm: object) -> LLM:
    """Return a model in any form that ``LLM`` takes, ``Settings.llm`` for None.

    Raises:
        TypeError: If it is no model.
    """
    return LLM(SettingsLLM(), "LlamaIndex Settings.llm") if llm is None else as_llm(llm)
