"""Embed passages, and cache their vectors in the store by model and text."""

from __future__ import annotations

import contextvars
import logging
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from itertools import compress
from typing import TYPE_CHECKING, Any, TypeVar

from ..concurrency import in_thread, track
from ..errors import VectorLengthError
from ..hashing import digest
from ..locking import DeferredWork, Lock, is_reading_graph
from ..pickled_calls import call_pickled, pickled
from ..storage.graph_store import GraphStore
from .embedder import Embedder, Vectors, check_vectors, count_of, split_batches

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

logger = logging.getLogger(__name__)

T = TypeVar("T")

Batch = tuple[Sequence[str], Vectors]
"""Digests of texts, and their vectors."""

KIND = "embedding "

DIMENSION = ""
"""The key of the dimension, next to the digests of the texts."""

_PAGE = 4_096  # vectors per read of the store

_LONG = 256  # texts for which a progress bar is drawn


class PassageVectors:
    """A cache of passage vectors. Missing vectors are computed, and each batch is stored.

    A vector of zeros marks a text without a usable vector.

    Args:
        store: The store that contains the vectors.
        embedders: The models of the graph, by key.
        progress: Whether to draw progress bars.
    """

    def __init__(
        self, store: GraphStore, embedders: Mapping[str, Embedder], progress: bool | None
    ) -> None:
        self._store = store
        self._progress = progress
        # By model name, since two keys may have one model.
        self._embedding = {embedder.name: Lock() for embedder in embedders.values()}
        self._dimensions: dict[str, int] = {}

    def vectors(
        self,
        embedder: Embedder,
        texts: Mapping[str, str],
        label: str,
        executor: Executor | None = None,
    ) -> Generator[tuple[str, Vectors], None, None]:
        """Yield the vectors of texts by digest, stored vectors first.

        Args:
            embedder: The model.
            texts: The texts by digest.
            label: The label of the progress bar.
            executor: Runs the model. None: this process.
        """
        missing = yield from self._stored(embedder, texts)
        if missing and is_reading_graph():
            raise DeferredWork(partial(self._embed_all, embedder, missing, label))
        if missing:
            with self._alone(embedder):
                missing = yield from self._stored(embedder, missing)
                show = self._progress if len(missing) >= _LONG else False
                with closing(self._embed(embedder, missing, executor)) as embedded:
                    yield from track(embedded, len(missing), label, " texts", show)

    def _embed_all(self, embedder: Embedder, texts: Mapping[str, str], label: str) -> None:
        for _ in self.vectors(embedder, texts, label):
            pass

    def _alone(self, embedder: Embedder) -> AbstractContextManager[Any]:
        """Keep other threads from embedding the same texts.

        A thread with an event loop never waits: the other thread may need the loop.
        """
        return nullcontext() if _has_event_loop() else self._embedding[embedder.name].held()

    def _stored(
        self, embedder: Embedder, texts: Mapping[str, str]
    ) -> Generator[tuple[str, Vectors], None, dict[str, str]]:
        """Yield stored vectors. Return the texts without a stored vector."""
        import numpy as np

        missing: dict[str, str] = {}
        for batch in split_batches(list(texts), _PAGE):
            stored = self._store.get_values(_kind(embedder), batch)
            for name in batch:
                if name in stored:
                    yield name, np.frombuffer(stored[name], "<f4")
                else:
                    missing[name] = texts[name]
        return missing

    def _embed(
        self, embedder: Embedder, texts: Mapping[str, str], executor: Executor | None
    ) -> Generator[tuple[str, Vectors], None, None]:
        """Embed texts, and yield the vectors of each batch after it is stored."""
        unusable: list[str] = []
        with closing(_embedded(embedder, texts, executor)) as batches:
            for names, vectors in batches:
                self._put(embedder, names, vectors)
                unusable += [texts[name] for name in _unusable(names, vectors)]
                yield from zip(names, vectors, strict=True)
        _warn(embedder, unusable)

    def put(self, embedder: Embedder, texts: Sequence[str], vectors: Sequence[Any]) -> None:
        """Store vectors that the model computed elsewhere.

        Raises:
            EmbeddingError: If the vectors are invalid or have a wrong dimension.
        """
        checked = check_vectors(vectors, texts, embedder.name)
        self._put(embedder, [*map(digest, texts)], checked)
        _warn(embedder, _unusable(texts, checked))

    def _put(self, embedder: Embedder, names: Sequence[str], vectors: Vectors) -> None:
        expected, dimension = self.dimension(embedder), vectors.shape[1]
        check_dimension(embedder, dimension if expected is None else expected, dimension)
        new = {n: v.astype("<f4").tobytes() for n, v in zip(names, vectors, strict=True)}
        self._store.put_values(_kind(embedder), {**new, DIMENSION: str(dimension).encode()})
        self._dimensions[embedder.name] = dimension

    def dimension(self, embedder: Embedder) -> int | None:
        """Return the dimension of the vectors that are stored under the model's name."""
        if embedder.name not in self._dimensions:
            stored = self._store.get_values(_kind(embedder), {DIMENSION})
            if not stored:
                return None
            self._dimensions[embedder.name] = int(stored[DIMENSION])
        return self._dimensions[embedder.name]


