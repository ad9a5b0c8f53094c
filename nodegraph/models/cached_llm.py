"""Cache a model's answers, so that the same prompt is not paid for twice."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from ..memory_store import as_store
from ..store import NodeStore
from .embedder_adapters import in_thread
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
            self.complete_json = partial(self._answer, self.llm.json)
            self.acomplete_json = partial(self._aanswer, self.llm.ajson)

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
        answer: str = self._answer(self.llm.complete, prompt)
        return answer

    async def acomplete(self, prompt: str) -> str:
        """Return the same without blocking the event loop."""
        answer: str = await self._aanswer(self.llm.acomplete, prompt)
        return answer

    def stream(self, prompt: str) -> Iterator[str]:
        """Yield the answer as it comes; a stored one as a whole."""
        cached = self._get(prompt)
        chunks = []
        for chunk in self.llm.stream(prompt) if cached is None else [cached]:
            chunks.append(chunk)
            yield chunk
        if cached is None:
            self._put("".join(chunks), prompt)

    async def astream(self, prompt: str) -> AsyncIterator[str]:
        """Yield the same without blocking the event loop."""
        cached = await in_thread(self._get, prompt)
        if cached is not None:
            yield cached
            return
        chunks = []
        async for chunk in self.llm.astream(prompt):
            chunks.append(chunk)
            yield chunk
        await in_thread(self._put, "".join(chunks), prompt)

    def clear(self) -> None:
        """Delete all stored answers, of this model and others."""
        self._store.delete_values(_KIND)

    def close(self) -> None:
        """Close the file, if there is one of its own; the next use opens it again."""
        if self._is_own:
            self._store.close()

    def _answer(self, ask: Callable[..., Any], *request: Any) -> Any:
        """Return the stored answer to a request, or ask for one and store it."""
        cached = self._get(*request)
        return self._put(ask(*request), *request) if cached is None else cached

    async def _aanswer(self, ask: Callable[..., Awaitable[Any]], *request: Any) -> Any:
        cached = await in_thread(self._get, *request)
        if cached is not None:
            return cached
        return await in_thread(self._put, await ask(*request), *request)

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

    def _put(self, answer: Any, prompt: str, schema: Mapping[str, Any] | None = None) -> Any:
        self._store.put_values(_KIND, {self._key(prompt, schema): json.dumps(answer).encode()})
        return answer
