"""Cache the vectors of passages and queries by model and text."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence, Set
from concurrent.futures import Executor
from contextlib import closing
from typing import TYPE_CHECKING, Any

from ..concurrency import in_thread
from ..errors import nearest_names
from ..hashing import digest
from ..storage.graph_store import GraphStore
from .embedder import Embedder, Vectors, split_batches
from .passage_vectors import DIMENSION, KIND, PassageVectors, check_dimension

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Vector = npt.NDArray[np.float32]

MAX_QUERIES = 512
"""Number of cached query vectors."""


class EmbeddingCache:
    """The embedding models of a graph, with a cache of passage vectors and recent query vectors."""

    def __init__(
        self, store: GraphStore, embedders: Mapping[str, Embedder], progress: bool | None
    ) -> None:
        self._store = store
        self.embedders = dict(embedders)
        self._passages = PassageVectors(store, self.embedders, progress)
        self._lock = threading.Lock()
        self._query_vectors: OrderedDict[tuple[str, str], Vector] = OrderedDict()

    def embedder(self, key: str) -> Embedder:
        """Return the model of a key.

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
        """Return the key, or the only key if None is given.

        Raises:
            LookupError: If the key is unknown, or None is given and the graph has several models
                or no model.
        """
        if key is None and len(self.embedders) > 1:
            raise LookupError(f"say which embedding: {nearest_names('', self.embedders)}")
        key = next(iter(self.embedders), "default") if key is None else key
        self.embedder(key)
        return key

    def stored(self) -> list[str]:
        """Return the kinds of stored values that contain vectors, one per model."""
        return [kind for kind in self._store.kinds() if kind.startswith(KIND)]

    def delete_unused(self, used: Set[str]) -> None:
        """Delete the vectors of deleted texts, of all models.

        Args:
            used: The digests of existing texts.
        """
        for kind in self.stored():
            unused = self._store.get_values(kind).keys() - used - {DIMENSION}
            self._store.delete_values(kind, unused)

    def vectors(self, texts: Sequence[str], key: str, what: str = "texts") -> Vectors:
        """Return the vectors of passages, (texts, dimension) float32. Missing vectors are computed.

        The array is read-only. A text without a usable vector has a vector of zeros.

        Raises:
            LookupError: If the key is unknown.
            EmbeddingError: If the model fails or returns invalid vectors.
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
            return self._empty(embedder)
        table.flags.writeable = False
        return table

    def embed(
        self, texts: Sequence[str], key: str, label: str, executor: Executor | None = None
    ) -> None:
        """Embed the passages that have no vector yet.

        Args:
            texts: The passages.
            key: The embedding.
            label: The label of the progress bar, such as the group.
            executor: Runs the model. None: this process.

        Raises:
            LookupError: If the key is unknown.
            EmbeddingError: If the model fails or returns invalid vectors.
            TypeError: If the model cannot be pickled for the executor.
        """
        by_digest = {digest(text): text for text in texts}
        label = f"embedding {label}"
        passages = self._passages.vectors(self.embedder(key), by_digest, label, executor)
        with closing(passages):
            for _ in passages:
                pass

    def put(self, texts: Sequence[str], vectors: Sequence[Any], key: str | None = None) -> None:
        """Store vectors of passages, (texts, dimension), that the model computed elsewhere.

        Raises:
            LookupError: If the key is unknown.
            EmbeddingError: If the vectors are invalid or have a wrong dimension.
        """
        if texts:
            self._passages.put(self.embedder(self.key(key)), texts, vectors)

    def query_vectors(self, queries: Sequence[str], key: str) -> Vectors:
        """Return the vectors of queries, (queries, dimension) float32.

        Raises:
            LookupError: If the key is unknown.
            EmbeddingError: If the model fails or returns unusable vectors.
        """
        embedder = self.embedder(key)
        vectors = self._cached(queries, key)
        for batch in self._missing(queries, vectors, embedder):
            vectors |= self._checked(batch, key, embedder.queries(batch))
        return self._in_order(queries, vectors, embedder)

    async def aquery_vectors(self, queries: Sequence[str], key: str) -> Vectors:
        """Async version of ``query_vectors``."""
        embedder = self.embedder(key)
        vectors = self._cached(queries, key)
        missing = self._missing(queries, vectors, embedder)
        if not queries or (missing and embedder.aembed_queries is None):
            return await in_thread(self.query_vectors, queries, key)
        for batch in missing:
            # In a thread, because the check may read the store.
            new = await in_thread(self._checked, batch, key, await embedder.aqueries(batch))
            vectors |= new
        return self._in_order(queries, vectors, embedder)

    def has_queries(self, queries: Iterable[str], key: str) -> bool:
        """Return whether the vectors of all these queries are cached."""
        queries = set(queries)
        return len(self._cached(queries, key)) == len(queries)

    def _missing(
        self, queries: Sequence[str], vectors: Mapping[str, Vector], embedder: Embedder
    ) -> list[list[str]]:
        """Return the queries without a vector, in batches."""
        missing = dict.fromkeys(query for query in queries if query not in vectors)
        return split_batches(list(missing), embedder.batch_size)

    def _cached(self, queries: Iterable[str], key: str) -> dict[str, Vector]:
        """Return the cached vectors of queries, and mark them as recently used."""
        cached: dict[str, Vector] = {}
        with self._lock:
            for query in queries:
                if (vector := self._query_vectors.get((key, query))) is not None:
                    self._query_vectors.move_to_end((key, query))
                    cached[query] = vector
        return cached

    def _checked(self, queries: Sequence[str], key: str, vectors: Vectors) -> dict[str, Vector]:
        """Check the dimension of new vectors, and cache them."""
        embedder = self.embedder(key)
        dimension = self._passages.dimension(embedder)
        if dimension is not None:
            check_dimension(embedder, dimension, vectors.shape[1])
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
        for vector in vectors:
            check_dimension(embedder, len(vectors[0]), len(vector))
        return np.array(vectors) if vectors else self._empty(embedder)

    def _empty(self, embedder: Embedder) -> Vectors:
        import numpy as np

        return np.zeros((0, self._passages.dimension(embedder) or 0), np.float32)
