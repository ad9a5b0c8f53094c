"""OpenSearch: vectors by its k-NN plugin, words by its features."""

from __future__ import annotations

import base64
import json
import logging
import math
import random
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar
from urllib.parse import urlsplit

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
    from typing_extensions import Self

    from ...nodegraph.search_tables import Vectors

T = TypeVar("T")

_MIN_VERSION = (2, 9)  # version: the first whose Faiss has filters within the search

_NEWEST = 3  # major version that this was written for

_MAX_RESULTS = 10_000  # rows that a search returns: index.max_result_window, and the most of "k"

_FEW = 1_000  # results up to which what a condition leaves is compared

_BATCH_SIZE = 1_000  # rows that are read at once

_MAX_TERMS_QUERY = 65_536  # of a "terms" query: index.max_terms_count

_MAX_TERMS = 512  # of a query, which may have 1,024 parts with its conditions

_MAX_DIMENSION = 16_000

_MAX_REQUEST_BYTES = 5_000_000  # bytes of a bulk request, unless the server wants less

_UNSEARCHED = {"index": False, "doc_values": False}

_TOKEN_KEY = "mark"  # the id of the document that has the token of a collection

_FIELDS = ["key", "id", "place", "packed"]  # that are returned: never "vector", which is longer

_OF_NO_PLUGIN = ("unknown setting [index.knn", "No handler for type [knn_", "lang not supported")

_BUSY = frozenset({429, 500, 502, 503, 504})

_PATIENCE = 30  # seconds of waiting for a server that is too busy to write

_MAX_WAIT = 10  # seconds that a server may want to be left alone

_LONG = 12  # how much longer than other requests a refresh may take, which builds graphs

logger = logging.getLogger(__name__)


class OpenSearchAddress(EngineAddress):
    """``opensearch://user:password@host:9200,host:9200?prefix=name&secure=true``.

    Further parameters are ``timeout=10``, ``ca=/path/to/authorities.pem``, ``verify=false`` for
    certificates that are not checked, and ``words=memory``, by which each process searches words
    itself.
    """

    engine = "OpenSearch"
    default_port = 9_200
    defaults: ClassVar[Mapping[str, str]] = {
        "prefix": "",
        "secure": "false",
        "timeout": "10",
        "ca": "",
        "verify": "true",
        "words": "opensearch",
    }
    choices: ClassVar[Mapping[str, tuple[str, ...]]] = {
        **EngineAddress.choices,
        "verify": ("true", "false"),
        "words": ("opensearch", "memory"),
    }

    @classmethod
    def parse(cls, address: str) -> Self:
        """Read an address with several servers.

        Raises:
            ValueError: If it is no such address.
        """
        parts = urlsplit(address)
        user, at, listed = parts.netloc.rpartition("@")
        nodes = [
            super(OpenSearchAddress, cls).parse(parts._replace(netloc=f"{user}{at}{node}").geturl())
            for node in listed.split(",")
        ]
        return replace(nodes[0], netloc=",".join(sorted(node.netloc for node in nodes)))

    def check(self) -> None:
        """Refuse settings of certificates without any, and prefixes that are none."""
        if not self.secure and (self.settings["ca"] or not self.verify):
            raise ValueError("ca= and verify= are about certificates; write secure=true, too")
        if not re.fullmatch(r"([a-z0-9][a-z0-9_.-]{0,99})?", self.prefix):
            raise ValueError(
                f"prefix={self.prefix!r:.40} begins no name of an index: write small letters, "
                "digits, '_', '-' and '.', up to 100"
            )

    @property
    def hosts(self) -> list[tuple[str, int]]:
        """Names and ports of its nodes."""
        nodes = [node.rpartition(":") for node in self.netloc.split(",")]
        return [(host.strip("[]"), int(port)) for host, _, port in nodes]

    @property
    def prefix(self) -> str:
        """What the names of its indexes begin with."""
        return self.settings["prefix"]

    @property
    def verify(self) -> bool:
        """Whether certificates are checked."""
        return self.settings["verify"] == "true"

    @property
    def words(self) -> bool:
        """Whether words are searched here, too; else in each process."""
        return self.settings["words"] == "opensearch"

    @property
    def label(self) -> str:
        """The address without a password."""
        return super().label + (f"?prefix={self.prefix}" if self.prefix else "")


