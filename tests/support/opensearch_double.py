"""A double of OpenSearch on loopback: it has what the engine asks for, and refuses all else.

Requests are checked against what OpenSearch's documentation says of them: unknown parameters,
fields and types, too long lists, vectors of another length, paging beyond the result window and
writes that would make an index are errors as there. What was written is found by searches only
after a refresh. Vectors are compared exactly: nothing here shows what HNSW would miss.
"""

from __future__ import annotations

import base64
import contextlib
import copy
import json
import math
import re
import socket
import ssl
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import numpy as np

Json = dict[str, Any]

_SETTINGS = {"refresh_interval", "replication.type", "knn", "knn.algo_param.ef_search"}

_FIELD_PARAMETERS = {
    "keyword": {"index", "doc_values"},
    "long": {"index", "doc_values"},
    "binary": set(),
    "rank_features": set(),
    "knn_vector": {"dimension", "method"},
}

_PARAMETERS = {  # of requests
    "info": set(),
    "create": set(),
    "delete": {"ignore_unavailable"},
    "mapping": set(),
    "get": set(),
    "bulk": {"require_alias"},
    "refresh": set(),
    "count": set(),
    "search": {"allow_partial_search_results"},
}

_NO_VECTORS = ["key", "id"]  # what is returned where a request doesn't say

_WINDOW = 10_000

_MOST_TERMS = 65_536

_MOST_CLAUSES = 1_024


class Refusal(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, kind: str, reason: str, cause: str = "") -> None:
        super().__init__(reason)
        self.status = status
        self.error: Json = {"type": kind, "reason": reason}
        if cause:
            self.error["caused_by"] = {"type": "illegal_argument_exception", "reason": cause}

    @property
    def body(self) -> Json:
        error = {"root_cause": [{"type": self.error["type"], "reason": self.error["reason"]}]}
        return {"error": {**error, **self.error}, "status": self.status}


def _check(condition: bool, reason: str, kind: str = "illegal_argument_exception") -> None:
    if not condition:
        raise Refusal(400, kind, reason)


def _missing(name: str) -> Refusal:
    return Refusal(404, "index_not_found_exception", f"no such index [{name}]")


@dataclass
class Index:
    """An index: what was written, and what searches see of it."""

    settings: Json
    mappings: Json
    aliases: set[str]
    written: dict[str, Json] = field(default_factory=dict)
    searched: dict[str, Json] = field(default_factory=dict)
    versions: int = 0

    @property
    def fields(self) -> Json:
        return self.mappings["properties"]


@dataclass(frozen=True)
class Fault:
    """What happens to a request in place of its answer.

    Attributes:
        status: The status of an answer, 0 for a connection that ends without one.
        kind: The type of the error.
        reason: What it says.
        headers: Further headers.
        done: Whether what was requested is done, and only the answer is lost.
    """

    status: int = 0
    kind: str = "fault"
    reason: str = "as the test wants it"
    headers: Mapping[str, str] = field(default_factory=dict)
    done: bool = False