def _embedded(
    embedder: Embedder, texts: Mapping[str, str], executor: Executor | None
) -> Generator[Batch, None, None]:
    """Embed texts in batches, concurrently if the embedder has several workers.

    After an error no further batch is started. Finished batches are yielded, then the error is
    raised.
    """
    embed: Callable[[Sequence[str]], Vectors] = embedder.passages
    caller = _caller.get()
    if executor is not None:
        pass
    elif caller is not None and embedder.aembed is not None:
        embed = partial(caller.embed, embedder)
    elif (computed := embedder.computed(texts)) is not None:
        yield from computed
        return
    batches = embedder.batches(texts)
    if executor is None and (embedder.num_workers < 2 or len(batches) < 2):
        yield from ((batch, embed([texts[name] for name in batch])) for batch in batches)
        return
    with _submitting(embedder, embed, executor) as submit:
        yield from _results([(batch, submit([texts[n] for n in batch])) for batch in batches])


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


def _results(
    pending: Sequence[tuple[list[str], Future[Vectors]]],
) -> Generator[Batch, None, None]:
    """Yield the successful batches. An error cancels the remaining batches and is then raised."""
    error: BaseException | None = None
    try:
        for batch, future in pending:
            if future.cancelled():
                continue
            if (failure := future.exception()) is None:
                yield batch, future.result()
            else:
                error = error or failure
                for _, other in pending:
                    other.cancel()
    finally:
        for _, future in pending:
            future.cancel()
    if error is not None:
        raise error


@dataclass(slots=True)
class _AsyncCaller:
    """An async call that waits while a thread works. Async models embed in its event loop."""

    loop: AbstractEventLoop
    ended: bool = False

    def embed(self, embedder: Embedder, texts: Sequence[str]) -> Vectors:
        """Embed passages in the event loop, from the thread."""
        import asyncio

        if self.ended:
            raise CancelledError
        return asyncio.run_coroutine_threadsafe(embedder.apassages(texts), self.loop).result()


_caller: ContextVar[_AsyncCaller | None] = ContextVar("async caller that embeds", default=None)


async def embed_ahead(call: Callable[[], T]) -> T:
    """Call a function in a thread. Async models embed passages for it in this event loop."""
    import asyncio

    caller = _AsyncCaller(asyncio.get_running_loop())

    def work() -> T:
        _caller.set(caller)  # in the thread's context
        return call()

    try:
        return await in_thread(work)
    finally:
        caller.ended = True


def _has_event_loop() -> bool:
    """Return whether this thread runs an event loop."""
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _unusable(names: Sequence[str], vectors: Vectors) -> list[str]:
    """Return the names whose vector is zero."""
    import numpy as np

    return list(compress(names, np.asarray(~vectors.any(axis=1)).tolist()))


def _warn(embedder: Embedder, unusable: Sequence[str]) -> None:
    """Log a warning about texts without a usable vector."""
    if unusable:
        logger.warning(
            "the embedding model %r gave no usable vector (zeros or NaN) for %s, first %s; vector "
            "search leaves them out",
            embedder.name,
            count_of(unusable, "text"),
            f"{unusable[0]!r:.80}",
        )


def check_dimension(embedder: Embedder, expected: int, dimension: int) -> None:
    """Check the dimension of a vector against the vectors stored under the model's name.

    Raises:
        VectorLengthError: If they differ.
    """
    if dimension != expected:
        raise VectorLengthError(
            f"the embedding model {embedder.name!r} gives vectors of {dimension} numbers, and "
            f"vectors stored under its name have {expected}; if it is another model, give it "
            "another name: Embedder(embed, name=...)"
        )


def _kind(embedder: Embedder) -> str:
    return f"{KIND}{embedder.name}"
