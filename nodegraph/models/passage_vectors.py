"""Embed passages, and keep their vectors by model and text."""

from __future__ import annotations

import contextvars
import logging
import re
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import closing
from contextvars import ContextVar
from functools import partial
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from ..concurrency import run_in_tasks, threads, track
from ..errors import VectorLengthError
from ..hashing import digest
from ..locking import Lock, is_reading_graph
from ..store import NodeStore
from .embedder import Embedder, Vectors, check_vectors, split_batches
from .model_objects import in_thread

logger = logging.getLogger(__name__)

T = TypeVar("T")

KIND = "embedding "

DIMENSION = ""
"""The key, beside those of the texts, of how long the vectors are."""

_AT_ONCE = 4_096  # vectors that are read from the store at once

_FINGERPRINT = re.compile(r" [0-9a-f]{16}\Z")

_COMPARED = 3  # texts

_LONG = 256  # texts whose embedding is worth showing

_BEHIND = 2  # batches that are stored, or wait for it, while the next is computed


class PassageVectors:
    """Return the vectors of passages. Embed what has none, and store every batch at once.

    Args:
        store: Where vectors are kept.
        embedders: The models of the graph, by key.
        progress: Whether long work shows how far it is.
    """

    def __init__(
        self, store: NodeStore, embedders: Mapping[str, Embedder], progress: bool | None
    ) -> None:
        self._store = store
        self._embedders = embedders
        self._progress = progress
        # By model, not by key: two keys may have the same one, and then share its vectors.
        self._embedding = {
            embedder.name: Lock(f"another thread that embeds with {embedder.name!r}")
            for embedder in embedders.values()
        }
        # So that all vectors are as long as the first ones.
        self._keeping = Lock("another thread that stores vectors")
        self._async_locks: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()
        self._dimensions: dict[str, int] = {}
        self._earlier: dict[str, list[str]] = {}  # by model: kinds that were not compared yet

    def vectors(
        self,
        embedder: Embedder,
        texts: Mapping[str, str],
        what: str,
    ) -> Generator[tuple[str, Vectors], None, None]:
        """Yield the vectors of texts by digest, the stored ones first.

        Args:
            embedder: The model.
            texts: The texts by digest.
            what: What is embedded, shown beside a progress bar.
        """
        if missing := (yield from self._stored(embedder, texts)):
            with self._embedding[embedder.name].held():  # another thread may be embedding the same
                missing = yield from self._stored(embedder, missing)
                show = self._progress if len(missing) >= _LONG else False
                with closing(self._embed(embedder, missing)) as embedded:
                    yield from track(embedded, len(missing), what, " texts", show)

    def _stored(
        self, embedder: Embedder, texts: Mapping[str, str]
    ) -> Generator[tuple[str, Vectors], None, dict[str, str]]:
        """Yield stored vectors, some thousands at a time. Return the texts without one."""
        import numpy as np

        missing: dict[str, str] = {}
        for batch in split_batches(list(texts), _AT_ONCE):
            stored = self._store.get_values(_kind(embedder), batch)
            for name in batch:
                if name in stored:
                    yield name, np.frombuffer(stored[name], "<f4")
                else:
                    missing[name] = texts[name]
        return missing

    def _embed(
        self, embedder: Embedder, texts: Mapping[str, str]
    ) -> Generator[tuple[str, Vectors], None, None]:
        """Embed texts batch by batch. Yield their vectors once they are in the store."""
        if not texts:
            return
        if _embed_ahead_active.get() and self.embeds_async(embedder):
            raise PassagesToEmbed(self, embedder, texts)
        texts = yield from self._same_model(embedder, texts)
        computed = embedder.computed(texts)
        batches = embedder.batches(texts) if computed is None else []
        # A thread that holds a graph's lock waits for no other one, which might wait for it.
        beside = len(batches) != 1 and not is_reading_graph()
        failure: Exception | None = None
        with closing(_VectorWriter(partial(self._keep, embedder), in_thread=beside)) as writer:

            def embed_and_store(batch: list[str]) -> Future[Mapping[str, Vectors]]:
                vectors = embedder.passages([texts[name] for name in batch])
                return writer.put(dict(zip(batch, vectors, strict=True)))

            outcomes: Generator[Future[Mapping[str, Vectors]] | Exception, None, None]
            if computed is not None:
                outcomes = (writer.put(dict(zip(*batch, strict=True))) for batch in computed)
            else:
                name = f"embed-{embedder.name}"
                outcomes = _outcomes(embed_and_store, batches, embedder.num_workers, name)
            with closing(outcomes):  # left early, it waits for what other threads have begun
                for stored in _some_behind(outcomes):
                    if isinstance(stored, Exception):  # what was embedded besides is kept
                        failure = failure or stored
                    elif failure is None:
                        yield from stored.result().items()
        if failure is not None:
            raise failure

    def embeds_async(self, embedder: Embedder) -> bool:
        """Return whether passages are embedded by the model's async form in async code.

        Not as long as vectors under an earlier name of the model may be taken over.
        """
        if embedder.aembed is None:
            return False
        if embedder.name not in self._earlier:
            self._earlier[embedder.name] = self._earlier_kinds(embedder)
        return not self._earlier[embedder.name]

    async def aembed(self, embedder: Embedder, texts: Mapping[str, str]) -> None:
        """Embed texts by the model's async form, and store every batch at once."""
        import asyncio

        locks = self._async_locks.setdefault(asyncio.get_running_loop(), {})
        async with locks.setdefault(embedder.name, asyncio.Lock()):
            # Another task may have embedded the same meanwhile.
            missing = await in_thread(lambda: _end(self._stored(embedder, texts)))
            batches, at_once = embedder.batches(missing), max(1, embedder.num_workers)
            writer = _VectorWriter(partial(self._keep, embedder), in_thread=True)
            storing: deque[asyncio.Future[Any]] = deque()

            async def embed_and_store(batch: list[str]) -> None:
                vectors = await embedder.apassages([missing[name] for name in batch])
                of_batch = dict(zip(batch, vectors, strict=True))
                storing.append(asyncio.wrap_future(writer.put(of_batch)))
                if len(storing) > _BEHIND * at_once:
                    await storing.popleft()

            try:
                await run_in_tasks([partial(embed_and_store, batch) for batch in batches], at_once)
                await asyncio.gather(*storing)
            finally:
                await in_thread(writer.close)

    def put(self, embedder: Embedder, texts: Sequence[str], vectors: Sequence[Any]) -> None:
        """Store vectors of texts that the model made elsewhere.

        Raises:
            EmbeddingError: If they are no usable vectors, or of another length than stored ones.
        """
        checked = check_vectors(vectors, texts, embedder.name)
        self._keep(embedder, dict(zip(map(digest, texts), checked, strict=True)))

    def _keep(self, embedder: Embedder, vectors: Mapping[str, Vectors]) -> None:
        """Store vectors by digest."""
        with self._keeping.held():
            dimension = self.dimension(embedder)
            for vector in vectors.values():
                dimension = len(vector) if dimension is None else dimension
                check_dimension(embedder, dimension, len(vector))
            new = {name: vector.astype("<f4").tobytes() for name, vector in vectors.items()}
            # Together, so that there is no dimension without a vector, nor the other way round.
            self._store.put_values(_kind(embedder), {**new, DIMENSION: str(dimension).encode()})
            if dimension is not None:
                self._dimensions[embedder.name] = dimension

    def _same_model(
        self, embedder: Embedder, texts: Mapping[str, str]
    ) -> Generator[tuple[str, Vectors], None, Mapping[str, str]]:
        """Take over the vectors of the same model under another name. Yield those of texts.

        A name that was made of a function and what it uses changes with these, also where the
        vectors do not: with a memo that it fills, or a newer Python. A few texts that have vectors
        under the earlier name are embedded again, and compared.

        Returns:
            The texts that have no vector yet.
        """
        import numpy as np

        if embedder.name not in self._earlier:
            self._earlier[embedder.name] = self._earlier_kinds(embedder)
        remaining = dict(texts)
        for kind in list(self._earlier[embedder.name]):
            stored = self._store.get_values(kind, list(remaining)[:_AT_ONCE])
            sample = sorted(stored, key=lambda name: -len(remaining[name]))[:_COMPARED]
            if not sample:
                continue
            self._earlier[embedder.name].remove(kind)
            vectors = embedder.passages([remaining[name] for name in sample])
            self._keep(embedder, dict(zip(sample, vectors, strict=True)))
            retained = [np.frombuffer(stored[name], "<f4") for name in sample]
            same = all(
                len(old) == len(new) and np.allclose(old, new, 1e-3, 1e-5)
                for old, new in zip(retained, vectors, strict=True)
            )
            if same:
                logger.warning(
                    "the embedding model %r gives the vectors that are kept under the name %r, "
                    "and takes them over; so that its name stays, give it one: "
                    "Embedder(embed, 'name')",
                    embedder.name,
                    kind.removeprefix(KIND),
                )
                values = self._store.get_values(kind)
                for names in split_batches(list(values), _AT_ONCE):
                    self._store.put_values(_kind(embedder), {n: values[n] for n in names})
                self._store.delete_values(kind)
            remaining = yield from self._stored(embedder, remaining)
        return remaining

    def _earlier_kinds(self, embedder: Embedder) -> list[str]:
        """Return where the vectors of models are whose names differ in the fingerprint alone."""
        fingerprinted = _FINGERPRINT.search(embedder.name)
        if fingerprinted is None:
            return []
        current = {*map(_kind, self._embedders.values())}
        same_model = re.compile(
            re.escape(_kind(embedder)[: -len(fingerprinted[0])]) + _FINGERPRINT.pattern
        )
        return [
            kind for kind in self._store.kinds() if same_model.match(kind) and kind not in current
        ]

    def dimension(self, embedder: Embedder) -> int | None:
        """Return the length of the vectors that are stored under the model's name."""
        if embedder.name not in self._dimensions:
            stored = self._store.get_values(_kind(embedder), {DIMENSION})
            if not stored:
                return None
            self._dimensions[embedder.name] = int(stored[DIMENSION])
        return self._dimensions[embedder.name]