class OpenSearchDouble:
    """A server.

    Attributes:
        indexes: By name.
        version: What it says of itself.
        user: User and password that it demands, if any.
        has_knn: Whether it has the k-NN plugin.
        longest: Bytes of the longest request that it takes.
        full: Whether its disk is full.
        silent: Whether it takes requests and answers none.
        failed_shards: How many shards searches and refreshes fail on.
        busy: How many actions of the next bulk requests it is too busy for.
        requests: The kinds of the requests so far, and their bodies.
        too_long: How many requests were longer than it takes.
        lost: How many answers were lost.
    """

    def __init__(self) -> None:
        self.indexes: dict[str, Index] = {}
        self.version: Any = {"distribution": "opensearch", "number": "2.19.1"}
        self.user: tuple[str, str] | None = None
        self.has_knn = True
        self.longest = 100_000_000
        self.full = False
        self.silent = False
        self.failed_shards = 0
        self.busy: deque[int] = deque()
        self.requests: list[tuple[str, Any]] = []
        self.released = threading.Event()
        self.too_long = 0
        self.lost = 0
        self.port = 0
        self._lock = threading.Lock()
        self._server: _Server | None = None
        self._context: ssl.SSLContext | None = None
        self._faults: dict[str, deque[Fault]] = {}
        self._number = 0
        self._lose: frozenset[int] = frozenset()
        self._lose_done = False

    # Running

    @property
    def address(self) -> str:
        return f"opensearch://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start, or start again with all that was acknowledged."""
        for index in self.indexes.values():  # a shard that is recovered is refreshed
            index.searched = copy.copy(index.written)
        self._server = _Server(self)
        self.port = self._server.server_port
        if self._context is not None:
            self._server.socket = self._context.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, args=[0.01], daemon=True).start()

    def kill(self) -> None:
        """End all connections, and take no new ones; a request that waits is never done."""
        with self._lock:
            server, self._server = self._server, None
        if server is not None:
            self.released.set()
            server.shutdown()
            server.server_close()
            for connection in list(server.connections):
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
            self.released.clear()

    def secure(self, context: ssl.SSLContext) -> None:
        """Start again with TLS."""
        self.kill()
        self._context = context
        self.start()

    def backup(self) -> dict[str, Index]:
        return copy.deepcopy(self.indexes)

    # Failing

    def fail(self, kind: str, *faults: Fault) -> None:
        """Let the next requests of a kind ("bulk", "search", "PUT", ...) fail."""
        self._faults.setdefault(kind, deque()).extend(faults)

    def lose(self, numbers: Collection[int], *, done: bool) -> None:
        """Answer some of the next requests, counted from 0, by ending the connection.

        Args:
            numbers: Which.
            done: Whether they are done.
        """
        self._number, self.lost = 0, 0
        self._lose, self._lose_done = frozenset(numbers), done

    def fault(self, kind: str) -> Fault | None:
        """Return what happens to this request, if anything."""
        with self._lock:
            number, self._number = self._number, self._number + 1
            if number in self._lose:
                self.lost += 1
                return Fault(done=self._lose_done)
            faults = self._faults.get(kind)
            return faults.popleft() if faults else None

    # Answering

    def answer(
        self,
        method: str,
        url: str,
        body: bytes,
        headers: Mapping[str, str] | Message,
        server: _Server | None = None,
    ) -> Json:
        """Return the answer to a request.

        Raises:
            Refusal: Where it is an error.
            ConnectionAbortedError: If the server that took the request was killed.
        """
        kind, name, id = self._kind(method, unquote(urlsplit(url).path))
        if self.user is not None:
            expected = base64.b64encode(":".join(self.user).encode()).decode()
            if headers.get("Authorization") != f"Basic {expected}":
                raise Refusal(401, "security_exception", "Unauthorized")
        if len(body) > self.longest:
            self.too_long += 1
            raise Refusal(413, "error", f"entity content is too long [{len(body)}]")
        given = dict(parse_qsl(urlsplit(url).query, keep_blank_values=True))
        unknown = given.keys() - _PARAMETERS[kind]
        _check(not unknown, f"request [{url}] contains unrecognized parameter: {sorted(unknown)}")
        _check(all(value in ("true", "false") for value in given.values()), f"no flag in {given}")
        with self._lock:
            if server not in (None, self._server):
                raise ConnectionAbortedError("the server was killed")
            if kind == "bulk":
                return self._bulk(name, body, given)
            content = json.loads(body) if body else None
            self.requests.append((kind, content))
            if kind == "info":
                return {"version": self.version, "tagline": "The OpenSearch Project"}
            if kind == "create":
                return self._create(name, content)
            if kind == "delete":
                return self._delete(name, given)
            index = self._behind(name)
            if kind == "get":
                source = index.written.get(id)
                return {"found": source is not None, "_id": id, "_source": source}
            _check(kind in ("count", "search") or content is None, "no body was expected")
            if kind == "mapping":
                (real,) = (key for key, value in self.indexes.items() if value is index)
                return {real: {"mappings": index.mappings}}
            failed = self.failed_shards
            shards: Json = {"total": 2, "successful": 2 - failed, "failed": failed}
            if failed:
                shards["failures"] = [{"shard": 1, "reason": {"type": "t", "reason": "gone"}}]
            if kind == "refresh":
                index.searched = copy.copy(index.written)
                return {"_shards": shards}
            if kind == "count":
                _check(content.keys() == {"query"}, f"unknown key in {[*content]}")
                return {"count": len(_Search(self, index).ids(content["query"])), "_shards": shards}
            hits = _Search(self, index).hits(content)
            return {"took": 1, "timed_out": False, "_shards": shards, "hits": {"hits": hits}}

    def _kind(self, method: str, path: str) -> tuple[str, str, str]:
        parts = path.strip("/").split("/")
        routes = {
            ("GET", 1): "info" if parts == [""] else "",
            ("PUT", 1): "create",
            ("DELETE", 1): "delete",
            ("GET", 2): "mapping" if parts[-1] == "_mapping" else "",
            ("POST", 2): parts[-1].removeprefix("_"),
            ("GET", 3): "get" if parts[1:2] == ["_doc"] else "",
        }
        kind = routes.get((method, len(parts)), "")
        _check(kind in _PARAMETERS, f"no handler found for uri [{path}] and method [{method}]")
        return kind, parts[0], parts[-1]

    def _behind(self, name: str) -> Index:
        for key, index in self.indexes.items():
            if name == key or name in index.aliases:
                return index
        raise _missing(name)

    def _create(self, name: str, body: Json) -> Json:
        _check(
            re.fullmatch(r"[a-z0-9][a-z0-9_.-]{0,254}", name) is not None, f"[{name}] is no name"
        )
        if self.full:
            reason = "blocked by: [FORBIDDEN/10/cluster create-index blocked (api)];"
            raise Refusal(403, "cluster_block_exception", reason)
        _check(
            name not in self.indexes,
            f"index [{name}/uuid] already exists",
            "resource_already_exists_exception",
        )
        _check(body.keys() <= {"settings", "mappings", "aliases"}, f"unknown key in {[*body]}")
        settings, mappings = body["settings"]["index"], body["mappings"]
        for key in settings:
            known = key in _SETTINGS and (self.has_knn or not key.startswith("knn"))
            _check(
                known,
                f"unknown setting [index.{key}] please check that any required plugins are "
                "installed, or check the breaking changes documentation for removed settings",
            )
        _check(settings.get("refresh_interval", "1s") in ("-1", "1s"), "refresh_interval")
        _check(settings.get("replication.type", "DOCUMENT") in ("DOCUMENT", "SEGMENT"), "type")
        _check(isinstance(settings.get("knn", False), bool), "knn is no flag")
        _check(settings.get("knn.algo_param.ef_search", 100) >= 2, "ef_search")
        _check(mappings.keys() <= {"dynamic", "_meta", "properties"}, f"mappings {[*mappings]}")
        _check(mappings.get("dynamic") in ("strict", "true", "false"), "dynamic")
        for key, value in mappings["properties"].items():
            self._check_field(key, value)
        aliases = set(body.get("aliases", {}))
        taken = {*self.indexes, name}
        _check(not aliases & taken, f"{aliases} is an index", "invalid_alias_name_exception")
        self.indexes[name] = Index(settings, mappings, aliases)
        return {"acknowledged": True, "shards_acknowledged": True, "index": name}

    def _check_field(self, name: str, field: Json) -> None:
        kind = field["type"]
        if kind not in _FIELD_PARAMETERS or (kind == "knn_vector" and not self.has_knn):
            reason = f"No handler for type [{kind}] declared on field [{name}]"
            raise Refusal(400, "mapper_parsing_exception", f"Failed to parse mapping: {reason}")
        unknown = field.keys() - {"type"} - _FIELD_PARAMETERS[kind]
        _check(not unknown, f"unknown parameter {unknown} on mapper [{name}] of type [{kind}]")
        if kind == "knn_vector":
            _check(type(field["dimension"]) is int, "dimension")
            _check(1 <= field["dimension"] <= 16_000, f"dimension {field['dimension']}")
            if method := field.get("method"):
                parameters = method.get("parameters", {})
                _check(method.keys() <= {"name", "engine", "space_type", "parameters"}, "method")
                _check(method["name"] == "hnsw" and method["engine"] == "faiss", "of 2.9")
                _check(method["space_type"] in ("l2", "innerproduct"), method["space_type"])
                _check(parameters.keys() <= {"m", "ef_construction", "ef_search"}, "parameters")
                _check(2 <= parameters.get("m", 16) <= 100, "m is between 2 and 100")

    def _delete(self, name: str, given: Mapping[str, str]) -> Json:
        if name not in self.indexes and given.get("ignore_unavailable") != "true":
            raise _missing(name)  # also for an alias
        self.indexes.pop(name, None)
        return {"acknowledged": True}

    def _bulk(self, name: str, body: bytes, given: Mapping[str, str]) -> Json:
        text = body.decode()
        _check(text.endswith("\n"), "The bulk request must be terminated by a newline [\\n]")
        lines = [json.loads(line) for line in text[:-1].split("\n")]
        self.requests.append(("bulk", lines))
        busy = self.busy.popleft() if self.busy else 0
        items, at = [], 0
        while at < len(lines):
            ((action, target),) = lines[at].items()
            _check(action in ("index", "delete"), f"Malformed action [{action}]")
            _check(target.keys() == {"_id"}, f"Unknown parameter in {target}")
            _check(0 < len(target["_id"].encode()) <= 512, "id is too long")
            source = lines[at + 1] if action == "index" else None
            at += 1 if source is None else 2
            item: Json = {"_index": name, "_id": target["_id"]}
            try:
                if busy:
                    busy -= 1
                    kind = "rejected_execution_exception"
                    raise Refusal(429, kind, "rejected execution of coordinating operation")
                item |= self._write(name, given, target["_id"], source)
            except Refusal as refusal:
                item |= {"status": refusal.status, "error": refusal.error}
            items.append({action: item})
        errors = any("error" in result for item in items for result in item.values())
        return {"took": 1, "errors": errors, "items": items}

    def _write(self, name: str, given: Mapping[str, str], id: str, source: Json | None) -> Json:
        aliases = [index for index in self.indexes.values() if name in index.aliases]
        if not aliases:
            _check(
                source is None or given.get("require_alias") == "true",
                "the double makes no index by itself: write with require_alias",
            )
            raise _missing(name)
        (index,) = aliases
        if self.full and source is not None:
            reason = (
                f"index [{name}] blocked by: [TOO_MANY_REQUESTS/12/disk usage exceeded flood-stage "
                "watermark, index has read-only-allow-delete block];"
            )
            raise Refusal(429, "cluster_block_exception", reason)
        index.versions += 1
        fields = {"_seq_no": index.versions, "_primary_term": 1}
        if source is None:
            existed = index.written.pop(id, None) is not None
            kind = "deleted" if existed else "not_found"
            return {**fields, "result": kind, "status": 200 if existed else 404}
        self._check_document(index, source)
        existed = id in index.written
        vectors = [name for name in source if index.fields[name]["type"] == "knn_vector"]
        arrays = {name: np.array(source[name], np.float32) for name in vectors}
        index.written[id] = {**source, **arrays}
        kind = "updated" if existed else "created"
        return {**fields, "result": kind, "status": 200 if existed else 201}

    def _check_document(self, index: Index, source: Json) -> None:
        for name, value in source.items():
            if name not in index.fields:
                reason = f"mapping set to strict, dynamic introduction of [{name}] is not allowed"
                raise Refusal(400, "strict_dynamic_mapping_exception", reason)
            mapping = index.fields[name]
            values = value if isinstance(value, list) else [value]
            kind = mapping["type"]
            cause = ""
            if kind == "keyword":
                right = all(isinstance(v, str) and len(v.encode()) <= 32_766 for v in values)
                right |= mapping.get("index") is False and mapping.get("doc_values") is False
            elif kind == "long":
                right = all(type(v) is int and -(2**63) <= v < 2**63 for v in values)
            elif kind == "binary":
                right = isinstance(value, str)
                base64.b64decode(value, validate=True)
            elif kind == "rank_features":
                right = isinstance(value, dict) and all(
                    "." not in name and type(v) in (int, float) and 1.2e-38 < v < 3.4e38
                    for name, v in value.items()
                )
            else:
                right = all(type(v) in (int, float) and math.isfinite(v) for v in values)
                if len(values) != mapping["dimension"]:
                    right = False
                    expected = f"Expected: {mapping['dimension']}, Given: {len(values)}"
                    cause = f"Vector dimension mismatch. {expected}"
            if not right:
                reason = f"failed to parse field [{name}] of type [{kind}]"
                raise Refusal(400, "mapper_parsing_exception", reason, cause)