class OpenSearchEngine(ConnectedEngine[OpenSearchAddress, Any]):
    """Search vectors and words in OpenSearch; tested against a double, never on a real server.

    Vectors are searched up to 10,000 by comparing all, above by HNSW, words by an inverted file of
    features, which finds all candidates. It needs OpenSearch 2.9 or later, with the k-NN plugin
    for vectors.

    Args:
        address: See ``OpenSearchAddress``.

    Raises:
        ValueError: If it is no such address.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> engine = OpenSearchEngine("opensearch://db:9200?prefix=handbook_")
        >>> graph = NodeGraph(index=engine)  # connects when it searches
    """

    max_results = _MAX_RESULTS
    hnsw_from = HNSW_FROM

    def __init__(self, address: str) -> None:
        super().__init__(address, OpenSearchAddress.parse(address))

    def _set_up(self) -> None:
        super()._set_up()
        self._hnsw_by_collection: dict[str, bool] = {}
        self._longest = _MAX_REQUEST_BYTES

    # Collections: indexes, each behind an alias, as only writes to an alias make no new index

    def _alias(self, collection: str) -> str:
        return self._address.prefix + collection

    def _index(self, collection: str) -> str:
        return f"{self._alias(collection)}_rows"

    def create(self, collection: str, dimension: int, *, has_hnsw: bool) -> None:
        """Make a collection.

        Raises:
            StoreError: If the vectors are too long, or the server lacks the k-NN plugin.
        """
        if dimension > _MAX_DIMENSION:
            raise StoreError(
                f"{self.label} stores vectors of up to {_MAX_DIMENSION:,} numbers, and the "
                f"embedding model makes {dimension:,}; open the graph without index="
            )
        vector: dict[str, Any] = {"type": "knn_vector", "dimension": dimension}
        settings: dict[str, Any] = {}
        if has_hnsw:
            settings = {"knn": True, "knn.algo_param.ef_search": EF_SEARCH}
            parameters = {"m": M, "ef_construction": EF_CONSTRUCTION}
            method = {"name": "hnsw", "engine": "faiss", "space_type": "innerproduct"}
            vector["method"] = {**method, "parameters": parameters}
        fields = {
            "place": {"type": "long", **_UNSEARCHED},
            "packed": {"type": "binary"},
            "vector": vector,
        }
        self._create(collection, settings, fields, has_hnsw)

    def _create(
        self, collection: str, settings: dict[str, Any], fields: dict[str, Any], has_hnsw: bool
    ) -> None:
        """Make an index of rows with some fields beside those that all have."""
        # What is written is seen by "_refresh" alone, on every copy: segments that are copied
        # later would be stale.
        index_settings = {"refresh_interval": "-1", "replication.type": "DOCUMENT", **settings}
        keyword = {"type": "keyword"}
        every = {"key": keyword, "id": {**keyword, **_UNSEARCHED}, "tags": keyword, **fields}
        body = {
            "settings": {"index": index_settings},
            "mappings": {"dynamic": "strict", "_meta": {"has_hnsw": has_hnsw}, "properties": every},
            "aliases": {self._alias(collection): {}},
        }

        def create(client: Any) -> None:
            try:
                client.indices.create(index=self._index(collection), body=body)
            except Exception as error:
                if _cause(error)[0] != "resource_already_exists_exception":
                    raise

        self._call(create)

    def drop(self, collection: str) -> None:
        """Remove a collection."""
        name, settings = self._index(collection), {"ignore_unavailable": "true"}
        self._hnsw_by_collection.pop(collection, None)
        self._call(lambda client: client.indices.delete(index=name, params=settings))

    def version_token(self, collection: str) -> str | None:
        """Return the token, which is a document."""
        matches = self._call(
            lambda client: client.get(index=self._alias(collection), id=_TOKEN_KEY, ignore=404)
        )
        return str(matches["_source"]["id"]) if matches.get("found") else None

    def set_version_token(self, collection: str, token: str) -> int:
        """Store the token, and let all searches see what has been written."""
        line = json.dumps({"index": {"_id": _TOKEN_KEY}}) + "\n" + json.dumps({"id": token}) + "\n"
        (written,) = self._bulk(collection, [line])
        self._refresh(collection)
        return int(written["_seq_no"]) + 1

    def _refresh(self, collection: str) -> None:
        timeout = self._address.timeout * _LONG

        def refresh(client: Any) -> None:
            settings = {"request_timeout": timeout}
            answer = client.indices.refresh(index=self._alias(collection), params=settings)
            self._check_shards(answer)

        self._call(refresh)

    def _check_shards(self, answer: Mapping[str, Any]) -> None:
        shards = answer["_shards"]
        if shards["failed"] or answer.get("timed_out"):
            raise EngineUnavailableError(
                f"{self.label} has answered for a part of its shards only ({shards['failed']} of "
                f"{shards['total']} failed): {_reason(shards)[:300]}; see GET _cluster/health"
            )

    # Rows

    def put(self, collection: str, rows: Sequence[EngineRow]) -> None:
        """Insert or replace rows."""
        lines = {row.key: _lines(row) for row in rows}
        self._bulk(collection, [*lines.values()])

    def delete(self, collection: str, keys: Sequence[str]) -> None:
        """Delete rows."""
        self._bulk(collection, [json.dumps({"delete": {"_id": key}}) + "\n" for key in keys])

    def _bulk(self, collection: str, actions: Sequence[str]) -> list[dict[str, Any]]:
        """Do actions, each once or oftener, those again that the server was too busy for.

        Returns:
            What became of each, in any order.
        """
        results: list[dict[str, Any]] = []
        pending, waits = [[*actions]], _Waits()
        while pending:
            part, remaining = self._portion(pending.pop())
            if remaining:
                pending.append(remaining)
            if not part:
                continue
            try:
                answer = self._call(partial(self._send, collection, part), waits)
            except _TooLargeError:
                if len(part) == 1:
                    raise
                self._longest = sum(map(len, part)) // 2
                pending.append(part)
                continue
            again = []
            for action, item in zip(part, answer["items"], strict=True):
                (result,) = item.values()
                if "error" not in result:
                    results.append(result)
                    continue
                error = self._explained_answer(result["status"], result["error"], None)
                if not isinstance(error, _BusyError):
                    raise error
                again.append(action)
                busy = error
            if again:
                waits.wait(busy)
                pending.append(again)
        return results

    def _portion(self, actions: list[str]) -> tuple[list[str], list[str]]:
        """Split actions after as many as a request may have."""
        size = 0
        for at, action in enumerate(actions):
            size += len(action)
            if at and size > self._longest:
                return actions[:at], actions[at:]
        return actions, []

    def _send(self, collection: str, actions: Sequence[str], client: Any) -> Any:
        name, settings = self._alias(collection), {"require_alias": "true"}
        return client.bulk(body="".join(actions), index=name, params=settings)

    def count(self, collection: str, match: ValueMatch | None, position: int) -> int:
        """Return how many rows match."""
        self._see(collection, position)
        body = {"query": _query(match, ())}
        answer = self._call(lambda client: client.count(index=self._alias(collection), body=body))
        self._check_shards(answer)
        return int(answer["count"])

    def nearest(
        self, collection: str, query: Vectors, limit: int, selection: RowSelection, exact: bool
    ) -> Nearest:
        """Return the nearest rows."""
        match, without, position = selection
        self._see(collection, position)
        condition, numbers = _query(match, without), query.tolist()
        has_hnsw = self._has_hnsw(collection)
        if not has_hnsw or (exact and match is not None and limit <= _FEW):
            matches = {
                "script_score": {
                    "query": condition,
                    "script": {
                        "lang": "knn",
                        "source": "knn_score",
                        "params": {
                            "field": "vector",
                            "query_value": numbers,
                            "space_type": "innerproduct",
                        },
                    },
                }
            }
        else:
            followed = _MAX_RESULTS if exact else limit  # all may be too many to compare in time
            matches = {"knn": {"vector": {"vector": numbers, "k": followed, "filter": condition}}}
        body = {"size": limit, "query": matches, "_source": _FIELDS, "track_total_hits": False}
        rows = [hit["_source"] for hit in self._search(collection, body)]
        ids, orders = [row["id"] for row in rows], [row["place"] for row in rows]
        return nearest_of(ids, orders, [_unpacked(row["packed"]) for row in rows], len(query))

    def _see(self, collection: str, position: int) -> None:
        """Let searches see all writes where no position tells that they do."""
        if not position:
            self._refresh(collection)

    def _has_hnsw(self, collection: str) -> bool:
        if collection not in self._hnsw_by_collection:
            answer = self._call(
                lambda client: client.indices.get_mapping(index=self._alias(collection))
            )
            (index,) = answer.values()
            meta = index["mappings"]["_meta"]  # earlier versions wrote "linked"
            self._hnsw_by_collection[collection] = bool(meta.get("has_hnsw", meta.get("linked")))
        return self._hnsw_by_collection[collection]

    def rows(
        self, collection: str, match: ValueMatch | None, position: int
    ) -> Iterator[Sequence[EngineRow]]:
        """Yield all rows that match, in the order of their keys."""
        self._see(collection, position)
        body = {"query": _query(match, ()), "_source": [*_FIELDS, "tags"]}
        for hits in self._pages(collection, body):
            matches = [hit["_source"] for hit in hits]
            yield [
                EngineRow(
                    *(row["key"], row["id"], int(row["place"]), [*map(int, row["tags"])]),
                    _unpacked(row["packed"]),
                )
                for row in matches
            ]

    def _pages(self, collection: str, body: dict[str, Any]) -> Iterator[list[dict[str, Any]]]:
        """Yield all hits of a search in the order of their keys."""
        body = {**body, "size": _BATCH_SIZE, "sort": [{"key": "asc"}], "track_total_hits": False}
        while True:
            hits = self._search(collection, body)
            yield hits
            if len(hits) < _BATCH_SIZE:
                return
            body["search_after"] = hits[-1]["sort"]

    def _search(self, collection: str, body: dict[str, Any]) -> list[dict[str, Any]]:
        full = {"allow_partial_search_results": "false"}
        answer = self._call(
            lambda client: client.search(index=self._alias(collection), body=body, params=full)
        )
        self._check_shards(answer)
        hits: list[dict[str, Any]] = answer["hits"]["hits"]
        return hits

    # Words: impacts are features, which a query adds up

    word_slack = 1 + 2**-8  # nine bits of an impact are stored, the others cut off

    @property
    def searches_words(self) -> bool:
        """Whether the address leaves words to OpenSearch."""
        return self._address.words

    def create_words(self, collection: str) -> None:
        """Make a collection of words."""
        self._create(collection, {}, {"words": {"type": "rank_features"}}, has_hnsw=False)

    def put_words(self, collection: str, rows: Sequence[WordRow]) -> None:
        """Insert or replace rows."""
        lines = {row.key: _word_lines(row) for row in rows}
        self._bulk(collection, [*lines.values()])

    def search_words(
        self,
        collection: str,
        query: Mapping[int, float],
        limit: int | None,
        selection: RowSelection,
    ) -> WordHits:
        """Return the rows with the highest sums; of more than 512 terms by reading all rows."""
        match, without, position = selection
        self._see(collection, position)
        features = [
            {"rank_feature": {"field": f"words.{term}", "boost": weight, "linear": {}}}
            for term, weight in query.items()
        ]
        sums: dict[str, float] = {}
        for start in range(0, len(features), _MAX_TERMS):
            part = features[start : start + _MAX_TERMS]
            body = {"query": _query(match, without, part), "_source": False}
            if limit is not None and len(part) == len(features):
                top = {**body, "size": limit, "track_total_hits": False}
                pages = iter([self._search(collection, top)])
            else:
                pages = self._pages(collection, {**body, "track_scores": True})
            for hit in chain.from_iterable(pages):
                sums[hit["_id"]] = sums.get(hit["_id"], 0.0) + hit["_score"]
        keys = sorted(sums, key=sums.__getitem__, reverse=True)[:limit]
        return WordHits(keys, [sums[key] for key in keys])

    # The client

    def _disconnect(self, client: Any) -> None:
        client.close()

    def _connect(self) -> Any:
        with extra("opensearch", "opensearchpy"):
            from opensearchpy import OpenSearch
        address = self._address
        options: dict[str, Any] = {"use_ssl": address.secure}
        if address.user:  # in UTF-8, which the client would not take
            user = base64.b64encode(f"{address.user}:{address.password}".encode()).decode()
            options["headers"] = {"authorization": f"Basic {user}"}
        if address.secure:
            options |= {"verify_certs": address.verify, "ssl_show_warn": False}
            if ca := address.settings["ca"]:
                options["ca_certs"] = ca
        client = OpenSearch(
            [{"host": host, "port": port} for host, port in address.hosts],
            timeout=address.timeout,
            max_retries=len(address.hosts) - 1,  # at another node
            pool_maxsize=64,
            connection_class=_connection_class(),
            **options,
        )
        try:
            self._check_server(client.info())
        except BaseException:
            client.close()
            raise
        if not address.verify:
            logger.warning("the certificates of %s are not checked: verify=false", self.label)
        return client

    def _check_server(self, answer: Any) -> None:
        """Raise ``StoreError`` where it is no OpenSearch of a version that will do."""
        version = answer.get("version") if isinstance(answer, Mapping) else None
        if not isinstance(version, Mapping):
            raise StoreError(
                f"{self.label} is no OpenSearch: it answers {str(answer)[:80]!r}; give the address "
                "of a server's HTTP port, 9200 as a rule"
            )
        number = str(version.get("number"))
        if version.get("distribution") != "opensearch":
            raise StoreError(
                f"{self.label} is Elasticsearch {number}, whose k-NN is another; give the address "
                f"of an OpenSearch server of {'.'.join(map(str, _MIN_VERSION))} or later"
            )
        numbers = tuple(map(int, re.findall(r"\d+", number)[:2]))
        if numbers == (7, 10):  # what one says that is to look like Elasticsearch
            return
        if numbers < _MIN_VERSION:
            raise StoreError(
                f"{self.label} has the version {number}; an index needs "
                f"{'.'.join(map(str, _MIN_VERSION))} or later: upgrade the server"
            )
        if numbers[0] > _NEWEST:
            logger.warning(
                "%s has the version %s; nodekin was written for OpenSearch 2 and 3",
                *(self.label, number),
            )

    def _call(self, work: Callable[[Any], T], patient: _Waits | None = None) -> T:
        """Return what the client does, with its errors in words.

        Where the server says how long it wants to be left alone, it is, and asked again; where it
        doesn't say, if there is patience.
        """
        waits = patient or _Waits()
        while True:
            try:
                return super()._call(work)
            except _BusyError as error:
                if error.wait is None and patient is None:
                    raise
                waits.wait(error)

    def _explained(self, error: Exception) -> StoreError:
        status, wait = getattr(error, "status_code", None), None
        if isinstance(status, int):
            info = error.args[2] if len(error.args) > 2 else None
            wait = error.args[3] if len(error.args) > 3 else None
            answer = info.get("error", info) if isinstance(info, Mapping) else info
            return self._explained_answer(status, answer or error.args[1], wait)
        name, message = type(error).__name__, _short(error)
        goes_on = "Whatever is no search goes on without it"
        if self._address.words:
            goes_on += ", and so do searches by words where the address has words=memory"
        else:
            goes_on += ", and so do searches by words"
        if name == "ConnectionTimeout":
            return EngineUnavailableError(
                f"{self.label} didn't answer within {self._address.timeout:g} seconds; see whether "
                f"it is overloaded, or give it longer: ?timeout=60. {goes_on}"
            )
        if name == "SSLError":
            return StoreError(
                f"{self.label} can't be trusted: {message}; give the file of the authority that "
                "its certificate is from, ?secure=true&ca=/path/to/root-ca.pem"
            )
        if name == "ConnectionError":
            wants = "" if self._address.secure else ", and whether it wants secure=true"
            return EngineUnavailableError(
                f"{self.label} can't be reached: {message}; see whether it runs, and whether host "
                f"and port are right{wants}. {goes_on}"
            )
        return StoreError(f"{self.label} gave an answer that can't be read: {name}: {message}")

    def _explained_answer(self, status: int, error: Any, wait: float | None) -> StoreError:
        """Return what an answer with an error means, of a request or a part of one."""
        kind, reason = _cause_of(error)
        stated = f"{status} {kind}: {reason}"[:400]
        if kind == "index_not_found_exception":
            return MissingCollectionError(f"{self.label} has lost a collection: {reason}")
        if kind == "cluster_block_exception":
            return StoreError(
                f"{self.label} takes no writes: {reason}; where its disk is full, free space or "
                "add nodes: the block ends by itself then. Any other block is lifted by who set it"
            )
        if status == 413:
            return _TooLargeError(
                f"{self.label} takes no request so long ({stated}); let its "
                "http.max_content_length be more, or search with a condition that fewer values meet"
            )
        if status == 401:
            return StoreError(f"{self.label} refuses the user or password ({stated})")
        if status == 403:
            return StoreError(
                f"{self.label} doesn't allow that to the user: {reason}; it needs the rights to "
                f"create, delete, refresh, read and write indexes and aliases named "
                f"{self._address.prefix}nodekin_*, to send bulk requests, and to read the version"
            )
        if any(said_of in reason for said_of in _OF_NO_PLUGIN):
            return StoreError(
                f"{self.label} has no k-NN plugin ({stated}); install it on every node "
                "(opensearch-plugin install opensearch-knn), or run the full distribution"
            )
        if "dimension" in reason.lower():
            return StoreError(
                f"{self.label} has vectors of another length ({stated}); has the embedding model "
                "changed, and kept its name? Give it another name"
            )
        if status in _BUSY:
            return _BusyError(
                f"{self.label} is too busy, or parts of it have failed ({stated}); see GET "
                "_cluster/health, and try again",
                wait,
            )
        return StoreError(f"{self.label} refuses what it was asked: {stated}")


