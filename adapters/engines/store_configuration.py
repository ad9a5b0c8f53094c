"""Read the configuration of stores that LazyLLM's programs have: ``store_conf``."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from ...nodegraph.errors import nearest_names

_ROLES = ("segment_store", "vector_store")

_FILE = "graph.nodekin"  # in a folder that is given for a file

logger = logging.getLogger(__name__)

Options = dict[str, Any]


def store_options(store_conf: Mapping[str, Any] | None) -> Options:
    """Return what ``NodeGraph`` takes for a configuration of stores.

    Choose it to keep the configuration of a program that had ``segment_store`` and
    ``vector_store``; else ``NodeGraph(store=...)`` is shorter.

    Args:
        store_conf: ``{"segment_store": {"type": ..., "kwargs": {...}}, "vector_store": {...}}``,
            each of which may be missing or empty. Types of ``segment_store``: ``"map"`` (in
            memory, or in the file or folder ``uri``), ``"sqlite"`` (in the file or folder
            ``uri``), ``"postgresql"`` (at the address ``uri``), ``"opensearch"`` (which searches,
            while ``uri`` has the documents; ``uris``, ``client_kwargs``). Of ``vector_store``:
            ``"map"`` (built in), ``"pgvector"`` (in the same PostgreSQL), ``"milvus"`` (at
            ``uri``, a server or a file; ``db_name``, ``client_kwargs``), ``"chroma"`` or
            ``"chromadb"`` (at ``uri``, a server, or in the folder ``dir``; ``client_kwargs``),
            ``"opensearch"`` (at ``uris``; ``client_kwargs``). ``index_kwargs`` are not used, which
            is logged: the index is made as nodekin makes it.

    Raises:
        TypeError: If a part is no mapping.
        ValueError: If a type or an argument is unknown, or of an engine that is not supported.

    Example:
        >>> from nodekin.nodegraph import NodeGraph
        >>> store_options({"segment_store": {"type": "map", "kwargs": {"uri": "texts.db"}}})
        {'store': 'texts.db'}
        >>> graph = NodeGraph(**store_options({"segment_store": {"type": "map"}}))
    """
    conf = _mapping(store_conf or {}, "store_conf")
    for role in conf:
        if role not in _ROLES:
            raise ValueError(
                f"store_conf has the part {role!r}; it has {nearest_names(str(role), _ROLES)}, "
                'each with a "type" and "kwargs"'
            )
    options: Options = {}
    for role in _ROLES:
        part = _mapping(conf.get(role) or {}, role)
        if not part:
            continue
        for name in part:
            if name not in ("type", "kwargs"):
                raise ValueError(
                    f'{role} has {name!r}; it has a "type" and "kwargs", which has all settings'
                )
        kind, kwargs = part.get("type"), _mapping(part.get("kwargs") or {}, f"kwargs of {role}")
        readers = _READERS[role]
        if kind not in readers:
            raise ValueError(
                f"{role} has the type {kind!r}; there is {nearest_names(str(kind), readers)}"
            )
        if role == "vector_store" and options.pop("index", None) and kind != "opensearch":
            logger.warning(
                "the OpenSearch of segment_store is not used: vector_store of type %r searches, "
                "and 'uri' of segment_store has the documents",
                kind,
            )
        readers[kind](f"{role} of type {kind!r}", dict(kwargs), options)
    return options


def _mapping(value: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise TypeError(
            f"{name} is a mapping, not {value!r:.80}; write "
            '{"segment_store": {"type": "map", "kwargs": {"uri": "graph.db"}}}'
        )
    return value


def _uri(name: str, kwargs: dict[str, Any], *, required: bool) -> str | None:
    """Return the only setting there is."""
    uri = kwargs.pop("uri", None)
    if kwargs:
        raise ValueError(f"the {name} takes 'uri' alone, not {', '.join(map(repr, kwargs))}")
    if uri is None and not required:
        return None
    if not isinstance(uri, str | Path) or not str(uri):
        raise ValueError(f"the {name} needs 'uri', a path or an address, not {uri!r:.80}")
    return str(uri)


def _file(name: str, kwargs: dict[str, Any], options: Options, required: bool = False) -> None:
    uri = _uri(name, kwargs, required=required)
    if uri is not None and "://" in uri:
        raise ValueError(f"the {name} takes the path of a file or folder as 'uri', not {uri!r:.80}")
    if uri is not None:
        is_folder = uri.endswith(("/", "\\")) or Path(uri).is_dir()
        options["store"] = str(Path(uri, _FILE)) if is_folder else uri


def _postgresql(name: str, kwargs: dict[str, Any], options: Options) -> None:
    uri = _uri(name, kwargs, required=True) or ""
    if not uri.startswith(("postgresql://", "postgres://")):
        raise ValueError(  # a password is never in a message
            f"the {name} needs an address like 'postgresql://user@host/database?schema=name' as "
            "'uri'"
        )
    options["store"] = uri


def _built_in(name: str, kwargs: dict[str, Any], options: Options) -> None:
    if kwargs:
        raise ValueError(f"the {name} takes no settings, not {', '.join(map(repr, kwargs))}")


def _pgvector(name: str, kwargs: dict[str, Any], options: Options) -> None:
    _built_in(name, kwargs, options)
    store = options.get("store", "")
    if not store.startswith("postgres"):
        raise ValueError(
            f"the {name} is in the PostgreSQL of the graph; give segment_store the type "
            "'postgresql'"
        )
    options["store"] = f"{store}{'&' if '?' in store else '?'}vectors=pgvector"


class _Engine(NamedTuple):
    """How the configuration of an engine becomes its address.

    Attributes:
        scheme: What its addresses begin with.
        servers: The setting that names servers.
        path: The setting that names a file or folder; empty where there is none.
        needs: What one of both is to be.
        parameters: What the settings of the client are called in an address.
        user: Settings of the client that name a user.
        others: Settings of the client that may also be beside ``client_kwargs``.
    """

    scheme: str
    servers: str
    path: str
    needs: str
    parameters: Mapping[str, str]
    user: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


_MILVUS = _Engine(
    "milvus",
    *("uri", "uri", "'uri', 'host:19530' or the path of a file"),
    {"db_name": "database", "secure": "secure", "token": "token", "timeout": "timeout"},
    ("user", "password"),
    ("db_name",),
)

_CHROMA = _Engine(
    "chroma",
    *("uri", "dir", "'uri', 'host:8000', or 'dir', a folder"),
    {"ssl": "secure", "token": "token", "tenant": "tenant", "database": "database"},
)

_OPENSEARCH = _Engine(
    "opensearch",
    *("uris", "", "'uris', a list of 'host:9200'"),
    {"use_ssl": "secure", "verify_certs": "verify", "ca_certs": "ca", "timeout": "timeout"},
    ("user", "password", "http_auth"),
)


def _engine(engine: _Engine, name: str, kwargs: dict[str, Any], options: Options) -> None:
    client = dict(_mapping(kwargs.pop("client_kwargs", None) or {}, f"client_kwargs of {name}"))
    if kwargs.pop("index_kwargs", None):
        logger.warning(
            "index_kwargs of the %s are not used: the index is made as nodekin makes it, and the "
            "similarity is the retriever's",
            name,
        )
    places = dict.fromkeys(place for place in (engine.servers, engine.path) if place)
    _check_names(f"client_kwargs of the {name}", client, [*engine.user, *engine.parameters])
    settings = [*places, *engine.others, "client_kwargs", "index_kwargs"]
    _check_names(f"kwargs of the {name}", kwargs, settings)
    uris, path = kwargs.get(engine.servers), kwargs.get(engine.path)
    listed = uris if isinstance(uris, list | tuple) else [uris] if uris else []
    servers = [_server(str(uri)) for uri in listed]
    if servers and all(server for server, _ in servers):
        client |= {other: kwargs[other] for other in engine.others if kwargs.get(other)}
        options["index"] = _address(engine, servers, client)
        return
    if not isinstance(path, str | Path) or not str(path) or (uris and path is not uris):
        raise ValueError(f"the {name} needs {engine.needs}")
    if client:
        raise ValueError(
            f"{engine.scheme} in a file or folder takes no {nearest_names('', client)}"
        )
    slashes = "//" if str(path).startswith("/") else ""
    options["index"] = f"{engine.scheme}:{slashes}{quote(str(path))}"


def _check_names(what: str, settings: Iterable[str], existing: Sequence[str]) -> None:
    for name in settings:
        if name not in existing:
            raise ValueError(
                f"the {what} have {name!r}; they may have {nearest_names(str(name), existing)}"
            )


def _address(engine: _Engine, servers: Sequence[tuple[str, bool]], client: dict[str, Any]) -> str:
    """Return the address of servers, with the settings of a client."""
    user, password = client.get("user", ""), client.get("password", "")
    if auth := client.get("http_auth"):
        user, password = auth.partition(":")[::2] if isinstance(auth, str) else auth
    parameters = {
        parameter: client[name] for name, parameter in engine.parameters.items() if name in client
    }
    secure = parameters.setdefault("secure", any(secure for _, secure in servers))
    if (verify := parameters.pop("verify", True)) is not True and secure:
        parameters["verify"] = "true" if verify else "false"
    values = [
        (name, str(parameters[name]).lower() if name == "secure" else parameters[name])
        for name in dict.fromkeys(["database", "secure", "verify", *parameters])
        if parameters.get(name) not in ("", None, False)
    ]
    at = f"{quote(str(user), '')}:{quote(str(password), '')}@" if user else ""
    address = f"{engine.scheme}://{at}{','.join(server for server, _ in servers)}"
    return f"{address}?{urlencode(values)}" if values else address


def _opensearch_beside(name: str, kwargs: dict[str, Any], options: Options) -> None:
    uri = kwargs.pop("uri", None)
    if not isinstance(uri, str | Path) or not str(uri):
        raise ValueError(
            f"the {name} needs 'uri', too, for what has the documents, as OpenSearch has no "
            "transactions, and only searches: a file, or 'postgresql://user@host/database'"
        )
    store = _postgresql if str(uri).startswith(("postgresql:", "postgres:")) else _file
    store(name, {"uri": uri}, options)
    _engine(_OPENSEARCH, name, kwargs, options)


_SERVER = re.compile(r"(?:(https?|tcp)://)?([\w.-]+:\d+|\[[\da-fA-F:]+\]:\d+)/?")


def _server(uri: str) -> tuple[str, bool]:
    """Return host and port of ``ip:port`` or a URL of that, and whether it wants TLS."""
    match = _SERVER.fullmatch(uri)
    if match is None:
        if "://" in uri:  # a password is never in a message
            raise ValueError("an address of a server is written 'host:port' or 'http://host:port'")
        return "", False
    return match[2], match[1] == "https"


_READERS: dict[str, dict[str, Callable[[str, dict[str, Any], Options], None]]] = {
    "segment_store": {
        "map": _file,
        "sqlite": partial(_file, required=True),
        "postgresql": _postgresql,
        "opensearch": _opensearch_beside,
    },
    "vector_store": {
        "map": _built_in,
        "pgvector": _pgvector,
        "milvus": partial(_engine, _MILVUS),
        "chroma": partial(_engine, _CHROMA),
        "chromadb": partial(_engine, _CHROMA),
        "opensearch": partial(_engine, _OPENSEARCH),
    },
}
