"""Cache the vectors of passages and queries."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from itertools import compress
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from ..concurrency import (
    DeferredWork,
    ProgressBar,
    call_pickled,
    fork_safe_lock,
    in_thread,
    is_reading_graph,
    pickled,
    run_in_threads,
)
from ..errors import VectorLengthError, nearest_names
from ..hashing import digest
from ..storage.columns import portions, reading_rows
from ..storage.graph_store import GraphStore
from .embedder import Embedder, Vectors, check_vectors, count_of

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Vector = npt.NDArray[np.float32]

logger = logging.getLogger(__name__)

MAX_QUERIES = 512
"""The maximum number of query vectors in the cache."""

_PAGE = 4_096  # number of vectors that are read from the store at a time

# number of texts from which a progress bar is shown and the store's page cache is bypassed
_LONG = 256


class EmbeddingCache:
    """Computes embeddings with a graph's models, and caches vectors of passages and recent queries.

    Missing vectors of passages are computed, and stored after each batch. If a model returns an
    invalid vector for a passage, a vector of zeros is stored instead.

    Args:
        store: The store for the vectors.
        embedders: The embedding models, keyed by name.
        progress: Whether to display progress bars. If None, they are displayed only in a terminal.
    """

    def __init__(
        self, store: GraphStore, embedders: Mapping[str, Embedder], progress: bool | None
    ) -> None:
        self._store = store
        self.embedders = dict(embedders)
        self._progress = progress
        # These are keyed by model name, since two keys may refer to the same model.
        self._embedding = {embedder.name: fork_safe_lock() for embedder in embedders.values()}
        self._lock = threading.Lock()
        self._query_vectors: OrderedDict[tuple[str, str], Vector] = OrderedDict()
        # dimension of the query vectors that were already checked, by key
        self._dimensions: dict[str, int] = {}
        self._asking: WeakValueDictionary[tuple[str, ...], Any] = WeakValueDictionary()

    def embedder(self, key: str) -> Embedder:
        """Return the embedding model with the given key.

        Raises:
            LookupError: If the key is unknown.
        """
        if key not in self.embedders:
            names = nearest_names(str(key), self.embedders)
            raise LookupError(
                f"the graph has no embedding {key!r}; it has {names}: give it one with "
                "NodeGraph(..., embed=model) or embed={'key': model}"
            )
        return self.embedders[key]

    def key(self, key: str | None) -> str:
        """Check a key and return it. If it is None and there is only one model, return its key.

        Raises:
            LookupError: If the key is unknown, or if it is None and the graph does not have exactly
                one model.
        """
        if key is None and len(self.embedders) > 1:
            raise LookupError(
                f"several embeddings exist; name one: {nearest_names('', self.embedders)}"
            )
        key = next(iter(self.embedders), "default") if key is None else key
        self.embedder(key)
        return key

    def delete_unused(self, used: Set[str]) -> None:
        """Delete the vectors of texts that no longer exist.

        Args:
            used: The hashes of the existing texts.
        """
        for embedder in self.embedders.values():
            self._store.vectors.delete_unused(embedder.name, used)

    def vectors(self, texts: Sequence[str], key: str, what: str = "texts") -> Vectors:
        """Return the vectors of passages as a float32 array of shape (texts, dimension).

        Missing vectors are computed. The array is read-only. If the model returned an invalid
        vector for a text, the row contains zeros.

        Raises:
            LookupError: If the key is unknown.
            EmbeddingError: If the model fails or returns invalid vectors.
        """
        embedder = self.embedder(key)
        digests = [*map(digest, texts)]
        while True:
            with self._streaming(len(digests)):
                vectors = self._read(embedder, digests)
            if vectors is not None:
                return vectors
            self.embed(texts, key, what)

    def embed(
        self, texts: Sequence[str], key: str, label: str, executor: Executor | None = None
    ) -> None:
        """Compute and store the vectors of passages that do not have a vector yet.

        Args:
            texts: The texts of the passages.
            key: The key of the embedding model.
            label: The label of the progress bar, such as the name of the group.
            executor: An executor that runs the model. If None, the model runs in this process.

        Raises:
            LookupError: If the key is unknown.
            EmbeddingError: If the model fails or returns invalid vectors.
            TypeError: If the model cannot be pickled for the executor.
        """
        embedder = self.embedder(key)
        missing = self._missing(embedder, {digest(text): text for text in texts})
        if missing and is_reading_graph():
            raise DeferredWork(partial(self.embed, list(missing.values()), key, label))
        if not missing:
            return
        with self._embedding[embedder.name], self._streaming(len(missing)):
            missing = self._missing(embedder, missing)
            unusable: list[str] = []
            is_shown = len(missing) >= _LONG and self._progress
            with ProgressBar(" texts", is_shown) as bar:
                bar.start(len(missing), f"embedding {label}")

                def put(names: Sequence[str], vectors: Vectors) -> None:
                    texts = {name: missing[name] for name in names}
                    unusable.extend(self._put(embedder, texts, vectors))
                    bar.advance(len(names))

                def embed_batch(batch: Sequence[str]) -> None:
                    put(batch, embedder.passages([missing[name] for name in batch]))

                left = dict(missing)
                if executor is None:
                    for names, vectors in embedder.own_batches(left):
                        put(names, vectors)
                        for name in names:
                            del left[name]
                batches = embedder.batches(left)
                if executor is None:
                    run_in_threads(embed_batch, batches, embedder.num_workers)
                else:
                    for batch, vectors in _embed_with(executor, embedder, batches, left):
                        put(batch, vectors)
            _warn(embedder, unusable)

    def missing(self, digests: Iterable[str], key: str) -> Set[str]:
        """Return the hashes of passages for which no vector is stored."""
        return self._missing(self.embedder(key), dict.fromkeys(digests, "")).keys()

    def put(self, texts: Sequence[str], vectors: Sequence[Any], key: str | None = None) -> None:
        """Store vectors of passages that were computed elsewhere with the same model.

        Args:
            texts: The texts of the passages. If a text is repeated, its last vector is stored.
            vectors: An array of shape (texts, dimension).
            key: The key of the embedding model.

        Raises:
            LookupError: If the key is unknown.
            EmbeddingError: If the vectors are invalid or have the wrong dimension.
        """
        embedder = self.embedder(self.key(key))
        if texts:
            checked = check_vectors(vectors, texts, embedder.name)
            rows = {text: row for row, text in enumerate(texts)}
            by_digest = {digest(text): text for text in rows}
            _warn(embedder, self._put(embedder, by_digest, checked[[*rows.values()]]))

    def _streaming(self, count: int) -> AbstractContextManager[None]:
        """Return a context for accessing many vectors without filling the store's page cache."""
        return self._store.database.streaming() if count >= _LONG else nullcontext()

    def _missing(self, embedder: Embedder, texts: Mapping[str, str]) -> dict[str, str]:
        """Return the texts for which no vector is stored, keyed by their hashes."""
        missing = dict(texts)
        for page in portions(texts, _PAGE):
            for name in self._store.vectors.existing(embedder.name, page):
                del missing[name]
        return missing

    def _read(self, embedder: Embedder, digests: Sequence[str]) -> Vectors | None:
        """Return stored vectors as an array, or None if any of them is missing."""
        import numpy as np

        vectors = np.zeros((0, 0 if digests else self._dimension(embedder)), np.float32)
        for start in range(0, len(digests), _PAGE):
            page = digests[start : start + _PAGE]
            rows = self._store.vectors.read(embedder.name, page)
            if rows is None:
                return None
            if not start:
                vectors = rows
                if len(page) < len(digests):
                    vectors = np.empty((len(digests), rows.shape[1]), np.float32)
            with reading_rows(self._store.place):
                vectors[start : start + len(page)] = rows
        vectors.flags.writeable = False
        return vectors

    def _put(self, embedder: Embedder, texts: Mapping[str, str], vectors: Vectors) -> list[str]:
        """Store vectors by the hashes of their texts, and return texts with invalid vectors."""
        import numpy as np

        self._check_dimension(embedder, vectors)
        self._store.vectors.put(embedder.name, list(texts), vectors)
        is_unusable = np.asarray(~vectors.any(axis=1))
        return [*compress(texts.values(), is_unusable.tolist())]

    def _dimension(self, embedder: Embedder) -> int:
        """Return the dimension of a model's stored vectors, or 0 if no vectors are stored."""
        return self._store.vectors.size(embedder.name) // 4

    def _check_dimension(self, embedder: Embedder, vectors: Vectors) -> None:
        """Check that new vectors have the same dimension as the stored vectors of the model.

        Raises:
            VectorLengthError: If the dimension is different.
        """
        expected = self._dimension(embedder)
        dimension = vectors.shape[1]
        if expected not in (0, dimension):
            raise VectorLengthError(
                f"the embedding model {embedder.name!r} returns vectors of {dimension} numbers, "
                f"but vectors stored under this name have {expected}; name another model "
                "differently: Embedder(embed, name=...)"
            )

    def query_vectors(self, queries: Sequence[str], key: str) -> Vectors:
        """Return the vectors of queries as a float32 array of shape (queries, dimension).

        Raises:
            LookupError: If the key is unknown.
            EmbeddingError: If the model fails or returns an invalid vector for a query.
        """
        embedder = self.embedder(key)
        _, batches = self._cached(queries, key)
        missing = (key, *sorted(query for batch in batches for query in batch))
        with self._lock:
            asking = self._asking.setdefault(missing, fork_safe_lock())
        with asking:  # Threads with the same queries share one call.
            vectors, batches = self._cached(queries, key)
            for batch in batches:
                vectors |= self._checked(batch, key, embedder.queries(batch))
        return self._in_order(queries, vectors, embedder)

    async def aquery_vectors(self, queries: Sequence[str], key: str) -> Vectors:
        """Async version of ``query_vectors``."""
        embedder = self.embedder(key)
        vectors, batches = self._cached(queries, key)
        if not queries or (batches and embedder.aembed_queries is None):
            return await in_thread(self.query_vectors, queries, key)
        for batch in batches:
            # This runs in a thread, because the check may read the store.
            new = await in_thread(self._checked, batch, key, await embedder.aqueries(batch))
            vectors |= new
        return self._in_order(queries, vectors, embedder)

    def _cached(
        self, queries: Iterable[str], key: str
    ) -> tuple[dict[str, Vector], list[list[str]]]:
        """Look up queries in the cache.

        Return the vectors found, and the missing queries in batches.
        """
        cached: dict[str, Vector] = {}
        missing: list[str] = []
        with self._lock:
            for query in dict.fromkeys(queries):
                if (vector := self._query_vectors.get((key, query))) is not None:
                    self._query_vectors.move_to_end((key, query))
                    cached[query] = vector
                else:
                    missing.append(query)
        return cached, [*portions(missing, self.embedder(key).batch_size)]

    def _checked(self, queries: Sequence[str], key: str, vectors: Vectors) -> dict[str, Vector]:
        """Check the dimension of new query vectors, add them to the cache, and return them."""
        dimension = vectors.shape[1]
        if self._dimensions.get(key) != dimension:
            self._check_dimension(self.embedder(key), vectors)
            self._dimensions[key] = dimension
        new = {query: vector.copy() for query, vector in zip(queries, vectors, strict=True)}
        with self._lock:
            self._query_vectors.update(((key, query), vector) for query, vector in new.items())
            while len(self._query_vectors) > MAX_QUERIES:
                self._query_vectors.popitem(last=False)
        return new

    def _in_order(
        self, queries: Sequence[str], by_query: Mapping[str, Vector], embedder: Embedder
    ) -> Vectors:
        import numpy as np

        vectors = [by_query[query] for query in queries]
        return np.stack(vectors) if vectors else np.zeros((0, self._dimension(embedder)), "f4")


def _warn(embedder: Embedder, unusable: Sequence[str]) -> None:
    """Log a warning about texts for which the model returned invalid vectors."""
    if unusable:
        logger.warning(
            "the embedding model %r returned no usable vector (zeros or NaN) for %s, first %s; "
            "vector search leaves them out",
            embedder.name,
            count_of(unusable),
            f"{unusable[0]!r:.80}",
        )


def _embed_with(
    executor: Executor,
    embedder: Embedder,
    batches: Sequence[Sequence[str]],
    texts: Mapping[str, str],
) -> Iterator[tuple[Sequence[str], Vectors]]:
    """Compute the vectors of batches in an executor, and yield each batch with its vectors."""
    call = pickled(embedder.passages, f"the embedding model {embedder.name!r}")
    inputs: list[list[str]] = []
    for batch in batches:
        inputs.append([texts[name] for name in batch])
    results = executor.map(partial(call_pickled, call), inputs)
    yield from zip(batches, results, strict=True)
