"""Milvus: a server, or a file of milvus-lite."""

from __future__ import annotations

import json
import logging
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from ...nodegraph.errors import StoreError
from ...nodegraph.search_tables import Nearest, ValueMatch
from ..extras import extra
from .base_engine import ConnectedEngine, EngineAddress
from .index_engine import (
    EF_CONSTRUCTION,
    EF_SEARCH,
    HNSW_FROM,
    EngineRow,
    EngineUnavailableError,
    M,
    MissingCollectionError,
    RowSelection,
    WordHits,
    WordRow,
    nearest_of,
)

if TYPE_CHECKING:
    from pymilvus import MilvusClient

    from ...nodegraph.search_tables import Vectors

logger = logging.getLogger(__name__)

T = TypeVar("T")

_MAX_RESULTS = 16_384  # rows that a query or a search returns

_BATCH_SIZE = 2_000  # rows that are read at once, about

_DIGITS = "0123456789abcdef"  # of keys

_MAX_VALUES = 4_096  # numbers in an array

_MAX_ID_BYTES = 65_535  # bytes of a text

_MAX_DIMENSION = 32_768

_MAX_EF_SEARCH = 10_000  # where few are left by a filter: as many as there are then

_PARTS = tuple(  # of all rows, each a 32nd, without the token
    f'key >= "{part * 8:02x}" and key < "{f"{part * 8 + 8:02x}" if part < 31 else "g"}"'
    for part in range(32)
)

_TOKEN_KEY = "mark"  # the key of the row that has the token of a collection

_NOT_FOUND = 100  # code of an error: there is no such collection

_NOT_LOADED = 101  # a server that was killed doesn't load all that it had

_FOR_GOOD = frozenset({1_100, 1_101, 1_400, 1_401, 1_402})  # a wrong request, no right to it

_MIN_VERSION = (2, 3, 2)  # version of a server: the first with arrays

_WITH_WORDS = (2, 4, 0)  # the first with sparse vectors

_UNFLUSHED = 4_000
"""New rows from which on a server is told to index them, and to search by that index.

Up to 4,991 (39 for each of 128 lists) it compares all of them; above it searches 16 of 128 lists.
"""

_UNFLUSHED_LITE = 1_000  # those of a file are compared in Python

_FLUSHING = 600  # seconds that this may take

_PAUSE = 0.1  # seconds between looks


_LOGGERS = (  # each failure would be on stderr with its traceback, before it is raised
    "pymilvus.decorators",
    "pymilvus.client.connection_manager",
    "pymilvus.client.grpc_handler",
)


class _OwnCalls(threading.local):
    depth = 0


_calling = _OwnCalls()


def _is_others(record: logging.LogRecord) -> bool:
    """Return whether the client logs what was not called from here."""
    return not _calling.depth


class MilvusAddress(EngineAddress):
    """``milvus://user:password@host:port?database=name&secure=true&timeout=10``.

    ``milvus:///folder/file.db`` and ``milvus:file.db`` are files of milvus-lite. Words are searched
    in Milvus where it can, by ``words=auto``; by ``words=milvus`` in Milvus; by ``words=memory`` in
    each process.
    """

    engine = "Milvus"
    default_port = 19_530
    defaults: ClassVar[Mapping[str, str]] = {
        "database": "",
        "secure": "false",
        "timeout": "10",
        "token": "",
        "words": "auto",
    }
    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {
        **EngineAddress.choices,
        "words": ("auto", "milvus", "memory"),
    }
    local = ("file", "folder/file.db")

    def check(self) -> None:
        """Refuse files of other names than milvus-lite's."""
        if self.path and not self.path.endswith(".db"):
            raise ValueError(
                f"{self.path!r:.80} is no file of milvus-lite, whose name ends in .db; write "
                "'milvus:///folder/file.db'"
            )

    @property
    def is_file(self) -> bool:
        """Whether it is a file of milvus-lite."""
        return bool(self.path)

    @property
    def uri(self) -> str:
        """What Milvus' client takes: a path, or a URL."""
        return self.path or f"{'https' if self.secure else 'http'}://{self.netloc}"

    @property
    def token(self) -> str:
        """User and password, or what else a server demands."""
        return f"{self.user}:{self.password}" if self.user else self.settings["token"]

    @property
    def label(self) -> str:
        """The address without a password."""
        database = self.settings["database"]
        return super().label + (f"?database={database}" if database else "")


