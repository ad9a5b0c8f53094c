"""Cache the answers of language models."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from ..concurrency import fork_safe_lock, in_thread
from ..storage.columns import reading_rows
from ..storage.graph_store import GraphStore, as_store
from .llm import LLM, as_llm
from .usage import CACHED, ModelText

_KIND = "answers"


class AnswerCache:
    """A cache of language models' answers. Threads that need the same answer share one model call.

    Args:
        store: A store, or the path of a file. If None, answers are cached in memory.

    Attributes:
        hits: The number of prompts that were answered from the cache.
        misses: The number of prompts that were sent to the model.
    """

    def __init__(self, store: str | Path | GraphStore | None = None) -> None:
        self.store = as_store(store)
        self.hits = 0
        self.misses = 0
        self._closes_store = not isinstance(store, GraphStore)
        self._lock = fork_safe_lock()
        self._asking: WeakValueDictionary[str, Any] = WeakValueDictionary()

    def ask(self, key: str, call: Callable[[], Any]) -> Any:
        """Return the cached answer for a key.

        If it is missing, call the model and cache its answer.

        Threads that request the same key at the same time share one call. The answer must be a
        value that can be stored as JSON.
        """
        with self._lock:
            asking = self._asking.setdefault(key, fork_safe_lock())
        with asking:
            stored = self._get(key)
            if stored is not None:
                return json.loads(stored)
            answer = call()
            self._put(key, answer)
            return answer

    async def aask(self, key: str, call: Callable[[], Awaitable[Any]]) -> Any:
        """Async version of ``ask``.

        Tasks that request the same key at the same time do not share calls.
        """
        stored = await in_thread(self._get, key)
        if stored is not None:
            return json.loads(stored)
        answer = await call()
        await in_thread(self._put, key, answer)
        return answer

    def clear(self) -> None:
        """Delete all cached answers of all models."""
        self.store.values.delete(_KIND)

    def close(self) -> None:
        """Close the file of the cache. The file is reopened when the cache is used again.

        A store that was passed to the constructor is not closed.
        """
        if self._closes_store:
            self.store.close()

    def _get(self, key: str) -> bytes | None:
        """Return a cached answer as JSON, and update ``hits`` or ``misses``.

        The result is None if no answer is cached. A cached answer of None is returned as
        ``b"null"``.
        """
        stored = self.store.values.get(_KIND, [key]).get(key)
        with self._lock:
            self.hits += stored is not None
            self.misses += stored is None
        with reading_rows(self.store.place):
            return stored

    def _put(self, key: str, answer: Any) -> None:
        self.store.values.put(_KIND, {key: json.dumps(answer).encode()}, derived=True)


def answer_key(model: str, prompt: str, schema: Mapping[str, Any] | None = None) -> str:
    """Compute the cache key for the answer of a model to a prompt."""
    request = json.dumps([model, prompt, schema], sort_keys=True, default=str)
    return hashlib.sha256(request.encode("utf-8", "surrogatepass")).hexdigest()


def _cached_text(answer: Any) -> ModelText:
    """Return a cached answer together with its token usage, which is zero."""
    if isinstance(answer, ModelText):
        return answer
    return ModelText(str(answer), CACHED)


class CachedLLM(AnswerCache):
    """A language model that caches its answers in memory or in a file.

    It can be used like any other model. Answers are cached under the model's name, the prompt and
    the JSON schema. If the model's name does not reflect its settings, set a name that does:
    ``LLM(model, "name")``. If several threads send the same prompt at the same time, the model is
    called once. Failed calls are not cached. Answers are streamed in a single part.

    Args:
        llm: The language model, in any form that ``LLM`` accepts.
        store: The path of a file, or a store. If None, answers are cached in memory.

    Raises:
        TypeError: If the model is not supported.
        ValueError: If the model is a function without a name and ``store`` is a file.
        StoreError: If the file cannot be opened.

    Example:
        >>> prompts = []
        >>> llm = CachedLLM(LLM(lambda prompt: prompts.append(prompt) or "A drink.", "scripted"))
        >>> llm.complete("What is tea?"), llm.complete("What is tea?"), len(prompts)
        ('A drink.', 'A drink.', 1)
    """

    def __init__(self, llm: object, store: str | Path | GraphStore | None = None) -> None:
        super().__init__(store)
        self.llm: LLM = as_llm(llm, stored="CachedLLM({model}, ...)" if self.store.place else "")
        self.name = self.llm.name  # The nodes of a group do not depend on the cache.
        if self.llm.structured:  # These methods exist only if the model supports schemas.
            self.complete_json = partial(self._answer, self.llm.complete)
            self.acomplete_json = partial(self._aanswer, self.llm.acomplete)

    def __repr__(self) -> str:
        return f"CachedLLM({self.name!r}, {self.hits} hits, {self.misses} misses)"

    def complete(self, prompt: str) -> str:
        """Return the answer to a prompt, from the cache if possible.

        Raises:
            ModelError: If the model fails.
        """
        return self._answer(self.llm.complete, prompt)

    async def acomplete(self, prompt: str) -> str:
        """Async version of ``complete``."""
        return await self._aanswer(self.llm.acomplete, prompt)

    def _answer(self, call: Callable[..., Any], *request: Any) -> ModelText:
        answer = self.ask(answer_key(self.name, *request), partial(call, *request))
        return _cached_text(answer)

    async def _aanswer(self, call: Callable[..., Awaitable[Any]], *request: Any) -> ModelText:
        answer = await self.aask(answer_key(self.name, *request), partial(call, *request))
        return _cached_text(answer)
