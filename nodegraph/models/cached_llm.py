"""Cache a model's answers, so that the same prompt is not paid for twice."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

from ..memory_store import as_store
from ..store import NodeStore
from .llm import LLM, as_llm

_KIND = "answers"


class CachedLLM:
    """Ask a language model each prompt once, and answer from memory or a file after that.

    It is a model itself, and can be used in place of one. Answers are stored by the model's name,
    the prompt and the schema: where the name of a model does not show its settings, give it one
    that does (``LLM(model, "name")``). Failures and streams that were not read to their end are not
    stored.

    Args:
        llm: The model, in any form that ``LLM`` takes.
        store: Where answers are cached: the path of a file, for later runs and other processes; a
            store; None for memory, as long as this object lives.

    Attributes:
        hits: How many prompts were answered without the model.
        misses: How many went to the model.

    Raises:
        TypeError: If there is no model.
        StoreError: If the file can't be opened.

    Example:
        >>> prompts = []
        >>> llm = CachedLLM(LLM(lambda prompt: prompts.append(prompt) or "A drink.", "scripted"))
        >>> llm.complete("What is tea?"), llm.complete("What is tea?"), len(prompts)
        ('A drink.', 'A drink.', 1)
    """

    def __init__(self, llm: object, store: str | Path | NodeStore | None = None) -> None:
        self.llm: LLM = as_llm(llm)
        self._store = as_store(store)
        self._is_own = store is None or isinstance(store, str | Path)
        self._lock = threading.Lock()
        self.hits = 0
        self.misses = 0
        if self.llm.structured:  # else whoever asks should know that it can't be held to a schema
            self.complete_json = self._complete_json
            self.acomplete_json = self._acomplete_json

    def __repr__(self) -> str:
        return f"CachedLLM({self.llm.name!r}, {self.hits} hits, {self.misses} misses)"

    @property
    def name(self) -> str:
        """The model's name: nodes made with stored answers count as its own."""
        return self.llm.name

    def complete(self, prompt: str) -> str:
        """Return the model's answer to a prompt.

        Raises:
            ModelError: If the model fails.
        """
        cached: str | None = self._get(prompt)
        return self._put(prompt, self.llm.complete(prompt)) if cached is None else cached

    async def acomplete(self, prompt: str) -> str:
        """Return the same without blocking the event loop."""
        cached: str | None = await self._aget(prompt)
        return (
            await self._aput(prompt, await self.llm.acomplete(prompt)) if cached is None else cached
        )

    def stream(self, prompt: str) -> Iterator[str]:
        """Yield the answer as it comes; a stored one as a whole."""
        cached = self._get(prompt)
        if cached is not None:
            yield cached
            return
        chunks = []
        for chunk in self.llm.stream(prompt):
            chunks.append(chunk)
            yield chunk
        self._put(prompt, "".join(chunks))

    async def astream(self, prompt: str) -> AsyncIterator[str]:
        """Yield the same without blocking the event loop."""
        cached = await self._aget(prompt)
        if cached is not None:
            yield cached
            return
        chunks = []
        async for chunk in self.llm.astream(prompt):
            chunks.append(chunk)
            yield chunk
        await self._aput(prompt, "".join(chunks))

    def clear(self) -> None:
        """Delete all stored answers, of this model and others."""
        self._store.delete_values(_KIND)

    def close(self) -> None:
        """Close the file, if there is one of its own; the next use opens it again."""
        if self._is_own:
            self._store.close()

    def _complete_json(self, prompt: str, schema: Mapping[str, Any]) -> Any:
        cached = self._get(prompt, schema)
        return (
            self._put(prompt, self.llm.json(prompt, schema), schema) if cached is None else cached
        )

    async def _acomplete_json(self, prompt: str, schema: Mapping[str, Any]) -> Any:
        cached = await self._aget(prompt, schema)
        if cached is not None:
            return cached
        return await self._aput(prompt, await self.llm.ajson(prompt, schema), schema)

    def _key(self, prompt: str, schema: Mapping[str, Any] | None) -> str:
        request = json.dumps([self.llm.name, prompt, schema], sort_keys=True, default=str)
        return hashlib.sha256(request.encode()).hexdigest()

    def _get(self, prompt: str, schema: Mapping[str, Any] | None = None) -> Any:
        """Return the stored answer, None where there is none."""
        key = self._key(prompt, schema)
        stored = self._store.get_values(_KIND, [key]).get(key)
        with self._lock:
            self.hits += stored is not None
            self.misses += stored is None
        return None if stored is None else json.loads(stored)

    def _put(self, prompt: str, answer: Any, schema: Mapping[str, Any] | None = None) -> Any:
        self._store.put_values(_KIND, {self._key(prompt, schema): json.dumps(answer).encode()})
        return answer

    async def _aget(self, prompt: str, schema: Mapping[str, Any] | None = None) -> Any:
        import asyncio

        return await asyncio.to_thread(self._get, prompt, schema)

    async def _aput(self, prompt: str, answer: Any, schema: Mapping[str, Any] | None = None) -> Any:
        import asyncio

        return await asyncio.to_thread(self._put, prompt, answer, schema)