_Batch = tuple[Mapping[str, Vectors], "Future[Mapping[str, Vectors]]"]
"""Vectors by digest, and what is done when they are stored."""


class _VectorWriter:
    """Store vectors while the next ones are computed, all that wait in one transaction.

    Args:
        keep: Stores vectors by digest.
        in_thread: Whether a thread stores them; else each batch is stored when it is put.
    """

    def __init__(self, keep: Callable[[Mapping[str, Vectors]], None], in_thread: bool) -> None:
        self._keep = keep
        self._waiting: deque[_Batch] = deque()
        self._pool = ThreadPoolExecutor(1, "store-vectors") if in_thread else None

    def close(self) -> None:
        """Wait until all is stored."""
        if self._pool is not None:
            self._pool.shutdown()

    def put(self, vectors: Mapping[str, Vectors]) -> Future[Mapping[str, Vectors]]:
        """Return a future of the same vectors, which is done when they are stored."""
        future: Future[Mapping[str, Vectors]] = Future()
        future.set_running_or_notify_cancel()  # who stops waiting cancels nothing
        if self._pool is None:  # an interrupt is raised here, and held by no future
            self._keep(vectors)
            future.set_result(vectors)
        else:
            self._waiting.append((vectors, future))
            self._pool.submit(self._store_waiting)
        return future

    def _store_waiting(self) -> None:
        if batches := [self._waiting.popleft() for _ in range(len(self._waiting))]:
            self._store(batches)

    def _store(self, batches: Sequence[_Batch]) -> None:
        """Store batches together. If that fails, each by itself."""
        try:
            self._keep({name: vector for batch, _ in batches for name, vector in batch.items()})
        except BaseException as error:
            if len(batches) == 1:
                batches[0][1].set_exception(error)
            else:
                for batch in batches:
                    self._store([batch])
        else:
            for vectors, future in batches:
                future.set_result(vectors)


