"""Embed passages in batches: in this thread, in threads, in an executor or in an event loop."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import (
    CancelledError,
    Executor,
    Future,
    ThreadPoolExecutor,
    as_completed,
)
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import TypeVar

from ..concurrency import context_value, in_thread
from ..pickled_calls import call_pickled, pickled
from .embedder import Embedder, Vectors

T = TypeVar("T")

Batch = tuple[Sequence[str], Vectors]
"""Digests of texts, and their vectors."""

_async_embed: ContextVar[Callable[[Embedder, Sequence[str]], Vectors] | None] = ContextVar(
    "embeds passages in an event loop", default=None
)


def embedded(
    embedder: Embedder, texts: Mapping[str, str], executor: Executor | None = None
) -> Generator[Batch, None, None]:
    """Embed texts, and yield batches. An error cancels the waiting batches.

    Args:
        embedder: The model. With several ``num_workers`` it embeds batches concurrently.
        texts: The texts by digest.
        executor: Runs the model. None: this process.

    Raises:
        EmbeddingError: If the model fails or returns invalid vectors.
        TypeError: If the model cannot be pickled for the executor.
    """
    embed: Callable[[Sequence[str]], Vectors] = embedder.passages
    in_event_loop = _async_embed.get()
    if executor is None and embedder.aembed is not None and in_event_loop is not None:
        embed = partial(in_event_loop, embedder)
    elif executor is None and (computed := embedder.computed(texts)) is not None:
        yield from computed
        return
    batches = embedder.batches(texts)
    if executor is None and (embedder.num_workers < 2 or len(batches) < 2):
        yield from ((batch, embed([texts[name] for name in batch])) for batch in batches)
        return
    with _submitting(embedder, embed, executor) as submit:
        calls = {submit([texts[name] for name in batch]): batch for batch in batches}
        try:
            yield from _completed(calls)
        finally:
            for call in calls:
                call.cancel()


@contextmanager
def _submitting(
    embedder: Embedder, embed: Callable[[Sequence[str]], Vectors], executor: Executor | None
) -> Iterator[Callable[[Sequence[str]], Future[Vectors]]]:
    """Provide a function that embeds a batch in an executor, or in threads."""
    if executor is not None:
        call = pickled(embed, f"the embedding model {embedder.name!r}")
        yield partial(executor.submit, call_pickled, call)
        return
    pool = ThreadPoolExecutor(embedder.num_workers, f"embed-{embedder.name}")
    try:
        yield lambda texts: pool.submit(contextvars.copy_context().run, embed, texts)
    finally:
        pool.shutdown(cancel_futures=True)


def _completed(calls: Mapping[Future[Vectors], Sequence[str]]) -> Iterator[Batch]:
    """Yield the successful batches. An error cancels waiting batches and is raised at the end."""
    error: BaseException | None = None
    for call in as_completed(calls):
        if call.cancelled():
            continue
        if (failure := call.exception()) is None:
            yield calls[call], call.result()
        else:
            error = error or failure
            for other in calls:
                other.cancel()
    if error is not None:
        raise error


async def embed_ahead(call: Callable[[], T]) -> T:
    """Call a function in a thread. Async models embed passages for it in this event loop."""
    import asyncio

    loop = asyncio.get_running_loop()
    ended = threading.Event()

    def embed(embedder: Embedder, texts: Sequence[str]) -> Vectors:
        if ended.is_set():
            raise CancelledError
        return asyncio.run_coroutine_threadsafe(embedder.apassages(texts), loop).result()

    try:
        with context_value(_async_embed, embed):
            return await in_thread(call)
    finally:
        ended.set()
