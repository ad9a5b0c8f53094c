"""Cache the vectors of texts, by model and text."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Generator, Iterable, Mapping, Sequence, Set
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..concurrency import Workers, ended_by_interruption
from ..errors import nearest_names
from ..hashing import digest
from ..locking import is_reading_graph
from ..store import NodeStore
from .embedder import Embedder, Vectors, split_batches
from .passage_vectors import DIMENSION, KIND, PassageVectors, check_dimension

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Vector = npt.NDArray[np.float32]


class EmbeddingCache:
    """Embed every passage once per model, and cache the last queries.

    Every batch is stored at once: an interruption costs one batch.
    """

    def __init__(
        self, store: NodeStore, embedders: Mapping[str, Embedder], progress: bool | None
    ) -> None:
        self._store = store
        self.embedders = dict(embedders)
        self._passages = PassageVectors(store, self.embedders, progress)
        self._queries = QueryVectorCache()

    def embedder(self, key: str) -> Embedder:
        """Return the model of a key.

        Raises:
            LookupError: If there is none.
        """
        if key not in self.embedders:
            names = nearest_names(str(key), self.embedders)
            raise LookupError(
                f"the graph has no embedding {key!r}; it has {names}: give it one with "
                "NodeGraph(..., embed=model) or embed={'key': model}"
            )
        return self.embedders[key]

    def key(self, key: str | None) -> str:
        """Return the key, or the only one there is.

        Raises:
            LookupError: If there is no such key, or none was given and there are several or none.
        """
        if key is None and len(self.embedders) > 1:
            raise LookupError(f"say which embedding: {nearest_names('', self.embedders)}")
        key = next(iter(self.embedders), "default") if key is None else key
        self.embedder(key)
        return key

    def stored(self) -> list[str]:
        """Return the kinds of stored values that are vectors, one for each model."""
        return [kind for kind in self._store.kinds() if kind.startswith(KIND)]

    def delete_unused(self, used: Set[str]) -> None:
        """Drop the vectors of texts that no node has, of all models.

        Args:
            used: The digests of the texts that some node has.
        """
        for kind in self.stored():
            unused = self._store.get_values(kind).keys() - used - {DIMENSION}
            self._store.delete_values(kind, unused)

    def vectors(self, texts: Sequence[str], key: str, what: str = "texts") -> Vectors:
        """Return the vectors of passages, (texts, dimension) float32. Embed the missing ones.

        The array can't be written to.

        Raises:
            LookupError: If there is no model of that key.
            EmbeddingError: If the model fails, or makes no usable vectors.
        """
        import numpy as np

        embedder = self.embedder(key)
        positions: dict[str, list[int]] = {}
        for position, text in enumerate(texts):
            positions.setdefault(digest(text), []).append(position)
        by_digest = {name: texts[at[0]] for name, at in positions.items()}
        table: Vectors | None = None
        with closing(self._passages.vectors(embedder, by_digest, f"embedding {what}")) as vectors:
            for name, vector in vectors:
                if table is None:
                    table = np.zeros((len(texts), len(vector)), np.float32)
                check_dimension(embedder, table.shape[1], len(vector))
                table[positions[name]] = vector
        if table is None:
            return np.zeros((0, self._passages.dimension(embedder) or 0), np.float32)
        table.flags.writeable = False
        return table

    def embed(self, texts: Sequence[str], key: str, what: str, workers: Workers | None) -> None:
        """Embed the passages that have no vector yet.

        Args:
            texts: The passages.
            key: The embedding.
            what: What they are, shown beside a progress bar.
            workers: The processes that embed. None for this one, or threads of it.

        Raises:
            LookupError: If there is no model of that key.
            EmbeddingError: If the model fails, or makes no usable vectors.
            TypeError: If the model can't be sent to another process.
        """
        by_digest = {digest(text): text for text in texts}
        vectors = self._passages.vectors(
            self.embedder(key), by_digest, f"embedding {what}", workers
        )
        with closing(vectors), ended_by_interruption(workers):
            for _ in vectors:
                pass

    def put(self, texts: Sequence[str], vectors: Sequence[Any], key: str | None = None) -> None:
        """Take over vectors that the model of a key made of passages elsewhere, (texts, dimension).

        Raises:
            LookupError: If there is no model of that key.
            EmbeddingError: If they are no usable vectors, or of another length than stored ones.
        """
        if texts:
            self._passages.put(self.embedder(self.key(key)), texts, vectors)

    def query_vectors(self, queries: Sequence[str], key: str) -> Vectors:
        """Return the vectors of queries, (queries, dimension) float32.

        A query that another thread is embedding is waited for.

        Raises:
            LookupError: If there is no model of that key.
            EmbeddingError: If the model fails, or makes no usable vectors.
        """
        embedder = self.embedder(key)
        if (existing := self._queries.known(key, queries)) is not None:
            return self._in_order(queries, existing, embedder)
        with closing(self._query_steps(queries, key)) as steps:
            step = next(steps)
            while isinstance(step, list | Future):
                if isinstance(step, Future):
                    step = steps.send(step.result())
                else:
                    new = self._check_queries(embedder, step, embedder.queries(step))
                    step = steps.send(new)
        return step

    async def aquery_vectors(self, queries: Sequence[str], key: str) -> Vectors:
        """Async version of ``query_vectors``."""
        import asyncio

        embedder = self.embedder(key)
        if embedder.aembed_queries is None or not queries:
            existing = self._queries.known(key, queries)
            if existing is None or not queries:
                return await asyncio.to_thread(self.query_vectors, queries, key)
            return self._in_order(queries, existing, embedder)
        with closing(self._query_steps(queries, key, asyncio.get_running_loop())) as steps:
            step = next(steps)
            while isinstance(step, list | Future):
                if isinstance(step, Future):
                    step = steps.send(await asyncio.wrap_future(step))
                else:  # checked in a thread, as that may read the store
                    args = (embedder, step, await embedder.aqueries(step))
                    step = steps.send(await asyncio.to_thread(self._check_queries, *args))
        return step

    def _query_steps(
        self, queries: Sequence[str], key: str, loop: object = None
    ) -> Generator[list[str] | Future[Vector | None] | Vectors, Any, None]:
        """Yield queries to embed, and vectors of others to wait for. In the end all vectors.

        Args:
            queries: The queries.
            key: The embedding.
            loop: The event loop of the caller. None for a thread.
        """
        embedder = self.embedder(key)
        claim = self._queries.claim(key, queries, loop)
        # The other thread may be waiting for the graph that this one has locked.
        pending = {} if loop is None and is_reading_graph() else claim.pending
        vectors = claim.vectors
        try:
            for batch in split_batches(claim.to_embed, embedder.batch_size):
                vectors |= (new := (yield batch))
                self._queries.put(key, new, loop)
        finally:
            self._queries.release(key, claim.to_embed, loop)
        for query, future in pending.items():
            if (vector := (yield future)) is not None:
                vectors[query] = vector
        # Other callers failed at these: every caller embeds them itself.
        missing = list(dict.fromkeys(query for query in queries if query not in vectors))
        for batch in split_batches(missing, embedder.batch_size):
            vectors |= (new := (yield batch))
            self._queries.put(key, new, loop)
        yield self._in_order(queries, vectors, embedder)

    def _check_queries(
        self, embedder: Embedder, queries: Sequence[str], vectors: Vectors
    ) -> dict[str, Vectors]:
        dimension = self._passages.dimension(embedder)
        if dimension is not None:
            check_dimension(embedder, dimension, vectors.shape[1])
        return {query: vector.copy() for query, vector in zip(queries, vectors, strict=True)}

    def _in_order(
        self, queries: Sequence[str], by_query: Mapping[str, Vectors], embedder: Embedder
    ) -> Vectors:
        import numpy as np

        if not queries:
            return np.zeros((0, self._passages.dimension(embedder) or 0), np.float32)
        vectors = [by_query[query] for query in queries]
        for vector in vectors:
            check_dimension(embedder, len(vectors[0]), len(vector))
        return np.array(vectors)


MAX_QUERIES = 512
"""How many query vectors are cached."""


@dataclass(slots=True)
class Claim:
    """Hold the cached vectors of queries, and who embeds the others.

    Attributes:
        vectors: The cached vectors.
        to_embed: The queries that the caller embeds. It calls ``put``, and ``release`` in the end.
        pending: The queries that another caller is embedding, with its future vector, or None
            where that fails.
    """

    vectors: dict[str, Vector] = field(default_factory=dict)
    to_embed: list[str] = field(default_factory=list)
    pending: dict[str, Future[Vector | None]] = field(default_factory=dict)


class QueryVectorCache:
    """Cache vectors by embedding and query, and the queries that are being embedded.

    Threads wait for threads. Tasks wait for threads and for tasks of their own event loop: a
    thread that waited for a task could be the one that the task's loop runs in.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._vectors: OrderedDict[tuple[str, str], Vector] = OrderedDict()
        self._in_progress: dict[tuple[object, str, str], Future[Vector | None]] = {}

    def claim(self, key: str, queries: Iterable[str], loop: object = None) -> Claim:
        """Return the cached vectors of queries, and claim those that no one is embedding.

        Args:
            key: The embedding.
            queries: The queries.
            loop: The event loop that is going to wait for others. None for a thread.
        """
        claim, in_progress = Claim(), self._in_progress.get
        with self._lock:
            for query in dict.fromkeys(queries):
                if (key, query) in self._vectors:
                    self._vectors.move_to_end((key, query))
                    claim.vectors[query] = self._vectors[key, query]
                elif other := in_progress((loop, key, query)) or in_progress((None, key, query)):
                    claim.pending[query] = other
                else:
                    claim.to_embed.append(query)
                    future: Future[Vector | None] = Future()
                    future.set_running_or_notify_cancel()  # who stops waiting cancels no other
                    self._in_progress[loop, key, query] = future
        return claim

    def known(self, key: str, queries: Iterable[str]) -> dict[str, Vector] | None:
        """Return the cached vectors of queries. None where one of them has none."""
        matches: dict[str, Vector] = {}
        with self._lock:
            for query in queries:
                vector = self._vectors.get((key, query))
                if vector is None:
                    return None
                self._vectors.move_to_end((key, query))
                matches[query] = vector
        return matches

    def put(self, key: str, new: Mapping[str, Vector], loop: object = None) -> None:
        """Cache vectors, and pass them to those who wait."""
        with self._lock:
            self._vectors.update(((key, query), vector) for query, vector in new.items())
            while len(self._vectors) > MAX_QUERIES:
                self._vectors.popitem(last=False)
        self._resolve(key, new, loop)

    def release(self, key: str, queries: Sequence[str], loop: object = None) -> None:
        """Give up claimed queries without a vector: those who wait embed them themselves."""
        self._resolve(key, dict.fromkeys(queries), loop)

    def _resolve(self, key: str, vectors: Mapping[str, Vector | None], loop: object) -> None:
        """Pass vectors, or None, to those who wait for them."""
        with self._lock:
            futures = {query: self._in_progress.pop((loop, key, query), None) for query in vectors}
        for query, future in futures.items():
            if future is not None:
                future.set_result(vectors[query])
