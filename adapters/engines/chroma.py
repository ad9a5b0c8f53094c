"""Chroma: a server, or a folder that this process opens itself."""

from __future__ import annotations

import heapq
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from ...nodegraph.errors import StoreError
from ...nodegraph.search_tables import Nearest, ValueMatch
from ..extras import extra
from .base_engine import ConnectedEngine, EngineAddress
from .index_engine import (
    EF_CONSTRUCTION,
    EF_SEARCH,
    EngineRow,
    EngineUnavailableError,
    M,
    MissingCollectionError,
    RowSelection,
    nearest_of,
)

if TYPE_CHECKING:
    from ...nodegraph.search_tables import Vectors

_TIMEOUT = 60  # seconds

_BATCH_SIZE = 1_000  # rows that are read at once

_MAX_CONDITIONS = 100  # of a condition, above which rows are read and compared here: see ``_where``

_TOKEN_KEY = "mark"

_NO_VALUE = 0  # numbers of values begin with 1

_NO_ROW = {"place": -1}  # a condition that none meets

_ENGINES: weakref.WeakSet[ChromaEngine] = weakref.WeakSet()

T = TypeVar("T")


class ChromaAddress(EngineAddress):
    """``chroma://host:8000?secure=true&token=secret&tenant=name&database=name``.

    ``chroma:///folder`` and ``chroma:folder`` are folders that this process opens.
    """

    engine = "Chroma"
    default_port = 8_000
    defaults: ClassVar[Mapping[str, str]] = {
        "secure": "false",
        "token": "",
        "tenant": "default_tenant",
        "database": "default_database",
    }
    local = ("folder", "folder")

    def check(self) -> None:
        """Refuse a user."""
        if self.user or self.password:
            raise ValueError("Chroma has no users; write ?token= for what its server demands")


