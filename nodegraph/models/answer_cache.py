"""Cache models' answers by model and prompt, so that no prompt is paid for twice."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any

from ..concurrency import SingleFlight, context_value
from ..locking import awaited, mutex
from ..memory_store import as_store
from ..store import NodeStore
from .llm import LLM, as_llm
from .model_objects import in_thread

_KIND = "answers"


class AnswerCache:
    """Keep answers in a store. Who asks what another one is asking waits for its answer.

    See ``SingleFlight``.

    Args:
        store: Where the answers are: a store, or the path of a file. None for memory.
    """

    def __init__(self, store: str | Path | NodeStore | None = None) -> None:
        self._store = as_store(store)
        self._closes_store = not isinstance(store, NodeStore)
        self._flight: SingleFlight[str, Any] = SingleFlight()

    def get(self, key: str) -> Any:
        """Return a stored answer, or None."""
        stored = self._store.get_values(_KIND, [key]).get(key)
        return None if stored is None else json.loads(stored)

    def put(self, key: str, answer: Any) -> None:
        """Store an answer, of any type that JSON has."""
        self._store.put_values(_KIND, {key: json.dumps(answer).encode()})

    def clear(self) -> None:
        """Delete all answers."""
        self._store.delete_values(_KIND)

    def close(self) -> None:
        """Close the file, if there is one of its own. The next use opens it again."""
        if self._closes_store:
            self._store.close()

    def ask(self, key: str, call: Callable[[], Any]) -> Any:
        """Return the answer that is stored, or that another thread gets now, or that of a call.

        What a call raises is raised. Those who waited for it call themselves.
        """
        while other := self._flight.claim([key])[1].get(key):
            if (answer := awaited(other, "another thread that asks a model")) is not None:
                return answer
        try:
            if (answer := self.get(key)) is None:
                answer = call()
                self._flight.resolve({key: answer})
                self.put(key, answer)
            self._flight.resolve({key: answer})
        finally:
            self._flight.release([key])
        return answer

    async def aask(self, key: str, call: Callable[[], Awaitable[Any]]) -> Any:
        """Async version of ``ask``."""
        import asyncio

        loop = asyncio.get_running_loop()
        while other := self._flight.claim([key], loop)[1].get(key):
            if (answer := await asyncio.wrap_future(other)) is not None:
                return answer
        try:
            if (answer := await in_thread(self.get, key)) is None:
                answer = await call()
                self._flight.resolve({key: answer}, loop)
                await in_thread(self.put, key, answer)
            self._flight.resolve({key: answer}, loop)
        finally:
            self._flight.release([key], loop)
        return answer


def answer_key(model: str, prompt: str, schema: Mapping[str, Any] | None = None) -> str:
    """Return the key of the answer of a model to a prompt."""
    request = json.dumps([model, prompt, schema], sort_keys=True, default=str)
    return hashlib.sha256(request.encode("utf-8", "surrogatepass")).hexdigest()


_current: ContextVar[AnswerCache | None] = ContextVar("answers", default=None)


def keep_answers(cache: AnswerCache) -> AbstractContextManager[AnswerCache | None]:
    """Let transforms that ask models in the block keep their answers in a graph's cache."""
    return context_value(_current, cache)


def cached_answer(model: str, prompt: str, call: Callable[[], str]) -> str:
    """Return the graph's answer to a prompt, in a transform. Elsewhere that of the call."""
    cache = _current.get()
    if cache is None:
        return call()
    answer: str = cache.ask(answer_key(model, prompt), call)
    return answer


class CachedLLM:
    """Ask a language model each prompt once, and answer from memory or a file after that.

    Threads, and tasks of an event loop, that have the same prompt at the same time ask once.

    It is a model itself, and can be used like one. Answers are stored by the model's name,
    the prompt and the schema: where the name of a model does not show its settings, give it one
    that does (``LLM(model, "name")``). Failures and streams that were not read to their end are not
    stored.

    Args:
        llm: The model, in any form that ``LLM`` takes.
        store: Where answers are cached: the path of a file, for later runs and other processes. A
            store. None for memory, as long as this object lives.

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
        self._answers = AnswerCache(store)
        self._lock = mutex()
        self.hits = 0
        self.misses = 0
        if self.llm.structured:  # else the caller should know that it can't be held to a schema
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
        """Async version of ``complete``."""
        answer: str = await self._aanswer(self.llm.acomplete, prompt)
        return answer

    def stream(self, prompt: str) -> Iterator[str]:
        """Yield the answer as it comes. A stored one as a whole."""
        cached = self._get(prompt)
        chunks = []
        for chunk in self.llm.stream(prompt) if cached is None else [cached]:
            chunks.append(chunk)
            yield chunk
        if cached is None:
            self._answers.put(answer_key(self.llm.name, prompt), "".join(chunks))

    async def astream(self, prompt: str) -> AsyncIterator[str]:
        """Async version of ``stream``."""
        cached = await in_thread(self._get, prompt)
        if cached is not None:
            yield cached
            return
        chunks = []
        async for chunk in self.llm.astream(prompt):
            chunks.append(chunk)
            yield chunk
        await in_thread(self._answers.put, answer_key(self.llm.name, prompt), "".join(chunks))

    def clear(self) -> None:
        """Delete all stored answers, of this model and others."""
        self._answers.clear()

    def close(self) -> None:
        """Close the file, if there is one of its own. The next use opens it again."""
        self._answers.close()

    def _answer(self, ask: Callable[..., Any], *request: Any) -> Any:
        """Return the stored answer to a request, or ask for one and store it."""
        asks = []

        def call() -> Any:
            asks.append(request)
            return ask(*request)

        try:
            return self._answers.ask(answer_key(self.llm.name, *request), call)
        finally:
            self._count(hit=not asks)

    async def _aanswer(self, ask: Callable[..., Awaitable[Any]], *request: Any) -> Any:
        asks = []

        async def call() -> Any:
            asks.append(request)
            return await ask(*request)

        try:
            return await self._answers.aask(answer_key(self.llm.name, *request), call)
        finally:
            self._count(hit=not asks)

    def _get(self, prompt: str) -> Any:
        """Return the stored answer to a prompt, or None."""
        stored = self._answers.get(answer_key(self.llm.name, prompt))
        self._count(hit=stored is not None)
        return stored

    def _count(self, *, hit: bool) -> None:
        with self._lock:
            self.hits += hit
            self.misses += not hit