class _TooLargeError(StoreError):
    """A request is longer than the server takes."""


class _BusyError(EngineUnavailableError):
    """The server wants to be asked again later, in ``wait`` seconds if it says so."""

    def __init__(self, message: str, wait: float | None = None) -> None:
        super().__init__(message)
        self.wait = wait


class _Waits:
    """Waits that grow, until the patience is at an end."""

    def __init__(self) -> None:
        self._next = 0.1
        self._total = 0.0

    def wait(self, error: _BusyError) -> None:
        """Wait as long as an error says, or a while; raise it where that would be too long."""
        wait = self._next * random.uniform(0.5, 1.5) if error.wait is None else error.wait
        if wait > _MAX_WAIT or self._total + wait > _PATIENCE:
            raise error
        time.sleep(wait)
        self._total += wait
        self._next = min(2 * self._next, _MAX_WAIT / 2)


def _connection_class() -> Any:
    """Return the client's connection, whose errors have what the server says of the wait."""
    from opensearchpy import TransportError, Urllib3HttpConnection

    class OpenSearchConnection(Urllib3HttpConnection):  # type: ignore[misc]
        def perform_request(self, *args: Any, ignore: Collection[int] = (), **kwargs: Any) -> Any:
            answered = super().perform_request(*args, ignore=range(300, 600), **kwargs)
            status, headers, text = answered
            if status < 300 or status in ignore:
                return answered
            try:
                info: Any = json.loads(text)
            except ValueError:
                info = text[:300]
            raise TransportError(status, "", info, _seconds(headers.get("retry-after")))

        def log_request_fail(self, *args: Any, **kwargs: Any) -> None:
            """Log nothing: an error is raised, once it is clear that it is one."""

    return OpenSearchConnection