class ChromaEngine(ConnectedEngine[ChromaAddress, Any]):
    """Search vectors by Chroma's HNSW, following 400; under a condition by comparing all.

    A folder is for one process at a time, several need a server (``chroma run``). Tested with
    Chroma 1.5.

    Args:
        address: See ``ChromaAddress``.

    Raises:
        ValueError: If it is no such address.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> graph = NodeGraph(index=ChromaEngine("chroma://db:8000"))  # connects when it searches
    """

    max_results = 1_000
    hnsw_from = None  # there is always a graph of vectors

    def __init__(self, address: str) -> None:
        super().__init__(address, ChromaAddress.parse(address))

    def _set_up(self) -> None:
        super()._set_up()
        self._collections: dict[str, Any] = {}
        self._file_id: tuple[int, int] | None = None  # of the folder's file when it was opened
        _ENGINES.add(self)

    # Collections

    def create(self, collection: str, dimension: int, *, has_hnsw: bool) -> None:
        """Make a collection."""
        graph = {
            "space": "ip",
            "max_neighbors": M,
            "ef_construction": EF_CONSTRUCTION,
            "ef_search": EF_SEARCH,
        }
        self._call(
            lambda client: client.get_or_create_collection(
                collection, embedding_function=None, configuration={"hnsw": graph}
            )
        )

    def drop(self, collection: str) -> None:
        """Remove a collection."""
        self._collections.pop(collection, None)
        try:
            self._call(lambda client: client.delete_collection(collection))
        except MissingCollectionError:
            return

    def version_token(self, collection: str) -> str | None:
        """Return the token, which is metadata of the collection."""
        self._collections.pop(collection, None)
        try:
            matches = self._call(lambda _: self._collection(collection))
        except MissingCollectionError:
            return None
        return (matches.metadata or {}).get(_TOKEN_KEY)

    def set_version_token(self, collection: str, token: str) -> int:
        """Store the token."""
        self._call(lambda _: self._collection(collection).modify(metadata={_TOKEN_KEY: token}))
        return 0

    def _collection(self, name: str) -> Any:
        """Return a collection, which is known by a number: one that is made again has another."""
        if name not in self._collections:
            client = self._connected()
            self._collections[name] = client.get_collection(name, embedding_function=None)
        return self._collections[name]

    # Rows

    def put(self, collection: str, rows: Sequence[EngineRow]) -> None:
        """Insert or replace rows."""
        if not rows:
            return
        keys = [row.key for row in rows]
        fields = [
            # Every field each time, as Chroma leaves those that are not named; no list is empty.
            {
                "id": row.id,
                "place": row.order,
                "key": row.key,
                "tags": [*row.value_ids] or [_NO_VALUE],
            }
            for row in rows
        ]
        vectors = [row.vector for row in rows]

        def put(_: Any) -> None:
            stored = self._collection(collection)
            stored.upsert(ids=keys, embeddings=vectors, metadatas=fields)

        self._call(put)

    def delete(self, collection: str, keys: Sequence[str]) -> None:
        """Delete rows."""
        if keys:
            self._call(lambda _: self._collection(collection).delete(ids=[*keys]))

    def count(self, collection: str, match: ValueMatch | None, position: int) -> int:
        """Return how many rows match."""
        if match is None:
            return int(self._call(lambda _: self._collection(collection).count()))
        return sum(map(len, self._batches(collection, match, [])))

    def nearest(
        self, collection: str, query: Vectors, limit: int, selection: RowSelection, exact: bool
    ) -> Nearest:
        """Return the nearest rows; where Chroma can't select them, by reading all that match."""
        match, without, _ = selection
        where = None if match is None else _where(match)
        if exact or (match is not None and where is None):
            left_out = frozenset(without)
            batches = self.rows(collection, match, 0)
            rows = (row for batch in batches for row in batch if row.key not in left_out)
            best = heapq.nlargest(limit, rows, key=lambda row: float(row.vector @ query))
            ids, orders = [row.id for row in best], [row.order for row in best]
            return nearest_of(ids, orders, [row.vector for row in best], len(query))
        others = [{"key": {"$nin": [*without]}}] if without else []
        conditions = [*([] if where is None else [where]), *others]
        matches = self._call(
            lambda _: self._collection(collection).query(
                query_embeddings=[query],
                n_results=limit,
                where=_joined("$and", conditions),
                include=["embeddings", "metadatas"],
            )
        )
        (vectors,), (fields,) = matches["embeddings"], matches["metadatas"]
        ids, orders = [field["id"] for field in fields], [int(field["place"]) for field in fields]
        return nearest_of(ids, orders, vectors, len(query))

    def rows(
        self, collection: str, match: ValueMatch | None, position: int
    ) -> Iterator[Sequence[EngineRow]]:
        """Yield all rows that match."""
        import numpy as np

        for batch in self._batches(collection, match, ["embeddings"]):
            yield [
                EngineRow(
                    *(field["key"], field["id"], int(field["place"])),
                    [int(value_id) for value_id in field["tags"] if value_id != _NO_VALUE],
                    np.asarray(vector, np.float32),
                )
                for field, vector in batch
            ]

    def _batches(
        self, collection: str, match: ValueMatch | None, more: list[str]
    ) -> Iterator[list[tuple[dict[str, Any], Any]]]:
        """Yield the metadata of rows that match, each with its vector if that is asked for."""
        where = None if match is None else _where(match)
        start = 0
        while True:
            matches = self._get(collection, where, ["metadatas", *more], start)
            fields = matches["metadatas"]
            vectors = matches["embeddings"] if more else [None] * len(fields)
            batch = zip(fields, vectors, strict=True)
            if match is not None and where is None:
                yield [row for row in batch if _matches(row[0]["tags"], match)]
            else:
                yield [*batch]
            if len(fields) < _BATCH_SIZE:
                return
            start += _BATCH_SIZE

    def _get(
        self, collection: str, where: dict[str, Any] | None, fields: list[str], start: int
    ) -> Any:
        """Return a batch of the rows that meet a condition."""
        return self._call(
            lambda _: self._collection(collection).get(
                where=where, include=fields, limit=_BATCH_SIZE, offset=start
            )
        )

    # The client

    def _call(self, work: Callable[[Any], T]) -> T:
        """Return what the client does; by a new one if the folder was deleted or replaced.

        Chroma shares what it has open of a folder until all clients of it are closed.
        """
        client = self._client
        try:
            return super()._call(work)
        except EngineUnavailableError:
            if client is None or not self._address.path or self._file_id == self._stored_file():
                raise
        for engine in list(_ENGINES):
            if engine._address.path == self._address.path:
                engine.close()
        return super()._call(work)

    def _stored_file(self) -> tuple[int, int] | None:
        """Return what tells the folder's file from another one of its name."""
        try:
            stat = (Path(self._address.path) / "chroma.sqlite3").stat()
        except OSError:
            return None
        return stat.st_dev, stat.st_ino

    def _disconnect(self, client: Any) -> None:
        self._collections.clear()
        session = _session(client)
        client.close()
        if session is not None:  # which Chroma leaves open
            session.close()

    def _connect(self) -> Any:
        with extra("chroma", "chromadb"):
            import chromadb
            from chromadb.config import Settings
        address, settings = self._address, self._address.settings
        both: dict[str, Any] = {
            "tenant": settings["tenant"],
            "database": settings["database"],
            "settings": Settings(anonymized_telemetry=False),
        }
        if address.path:
            local = chromadb.PersistentClient(address.path, **both)
            self._file_id = self._stored_file()
            return local
        token = settings["token"]
        headers = {"Authorization": f"Bearer {token}"} if token else None
        client = chromadb.HttpClient(
            address.host, address.port, ssl=address.secure, headers=headers, **both
        )
        if (session := _session(client)) is not None:
            session.timeout = _TIMEOUT  # Chroma would wait for ever
        return client

    def _explained(self, error: Exception) -> StoreError:
        name, message = type(error).__name__, " ".join(str(error).split())[:300]
        if name == "NotFoundError" and "ollection" in message:
            self._collections.clear()
            return MissingCollectionError(f"{self.label} has lost a collection: {message}")
        if name == "InvalidArgumentError":
            return StoreError(f"{self.label} refuses what it was asked: {message}")
        return EngineUnavailableError(
            f"{self.label} can't be reached, or failed: {name}: {message}; see whether it runs, "
            "and whether the address and token are right. Searches by words, and all that is no "
            "search by vectors, go on without it"
        )