class _Search:
    """A search of what an index has."""

    def __init__(self, server: OpenSearchDouble, index: Index) -> None:
        self._server = server
        self._index = index
        self._documents = index.searched
        self._clauses = 0

    def hits(self, body: Json) -> list[Json]:
        known = {"size", "from", "query", "sort", "search_after", "_source", "track_total_hits"}
        known |= {"track_scores"}
        _check(body.keys() <= known, f"unknown key in {[*body]}", "parsing_exception")
        size, begin = body.get("size", 10), body.get("from", 0)
        _check(
            size + begin <= _WINDOW,
            f"Result window is too large, from + size must be less than or equal to: [{_WINDOW}]",
        )
        scores = self._scores(body["query"])
        if sort := body.get("sort"):
            ((name, order),) = (item for entry in sort for item in entry.items())
            mapping = self._index.fields.get(name)
            _check(mapping is not None, f"No mapping found for [{name}] in order to sort on")
            _check(mapping.get("doc_values", True), f"Can't load fielddata on [{name}]")
            _check(order == "asc", f"order {order}")
            places = {id: self._documents[id].get(name) for id in scores}
            ids = sorted(scores, key=lambda id: (places[id] is None, places[id]))
            if after := body.get("search_after"):
                _check(len(after) == len(sort) and begin == 0, "search_after")
                ids = [id for id in ids if places[id] is not None and places[id] > after[0]]
        else:
            _check("search_after" not in body, "Sort must contain at least one field")
            places = {}
            ids = sorted(scores, key=lambda id: -scores[id])  # ties in the order of the writes
        hits = []
        for id in ids[begin : begin + size]:
            source = self._documents[id]
            scored = not sort or body.get("track_scores")
            hit: Json = {"_id": id, "_score": float(np.float32(scores[id])) if scored else None}
            if (wanted := body.get("_source", _NO_VECTORS)) is not False:
                _check("vector" not in wanted, "the double returns no vectors")
                hit["_source"] = {name: source[name] for name in wanted if name in source}
            if sort:
                hit["sort"] = [places[id]]
            hits.append(hit)
        return hits

    def ids(self, query: Json) -> set[str]:
        return {*self._scores(query)}

    def _scores(self, query: Json) -> dict[str, float]:
        """Return the documents that a query finds, each with its score."""
        _check(len(query) == 1, f"a query is one of its kind, not {[*query]}", "parsing_exception")
        ((kind, body),) = query.items()
        find: Callable[[Any], dict[str, float]] | None = getattr(self, f"_{kind}", None)
        if find is None or kind not in _QUERIES:
            raise Refusal(400, "parsing_exception", f"unknown query [{kind}]")
        return find(body)

    def _match_all(self, body: Json) -> dict[str, float]:
        return dict.fromkeys(self._documents, 1.0)

    def _match_none(self, body: Json) -> dict[str, float]:
        return {}

    def _exists(self, body: Json) -> dict[str, float]:
        _check(body.keys() == {"field"}, "exists")
        name = body["field"]
        mapping = self._index.fields.get(name, {})
        _check(mapping.get("index", True) or mapping.get("doc_values", True), f"exists: {name}")
        return {id: 1.0 for id, d in self._documents.items() if d.get(name) not in (None, [])}

    def _terms(self, body: Json) -> dict[str, float]:
        ((name, values),) = body.items()
        _check(isinstance(values, list), "terms wants a list", "parsing_exception")
        _check(
            len(values) <= _MOST_TERMS,
            f"The number of terms [{len(values)}] used in the Terms Query request has exceeded the "
            f"allowed maximum of [{_MOST_TERMS}]. This maximum can be set by changing the "
            "[index.max_terms_count] index level setting.",
        )
        mapping = self._index.fields.get(name)
        _check(mapping is not None and mapping["type"] == "keyword", f"no keyword: {name}")
        _check(mapping.get("index", True), f"Cannot search on field [{name}], not indexed")
        _check(all(type(value) is str for value in values), "keywords are texts")
        wanted = frozenset(values)
        found = {}
        for id, document in self._documents.items():
            value = document.get(name, [])
            if not wanted.isdisjoint(value if isinstance(value, list) else [value]):
                found[id] = 1.0
        return found

    def _bool(self, body: Json) -> dict[str, float]:
        known = {"filter", "must_not", "should", "minimum_should_match"}
        _check(
            body.keys() <= known, f"[bool] query does not support {[*body]}", "parsing_exception"
        )
        should = body.get("should", [])
        self._clauses += len(should)
        _check(self._clauses <= _MOST_CLAUSES, f"maxClauseCount is set to {_MOST_CLAUSES}")
        found = set(self._documents)
        for part in body.get("filter", []):
            found &= self.ids(part)
        for part in body.get("must_not", []):
            found -= self.ids(part)
        sums: dict[str, float] = {} if should else dict.fromkeys(found, 0.0)
        if should:
            _check(body.get("minimum_should_match", 1) == 1, "one is enough")
        for part in should:
            for id, score in self._scores(part).items():
                if id in found:
                    sums[id] = sums.get(id, 0.0) + score
        return sums

    def _rank_feature(self, body: Json) -> dict[str, float]:
        _check(body.keys() == {"field", "boost", "linear"}, f"[rank_feature] has {[*body]}")
        _check(body["linear"] == {} and body["boost"] >= 0, "[rank_feature] is linear")
        name, _, feature = body["field"].partition(".")
        _check(self._index.fields[name]["type"] == "rank_features", f"no features: {name}")
        return {
            id: body["boost"] * _nine_bits(document[name][feature])
            for id, document in self._documents.items()
            if feature in document.get(name, {})
        }

    def _knn(self, body: Json) -> dict[str, float]:
        ((name, request),) = body.items()
        _check(request.keys() <= {"vector", "k", "filter"}, f"[knn] has {[*request]}")
        _check(type(request["k"]) is int, "[knn] requires k")
        _check(1 <= request["k"] <= 10_000, "[knn] requires k to be in the range (0, 10000]")
        mapping = self._vector(name, request["vector"])
        built = self._index.settings.get("knn") and "method" in mapping
        _check(bool(built), f"Field '{name}' is not built for ANN search.")
        _check(mapping["method"]["space_type"] == "innerproduct", "no product")
        found = self.ids(request["filter"]) if "filter" in request else set(self._documents)
        scores = self._products(name, request["vector"], found)
        best = sorted(scores, key=lambda id: -scores[id])[: request["k"]]
        return {id: scores[id] for id in best}

    def _script_score(self, body: Json) -> dict[str, float]:
        _check(body.keys() <= {"query", "script"}, f"[script_score] has {[*body]}")
        script = body["script"]
        _check(script.keys() == {"lang", "source", "params"}, f"[script] has {[*script]}")
        _check(self._server.has_knn or script["lang"] != "knn", "script_lang not supported [knn]")
        _check((script["lang"], script["source"]) == ("knn", "knn_score"), "only k-NN's script")
        params = script["params"]
        _check(params.keys() == {"field", "query_value", "space_type"}, "all are required")
        _check(params["space_type"] == "innerproduct", "no product")
        self._vector(params["field"], params["query_value"])
        found = self.ids(body["query"])
        return self._products(params["field"], params["query_value"], found)

    def _vector(self, name: str, vector: Any) -> Json:
        mapping: Json = self._index.fields.get(name, {})
        _check(mapping.get("type") == "knn_vector", f"Field '{name}' is not knn_vector type.")
        given, expected = len(vector), mapping["dimension"]
        _check(
            given == expected,
            f"Query vector has invalid dimension: {given}. Dimension should be: {expected}",
            "query_shard_exception",
        )
        return mapping

    def _products(self, name: str, query: list[float], ids: set[str]) -> dict[str, float]:
        """Return scores as the plugin makes them of products, in the order of the writes."""
        found = [id for id in self._documents if id in ids and name in self._documents[id]]
        if not found:
            return {}
        vectors = np.array([self._documents[id][name] for id in found])
        products = (vectors @ np.array(query, np.float32)).tolist()
        return {
            id: 1 + product if product > 0 else 1 / (1 - product)
            for id, product in zip(found, products, strict=True)
        }


