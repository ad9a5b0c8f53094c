"""Scripted models and memory databases that the LlamaIndex tests share."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from typing import Any

import pytest
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.storage.chat_store import sql
from sqlalchemy.ext.asyncio import AsyncEngine


@pytest.fixture
def closed_memories(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Close the databases of chat memories, which LlamaIndex does not close.

    An open database causes a warning when it is deleted, and its thread fails if the event loop has
    been closed.
    """
    engines: list[AsyncEngine] = []

    def create(uri: str) -> AsyncEngine:
        engines.append(create_async_engine(uri))
        return engines[-1]

    create_async_engine = sql.create_async_engine
    monkeypatch.setattr(sql, "create_async_engine", create)
    yield
    for engine in engines:
        asyncio.run(engine.dispose())


class ScriptedLLM(CustomLLM):
    """A language model whose answers depend on the prompt. It records its prompts."""

    answer: Any = "Black tea."
    """A text, an exception to raise, or a function that takes the prompt and returns the answer."""
    prompts: list[str] = []  # noqa: RUF012

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata()

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        self.prompts.append(prompt)
        answer = self.answer(prompt) if callable(self.answer) else self.answer
        if isinstance(answer, Exception):
            raise answer
        return CompletionResponse(text=answer)

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        text = ""
        for word in self.complete(prompt).text.split(" "):
            delta = f" {word}" if text else word
            text += delta
            yield CompletionResponse(text=text, delta=delta)


class Words(BaseEmbedding):
    """An embedding model that counts words, and records the texts it embeds."""

    texts: list[str] = []  # noqa: RUF012

    def _get_text_embedding(self, text: str) -> list[float]:
        self.texts.append(text)
        return self._get_query_embedding(text)

    def _get_query_embedding(self, query: str) -> list[float]:
        counts = [0.01] * 128
        for word in re.findall(r"[a-z0-9]+", query.lower()):
            counts[sum(ord(letter) * at for at, letter in enumerate(word, 1)) % 127] += 1
        length = sum(count * count for count in counts) ** 0.5
        return [count / length for count in counts]

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)
