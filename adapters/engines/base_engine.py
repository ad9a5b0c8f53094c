"""What all engines share: their tables of vectors and words, connecting at first use, pickling."""

from __future__ import annotations

import logging
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from secrets import token_hex
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, cast
from urllib.parse import parse_qsl, unquote, urlsplit

from ...nodegraph.errors import StoreError, TransientStoreError, nearest_names
from ...nodegraph.locking import Lock
from ...nodegraph.search_tables import Nearest, ValueMatch, VectorRow
from ...nodegraph.store import NodeStore
from .engine_table import (
    BATCH,
    EngineCollection,
    EngineTable,
    TableRecord,
    delete_unused,
    drop_outdated,
    from_ascii,
    key_of,
    to_ascii,
)
from .engine_words import EngineWords
from .index_engine import (
    EngineRow,
    IndexEngine,
    MissingCollectionError,
    RowSelection,
    WordEngine,
    nearest_of,
)

if TYPE_CHECKING:
    from typing_extensions import Self

    from ...nodegraph.search_tables import Vectors


_log = logging.getLogger(__name__)

_TIMES = 3  # how often reading all rows is begun again


class EngineVectors(EngineTable[VectorRow, IndexEngine]):
    """Search the vectors of one group in an engine beside the store; see ``EngineTable``."""

    what: ClassVar[str] = "vectors"

    def dimension(self) -> int:
        """Return how many numbers the vectors have of the collection that is being filled."""
        building = self._record().building
        return building.dimension if building else 0

    def ids(self) -> Iterator[str]:
        """Yield the ids of all rows of the collection that is being filled; some twice, maybe."""
        building = self._record().building
        if building is not None:
            try:
                for rows in self._all_rows(building):
                    yield from (from_ascii(row.id) for row in rows)
            except MissingCollectionError:
                self._put(replace(self._record(), building=None))

    # Writing

    def _created(self, rows: Sequence[VectorRow]) -> EngineCollection:
        return self._make(len(rows[0].vector), self._store.count(self._group))

    def _make(self, dimension: int, size: int) -> EngineCollection:
        name = self._new_name()
        limit = self._engine.hnsw_from
        has_hnsw = limit is not None and size >= limit
        self._call(lambda: self._engine.create(name, dimension, has_hnsw=has_hnsw))
        return EngineCollection(name, dimension, has_hnsw)

    def _completed(self, collection: EngineCollection, token: str) -> EngineCollection:
        """Return a collection as it is after the last write."""
        position = self._call(lambda: self._engine.set_version_token(collection.name, token))
        size = self._call(lambda: self._engine.count(collection.name, None, position))
        return replace(collection, version_token=token, position=position, size=size)

    def _has_all(self, collection: EngineCollection) -> bool:
        return collection.size == self._call(
            partial(self._engine.count, collection.name, None, collection.position)
        )

    def _is_complete(self, collection: EngineCollection, revision: int) -> bool:
        expected = self._store.count(self._group)
        if collection.size == expected or self._store.revision(self._group) != revision:
            return True
        _log.warning(
            "%s has %s vectors of group %r in place of %s, and gets all of them again",
            *(self._engine.label, f"{collection.size:,}", self._group, f"{expected:,}"),
        )
        return False

    def _change(
        self, collection: EngineCollection, removed: Collection[str], rows: Sequence[VectorRow]
    ) -> None:
        new: dict[str, EngineRow] = {}
        for row, value_ids in zip(rows, self._numbers.assign(rows), strict=True):
            key = key_of(row.id)
            new[key] = EngineRow(key, to_ascii(row.id), row.order, value_ids, row.vector)
        removed_keys = [key for key in map(key_of, removed) if key not in new]
        self._delete(collection, removed_keys)
        put = list(new.values())
        for start in range(0, len(put), BATCH):
            self._call(partial(self._engine.put, collection.name, put[start : start + BATCH]))

    def build_hnsw(self) -> None:
        """Make a collection that has become large anew, with a graph of its vectors."""
        if not self._wants_hnsw(self._record()):
            return
        with self.updating(wait=False) as free:
            record = self._record()
            old = record.collection
            if not free or old is None or record.target or not self._wants_hnsw(record):
                return
            self._drop(record.building)
            new = self._make(old.dimension, old.size)
            record = replace(record, building=new)
            self._put(record)
            for rows in self._all_rows(old):
                self._call(partial(self._engine.put, new.name, rows))
            new = self._completed(new, token_hex(8))
            self._own_record()
            self._put(replace(record, collection=new, building=None))
            self._drop(old)

    def _all_rows(self, collection: EngineCollection) -> Iterator[Sequence[EngineRow]]:
        """Yield all rows; from the first on again where the engine failed meanwhile."""
        name, position = collection.name, collection.position
        for _ in range(_TIMES):
            try:
                yield from self._engine.rows(name, None, position)
                return
            except TransientStoreError:
                self._call(
                    partial(self._engine.version_token, name)
                )  # which waits until it answers
        yield from self._engine.rows(name, None, position)

    def _wants_hnsw(self, record: TableRecord) -> bool:
        limit, collection = self._engine.hnsw_from, record.collection
        if limit is None or collection is None or record.state is None:
            return False
        return not collection.has_hnsw and collection.size >= limit

    # Searching

    def count(self, match: ValueMatch, most: int) -> int:
        """Return how many rows match."""
        collection = self._searched()
        count = partial(self._engine.count, collection.name, match, collection.position)
        return min(most, self._read(count))

    def nearest(
        self,
        query: Vectors,
        limit: int | None,
        match: ValueMatch | None,
        without: Collection[str],
        exact: bool,
    ) -> Iterator[Nearest]:
        """Yield the rows with the highest product with a query."""
        collection, engine = self._searched(), self._engine
        removed_keys = [*map(key_of, without)]
        if limit is not None and limit <= engine.max_results:
            selection = RowSelection(match, removed_keys, collection.position)
            search = partial(engine.nearest, collection.name, query, limit, selection, exact)
            rows = self._read(search)
            yield rows._replace(ids=[*map(from_ascii, rows.ids)])
            return
        excluded = frozenset(removed_keys)

        def batches() -> list[Nearest]:
            stored: list[Nearest] = []
            for part in engine.rows(collection.name, match, collection.position):
                rows = [row for row in part if row.key not in excluded]
                ids, orders = [from_ascii(row.id) for row in rows], [row.order for row in rows]
                stored.append(nearest_of(ids, orders, [row.vector for row in rows], len(query)))
            return stored

        yield from self._read(batches)