def _seconds(retry_after: str | None) -> float | None:
    """Read a Retry-After header; a date, which depends on clocks, is passed over."""
    try:
        seconds = float(retry_after or "")
    except ValueError:
        return None
    return seconds if 0 <= seconds < math.inf else None


def _cause(error: Exception) -> tuple[str, str]:
    info = error.args[2] if len(error.args) > 2 else None
    return _cause_of(info.get("error") if isinstance(info, Mapping) else info)


def _cause_of(error: Any) -> tuple[str, str]:
    """Return type and reason of an error as the server says it, with what caused it."""
    if not isinstance(error, Mapping):
        return "error", _short(error)
    roots = error.get("root_cause") or [error]
    return str(roots[0].get("type", "error")), _reason({**error, "root": roots[0]})


def _reason(error: Any) -> str:
    """Join all reasons that an error has."""
    matches: list[str] = []

    def collect(value: Any) -> None:
        if isinstance(value, Mapping):
            if isinstance(reason := value.get("reason"), str) and reason not in matches:
                matches.append(reason)
            for inner in value.values():
                collect(inner)
        elif isinstance(value, list):
            for inner in value:
                collect(inner)

    collect(error)
    return "; ".join(matches)


def _short(message: Any) -> str:
    return " ".join(str(message).split())[:300]