_QUERIES = {"match_all", "match_none", "exists", "terms", "bool", "knn", "script_score"}
_QUERIES |= {"rank_feature"}


def _nine_bits(number: float) -> float:
    """Return what is stored of a feature: nine significant bits, the others cut off."""
    bits = np.float32(number).view(np.uint32) >> 15 << 15
    return float(bits.view(np.float32))


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True

    def __init__(self, double: OpenSearchDouble) -> None:
        super().__init__(("127.0.0.1", double.port), _Handler)
        self.double = double
        self.connections: set[socket.socket] = set()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Stay silent: clients may go."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # an answer is one piece

    def setup(self) -> None:
        super().setup()
        self.server.connections.add(self.connection)

    def finish(self) -> None:
        self.server.connections.discard(self.connection)
        super().finish()

    def _handle(self) -> None:
        double = self.server.double
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path = urlsplit(self.path).path
        kind = path.rsplit("/", 1)[-1].removeprefix("_") if path.count("/") > 1 else self.command
        if double.silent:
            double.released.wait()
            self.close_connection = True
            return
        fault = double.fault(kind)
        if fault is not None and not fault.done:
            self._fail(fault)
            return
        try:
            request = self.command, self.path, body, self.headers
            status, answer = 200, double.answer(*request, self.server)
            if kind == "mark" and not answer["found"]:
                status = 404
        except ConnectionAbortedError:
            self.close_connection = True
            return
        except Refusal as refusal:
            status, answer = refusal.status, refusal.body
        if fault is not None:
            self._fail(fault)
        else:
            self._reply(status, answer, {})

    def _fail(self, fault: Fault) -> None:
        if not fault.status:
            self.close_connection = True
            return
        refusal = Refusal(fault.status, fault.kind, fault.reason)
        self._reply(fault.status, refusal.body, fault.headers)

    def _reply(self, status: int, answer: Any, headers: Mapping[str, str]) -> None:
        data = json.dumps(answer).encode()
        with contextlib.suppress(ConnectionError):
            self.send_response(status)
            self.send_header("Content-Type", "application/json; charset=UTF-8")
            self.send_header("Content-Length", str(len(data)))
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

    do_GET = do_PUT = do_POST = do_DELETE = _handle

    def log_message(self, *args: object) -> None:
        """Stay silent."""


@contextlib.contextmanager
def running_double() -> Iterator[OpenSearchDouble]:
    """Run a double until the block ends."""
    double = OpenSearchDouble()
    double.start()
    try:
        yield double
    finally:
        double.kill()