class BaseEngine:
    """Give tables to an engine that has the methods of ``IndexEngine``, or of ``WordEngine``."""

    searches_words: Any = False
    """Whether it has words, too; else each process searches them."""

    def vector_table(self: IndexEngine, store: NodeStore, group: str, *names: str) -> EngineVectors:
        """Return the table of the vectors of a group; see ``SearchEngine``."""
        return EngineVectors(store, self, group, *names)

    def word_table(self, store: NodeStore, group: str, *names: str) -> EngineWords | None:
        """Return the table of the words of a group; None where each process searches them."""
        if not self.searches_words:
            return None
        return EngineWords(store, cast("WordEngine", self), group, *names)

    def compact(self: IndexEngine, store: NodeStore) -> None:
        """Drop what is outdated in the engine, and what the store has of collections that are gone.

        An engine that can't be reached keeps it until the next time.
        """
        drop_outdated(store, self)
        delete_unused(store)


@dataclass(frozen=True, slots=True)
class EngineAddress:
    """The address of an engine: ``kind://user:password@host:port?name=value``.

    A subclass says what its engine is called and takes, and gives the settings their types.

    Attributes:
        host: The server; empty for what this process opens itself.
        port: Its port.
        netloc: Both as a URL has them: ``[::1]:9200``.
        user: The user.
        password: The password.
        path: Of a file or folder that this process opens; empty for a server.
        settings: The parameters, and the defaults of those that are not there.
    """

    host: str
    port: int
    netloc: str
    user: str
    password: str
    path: str
    settings: Mapping[str, str]

    engine: ClassVar[str]
    """The engine's name; in small letters what its addresses begin with."""

    default_port: ClassVar[int]
    """The port of an address without one."""

    defaults: ClassVar[Mapping[str, str]] = {}
    """The parameters that it takes, with their defaults."""

    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {"secure": ("true", "false")}
    """The values that parameters may have."""

    local: ClassVar[tuple[str, str]] = ("", "")
    """What this process can open itself, like ``"file"``, with an example of its path."""

    @classmethod
    def parse(cls, address: str) -> Self:
        """Read an address. Neither a password nor a token is ever in a message.

        Raises:
            ValueError: If it is no such address.
        """
        engine, kind, (local, local_path) = cls.engine, cls.engine.lower(), cls.local
        parts = urlsplit(address)
        server = f"'{kind}://host:{cls.default_port}'"
        behind = parts.path + parts.query + parts.fragment
        try:
            port = parts.port or cls.default_port
        except ValueError:  # which has the text in its message: of a password, where that has a /
            port = 0
        if not port or ("@" in behind and "@" not in parts.netloc and ":" in parts.netloc):
            raise ValueError(
                f"the port of {engine}'s address is no number up to 65,535; write {server}, and "
                "the characters / ? # of a password as %2F, %3F, %23"
            )
        settings = dict(cls.defaults)
        for name, value in parse_qsl(parts.query, keep_blank_values=True):
            if name not in settings:
                raise ValueError(
                    f"the address of {engine} has the parameter {name!r:.80}; it takes "
                    f"{nearest_names(name, settings)}"
                )
            settings[name] = value
            if value not in (allowed := cls.choices.get(name, (value,))):
                raise ValueError(f"{name}={value!r:.40} is neither {' nor '.join(allowed)}")
        if not _is_time(time := settings.get("timeout", "1")):
            raise ValueError(f"timeout={time!r:.40} is no number of seconds above 0")
        host, path = parts.hostname or "", parts.path
        if parts.scheme != kind or not (host or (local and path.strip("/"))):
            name = local_path.rpartition("/")[2]
            other = f", or a {local}, '{kind}:///{local_path}' or '{kind}:{name}'" if local else ""
            raise ValueError(f"the address of {engine} names a server, {server}{other}")
        if host and path.strip("/"):
            another = f", or three slashes for a {local}" if local else ""
            raise ValueError(
                f"the address of {engine} has a path, {path!r:.80}, after a host; write parameters "
                f"as ?name=value{another}"
            )
        netloc = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        user, password = unquote(parts.username or ""), unquote(parts.password or "")
        parsed = cls(host, port, netloc, user, password, "" if host else unquote(path), settings)
        parsed.check()
        return parsed

    def check(self) -> None:
        """Raise ``ValueError`` where the parts don't fit each other; nothing by default."""

    @property
    def label(self) -> str:
        """The address without a password."""
        if self.path:
            return f"{self.engine} in {self.path}"
        return f"{self.engine} at {self.engine.lower()}://{self.netloc}"

    @property
    def secure(self) -> bool:
        """Whether the server is reached by TLS."""
        return self.settings["secure"] == "true"

    @property
    def timeout(self) -> float:
        """Seconds to wait for an answer."""
        return float(self.settings["timeout"])