def _lines(row: EngineRow) -> str:
    """Return what puts a row, as two lines of JSON."""
    packed = base64.b64encode(row.vector.astype("<f4").tobytes()).decode()
    document = {
        "key": row.key,
        "id": row.id,
        "place": row.order,
        "tags": [*map(str, row.value_ids)],
        "packed": packed,
    }
    numbers = ",".join(map("%.9g".__mod__, row.vector.tolist()))  # 9 digits are all of a float32
    action = json.dumps({"index": {"_id": row.key}})
    return f'{action}\n{json.dumps(document)[:-1]}, "vector": [{numbers}]}}\n'


def _word_lines(row: WordRow) -> str:
    """Return what puts a row of words, as two lines of JSON."""
    action = json.dumps({"index": {"_id": row.key}})
    words = dict(zip(map(str, row.terms.tolist()), row.impacts.tolist(), strict=True))
    document = {"key": row.key, "tags": [*map(str, row.value_ids)], "words": words}
    return f"{action}\n{json.dumps(document)}\n"


def _unpacked(packed: str) -> Vectors:
    import numpy as np

    return np.frombuffer(base64.b64decode(packed), "<f4").astype(np.float32)


def _query(
    match: ValueMatch | None, without: Collection[str], scored: Sequence[dict[str, Any]] = ()
) -> dict[str, Any]:
    """Return what selects rows in OpenSearch's language; the token has no key.

    Args:
        match: Which rows count.
        without: Keys of rows that don't.
        scored: What is added up; a row has one of it at least.
    """
    conditions: list[dict[str, Any]] = [{"exists": {"field": "key"}}]
    if match is not None:
        conditions.append(_condition(match))
    query: dict[str, Any] = {"filter": conditions}
    if without:
        query["must_not"] = [_terms("key", [*without])]
    if scored:
        query |= {"should": [*scored], "minimum_should_match": 1}
    return {"bool": query}


def _condition(match: ValueMatch) -> dict[str, Any]:
    if match.join == "values":
        return _terms("tags", [*map(str, match.value_ids)])
    parts = [_condition(part) for part in match.parts]
    if match.join == "not":
        return {"bool": {"must_not": parts}}
    return {"bool": {"filter": parts}} if match.join == "and" else _any(parts)


def _any(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    if not parts:
        return {"match_none": {}}
    return {"bool": {"should": [*parts], "minimum_should_match": 1}}


def _terms(field: str, values: Sequence[str]) -> dict[str, Any]:
    parts = [
        {"terms": {field: [*values[start : start + _MAX_TERMS_QUERY]]}}
        for start in range(0, len(values), _MAX_TERMS_QUERY)
    ]
    return parts[0] if len(parts) == 1 else _any(parts)
