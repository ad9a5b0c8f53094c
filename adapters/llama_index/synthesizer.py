"""Make LlamaIndex's response synthesizer when it is first needed, of the model of that time."""

from __future__ import annotations

from typing import Any

from llama_index.core.callbacks import CallbackManager
from llama_index.core.llms import LLM, MockLLM
from llama_index.core.prompts import BasePromptTemplate
from llama_index.core.prompts.mixin import PromptMixin, PromptMixinType
from llama_index.core.response_synthesizers import BaseSynthesizer, get_response_synthesizer
from llama_index.core.settings import Settings


class LazySynthesizer(PromptMixin):
    """Hold a synthesizer, or what it takes to make one; its prompts can be read without a model.

    Args:
        given: A synthesizer; None to make one.
        llm: The model it is made with; None for ``Settings.llm`` at the time of each question.
        streaming: Whether it streams.
        callback_manager: Is told of what it does.
    """

    def __init__(
        self,
        given: BaseSynthesizer | None,
        llm: LLM | None,
        *,
        streaming: bool,
        callback_manager: CallbackManager,
    ) -> None:
        self._given = given
        self._llm = llm
        self._settings: dict[str, Any] = {
            "streaming": streaming,
            "callback_manager": callback_manager,
        }
        self._prompted: BaseSynthesizer | None = given
        self._made: tuple[LLM, BaseSynthesizer] | None = None

    def get(self) -> BaseSynthesizer:
        """Return the synthesizer.

        Raises:
            ImportError: If there is neither a model nor one in LlamaIndex's settings.
        """
        if self._given is not None:
            return self._given
        llm = Settings.llm if self._llm is None else self._llm
        if self._made is not None and self._made[0] is llm:
            return self._made[1]
        made = get_response_synthesizer(llm=llm, **self._settings)
        if self._prompted is not None:
            made.update_prompts(self._prompted.get_prompts())
        self._made = (llm, made)
        return made

    def _prompts(self) -> BaseSynthesizer:
        if self._prompted is None:  # the prompts are the same with any model
            self._prompted = get_response_synthesizer(
                llm=MockLLM(), callback_manager=CallbackManager([])
            )
        return self._prompted

    def _get_prompts(self) -> dict[str, BasePromptTemplate]:
        return self._prompts().get_prompts()

    def _get_prompt_modules(self) -> PromptMixinType:
        return {}

    def _update_prompts(self, prompts_dict: dict[str, BasePromptTemplate]) -> None:
        self._prompts().update_prompts(prompts_dict)
        if self._made is not None:
            self._made[1].update_prompts(prompts_dict)
