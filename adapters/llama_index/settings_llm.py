"""Use the model of LlamaIndex's settings, looked up when it is asked and not before."""

from __future__ import annotations

from typing import Any

from llama_index.core.settings import Settings

from ...nodegraph import LLM
from ...nodegraph.llm.model import as_llm


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