def _is_time(text: str) -> bool:
    try:
        return 0 < float(text) < math.inf
    except ValueError:
        return False


AddressT = TypeVar("AddressT", bound=EngineAddress)

ClientT = TypeVar("ClientT")

T = TypeVar("T")


class ConnectedEngine(BaseEngine, ABC, Generic[AddressT, ClientT]):
    """Connect to an address when it is first used, and again after ``close`` or unpickling.

    Args:
        address: The address, as users write it.
        parsed: The same, read.
    """

    def __init__(self, address: str, parsed: AddressT) -> None:
        self.address = address
        self._address = parsed
        self._set_up()

    def _set_up(self) -> None:
        """Set what is not pickled."""
        self._connecting = Lock("another thread that connects")
        self._client: ClientT | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"address": self.address, "_address": self._address}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._set_up()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.label!r})"

    @property
    def label(self) -> str:
        """What messages call it."""
        return self._address.label

    @abstractmethod
    def _connect(self) -> ClientT:
        """Return a new client.

        Raises:
            ImportError: If the client is not installed.
            StoreError: If the server is too old, or of another kind.
        """

    @abstractmethod
    def _disconnect(self, client: ClientT) -> None:
        """Close a client."""

    def _connected(self) -> ClientT:
        with self._connecting.held():
            if self._client is None:
                self._client = self._connect()
            return self._client

    def _call(self, work: Callable[[ClientT], T]) -> T:
        """Return what the client does, with its errors in words."""
        try:
            return work(self._connected())
        except (ImportError, StoreError):
            raise
        except Exception as error:
            raise self._explained(error) from error

    @abstractmethod
    def _explained(self, error: Exception) -> StoreError:
        """Return what an error of the client means, and what to do."""

    def close(self) -> None:
        """Close connections; the next use opens them again."""
        with self._connecting.held():
            client, self._client = self._client, None
        if client is not None:
            self._disconnect(client)