class MilvusEngine(ConnectedEngine[MilvusAddress, "MilvusClient"]):
    """Search vectors by Milvus: up to 10,000 by comparing all, above by its HNSW; and words.

    Words are searched by its inverted file of sparse vectors, which finds all candidates; a server
    has that from 2.4 on. Several processes need a server; a file of milvus-lite is for one process
    at a time. Tested with milvus-lite 3.2, and with Milvus 2.3 for vectors.

    Args:
        address: See ``MilvusAddress``.

    Raises:
        ValueError: If it is no such address.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> graph = NodeGraph(index=MilvusEngine("milvus://db:19530"))  # connects when it searches
    """

    max_results = _MAX_RESULTS - 1  # beside the token
    word_slack = 1.0
    hnsw_from = HNSW_FROM

    def __init__(self, address: str) -> None:
        super().__init__(address, MilvusAddress.parse(address))

    def _set_up(self) -> None:
        super()._set_up()
        self._version = _MIN_VERSION
        self._is_lite = self._address.is_file  # or such a file that is served
        self._has_warned = False  # that words are not searched here
        self._unflushed: Counter[str] = Counter()  # rows by collection
        self._hnsw_by_collection: dict[str, bool] = {}

    @property
    def _timeout(self) -> float:
        return self._address.timeout

    # Collections

    def create(self, collection: str, dimension: int, *, has_hnsw: bool) -> None:
        """Make a collection.

        Raises:
            StoreError: If the vectors are too long.
        """
        if dimension > _MAX_DIMENSION:
            raise StoreError(
                f"{self.label} stores vectors of up to {_MAX_DIMENSION:,} numbers, and the "
                f"embedding model makes {dimension:,}; open the graph without index="
            )

        params = {"M": M, "efConstruction": EF_CONSTRUCTION} if has_hnsw else {}

        def add_fields(schema: Any, kinds: Any) -> None:
            schema.add_field("place", kinds.INT64)
            schema.add_field("vector", kinds.FLOAT_VECTOR, dim=max(dimension, 2))

        self._create(collection, add_fields, ("vector", "HNSW" if has_hnsw else "FLAT", params))

    def _create(
        self,
        collection: str,
        add_fields: Callable[[Any, Any], None],
        index: tuple[str, str, dict[str, int]],
    ) -> None:
        """Make a collection with some fields beside those that all have.

        Args:
            collection: Its name.
            add_fields: Adds fields to a schema.
            index: The field that is searched, the kind of its index, and its settings.
        """

        def create(client: MilvusClient) -> None:
            if client.has_collection(collection, timeout=self._timeout):
                return
            from pymilvus import DataType

            schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
            schema.add_field("key", DataType.VARCHAR, max_length=32, is_primary=True)
            schema.add_field("id", DataType.VARCHAR, max_length=_MAX_ID_BYTES)
            numbers = {"element_type": DataType.INT64, "max_capacity": _MAX_VALUES}
            schema.add_field("tags", DataType.ARRAY, **numbers)
            add_fields(schema, DataType)
            indexes, (field, kind, params) = client.prepare_index_params(), index
            indexes.add_index(field, index_type=kind, metric_type="IP", params=params)
            settings = {"consistency_level": "Strong", "timeout": self._timeout}
            client.create_collection(collection, schema=schema, index_params=indexes, **settings)

        self._call_for(collection, create)

    def drop(self, collection: str) -> None:
        """Remove a collection."""

        def drop(client: MilvusClient) -> None:
            if client.has_collection(collection, timeout=self._timeout):
                client.drop_collection(collection, timeout=self._timeout)

        self._call_for(collection, drop)

    def version_token(self, collection: str) -> str | None:
        """Return the token, which is a row."""

        def read(client: MilvusClient) -> str | None:
            if not client.has_collection(collection, timeout=self._timeout):
                return None
            rows = client.query(
                collection,
                filter=f'key == "{_TOKEN_KEY}"',
                output_fields=["id"],
                **self._seeing(0),
            )
            return str(rows[0]["id"]) if rows else None

        return self._call_for(collection, read)

    def set_version_token(self, collection: str, token: str) -> int:
        """Store the token, and return the server's time of that.

        After many writes, of this process or of others, a server is told to index them, and where
        it has a graph of vectors this waits until it searches by that: until then it searches by
        an index of its own that misses one of ten. A file, which compares row by row, is told,
        too. The mark's place is the number of rows that were written since.
        """

        def write(client: MilvusClient) -> int:
            fields = client.describe_collection(collection, timeout=self._timeout)["fields"]
            (field,) = (field for field in fields if field["name"] in ("vector", "words"))
            new = self._unflushed[collection]
            row: dict[str, Any] = {"key": _TOKEN_KEY, "id": token, "tags": []}
            if field["name"] == "words":
                row["words"] = {0: 1.0}  # the numbers of terms begin with 1
            else:
                row["vector"] = [0.0] * int(field["params"]["dim"])
                new += self._unflushed_before(client, collection)
            if self._is_lite and new >= _UNFLUSHED_LITE:
                client.flush(collection, timeout=_FLUSHING)
                new = 0
            elif new >= _UNFLUSHED:
                new = 0 if self._index(client, collection) else new
            if "vector" in row:
                row["place"] = new
            position = self._upsert(client, collection, [row])
            self._unflushed[collection] = 0 if "vector" in row else new
            return position

        return self._call_for(collection, write)

    def _unflushed_before(self, client: MilvusClient, collection: str) -> int:
        """Return how many rows were not indexed when the token was written last."""
        settings = {"consistency_level": "Eventually", "timeout": self._timeout}
        condition = f'key == "{_TOKEN_KEY}"'
        rows = client.query(collection, filter=condition, output_fields=["place"], **settings)
        return int(rows[0]["place"]) if rows else 0

    def _index(self, client: MilvusClient, collection: str) -> bool:
        """Have a server index all rows; return whether it searches by that index now.

        Without a graph of vectors there is no index to wait for; what was flushed is what a server
        that was killed need not read again from its log.
        """
        client.flush(collection, timeout=_FLUSHING)
        if not self._has_hnsw(client, collection):
            return True
        end = time.monotonic() + _FLUSHING
        while pending := self._unindexed(client, collection):
            if time.monotonic() > end:
                logger.warning(
                    "%s has not indexed %s vectors within %s seconds, and searches them by an "
                    "index that may miss one of ten; the next update waits again. Give its index "
                    "node more cores, or set its queryNode.segcore.interimIndex.enableIndex to "
                    "false, which is slower and misses nothing",
                    *(self.label, f"{pending:,}", _FLUSHING),
                )
                return False
            time.sleep(_PAUSE)
        client.refresh_load(collection, timeout=_FLUSHING)
        return True

    def _has_hnsw(self, client: MilvusClient, collection: str) -> bool:
        """Return whether HNSW is searched; it stays so as long as there is a collection."""
        has_hnsw = self._hnsw_by_collection.get(collection)
        if has_hnsw is None:
            index = client.describe_index(collection, "vector", timeout=self._timeout)
            has_hnsw = self._hnsw_by_collection[collection] = index["index_type"] == "HNSW"
        return has_hnsw

    def _unindexed(self, client: MilvusClient, collection: str) -> int:
        """Return how many flushed vectors have no index yet."""
        index = client.describe_index(collection, "vector", timeout=self._timeout)
        return int(index["pending_index_rows"])

    def _upsert(self, client: MilvusClient, collection: str, rows: list[dict[str, Any]]) -> int:
        result = client._get_connection().upsert_rows(collection, rows, timeout=self._timeout)
        return int(result.timestamp)

    # Rows

    def put(self, collection: str, rows: Sequence[EngineRow]) -> None:
        """Insert or replace rows.

        Raises:
            StoreError: If an id is too long, or a node has too many fields.
        """
        for row in rows:
            if len(row.id) > _MAX_ID_BYTES:
                raise StoreError(
                    f"{self.label} stores ids of up to {_MAX_ID_BYTES:,} bytes; {row.id!r:.80} has "
                    f"{len(row.id):,}"
                )
            self._check_values(row.value_ids)
        data = [
            {
                "key": row.key,
                "id": row.id,
                "place": row.order,
                "tags": [*row.value_ids],
                "vector": _padded(row.vector),
            }
            for row in rows
        ]
        self._call_for(collection, lambda client: self._upsert(client, collection, data))
        self._unflushed[collection] += len(data)

    def _check_values(self, value_ids: Sequence[int]) -> None:
        if len(value_ids) > _MAX_VALUES:
            raise StoreError(
                f"{self.label} stores {_MAX_VALUES:,} metadata fields of a node, and one has "
                f"{len(value_ids):,}"
            )

    def delete(self, collection: str, keys: Sequence[str]) -> None:
        """Delete rows."""
        if keys:
            condition = f"key in {_texts(keys)}"
            self._call_for(
                collection,
                lambda client: client.delete(collection, filter=condition, timeout=self._timeout),
            )

    def count(self, collection: str, match: ValueMatch | None, position: int) -> int:
        """Return how many rows match."""
        return self._count(collection, _conditions(match), position)

    def _count(self, collection: str, conditions: Sequence[str], position: int) -> int:
        rows = self._call_for(
            collection,
            lambda client: client.query(
                collection,
                filter=_joined("and", [f'key != "{_TOKEN_KEY}"', *conditions]),
                output_fields=["count(*)"],
                **self._seeing(position),
            ),
        )
        return int(rows[0]["count(*)"])

    def nearest(
        self, collection: str, query: Vectors, limit: int, selection: RowSelection, exact: bool
    ) -> Nearest:
        """Return the nearest rows.

        Where its graph leads to fewer than there are, as it may under a condition, a 32nd of the
        rows is searched at a time: of so few Milvus compares all (where a condition leaves less
        than 7 % of a segment, in 2.3).
        """
        conditions, position = _conditions(selection.match, selection.without), selection.position
        ef_search = max(_MAX_EF_SEARCH if exact else EF_SEARCH, limit + 1)
        hits = self._search(collection, query, limit + 1, conditions, ef_search, position)
        rows = [hit["entity"] for hit in hits if hit["entity"]["key"] != _TOKEN_KEY][:limit]
        if (
            exact
            and len(rows) < limit
            and self._misses(collection, len(rows), conditions, position)
        ):
            hits = []
            for part in _PARTS:
                of_part = [*conditions, part]
                hits += self._search(collection, query, limit, of_part, ef_search, position)
                hits = sorted(hits, key=lambda hit: -float(hit["distance"]))[:limit]
            rows = [hit["entity"] for hit in hits]
        ids, orders = [row["id"] for row in rows], [row["place"] for row in rows]
        return nearest_of(ids, orders, [row["vector"] for row in rows], len(query))

    def _misses(
        self, collection: str, found: int, conditions: Sequence[str], position: int
    ) -> bool:
        """Return whether more rows meet conditions than a graph has led to."""
        if not self._call_for(collection, lambda client: self._has_hnsw(client, collection)):
            return False
        return self._count(collection, conditions, position) > found

    def _search(
        self,
        collection: str,
        query: Vectors,
        limit: int,
        conditions: Sequence[str],
        ef_search: int,
        position: int,
    ) -> list[dict[str, Any]]:
        matches: list[list[dict[str, Any]]] = self._call_for(
            collection,
            lambda client: client.search(
                collection,
                data=[_padded(query)],
                limit=limit,
                filter=_joined("and", conditions),
                output_fields=["key", "id", "place", "vector"],
                search_params={"metric_type": "IP", "params": {"ef": ef_search}},
                **self._seeing(position),
            ),
        )
        return matches[0]

    def rows(
        self, collection: str, match: ValueMatch | None, position: int
    ) -> Iterator[Sequence[EngineRow]]:
        """Yield all rows that match, by the first digits of their keys."""
        prefixes, count = [""], self.count(collection, match, position)
        while count > _BATCH_SIZE * len(prefixes):
            prefixes = [prefix + digit for prefix in prefixes for digit in _DIGITS]
        conditions = [f'key != "{_TOKEN_KEY}"', *_conditions(match)]

        def read(prefix: str) -> list[dict[str, Any]]:
            return self._call_for(
                collection,
                lambda client: client.query(
                    collection,
                    filter=_joined("and", [*conditions, *_with_prefix(prefix)]),
                    output_fields=["key", "id", "place", "tags", "vector"],
                    limit=_MAX_RESULTS,
                    **self._seeing(position),
                ),
            )

        import numpy as np

        for matches in _by_prefix(read, prefixes):
            yield [
                EngineRow(
                    *(row["key"], row["id"], int(row["place"]), [*map(int, row["tags"])]),
                    np.asarray(row["vector"], np.float32),
                )
                for row in matches
            ]

    # Words

    @property
    def searches_words(self) -> bool:
        """Whether the address leaves words to Milvus, and it has sparse vectors.

        Raises:
            StoreError: If the address says that words are searched here, and the server can't.
        """
        address = self._address
        if address.settings["words"] == "memory" or address.is_file:
            return address.settings["words"] != "memory"
        self._call_for("", lambda client: client)
        if self._version >= _WITH_WORDS:
            return True
        version, needed = (".".join(map(str, item)) for item in (self._version, _WITH_WORDS))
        if address.settings["words"] == "milvus":
            raise StoreError(
                f"{self.label} has the version {version}; words need {needed} or later: upgrade "
                "the server, or write words=memory for words in each process"
            )
        if not self._has_warned:
            self._has_warned = True
            logger.warning(
                "%s has the version %s: each process searches words itself, by an index in its "
                "memory; from %s on they are searched there",
                *(self.label, version, needed),
            )
        return False

    def create_words(self, collection: str) -> None:
        """Make a collection of words."""
        self._create(
            collection,
            lambda schema, kinds: schema.add_field("words", kinds.SPARSE_FLOAT_VECTOR),
            ("words", "SPARSE_INVERTED_INDEX", {}),
        )

    def put_words(self, collection: str, rows: Sequence[WordRow]) -> None:
        """Insert or replace rows.

        Raises:
            StoreError: If a node has too many metadata fields.
        """
        data: list[dict[str, Any]] = []
        for row in rows:
            self._check_values(row.value_ids)
            words = dict(zip(row.terms.tolist(), row.impacts.tolist(), strict=True))
            data.append({"key": row.key, "id": "", "tags": [*row.value_ids], "words": words})
        self._call_for(collection, lambda client: self._upsert(client, collection, data))
        if self._is_lite:
            self._unflushed[collection] += len(data)

    def search_words(
        self,
        collection: str,
        query: Mapping[int, float],
        limit: int | None,
        selection: RowSelection,
    ) -> WordHits:
        """Return the rows with the highest sums."""
        conditions = _conditions(selection.match, selection.without)

        def search(prefix: str) -> list[dict[str, Any]]:
            matches: list[list[dict[str, Any]]] = self._call_for(
                collection,
                lambda client: client.search(
                    collection,
                    data=[dict(query)],
                    anns_field="words",
                    limit=_MAX_RESULTS if limit is None else limit,
                    filter=_joined("and", [*conditions, *_with_prefix(prefix)]),
                    output_fields=["key"],
                    search_params={"metric_type": "IP", "params": {}},
                    **self._seeing(selection.position),
                ),
            )
            return matches[0]

        parts = _by_prefix(search, [""]) if limit is None else [search("")]
        hits = [hit for part in parts for hit in part]
        keys = [hit["entity"]["key"] for hit in hits]
        return WordHits(keys, [float(hit["distance"]) for hit in hits])

    # The client

    def _seeing(self, position: int) -> dict[str, Any]:
        """Return what lets a search see what was written up to a time of the server."""
        settings: dict[str, Any] = {"consistency_level": "Strong", "timeout": self._timeout}
        if self._address.is_file:  # which has no time, and where all is seen at once
            settings["consistency_level"] = "Eventually"
        elif position:
            settings |= {"consistency_level": "Customized", "guarantee_timestamp": position}
        return settings

    def _disconnect(self, client: MilvusClient) -> None:
        client.close()

    def _connect(self) -> MilvusClient:
        with extra("milvus", "pymilvus"):
            from pymilvus import MilvusClient
        for name in _LOGGERS:
            logging.getLogger(name).addFilter(_is_others)  # once, however often
        address = self._address
        client = MilvusClient(
            address.uri,
            token=address.token,
            db_name=address.settings["database"],
            timeout=address.timeout,
        )
        if not address.is_file:
            version = client.get_server_version(timeout=address.timeout)
            self._is_lite = version.startswith("milvus_lite")  # wheels of servers end in "-lite"
            numbers = re.match(r"v?(\d+)\.(\d+)\.(\d+)", version)
            major, minor, patch = map(int, numbers.groups()) if numbers else _WITH_WORDS
            self._version = major, minor, patch
            if self._version < _MIN_VERSION:
                client.close()
                raise StoreError(
                    f"{self.label} has the version {version}; an index needs "
                    f"{'.'.join(map(str, _MIN_VERSION))} or later: upgrade the server"
                )
        return client

    def _call_for(self, collection: str, work: Callable[[MilvusClient], T]) -> T:
        """Return what the client does with a collection, with its errors in words."""

        def attempt(client: MilvusClient) -> T:
            try:
                return work(client)
            except Exception as error:
                if getattr(error, "code", None) != _NOT_LOADED:
                    raise
                client.load_collection(collection, timeout=self._timeout)
                return work(client)

        _calling.depth += 1
        try:
            return self._call(attempt)
        finally:
            _calling.depth -= 1

    def _explained(self, error: Exception) -> StoreError:
        code = getattr(error, "code", None)
        message = " ".join(str(getattr(error, "message", "") or error).split())[:300]
        if code == _NOT_FOUND or ("not found" in message and "collection" in message):
            return MissingCollectionError(f"{self.label} has lost a collection: {message}")
        if self._address.is_file:
            remedy = (
                "see whether milvus-lite is installed (pip install milvus-lite), the folder "
                "exists, and no other process uses the file: several need a server"
            )
        else:
            remedy = (
                "see whether the server runs and has room, and whether the address, user and "
                "password are right"
            )
        explained = (
            f"{self.label} can't be reached, or failed: {message}; {remedy}. Whatever is no search "
            "goes on without it, and so do searches by words where the address has words=memory"
        )
        if code in _FOR_GOOD or getattr(error, "is_input_error", False):
            return StoreError(explained)
        return EngineUnavailableError(explained)