def _session(client: Any) -> Any:
    """Return what a client of a server speaks HTTP by; None for a folder."""
    return getattr(getattr(client, "_server", None), "_session", None)


def _where(match: ValueMatch) -> dict[str, Any] | None:
    """Return what selects rows in Chroma's language; None where that would be too long for it.

    It has no list of values for a field that is a list, and takes seconds for thousands of
    conditions, and no "not", which is passed down to the values.
    """
    return None if _numbers(match) > _MAX_CONDITIONS else _condition(match, required=True)


def _numbers(match: ValueMatch) -> int:
    return len(match.value_ids) + sum(map(_numbers, match.parts))


def _condition(match: ValueMatch, *, required: bool) -> dict[str, Any]:
    if match.join == "not":
        return _condition(match.parts[0], required=not required)
    if match.join == "values":
        operator = "$contains" if required else "$not_contains"
        parts = [{"tags": {operator: number}} for number in match.value_ids]
        alternatives = required
    else:
        parts = [_condition(part, required=required) for part in match.parts]
        alternatives = (match.join == "or") == required
    if not parts:  # one of none is not met, all of none is
        return _NO_ROW if alternatives else {"place": {"$ne": -1}}
    return _joined("$or" if alternatives else "$and", parts) or _NO_ROW


def _joined(operator: str, parts: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    if len(parts) < 2:
        return parts[0] if parts else None
    return {operator: [*parts]}


def _matches(value_ids: Collection[int], match: ValueMatch) -> bool:
    """Return whether a row with some numbers meets a condition."""
    if match.join == "values":
        return not frozenset(match.value_ids).isdisjoint(value_ids)
    parts = (_matches(value_ids, part) for part in match.parts)
    if match.join == "not":
        return not next(parts)
    return all(parts) if match.join == "and" else any(parts)
