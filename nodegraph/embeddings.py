"""The vectors of texts: embedded when they are needed, kept by model and text."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from .document import digest
from .embedder import Embedder, check_vectors
from .errors import EmbeddingError, nearest
from .progress import track
from .store import NodeStore

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Vectors = npt.NDArray[np.float32]

_QUERIES_KEPT = 512
_LONG = 256  # texts whose embedding is worth showing


class Embeddings:
    """Embed passages once for each model and text; remember the last queries.

    Every batch is kept as soon as it is there: what interrupts the work costs one batch.
    """

    def __init__(
        self, store: NodeStore, embedders: Mapping[str, Embedder], progress: bool | None
    ) -> None:
        self._store = store
        self._progress = progress
        self.embedders = dict(embedders)
        self._embedding = {key: threading.Lock() for key in self.embedders}
        self._queries: OrderedDict[tuple[str, str], Vectors] = OrderedDict()
        self._queries_lock = threading.Lock()

    def embedder(self, key: str) -> Embedder:
        """Return the model of a key.

        Raises:
            LookupError: If there is none.
        """
        if key not in self.embedders:
            known = nearest(str(key), self.embedders)
            raise LookupError(
                f"the graph has no embedding {key!r}; it has {known}: give it one with "
                "NodeGraph(..., embed=model) or embed={'key': model}"
            )
        return self.embedders[key]

    def vectors(self, texts: Sequence[str], key: str, what: str = "texts") -> Vectors:
        """Return the vectors of passages, (texts, dimension) float32; embed what is not kept yet.

        Raises:
            LookupError: If there is no model of that key.
            EmbeddingError: If the model fails, or makes no usable vectors.
        """
        import numpy as np

        embedder = self.embedder(key)
        kind = f"embedding {embedder.name}"
        names = [digest(text) for text in texts]
        kept = self._store.recall(kind, set(names))
        if len(kept) < len(set(names)):
            with self._embedding[key]:  # another thread may be embedding the same
                kept.update(self._store.recall(kind, {n for n in names if n not in kept}))
                wanted = {n: t for n, t in zip(names, texts, strict=True) if n not in kept}
                self._embed(embedder, kind, wanted, kept, f"embedding {what}")
        if not names:
            return np.zeros((0, 0), np.float32)
        joined = np.frombuffer(b"".join([kept[name] for name in names]), "<f4")
        return joined.reshape(len(names), -1)

    def _embed(
        self,
        embedder: Embedder,
        kind: str,
        wanted: Mapping[str, str],
        kept: dict[str, bytes],
        what: str,
    ) -> None:
        """Embed texts batch by batch, adding their vectors to ``kept`` and to the store."""
        dimension = len(next(iter(kept.values()))) // 4 if kept else self._dimension(kind)
        names = list(wanted)
        size = embedder.batch_size
        batches = [names[at : at + size] for at in range(0, len(names), size)]
        show = self._progress if len(names) >= _LONG else False
        for batch in track(batches, len(batches), what, " batches", show):
            texts = [wanted[name] for name in batch]
            made = check_vectors(embedder.embed(texts), texts, embedder.name)
            if dimension is None:
                dimension = made.shape[1]
                self._store.remember(f"{kind} dimension", {"": str(dimension).encode()})
            self._check_dimension(embedder, dimension, made.shape[1])
            new = {n: v.astype("<f4").tobytes() for n, v in zip(batch, made, strict=True)}
            self._store.remember(kind, new)
            kept.update(new)

    def query_vectors(self, queries: Sequence[str], key: str) -> Vectors:
        """Return the vectors of queries, (queries, dimension) float32.

        Raises:
            LookupError: If there is no model of that key.
            EmbeddingError: If the model fails, or makes no usable vectors.
        """
        embedder = self.embedder(key)
        missing = self._missing(queries, key)
        if missing:
            made = (embedder.embed_queries or embedder.embed)(missing)
            self._keep_queries(embedder, key, missing, made)
        return self._kept_queries(queries, key)

    async def aquery_vectors(self, queries: Sequence[str], key: str) -> Vectors:
        """Return the same, by the model's async form where it has one, else in a thread."""
        import asyncio

        embedder = self.embedder(key)
        missing = self._missing(queries, key)
        if not missing:
            return self._kept_queries(queries, key)
        if embedder.aembed_queries is None:
            return await asyncio.to_thread(self.query_vectors, queries, key)
        self._keep_queries(embedder, key, missing, await embedder.aembed_queries(missing))
        return self._kept_queries(queries, key)

    def _missing(self, queries: Sequence[str], key: str) -> list[str]:
        with self._queries_lock:
            return list(dict.fromkeys(q for q in queries if (key, q) not in self._queries))

    def _keep_queries(
        self, embedder: Embedder, key: str, queries: Sequence[str], made: object
    ) -> None:
        vectors = check_vectors(made, queries, embedder.name)
        dimension = self._dimension(f"embedding {embedder.name}")
        if dimension is not None:
            self._check_dimension(embedder, dimension, vectors.shape[1])
        with self._queries_lock:
            for query, vector in zip(queries, vectors, strict=True):
                self._queries[key, query] = vector

    def _kept_queries(self, queries: Sequence[str], key: str) -> Vectors:
        import numpy as np

        with self._queries_lock:
            vectors = [self._queries[key, query] for query in queries]
            for query in queries:
                self._queries.move_to_end((key, query))
            while len(self._queries) > max(_QUERIES_KEPT, 2 * len(queries)):
                self._queries.popitem(last=False)
        return np.stack(vectors)

    def _dimension(self, kind: str) -> int | None:
        known = self._store.recall(f"{kind} dimension", {""})
        return int(known[""]) if known else None

    def _check_dimension(self, embedder: Embedder, kept: int, made: int) -> None:
        if made != kept:
            raise EmbeddingError(
                f"the embedding model {embedder.name!r} gives vectors of {made} numbers, and "
                f"those kept under its name have {kept}; if it is another model, give it another "
                "name: Embedder(embed, name=...)"
            )
