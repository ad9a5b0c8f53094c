"""Keep a model's answers, so that the same prompt is not paid for twice."""

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

    It is a model itself, and goes wherever one is taken. Answers are kept by the model's name, the
    prompt and the schema: give a model whose name does not tell its settings one that does
    (``LLM(model, "name")``). What failed, and a stream that was not heard to its end, is not kept.

    Args:
        llm: The model, in any form that ``LLM`` takes.
        store: Where answers are kept: the path of a file, for later runs and other processes; a
            store; None for memory, as long as this object lives.

    Attributes:
        hits: How many prompts were answered without the model.
        misses: How many went to the model.

    Raises:
        TypeError: If there is no model.
        StoreError: If the file can't be opened.

    Example:
        >>> asked = []
        >>> llm = CachedLLM(LLM(lambda prompt: asked.append(prompt) or "A drink.", "scripted"))
        >>> llm.complete("What is tea?"), llm.complete("What is tea?"), len(asked)
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
        """The model's name: what is made with its kept answers is made by it."""
        return self.llm.name

    def complete(self, prompt: str) -> str:
        """Return the model's answer to a prompt.

        Raises:
            ModelError: If the model fails.
        """
        kept: str | None = self._kept(prompt)
        return self._keep(prompt, self.llm.complete(prompt)) if kept is None else kept

    async def acomplete(self, prompt: str) -> str:
        """Return the same without blocking the event loop."""
        kept: str | None = await self._akept(prompt)
        return await self._akeep(prompt, await self.llm.acomplete(prompt)) if kept is None else kept

    def stream(self, prompt: str) -> Iterator[str]:
        """Yield the answer as it comes; a kept one as a whole."""
        kept = self._kept(prompt)
        if kept is not None:
            yield kept
            return
        told = []
        for piece in self.llm.stream(prompt):
            told.append(piece)
            yield piece
        self._keep(prompt, "".join(told))

    async def astream(self, prompt: str) -> AsyncIterator[str]:
        """Yield the same without blocking the event loop."""
        kept = await self._akept(prompt)
        if kept is not None:
            yield kept
            return
        told = []
        async for piece in self.llm.astream(prompt):
            told.append(piece)
            yield piece
        await self._akeep(prompt, "".join(told))

    def forget(self) -> None:
        """Drop all answers that are kept, of this model and others."""
        self._store.forget(_KIND)

    def close(self) -> None:
        """Close the file, if there is one of its own; the next use opens it again."""
        if self._is_own:
            self._store.close()

    def _complete_json(self, prompt: str, schema: Mapping[str, Any]) -> Any:
        kept = self._kept(prompt, schema)
        return self._keep(prompt, self.llm.json(prompt, schema), schema) if kept is None else kept

    async def _acomplete_json(self, prompt: str, schema: Mapping[str, Any]) -> Any:
        kept = await self._akept(prompt, schema)
        if kept is not None:
            return kept
        return await self._akeep(prompt, await self.llm.ajson(prompt, schema), schema)

    def _key(self, prompt: str, schema: Mapping[str, Any] | None) -> str:
        asked = json.dumps([self.llm.name, prompt, schema], sort_keys=True, default=str)
        return hashlib.sha256(asked.encode()).hexdigest()

    def _kept(self, prompt: str, schema: Mapping[str, Any] | None = None) -> Any:
        """Return the answer that is kept, None where there is none."""
        key = self._key(prompt, schema)
        found = self._store.recall(_KIND, [key]).get(key)
        with self._lock:
            self.hits += found is not None
            self.misses += found is None
        return None if found is None else json.loads(found)

    def _keep(self, prompt: str, answer: Any, schema: Mapping[str, Any] | None = None) -> Any:
        self._store.remember(_KIND, {self._key(prompt, schema): json.dumps(answer).encode()})
        return answer

    async def _akept(self, prompt: str, schema: Mapping[str, Any] | None = None) -> Any:
        import asyncio

        return await asyncio.to_thread(self._kept, prompt, schema)

    async def _akeep(
        self, prompt: str, answer: Any, schema: Mapping[str, Any] | None = None
    ) -> Any:
        import asyncio

        return await asyncio.to_thread(self._keep, prompt, answer, schema)