def _by_prefix(
    read: Callable[[str], list[dict[str, Any]]], prefixes: Sequence[str]
) -> Iterator[list[dict[str, Any]]]:
    """Yield rows by the first digits of their keys, by more where Milvus would not return all."""
    remaining = [*prefixes]
    while remaining:
        prefix = remaining.pop()
        rows = read(prefix)
        if len(rows) < _MAX_RESULTS:
            yield rows
        else:
            remaining += [prefix + digit for digit in _DIGITS]


def _with_prefix(prefix: str) -> list[str]:
    return [f'key like "{prefix}%"'] if prefix else []


def _texts(keys: Collection[str]) -> str:
    return json.dumps([*keys])


def _conditions(match: ValueMatch | None, without: Collection[str] = ()) -> list[str]:
    conditions = [] if match is None else [_condition(match)]
    return [*conditions, f"key not in {_texts(without)}"] if without else conditions


def _condition(match: ValueMatch) -> str:
    """Return what selects rows in Milvus's language."""
    if match.join == "values":
        if not match.value_ids:
            return f'(key == "{_TOKEN_KEY}")'  # none
        return f"array_contains_any(tags, {[*match.value_ids]})"
    parts = [_condition(part) for part in match.parts]
    return f"(not ({parts[0]}))" if match.join == "not" else f"({_joined(match.join, parts)})"


def _joined(join: str, conditions: Sequence[str]) -> str:
    return f" {join} ".join(conditions)


def _padded(vector: Vectors) -> list[float]:
    """Return a vector as a list; Milvus has none of one number."""
    numbers: list[float] = vector.tolist()
    return numbers if len(numbers) > 1 else [*numbers, 0.0]