def _some_behind(items: Iterable[T]) -> Iterator[T]:
    """Pass items on, each when two more have come."""
    waiting: deque[T] = deque()
    for item in items:
        waiting.append(item)
        if len(waiting) > _BEHIND:
            yield waiting.popleft()
    yield from waiting


_embed_ahead_active: ContextVar[bool] = ContextVar("passages are embedded ahead", default=False)


class PassagesToEmbed(Exception):
    """Say which passages an async caller has to embed before it can go on."""

    def __init__(
        self, vectors: PassageVectors, embedder: Embedder, texts: Mapping[str, str]
    ) -> None:
        super().__init__(f"{len(texts)} texts have no vectors of {embedder.name!r} yet")
        self.vectors = vectors
        self.embedder = embedder
        self.texts = texts


async def embed_ahead(call: Callable[[], T]) -> T:
    """Call a function in a thread. What it needs embedded is embedded by async models here.

    No thread waits for the event loop: the function ends where it finds passages without vectors,
    and is called again when they have some.

    Args:
        call: May be called several times.
    """

    def work() -> T:
        _embed_ahead_active.set(True)  # in the thread's own context
        return call()

    while True:
        try:
            return await in_thread(work)
        except PassagesToEmbed as need:
            await need.vectors.aembed(need.embedder, need.texts)


def _end(generator: Generator[Any, None, T]) -> T:
    """Run a generator to its end. Return what it returns."""
    while True:
        try:
            next(generator)
        except StopIteration as end:
            result: T = end.value
            return result


def check_dimension(embedder: Embedder, expected: int, dimension: int) -> None:
    """Check that a vector is as long as those under the model's name.

    Raises:
        VectorLengthError: If it is not.
    """
    if dimension != expected:
        raise VectorLengthError(
            f"the embedding model {embedder.name!r} gives vectors of {dimension} numbers, and "
            f"those kept under its name have {expected}; if it is another model, give it "
            "another name: Embedder(embed, name=...)"
        )


def _kind(embedder: Embedder) -> str:
    return f"{KIND}{embedder.name}"


def _outcomes(
    call: Callable[[list[str]], T],
    parts: Sequence[list[str]],
    num_workers: int,
    name: str,
) -> Generator[T | Exception, None, None]:
    """Yield what a function makes of each part, in order, or raises. Begin no more after that.

    With several workers it is called in threads. Not by a thread that holds a graph's lock, which
    they might wait for.
    """
    if num_workers < 2 or len(parts) < 2 or is_reading_graph():
        yield from map(call, parts)
        return
    waiting = iter(parts)
    pending: deque[Future[T]] = deque()
    with threads(min(num_workers, len(parts)), name) as pool:
        while True:
            while len(pending) < 2 * num_workers and (part := next(waiting, None)) is not None:
                pending.append(pool.submit(contextvars.copy_context().run, call, part))
            if not pending:
                return
            try:
                yield pending.popleft().result()
            except CancelledError:
                continue
            except Exception as error:
                waiting = iter(())
                for future in pending:
                    future.cancel()
                yield error
